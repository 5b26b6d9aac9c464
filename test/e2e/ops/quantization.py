# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantised operators."""

import numpy as np

from .draft import generates


def _scale(d, shape=()):
    return d.values(shape, low=0.05, high=0.5)


def _parameters(d, shape, opset):
    """The shapes of scale and zero point, and attributes: for a tensor, an axis or, from opset 21 on, blocks."""
    kind = d.pick("tensor", "axis", "blocks") if opset >= 21 else d.pick("tensor", "axis")
    if opset < 13 or kind == "tensor":
        return (), {}
    axis = d.integer(0, len(shape) - 1)
    if kind == "axis":
        return (shape[axis],), {"axis": axis}
    size = d.integer(1, shape[axis])
    blocks = list(shape)
    blocks[axis] = -(-shape[axis] // size)
    return tuple(blocks), {"axis": axis, "block_size": size}


@generates("QuantizeLinear", weight=4)
def quantize(d, op):
    opset = d.since(10)
    d.exact = True
    shape = d.shape(2, 4)
    of, attributes = _parameters(d, shape, opset)
    dtype = d.pick(np.uint8, np.int8)
    if opset >= 21:
        dtype = d.pick(np.uint8, np.int8, np.uint16, np.int16)
    operands = [d.either(_scale(d, of))]
    # Some of them beyond the range of 8 bits.
    if d.chance(0.7) or dtype != np.uint8:
        operands.append(d.either(d.values(of, dtype, -9, 9)))
    d.node(op, d.input(d.values(shape, low=-20, high=20)), *operands, **attributes)


@generates("DequantizeLinear", weight=4)
def dequantize(d, op):
    opset = d.since(10)
    shape = d.shape(2, 4)
    of, attributes = _parameters(d, shape, opset)
    dtype = d.pick(np.uint8, np.int8)
    operands = [d.either(_scale(d, of))]
    if d.chance(0.7):
        operands.append(d.either(d.values(of, dtype, -9, 9)))
    d.node(op, d.input(d.values(shape, dtype, -128, 127)), *operands, **attributes)


@generates("DynamicQuantizeLinear", weight=2)
def dynamic_quantize(d, op):
    d.since(11)
    d.exact = True
    d.node(op, d.input(d.values(d.shape(1, 4), low=d.pick(-3, 1))), outputs=3)


@generates("MatMulInteger", weight=3)
def matmul_integer(d, op):
    d.since(10)
    d.exact = True
    m, k, n = (d.integer(1, 12) for _ in range(3))
    batch = d.shape(0, 2, 3)
    dtype = d.pick(np.uint8, np.int8)
    operands = [d.input(d.values([*batch, m, k], dtype, -9, 9)), d.either(d.values([k, n], dtype, -9, 9))]
    if d.chance(0.7):
        operands.append(d.constant(d.values((), dtype, -9, 9)))
        if d.chance(0.7):
            operands.append(d.constant(d.values(d.pick((), (n,)), dtype, -9, 9)))
    d.node(op, *operands)


def _convolution(d):
    """Channels, filters, kernel and extents of an exact 2-D convolution."""
    d.since(10)
    d.exact = True
    channels, filters = d.integer(1, 4), d.integer(1, 4)
    kernel = [d.integer(1, 3), d.integer(1, 3)]
    return channels, filters, kernel, [d.integer(k, 12) for k in kernel]


@generates("ConvInteger", weight=3)
def conv_integer(d, op):
    channels, filters, kernel, spatial = _convolution(d)
    operands = [d.input(d.values([d.integer(1, 2), channels, *spatial], np.uint8, 0, 9))]
    operands.append(d.constant(d.values([filters, channels, *kernel], np.uint8, 0, 9)))
    if d.chance(0.7):
        operands.append(d.constant(d.values((), np.uint8, 0, 9)))
        if d.chance(0.7):
            operands.append(d.constant(d.values((), np.uint8, 0, 9)))
    pads = [d.integer(0, k - 1) for k in (*kernel, *kernel)]
    d.node(op, *operands, pads=pads, strides=[d.integer(1, 2), d.integer(1, 2)])


def _quantized_result(d, dtype):
    """Scale and zero point of a result that mostly stays within the range of 8 bits."""
    return d.constant(_scale(d)), d.constant(d.values((), dtype, -9, 9))


@generates("QLinearMatMul", weight=3)
def qlinear_matmul(d, op):
    d.since(10)
    d.exact = True
    m, k, n = (d.integer(1, 12) for _ in range(3))
    dtype = d.pick(np.uint8, np.int8)
    left = d.input(d.values([m, k], dtype, -9, 9)), *_quantized_result(d, dtype)
    of = d.pick((), (n,))
    right = d.either(d.values([k, n], dtype, -9, 9)), d.constant(_scale(d, of)), d.constant(d.values(of, dtype, -9, 9))
    d.node(op, *left, *right, *_quantized_result(d, dtype))


@generates("QLinearConv", weight=3)
def qlinear_conv(d, op):
    channels, filters, kernel, spatial = _convolution(d)
    left = d.input(d.values([1, channels, *spatial], np.uint8, 0, 9)), *_quantized_result(d, np.uint8)
    weights = d.constant(d.values([filters, channels, *kernel], np.int8, -9, 9))
    right = weights, d.constant(_scale(d, d.pick((), (filters,)))), d.constant(np.zeros((), np.int8))
    bias = [d.constant(d.values([filters], np.int32, -99, 99))] if d.chance(0.5) else []
    pads = [d.integer(0, k - 1) for k in (*kernel, *kernel)]
    d.node(op, *left, *right, *_quantized_result(d, np.uint8), *bias, pads=pads)
