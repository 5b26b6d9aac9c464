# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of integers of 8 bits, whose sums are scaled."""

import numpy as np

from .fused import result_shape
from .multi_head import make_mask, make_options
from .quantized import Quantized, without_last
from .fused import draw_windows
from .registry import contributes


def _factor(d, shape, dtype, of=()):
    """Integers, scale, and zero point."""
    info = np.iinfo(dtype)
    integers = d.rng.integers(info.min, info.max + 1, shape).astype(dtype)
    # Zero points of weights near the middle, as exporters choose them.
    middle = 0 if dtype == np.int8 else 128
    zero = d.rng.integers(middle - 3, middle + 4, of).astype(dtype)
    return integers, d.values(of, np.float32, 0.01, 0.1), zero


def _less_zero(integers, zero):
    return integers.astype(np.int64) - np.asarray(zero, np.int64)


@contributes("QGemm")
def gemm(d, op):
    rows, depth, columns = d.integer(1, 12), d.integer(1, 40), d.integer(1, 20)
    a_type = d.pick(np.uint8, np.int8)
    b_type = d.pick(np.uint8, np.int8) if a_type == np.uint8 else np.int8
    trans_a, trans_b = d.pick(None, 0, 1), d.pick(None, 0, 1)
    of = d.pick((), (1,), (columns,))
    a, a_scale, a_zero = _factor(d, [depth, rows] if trans_a else [rows, depth], a_type)
    b, b_scale, b_zero = _factor(d, [columns, depth] if trans_b else [depth, columns], b_type, of)
    operands = [d.input(a), d.either(a_scale), d.either(a_zero), d.either(b, 0.8), d.either(b_scale), d.either(b_zero)]
    left, right = _less_zero(a.T if trans_a else a, a_zero), _less_zero(b.T if trans_b else b, b_zero)
    alpha = d.pick(None, 0.5, 2.0)
    sums = left @ right
    if d.chance(0.5):
        c = d.values(d.pick([columns], [rows, columns], [1, columns], [rows, 1], [1]), np.int32, -3000, 3000)
        operands.append(d.either(c))
        sums = sums + c
    numbers = sums * (alpha or 1.0) * a_scale.astype(np.float64) * b_scale.astype(np.float64)
    attributes = dict(alpha=alpha, transA=trans_a, transB=trans_b)
    if d.chance(0.3):
        d.contributed(op, *operands, **attributes)
        return
    d.exact = True
    operands += [""] * (7 - len(operands))
    y = Quantized(d, [], a_type, optional=False, scale=(0.5, 2), scalar=())
    y.expects(d, d.contributed(op, *operands, *y.parameters(d), **attributes), numbers)


@contributes("MatMulIntegerToFloat")
def to_float(d, op):
    rows, depth, columns = d.integer(1, 9), d.integer(1, 40), d.integer(1, 20)
    a_type = d.pick(np.uint8, np.int8)
    b_type = d.pick(np.uint8, np.int8) if a_type == np.uint8 else np.int8
    batch = d.shape(0, 2, 3)
    of = d.pick((), (1,), (columns,))
    a, a_scale, a_zero = _factor(d, [*batch, rows, depth], a_type, d.pick((), (1,)))
    b, b_scale, b_zero = _factor(d, [depth, columns], b_type, of)
    wide = d.pick(np.float32, np.float32, np.float16)
    a_scale, b_scale, bias = a_scale.astype(wide), b_scale.astype(wide), d.values([columns], wide)
    operands = [d.input(a), d.either(b, 0.8), d.either(a_scale), d.either(b_scale), "", "", ""]
    if d.chance(0.6):
        operands[4] = d.either(a_zero)
    if d.chance(0.6):
        operands[5] = d.either(b_zero)
    if d.chance(0.5):
        operands[6] = d.either(bias)
    name = d.contributed(op, *without_last(operands))
    # ONNX Runtime's CPU kernel is for f32.
    if wide == np.float16:
        d.tolerance = 2e-3
        left = _less_zero(a, a_zero if operands[4] else 0)
        sums = left @ _less_zero(b, b_zero if operands[5] else 0)
        numbers = sums * a_scale.astype(np.float64) * b_scale.astype(np.float64)
        d.expect(name, (numbers + (bias if operands[6] else 0)).astype(wide))


@contributes("DynamicQuantizeMatMul")
def dynamic(d, op):
    rows, depth, columns = d.integer(1, 9), d.integer(1, 40), d.integer(1, 20)
    of = d.pick((), (1,), (columns,))
    a = d.values([*d.shape(0, 2, 3), rows, depth], low=d.pick(-3, 1))
    b, b_scale, b_zero = _factor(d, [depth, columns], d.pick(np.uint8, np.int8), of)
    operands = [d.input(a), d.either(b, 0.8), d.either(b_scale), "", ""]
    if d.chance(0.6):
        operands[3] = d.either(b_zero)
    if d.chance(0.5):
        operands[4] = d.either(d.values([columns]))
    d.contributed(op, *without_last(operands))


@contributes("QLinearConv")
def conv(d, op):
    group, kernel, auto_pad, dilations, strides, channels, filters, spatial, pads = draw_windows(d, 2, 4, 9)
    last = d.pick(None, 0, 1)
    x_type = d.pick(np.uint8, np.int8)
    w_type = d.pick(np.uint8, np.int8) if x_type == np.uint8 else np.int8
    shape = [d.integer(1, 2), channels, *spatial]
    x, x_scale, x_zero = _factor(d, shape, x_type)
    of = d.pick((), (filters,))
    w, w_scale, w_zero = _factor(d, [filters, channels // group, *kernel], w_type, of)
    if of:
        w_zero[:] = w_zero[0]
    y = Quantized(d, [], x_type, optional=False, scale=(0.3, 1), scalar=())
    bias = d.values([filters], np.int32, -999, 999) if d.chance(0.5) else None
    operands = [d.input(np.moveaxis(x, 1, -1) if last else x), d.constant(x_scale), d.constant(x_zero)]
    operands += [d.either(w, 0.8), d.constant(w_scale), d.constant(w_zero), d.constant(y.scale), d.constant(y.zero)]
    d.exact = True
    name = d.contributed(
        op,
        *operands,
        *([] if bias is None else [d.either(bias)]),
        auto_pad=auto_pad,
        channels_last=last,
        dilations=dilations if d.chance(0.9) or max(dilations) > 1 else None,
        group=group if group > 1 or d.chance(0.5) else None,
        kernel_shape=d.pick(kernel, None),
        pads=pads,
        strides=strides,
    )
    extents = result_shape(shape, filters, kernel, dilations, strides, pads, auto_pad)[2:]
    padded = (extents, kernel, dilations, strides, pads, auto_pad)
    align = lambda value: value.reshape(-1, *[1] * len(kernel)) if value.ndim else value
    sums = _convolve(_less_zero(x, x_zero), _less_zero(w, w_zero.flat[0]), group, *padded)
    if bias is not None:
        sums = sums + align(bias)
    numbers = sums * x_scale.astype(np.float64) * align(w_scale.astype(np.float64))
    y.expects(d, name, np.moveaxis(numbers, 1, -1) if last else numbers)


def _convolve(x, w, group, extents, kernel, dilations, strides, pads, auto_pad):
    """Sums of products, as whole numbers."""
    dims = len(kernel)
    begins, ends = [0] * dims, [0] * dims
    for dim in range(dims):
        reach = (extents[dim] - 1) * strides[dim] + (kernel[dim] - 1) * dilations[dim] + 1
        total = max(0, reach - x.shape[2 + dim])
        if auto_pad == "SAME_UPPER":
            begins[dim] = total // 2
        elif auto_pad == "SAME_LOWER":
            begins[dim] = -(-total // 2)
        elif pads:
            begins[dim] = pads[dim]
        ends[dim] = max(0, reach - x.shape[2 + dim] - begins[dim])
    x = np.pad(x, [(0, 0), (0, 0), *zip(begins, ends)])
    channels, filters = w.shape[1], w.shape[0] // group
    result = np.zeros([x.shape[0], w.shape[0], *extents], np.int64)
    for tap in np.ndindex(*kernel):
        window = [
            slice(t * dilation, t * dilation + (extent - 1) * stride + 1, stride)
            for t, dilation, extent, stride in zip(tap, dilations, extents, strides)
        ]
        part = x[(slice(None), slice(None), *window)]
        for g in range(group):
            of = slice(g * filters, (g + 1) * filters)
            weights = w[(of, slice(None), *tap)]
            result[:, of] += np.einsum("nc...,oc->no...", part[:, g * channels : (g + 1) * channels], weights)
    return result


@contributes("QAttention", refused=("do_rotary", "past_present_share_buffer"))
def attention(d, op):
    batch, heads, size, tokens = d.integer(1, 3), d.integer(1, 4), d.integer(1, 8), d.integer(1, 9)
    width, columns = d.integer(1, 24), 3 * heads * size
    past = d.pick(0, 0, d.integer(1, 5))
    x, x_scale, x_zero = _factor(d, [batch, tokens, width], np.uint8, d.pick((), (1,)))
    w, w_scale, w_zero = _factor(d, [width, columns], d.pick(np.uint8, np.int8), d.pick((), (1,), (columns,)))
    # Sums stay where exponentials are exact.
    x_scale, w_scale = x_scale / np.float32(8), w_scale / np.float32(8)
    operands = [d.input(x), d.either(w, 0.8), d.either(d.values([columns], np.float32)), d.either(x_scale), d.either(w_scale)]
    operands += [d.either(make_mask(d, batch, tokens, past, tokens, True), 0.4) if d.chance(0.5) else ""]
    operands += [d.either(x_zero) if d.chance(0.6) else "", d.either(w_zero) if d.chance(0.6) else ""]
    operands += [d.input(d.values([2, batch, heads, past, size], np.float32)) if past else ""]
    d.contributed(
        op,
        *without_last(operands),
        outputs=2 if past else d.pick(1, 2),
        num_heads=heads,
        unidirectional=d.pick(None, None, 0, 1),
        **make_options(d),
    )
