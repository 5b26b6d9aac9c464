# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operators, alone and as exporters spell activations."""

import numpy as np
from onnx import TensorProto

from .sketch import Reject, motif

_UNARY = (
    "Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Erf", "Softplus", "Softsign", "Sin", "Cos", "Elu", "LeakyRelu", "Selu",
    "HardSigmoid", "HardSwish", "Celu", "Atan", "Identity", "Mish", "Gelu",
)  # fmt: skip


@motif(4)
def unary(s):
    s.add(s.pick(*_UNARY), s.tensor())


@motif(1)
def step(s):
    x = s.tensor()
    if x not in s.exact:
        raise Reject
    s.add(s.pick("Floor", "Ceil", "Round", "Sign"), x)


@motif(1)
def bounded(s):
    """Functions with poles, kept away from them."""
    x = s.tensor()
    kind = s.pick("Sqrt", "Log", "Reciprocal", "Exp", "Pow")
    if kind == "Exp":
        x = s.add("Clip", x, s.scalar(-4, x), s.scalar(2, x))
    else:
        x = s.add("Add", s.add("Abs", x), s.number(0.7, x))
    if kind == "Pow":
        s.add("Pow", x, s.number(s.pick(2, 0.5, 3, -1, 1.5, -0.5), x))
    else:
        s.add(kind, x)


def broadcast_shape(s, shape):
    """A shape that broadcasts to `shape`: a scalar, a value for each channel, or any."""
    kind = s.integer(0, 3)
    if kind == 0 or not shape:
        return []
    if kind == 1 and len(shape) > 1:
        return [shape[1]] + [1] * (len(shape) - 2)
    if kind == 2:
        return shape[-1:]
    shape = [1 if s.chance(0.4) else n for n in shape]
    return shape[s.integer(0, len(shape)) if s.chance(0.3) else 0 :]


def combine(s, x, y):
    op = s.pick("Add", "Add", "Sub", "Mul", "Mul", "Div", "Max", "Min")
    if op == "Div":
        y = s.add("Add", s.add("Abs", y), s.number(0.7, y))
    operands = [x, y] if op == "Div" or s.chance(0.7) else [y, x]
    return s.add(op, *operands)


@motif(4)
def with_constant(s):
    x = s.tensor()
    op = s.pick("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Where")
    shape = broadcast_shape(s, s.shape(x))
    low = 0.4 if op == "Div" else -1.5
    constant = s.weights(shape, x, low, 1.5)
    if s.chance(0.2) and op != "Div":
        constant = s.number(s.pick(0, 1, -1, 2, 0.5, -0.0), x)
    if op == "Where":
        condition = s.constant(s.rng.random(broadcast_shape(s, s.shape(x))) < 0.5)
        s.add("Where", condition, *((x, constant) if s.chance(0.5) else (constant, x)))
    elif op == "PRelu" or s.chance(0.7):
        s.add(op, x, constant)
    else:
        if op == "Div":
            x = s.add("Add", s.add("Abs", x), s.number(0.7, x))
        s.add(op, constant, x)


def _broadcasts(a, b):
    return all(m == n or m == 1 or n == 1 for m, n in zip(a[::-1], b[::-1]))


@motif(6)
def binary(s):
    x = s.tensor()
    like = s.values[x]
    y = s.tensor(lambda v: v.dtype == like.dtype and _broadcasts(v.shape, like.shape))
    combine(s, x, y)


@motif(3)
def variadic(s):
    x = s.tensor()
    like = s.values[x]
    rest = [s.tensor(lambda v: v.dtype == like.dtype and v.shape == like.shape) for _ in range(s.integer(1, 3))]
    s.add(s.pick("Sum", "Max", "Min", "Mean"), x, *rest)


@motif(4)
def activation(s):
    """As exporters write them; at times something else reads the middle, too."""
    x = s.tensor()
    kind = s.pick("silu", "swish", "gelu", "tanh", "hardswish", "hardsigmoid", "mish", "relu6", "leaky", "logistic")
    n = lambda value: s.number(value, x)  # noqa: E731
    middle = None
    if kind == "silu":
        middle = s.add("Sigmoid", x)
        s.add("Mul", *((x, middle) if s.chance(0.5) else (middle, x)))
    elif kind == "swish":
        middle = s.add("Sigmoid", s.add("Mul", x, n(1.702)))
        s.add("Mul", x, middle)
    elif kind == "gelu":
        erf = s.add("Erf", s.add("Div", x, n(np.sqrt(2))))
        middle = s.add("Add", erf, n(1))
        if s.chance(0.5):
            s.add("Mul", s.add("Mul", x, middle), n(0.5))
        else:
            s.add("Mul", s.add("Mul", x, n(0.5)), middle)
    elif kind == "tanh":
        cube = s.add("Mul", s.add("Mul", s.add("Mul", x, x), x), n(0.044715))
        middle = s.add("Tanh", s.add("Mul", s.add("Add", x, cube), n(np.sqrt(2 / np.pi))))
        s.add("Mul", s.add("Mul", x, n(0.5)), s.add("Add", middle, n(1)))
    elif kind == "hardswish":
        middle = s.add("Clip", s.add("Add", x, n(3)), s.scalar(0, x), s.scalar(6, x))
        s.add("Div", s.add("Mul", x, middle), n(6))
    elif kind == "hardsigmoid":
        middle = s.add("Clip", s.add("Add", x, n(3)), s.scalar(0, x), s.scalar(6, x))
        s.add("Div", middle, n(6))
    elif kind == "mish":
        middle = s.add("Softplus", x)
        s.add("Mul", x, s.add("Tanh", middle))
    elif kind == "relu6":
        s.add("Clip", s.add("Relu", x), s.scalar(s.pick(0, -1, 1), x), s.scalar(6, x))
    elif kind == "leaky":
        middle = s.add("Mul", x, n(s.pick(0.1, 0.25, 1.5, -0.5)))
        s.add("Max", x, middle)
    else:
        middle = s.add("Exp", s.add("Neg", s.add("Clip", x, s.scalar(-5, x), s.scalar(5, x))))
        s.add("Div", n(1), s.add("Add", middle, n(1)))
    if middle and s.chance(0.2):
        combine(s, middle, s.tensor(lambda v: v.shape == s.values[middle].shape))


@motif(2)
def select(s):
    x = s.tensor()
    if x not in s.exact:
        raise Reject
    condition = s.add(s.pick("Greater", "Less"), x, s.weights(broadcast_shape(s, s.shape(x)), x))
    if s.chance(0.3):
        condition = s.add("Not", condition)
    shape = s.values[condition].shape
    if s.chance(0.3):
        s.add("Cast", condition, to=TensorProto.FLOAT)
        return
    y = s.tensor(lambda v: _broadcasts(v.shape, shape))
    s.add("Where", condition, y, s.number(s.pick(0, -1, 2), y))


@motif(1)
def integers(s):
    x = s.tensor(types="i")
    like = s.values[x]
    kind = s.pick("constant", "binary", "cast", "index")
    if kind == "constant":
        low = s.pick(1, -4)
        values = s.rng.integers(low, 5, broadcast_shape(s, s.shape(x))).astype(like.dtype)
        op = s.pick("Add", "Mul", "Sub", "Max", "Min", "Mod", "Div")
        if op in ("Mod", "Div"):
            values = np.where(values == 0, 3, values).astype(like.dtype)
        s.add(op, x, s.constant(values))
    elif kind == "binary":
        y = s.tensor(lambda v: v.dtype == like.dtype and _broadcasts(v.shape, like.shape), types="i")
        s.add(s.pick("Add", "Mul", "Sub", "Max", "Min"), x, y)
    elif kind == "cast":
        clipped = s.add("Max", s.add("Min", x, s.scalar(50, x)), s.scalar(-50, x))
        types = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.DOUBLE
        s.add("Cast", clipped, to=s.pick(*types))
    else:
        table = s.tensor(lambda v: v.ndim)
        axis = s.integer(0, len(s.shape(table)) - 1)
        extent = s.shape(table)[axis]
        index = s.add("Mod", x, s.scalar(extent, x))
        s.add("Gather", table, index, axis=axis)


@motif(1)
def casts(s):
    x = s.tensor()
    if s.values[x].dtype == np.float32:
        s.add("Cast", s.add(s.pick("Tanh", "Neg"), s.add("Cast", x, to=TensorProto.DOUBLE)), to=TensorProto.FLOAT)
    else:
        s.add("Cast", x, to=TensorProto.FLOAT)


@motif(1)
def used_twice(s):
    x = s.tensor()
    op = s.pick("Add", "Mul", "Max", "Sub", "Concat")
    s.add(op, x, x, axis=s.integer(-1, 0) if op == "Concat" else None)
