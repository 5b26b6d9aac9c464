# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A WaveNet: causal convolutions of two taps, each of which looks twice as far back (arXiv:1609.03499, figure 4)."""

from .graph import Graph


def wavenet(batch=1, length=4000, channels=64, stacks=2, dilations=8, classes=256, opset=17, seed=0):
    """Input `signal` (batch, 1, length); output `logits` (batch, classes, length), which see no later sample."""
    g = Graph("wavenet", opset, seed)
    x = g.conv(g.input("signal", [batch, 1, length]), 1, channels, (2,), pad=(1, 0))
    skips = None
    for dilation in [2**i for i in range(dilations)] * stacks:
        y = g.conv(x, channels, 2 * channels, (2,), pad=(dilation, 0), dilation=dilation)
        filtered, gate = g.op("Split", y, g.ints(channels, channels), outputs=2, axis=1)
        y = g.op("Mul", g.op("Tanh", filtered), g.op("Sigmoid", gate))
        skip = g.conv(y, channels, channels, (1,))
        skips = skip if skips is None else g.op("Add", skips, skip)
        x = g.op("Add", x, g.conv(y, channels, channels, (1,)))
    x = g.op("Relu", g.conv(g.op("Relu", skips), channels, channels, (1,)))
    g.output(g.conv(x, channels, classes, (1,)), "logits", 3)
    return g.build()
