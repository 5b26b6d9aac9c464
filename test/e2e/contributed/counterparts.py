# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that ONNX has another form of."""

import numpy as np
from onnx import TensorProto

from .registry import contributes


@contributes("Trilu")
def trilu(d, op):
    d.exact = True
    shape = d.shape(2, 4)
    k = [] if d.chance(0.4) else [d.constant(np.array(d.integer(-shape[-2] - 1, shape[-1] + 1), np.int64))]
    d.contributed(op, d.input(d.values(shape, d.pick(np.float32, np.int64, np.float64))), *k, upper=d.pick(None, 0, 1))


@contributes("ExpandDims")
def expand_dims(d, op):
    d.exact = True
    shape = d.shape(1, 4)
    axis = d.constant(np.array(d.integer(-len(shape) - 1, len(shape)), np.int32))
    d.contributed(op, d.input(d.values(shape, d.pick(np.float32, np.int64, np.uint8))), axis)


@contributes("GridSample")
def grid_sample(d, op):
    batch, channels, high, wide = d.integer(1, 3), d.integer(1, 4), d.integer(2, 9), d.integer(2, 9)
    reach = d.pick(1.0, 1.0, 1.5)
    grid = d.values([batch, d.integer(1, 9), d.integer(1, 9), 2], low=-reach, high=reach)
    mode = d.pick(None, "bilinear", "nearest", "bicubic")
    padding = d.pick(None, "zeros", "border", "reflection")
    # ONNX Runtime moves a position that is inside in one dimension because it is outside in another one.
    if padding == "border" and mode == "bicubic":
        padding = "zeros"
    d.contributed(
        op,
        d.input(d.values([batch, channels, high, wide])),
        d.either(grid, 0.3),
        align_corners=d.pick(None, 0, 1),
        mode=mode,
        padding_mode=padding,
    )


@contributes("Range")
def range_(d, op):
    d.exact = True
    dtype = d.pick(np.int64, np.int32, np.float32)
    n, start, step = d.integer(1, 30), d.pick(0, 3, -5), d.pick(None, 1, 2, -3)
    of = d.pick((), (1,))
    put = lambda number: d.constant(np.full(of, number, dtype))
    operands = [put(start), put(start + n * (step or 1)), *([] if step is None else [put(step)])]
    positions = d.contributed(op, *operands, final=False)
    d.node("Add", d.input(d.values([*d.shape(0, 2), n], dtype)), positions)


@contributes("Pad")
def pad(d, op):
    d.exact = True
    mode = d.pick(None, "constant", "reflect", "edge")
    shape = d.shape(1, 4)

    def width(n):
        if d.chance(0.3):
            return 0
        if mode in (None, "constant"):
            return d.integer(-((n - 1) // 2), 6)
        return d.integer(0, n - 1 if mode == "reflect" else 6)

    pads = np.array([width(n) for n in shape] + [width(n) for n in shape], np.int64)
    value = [d.either(np.full(d.pick((), (1,)), 1.5, np.float32))] if d.chance(0.5) else []
    operands = d.input(d.values(shape)), d.constant(pads[None] if d.chance(0.3) else pads)
    d.contributed(op, *operands, *value, mode=mode)


@contributes("GatherND")
def gather_nd(d, op):
    d.exact = True
    shape = d.shape(1, 4)
    depth = d.integer(1, len(shape))
    index_type = d.pick(np.int32, np.int64)
    indices = d.rng.integers(0, shape[:depth], [*d.shape(1, 2, 5), depth]).astype(index_type)
    d.contributed(op, d.input(d.values(shape, d.pick(np.float32, np.int64, np.uint8))), d.either(indices, 0.4))


@contributes("Unique")
def unique(d, op):
    d.exact = True
    extent = d.integer(1, 30)
    values = d.values([extent], np.int32, 0, d.pick(0, 1, 2, 9)).astype(np.float32)
    names = d.contributed(op, d.input(values), outputs=3)
    for name in names:
        d.bounded[name] = [extent]
    for name in names[1:]:
        d.declare_type(name, TensorProto.INT64, 1)


@contributes("CropAndResize")
def crop_and_resize(d, op):
    batch, boxes = d.integer(1, 3), d.integer(1, 5)
    shape = [batch, d.integer(1, 4), d.integer(1, 12), d.integer(1, 12)]
    reach = d.pick(0, 0, 0.3)
    rois = d.values([boxes, 4], low=-reach, high=1 + reach)
    if d.chance(0.3):
        rois[0] = [0, 0, 1, 1]
    size = np.array([d.integer(1, 7), d.integer(1, 7)], np.int32)
    d.contributed(
        op,
        d.input(d.values(shape)),
        d.either(rois, 0.3),
        d.either(d.values([boxes], np.int32, 0, batch - 1), 0.5),
        d.constant(size),
        extrapolation_value=d.pick(None, 2.5),
        mode=d.pick(None, "bilinear", "nearest"),
    )


@contributes("Inverse")
def inverse(d, op):
    extent = d.integer(1, 6)
    dtype = d.pick(np.float32, np.float32, np.float64, np.float16)
    x = d.values([*d.shape(0, 2, 4), extent, extent], dtype, -1, 1)
    # Far from singular, with pivots in all places.
    x = x + 3 * np.eye(extent, dtype=dtype)[d.rng.permutation(extent)]
    if dtype == np.float16:
        d.tolerance = 2e-3
    d.contributed(op, d.input(x.astype(dtype)))


# ONNX Runtime has these on GPUs alone.


@contributes("Rfft", refused=("onesided", "normalized", "signal_ndim"))
def rfft(d, op):
    x = d.values([*d.shape(0, 2), 2 * d.integer(1, 20)], d.pick(np.float32, np.float64))
    name = d.contributed(op, d.input(x), **{key: value for key, value in _FFT.items() if d.chance(0.5)})
    y = np.fft.rfft(x.astype(np.float64))
    d.expect(name, np.stack([y.real, y.imag], -1).astype(x.dtype))


@contributes("Irfft", refused=("onesided", "normalized"))
def irfft(d, op):
    x = d.values([*d.shape(0, 2), d.integer(2, 20), 2], d.pick(np.float32, np.float64))
    attributes = {key: value for key, value in _FFT.items() if d.chance(0.5)}
    name = d.contributed(op, d.input(x), **attributes | {"signal_ndim": 1})
    wide = x.astype(np.float64)
    d.expect(name, np.fft.irfft(wide[..., 0] + 1j * wide[..., 1]).astype(x.dtype))


#: The values that are supported.
_FFT = {"onesided": 1, "normalized": 0, "signal_ndim": 1}
