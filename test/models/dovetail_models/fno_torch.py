# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Fourier neural operator as its PyTorch code is exported: modes are read and written by slices of whole spectra."""

import numpy as np
from onnx import numpy_helper

from .graph import Graph
from .spectra import irfft2, part, rfft2
from .transformer import gelu

_END = np.iinfo(np.int64).max


def _slice_scatter(g, x, source, axis, start, end):
    """x with `source` in place of its part, as torch.slice_scatter is exported."""
    extent = g.op("Gather", g.op("Shape", x), g.constant(axis, np.int64), axis=0)
    index = g.op("Range", g.constant(0, np.int64), extent, g.constant(1, np.int64))
    index = part(g, index, 0, start, end)
    # Dimensions behind it, then those before it.
    index = g.op("Unsqueeze", index, g.ints(*range(1, 5 - axis)))
    index = g.op("Expand", index, g.op("Shape", source))
    return g.op("ScatterElements", x, index, source, axis=axis)


def _multiply(g, x, weight):
    """torch.einsum("bixy,ioxy->boxy") of complex numbers, by their parts."""
    parts = []
    for left, right in ((0, 0), (1, 1), (0, 1), (1, 0)):
        a = g.op("Gather", x, g.constant(left, np.int64), axis=-1)
        parts.append(g.op("Einsum", a, g.weight(weight[..., right]), equation="bixy,ioxy->boxy"))
    real, imaginary = g.op("Sub", parts[0], parts[1]), g.op("Add", parts[2], parts[3])
    return g.op("Concat", *(g.op("Unsqueeze", v, g.ints(-1)) for v in (real, imaginary)), axis=-1)


def _spectral(g, x, batch, channels, extents, modes):
    height, width = extents
    spectrum = rfft2(g, x, (2, 3))
    shape = g.ints(batch, channels, height, width // 2 + 1, 2)
    out = g.op("ConstantOfShape", shape, value=numpy_helper.from_array(np.zeros(1, np.float32)))
    for start, end in ((0, modes[0]), (-modes[0], _END)):
        kept = part(g, part(g, spectrum, 2, start, end), 3, 0, modes[1])
        weight = g.uniform((channels, channels, *modes, 2), -2 / channels, 2 / channels)
        rows = _slice_scatter(g, part(g, out, 2, start, end), _multiply(g, kept, weight), 3, 0, modes[1])
        out = _slice_scatter(g, out, rows, 2, start, end)
    return irfft2(g, out, (2, 3), width)


def fno2d_torch(batch=1, height=48, width=60, modes=(9, 11), channels=12, layers=2, opset=18, seed=0):
    """Input `field` (batch, 3, height, width), output `solution` (batch, 1, height, width).

    Each of the layers keeps `modes` of both dimensions, of the height of both signs.
    """
    g = Graph("fno2d_torch", opset, seed)
    x = g.input("field", [batch, 3, height, width])
    x = g.conv(x, 3, channels, (1, 1))
    for _ in range(layers):
        y = _spectral(g, x, batch, channels, (height, width), modes)
        x = gelu(g, g.op("Add", y, g.conv(x, channels, channels, (1, 1))))
    x = gelu(g, g.conv(x, channels, 2 * channels, (1, 1)))
    g.output(g.conv(x, 2 * channels, 1, (1, 1)), "solution", 4)
    return g.build()
