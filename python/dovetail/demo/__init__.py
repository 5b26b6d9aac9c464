# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A first result, with nothing but this package: `python -m dovetail.demo --help`."""
