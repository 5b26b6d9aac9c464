# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A segmentation network with atrous spatial pyramid pooling, as DeepLabV3 is (arXiv:1706.05587, figure 5)."""

from .graph import Graph


def _conv(g, x, cin, cout, size, stride=1, dilation=1, gain=1.0):
    return g.batch_norm(
        g.conv(x, cin, cout, (size, size), stride, dilation=dilation, bias=False), cout, gain
    )


def _block(g, x, cin, cout, stride=1, dilation=1):
    y = g.op("Relu", _conv(g, x, cin, cout, 3, stride, dilation))
    y = _conv(g, y, cout, cout, 3, dilation=dilation, gain=0.3)
    if cin != cout or stride != 1:
        x = _conv(g, x, cin, cout, 1, stride)
    return g.op("Relu", g.op("Add", x, y))


def segmenter(
    batch=1, height=257, width=257, base=32, rates=(6, 12, 18), classes=21, opset=17, seed=0
):
    """Input `image` (batch, 3, height, width); output `logits` (batch, classes, height, width).

    Features have an eighth of the image's resolution. Blocks behind that dilate by 2 and 4.
    """
    g = Graph("segmenter", opset, seed)
    image = g.input("image", [batch, 3, height, width])
    x = g.op("Relu", _conv(g, image, 3, base, 7, 2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x = _block(g, x, base, base)
    x = _block(g, x, base, 2 * base, stride=2)
    x = _block(g, x, 2 * base, 4 * base, dilation=2)
    x = _block(g, x, 4 * base, 8 * base, dilation=4)
    branches = [_conv(g, x, 8 * base, 2 * base, 1)]
    branches += [_conv(g, x, 8 * base, 2 * base, 3, dilation=rate) for rate in rates]
    pooled = g.op("Relu", g.conv(g.op("GlobalAveragePool", x), 8 * base, 2 * base, (1, 1)))
    branches = [g.op("Relu", branch) for branch in branches]
    branches.append(g.op("Expand", pooled, g.op("Shape", branches[0])))
    x = g.op("Concat", *branches, axis=1)
    x = g.op("Relu", _conv(g, x, 2 * base * len(branches), 2 * base, 1))
    x = g.op("Relu", _conv(g, x, 2 * base, 2 * base, 3))
    x = g.conv(x, 2 * base, classes, (1, 1))
    counts = g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(2))
    extents = g.op("Slice", g.op("Shape", image), g.ints(2), g.ints(4))
    sizes = g.op("Concat", counts, extents, axis=0)
    x = g.op("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")
    g.output(x, "logits", 4)
    return g.build()
