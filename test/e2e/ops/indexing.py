# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that move elements by position, or sum them where they meet."""

import numpy as np

from .draft import generates

_TYPES = (np.float32, np.float32, np.int64, np.int32, np.bool_, np.uint8, np.float16, np.float64)


@generates("GatherND", weight=6)
def gather_nd(d, op):
    opset = d.since(11)
    d.exact = True
    shape = d.shape(1, 4)
    batch = d.integer(0, min(2, len(shape) - 1)) if opset >= 12 and d.chance(0.5) else 0
    depth = d.integer(1, len(shape) - batch)
    places = shape[:batch] + d.shape(0 if batch else 1, 2, 5)
    low = [-n if d.chance(0.5) else 0 for n in shape[batch : batch + depth]]
    indices = d.rng.integers(low, shape[batch : batch + depth], [*places, depth]).astype(np.int64)
    x = d.input(d.values(shape, d.pick(*_TYPES)))
    d.node(op, x, d.either(indices, 0.4), batch_dims=batch if batch or (opset >= 12 and d.chance(0.3)) else None)


@generates("GatherElements", weight=5)
def gather_elements(d, op):
    d.since(11)
    d.exact = True
    shape = d.shape(1, 4)
    axis = d.integer(0, len(shape) - 1)
    # Along all other dimensions there may be fewer indices than elements.
    places = [d.integer(1, 9) if dim == axis else d.integer(1, n) for dim, n in enumerate(shape)]
    low = -shape[axis] if d.chance(0.5) else 0
    indices = d.rng.integers(low, shape[axis], places).astype(d.pick(np.int64, np.int32))
    x = d.input(d.values(shape, d.pick(*_TYPES)))
    given = None if axis == 0 and d.chance(0.3) else axis - (len(shape) if d.chance(0.3) else 0)
    d.node(op, x, d.either(indices, 0.4), axis=given)


@generates("ReverseSequence", weight=4)
def reverse_sequence(d, op):
    d.since(10)
    d.exact = True
    shape = d.shape(2, 4)
    batch, time = d.pick((0, 1), (1, 0))
    lengths = d.rng.integers(1, shape[time] + 1, shape[batch]).astype(np.int64)
    axes = {} if batch and d.chance(0.5) else {"batch_axis": batch, "time_axis": time}
    d.node(op, d.input(d.values(shape, d.pick(*_TYPES))), d.either(lengths, 0.3), **axes)


@generates("TensorScatter", weight=4)
def tensor_scatter(d, op):
    d.opset = 24
    d.exact = True
    shape = d.shape(2, 4)
    axis = d.pick(len(shape) - 2, *range(1, len(shape))) or 1
    mode = d.pick(None, "linear", "circular")
    steps = d.integer(1, shape[axis])
    update = list(shape)
    update[axis] = steps
    last = shape[axis] if mode == "circular" else shape[axis] - steps + 1
    dtype = d.pick(*_TYPES)
    inputs = [d.input(d.values(shape, dtype)), d.either(d.values(update, dtype), 0.3)]
    if d.chance(0.8):
        inputs.append(d.either(d.rng.integers(0, last, shape[0]).astype(np.int64), 0.3))
    default = axis == len(shape) - 2 and d.chance(0.5)
    axis = None if default else axis - len(shape) if d.chance(0.4) else axis
    d.declare(d.node(op, *inputs, axis=axis, mode=mode), d.inputs["x0"])


@generates("Scatter")
def scatter(d, op):
    """The older name of ScatterElements."""
    d.since(9, 10)
    d.exact = True
    shape = d.shape(1, 4)
    axis = d.integer(0, len(shape) - 1)
    index_shape = [d.integer(1, n) for n in shape]
    indices = np.zeros(index_shape, np.int64)
    for at in np.ndindex(*[n for i, n in enumerate(index_shape) if i != axis]):
        line = (*at[:axis], slice(None), *at[axis:])
        indices[line] = d.rng.permutation(shape[axis])[: index_shape[axis]]
    dtype = d.pick(np.float32, np.int64)
    inputs = d.input(d.values(shape, dtype)), d.either(indices, 0.4), d.either(d.values(index_shape, dtype), 0.3)
    d.node(op, *inputs, axis=axis if axis or d.chance(0.5) else None)


def _pool(d, rank):
    """The attributes of a pool whose windows do not overlap, so that no position is that of two maxima."""
    kernel = [d.integer(1, 3) for _ in range(rank)]
    return {"kernel_shape": kernel, "strides": [k + d.integer(0, 1) for k in kernel]}


@generates("MaxUnpool", weight=4)
def max_unpool(d, op):
    d.since(11)
    d.exact = True
    rank = d.integer(1, 3)
    window = _pool(d, rank)
    grid = [d.integer(1, 5) for _ in range(rank)]
    room = [(n - 1) * s + k for n, s, k in zip(grid, window["strides"], window["kernel_shape"])]
    batch = [d.integer(1, 2), d.integer(1, 4)]
    if d.chance(0.5):  # After a pool of a tensor that may be larger than what follows from the windows.
        shape = [n + d.integer(0, s - 1) for n, s in zip(room, window["strides"])]
        values, indices = d.node("MaxPool", d.input(d.values(batch + shape)), outputs=2, final=False, **window)
        output = [d.ints(*batch, *shape)] if shape != room or d.chance(0.5) else []
        d.declare(d.node(op, values, indices, *output, **window), np.zeros(batch + shape, np.float32))
        return
    shape = batch + grid
    flat = d.rng.permutation(int(np.prod(batch + room)))[: int(np.prod(shape))].reshape(shape)
    dtype = d.pick(np.float32, np.float32, np.float64, np.float16)
    inputs = [d.input(d.values(shape, dtype)), d.either(flat.astype(np.int64), 0.3)]
    output = batch + room
    if d.chance(0.4):
        output = batch + [n + d.integer(0, 2) for n in room]
        inputs.append(d.ints(*output))
        # ONNX Runtime takes indices as those of the output.
        d.prefer_reference = True
    if d.chance(0.3):
        window["pads"] = [0] * (2 * rank)
    d.declare(d.node(op, *inputs, **window), np.zeros(output, dtype))


@generates("Col2Im", weight=5)
def col2im(d, op):
    d.since(18)
    rank = d.pick(1, 2, 2, 2, 3)
    image = [d.integer(1, 9) for _ in range(rank)]
    block = [d.integer(1, 3) for _ in range(rank)]
    strides = [d.integer(1, 3) for _ in range(rank)]
    dilations = [d.integer(1, 2) for _ in range(rank)]
    pads = [d.integer(0, 2) for _ in range(2 * rank)]
    grid = 1
    for i in range(rank):
        reach = (block[i] - 1) * dilations[i] + 1
        image[i] = max(image[i], reach)
        grid *= (image[i] + pads[i] + pads[i + rank] - reach) // strides[i] + 1
    attributes = {"strides": strides, "dilations": dilations, "pads": pads}
    defaults = {"strides": 1, "dilations": 1, "pads": 0}
    for name, default in defaults.items():
        if all(v == default for v in attributes[name]) and d.chance(0.5):
            del attributes[name]
    shape = [d.integer(1, 2), d.integer(1, 4) * int(np.prod(block)), grid]
    # ONNX Runtime has floats alone, and goes wrong where strides meet dilations, except in two dimensions.
    dtype = d.pick(np.float32, np.float32, np.int64, np.float64)
    d.prefer_reference = dtype != np.float32 or rank != 2
    d.exact = dtype == np.int64
    d.node(op, d.input(d.values(shape, dtype)), d.ints(*image), d.ints(*block), **attributes)


@generates("Det", weight=2)
def det(d, op):
    d.since(11)
    size = d.integer(1, 6)
    matrices = d.values([*d.shape(0, 2, 5), size, size], d.pick(np.float32, np.float32, np.float64))
    if size > 1 and d.chance(0.2):  # Singular: to be exact, of small whole numbers.
        matrices = np.round(matrices)
        matrices[..., 1, :] = 2 * matrices[..., 0, :]
    d.prefer_reference = matrices.dtype != np.float32
    d.node(op, d.input(matrices))


@generates("Trilu", weight=2)
def trilu(d, op):
    d.since(14)
    d.exact = True
    shape = d.shape(2, 4)
    k = [] if d.chance(0.4) else [d.constant(np.array(d.integer(-shape[-2] - 1, shape[-1] + 1), np.int64))]
    d.node(op, d.input(d.values(shape, d.pick(np.float32, np.int64, np.float64))), *k, upper=d.pick(None, 0, 1))


@generates("CenterCropPad", weight=2)
def center_crop_pad(d, op):
    d.since(18)
    d.exact = True
    shape = d.shape(1, 4)
    axes = None
    if d.chance(0.5):
        axes = d.rng.permutation(len(shape))[: d.integer(1, len(shape))].tolist()
    target = [d.integer(1, 2 * shape[a] + 1) for a in axes or range(len(shape))]
    axes = axes and [a - len(shape) if d.chance(0.3) else a for a in axes]
    d.node(op, d.input(d.values(shape, d.pick(np.float32, np.int64))), d.ints(*target), axes=axes)


@generates("AffineGrid", weight=2)
def affine_grid(d, op):
    d.since(20)
    rank = d.pick(2, 2, 3)
    batch = d.integer(1, 3)
    size = [batch, d.integer(1, 3), *(d.integer(2, 7) for _ in range(rank))]
    d.node(op, d.input(d.values([batch, rank, rank + 1])), d.ints(*size), align_corners=d.pick(None, 0, 1))


@generates("LpPool", weight=2)
def lp_pool(d, op):
    opset = d.since(11)
    rank = d.integer(1, 3)
    shape = [d.integer(1, 2), d.integer(1, 4), *(d.integer(3, 9) for _ in range(rank))]
    kernel = [d.integer(1, 3) for _ in range(rank)]
    attributes = {"strides": [d.integer(1, 3) for _ in range(rank)], "p": d.pick(None, 1, 2, 3)}
    if d.chance(0.6):
        attributes["pads"] = [d.integer(0, k - 1) for k in kernel * 2]
    if opset >= 18 and d.chance(0.5):
        attributes["dilations"] = [d.integer(1, 2) if k < 3 else 1 for k in kernel]
    d.node(op, d.input(d.values(shape)), kernel_shape=kernel, **attributes)
