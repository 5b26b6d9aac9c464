# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An adaptive Fourier neural operator (FourCastNet): patches are mixed by small networks of their spectrum."""

import numpy as np

from .graph import Graph
from .spectra import irfft2, rfft2
from .transformer import gelu, layer_norm


def _layer(g, real, imaginary, blocks, size):
    """A linear layer of complex numbers (..., blocks, size), as einsums of their parts."""
    weight = g.normal((2, blocks, size, size), (2 * size) ** -0.5)
    bias = g.normal((2, blocks, size), 0.02)
    product = lambda x, w: g.op("Einsum", x, g.weight(w), equation="...bi,bio->...bo")  # noqa: E731
    first = g.op("Sub", product(real, weight[0]), product(imaginary, weight[1]))
    second = g.op("Add", product(imaginary, weight[0]), product(real, weight[1]))
    return g.op("Add", first, g.weight(bias[0], "bias")), g.op("Add", second, g.weight(bias[1], "bias"))


def _filter(g, x, rows, columns, size, blocks, shrink):
    """Of (batch, rows, columns, size)."""
    spectrum = rfft2(g, x, (1, 2), is_unitary=True)
    spectrum = g.op("Reshape", spectrum, g.ints(-1, rows, columns // 2 + 1, blocks, size // blocks, 2))
    real, imaginary = (g.op("Gather", spectrum, g.constant(i, np.int64), axis=-1) for i in range(2))
    real, imaginary = (g.op("Relu", v) for v in _layer(g, real, imaginary, blocks, size // blocks))
    real, imaginary = _layer(g, real, imaginary, blocks, size // blocks)
    spectrum = g.op("Concat", *(g.op("Unsqueeze", v, g.ints(-1)) for v in (real, imaginary)), axis=-1)
    spectrum = g.op("Shrink", spectrum, lambd=shrink, bias=shrink)
    spectrum = g.op("Reshape", spectrum, g.ints(-1, rows, columns // 2 + 1, size, 2))
    return g.op("Add", irfft2(g, spectrum, (1, 2), columns, is_unitary=True), x)


def afno(
    batch=1,
    height=72,
    width=96,
    channels=5,
    patch=6,
    size=48,
    blocks=4,
    layers=2,
    shrink=0.01,
    opset=17,
    seed=0,
):
    """Input `fields` (batch, channels, height, width). Output `forecast` of the same shape.

    Patches must fill height and width, and `blocks` divide `size`.
    """
    g = Graph("afno", opset, seed)
    x = g.input("fields", [batch, channels, height, width])
    x = g.conv(x, channels, size, (patch, patch), stride=patch, pad=0)
    rows, columns = height // patch, width // patch
    x = g.op("Transpose", g.op("Reshape", x, g.ints(0, size, -1)), perm=[0, 2, 1])
    x = g.op("Add", x, g.weight(g.normal((1, rows * columns, size), 0.2), "positions"))
    x = g.op("Reshape", x, g.ints(batch, rows, columns, size))
    for _ in range(layers):
        x = g.op("Add", x, _filter(g, layer_norm(g, x, size, False), rows, columns, size, blocks, shrink))
        y = gelu(g, g.linear(layer_norm(g, x, size, False), size, 4 * size))
        x = g.op("Add", x, g.linear(y, 4 * size, size))
    x = g.linear(x, size, channels * patch * patch, bias=False)
    # einops' "b h w (p1 p2 c) -> b c (h p1) (w p2)".
    x = g.op("Reshape", x, g.ints(batch, rows, columns, patch, patch, channels))
    x = g.op("Transpose", x, perm=[0, 5, 1, 3, 2, 4])
    g.output(g.op("Reshape", x, g.ints(batch, channels, height, width)), "forecast", 4)
    return g.build()
