# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operators and pools of 8 bits, and conversions.

Cases know the exact results before rounding, so that ties alone may be rounded either way.
"""

import ml_dtypes
import numpy as np

from .registry import contributes


class Quantized:
    """Integers with a scale and a zero point, which is None at times if it may be absent."""

    def __init__(self, d, shape, dtype, optional=True, scale=(0.02, 0.2), scalar=None):
        info = np.iinfo(dtype)
        self.integers = d.rng.integers(info.min, info.max + 1, shape).astype(dtype)
        of = d.pick((), (1,)) if scalar is None else scalar
        self.scale = d.values(of, np.float32, *scale)
        self.zero = None if optional and d.chance(0.25) else d.rng.integers(info.min, info.max + 1, of).astype(dtype)

    def numbers(self):
        """In f64."""
        zero = 0.0 if self.zero is None else self.zero.astype(np.float64).reshape(())
        return (self.integers.astype(np.float64) - zero) * self.scale.astype(np.float64).reshape(())

    def operands(self, d, data=None):
        return [data or d.input(self.integers), *self.parameters(d)]

    def parameters(self, d):
        return [d.either(self.scale, 0.8), "" if self.zero is None else d.either(self.zero, 0.8)]

    def expects(self, d, name, numbers, has_kernel=True):
        """States that the output `name` is `numbers`, quantised as this is.

        Without a kernel of ONNX Runtime, `numbers` are also what is expected.
        """
        zero = 0 if self.zero is None else self.zero.astype(np.float64).reshape(())
        steps = d.unrounded[name] = numbers / self.scale.astype(np.float64).reshape(()) + zero
        if not has_kernel:
            info = np.iinfo(self.integers.dtype)
            d.expect(name, np.clip(np.rint(steps), info.min, info.max).astype(self.integers.dtype))


def without_last(operands):
    """Without what is absent at the end."""
    while not operands[-1]:
        operands = operands[:-1]
    return operands


def _type(d):
    d.exact = True
    return d.pick(np.uint8, np.int8)


@contributes("QLinearAdd", "QLinearMul")
def binary(d, op):
    dtype, shape = _type(d), d.shape(1, 4)
    other = [1 if d.chance(0.2) else extent for extent in shape[d.pick(0, 0, d.integer(0, len(shape) - 1)) :]]
    a, b = Quantized(d, shape, dtype, scalar=()), Quantized(d, other, dtype, scalar=())
    c = Quantized(d, [], dtype, scale=(0.1, 0.4) if op == "QLinearAdd" else (1, 9), scalar=())
    constant = d.constant(b.integers) if d.chance(0.4) else None
    y = d.contributed(op, *without_last([*a.operands(d), *b.operands(d, constant), *c.parameters(d)]))
    # ONNX Runtime lets the last operand be absent alone.
    has_kernel = a.zero is not None and b.zero is not None
    a, b = a.numbers(), b.numbers()
    c.expects(d, y, a + b if op == "QLinearAdd" else a * b, has_kernel)


@contributes("QLinearSigmoid", "QLinearLeakyRelu")
def unary(d, op):
    dtype = _type(d)
    x, y = Quantized(d, d.shape(1, 4), dtype), Quantized(d, [], dtype, scale=(0.004, 0.1))
    attributes = {"alpha": d.pick(None, 0.2, 1.5, -0.5)} if op == "QLinearLeakyRelu" else {}
    # ONNX Runtime is lost where the last operand has no place.
    name = d.contributed(op, *x.operands(d), *y.parameters(d), **attributes)
    numbers = x.numbers()
    if op == "QLinearSigmoid":
        result = 1 / (1 + np.exp(-numbers))
    else:
        slope = attributes["alpha"]
        result = np.where(numbers < 0, numbers * float(np.float32(0.01 if slope is None else slope)), numbers)
    y.expects(d, name, result)


@contributes("QLinearWhere")
def where(d, op):
    dtype, shape = _type(d), d.shape(1, 4)
    part = lambda: [1 if d.chance(0.15) else extent for extent in shape]
    condition = d.values(shape, np.bool_)
    x, y, z = (Quantized(d, part(), dtype, optional=False, scalar=()) for _ in range(3))
    # ONNX Runtime is lost where some of the parameters are constant, and others not.
    put = d.pick(d.constant, d.input)
    operands = [d.input(condition), d.input(x.integers), put(x.scale), put(x.zero)]
    operands += [d.input(y.integers), put(y.scale), put(y.zero), put(z.scale), put(z.zero)]
    z.expects(d, d.contributed(op, *operands), np.where(condition, x.numbers(), y.numbers()))


@contributes("QLinearConcat")
def concat(d, op):
    dtype, shape = _type(d), d.shape(1, 4)
    axis = d.axis(len(shape))
    y = Quantized(d, [], dtype, optional=False)
    parts, operands = [], []
    for _ in range(d.integer(2, 4)):
        extents = list(shape)
        extents[axis] = d.integer(1, 6)
        parts.append(Quantized(d, extents, dtype, optional=False))
        operands += parts[-1].operands(d, d.constant(parts[-1].integers) if d.chance(0.2) else None)
    name = d.contributed(op, *y.parameters(d), *operands, axis=axis)
    y.expects(d, name, np.concatenate([part.numbers() for part in parts], axis))


@contributes("QLinearSoftmax")
def softmax(d, op):
    dtype, shape = _type(d), d.shape(1, 4)
    axis, opset = d.pick(None, d.axis(len(shape))), d.pick(11, 12, 13, 17)
    x = Quantized(d, shape, dtype)
    y = Quantized(d, [], dtype, optional=False, scale=d.pick((1 / 256, 1 / 256), (1 / 128, 1 / 128), (0.004, 0.02)))
    # ONNX Runtime 1.32 multiplies by a whole number of steps.
    has_kernel = (1 / float(y.scale.reshape(()))).is_integer()
    operands = [*x.operands(d), *y.parameters(d)]
    name = d.contributed(op, *operands, axis=axis, opset=opset)
    numbers = x.numbers()
    axes = (-1 if axis is None else axis) % len(shape)
    axes = tuple(range(axes, len(shape))) if opset < 13 else (axes,)
    powers = np.exp(numbers - numbers.max(axes, keepdims=True))
    y.expects(d, name, powers / powers.sum(axes, keepdims=True), has_kernel)


@contributes("QLinearGlobalAveragePool")
def global_pool(d, op):
    dtype = _type(d)
    shape = [d.integer(1, 3), d.integer(1, 9), *(d.integer(1, 9) for _ in range(d.integer(1, 3)))]
    last = d.pick(None, 0, 1)
    x = Quantized(d, shape[:1] + shape[2:] + shape[1:2] if last else shape, dtype, optional=False)
    y = Quantized(d, [], dtype, optional=False, scale=(0.01, 0.1))
    name = d.contributed(op, *x.operands(d), *y.parameters(d), channels_last=last)
    first = 1 if last else 2
    y.expects(d, name, x.numbers().mean(tuple(range(first, first + len(shape) - 2)), keepdims=True))


def _average(x, kernel, strides, begins, extents, include):
    """The means of windows of `x`, whose first two dimensions are batch and channels."""
    result = np.empty([*x.shape[:2], *extents])
    for at in np.ndindex(*extents):
        starts = [i * s - b for i, s, b in zip(at, strides, begins)]
        window = tuple(slice(max(0, a), max(0, a + k)) for a, k in zip(starts, kernel))
        part = x[(slice(None), slice(None), *window)]
        count = np.prod(kernel) if include else part[0, 0].size
        result[(slice(None), slice(None), *at)] = part.sum(tuple(range(2, x.ndim))) / count
    return result


@contributes("QLinearAveragePool")
def pool(d, op):
    dtype = _type(d)
    dims = d.integer(1, 3)
    kernel = [d.integer(1, 3) for _ in range(dims)]
    strides = [d.integer(1, 3) for _ in range(dims)]
    spatial = [d.integer(k, 9) for k in kernel]
    auto_pad = d.pick(None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    pads = [d.integer(0, k - 1) for k in kernel * 2] if auto_pad in (None, "NOTSET") and d.chance(0.7) else None
    include, ceil, last = d.pick(None, 0, 1), d.pick(None, 0, 1), d.pick(None, 0, 1)
    shape = [d.integer(1, 2), *spatial, d.integer(1, 4)] if last else [d.integer(1, 2), d.integer(1, 4), *spatial]
    x = Quantized(d, shape, dtype, scalar=())
    y = Quantized(d, [], dtype, scalar=())
    name = d.contributed(
        op,
        *without_last([*x.operands(d), *y.parameters(d)]),
        auto_pad=auto_pad,
        ceil_mode=ceil,
        channels_last=last,
        count_include_pad=include,
        kernel_shape=kernel,
        pads=pads,
        strides=strides if max(strides) > 1 or d.chance(0.5) else None,
    )
    begins, extents = _windows(spatial, kernel, strides, pads, auto_pad, ceil)
    numbers = np.moveaxis(x.numbers(), -1, 1) if last else x.numbers()
    result = _average(numbers, kernel, strides, begins, extents, include)
    y.expects(d, name, np.moveaxis(result, 1, -1) if last else result, has_kernel=x.zero is not None)


def _windows(spatial, kernel, strides, pads, auto_pad, ceil):
    """Where the first windows begin before the border, and how many there are."""
    begins, extents = [], []
    for dim, (size, k, stride) in enumerate(zip(spatial, kernel, strides)):
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            extents.append(-(-size // stride))
            padding = max(0, (extents[-1] - 1) * stride + k - size)
            begins.append(padding // 2 if auto_pad == "SAME_UPPER" else -(-padding // 2))
            continue
        begin, end = (pads[dim], pads[dim + len(spatial)]) if pads else (0, 0)
        rest = size + begin + end - k
        count = (-(-rest // stride) if ceil else rest // stride) + 1
        # A window that begins behind the padding is left out.
        if ceil and (count - 1) * stride >= size + begin:
            count -= 1
        begins.append(begin)
        extents.append(count)
    return begins, extents


@contributes("QuantizeLinear")
def quantize(d, op):
    shape = d.shape(1, 4)
    dtype = d.pick(np.uint8, np.int8, np.uint16, np.int16, ml_dtypes.int4, ml_dtypes.uint4)
    wide = d.pick(np.float32, np.float32, np.float16)
    axis = d.pick(None, d.axis(len(shape)))
    of = () if axis is None else (shape[axis],)
    scale = d.values(of, wide, 0.05, 0.5)
    info = ml_dtypes.iinfo(dtype)
    zero = d.rng.integers(info.min, info.max + 1, of).astype(dtype) if dtype != np.uint8 or d.chance(0.6) else None
    x = d.values(shape, wide, -20, 20)
    d.exact = True
    narrow = dtype in (ml_dtypes.int4, ml_dtypes.uint4)
    operands = [d.either(scale), *([] if zero is None else [d.constant(zero) if narrow else d.either(zero)])]
    name = d.contributed(op, d.input(x), *operands, axis=axis)
    align = [1] * len(shape)
    if axis is not None:
        align[axis] = -1
    steps = x.astype(np.float64) / scale.astype(np.float64).reshape(align if of else ())
    steps = steps + (0 if zero is None else zero.astype(np.float64).reshape(align if of else ()))
    if narrow:
        # ONNX Runtime's interface for Python does not return these.
        d.expect(name, np.clip(np.rint(steps), info.min, info.max).astype(dtype))
    else:
        d.unrounded[name] = steps


@contributes("DequantizeLinear")
def dequantize(d, op):
    shape = d.shape(1, 4)
    dtype = d.pick(np.uint8, np.int8, np.uint16, np.int16, np.int32, ml_dtypes.int4, ml_dtypes.uint4)
    axis = d.pick(None, d.axis(len(shape)))
    of = () if axis is None else (shape[axis],)
    info = ml_dtypes.iinfo(dtype)
    draw = lambda extents: d.rng.integers(max(info.min, -999), min(info.max, 999) + 1, extents).astype(dtype)
    narrow = dtype in (ml_dtypes.int4, ml_dtypes.uint4)
    operands = [d.constant(draw(shape)) if narrow else d.input(draw(shape))]
    operands.append(d.either(d.values(of, d.pick(np.float32, np.float32, np.float16), 0.05, 0.5)))
    if d.chance(0.6) and dtype != np.int32:
        operands.append(d.constant(draw(of)))
    d.exact = True
    d.contributed(op, *operands, axis=axis)
