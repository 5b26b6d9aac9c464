# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of inverted residuals, most of whose work is in depthwise and 1 x 1 convolutions."""

from .graph import Graph

#: Kernel, inner channels, channels, whether channels are weighted, activation, stride.
_SMALL = (
    (3, 16, 16, True, "Relu", 2),
    (3, 72, 24, False, "Relu", 2),
    (3, 88, 24, False, "Relu", 1),
    (5, 96, 40, True, "HardSwish", 2),
    (5, 240, 40, True, "HardSwish", 1),
    (5, 240, 40, True, "HardSwish", 1),
    (5, 120, 48, True, "HardSwish", 1),
    (5, 144, 48, True, "HardSwish", 1),
    (5, 288, 96, True, "HardSwish", 2),
    (5, 576, 96, True, "HardSwish", 1),
    (5, 576, 96, True, "HardSwish", 1),
)
#: How many times as many inner channels, kernel, channels, blocks, stride of the first.
_B0 = (
    (1, 3, 16, 1, 1),
    (6, 3, 24, 2, 2),
    (6, 5, 40, 2, 2),
    (6, 3, 80, 3, 2),
    (6, 5, 112, 3, 1),
    (6, 5, 192, 4, 2),
    (6, 3, 320, 1, 1),
)


def _activate(g, x, kind):
    return g.op("Mul", x, g.op("Sigmoid", x)) if kind == "SiLU" else g.op(kind, x)


def _conv(g, x, cin, cout, kernel, stride=1, group=1, activation=None, gain=1.0):
    x = g.conv(x, cin, cout, (kernel, kernel), stride=stride, group=group, bias=False)
    x = g.batch_norm(x, cout, gain)
    return _activate(g, x, activation) if activation else x


def _weigh_channels(g, x, channels, squeezed, activation, gate):
    """Squeeze and excitation."""
    y = g.op("GlobalAveragePool", x)
    y = _activate(g, g.conv(y, channels, squeezed, (1, 1)), activation)
    y = g.conv(y, squeezed, channels, (1, 1))
    return g.op("Mul", x, g.op(gate, y))


def _inverted_residual(g, x, cin, middle, cout, kernel, stride, activation, weigh):
    y = _conv(g, x, cin, middle, 1, activation=activation) if middle != cin else x
    y = _conv(g, y, middle, middle, kernel, stride, group=middle, activation=activation)
    y = weigh(y, middle)
    if cin != cout or stride != 1:
        return _conv(g, y, middle, cout, 1)
    # A small gain on the residual branch keeps the sum of many blocks near one.
    return g.op("Add", x, _conv(g, y, middle, cout, 1, gain=0.3))


def _logits(g, x, channels, classes):
    weight = g.weight(g.normal((classes, channels), channels**-0.5))
    bias = g.weight(g.normal((classes,), 0.1), "bias")
    g.output(g.op("Gemm", x, weight, bias, transB=1), "logits", 2)
    return g.build()


def mobilenet_v3_small(batch=1, height=224, width=224, classes=1000, opset=17, seed=0):
    """Input `image` (batch, 3, height, width); output `logits` (batch, classes)."""
    g = Graph("mobilenet_v3_small", opset, seed)
    x = g.input("image", [batch, 3, height, width])
    x = _conv(g, x, 3, 16, 3, 2, activation="HardSwish")
    channels = 16
    for kernel, middle, cout, weighs, activation, stride in _SMALL:

        def weigh(y, count, weighs=weighs):
            # A quarter of the channels, in steps of eight.
            squeezed = max(8, (count // 4 + 4) // 8 * 8)
            return _weigh_channels(g, y, count, squeezed, "Relu", "HardSigmoid") if weighs else y

        x = _inverted_residual(g, x, channels, middle, cout, kernel, stride, activation, weigh)
        channels = cout
    x = _conv(g, x, channels, 576, 1, activation="HardSwish")
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    x = g.op("HardSwish", g.linear(x, 576, 1024))
    return _logits(g, x, 1024, classes)


def efficientnet_b0(batch=1, height=224, width=224, classes=1000, opset=17, seed=0):
    """Input `image` (batch, 3, height, width); output `logits` (batch, classes)."""
    g = Graph("efficientnet_b0", opset, seed)
    x = g.input("image", [batch, 3, height, width])
    x = _conv(g, x, 3, 32, 3, 2, activation="SiLU")
    channels = 32
    for factor, kernel, cout, blocks, stride in _B0:
        for block in range(blocks):
            cin, squeezed = channels, max(1, channels // 4)

            def weigh(y, count, squeezed=squeezed):
                return _weigh_channels(g, y, count, squeezed, "SiLU", "Sigmoid")

            x = _inverted_residual(
                g, x, cin, factor * cin, cout, kernel, 1 if block else stride, "SiLU", weigh
            )
            channels = cout
    x = _conv(g, x, channels, 1280, 1, activation="SiLU")
    return _logits(g, g.op("Flatten", g.op("GlobalAveragePool", x), axis=1), 1280, classes)
