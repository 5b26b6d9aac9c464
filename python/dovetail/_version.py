# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The version of Dovetail. CMakeLists.txt reads it here."""

__version__ = "0.1.0"
