# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that read a window around each position."""

import numpy as np

from .draft import generates

_EXTENTS = {1: 40, 2: 20, 3: 9}


def _window(d, max_dilation=3):
    """Kernel, strides and dilations for 1 to 3 spatial dimensions."""
    rank = d.pick(1, 2, 2, 2, 3)
    kernel = [d.pick(1, 2, 3, 3, 4, 5, 7) for _ in range(rank)]
    if rank == 3:
        kernel = [min(k, 4) for k in kernel]
    strides = [d.pick(1, 1, 2, 2, 3) for _ in range(rank)]
    dilations = [1 if d.chance(0.6) else d.integer(1, max_dilation) for _ in range(rank)]
    return rank, kernel, strides, dilations


def _spatial(d, rank, reach):
    """Extents of at least `reach`, one for each spatial dimension."""
    return [d.integer(max(1, r), max(1, r) + _EXTENTS[rank]) for r in reach]


def _optional(d, values, default):
    """None at times if all of `values` are `default`."""
    return None if all(v == default for v in values) and d.chance(0.5) else values


@generates("Conv", weight=14)
def conv(d, op):
    d.since(7)
    rank, kernel, strides, dilations = _window(d)
    spans = [(k - 1) * s + 1 for k, s in zip(kernel, dilations)]
    groups = d.pick(1, 1, 1, 2, 3)
    most = d.pick(5, 5, 5, 40)  # Few fill no tile of a product.
    cin, cout = groups * d.integer(1, most), groups * d.integer(1, most)
    if d.chance(0.2):  # Depthwise, at times with several results for each channel.
        groups = cin = d.integer(1, 8)
        cout = groups * d.integer(1, 2)
    pads, auto_pad = None, d.pick(None, None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    reach = spans
    if auto_pad in (None, "NOTSET"):
        pads = [d.integer(0, span) for _ in range(2) for span in spans]
        reach = [span - pads[i] - pads[i + rank] for i, span in enumerate(spans)]
        pads = _optional(d, pads, 0)
    elif auto_pad.startswith("SAME"):
        reach = [1] * rank
        # What SAME means for a dilated window, or one that skips elements, is undecided.
        dilations = [1] * rank
        strides = [min(s, k) for s, k in zip(strides, kernel)]
    shape = [d.integer(1, 3), cin, *_spatial(d, rank, reach)]
    fan_in = cin // groups * int(np.prod(kernel))
    weight = d.values((cout, cin // groups, *kernel), high=3 / fan_in**0.5, low=-3 / fan_in**0.5)
    inputs = [d.input(d.values(shape)), d.either(weight, 0.8)]
    if d.chance(0.6):
        inputs.append(d.either(d.values(cout), 0.8))
    d.node(
        "Conv",
        *inputs,
        kernel_shape=kernel if d.chance(0.7) else None,
        strides=_optional(d, strides, 1),
        dilations=_optional(d, dilations, 1),
        group=groups if groups > 1 or d.chance(0.5) else None,
        pads=pads,
        auto_pad=auto_pad,
    )


@generates("ConvTranspose", weight=10)
def conv_transpose(d, op):
    d.since(7)
    rank, kernel, strides, dilations = _window(d)
    spans = [(k - 1) * s + 1 for k, s in zip(kernel, dilations)]
    groups = d.pick(1, 1, 1, 2, 3)
    most = d.pick(4, 4, 4, 40)
    cin, cout = groups * d.integer(1, most), groups * d.integer(1, most)
    largest = {1: 20, 2: 9, 3: 5}[rank]
    extents = [d.integer(1, largest) for _ in range(rank)]
    output_padding = [d.integer(0, s - 1) for s in strides]
    natural = [
        s * (n - 1) + o + span
        for s, n, o, span in zip(strides, extents, output_padding, spans)
    ]
    form = d.pick("pads", "pads", "pads", "output_shape", "auto")
    pads = output_shape = auto_pad = None
    if form == "pads":
        begin = [d.integer(0, min(span - 1, n - 1)) for span, n in zip(spans, natural)]
        end = [d.integer(0, min(span - 1, n - 1 - b)) for span, n, b in zip(spans, natural, begin)]
        pads = _optional(d, begin + end, 0)
    elif form == "output_shape":
        output_shape = [d.integer(max(1, n - 3), n) for n in natural]
        auto_pad = d.pick(None, "SAME_UPPER", "SAME_LOWER")
    else:
        auto_pad = d.pick("SAME_UPPER", "SAME_LOWER", "VALID")
        if auto_pad != "VALID":  # The total padding must not be negative.
            strides = [min(s, span) for s, span in zip(strides, spans)]
            output_padding = [min(o, s - 1) for o, s in zip(output_padding, strides)]
    taps = max(1, int(np.prod(kernel)) // int(np.prod(strides)))
    scale = 3 / (cin // groups * taps) ** 0.5
    inputs = [
        d.input(d.values([d.integer(1, 2), cin, *extents])),
        d.either(d.values((cin, cout // groups, *kernel), low=-scale, high=scale), 0.8),
    ]
    if d.chance(0.5):
        inputs.append(d.either(d.values(cout), 0.8))
    d.node(
        "ConvTranspose",
        *inputs,
        kernel_shape=kernel if d.chance(0.7) else None,
        strides=strides,
        dilations=_optional(d, dilations, 1),
        group=groups if groups > 1 else None,
        output_padding=_optional(d, output_padding, 0),
        output_shape=output_shape,
        pads=pads,
        auto_pad=auto_pad,
    )


@generates("MaxPool", "AveragePool", weight=8)
def pool(d, op):
    opset = d.since(7)
    dilates = opset >= (10 if op == "MaxPool" else 19)
    rank, kernel, strides, dilations = _window(d)
    if not dilates:
        dilations = [1] * rank
    spans = [(k - 1) * s + 1 for k, s in zip(kernel, dilations)]
    pads, auto_pad = None, d.pick(None, None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    reach = spans
    if auto_pad in (None, "NOTSET"):
        # A pad as wide as the kernel would make windows without a single element.
        pads = [d.integer(0, k - 1) for _ in range(2) for k in kernel]
        reach = [span - min(pads[i], pads[i + rank]) for i, span in enumerate(spans)]
        pads = _optional(d, pads, 0)
    elif auto_pad.startswith("SAME"):
        dilations = [1] * rank
        strides = [min(s, k) for s, k in zip(strides, kernel)]
        reach = kernel
    ceil_mode = d.chance(0.3) if opset >= 10 and auto_pad in (None, "NOTSET") else None
    dtype = np.float32
    if op == "MaxPool":
        d.exact = True
        if opset >= 12 and d.chance(0.1):
            dtype = np.uint8
    x = d.values([d.integer(1, 3), d.integer(1, 5), *_spatial(d, rank, reach)], dtype, -100, 100)
    indices = op == "MaxPool" and opset >= 8 and dtype == np.float32 and d.chance(0.2)
    d.node(
        op,
        d.input(x),
        outputs=2 if indices else 1,
        storage_order=d.pick(None, 0, 1) if indices else None,
        kernel_shape=kernel,
        strides=_optional(d, strides, 1),
        dilations=_optional(d, dilations, 1) if dilates else None,
        pads=pads,
        auto_pad=auto_pad,
        ceil_mode=None if ceil_mode is None else int(ceil_mode),
        count_include_pad=d.pick(None, 0, 1) if op == "AveragePool" else None,
    )


@generates("GlobalAveragePool", "GlobalMaxPool", weight=3)
def global_pool(d, op):
    d.since(7)
    d.exact = op == "GlobalMaxPool"
    d.node(op, d.input(d.values(d.shape(3, 5, 7))))


@generates("LRN", weight=3)
def lrn(d, op):
    d.since(7)
    shape = [d.integer(1, 2), d.integer(1, 14), d.integer(1, 9), d.integer(1, 9)]
    d.node(
        op,
        d.input(d.values(shape)),
        size=d.pick(1, 3, 5, 7),
        alpha=d.pick(None, 1e-4, 0.3),
        beta=d.pick(None, 0.75, 0.5),
        bias=d.pick(None, 1.0, 2.0),
    )
