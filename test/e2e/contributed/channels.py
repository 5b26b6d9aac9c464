# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on images whose channels are the last dimension."""

import math

import numpy as np

from .registry import contributes

_erf = np.vectorize(math.erf)


def _type(d):
    dtype = d.pick(np.float32, np.float32, np.float16)
    d.tolerance = 2e-3 if dtype == np.float16 else None
    return dtype


# ONNX Runtime has these on GPUs alone, but for NhwcMaxPool.


@contributes("BiasAdd")
def bias_add(d, op):
    dtype, shape = _type(d), [d.integer(1, 3), d.integer(1, 9), d.integer(1, 9)]
    x, bias, skip = (d.values(s, dtype) for s in (shape, shape[-1:], shape))
    name = d.contributed(op, d.input(x), d.either(bias), d.input(skip))
    d.expect(name, (x.astype(np.float64) + bias + skip).astype(dtype))


@contributes("BiasSplitGelu")
def bias_split_gelu(d, op):
    dtype, shape = _type(d), [d.integer(1, 3), d.integer(1, 9), 2 * d.integer(1, 9)]
    x, bias = d.values(shape, dtype), d.values(shape[-1:], dtype)
    name = d.contributed(op, d.input(x), d.either(bias))
    left, right = np.split(x.astype(np.float64) + bias, 2, -1)
    d.expect(name, (left * right * (1 + _erf(right / np.sqrt(2))) / 2).astype(dtype))


@contributes("GroupNorm", "SkipGroupNorm")
def group_norm(d, op):
    dtype, vector_type = _type(d), d.pick(np.float32, np.float32, np.float16)
    if vector_type == np.float16:
        d.tolerance = 2e-3
    last, groups = d.pick(None, 0, 1), d.integer(1, 4)
    channels = groups * d.integer(2, 4)
    batch, high, wide = d.integer(1, 3), d.integer(2, 7), d.integer(1, 7)
    places = [high, wide]
    shape = [batch, channels, *places] if last == 0 else [batch, *places, channels]
    x = d.values(shape, dtype)
    gamma, beta = d.values([channels], vector_type), d.values([channels], vector_type)
    operands = [d.input(x), d.either(gamma), d.either(beta)]
    # Channels last from here on.
    total = x.astype(np.float64)
    total = np.moveaxis(total, 1, -1) if last == 0 else total
    outputs = 1
    if op == "SkipGroupNorm":
        single = [batch, channels, 1, 1] if last == 0 else [batch, 1, 1, channels]
        skip = d.values(d.pick(shape, single, [batch, channels]), dtype)
        operands.append(d.input(skip))
        if skip.ndim == 2:
            total = total + skip[:, None, None]
        else:
            total = total + (np.moveaxis(skip, 1, -1) if last == 0 else skip)
        if d.chance(0.5):
            bias = d.values([channels], dtype)
            operands.append(d.either(bias))
            total = total + bias
        outputs = d.pick(1, 2)
    activation, epsilon = d.pick(0, 1), d.pick(None, 1e-3)
    names = d.contributed(
        op, *operands, outputs=outputs, activation=activation, groups=groups, epsilon=epsilon, channels_last=last
    )
    names = [names] if outputs == 1 else names
    grouped = total.reshape(batch, high * wide, groups, -1)
    centered = grouped - grouped.mean((1, 3), keepdims=True)
    deviation = np.sqrt((centered**2).mean((1, 3), keepdims=True) + (epsilon or 1e-5))
    result = (centered / deviation).reshape(total.shape) * gamma + beta
    if activation:
        result = result / (1 + np.exp(-result))
    for name, value in zip(names, (result, total)):
        d.expect(name, (np.moveaxis(value, -1, 1) if last == 0 else value).astype(dtype))


@contributes("NhwcMaxPool")
def max_pool(d, op):
    dims = d.integer(1, 3)
    kernel = [d.integer(1, 3) for _ in range(dims)]
    auto_pad = d.pick(None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    # ONNX Runtime does not dilate with these.
    dilations = [1 if auto_pad in ("SAME_UPPER", "SAME_LOWER") else d.integer(1, 2) for _ in range(dims)]
    # Nor does it agree with itself about windows that are shorter than their stride then.
    strides = [d.integer(1, k if auto_pad in ("SAME_UPPER", "SAME_LOWER") else 3) for k in kernel]
    spatial = [d.integer((k - 1) * dilation + 1, 9) for k, dilation in zip(kernel, dilations)]
    pads = [d.integer(0, k - 1) for k in kernel * 2] if auto_pad in (None, "NOTSET") and d.chance(0.7) else None
    d.exact = True
    d.contributed(
        op,
        d.input(d.values([d.integer(1, 2), *spatial, d.integer(1, 9)], d.pick(np.uint8, np.int8), -99, 99)),
        auto_pad=auto_pad,
        ceil_mode=d.pick(None, 0, 1),
        dilations=dilations if d.chance(0.9) or max(dilations) > 1 else None,
        kernel_shape=kernel,
        pads=pads,
        strides=strides,
    )
