# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generators of random single-operator cases, one module for each family of operators."""

from . import contraction, elementwise, movement, normalization, resize, windows  # noqa: F401
from .draft import GENERATORS, WEIGHTS, Draft  # noqa: F401
