# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that sample images where data say."""

import numpy as np
from onnx import TensorProto

from .draft import generates

_EXTENTS = {1: 30, 2: 12, 3: 6, 4: 3}


def _image(d, rank, dtype=np.float32):
    extents = [d.integer(1, _EXTENTS[rank]) for _ in range(rank)]
    return d.values([d.integer(1, 3), d.pick(1, 2, 3, 4, 17), *extents], dtype)


@generates("GridSample", weight=12)
def grid_sample(d, op):
    opset = d.since(16)
    rank = 2 if opset < 20 else d.pick(1, 2, 2, 2, 3, 3, 4)
    mode = d.pick("nearest", "linear", "linear", "cubic")
    if rank == 4 and mode == "cubic":
        mode = "linear"
    dtype = d.pick(np.float32, np.float32, np.float64) if opset >= 20 else np.float32
    image = _image(d, rank, dtype)
    if mode == "nearest" and rank == 2 and d.chance(0.3):
        image = d.values(image.shape, d.pick(np.int64, np.uint8, np.bool_))
    # ONNX Runtime has two ranks, cubic interpolation for one of them, and floats.
    d.prefer_reference = (
        rank not in (2, 3) or (rank == 3 and mode == "cubic") or image.dtype.kind != "f"
    )
    positions = [d.integer(1, {1: 20, 2: 9, 3: 4, 4: 2}[rank]) for _ in range(rank)]
    reach = d.pick(1.0, 1.0, 1.5, 4.0)
    padding = d.pick(None, "zeros", "border", "reflection")
    align = d.pick(None, 0, 1)
    if padding == "border" and mode == "cubic":
        # ONNX Runtime moves a position that is inside in one dimension because it is outside in another one. The
        # reference does not know the first opset's names.
        padding = padding if opset >= 20 else "zeros"
        d.prefer_reference |= opset >= 20
    if padding == "reflection" and align and 1 in image.shape[2:]:
        padding = "border"  # Mirrors at one place: ONNX Runtime and the reference divide by zero.
    grid = d.values([image.shape[0], *positions, rank], dtype, -reach, reach)
    names = {"linear": "bilinear", "cubic": "bicubic"} if opset < 20 else {}
    d.exact = mode == "nearest"
    d.node(
        op,
        d.either(image, 0.2),
        d.either(grid, 0.2),
        mode=None if mode == "linear" and d.chance(0.3) else names.get(mode, mode),
        padding_mode=padding,
        align_corners=align,
    )


@generates("DeformConv", weight=10)
def deform_conv(d, op):
    d.since(19)
    kernel = [d.pick(1, 2, 3, 3) for _ in range(2)]
    strides = [d.pick(1, 1, 2, 3) for _ in range(2)]
    dilations = [d.pick(1, 1, 2) for _ in range(2)]
    groups, offset_groups = d.pick(1, 1, 2), d.pick(1, 1, 2)
    cin = 2 * d.integer(1, 3) if 2 in (groups, offset_groups) else d.integer(1, 6)
    cout = groups * d.integer(1, 4)
    spans = [(k - 1) * s + 1 for k, s in zip(kernel, dilations)]
    pads = [d.integer(0, span) for _ in range(2) for span in spans]
    extents = [max(1, span - pads[i] - pads[i + 2]) + d.integer(0, 9) for i, span in enumerate(spans)]
    windows = [
        (n + pads[i] + pads[i + 2] - spans[i]) // strides[i] + 1 for i, n in enumerate(extents)
    ]
    batch, taps = d.integer(1, 3), int(np.prod(kernel))
    reach = d.pick(0.5, 1.5, 6.0)
    scale = 3 / (cin // groups * taps) ** 0.5
    inputs = [
        d.input(d.values([batch, cin, *extents])),
        d.either(d.values((cout, cin // groups, *kernel), low=-scale, high=scale), 0.8),
        d.either(d.values([batch, offset_groups * taps * 2, *windows], low=-reach, high=reach), 0.2),
    ]
    bias, mask = d.chance(0.5), d.chance(0.5)
    if bias or mask:
        inputs.append(d.either(d.values(cout), 0.8) if bias else "")
    if mask:
        inputs.append(d.input(d.values([batch, offset_groups * taps, *windows], low=0, high=1)))
    d.node(
        op,
        *inputs,
        kernel_shape=kernel if d.chance(0.7) else None,
        strides=None if strides == [1, 1] and d.chance(0.5) else strides,
        dilations=None if dilations == [1, 1] and d.chance(0.5) else dilations,
        pads=None if not any(pads) and d.chance(0.5) else pads,
        group=groups if groups > 1 or d.chance(0.5) else None,
        offset_group=offset_groups if offset_groups > 1 or d.chance(0.5) else None,
    )


def _corners(d, count, extents, scale):
    """Two corners of each region, the first one mostly above and left of the other; some beyond the image."""
    size = np.array(extents[::-1], np.float32) / np.float32(scale)
    first = d.values([count, 2], low=-0.2, high=0.8) * size
    second = first + d.values([count, 2], low=-0.1, high=0.9) * size
    return np.concatenate([first, second], 1).astype(np.float32)


@generates("RoiAlign", weight=8)
def roi_align(d, op):
    opset = d.since(10)
    dtype = d.pick(np.float32, np.float32, np.float64)
    image = _image(d, 2, dtype)
    count, scale = d.integer(1, 5), d.pick(None, 1.0, 0.5, 0.25)
    rois = _corners(d, count, image.shape[2:], scale or 1).astype(dtype)
    d.node(
        op,
        d.either(image, 0.2),
        d.either(rois, 0.2),
        d.either(d.values([count], np.int64, 0, image.shape[0] - 1), 0.3),
        output_height=d.pick(None, 1, 2, 5),
        output_width=d.pick(None, 1, 3, 4),
        sampling_ratio=d.pick(None, 0, 1, 2, 3),
        spatial_scale=scale,
        mode=d.pick(None, "avg", "max"),
        coordinate_transformation_mode=d.pick(None, "half_pixel", "output_half_pixel")
        if opset >= 16
        else None,
    )


@generates("MaxRoiPool", weight=5)
def max_roi_pool(d, op):
    # From opset 22 on nobody else has it; only its types differ.
    d.since(7, 21)
    d.exact = True
    image = _image(d, 2)
    count, scale = d.integer(1, 5), d.pick(None, 1.0, 0.5)
    # Indices of their own, so that all of them are in range whatever other inputs are.
    batches = d.input(d.values([count, 1], np.int64, 0, image.shape[0] - 1))
    batches = d.node("Cast", batches, to=TensorProto.FLOAT, final=False)
    corners = d.either(_corners(d, count, image.shape[2:], scale or 1), 0.3)
    rois = d.node("Concat", batches, corners, axis=1, final=False)
    pooled = [d.integer(1, 5), d.integer(1, 5)]
    d.node(op, d.either(image, 0.2), rois, pooled_shape=pooled, spatial_scale=scale)
