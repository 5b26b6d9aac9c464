# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One step of a forecast: a U-Net on a grid of latitudes and longitudes, which go around the world."""

import numpy as np

from .graph import Graph


def _around(g, x, pad):
    """`x` with so many columns of the other end at both ends, and rows of zeros beyond the poles."""
    x = g.op("Pad", x, g.ints(0, 0, 0, pad, 0, 0, 0, pad), mode="wrap")
    return g.op("Pad", x, g.ints(0, 0, pad, 0, 0, 0, pad, 0), g.constant(0.0))


def _conv(g, x, cin, cout):
    return g.conv(_around(g, x, 1), cin, cout, (3, 3), pad=0)


def _block(g, x, cin, cout):
    for channels in (cin, cout):
        x = g.op("Relu", _conv(g, x, channels, cout))
    return x


def _drift(g, x, variables):
    """What is there comes from the west, and spreads a little: a filter of its own for each variable."""
    taps = np.array([0.05, 0.35, 0.35, 0.05], np.float32)
    across = np.array([0.05, 0.9, 0.05], np.float32)
    kernel = np.outer(across, np.concatenate([taps, np.zeros(3, np.float32)]))
    kernel /= kernel.sum()
    weight = g.weight(np.tile(kernel.astype(np.float32), (variables, 1, 1, 1)))
    x = g.op("Pad", x, g.ints(0, 0, 0, 3, 0, 0, 0, 3), mode="wrap")
    x = g.op("Pad", x, g.ints(0, 0, 1, 0, 0, 0, 1, 0), mode="edge")
    return g.op("Conv", x, weight, kernel_shape=list(kernel.shape), group=variables)


def weather(variables=8, static=2, height=181, width=360, base=8, levels=3, opset=19, seed=0):
    """Inputs `state` (1, variables, height, width), what the weather is, `ground` (1, static, height, width), which stays,
    and `sun` (1, 1, height, width), which differs from step to step; output `next` is `state` some time later.

    Heights may be odd, as the poles are rows of their own; `width` is a multiple of 2 to the power of `levels` - 1.
    """
    g = Graph("weather", opset, seed)
    state = g.input("state", [1, variables, height, width])
    ground = g.input("ground", [1, static, height, width])
    sun = g.input("sun", [1, 1, height, width])
    x = g.op("Concat", state, ground, sun, axis=1)
    widths = [base << level for level in range(levels)]
    x = _block(g, x, variables + static + 1, widths[0])
    skips, heights = [], [height]
    for level in range(1, levels):
        skips.append(x)
        heights.append((heights[-1] + 1) // 2)
        # Rows that a window lacks at the pole are zeros.
        x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, heights[-2] % 2, 0])
        x = _block(g, x, widths[level - 1], widths[level])
    for level in reversed(range(levels - 1)):
        x = g.conv_transpose(x, widths[level + 1], widths[level], (2, 2), 2)
        x = g.op("Slice", x, g.ints(0), g.ints(heights[level]), g.ints(2))
        x = _block(g, g.op("Concat", skips.pop(), x, axis=1), 2 * widths[level], widths[level])
    change = g.op("Tanh", g.conv(x, widths[0], variables, (1, 1)))
    drifted = _drift(g, state, variables)
    g.output(g.op("Add", drifted, g.op("Mul", change, g.constant(0.02))), "next", 4)
    return g.build()
