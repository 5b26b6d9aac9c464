# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generators of cases of operators that ONNX Runtime adds to ONNX's, one module for each family.

`GENERATORS` is by `domain.Name`; see `ops.draft` for the rest.
"""

import importlib
import pkgutil

from .registry import GENERATORS, REFUSED, contributes

__all__ = ["GENERATORS", "REFUSED", "contributes"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
