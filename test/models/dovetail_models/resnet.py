# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Residual networks; batch normalisation is kept as nodes."""

from .graph import Graph


def _add_shortcut(g, x, y, cin, cout, stride):
    if cin != cout or stride != 1:
        x = g.batch_norm(g.conv(x, cin, cout, (1, 1), stride=stride, bias=False), cout, gain=0.7)
    return g.op("Relu", g.op("Add", y, x))


def _bottleneck(g, x, cin, middle, cout, stride):
    y = g.op("Relu", g.batch_norm(g.conv(x, cin, middle, (1, 1), bias=False), middle))
    y = g.conv(y, middle, middle, (3, 3), stride=stride, bias=False)
    y = g.op("Relu", g.batch_norm(y, middle))
    # A small gain on the residual branch keeps the sum of many blocks near one.
    y = g.batch_norm(g.conv(y, middle, cout, (1, 1), bias=False), cout, gain=0.3)
    return _add_shortcut(g, x, y, cin, cout, stride)


def _basic_block(g, x, cin, cout, stride):
    y = g.conv(x, cin, cout, (3, 3), stride=stride, bias=False)
    y = g.op("Relu", g.batch_norm(y, cout))
    y = g.batch_norm(g.conv(y, cout, cout, (3, 3), bias=False), cout, gain=0.3)
    return _add_shortcut(g, x, y, cin, cout, stride)


def _stem(g, batch, height, width, base):
    x = g.input("image", [batch, 3, height, width])
    x = g.conv(x, 3, base, (7, 7), stride=2, bias=False)
    x = g.op("Relu", g.batch_norm(x, base))
    return g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])


def _head(g, x, channels, classes):
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    weight = g.weight(g.normal((classes, channels), channels**-0.5))
    bias = g.weight(g.normal((classes,), 0.1), "bias")
    g.output(g.op("Gemm", x, weight, bias, transB=1), "logits", 2)
    return g.build()


def resnet18(
    batch=1, height=224, width=224, blocks=(2, 2, 2, 2), base=64, classes=1000, opset=15, seed=0
):
    """Basic blocks. Input `image` (batch, 3, height, width); output `logits` (batch, classes)."""
    g = Graph("resnet18", opset, seed)
    x = _stem(g, batch, height, width, base)
    channels = base
    for stage, count in enumerate(blocks):
        for block in range(count):
            x = _basic_block(g, x, channels, base << stage, 2 if stage > 0 and block == 0 else 1)
            channels = base << stage
    return _head(g, x, channels, classes)


def resnet50(
    batch=1, height=224, width=224, blocks=(3, 4, 6, 3), base=64, classes=1000, opset=13, seed=0
):
    """Bottleneck blocks. Input `image` (batch, 3, height, width); output `logits` (batch, classes)."""
    g = Graph("resnet50", opset, seed)
    x = _stem(g, batch, height, width, base)
    channels = base
    for stage, count in enumerate(blocks):
        middle = base << stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            x = _bottleneck(g, x, channels, middle, 4 * middle, stride)
            channels = 4 * middle
    return _head(g, x, channels, classes)
