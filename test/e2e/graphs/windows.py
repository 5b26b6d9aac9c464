# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and pooling with what stands around them in real networks."""

import math

import numpy as np

from .sketch import Reject, motif


def image(s):
    """A tensor with channels and 1 to 3 spatial dimensions."""
    return s.tensor(lambda v: 3 <= v.ndim <= 5 and v.size and v.dtype == np.float32)


def pad(s, x, least, most):
    """Zeros around an image; negative numbers crop it."""
    rank = s.values[x].ndim - 2
    low, high = ([s.integer(least, most) for _ in range(rank)] for _ in range(2))
    return s.add("Pad", x, s.ints(0, 0, *low, 0, 0, *high))


def _window(s, shape, kernels):
    kernel = [s.pick(*kernels) for _ in shape[2:]]
    dilations = [s.pick(1, 1, 1, 2) for _ in kernel]
    strides = [s.pick(1, 1, 2, 2, 3) for _ in kernel]
    return kernel, dilations, strides


def conv(s, x, kernels=(1, 2, 3, 3, 3, 4, 5), same=False, channels=None, weights=None):
    shape = s.shape(x)
    kernel, dilations, strides = _window(s, shape, kernels)
    groups = s.pick(1, 1, 1, shape[1], math.gcd(shape[1], 2))
    channels = channels or groups * s.integer(1, 6 if groups == 1 else 2)
    if channels % groups:
        groups = 1
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    if same:
        strides = [1] * len(kernel)
        low = [(span - 1) // 2 for span in spans]
        pads = low + [span - 1 - a for span, a in zip(spans, low)]
    else:
        pads = [s.integer(0, span // 2) for _ in range(2) for span in spans]
    scale = (3 / (shape[1] // groups * math.prod(kernel))) ** 0.5
    inputs = [x, weights or s.weights([channels, shape[1] // groups, *kernel], x, -scale, scale)]
    if s.chance(0.5):
        inputs.append(s.weights([channels], x))
    if weights:
        return s.add("Conv", *inputs[:2], pads=[0] * (2 * len(kernel)))
    return s.add("Conv", *inputs, strides=strides, dilations=dilations, pads=pads, group=groups)


def finish(s, x):
    """What follows a convolution: a norm, scale, activation or nothing."""
    channels = s.shape(x)[1]
    column = [channels] + [1] * (s.values[x].ndim - 2)
    kind = s.pick("norm", "scale", "none", "bias", "instance")
    if kind == "norm":
        statistics = [s.weights([channels], x, -1, 1) for _ in range(3)] + [s.weights([channels], x, 0.3, 2)]
        x = s.add("BatchNormalization", x, *statistics)
    elif kind == "scale":
        x = s.add(s.pick("Mul", "Div"), x, s.weights(s.pick([], column, [1, *column]), x, 0.5, 2))
    elif kind == "bias":
        x = s.add("Add", x, s.weights(s.pick([], column), x))
    elif kind == "instance":
        x = s.add("InstanceNormalization", x, *(s.weights([channels], x) for _ in range(2)), epsilon=1e-2)
    if s.chance(0.6):
        x = s.add(s.pick("Relu", "Sigmoid", "LeakyRelu", "HardSwish", "Tanh", "Elu"), x)
    return x


@motif(6)
def convolution(s):
    x = image(s)
    if s.chance(0.2):
        x = pad(s, x, -1, 2)
    finish(s, conv(s, x))


@motif(4)
def residual(s):
    x = image(s)
    y = finish(s, conv(s, x, same=True))
    y = conv(s, y, same=True, channels=s.shape(x)[1])
    if s.chance(0.5):
        y = finish(s, y)
    y = s.add("Add", *((x, y) if s.chance(0.5) else (y, x)))
    if s.chance(0.6):
        s.add("Relu", y)


@motif(2)
def shared_weights(s):
    x = image(s)
    like = s.values[x]
    y = s.tensor(lambda v: v.ndim == like.ndim and v.shape[1] == like.shape[1] and v.dtype == like.dtype)
    kernel = [s.pick(1, 2, 3) for _ in like.shape[2:]]
    weights = s.weights([s.integer(1, 4), like.shape[1], *kernel], x)
    conv(s, x, weights=weights)
    conv(s, y, weights=weights)


@motif(1)
def dynamic_weights(s):
    """Weights that are computed."""
    x = image(s)
    like = s.values[x]
    w = s.tensor(
        lambda v: v.ndim == like.ndim
        and v.shape[1] == like.shape[1]
        and v.size
        and v.dtype == like.dtype
        and all(k <= n and k < 6 for k, n in zip(v.shape[2:], like.shape[2:]))
    )
    s.add("Conv", x, w, pads=[s.integer(0, 1) for _ in range(2 * (like.ndim - 2))])


@motif(2)
def excitation(s):
    """Squeeze and excitation: every channel scaled by a function of all."""
    x = image(s)
    channels, ones = s.shape(x)[1], [1] * (s.values[x].ndim - 2)
    y = s.add("GlobalAveragePool", x)
    y = s.add("Relu", s.add("Conv", y, s.weights([2, channels, *ones], x)))
    y = s.add(s.pick("Sigmoid", "HardSigmoid"), s.add("Conv", y, s.weights([channels, 2, *ones], x)))
    s.add("Mul", x, y)


@motif(4)
def transposed(s):
    x = image(s)
    shape = s.shape(x)
    kernel, dilations, strides = _window(s, shape, (1, 2, 2, 3, 4))
    groups = s.pick(1, 1, shape[1])
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    scale = (3 / (shape[1] // groups * math.prod(kernel))) ** 0.5
    y = s.add(
        "ConvTranspose",
        x,
        s.weights([shape[1], s.integer(1, 4), *kernel], x, -scale, scale),
        strides=strides,
        dilations=dilations,
        group=groups,
        pads=[s.integer(0, (span - 1) // 2) for _ in range(2) for span in spans],
        output_padding=[s.integer(0, stride - 1) for stride in strides],
    )
    finish(s, y)


@motif(4)
def pool(s):
    x = image(s)
    kind = s.pick("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool")
    if kind.startswith("Global"):
        s.add(kind, x)
        return
    if s.chance(0.15):
        x = pad(s, s.add("Relu", x) if s.chance(0.5) else x, 0, 1)
    shape = s.shape(x)
    kernel, dilations, strides = _window(s, shape, (1, 2, 3, 3))
    if any((k - 1) * d + 1 > n for k, d, n in zip(kernel, dilations, shape[2:])):
        raise Reject
    s.add(
        kind,
        x,
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations if kind == "MaxPool" else None,
        pads=[s.integer(0, k // 2) for _ in range(2) for k in kernel],
        ceil_mode=s.integer(0, 1) if kind != "LpPool" else None,
        count_include_pad=s.integer(0, 1) if kind == "AveragePool" else None,
    )


@motif(3)
def encoder_decoder(s):
    """One level of a U-Net: down, something, up, and the detour joined with the direct way."""
    x = image(s)
    shape = s.shape(x)
    rank = len(shape) - 2
    if min(shape[2:]) < 2:
        raise Reject
    if s.chance(0.5):
        y = s.add("MaxPool", x, kernel_shape=[2] * rank, strides=[2] * rank, ceil_mode=s.integer(0, 1))
    else:
        weights = s.weights([4, shape[1], *[3] * rank], x, -0.4, 0.4)
        y = s.add("Conv", x, weights, pads=[1] * (2 * rank), strides=[2] * rank)
    y = finish(s, conv(s, y, same=True))
    if s.chance(0.5):
        weights = s.weights([s.shape(y)[1], 3, *[2] * rank], x, -0.5, 0.5)
        y = s.add("ConvTranspose", y, weights, strides=[2] * rank)
    else:
        scales = s.constant(np.array([1, 1] + [2] * rank, np.float32))
        y = s.add("Resize", y, "", scales, mode=s.pick("nearest", "linear"))
    # Odd extents: the larger is cropped, or the smaller padded.
    wanted, got = s.shape(x)[2:], s.shape(y)[2:]
    if s.chance(0.5):
        y = s.add("Pad", y, s.ints(0, 0, *[0] * rank, 0, 0, *(m - n for m, n in zip(wanted, got))))
    elif wanted != got:
        extents = [min(m, n) for m, n in zip(wanted, got)]
        bounds = s.ints(*[0] * rank), s.ints(*extents), s.ints(*range(2, rank + 2))
        x, y = s.add("Slice", x, *bounds), s.add("Slice", y, *bounds)
    if s.shape(x)[1] == s.shape(y)[1] and s.chance(0.5):
        s.add("Add", x, y)
    else:
        s.add("Concat", x, y, axis=1)
