# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m dovetail` is the command `dovetail`."""

from dovetail._programs import dovetail

dovetail()
