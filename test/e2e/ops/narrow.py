# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of fewer bits than operators compute with: floats of 8 and 4 bits, integers of 4 and 2."""

import ml_dtypes
import numpy as np

from .draft import generates

_FLOATS = (
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float4_e2m1fn,
)
_INTS = (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2)
#: The numbers of ONNX for these types.
_TYPES = dict(zip((*_FLOATS, *_INTS), (17, 18, 19, 20, 23, 22, 21, 26, 25)))


def _elements(d, shape, dtype):
    """Any elements of a type, but infinities and NaN."""
    bits = ml_dtypes.iinfo(dtype).bits if dtype in _INTS else ml_dtypes.finfo(dtype).bits
    values = d.rng.integers(0, 1 << bits, shape).astype(np.uint8).view(dtype)
    numbers = values.astype(np.float32)
    return np.where(np.isfinite(numbers), values, np.zeros((), dtype)) if dtype in _FLOATS else values


def _blocks(d, shape):
    """The shape of scales of a tensor, an axis or blocks, and attributes."""
    kind = d.pick("tensor", "axis", "blocks")
    axis = d.integer(0, len(shape) - 1)
    if kind == "tensor":
        return (), {}
    if kind == "axis":
        return (shape[axis],), {"axis": axis}
    size, blocks = d.integer(1, shape[axis]), list(shape)
    blocks[axis] = -(-shape[axis] // size)
    return tuple(blocks), {"axis": axis, "block_size": size}


def _start(d):
    # ONNX Runtime does not take arrays of these types, and lacks most of them.
    d.prefer_reference = True
    d.opset = 25
    d.exact = True


@generates("Cast to narrow types", weight=3)
def cast_to(d, _):
    _start(d)
    dtype = d.pick(*_TYPES)
    saturate = d.integer(0, 1) if dtype in _FLOATS[:-1] else None
    source = d.pick(np.float32, np.float16, np.float64)
    largest = float(ml_dtypes.finfo(dtype).max) if dtype in _FLOATS else 100
    x = d.input(d.values(d.shape(1, 4), source, -1.5 * largest, 1.5 * largest))
    value = d.node("Cast", x, to=_TYPES[dtype], saturate=saturate, final=False)
    if d.chance(0.5):
        rank = d.inputs[x].ndim
        value = d.node("Transpose", value, perm=[int(i) for i in d.rng.permutation(rank)], final=False)
    d.node("Cast", value, to=1) if d.chance(0.5) else d.node("Identity", value)


@generates("Cast from narrow types", weight=3)
def cast_from(d, _):
    _start(d)
    dtype = d.pick(*_TYPES)
    shape = d.shape(1, 4)
    value = d.input(_elements(d, shape, dtype))
    if d.chance(0.5):
        value = d.node("Reshape", value, d.ints(-1), final=False)
    if d.chance(0.3):
        axes = [int(d.rng.integers(0, 3)) for _ in range(2 * (1 if d.nodes else len(shape)))]
        value = d.node("Pad", value, d.ints(*axes), final=False)
    d.node("Cast", value, to=d.pick(1, 10, 11))


@generates("QuantizeLinear to narrow types", weight=4)
def quantize(d, _):
    _start(d)
    shape = d.shape(2, 4)
    of, attributes = _blocks(d, shape)
    dtype = d.pick(*_TYPES)
    operands = [d.either(d.values(of, low=0.05, high=0.5))]
    if d.chance(0.7):
        zero = np.zeros(of, dtype) if dtype in _FLOATS else _elements(d, of, dtype)
        operands.append(d.either(zero))
    else:
        attributes["output_dtype"] = _TYPES[dtype]
    if dtype in _FLOATS[:-1] and d.chance(0.3):
        attributes["saturate"] = 0
    d.node("QuantizeLinear", d.input(d.values(shape, low=-20, high=20)), *operands, **attributes)


@generates("DequantizeLinear of narrow types", weight=4)
def dequantize(d, _):
    _start(d)
    shape = d.shape(2, 4)
    of, attributes = _blocks(d, shape)
    dtype = d.pick(*_TYPES)
    operands = [d.either(d.values(of, d.pick(np.float32, np.float16), 0.05, 0.5))]
    if d.chance(0.7):
        zero = np.zeros(of, dtype) if dtype in _FLOATS else _elements(d, of, dtype)
        operands.append(d.either(zero))
    d.node("DequantizeLinear", d.either(_elements(d, shape, dtype), 0.5), *operands, **attributes)


@generates("MatMul by narrow weights", weight=4)
def matmul(d, _):
    """A product whose second factor is stored in few bits, as language models have it."""
    _start(d)
    d.exact = False
    dtype = d.pick(*_TYPES)
    m, k, n = d.integer(1, 9), d.integer(1, 40), d.integer(1, 40)
    of, attributes = _blocks(d, (k, n))
    operands = [d.constant(_elements(d, (k, n), dtype)), d.constant(d.values(of, low=0.05, high=0.5))]
    if dtype in _INTS and d.chance(0.5):
        operands.append(d.constant(_elements(d, of, dtype)))
    weights = d.node("DequantizeLinear", *operands, final=False, **attributes)
    d.node("MatMul", d.input(d.values([*d.shape(0, 1, 3), m, k])), weights)
