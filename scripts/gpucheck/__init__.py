# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/gpu-check consists of: packing here, checking on a machine with a GPU."""
