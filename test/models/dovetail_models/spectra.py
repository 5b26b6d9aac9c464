# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms as exporters write them: nodes DFT, and others around them for real numbers and norms."""

import numpy as np


def part(g, x, axis, start, end, step=1):
    return g.op("Slice", x, g.ints(start), g.ints(end), g.ints(axis), g.ints(step))


def transform(g, x, axis, **attributes):
    """A DFT of x (..., 1 or 2)."""
    if g.opset < 20:
        return g.op("DFT", x, axis=axis, **attributes)
    return g.op("DFT", x, "", g.constant(axis, np.int64), **attributes)


def invert_real(g, spectrum, axis, extent):
    """Real numbers (..., 1) of the first `extent` // 2 + 1 elements of their spectrum."""
    # ONNX Runtime lacks inverse transforms of one side, so exporters add the other one.
    mirrored = part(g, spectrum, axis, (extent - 1) // 2, 0, -1)
    conjugate = g.op("Mul", mirrored, g.constant([1.0, -1.0]))
    whole = g.op("Concat", spectrum, conjugate, axis=axis)
    return part(g, transform(g, whole, axis, inverse=1), -1, 0, 1)


def _root_of_count(g, x, axes):
    """The root of the number of elements of two dimensions, from the shape."""
    extents = g.op("Gather", g.op("Shape", x), g.ints(*axes), axis=0)
    return g.op("Sqrt", g.op("Cast", g.op("ReduceProd", extents, keepdims=0), to=1))


def rfft2(g, x, axes, is_unitary=False):
    """torch.fft.rfft2 of x: its spectrum (..., 2), of one side along the second one of `axes`."""
    signal = g.op("Unsqueeze", x, g.ints(-1))
    spectrum = transform(g, transform(g, signal, axes[1], onesided=1), axes[0])
    return g.op("Div", spectrum, _root_of_count(g, x, axes)) if is_unitary else spectrum


def irfft2(g, spectrum, axes, extent, is_unitary=False):
    """torch.fft.irfft2 of a spectrum (..., 2), where the second one of `axes` gets this extent."""
    x = invert_real(g, transform(g, spectrum, axes[0], inverse=1), axes[1], extent)
    x = g.op("Squeeze", x, g.ints(-1))
    return g.op("Mul", x, _root_of_count(g, x, axes)) if is_unitary else x
