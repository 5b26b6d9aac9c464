# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What random cases leave out of sampled images: deformable convolutions of other ranks than two, against NumPy, and
floats of 16 bits, against ONNX Runtime in f32."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from harness.compare import differences
from harness.extent import one_of
from harness.partition import Partition
from onnx import helper

SEED = 5


def _model(op, opset, inputs, shape, **attributes):
    """One node, all of whose operands are inputs; `inputs` by name, "" for those left out."""
    dtype = helper.np_dtype_to_tensor_dtype(next(iter(inputs.values())).dtype)
    names = list(inputs)
    node = helper.make_node(op, ["" if n.startswith("_") else n for n in names], ["y"], name="node", **attributes)
    graph = helper.make_graph(
        [node],
        "case",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for n, v in inputs.items()
            if not n.startswith("_")
        ],
        [helper.make_tensor_value_info("y", dtype, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _interpolate(image, position):
    """The image [spatial...] at `position`, linearly, zeros outside."""
    low = np.floor(position).astype(int)
    total = 0.0
    for corner in itertools.product((0, 1), repeat=image.ndim):
        at = low + corner
        if ((at >= 0) & (at < image.shape)).all():
            weight = np.prod(np.where(corner, position - low, 1 - (position - low)))
            total += weight * image[tuple(at)]
    return total


def deform_conv(x, w, offset, bias, mask, strides, dilations, pads, groups, offset_groups):
    """ONNX DeformConv of any rank, as its specification has it, in f64."""
    rank, kernel, windows = x.ndim - 2, w.shape[2:], offset.shape[2:]
    offset = offset.reshape(x.shape[0], offset_groups, *kernel, rank, *windows)
    mask = mask.reshape(x.shape[0], offset_groups, *kernel, *windows)
    y = np.zeros((x.shape[0], w.shape[0], *windows))
    per_group, results = w.shape[1], w.shape[0] // groups
    for n, c in np.ndindex(*x.shape[:2]):
        shared = c // (x.shape[1] // offset_groups)
        group = slice(c // per_group * results, (c // per_group + 1) * results)
        for window in np.ndindex(*windows):
            for tap in np.ndindex(*kernel):
                moved = [offset[(n, shared, *tap, d, *window)] for d in range(rank)]
                start = np.array(window) * strides - pads[:rank] + np.array(tap) * dilations
                seen = _interpolate(x[n, c], start + moved) * mask[(n, shared, *tap, *window)]
                y[(n, group, *window)] += seen * w[(group, c % per_group, *tap)]
    return y + bias.reshape(-1, *[1] * rank)


@one_of(2)
@pytest.mark.parametrize("sizes", [None, (3, 2), (0, 4, 1)], ids=str)
@pytest.mark.parametrize("split", ["image", "offset"])
@pytest.mark.parametrize("rank", [1, 3])
def test_deformable_convolution_of_any_rank(backend, rank, split, sizes):
    rng = np.random.default_rng(SEED)
    extents, kernel = [9, 6, 5][:rank], [3, 2, 2][:rank]
    strides, dilations, pads = [2, 1, 1][:rank], [1, 2, 1][:rank], [1, 0, 1][:rank] + [1, 1, 0][:rank]
    windows = [
        (n + pads[i] + pads[i + rank] - (k - 1) * dilations[i] - 1) // strides[i] + 1
        for i, (n, k) in enumerate(zip(extents, kernel))
    ]
    taps = int(np.prod(kernel))
    inputs = {
        "x": rng.uniform(-1, 1, (2, 4, *extents)),
        "w": rng.uniform(-1, 1, (6, 2, *kernel)),
        "o": rng.uniform(-2, 2, (2, 4 * taps * rank, *windows)),
        "b": rng.uniform(-1, 1, 6),
        "m": rng.uniform(0, 1, (2, 4 * taps, *windows)),
    }
    inputs = {n: v.astype(np.float32) for n, v in inputs.items()}
    expected = deform_conv(
        *(inputs[n].astype(np.float64) for n in "xwobm"),
        np.array(strides), np.array(dilations), np.array(pads), groups=2, offset_groups=4,
    )  # fmt: skip
    model = _model(
        "DeformConv", 22, inputs, expected.shape, strides=strides, dilations=dilations, pads=pads,
        group=2, offset_group=4, kernel_shape=kernel,
    )  # fmt: skip
    partition = Partition({"y": len(sizes)} if sizes else {"y": 1})
    if sizes:
        extent = extents[0] if split == "image" else windows[0]
        last = extent - sum(sizes[:-1])
        partition.split("x" if split == "image" else "o", rank + 2, 2, "y", [*sizes[:-1], last])
    actual = backend.compile_and_run(model, partition, inputs, ["y"])
    found = differences(actual, {"y": expected.astype(np.float32)}, 1e-5)
    assert not found, found


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("op", ["GridSample", "DeformConv", "RoiAlign", "MaxRoiPool"])
def test_narrow_floats(backend, op, dtype):
    """Positions and sums are f32: results are those of the same, rounded, inputs in f32, rounded once or twice."""
    from harness.oracle import expected_outputs

    rng = np.random.default_rng(SEED)
    inputs = {"x": rng.uniform(-1, 1, (2, 3, 9, 8))}
    attributes, opset, shape = {}, 22, (2, 3, 4, 5)
    if op == "GridSample":
        inputs["g"] = rng.uniform(-1.2, 1.2, (2, 4, 5, 2))
    elif op == "DeformConv":
        inputs |= {"w": rng.uniform(-1, 1, (4, 3, 3, 3)) / 5, "o": rng.uniform(-2, 2, (2, 18, 7, 6))}
        shape = (2, 4, 7, 6)
    elif op == "RoiAlign":
        inputs |= {"r": np.array([[0, 1, 6, 5], [2, 2, 4, 8], [1, 0, 7, 7]]), "i": np.array([1, 0, 1])}
        attributes, shape = dict(output_height=2, output_width=3, sampling_ratio=2), (3, 3, 2, 3)
    else:
        inputs["r"] = np.array([[1, 0, 1, 6, 5], [0, 2, 2, 4, 7], [1, 1, 0, 7, 7]])
        attributes, shape = dict(pooled_shape=[2, 3]), (3, 3, 2, 3)
    narrow = {n: v.astype(np.int64 if n == "i" else dtype) for n, v in inputs.items()}
    wide = {n: v.astype(np.int64 if n == "i" else np.float32) for n, v in narrow.items()}
    # ONNX Runtime has the first opsets of the last two.
    oracle_opset = {"RoiAlign": 16, "MaxRoiPool": 11}.get(op, opset)
    expected = expected_outputs(_model(op, oracle_opset, wide, shape, **attributes), wide)["y"]
    partition = Partition({"y": 2}).split("x", 4, 1, "y", [1, 2])
    model = _model(op, opset, narrow, shape, **attributes)
    actual = backend.compile_and_run(model, partition, narrow, ["y"])["y"]
    if actual.dtype.kind == "V":  # Files of arrays know no bf16.
        actual = actual.view(dtype)
    assert actual.dtype == dtype
    rounding = float(ml_dtypes.finfo(dtype).eps)
    assert np.abs(actual.astype(np.float32) - expected).max() <= 2 * rounding * np.abs(expected).max()
