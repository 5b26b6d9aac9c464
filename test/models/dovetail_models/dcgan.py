# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The generator of a DCGAN: transposed convolutions, each of which doubles an image."""

from .graph import Graph


def dcgan(
    batch=1, code=100, height=8, width=10, channels=(256, 128, 64, 32), opset=17, seed=0
):
    """Input `code` (batch, code); output `image` (batch, 3, 8 * height, 8 * width), in [-1, 1].

    There is one doubling fewer than `channels` has entries.
    """
    g = Graph("dcgan", opset, seed)
    x = g.input("code", [batch, code])
    x = g.linear(x, code, channels[0] * height * width)
    x = g.op("Reshape", x, g.ints(-1, channels[0], height, width))
    x = g.op("Relu", g.batch_norm(x, channels[0]))
    for cin, cout in zip(channels, channels[1:]):
        x = g.conv_transpose(x, cin, cout, (4, 4), 2, pad=1)
        x = g.op("Relu", g.batch_norm(x, cout))
    g.output(g.op("Tanh", g.conv(x, channels[-1], 3, (3, 3))), "image", 4)
    return g.build()
