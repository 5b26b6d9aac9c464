# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier neural operators over two or three dimensions, as exporters write them: transforms are DFT nodes."""

import itertools

from .graph import Graph
from .spectra import invert_real, part, transform
from .transformer import gelu


def _multiply(g, x, weight, letters):
    """The products of complex numbers x (batch, in, modes, 2) and (in, out, modes, 2), summed over the second."""
    equation = f"bi{letters},io{letters}->bo{letters}"
    last = len(letters) + 2
    a, b = (g.op("Squeeze", part(g, x, last, i, i + 1), g.ints(last)) for i in (0, 1))
    c, d = (g.weight(weight[..., i]) for i in (0, 1))
    product = lambda v, w: g.op("Einsum", v, w, equation=equation)  # noqa: E731
    real = g.op("Sub", product(a, c), product(b, d))
    imaginary = g.op("Add", product(a, d), product(b, c))
    return g.op("Concat", *(g.op("Unsqueeze", v, g.ints(last)) for v in (real, imaginary)), axis=last)


def _spectral(g, x, channels, extents, modes, early):
    """Products of the lowest modes of x (batch, channels, extents) with weights. `early`: cut off as soon as may be."""
    rank = len(extents)
    axes = list(range(2, 2 + rank))
    x = transform(g, g.op("Unsqueeze", x, g.ints(2 + rank)), axes[-1], onesided=1)
    cut = lambda v: part(g, v, axes[-1], 0, modes[-1])  # noqa: E731
    x = cut(x) if early else x
    for axis in reversed(axes[:-1]):
        x = transform(g, x, axis)
    x = x if early else cut(x)
    # Each dimension but the last has the modes of both signs: corners of the spectrum.
    scale = 1 / channels
    corners = {}
    for signs in itertools.product((0, 1), repeat=rank - 1):
        corner = x
        for axis, sign in zip(axes, signs):
            m = modes[axis - 2]
            corner = part(g, corner, axis, *((-m, 2**62) if sign else (0, m)))
        weight = g.uniform((channels, channels, *modes, 2), -scale, scale) * 2
        corners[signs] = _multiply(g, corner, weight, "xyz"[:rank])
    # Zeros between the corners, innermost dimensions first.
    for axis in reversed(axes[:-1]):
        missing = extents[axis - 2] - 2 * modes[axis - 2]
        inner = {signs[:-1] for signs in corners}
        joined = {}
        for signs in inner:
            pads = [0] * (2 * (rank + 3))
            pads[rank + 3 + axis] = missing
            low = g.op("Pad", corners[*signs, 0], g.ints(*pads))
            joined[signs] = transform(g, g.op("Concat", low, corners[*signs, 1], axis=axis), axis, inverse=1)
        corners = joined
    pads = [0] * (2 * (rank + 3))
    pads[rank + 3 + axes[-1]] = extents[-1] // 2 + 1 - modes[-1]
    x = g.op("Pad", corners[()], g.ints(*pads))
    return g.op("Squeeze", invert_real(g, x, axes[-1], extents[-1]), g.ints(2 + rank))


def fno(extents, modes, batch=1, channels=12, layers=2, early=False, opset=17, seed=0):
    """Input `field` (batch, 3, extents), output `solution` (batch, 1, extents).

    Each of the layers keeps `modes` of the dimensions, for those but the last one of both signs.
    """
    g = Graph("fno", opset, seed)
    x = g.input("field", [batch, 3, *extents])
    ones = (1,) * len(extents)
    x = g.conv(x, 3, channels, ones)
    for _ in range(layers):
        x = g.op("Add", _spectral(g, x, channels, extents, modes, early), g.conv(x, channels, channels, ones))
        x = gelu(g, x)
    x = gelu(g, g.conv(x, channels, 2 * channels, ones))
    g.output(g.conv(x, 2 * channels, 1, ones), "solution", 2 + len(extents))
    return g.build()


def fno2d(height=48, width=60, modes=(9, 11), **sizes):
    return fno((height, width), modes, **sizes)


def fno3d(depth=12, height=20, width=18, modes=(4, 5, 6), **sizes):
    return fno((depth, height, width), modes, early=True, **sizes)
