# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the compiler and the runtime from tests, and judges what comes out."""
