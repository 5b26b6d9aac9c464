# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms, reductions, products and attention."""

import math

import numpy as np

from .elementwise import combine
from .movement import factors, random_slice, reshape
from .sketch import Reject, motif


def _some_axes(s, rank):
    return [a for a in range(rank) if s.chance(0.5)] or [s.integer(0, rank - 1)]


@motif(4)
def reduce(s):
    x = s.tensor(lambda v: v.ndim and v.size)
    rank = s.values[x].ndim
    op = s.pick("Sum", "Mean", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "LogSumExp", "Prod")
    axes = [a - rank * s.integer(0, 1) for a in _some_axes(s, rank)]
    keep = s.integer(0, 1)
    inputs = [x, s.ints(*axes)]
    if s.chance(0.1):
        inputs, keep = [x], s.integer(0, 1)
    if op == "Prod":
        x = inputs[0] = s.add("Tanh", x)
    y = s.add("Reduce" + op, *inputs, keepdims=keep)
    if keep and s.chance(0.6):
        combine(s, x, y)
    elif s.chance(0.3):
        s.add("Mul", y, s.number(s.pick(0.5, 3, -1), y))


@motif(3)
def softmax(s):
    x = s.tensor(lambda v: v.ndim and v.size)
    axis = s.integer(0, s.values[x].ndim - 1)
    if s.chance(0.7):
        s.add(s.pick("Softmax", "Softmax", "LogSoftmax"), x, axis=axis - s.values[x].ndim * s.integer(0, 1))
    else:
        e = s.add("Exp", s.add("Sub", x, s.add("ReduceMax", x, s.ints(axis), keepdims=1)))
        s.add("Div", e, s.add("ReduceSum", e, s.ints(axis), keepdims=1))


@motif(5)
def norm(s):
    x = s.tensor(lambda v: v.ndim >= 2 and v.size and v.dtype == np.float32)
    shape = s.shape(x)
    kind = s.pick("layer", "layer", "spelt", "rms", "instance", "group", "groups", "lp", "batch", "lrn")
    if kind == "layer":
        axis = s.integer(0, len(shape) - 1)
        inputs = [s.weights(shape[axis:], x) for _ in range(s.integer(1, 2))]
        s.add("LayerNormalization", x, *inputs, axis=axis - len(shape) * s.integer(0, 1), epsilon=1e-2)
    elif kind in ("spelt", "rms"):
        axes = s.ints(*_some_axes(s, len(shape)))
        deviation = x
        if kind == "spelt":
            deviation = s.add("Sub", x, s.add("ReduceMean", x, axes, keepdims=1))
        square = s.add("Mul", deviation, deviation) if s.chance(0.5) else s.add("Pow", deviation, s.number(2, x))
        variance = s.add("ReduceMean", square, axes, keepdims=1)
        root = s.add("Sqrt", s.add("Add", variance, s.number(1e-2, x)))
        y = s.add("Div", deviation, root) if s.chance(0.6) else s.add("Mul", deviation, s.add("Reciprocal", root))
        if s.chance(0.7):
            y = s.add("Mul", y, s.weights(shape[-1:], x))
        if s.chance(0.7):
            s.add("Add", y, s.weights(shape[-1:], x))
        if s.chance(0.1):
            s.add("Add", s.add("Neg", variance), s.number(1, x))
    elif kind == "instance":
        s.add("InstanceNormalization", x, *(s.weights(shape[1:2], x) for _ in range(2)), epsilon=1e-2)
    elif kind == "group":
        if s.opset < 21:
            raise Reject
        groups = s.pick(*factors(shape[1]))
        s.add("GroupNormalization", x, *(s.weights(shape[1:2], x) for _ in range(2)),
              num_groups=groups, epsilon=1e-2)  # fmt: skip
    elif kind == "groups":
        _group_norm(s, x)
    elif kind == "lp":
        if s.chance(0.5):
            positive = s.add("Add", s.add("Abs", x), s.number(0.1, x))
            s.add("LpNormalization", positive, axis=s.integer(0, len(shape) - 1), p=2)
        else:
            length = s.add("ReduceL2", x, s.ints(s.integer(0, len(shape) - 1)), keepdims=1)
            s.add("Div", x, s.add("Max", length, s.number(0.1, x)))
    elif kind == "batch":
        s.add("BatchNormalization", x, *(s.weights(shape[1:2], x, 0.3, 2) for _ in range(4)))
    else:
        s.add("LRN", x, size=s.pick(1, 3, 5))


def _group_norm(s, x):
    """A group norm as exporters write it."""
    shape = s.shape(x)
    if len(shape) < 3:
        raise Reject
    groups = s.pick(*factors(shape[1]))
    y = reshape(s, x, [0, groups, -1])
    ones = [s.constant(np.full([groups], value, np.float32)) for value in (1, 0)]
    y = reshape(s, s.add("InstanceNormalization", y, *ones, epsilon=1e-2), shape)
    column = [shape[1]] + [1] * (len(shape) - 2)
    s.add("Add", s.add("Mul", y, s.weights(column, x)), s.weights(column, x))


@motif(4)
def matmul(s):
    x = s.tensor(lambda v: v.ndim >= 2 and v.size)
    shape = s.shape(x)
    kind = s.pick("right", "right", "left", "self", "gemm", "batched", "vector")
    scale = 1 / math.sqrt(shape[-1])
    if kind == "right":
        y = s.add("MatMul", x, s.weights([shape[-1], s.integer(1, 7)], x, -scale, scale))
        if s.chance(0.6):
            y = s.add("Add", y, s.weights(s.shape(y)[-1:], y))
        if s.chance(0.3):
            s.add(s.pick("Mul", "Div"), y, s.weights(s.pick([], s.shape(y)[-1:]), y, 0.5, 2))
    elif kind == "left":
        s.add("MatMul", s.weights([s.integer(1, 5), shape[-2]], x), x)
    elif kind == "self":
        order = list(range(len(shape)))
        order[-2:] = order[:-3:-1]
        other = s.add("Transpose", x, perm=order)
        y = s.add("MatMul", *s.pick((x, other), (other, x)))
        s.add("Mul", y, s.number(scale, x))
    elif kind == "gemm":
        if len(shape) != 2:
            raise Reject
        transposes = s.integer(0, 1)
        n = s.integer(1, 6)
        weights = s.weights([n, shape[0 if transposes else 1]], x, -scale, scale)
        inputs = [x, weights]
        if s.chance(0.6):
            inputs.append(s.weights(s.pick([], [n], [1, n]), x))
        s.add("Gemm", *inputs, transA=transposes, transB=1, alpha=s.pick(1.0, 0.5), beta=s.pick(1.0, 2.0))
    elif kind == "vector":
        s.add("MatMul", x, s.weights([shape[-1]], x, -scale, scale))
    else:
        y = s.tensor(lambda v: v.ndim >= 2 and v.shape[-2] == shape[-1] and v.dtype == s.values[x].dtype
                     and (v.ndim == 2 or list(v.shape[:-2]) == shape[:-2]))  # fmt: skip
        s.add("Mul", s.add("MatMul", x, y), s.number(scale, x))


@motif(5)
def linear(s):
    """Sums, and what a partial sum may pass through before it is reduced."""
    x = s.tensor(lambda v: v.ndim >= 2 and v.size)
    for _ in range(s.integer(2, 5)):
        shape = s.shape(x)
        kind = s.pick("sum", "mean", "weights", "scale", "slice", "transpose", "negate", "square", "twice")
        axis = s.integer(0, len(shape) - 1)
        if kind in ("sum", "mean"):
            x = s.add("Reduce" + kind.capitalize(), x, s.ints(*_some_axes(s, len(shape))), keepdims=1)
        elif kind == "weights":
            x = s.add("MatMul", x, s.weights([shape[-1], s.integer(1, 9)], x, -0.5, 0.5))
        elif kind == "scale":
            factor = s.weights([1 if s.chance(0.5) else n for n in shape], x, 0.3, 1.5)
            x = s.add(s.pick("Mul", "Div"), x, factor)
        elif kind == "slice":
            x = random_slice(s, x, [axis])
        elif kind == "transpose":
            x = s.add("Transpose", x, perm=[int(i) for i in s.rng.permutation(len(shape))])
        elif kind == "negate":
            x = s.add("Neg", x)
        elif kind == "square":
            x = s.add("Mul", x, s.pick(x, s.add("Neg", x)))
        else:
            x = s.add("Add", x, s.pick(x, s.add("Neg", s.add("Mul", x, s.number(0.5, x)))))


@motif(3)
def attention(s):
    """Self-attention with heads, spelt out."""
    x = s.tensor(lambda v: v.ndim == 3 and v.size and v.dtype == np.float32)
    batch, length, width = s.shape(x)
    heads, size = s.pick(1, 2, 3), s.pick(1, 2, 4)

    def project(perm):
        scale = 1 / math.sqrt(width)
        y = s.add("MatMul", x, s.weights([width, heads * size], x, -scale, scale))
        return s.add("Transpose", reshape(s, y, [batch, -1, heads, size]), perm=perm)

    query, key, value = project([0, 2, 1, 3]), project([0, 2, 3, 1]), project([0, 2, 1, 3])
    scores = s.add("MatMul", query, key)
    scores = s.add(s.pick("Mul", "Div"), scores, s.number(s.pick(0.5, 1.5), x))
    if s.chance(0.4):
        mask = np.triu(np.full([length, length], -100, np.float32), 1)
        scores = s.add("Add", scores, s.constant(mask))
    y = s.add("MatMul", s.add("Softmax", scores, axis=-1), value)
    y = reshape(s, s.add("Transpose", y, perm=[0, 2, 1, 3]), [0, 0, heads * size])
    y = s.add("MatMul", y, s.weights([heads * size, width], x))
    if s.chance(0.7):
        s.add("Add", x, y)


@motif(1)
def tokens(s):
    """An image as a sequence of its pixels."""
    x = s.tensor(lambda v: v.ndim == 4 and v.size)
    n, c, *_ = s.shape(x)
    s.add("Transpose", reshape(s, x, [n, c, -1]), perm=[0, 2, 1])
