# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A pyramid of deformable convolutions, as torchvision and mmcv export them."""

from .graph import Graph


def _deform_conv(g, x, cin, cout, stride=1, groups=1, offset_groups=1):
    """A modulated deformable convolution: another one gives offsets, in two halves, and the mask."""
    taps = 9
    count = 3 * offset_groups * taps
    weight = g.weight(g.normal((count, cin, 3, 3), (0.7 / (9 * cin)) ** 0.5))
    window = dict(kernel_shape=[3, 3], strides=[stride] * 2, pads=[1] * 4, dilations=[1, 1])
    given = g.op("Conv", x, weight, g.weight(g.normal((count,), 0.5), "bias"), group=1, **window)
    parts = g.op("Split", given, outputs=3, axis=1, num_outputs=3)
    offset = g.op("Concat", parts[0], parts[1], axis=1)
    mask = g.op("Sigmoid", parts[2])
    fan_in = cin // groups * taps
    # The mask halves what is seen, and between two elements their mean is.
    weight = g.weight(g.normal((cout, cin // groups, 3, 3), (12 / fan_in) ** 0.5))
    bias = g.weight(g.normal((cout,), 0.1), "bias")
    return g.op(
        "DeformConv", x, weight, offset, bias, mask, group=groups, offset_group=offset_groups, **window
    )


def _block(g, x, cin, cout, stride, groups=1, offset_groups=1):
    y = g.op("Relu", g.batch_norm(g.conv(x, cin, cout, (1, 1), bias=False), cout))
    y = g.op("Relu", g.batch_norm(_deform_conv(g, y, cout, cout, stride, groups, offset_groups), cout))
    y = g.batch_norm(g.conv(y, cout, cout, (1, 1), bias=False), cout, gain=0.3)
    shortcut = g.batch_norm(g.conv(x, cin, cout, (1, 1), stride=stride, bias=False), cout, gain=0.7)
    return g.op("Relu", g.op("Add", y, shortcut))


def deformable_pyramid(batch=1, height=96, width=88, base=16, levels=3, opset=19, seed=0):
    """Stages whose 3 x 3 convolutions are deformable, and a top-down path that adds them up.

    Input `image` (batch, 3, height, width); outputs `level0`, ... (batch, base, height / 2^(k + 2), ...).
    """
    g = Graph("deformable_pyramid", opset, seed)
    x = g.input("image", [batch, 3, height, width])
    x = g.op("Relu", g.batch_norm(g.conv(x, 3, base, (7, 7), stride=2, bias=False), base))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    maps, channels = [], base
    for level in range(levels):
        x = _block(g, x, channels, base << level, 1 if level == 0 else 2, 1 + level % 2, 1 + level % 2)
        channels = base << level
        maps.append(x)
    top = None
    for level in reversed(range(levels)):
        lateral = g.conv(maps[level], base << level, base, (1, 1))
        if top is not None:
            # To the extents of the finer level, which need not be twice as large.
            sizes = g.op("Shape", lateral)
            larger = g.op("Resize", top, "", "", sizes, mode="nearest", nearest_mode="floor",
                          coordinate_transformation_mode="asymmetric")
            lateral = g.op("Add", lateral, larger)
        top = lateral
        g.output(_deform_conv(g, top, base, base), f"level{level}", 4)
    return g.build()
