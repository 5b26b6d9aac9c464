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


@generates("TopK", weight=5)
def top_k(d, op):
    opset = d.since(7)
    d.exact = True
    shape = d.shape(1, 4)
    axis = d.axis(len(shape), negative=opset >= 11)
    # Whole numbers, so that some are equal.
    dtypes = [np.float32, np.float32, np.float64, np.int64, np.int32]
    # ONNX Runtime has fewer types than ONNX.
    narrow = [np.float16, np.uint8, np.uint32, np.int16]
    dtype = d.pick(*dtypes, *narrow) if opset >= 11 else np.float32
    d.prefer_reference = dtype in narrow
    values = d.values(shape, np.int32, -6 if np.dtype(dtype).kind != "u" else 0, 6).astype(dtype)
    k = d.integer(1, shape[axis])
    inputs = [d.input(values)]
    attributes = {"axis": axis}
    if opset < 10:
        attributes["k"] = k
    else:
        inputs.append(d.ints(k))
    if opset >= 11:
        attributes["largest"] = d.pick(None, 0, 1)
    d.node(op, *inputs, outputs=2, **attributes)


def _scatter_reduction(d, opset):
    """A reduction that `opset` has; ONNX Runtime adds and multiplies duplicates in order."""
    names = [None, None] if opset < 16 else [None, "none", "add", "mul"]
    return d.pick(*(names + ["max", "min"] if opset >= 18 else names))


def _scattered_to(d, data):
    """The data as an input, which the updates must not change, or as what is computed, which they may."""
    if data.dtype != np.float32 or d.chance(0.5):
        return d.input(data)
    return d.node("Neg", d.input(data), final=d.chance(0.3))


@generates("ScatterElements", weight=5)
def scatter_elements(d, op):
    opset = d.since(11)
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    index_shape = [d.integer(1, n) for n in shape]
    reduction = _scatter_reduction(d, opset)
    d.exact = reduction not in ("add", "mul")
    if reduction in (None, "none"):
        # Without a reduction, no place may be written twice.
        places = [d.rng.permutation(shape[axis]) for _ in range(int(np.prod(index_shape)))]
        indices = np.zeros(index_shape, np.int64)
        for at in np.ndindex(*index_shape):
            line = list(at)
            line[axis] = 0
            indices[at] = places[np.ravel_multi_index(line, index_shape)][at[axis]]
    else:
        indices = d.rng.integers(0, shape[axis], index_shape)
    if d.chance(0.3):
        indices = indices - shape[axis] * d.rng.integers(0, 2, index_shape)
    dtype = np.float32 if reduction not in (None, "none") else d.pick(np.float32, np.int64, np.bool_)
    data, updates = d.values(shape, dtype), d.values(index_shape, dtype)
    indices = indices.astype(d.pick(np.int64, np.int64, np.int32))
    data = _scattered_to(d, data)
    d.node(op, data, d.either(indices, 0.4), d.either(updates, 0.3), axis=axis, reduction=reduction)


@generates("ScatterND", weight=5)
def scatter_nd(d, op):
    opset = d.since(11)
    shape = d.shape(1, 4)
    depth = d.integer(1, len(shape))
    places = int(np.prod(shape[:depth]))
    reduction = _scatter_reduction(d, opset)
    d.exact = reduction not in ("add", "mul")
    count = d.integer(1, min(places, 6))
    unique = reduction in (None, "none")
    flat = d.rng.choice(places, count, replace=not unique)
    indices = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
    if d.chance(0.3):
        indices -= np.array(shape[:depth]) * d.rng.integers(0, 2, indices.shape)
    if d.chance(0.3):
        indices = indices[:, None]
    dtype = np.float32 if not unique else d.pick(np.float32, np.int64, np.bool_)
    updates = d.values(list(indices.shape[:-1]) + list(shape[depth:]), dtype)
    data = _scattered_to(d, d.values(shape, dtype))
    d.node(op, data, d.either(indices, 0.4), d.either(updates, 0.3), reduction=reduction)
