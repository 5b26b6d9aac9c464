# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums and products."""

import numpy as np

from .draft import generates


@generates("CumSum", weight=5)
def cum_sum(d, op):
    d.since(11)
    shape = d.shape(1, 4)
    dtype = d.pick(np.float32, np.float32, np.float64, np.int32, np.int64)
    d.exact = dtype in (np.int32, np.int64)
    axis = np.array(d.axis(len(shape)), d.pick(np.int64, np.int32))
    x = d.input(d.values(shape, dtype))
    d.node(op, x, d.constant(axis), exclusive=d.pick(None, 0, 1), reverse=d.pick(None, 0, 1))


@generates("CumProd", weight=3)
def cum_prod(d, op):
    d.since(26)
    d.prefer_reference = True
    shape = d.shape(1, 4)
    dtype = d.pick(np.float32, np.float32, np.float64, np.int32, np.int64)
    d.exact = dtype in (np.int32, np.int64)
    # Small factors of either sign, whose products stay small.
    values = d.values(shape, np.int32, -2, 2) if d.exact else d.values(shape, np.float64, -1.3, 1.3)
    axis = np.array(d.axis(len(shape)), d.pick(np.int64, np.int32))
    x = d.input(values.astype(dtype))
    d.node(op, x, d.constant(axis), exclusive=d.pick(None, 0, 1), reverse=d.pick(None, 0, 1))
