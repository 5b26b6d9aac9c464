# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Motifs from which random graphs are made, one module for each family."""

from . import blocks, elementwise, movement, windows  # noqa: F401
from .sketch import MOTIFS, Reject, Sketch  # noqa: F401
