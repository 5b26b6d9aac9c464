# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A classifier of texts that reads bytes: convolutions of two, four and six taps side by side, in several layers."""

from onnx import TensorProto

from .graph import Graph


def byte_cnn(
    batch=1, length=2048, channels=64, taps=(2, 4, 6), layers=3, classes=20, opset=17, seed=0
):
    """Input `text` (batch, length), bytes as i64; output `logits` (batch, classes)."""
    g = Graph("byte_cnn", opset, seed)
    text = g.input("text", [batch, length], TensorProto.INT64)
    x = g.op("Gather", g.weight(g.normal((256, channels))), text, axis=0)
    x = g.op("Transpose", x, perm=[0, 2, 1])
    for layer in range(layers):
        parts = [g.conv(x, channels, channels, (k,), pad=(k // 2 - 1, k // 2)) for k in taps]
        y = g.op("Relu", g.op("Concat", *parts, axis=1))
        y = g.conv(y, channels * len(taps), channels, (1,))
        x = g.op("Relu", g.op("Add", x, y))
        if layer + 1 < layers:
            x = g.op("MaxPool", x, kernel_shape=[2], strides=[2])
    x = g.op("ReduceMax", x, axes=[2], keepdims=0)
    g.output(g.linear(x, channels, classes), "logits", 2)
    return g.build()
