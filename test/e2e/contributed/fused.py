# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with scales, activations and sums."""

import numpy as np
import onnx
from harness.oracle import expected_outputs

from .registry import contributes


@contributes("FusedMatMul", "TransposeMatMul")
def matmul(d, op):
    rank = d.integer(2, 4)
    rows, depth, columns = (d.integer(1, 9) for _ in range(3))
    batch = [d.integer(1, 4) for _ in range(rank - 2)]
    swap = {name: d.pick(None, 0, 1) for name in ("transA", "transB")}
    moved = {name: d.pick(None, 0, 1) for name in ("transBatchA", "transBatchB")} if op == "FusedMatMul" and batch else {}

    def shape(of, first, second):
        first, second = (second, first) if swap["trans" + of] else (first, second)
        # The rows may stand before the batch.
        return [first, *batch, second] if moved.get("transBatch" + of) else [*batch, first, second]

    d.contributed(
        op,
        d.input(d.values(shape("A", rows, depth))),
        d.either(d.values(shape("B", depth, columns))),
        alpha=d.pick(None, 1.0, 0.25, -2.0),
        **swap,
        **moved,
    )


@contributes("FusedGemm")
def gemm(d, op):
    rows, depth, columns = (d.integer(1, 12) for _ in range(3))
    trans_a, trans_b = d.pick(None, 0, 1), d.pick(None, 0, 1)
    operands = [
        d.input(d.values([depth, rows] if trans_a else [rows, depth])),
        d.either(d.values([columns, depth] if trans_b else [depth, columns])),
    ]
    if d.chance(0.6):
        operands.append(d.either(d.values(d.pick([columns], [rows, columns], [1, columns], [rows, 1], [1]))))
    name, *numbers = d.pick(
        ("Relu",), ("Tanh",), ("Sigmoid",), ("Softplus",), ("Softsign",), ("LeakyRelu", "alpha"), ("Elu", "alpha"),
        ("ThresholdedRelu", "alpha"), ("HardSigmoid", "alpha", "beta"), ("Selu", "alpha", "gamma"),
    )  # fmt: skip
    d.contributed(
        op,
        *operands,
        alpha=d.pick(None, 0.5, 2.0),
        beta=d.pick(None, 0.5, -1.0),
        transA=trans_a,
        transB=trans_b,
        activation=name,
        **{f"activation_{n}": d.pick(0.1, 0.5, 1.5) for n in numbers},
    )


def draw_windows(d, stride, most, extent):
    """Group, kernel, auto_pad, dilations, strides, channels, filters, extents and pads of a convolution, of at most so
    large strides, that many channels of a group, and such extents.
    """
    dims = d.integer(1, 3)
    group = d.pick(1, 1, 2, 3)
    kernel = [d.integer(1, 3) for _ in range(dims)]
    auto_pad = d.pick(None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    # ONNX Runtime does not dilate with these.
    dilations = [1 if auto_pad in ("SAME_UPPER", "SAME_LOWER") else d.integer(1, 2) for _ in range(dims)]
    strides = [d.integer(1, stride) for _ in range(dims)]
    channels, filters = group * d.integer(1, most), group * d.integer(1, most)
    spatial = [d.integer((k - 1) * dilation + 1, extent) for k, dilation in zip(kernel, dilations)]
    pads = None
    if auto_pad in (None, "NOTSET") and d.chance(0.7):
        pads = [d.integer(0, k - 1) for k in kernel * 2]
    return group, kernel, auto_pad, dilations, strides, channels, filters, spatial, pads


@contributes("FusedConv", "NhwcFusedConv", "NhwcConv")
def conv(d, op):
    is_last, is_fused = op.startswith("Nhwc"), op != "NhwcConv"
    group, kernel, auto_pad, dilations, strides, channels, filters, spatial, pads = draw_windows(d, 3, 3, 12)
    x = d.values([d.integer(1, 2), channels, *spatial])
    w = d.values([filters, channels // group, *kernel])
    operands = [d.input(_last(x, is_last)), d.either(w, 0.8), ""]
    if d.chance(0.6):
        operands[2] = d.either(d.values([filters]))
    z = d.values(result_shape(x.shape, filters, kernel, dilations, strides, pads, auto_pad))
    if is_fused and d.chance(0.5):
        operands.append(d.input(_last(z, is_last)))
    elif not operands[2]:
        operands.pop()
    name, *numbers = d.pick(
        (None,), ("Relu",), ("Tanh",), ("Sigmoid",), ("LeakyRelu", 0.2), ("HardSigmoid", 0.3, 0.6), ("Clip", -0.5, 1.5)
    )
    fused = dict(activation=name, activation_params=numbers or None) if is_fused else {}
    result = d.contributed(
        op,
        *operands,
        **fused,
        auto_pad=auto_pad,
        dilations=dilations if d.chance(0.9) or max(dilations) > 1 else None,
        group=group if group > 1 or d.chance(0.5) else None,
        kernel_shape=d.pick(kernel, None),
        pads=pads,
        strides=strides,
    )
    if is_last:
        d.expect(result, _last(_channels_first(d, x, z), True))


def _last(array, is_last):
    """`array` with its channels, the second dimension, last."""
    return np.moveaxis(array, 1, -1) if is_last else array


def _channels_first(d, x, z):
    """What ONNX Runtime's FusedConv makes of the operands of the last node: for channels last it has no kernel."""
    draft = type(d)(d.rng)
    values = d.inputs | d.constants | {name: z for name in d.nodes[-1].input[3:4]} | {d.nodes[-1].input[0]: x}
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in d.nodes[-1].attribute}
    names = [draft.input(values[name]) if name else "" for name in d.nodes[-1].input]
    name = draft.contributed("FusedConv", *names, **attributes)
    return expected_outputs(draft.model(), draft.inputs)[name]


def result_shape(shape, filters, kernel, dilations, strides, pads, auto_pad):
    extents = []
    for index, (size, k, dilation, stride) in enumerate(zip(shape[2:], kernel, dilations, strides)):
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            extents.append(-(-size // stride))
            continue
        padding = pads[index] + pads[index + len(kernel)] if pads else 0
        extents.append((size + padding - (k - 1) * dilation - 1) // stride + 1)
    return [shape[0], filters, *extents]
