# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generators of cases of operators that ONNX Runtime adds to ONNX's, one module for each family.

`GENERATORS` is by `domain.Name`; see `ops.draft` for the rest.
"""

from . import activations, fused, group_query, multi_head, norms, rotary
from .registry import GENERATORS, REFUSED, contributes

__all__ = ["GENERATORS", "REFUSED", "contributes", "activations", "fused", "group_query", "multi_head", "norms", "rotary"]
