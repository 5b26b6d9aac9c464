# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A 3-D U-Net with group and instance normalisation, for odd sizes."""

import numpy as np

from .graph import Graph


def _group_norm(g, x, channels, groups):
    """Reshape, InstanceNormalization, Reshape, Mul, Add: how exporters spell a group normalisation."""
    flat = g.op("Reshape", x, g.ints(0, groups, -1))
    ones = g.weight(np.ones(groups, np.float32), "ones")
    zeros = g.weight(np.zeros(groups, np.float32), "zeros")
    normal = g.op("InstanceNormalization", flat, ones, zeros, epsilon=1e-5)
    normal = g.op("Reshape", normal, g.op("Shape", x))
    scaled = g.op("Mul", normal, g.weight(g.uniform((channels, 1, 1, 1), 0.5, 1.5), "scale"))
    return g.op("Add", scaled, g.weight(g.normal((channels, 1, 1, 1), 0.2), "shift"))


def _instance_norm(g, x, channels):
    scale = g.weight(g.uniform((channels,), 0.5, 1.5), "scale")
    shift = g.weight(g.normal((channels,), 0.2), "shift")
    return g.op("InstanceNormalization", x, scale, shift, epsilon=1e-5)


def _resize_to_skip(g, x, skip, mode):
    spatial = g.op("Slice", g.op("Shape", skip), g.ints(2), g.ints(5), g.ints(0))
    leading = g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(2), g.ints(0))
    sizes = g.op("Concat", leading, spatial, axis=0)
    coordinates = "asymmetric" if mode == "nearest" else "half_pixel"
    return g.op(
        "Resize",
        x,
        "",
        "",
        sizes,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode="floor",
    )


def unet3d(
    batch=1,
    channels=2,
    depth=27,
    height=33,
    width=41,
    base=8,
    levels=3,
    groups=4,
    classes=3,
    opset=17,
    seed=0,
):
    """Input `volume` (batch, channels, depth, height, width); output `labels` (batch, classes, ...).

    The encoder uses group normalisation and strided convolutions, the decoder instance
    normalisation, with a nearest and a trilinear upsampling in turn.
    """
    g = Graph("unet3d", opset, seed)
    x = g.input("volume", [batch, channels, depth, height, width])
    widths = [base << level for level in range(levels)]

    def encode(x, cin, cout, stride):
        x = g.conv(x, cin, cout, (3, 3, 3), stride=stride)
        x = g.op("LeakyRelu", _group_norm(g, x, cout, groups), alpha=0.01)
        x = g.conv(x, cout, cout, (3, 3, 3))
        return g.op("LeakyRelu", _group_norm(g, x, cout, groups), alpha=0.01)

    x = encode(x, channels, widths[0], 1)
    skips = []
    for level in range(1, levels):
        skips.append(x)
        x = encode(x, widths[level - 1], widths[level], 2)
    for level in reversed(range(levels - 1)):
        skip = skips.pop()
        x = _resize_to_skip(g, x, skip, "nearest" if level % 2 else "linear")
        x = g.op("Concat", x, skip, axis=1)
        x = g.conv(x, widths[level + 1] + widths[level], widths[level], (3, 3, 3))
        x = g.op("Relu", _instance_norm(g, x, widths[level]))
    x = g.conv(x, widths[0], classes, (1, 1, 1))
    g.output(g.op("Softmax", x, axis=1), "labels", 5)
    return g.build()
