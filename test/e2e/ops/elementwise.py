# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operators with broadcasting."""

import numpy as np

from .draft import generates

_INTS = (np.int32, np.int64)

# Operator: (first opset, low, high of the arguments).
_UNARY = {
    "Abs": (7, -3, 3),
    "Acos": (7, -0.99, 0.99),
    "Acosh": (9, 1.01, 5),
    "Asin": (7, -0.99, 0.99),
    "Asinh": (9, -5, 5),
    "Atan": (7, -5, 5),
    "Atanh": (9, -0.98, 0.98),
    "Ceil": (7, -5, 5),
    "Cos": (7, -10, 10),
    "Cosh": (9, -4, 4),
    "Erf": (9, -4, 4),
    "Exp": (7, -10, 5),
    "Floor": (7, -5, 5),
    "Log": (7, 0.01, 20),
    "Neg": (7, -3, 3),
    "Reciprocal": (7, 0.2, 5),
    "Relu": (7, -3, 3),
    "Round": (11, -5, 5),
    "Sigmoid": (7, -12, 12),
    "Sign": (9, -3, 3),
    "Sin": (7, -10, 10),
    "Sinh": (9, -4, 4),
    "Softplus": (7, -20, 20),
    "Softsign": (7, -9, 9),
    "Sqrt": (7, 0, 9),
    "Tan": (7, -1.4, 1.4),
    "Tanh": (7, -6, 6),
    "HardSwish": (14, -5, 5),
    "Mish": (18, -9, 9),
}
_EXACT = {"Abs", "Ceil", "Floor", "Neg", "Relu", "Round", "Sign"}
_SIGNED_INTEGERS = {"Abs": 7, "Neg": 7, "Sign": 9, "Relu": 14}

# Operator: (first opset, attributes with the values to try).
_WITH_ATTRIBUTES = {
    "Elu": (7, {"alpha": (None, 0.5, 2.0)}),
    "Selu": (7, {"alpha": (None, 1.5), "gamma": (None, 0.7)}),
    "LeakyRelu": (7, {"alpha": (None, 0.2, 1.5)}),
    "HardSigmoid": (7, {"alpha": (None, 0.3), "beta": (None, 0.1)}),
    "ThresholdedRelu": (10, {"alpha": (None, 0.5)}),
    "Celu": (12, {"alpha": (None, 0.5, 2.0)}),
    "Gelu": (20, {"approximate": (None, "none", "tanh")}),
    "Shrink": (9, {"lambd": (None, 1.0), "bias": (None, 0.4)}),
}


@generates(*_UNARY)
def unary(d, op):
    first, low, high = _UNARY[op]
    opset = d.since(first)
    dtype = np.float32
    if op in _SIGNED_INTEGERS and opset >= _SIGNED_INTEGERS[op] and d.chance(0.3):
        dtype = d.pick(*_INTS) if op != "Relu" else np.int32
    x = d.values(d.shape(0, 5), dtype, low, high)
    if op == "Round" and x.ndim:  # Ties go to the even neighbour.
        x.flat[:: d.integer(1, 3)] = d.pick(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5)
    d.exact = op in _EXACT
    d.node(op, d.input(x))


@generates(*_WITH_ATTRIBUTES)
def unary_with_attributes(d, op):
    first, attributes = _WITH_ATTRIBUTES[op]
    d.since(first)
    x = d.input(d.values(d.shape(0, 5)))
    d.node(op, x, **{name: d.pick(*values) for name, values in attributes.items()})


@generates("Not")
def logical_not(d, op):
    d.since(7)
    d.exact = True
    d.node(op, d.input(d.values(d.shape(0, 5), np.bool_)))


@generates("IsNaN", "IsInf")
def classify(d, op):
    d.since(10)
    d.exact = True
    x = d.values(d.shape(1, 4))
    x.flat[:: d.integer(1, 3)] = d.pick(np.nan, np.inf, -np.inf)
    x.flat[1 :: d.integer(3, 5)] = d.pick(np.nan, np.inf, -np.inf)
    attributes = {}
    if op == "IsInf":
        attributes = {"detect_negative": d.pick(None, 0, 1), "detect_positive": d.pick(None, 0, 1)}
    d.node(op, d.input(x), **attributes)


def _broadcast_shapes(d, count):
    """Shapes that broadcast together: extents of one and missing leading dimensions at random."""
    full = d.shape(1, 4)
    shapes = []
    for _ in range(count):
        shape = [1 if d.chance(0.2) else n for n in full]
        shapes.append(shape[d.integer(0, len(shape)) if d.chance(0.3) else 0 :])
    return shapes


def _operands(d, count, dtype=np.float32, low=-3, high=3):
    """The first operand is an input; others are inputs or constants, and may come first."""
    shapes = _broadcast_shapes(d, count)
    names = [d.input(d.values(shapes[0], dtype, low, high))]
    names += [d.either(d.values(s, dtype, low, high), 0.35) for s in shapes[1:]]
    return [names[i] for i in d.rng.permutation(count)]


@generates("Add", "Sub", "Mul", weight=3)
def arithmetic(d, op):
    d.since(7)
    dtype = d.pick(np.float32, np.float32, np.int32, np.int64)
    d.node(op, *_operands(d, 2, dtype))


@generates("Div", weight=2)
def divide(d, op):
    d.since(7)
    dtype = d.pick(np.float32, np.float32, np.int32, np.int64)
    shapes = _broadcast_shapes(d, 2)
    divisor = d.values(shapes[1], dtype, 1, 5) * np.where(d.values(shapes[1], np.bool_), 1, -1)
    x = d.values(shapes[0], dtype, -20, 20)
    d.node(op, d.input(x), d.either(divisor.astype(dtype), 0.35))


@generates("Pow", weight=2)
def power(d, op):
    opset = d.since(7)
    shapes = _broadcast_shapes(d, 2)
    if opset >= 12 and d.chance(0.3):
        base = d.values(shapes[0], d.pick(np.float32, *_INTS), -4, 4)
        exponent = d.values(shapes[1], d.pick(*_INTS), 0, 3)
    elif d.chance(0.5):
        base = d.values(shapes[0], low=0.1, high=4)
        exponent = d.values(shapes[1], low=-2, high=2)
    else:
        base, exponent = d.values(shapes[0]), np.float32(d.pick(2, 3, 1))
    d.node(op, d.input(base), d.either(exponent, 0.5))


@generates("Mod")
def modulo(d, op):
    d.since(10)
    shapes = _broadcast_shapes(d, 2)
    fmod = d.chance(0.4)
    dtype = d.pick(np.float32, *_INTS) if fmod else d.pick(*_INTS)
    divisor = d.values(shapes[1], dtype, 1, 5)
    if d.chance(0.5):
        divisor = -divisor
    if dtype == np.float32:  # Away from multiples, where a rounding error makes a jump.
        divisor = np.float32(d.pick(2, 4, 0.5)) * np.sign(divisor)
    x = d.values(shapes[0], dtype, -20, 20)
    d.node(op, d.input(x), d.either(divisor, 0.35), fmod=1 if fmod else d.pick(None, 0))


@generates("And", "Or", "Xor")
def logical(d, op):
    d.since(7)
    d.exact = True
    d.node(op, *_operands(d, 2, np.bool_))


@generates("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
def comparison(d, op):
    opset = d.since(12 if op.endswith("OrEqual") else 7)
    d.exact = True
    dtype = np.float32 if op != "Equal" else np.int32
    if opset >= 11:
        dtype = d.pick(np.float32, np.int32, np.int64)
    operands = _operands(d, 2, dtype, -2, 2)
    d.node(op, *operands)


@generates("Max", "Min", "Sum", weight=2)
def variadic(d, op):
    opset = d.since(8)
    dtype = np.float32
    if op != "Sum" and opset >= 12 and d.chance(0.3):
        dtype = d.pick(*_INTS)
    d.exact = op != "Sum"
    d.node(op, *_operands(d, d.integer(1, 4), dtype))


@generates("Mean")
def mean(d, op):
    d.since(8)
    d.node(op, *_operands(d, d.integer(1, 4)))


@generates("Where", weight=3)
def where(d, op):
    d.since(9)
    d.exact = True
    shapes = _broadcast_shapes(d, 3)
    dtype = d.pick(np.float32, np.float32, np.int64)
    condition = d.input(d.values(shapes[0], np.bool_))
    d.node(op, condition, *(d.either(d.values(s, dtype), 0.3) for s in shapes[1:]))


@generates("PRelu", weight=2)
def prelu(d, op):
    d.since(7)
    shape = d.shape(1, 4)
    slope = [1 if d.chance(0.4) else n for n in shape]
    slope = slope[d.integer(0, len(slope) - 1) if d.chance(0.4) else 0 :]
    d.node(op, d.input(d.values(shape)), d.either(d.values(slope), 0.6))


@generates("Clip", weight=3)
def clip(d, op):
    opset = d.since(7)
    d.exact = True
    low, high = d.pick(None, -1.5, 0.0), d.pick(None, 1.5, 6.0, 0.5)
    if opset < 11:
        d.node(op, d.input(d.values(d.shape(0, 5))), min=low, max=high)
        return
    dtype = d.pick(np.float32, np.float32, *_INTS) if opset >= 12 else np.float32
    inputs = [d.input(d.values(d.shape(0, 5), dtype))]
    for bound in (low, high):
        array = None if bound is None else np.array(bound, dtype)
        inputs.append("" if array is None else d.constant(array))
    while inputs[-1] == "":
        inputs.pop()
    d.node(op, *inputs)


@generates("Cast", weight=4)
def cast(d, op):
    d.since(9)
    d.exact = True
    types = (np.float32, np.float64, np.int32, np.int64, np.int8, np.uint8, np.bool_)
    source, target = d.pick(*types), d.pick(*types)
    # Within the range of every type: what lies outside is implementation-defined.
    low = 0 if np.uint8 in (source, target) else -100
    x = d.values(d.shape(0, 4), source, low, 100)
    if target == np.bool_ and source != np.bool_ and x.ndim:
        x.flat[::2] = 0
    from onnx import helper

    d.node(op, d.input(x), to=helper.np_dtype_to_tensor_dtype(np.dtype(target)))
