# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that move, copy or create elements. All are exact."""

import numpy as np

from .draft import generates

_TYPES = (np.float32, np.float32, np.float32, np.int64, np.int32, np.bool_, np.uint8)


@generates("Concat", weight=6)
def concat(d, op):
    opset = d.since(7)
    d.exact = True
    shape = d.shape(1, 4)
    axis = d.axis(len(shape), negative=opset >= 11)
    dtype = d.pick(*_TYPES)
    names = []
    for index in range(d.integer(1, 4)):
        part = list(shape)
        part[axis] = d.integer(1, 9)
        values = d.values(part, dtype)
        names.append(d.input(values) if index == 0 else d.either(values, 0.2))
    d.node(op, *(names[i] for i in d.rng.permutation(len(names))), axis=axis)


@generates("Split", weight=5)
def split(d, op):
    opset = d.since(7)
    d.exact = True
    shape = d.shape(1, 4)
    axis = d.axis(len(shape), negative=opset >= 11)
    count = d.integer(1, 4)
    shape[axis] = count * d.integer(1, 5)
    x_input = []
    attributes = {"axis": axis}
    if d.chance(0.5):  # Stated parts, uneven.
        shape[axis] += d.integer(0, 5)
        cuts = np.sort(d.rng.choice(np.arange(1, shape[axis]), count - 1, replace=False))
        parts = np.diff([0, *cuts, shape[axis]]).tolist()
        if opset >= 13:
            x_input = [d.ints(*parts)]
        else:
            attributes["split"] = parts
    elif opset >= 18:
        attributes["num_outputs"] = count
        if count > 1 and d.chance(0.5):  # The last part may be smaller.
            chunk = -(-shape[axis] // count)
            shape[axis] = chunk * (count - 1) + d.integer(1, chunk)
    d.node(op, d.input(d.values(shape, d.pick(*_TYPES))), *x_input, outputs=count, **attributes)


@generates("Slice", weight=9)
def slice_(d, op):
    opset = d.since(7)
    d.exact = True
    shape = d.shape(1, 4)
    if d.chance(0.5):
        shape[0] += 12
    chosen = d.rng.permutation(len(shape))[: d.integer(1, len(shape))].tolist()
    starts, ends, axes, steps = [], [], [], []
    for axis in chosen:
        n = shape[axis]
        lo = d.integer(0, n - 1)
        hi = d.integer(lo + 1, n)
        step = d.pick(1, 1, 1, 2, 3, -1, -2) if opset >= 10 else 1
        if step > 0:
            begin, end = lo, hi
            if d.chance(0.3):
                begin -= n
            end = d.pick(end, end - n if end < n else n + 5, 2**63 - 1 if opset >= 10 else 1000)
        else:
            begin = d.pick(hi - 1, hi - 1 - n, 2**62)
            end = d.pick(lo - 1, -(2**63)) if lo else d.pick(-n - 1, -(2**63) + 1)
        starts.append(begin)
        ends.append(end)
        steps.append(step)
        axes.append(axis - len(shape) if opset >= 10 and d.chance(0.3) else axis)
    values = d.values(shape, d.pick(*_TYPES))
    x = d.input(values)
    leading = sorted(chosen) == list(range(len(chosen))) and chosen == sorted(chosen)
    if opset < 10:
        window = [slice(None)] * len(shape)
        for axis, start, end in zip(axes, starts, ends):
            window[axis] = slice(start, end)
        axes = None if leading and d.chance(0.5) else axes
        d.declare(d.node(op, x, starts=starts, ends=ends, axes=axes), like=values[tuple(window)])
        return
    inputs = [x, d.ints(*starts), d.ints(*ends)]
    if not leading or any(s != 1 for s in steps) or d.chance(0.5):
        inputs.append(d.ints(*axes))
        if any(s != 1 for s in steps) or d.chance(0.5):
            inputs.append(d.ints(*steps))
    d.node(op, *inputs)


@generates("Pad", weight=10)
def pad(d, op):
    opset = d.since(7)
    d.exact = True
    modes = ["constant", "constant", "reflect", "edge"] + (["wrap"] if opset >= 19 else [])
    mode = d.pick(*modes)
    shape = d.shape(1, 4)
    rank = len(shape)

    def width(n):
        if d.chance(0.3):
            return 0
        if mode == "constant":
            return d.integer(-((n - 1) // 2), 6)
        return d.integer(0, {"reflect": n - 1, "wrap": n, "edge": 6}[mode])

    begins, ends = [width(n) for n in shape], [width(n) for n in shape]
    fill = d.pick(None, 1.5, -2.0) if mode == "constant" else None
    mode_attribute = None if mode == "constant" and d.chance(0.3) else mode
    if opset < 11:
        x = d.input(d.values(shape))
        d.node(op, x, pads=begins + ends, mode=mode_attribute, value=fill)
        return
    dtype = d.pick(np.float32, np.float32, np.int32, np.int64)
    inputs = [d.input(d.values(shape, dtype))]
    axes = None
    if opset >= 18 and d.chance(0.4):
        axes = d.rng.permutation(rank)[: d.integer(1, rank)].tolist()
        begins, ends = [begins[a] for a in axes], [ends[a] for a in axes]
        axes = [a - rank if d.chance(0.3) else a for a in axes]
    inputs.append(d.ints(*begins, *ends))
    if fill is not None:
        inputs.append(d.constant(np.array(fill, dtype)))
    if axes is not None:
        inputs += [""] * (3 - len(inputs)) + [d.ints(*axes)]
    d.node(op, *inputs, mode=mode_attribute)


def _regroup(d, shape):
    """Another shape of as many elements: neighbours merged, extents factored, ones added."""
    result = list(shape)
    for _ in range(d.integer(1, 3)):
        move = d.integer(0, 2)
        if move == 0 and len(result) > 1:
            i = d.integer(0, len(result) - 2)
            result[i : i + 2] = [result[i] * result[i + 1]]
        elif move == 1:
            i = d.integer(0, len(result) - 1)
            factors = [f for f in range(1, result[i] + 1) if result[i] % f == 0]
            f = d.pick(*factors)
            result[i : i + 1] = [f, result[i] // f]
        elif len(result) < 5:
            result.insert(d.integer(0, len(result)), 1)
    return result


@generates("Reshape", weight=9)
def reshape(d, op):
    opset = d.since(7)
    d.exact = True
    shape = d.shape(1, 4, 8)
    if d.chance(0.2):
        shape[-1] = d.pick(12, 16, 24)
    target = _regroup(d, shape)
    if d.chance(0.1):
        target = [int(np.prod(shape))]
    spec = list(target)
    for i in range(min(len(spec), len(shape))):
        if spec[i] == shape[i] and d.chance(0.4):
            spec[i] = 0
    if d.chance(0.5):
        spec[d.rng.integers(len(spec))] = -1
    allow_zero = d.pick(None, 0, 1) if opset >= 14 else None
    if allow_zero:
        spec = [t if s == 0 else s for s, t in zip(spec, target)]
    x = d.input(d.values(shape, d.pick(*_TYPES)))
    d.node(op, x, d.ints(*spec), allowzero=allow_zero)


@generates("Flatten", weight=3)
def flatten(d, op):
    opset = d.since(9)
    d.exact = True
    shape = d.shape(1, 4)
    axis = d.integer(-len(shape) if opset >= 11 else 0, len(shape))
    x = d.input(d.values(shape, d.pick(*_TYPES)))
    d.node(op, x, axis=None if axis == 1 and d.chance(0.5) else axis)


@generates("Squeeze", weight=2)
def squeeze(d, op):
    opset = d.since(7)
    d.exact = True
    shape = [1 if d.chance(0.4) else n for n in d.shape(1, 5)]
    shape[d.rng.integers(len(shape))] = 1
    ones = [i for i, n in enumerate(shape) if n == 1]
    axes = d.rng.permutation(ones)[: d.integer(1, len(ones))].tolist()
    axes = [a - len(shape) if opset >= 11 and d.chance(0.3) else a for a in axes]
    x = d.input(d.values(shape, d.pick(*_TYPES)))
    if d.chance(0.2):
        d.node(op, x)
    elif opset >= 13:
        d.node(op, x, d.ints(*axes))
    else:
        d.node(op, x, axes=axes)


@generates("Unsqueeze", weight=2)
def unsqueeze(d, op):
    opset = d.since(7)
    d.exact = True
    shape = d.shape(1, 3)
    rank = len(shape) + d.integer(1, 2)
    axes = d.rng.permutation(rank)[: rank - len(shape)].tolist()
    axes = [a - rank if opset >= 11 and d.chance(0.3) else a for a in axes]
    x = d.input(d.values(shape, d.pick(*_TYPES)))
    if opset >= 13:
        d.node(op, x, d.ints(*axes))
    else:
        d.node(op, x, axes=axes)


@generates("Transpose", weight=4)
def transpose(d, op):
    d.since(7)
    d.exact = True
    shape = d.shape(1, 5, 7)
    perm = d.rng.permutation(len(shape)).tolist() if d.chance(0.85) else None
    d.node(op, d.input(d.values(shape, d.pick(*_TYPES))), perm=perm)


@generates("Expand", weight=3)
def expand(d, op):
    d.since(8)
    d.exact = True
    full = d.shape(1, 4)
    shape = [1 if d.chance(0.4) else n for n in full]
    shape = shape[d.integer(0, len(shape) - 1) if d.chance(0.3) else 0 :]
    target = [1 if n == m and d.chance(0.3) else n for n, m in zip(full[-len(shape) :], shape)]
    target = full[: len(full) - len(shape)] + target
    d.node(op, d.input(d.values(shape, d.pick(*_TYPES))), d.ints(*target))


@generates("DepthToSpace", weight=4)
def depth_to_space(d, op):
    opset = d.since(7)
    d.exact = True
    block = d.pick(1, 2, 2, 3)
    shape = [d.integer(1, 2), block**2 * d.integer(1, 3), d.integer(1, 8), d.integer(1, 8)]
    mode = d.pick(None, "DCR", "CRD") if opset >= 11 else None
    d.node(op, d.input(d.values(shape)), blocksize=block, mode=mode)


@generates("SpaceToDepth", weight=3)
def space_to_depth(d, op):
    d.since(7)
    d.exact = True
    block = d.pick(1, 2, 2, 3)
    shape = [d.integer(1, 2), d.integer(1, 4), block * d.integer(1, 6), block * d.integer(1, 6)]
    d.node(op, d.input(d.values(shape)), blocksize=block)


@generates("Gather", weight=6)
def gather(d, op):
    opset = d.since(7)
    d.exact = True
    shape = d.shape(1, 4)
    axis = d.axis(len(shape), negative=opset >= 11)
    n = shape[axis]
    indices = d.rng.integers(-n if opset >= 11 else 0, n, d.shape(0, 2, 6))
    dtype = d.pick(np.int64, np.int64, np.int32)
    x = d.input(d.values(shape, d.pick(*_TYPES)))
    d.node(op, x, d.either(indices.astype(dtype), 0.5), axis=axis if axis or d.chance(0.5) else None)


@generates("Identity")
def identity(d, op):
    d.since(7)
    d.exact = True
    d.node(op, d.input(d.values(d.shape(0, 5), d.pick(*_TYPES))))


@generates("Dropout")
def dropout(d, op):
    opset = d.since(7)
    d.exact = True
    x = d.input(d.values(d.shape(1, 4)))
    if opset < 12:
        d.node(op, x, ratio=d.pick(None, 0.3))
        return
    ratio = d.pick(None, np.array(0.3, np.float32))
    d.node(op, x, *([] if ratio is None else [d.constant(ratio)]))


@generates("Shape")
def shape_of(d, op):
    """The shape of an input is a constant, and scales that input."""
    opset = d.since(7)
    d.exact = True
    x = d.input(d.values(d.shape(1, 4), np.int64))
    bounds = {}
    if opset >= 15:
        bounds = {"start": d.pick(None, -1, 0), "end": d.pick(None, 2, 9)}
    shape = d.node(op, x, final=not bounds and d.chance(0.5), **bounds)
    if shape not in d.outputs:
        if opset >= 13:
            total = d.node("ReduceSum", shape, keepdims=0, final=False)
        else:
            total = d.node("ReduceSum", shape, axes=[0], keepdims=0, final=False)
        d.node("Mul", x, total)


@generates("Constant")
def constant(d, op):
    from onnx import numpy_helper

    opset = d.since(7)
    d.exact = True
    shape = d.shape(1, 4)
    x = d.input(d.values(shape, low=0, high=0))
    forms = ["value"]
    if opset >= 12:
        forms += ["value_float", "value_floats"]
    form = d.pick(*forms)
    if form == "value":
        value = numpy_helper.from_array(d.values(shape))
    elif form == "value_float":
        value = 1.5
    else:
        value = d.values(shape[-1]).tolist()
    d.node("Add", x, d.node(op, final=False, **{form: value}))


@generates("ConstantOfShape")
def constant_of_shape(d, op):
    from onnx import numpy_helper

    d.since(9)
    d.exact = True
    shape = d.shape(1, 4)
    x = d.input(d.values(shape))
    value = d.pick(None, numpy_helper.from_array(np.array([2.5], np.float32)))
    d.node("Add", x, d.node(op, d.ints(*shape), final=False, value=value))


@generates("Range", weight=3)
def range_(d, op):
    """Positions along a split dimension: its element must know where its shard begins."""
    d.since(11)
    dtype = d.pick(np.int64, np.float32)
    n, start, step = d.integer(1, 30), d.pick(0, 3, -5), d.pick(1, 2, -3)
    if dtype == np.float32:
        step *= 0.5
    bounds = [np.array(v, dtype) for v in (start, start + n * step, step)]
    positions = d.node(op, *(d.constant(b) for b in bounds), final=False)
    x = d.input(d.values([*d.shape(0, 2), n], dtype))
    d.node("Add", x, positions)
