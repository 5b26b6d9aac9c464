# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""2-D U-Nets as exporters write them, for any height and width."""

import numpy as np

from .graph import Graph


def _double_conv(g, x, cin, cout):
    for channels in (cin, cout):
        x = g.conv(x, channels, cout, (3, 3), bias=False)
        x = g.op("Relu", g.batch_norm(x, cout))
    return x


def _pad_to_skip(g, x, skip):
    """`pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])`, spelt the way an exporter spells it."""
    pads = []
    for dim in (3, 2):
        difference = g.op("Sub", g.dim(skip, dim), g.dim(x, dim))
        before = g.op("Div", difference, g.constant(2, np.int64))
        after = g.op("Sub", difference, before)
        pads += [g.op("Unsqueeze", p, g.ints(0)) for p in (before, after)]
    trailing_first = g.op("Concat", *pads, g.ints(0, 0, 0, 0), axis=0)
    pairs = g.op("Reshape", trailing_first, g.ints(-1, 2))
    leading_first = g.op(
        "Slice", pairs, g.ints(-1), g.ints(np.iinfo(np.int64).min), g.ints(0), g.ints(-1)
    )
    begins_then_ends = g.op("Reshape", g.op("Transpose", leading_first, perm=[1, 0]), g.ints(-1))
    return g.op("Pad", x, begins_then_ends, g.constant(0.0), mode="constant")


def _resize_to_skip(g, x, skip, coordinates):
    """Bilinear upsampling to the height and width of `skip`, sizes through Shape, Slice and Concat."""
    spatial = g.op("Slice", g.op("Shape", skip), g.ints(2), g.ints(4), g.ints(0))
    leading = g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(2), g.ints(0))
    sizes = g.op("Concat", leading, spatial, axis=0)
    return g.op(
        "Resize",
        x,
        "",
        "",
        sizes,
        mode="linear",
        coordinate_transformation_mode=coordinates,
        cubic_coeff_a=-0.75,
        nearest_mode="floor",
    )


def unet2d(
    upsampling="transposed",
    batch=1,
    channels=3,
    height=517,
    width=389,
    base=16,
    levels=4,
    classes=2,
    coordinates="pytorch_half_pixel",
    opset=17,
    seed=0,
):
    """Input `image` (batch, channels, height, width); output `mask` (batch, classes, height, width).

    `upsampling` is "transposed" (then padded to the skip connection's size) or "bilinear"
    (resized to it). Sizes may be strings: symbolic dimensions.
    """
    g = Graph(f"unet2d-{upsampling}", opset, seed)
    x = g.input("image", [batch, channels, height, width])
    widths = [base << level for level in range(levels)]
    x = _double_conv(g, x, channels, widths[0])
    skips = []
    for level in range(1, levels):
        skips.append(x)
        x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = _double_conv(g, x, widths[level - 1], widths[level])
    for level in reversed(range(levels - 1)):
        skip = skips.pop()
        if upsampling == "transposed":
            x = g.conv_transpose(x, widths[level + 1], widths[level], (2, 2), 2)
            x = _pad_to_skip(g, x, skip)
            merged = 2 * widths[level]
        else:
            x = _resize_to_skip(g, x, skip, coordinates)
            merged = widths[level + 1] + widths[level]
        x = g.op("Concat", skip, x, axis=1)
        x = _double_conv(g, x, merged, widths[level])
    x = g.conv(x, widths[0], classes, (1, 1))
    g.output(g.op("Sigmoid", x), "mask", 4)
    return g.build()
