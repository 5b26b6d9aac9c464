# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A ConvNeXt-like network: depthwise convolutions, and linear layers over channels that lie last."""

from .graph import Graph
from .transformer import gelu, layer_norm


def _norm_of_channels(g, x, channels):
    """A layer normalisation of each pixel of `x` (batch, channels, height, width)."""
    x = layer_norm(g, g.op("Transpose", x, perm=[0, 2, 3, 1]), channels, False)
    return g.op("Transpose", x, perm=[0, 3, 1, 2])


def _block(g, x, channels):
    y = g.conv(x, channels, channels, (7, 7), group=channels)
    y = layer_norm(g, g.op("Transpose", y, perm=[0, 2, 3, 1]), channels, False)
    y = gelu(g, g.linear(y, channels, 4 * channels))
    y = g.linear(y, 4 * channels, channels)
    y = g.op("Mul", g.weight(g.uniform((channels,), 0.2, 0.6), "layer_scale"), y)
    return g.op("Add", x, g.op("Transpose", y, perm=[0, 3, 1, 2]))


def convnext(
    batch=1, height=101, width=77, blocks=(2, 2, 2), base=24, classes=10, opset=17, seed=0
):
    """Input `image` (batch, 3, height, width).

    Outputs `features` (batch, channels, h, w) and `logits` (batch, classes).

    Stage N has `blocks[N]` blocks and `base` * 2**N channels; its height and width are a 4 * 2**N-th,
    rounded down at each step. Sizes of the input may be symbolic.
    """
    g = Graph("convnext", opset, seed)
    x = g.input("image", [batch, 3, height, width])
    x = _norm_of_channels(g, g.conv(x, 3, base, (4, 4), stride=4, pad=0), base)
    for stage, count in enumerate(blocks):
        channels = base << stage
        if stage:
            x = _norm_of_channels(g, x, channels // 2)
            x = g.conv(x, channels // 2, channels, (2, 2), stride=2, pad=0)
        for _ in range(count):
            x = _block(g, x, channels)
    g.output(x, "features", 4)
    x = layer_norm(g, g.op("Flatten", g.op("GlobalAveragePool", x), axis=1), channels, False)
    weight = g.weight(g.normal((classes, channels), channels**-0.5))
    bias = g.weight(g.normal((classes,), 0.1), "bias")
    g.output(g.op("Gemm", x, weight, bias, transB=1), "logits", 2)
    return g.build()
