# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that move elements."""

import math

import numpy as np

from .sketch import Reject, motif


def _rank_of(least):
    return lambda value: value.ndim >= least


def reshape(s, x, shape):
    return s.add("Reshape", x, s.ints(*shape))


@motif(3)
def merge(s):
    x = s.tensor(_rank_of(2))
    shape = s.shape(x)
    first = s.integer(0, len(shape) - 2)
    last = s.integer(first + 2, len(shape))
    reshape(s, x, [*shape[:first], -1 if math.prod(shape) else math.prod(shape[first:last]), *shape[last:]])


def factors(n):
    return [i for i in range(1, n + 1) if n % i == 0]


@motif(3)
def split_dim(s):
    x = s.tensor(lambda v: 1 <= v.ndim < 6 and v.size)
    shape = s.shape(x)
    dim = s.integer(0, len(shape) - 1)
    factor = s.pick(*factors(shape[dim]))
    reshape(s, x, [*shape[:dim], factor, shape[dim] // factor, *shape[dim + 1 :]])


@motif(2)
def any_reshape(s):
    x = s.tensor(lambda v: v.size)
    rest, shape = math.prod(s.shape(x)), []
    for _ in range(s.integer(0, 3)):
        shape.append(s.pick(*factors(rest)))
        rest //= shape[-1]
    reshape(s, x, [*shape, -1])


@motif(1)
def flatten(s):
    x = s.tensor()
    s.add("Flatten", x, axis=s.integer(0, s.values[x].ndim))


@motif(3)
def transpose(s):
    x = s.tensor(_rank_of(2))
    s.add("Transpose", x, perm=[int(i) for i in s.rng.permutation(s.values[x].ndim)])


@motif(1)
def unsqueeze(s):
    x = s.tensor(lambda v: v.ndim < 5)
    s.add("Unsqueeze", x, s.ints(s.integer(0, s.values[x].ndim)))


@motif(1)
def squeeze(s):
    x = s.tensor(lambda v: 1 in v.shape)
    s.add("Squeeze", x, *([s.ints(s.shape(x).index(1))] if s.chance(0.7) else []))


@motif(1)
def repeat(s):
    x = s.tensor(_rank_of(1))
    shape = s.shape(x)
    if s.chance(0.5):
        s.add("Expand", x, s.ints(*(s.integer(2, 4) if n == 1 and s.chance(0.7) else n for n in shape)))
    else:
        s.add("Tile", x, s.ints(*(s.pick(1, 1, 2, 3) for _ in shape)))


def random_slice(s, x, axes=None, backwards=True):
    shape = s.shape(x)
    axes = axes or [a for a in range(len(shape)) if s.chance(0.5)] or [s.integer(0, len(shape) - 1)]
    starts, ends, steps = [], [], []
    for axis in axes:
        extent = shape[axis]
        a, b = sorted((s.integer(0, extent), s.integer(0, extent)))
        if a == b:
            a, b = 0, extent
        step = s.pick(1, 1, 1, 2, 3)
        if backwards and s.chance(0.15):
            starts.append(b - 1 - extent)
            ends.append(a - 1 - extent if a else -(2**62))
            steps.append(-step)
        else:
            starts.append(a if s.chance(0.7) else a - extent)
            ends.append(b if b < extent else s.pick(b, 2**62))
            steps.append(step)
    return s.add("Slice", x, s.ints(*starts), s.ints(*ends), s.ints(*axes), s.ints(*steps))


@motif(3)
def part(s):
    random_slice(s, s.tensor(_rank_of(1)))


@motif(3)
def concat(s):
    x = s.tensor(_rank_of(1))
    like = s.values[x]
    axis = s.integer(0, like.ndim - 1)
    parts = [x]
    for _ in range(s.integer(1, 3)):
        y = s.tensor(
            lambda v: v.dtype == like.dtype
            and v.ndim == like.ndim
            and all(d == axis or m == n for d, (m, n) in enumerate(zip(v.shape, like.shape)))
        )
        if y == x and s.chance(0.5):
            y = random_slice(s, x, [axis])
        parts.append(y)
    if s.chance(0.2):
        shape = list(like.shape)
        shape[axis] = s.integer(1, 3)
        parts.append(s.weights(shape, x))
    s.add("Concat", *(parts[i] for i in s.rng.permutation(len(parts))), axis=axis - like.ndim * s.integer(0, 1))


@motif(2)
def split(s):
    x = s.tensor(lambda v: v.ndim and max(v.shape) > 1)
    shape = s.shape(x)
    axis = s.pick(*(d for d, n in enumerate(shape) if n > 1))
    cut = s.integer(1, shape[axis] - 1)
    parts = s.add("Split", x, s.ints(cut, shape[axis] - cut), axis=axis, outputs=2)
    if s.chance(0.4):  # Gated, as in GLU.
        if 2 * cut != shape[axis]:
            raise Reject
        s.add("Mul", parts[0], s.add("Sigmoid", parts[1]))
    elif s.chance(0.3):
        s.add("Concat", *parts[::-1], axis=axis)


@motif(2)
def gather(s):
    x = s.tensor(lambda v: v.ndim and v.size)
    axis = s.integer(0, s.values[x].ndim - 1)
    extent = s.shape(x)[axis]
    shape = s.pick([], [s.integer(1, 5)], [s.integer(1, 3), s.integer(1, 3)])
    if s.chance(0.3):
        index = np.array(s.pick(0, -1, extent // 2, extent - 1), np.int64)
    elif s.chance(0.3):
        index = np.arange(s.integer(0, extent - 1), extent, s.pick(1, 2))
    else:
        index = s.rng.integers(-extent, extent, shape)
    s.add("Gather", x, s.constant(np.asarray(index, np.int64)), axis=axis)


@motif(3)
def pad(s):
    x = s.tensor(lambda v: v.ndim and v.size)
    shape = s.shape(x)
    mode = s.pick("constant", "constant", "reflect", "edge", "wrap" if s.opset >= 19 else "edge")
    low, high = [0] * len(shape), [0] * len(shape)
    for dim, extent in enumerate(shape):
        if s.chance(0.5):
            least = -1 if extent > 3 and s.chance(0.3) and mode == "constant" else 0
            most = 3 if mode in ("constant", "edge") else min(3, extent - 1)
            low[dim], high[dim] = s.integer(least, most), s.integer(least, most)
    inputs = [x, s.ints(*low, *high)]
    if mode == "constant" and s.chance(0.5):
        inputs.append(s.scalar(s.pick(0, 1, -0.5), x))
    s.add("Pad", *inputs, mode=mode)


@motif(2)
def circular(s):
    """A circular pad, or a roll, as exporters write them."""
    x = s.tensor(lambda v: v.ndim and max(v.shape) > 3)
    shape = s.shape(x)
    axis = s.pick(*(d for d, n in enumerate(shape) if n > 3))
    a, b = s.integer(1, 2), s.integer(1, 2)
    take = lambda lo, hi: s.add("Slice", x, s.ints(lo), s.ints(hi), s.ints(axis))  # noqa: E731
    if s.chance(0.3):
        s.add("Concat", take(a, 2**62), take(0, a), axis=axis)
    else:
        s.add("Concat", take(-a, 2**62), x, take(0, b), axis=axis)


@motif(2)
def shuffle(s):
    """Pixels to channels and back, as operators or spelt out."""
    x = s.tensor(lambda v: v.ndim == 4 and v.size)
    n, c, h, w = s.shape(x)
    kind = s.pick("depth", "space", "windows", "channels", "spelt")
    block = s.pick(2, 3)
    if kind == "depth":
        s.add("DepthToSpace", x, blocksize=block, mode=s.pick("DCR", "CRD"))
    elif kind == "space":
        s.add("SpaceToDepth", x, blocksize=block)
    elif kind == "windows":
        if h % block or w % block:
            raise Reject
        parts = reshape(s, x, [n, c, h // block, block, w // block, block])
        parts = s.add("Transpose", parts, perm=[0, 2, 4, 3, 5, 1])
        reshape(s, parts, [-1, block * block, c])
    elif kind == "channels":
        if c % 2:
            raise Reject
        parts = s.add("Transpose", reshape(s, x, [n, 2, c // 2, h, w]), perm=[0, 2, 1, 3, 4])
        reshape(s, parts, [n, c, h, w])
    else:
        if c % 4:
            raise Reject
        parts = reshape(s, x, [n, c // 4, 2, 2, h, w])
        reshape(s, s.add("Transpose", parts, perm=[0, 1, 4, 2, 5, 3]), [n, c // 4, 2 * h, 2 * w])


@motif(2)
def resize(s):
    x = s.tensor(lambda v: v.ndim in (3, 4, 5) and v.size)
    shape = s.shape(x)
    mode = s.pick("nearest", "linear", "cubic") if len(shape) == 4 else s.pick("nearest", "linear")
    coordinates = s.pick("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    if s.chance(0.6):
        scales = np.array([1, 1] + [s.pick(1, 2, 2, 1.5, 0.5) for _ in shape[2:]], np.float32)
        inputs = [x, "", s.constant(scales)]
    else:
        inputs = [x, "", "", s.ints(*shape[:2], *(s.integer(1, 2 * n + 1) for n in shape[2:]))]
    nearest = s.pick("round_prefer_floor", "floor", "ceil", "round_prefer_ceil") if mode == "nearest" else None
    s.add("Resize", *inputs, mode=mode, coordinate_transformation_mode=coordinates, nearest_mode=nearest)


@motif(1)
def triangle(s):
    x = s.tensor(_rank_of(2))
    diagonal = [s.constant(np.array(s.integer(-2, 2), np.int64))] if s.chance(0.5) else []
    s.add("Trilu", x, *diagonal, upper=s.integer(0, 1))


@motif(1)
def computed_shape(s):
    """A reshape whose target is computed from the shape, as exporters leave it."""
    x = s.tensor(_rank_of(2))
    first = s.add("Gather", s.add("Shape", x), s.ints(0), axis=0)
    s.add("Reshape", x, s.add("Concat", first, s.ints(-1), axis=0))
