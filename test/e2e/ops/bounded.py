# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators whose results have as many elements as data say, and what others make of such results."""

import numpy as np
from onnx import TensorProto, helper

from .draft import generates


def _sparse(d, shape, dtype):
    """Values of which some are zero, none or all of them at times."""
    density = d.pick(0.0, 0.1, 0.5, 0.5, 0.9, 1.0)
    values = d.values(shape, np.int32, 1, 5).astype(dtype) * (d.rng.random(shape) < density)
    return values.astype(dtype)


@generates("NonZero", weight=4)
def non_zero(d, op):
    d.since(9)
    d.exact = True
    shape = d.shape(1, 4)
    values = _sparse(d, shape, d.pick(np.float32, np.float32, np.int64, np.int32, np.uint8, np.bool_))
    source = d.either(values, 0.2)
    # Of a constant, the extent is known.
    bound = np.count_nonzero(values) if source in d.constants else values.size
    if d.chance(0.5):
        d.bounded[d.node(op, source)] = [len(shape), bound]
        return
    # What exporters make of it: an index along an axis for each element, and the slices there.
    rows = d.node("Transpose", d.node(op, source, final=False), perm=[1, 0], final=d.chance(0.3))
    if rows in d.outputs:
        d.bounded[rows] = [bound, len(shape)]
    axis = d.axis(len(shape), negative=False)
    column = d.node("Gather", rows, d.constant(np.array(axis, np.int64)), axis=1, final=False)
    found = d.node("Gather", d.input(d.values(shape)), column, axis=axis, final=False)
    d.bounded[d.node(d.pick("Neg", "Floor"), found)] = [*shape[:axis], bound, *shape[axis + 1 :]]


@generates("Compress", weight=4)
def compress(d, op):
    opset = d.since(9)
    d.exact = True
    shape = d.shape(1, 4)
    axis = d.pick(None, d.axis(len(shape), negative=opset >= 11))
    extent = int(np.prod(shape)) if axis is None else shape[axis]
    length = d.integer(1, extent) if d.chance(0.4) else extent
    condition = _sparse(d, [length], np.bool_)
    data = d.values(shape, d.pick(np.float32, np.int64, np.bool_))
    mask = d.either(condition, 0.2)
    count = np.count_nonzero(condition) if mask in d.constants else length
    bound = list(shape)
    if axis is None:
        bound = [count]
    else:
        bound[axis] = count
    result = d.node(op, d.input(data), mask, axis=axis)
    d.declare_type(result, helper.np_dtype_to_tensor_dtype(data.dtype), len(bound))
    d.bounded[result] = bound
    if d.chance(0.4) and data.dtype == np.float32:
        # Elementwise, with a scalar and with itself: a product and a sum may be rounded once.
        d.exact = False
        twice = d.node("Mul", result, d.node("Abs", result, final=False), final=False)
        d.bounded[d.node("Add", twice, d.constant(np.float32(2)))] = bound


@generates("Unique", weight=5)
def unique(d, op):
    d.since(11)
    d.exact = True
    shape = d.shape(1, 3)
    axis = d.pick(None, d.axis(len(shape)))
    extent = int(np.prod(shape)) if axis is None else shape[axis]
    largest = d.pick(0, 1, 2, 9)
    values = d.values(shape, np.int32, 0, largest).astype(d.pick(np.float32, np.float32, np.int64, np.int8, np.float64))
    outputs = d.pick(1, 4, 4)
    names = d.node(op, d.input(values), outputs=outputs, axis=axis, sorted=d.pick(None, 0, 1))
    names = [names] if outputs == 1 else names
    bound = [extent] if axis is None else list(shape)
    for index, name in enumerate(names):
        d.bounded[name] = [extent] if index else bound
    for name in names[1:]:
        d.declare_type(name, TensorProto.INT64, 1)


@generates("NonMaxSuppression", weight=4)
def non_max_suppression(d, op):
    d.since(10)
    d.exact = True
    batches, classes, boxes = d.integer(1, 3), d.integer(1, 4), d.integer(1, 24)
    center = d.pick(None, 0, 1)
    # Multiples of 1/8, whose areas are exact; scores that are equal at times.
    corners = np.round(d.values([batches, boxes, 4], np.float32, 0, 6) * 8) / 8
    if center:
        corners[..., 2:] += 0.25
    scores = (np.round(d.values([batches, classes, boxes], np.float32, 0, 1) * 16) / 16).astype(np.float32)
    most = d.integer(0, boxes + 2)
    # No quotient of areas is near these.
    overlap, threshold = d.pick(0.0, 0.3003, 0.5009, 0.9007), d.pick(0.0, 0.3, 0.71)
    inputs = [d.either(corners.astype(np.float32), 0.2), d.input(scores)]
    extra = [
        d.either(np.array([most], np.int64), 0.7),
        d.either(np.array([overlap], np.float32), 0.7),
        d.either(np.array([threshold], np.float32), 0.7),
    ]
    number = d.pick(0, 1, 2, 3, 3, 3)
    result = d.node(op, *inputs, *extra[:number], center_point_box=center)
    d.declare_type(result, TensorProto.INT64, 2)
    limit = 0 if number == 0 else min(most, boxes) if extra[0] in d.constants else boxes
    d.bounded[result] = [batches * classes * limit, 3]
