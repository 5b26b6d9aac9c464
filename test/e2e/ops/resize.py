# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resize and Upsample."""

import numpy as np

from .draft import generates

# Exact in binary: whether floor(extent * scale) reaches an integer is then beyond doubt.
_SCALES = (0.375, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.0, 3.0, 2.625)


def _coordinate(mode, x, scale, length_in, length_out, roi):
    """The position in the source of position `x`, as the specification of Resize defines it."""
    if mode == "half_pixel":
        return (x + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return (x + 0.5) / scale - 0.5 if length_out > 1 else x * 0.0
    if mode == "half_pixel_symmetric":
        adjustment = length_out / (scale * length_in)
        return length_in / 2 * (1 - adjustment) + (x + 0.5) / scale - 0.5
    if mode == "align_corners":
        return x * (length_in - 1) / (length_out - 1) if length_out > 1 else x * 0.0
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    begin, end = roi
    if length_out > 1:
        return begin * (length_in - 1) + x * (end - begin) * (length_in - 1) / (length_out - 1)
    return x * 0.0 + 0.5 * (begin + end) * (length_in - 1)


def _is_ambiguous(coordinates, nearest_mode):
    """Whether a rounding error of a coordinate could choose another neighbour."""
    jump = 0.5 if nearest_mode.startswith("round") else 0.0
    distance = np.abs((coordinates - jump) - np.round(coordinates - jump))
    return bool((distance < 1e-3).any())


@generates("Resize", weight=14)
def resize(d, op):
    """Draws again what has no certain answer: nothing is added to the draft before the end."""
    opset = d.since(10)
    if opset >= 18 and d.chance(0.4):
        return antialiased(d, op)
    rank = d.pick(3, 4, 4, 4, 5)
    largest = {3: 30, 4: 14, 5: 7}[rank]
    shape = [d.integer(1, 2), d.integer(1, 4), *(d.integer(1, largest) for _ in range(rank - 2))]
    mode = d.pick("nearest", "linear", "linear")
    coordinates, nearest_mode = "asymmetric", "floor"
    if opset >= 11:
        modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
        if opset >= 19:
            modes.append("half_pixel_symmetric")
        if opset < 13 and mode == "nearest":
            modes.append("tf_half_pixel_for_nn")
        if d.chance(0.1):
            modes = ["tf_crop_and_resize"]
        coordinates = d.pick(*modes)
        nearest_mode = d.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")

    by_sizes = opset >= 11 and d.chance(0.4)
    spatial = range(2, rank)
    scales = [1.0, 1.0, *(d.pick(*_SCALES) for _ in spatial)]
    scales = [float(np.float32(s)) for s in scales]
    sizes = [int(np.floor(n * s)) for n, s in zip(shape, scales)]
    for i in spatial:
        if sizes[i] < 1:
            sizes[i], scales[i] = shape[i], 1.0
        if by_sizes:
            sizes[i] = d.integer(1, 2 * shape[i] + 1)
            scales[i] = sizes[i] / shape[i]

    if sizes == shape and any(s != 1 for s in scales):
        return resize(d, op)  # ONNX Runtime copies the input then, whatever the scales.

    roi = [(0.0, 1.0)] * rank
    if coordinates == "tf_crop_and_resize":
        if any(scales[i] == 1 for i in spatial):
            return resize(d, op)  # ONNX Runtime does not crop what it does not scale.
        for i in spatial:
            begin = d.rng.uniform(-0.2, 0.5)
            roi[i] = (float(np.float32(begin)), float(np.float32(begin + d.rng.uniform(0.2, 0.8))))
    if mode == "nearest":
        for i in (i for i in spatial if scales[i] != 1):
            x = np.arange(sizes[i])
            at = _coordinate(coordinates, x, scales[i], shape[i], sizes[i], roi[i])
            exact = float(np.log2(scales[i])).is_integer() and coordinates not in (
                "align_corners",
                "tf_crop_and_resize",
            )
            if not exact and _is_ambiguous(at, nearest_mode):
                return resize(d, op)

    d.exact = mode == "nearest"
    axes = None
    if opset >= 18 and d.chance(0.4):
        axes = list(spatial)
        if d.chance(0.3):
            axes = [a - rank for a in axes]
    chosen = [a % rank for a in axes] if axes else range(rank)
    inputs = [d.input(d.values(shape))]
    if opset == 10:
        inputs.append(d.constant(np.array(scales, np.float32)))
        d.node(op, *inputs, mode=mode)
        return
    if coordinates == "tf_crop_and_resize":
        corners = [roi[a][0] for a in chosen] + [roi[a][1] for a in chosen]
        inputs.append(d.constant(np.array(corners, np.float32)))
    else:
        inputs.append("" if opset >= 13 else d.constant(np.zeros(0, np.float32)))
    if by_sizes:
        inputs.append("" if opset >= 13 else d.constant(np.zeros(0, np.float32)))
        inputs.append(d.constant(np.array([sizes[a] for a in chosen], np.int64)))
    else:
        inputs.append(d.constant(np.array([scales[a] for a in chosen], np.float32)))
    default = coordinates == "half_pixel" and d.chance(0.5)
    d.node(
        op,
        *inputs,
        mode=mode,
        coordinate_transformation_mode=None if default else coordinates,
        nearest_mode=nearest_mode if mode == "nearest" else None,
        extrapolation_value=d.pick(None, 0.5) if coordinates == "tf_crop_and_resize" else None,
        axes=axes,
    )


def _ties_at_borders(x, axes, coordinates):
    """Whether a result of integers that are halved lies between two of them, at a border, where its weights, thirds or
    sevenths, are not exact."""
    first, taps = {"half_pixel": (-1, (1, 3, 3, 1)), "asymmetric": (-1, (1, 2, 1))}[coordinates]
    values, is_inexact = x.astype(np.float64), np.array(False)
    for axis in axes:
        extent = x.shape[axis]
        weights = np.zeros((extent // 2, extent))
        for o in range(len(weights)):
            for i, tap in enumerate(taps, 2 * o + first):
                if 0 <= i < extent:
                    weights[o, i] = tap
        sums = weights.sum(1, keepdims=True)
        values = np.moveaxis(np.tensordot(weights / sums, values, (1, axis)), 0, axis)
        others = tuple(dim for dim in range(x.ndim) if dim != axis)
        is_inexact = is_inexact | np.expand_dims(sums[:, 0] < sum(taps), others)
    return bool(np.any((np.abs(values % 1 - 0.5) < 1e-4) & is_inexact))


def antialiased(d, op):
    """Some dimensions shrink, others may grow."""
    rank = d.pick(3, 4, 4, 4, 5)
    largest = {3: 30, 4: 14, 5: 7}[rank]
    shape = [d.integer(1, 2), d.integer(1, 4), *(d.integer(2, largest) for _ in range(rank - 2))]
    chosen = list(range(2, rank)) if d.chance(0.8) else list(range(rank))
    modes = ["half_pixel", "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    if d.opset >= 19:
        modes.append("half_pixel_symmetric")
    coordinates = "tf_crop_and_resize" if d.chance(0.1) else d.pick(*modes)
    mode = d.pick("linear", "cubic")
    scales = [float(np.float32(d.pick(*_SCALES, 0.25, 0.3))) for _ in chosen]
    sizes = [int(np.floor(shape[a] * s)) for a, s in zip(chosen, scales)]
    dtype = d.pick(np.float32, np.float32, np.float32, np.float64, np.uint8, np.int32)
    if np.dtype(dtype).kind in "ui":  # Weights are exact, and so are ties, but at borders.
        scales, sizes, mode = [0.5] * len(chosen), [shape[a] // 2 for a in chosen], "linear"
    by_sizes = d.chance(0.4)
    if by_sizes:
        sizes = [d.integer(1, shape[a] + 1) for a in chosen]
        scales = [n / shape[a] for n, a in zip(sizes, chosen)]
    if min(sizes) < 1 or min(scales) >= 1:
        return antialiased(d, op)
    # Where an extent stays, but the scale is not one, ONNX Runtime copies.
    if any(n == shape[a] and s != 1 for n, a, s in zip(sizes, chosen, scales)):
        return antialiased(d, op)
    if by_sizes and np.dtype(dtype).kind in "ui":
        dtype = np.float32
    # ONNX Runtime has f32 in two dimensions of four, and rounds integers after each of them. In some modes the reference
    # takes other extents than the specification says.
    d.prefer_reference = rank != 4 or len(chosen) != 2 or dtype != np.float32
    if d.prefer_reference:
        coordinates = d.pick("half_pixel", "asymmetric")
    axes = None
    if not d.prefer_reference and d.chance(0.5):  # The reference is wrong about axes.
        axes = [a - rank if d.chance(0.3) else a for a in chosen]
    else:
        rest = rank - len(chosen)
        chosen, scales, sizes = list(range(rank)), [1.0] * rest + scales, shape[:rest] + sizes
    roi = ""
    if coordinates == "tf_crop_and_resize":
        starts = [0.0 if s == 1 else d.rng.uniform(-0.2, 0.5) for s in scales]
        ends = [1.0 if s == 1 else b + d.rng.uniform(0.2, 0.8) for b, s in zip(starts, scales)]
        roi = d.constant(np.array(starts + ends, np.float32))
    x = d.values(shape, dtype, -100, 100) if np.dtype(dtype).kind in "ui" else d.values(shape, dtype)
    if x.dtype.kind in "ui" and _ties_at_borders(x, [a for a, s in zip(chosen, scales) if s != 1], coordinates):
        return antialiased(d, op)
    inputs = [d.input(x), roi]
    if by_sizes:
        inputs += ["", d.constant(np.array(sizes, np.int64))]
    else:
        inputs.append(d.constant(np.array(scales, np.float32)))
    d.node(
        op,
        *inputs,
        mode=mode,
        antialias=1,
        axes=axes,
        coordinate_transformation_mode=coordinates,
        exclude_outside=d.pick(None, 0, 1),
        cubic_coeff_a=d.pick(None, -0.5) if mode == "cubic" else None,
        extrapolation_value=d.pick(None, 0.5) if coordinates == "tf_crop_and_resize" else None,
    )


@generates("Upsample", weight=4)
def upsample(d, op):
    opset = d.since(7, 9)
    rank = d.pick(3, 4, 4)
    shape = [d.integer(1, 2), d.integer(1, 4), *(d.integer(1, 12) for _ in range(rank - 2))]
    mode = d.pick("nearest", "linear")
    d.exact = mode == "nearest"
    scales = [1.0, 1.0, *(d.pick(1.0, 2.0, 2.0, 3.0, 4.0) for _ in range(rank - 2))]
    x = d.input(d.values(shape))
    if opset >= 9:
        d.node(op, x, d.constant(np.array(scales, np.float32)), mode=mode)
    else:
        d.node(op, x, scales=scales, mode=mode)
