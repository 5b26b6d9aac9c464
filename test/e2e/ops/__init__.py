# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generators of random single-operator cases, one module for each family of operators."""

from . import (  # noqa: F401
    bounded,
    contraction,
    control,
    einsum,
    elementwise,
    indexing,
    movement,
    narrow,
    normalization,
    quantization,
    recurrence,
    resize,
    sampling,
    scan,
    selection,
    spectral,
    windows,
)
from .draft import GENERATORS, WEIGHTS, Draft  # noqa: F401
