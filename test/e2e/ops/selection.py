# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that find or mark positions. All are exact."""

import numpy as np
from onnx import TensorProto

from .draft import generates


@generates("ArgMax", "ArgMin", weight=4)
def arg_extremum(d, op):
    opset = d.since(7)
    d.exact = True
    shape = d.shape(1, 4)
    # Whole numbers, so that some are equal.
    values = d.values(shape, np.int32).astype(d.pick(np.float32, np.float32, np.int32, np.int8))
    if opset < 11:
        values = values.astype(np.float32)
    d.node(
        op,
        d.input(values),
        axis=d.pick(None, d.axis(len(shape), negative=opset >= 11)),
        keepdims=d.pick(None, 0, 1),
        select_last_index=d.pick(None, 0, 1) if opset >= 12 else None,
    )


@generates("Hardmax", weight=2)
def hardmax(d, op):
    opset = d.since(7)
    d.exact = True
    shape = d.shape(2, 4)
    values = d.values(shape, np.int32).astype(np.float32)
    d.node(op, d.input(values), axis=d.pick(None, d.axis(len(shape), negative=opset >= 11)))


@generates("OneHot", weight=3)
def one_hot(d, op):
    opset = d.since(9)
    d.exact = True
    shape = d.shape(1, 3)
    depth = d.integer(1, 9)
    low = -depth - 2 if opset >= 11 else 0
    indices = d.values(shape, d.pick(np.int64, np.int64, np.float32), low, depth + 1)
    values = d.values([2], d.pick(np.float32, np.int64))
    if indices.dtype == np.float32:  # All must be floats for ONNX Runtime; the reference takes indices modulo depth.
        indices, values = np.trunc(indices), values.astype(np.float32)
    axis = d.pick(None, d.axis(len(shape) + 1))
    d.node(op, d.input(indices), d.constant(np.array(depth, indices.dtype)), d.either(values), axis=axis)


@generates("EyeLike")
def eye_like(d, op):
    d.since(9)
    d.exact = True
    shape = d.shape(2, 2)
    d.node(
        op,
        d.input(d.values(shape)),
        k=d.pick(None, d.integer(-shape[0], shape[1])),
        dtype=d.pick(None, TensorProto.FLOAT, TensorProto.INT64),
    )
