# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights that no batch dimension has are one large product, split at any of its rows; against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from harness.backend import call, tool
from harness.compare import differences
from harness.oracle import expected_outputs
from harness.partition import MESHES, Partition, sizes_with_empty_shard, uneven_sizes
from ops import Draft


def _weights(rng, *shape):
    return rng.uniform(-0.5, 0.5, shape).astype(np.float32)


def _block(shape, batch=()):
    """What a transformer does to each token: two products with bias, an activation, a residual. `batch` is that of the
    weights.
    """
    rng = np.random.default_rng(9)
    draft = Draft(rng)
    channels = shape[-1]
    tokens = draft.input(rng.standard_normal(shape).astype(np.float32), "tokens")
    hidden = draft.node("MatMul", tokens, draft.constant(_weights(rng, *batch, channels, 40)), final=False)
    hidden = draft.node("Add", hidden, draft.constant(_weights(rng, 40)), final=False)
    hidden = draft.node("Gelu", hidden, final=False)
    hidden = draft.node("MatMul", hidden, draft.constant(_weights(rng, *batch, 40, channels)), final=False)
    hidden = draft.node("Add", draft.constant(_weights(rng, channels)), hidden, final=False)
    draft.node("Add", tokens, hidden)
    return draft


def _lowered(folder, model, partition):
    """The plan as text."""
    onnx.save(model, folder / "model.onnx")
    command = [tool("dovetail"), "compile", folder / "model.onnx", "--compile-to=lower", *partition.flags()]
    code, text, messages = call(command)
    assert code == 0, messages
    return text


def _check(backend, draft, partition):
    model, inputs = draft.model(), draft.inputs
    expected = expected_outputs(model, inputs)
    actual = backend.compile_and_run(model, partition, inputs, list(expected))
    assert not differences(actual, expected)
    return model


@pytest.mark.parametrize("mesh", MESHES, ids=lambda mesh: "x".join(map(str, mesh.values())))
@pytest.mark.parametrize("shape, merged", [((23, 1, 24), 2), ((7, 9, 20), 2), ((3, 5, 6, 12), 3)], ids=str)
def test_tokens(backend, tmp_path, shape, merged, mesh):
    """Whatever of batch and rows is split, nothing lies between what a rank has of them."""
    axes = "+".join(mesh)
    for dim, sizes in ((0, uneven_sizes), (0, sizes_with_empty_shard), (len(shape) - 2, sizes_with_empty_shard)):
        partition = Partition(mesh)
        partition.split("tokens", len(shape), dim, axes, sizes(shape[dim], partition.parts(axes)))
        model = _check(backend, _block(shape), partition)
    assert _lowered(tmp_path, model, partition).count(f"row_dims = {merged}") == 2


def test_two_cuts(backend):
    """Batch and rows are split over an axis each."""
    partition = Partition({"y": 2, "x": 2}).split("tokens", 3, 0, "y", (5, 2)).split("tokens", 3, 1, "x", (0, 9))
    _check(backend, _block((7, 9, 20)), partition)


@pytest.mark.parametrize("dim, sizes", [(0, (2, 0, 1)), (1, (1, 3, 1)), (2, (0, 1, 5))], ids=str)
def test_some_of_the_batch(backend, tmp_path, dim, sizes):
    """The weights differ along the outermost dimension, not along the others."""
    partition = Partition({"y": 3}).split("tokens", 4, dim, "y", sizes)
    model = _check(backend, _block((3, 5, 6, 12), batch=(3, 1)), partition)
    assert _lowered(tmp_path, model, partition).count("row_dims = 2") == 2


@pytest.mark.parametrize("dim, sizes, merged", [(1, (2, 3), 2), (2, (4, 5), 0)], ids=["batch", "rows"])
def test_halo(backend, tmp_path, dim, sizes, merged):
    """A halo that the next operation needs lies between what a rank computes of one batch and of the next."""
    rng = np.random.default_rng(3)
    draft = Draft(rng)
    shape = (2, 5, 9, 12)
    image = draft.input(rng.standard_normal(shape).astype(np.float32), "image")
    product = draft.node("MatMul", image, draft.constant(_weights(rng, 12, 7)), final=False)
    scales = np.float32([1 + (i == dim) for i in range(4)])
    draft.node("Resize", product, "", draft.constant(scales), mode="linear")
    partition = Partition({"y": 2}).split("image", 4, dim, "y", sizes)
    text = _lowered(tmp_path, _check(backend, draft, partition), partition)
    assert "plan.exchange" in text
    assert text.count("plan.matmul") == 1
    assert f"row_dims = {merged}" in text if merged else "row_dims" not in text


@pytest.mark.parametrize("sizes", [[61], [61, 3, 0], [1] * 64, [21, 22, 21]], ids=len)
def test_parts_of_few_rows_are_computed_as_all(backend, sizes):
    """Relu gives +0, of which the inverse is infinity, and NaN where there was one, on however many ranks."""
    rng = np.random.default_rng(12)
    rows = sum(sizes)
    x = rng.standard_normal((rows, 3)).astype(np.float32)
    x[3, 1], x[rows - 2, 0], x[5, 2] = -np.inf, np.inf, np.nan
    weights = _weights(rng, 3, 33)
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("MatMul", ["x", "w"], ["product"]),
            onnx.helper.make_node("Relu", ["product"], ["rectified"]),
            onnx.helper.make_node("Reciprocal", ["rectified"], ["y"]),
        ],
        "rectified",
        [value("x", onnx.TensorProto.FLOAT, x.shape)],
        [value("y", onnx.TensorProto.FLOAT, [rows, 33])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    partition = Partition({"y": len(sizes)})
    partition.split("x", 2, 0, "y", sizes)
    actual = backend.compile_and_run(model, partition, {"x": x}, ["y"])["y"]
    whole = backend.compile_and_run(model, Partition({"y": 1}), {"x": x}, ["y"])["y"]
    np.testing.assert_allclose(actual, whole, rtol=1e-6)
    # What a library makes of NaN is its own; of all else the result is that of ONNX Runtime.
    expected = expected_outputs(model, {"x": x})["y"]
    known = ~np.isnan(expected)
    assert np.count_nonzero(np.isposinf(expected)) > 100
    np.testing.assert_allclose(actual[known], expected[known], rtol=1e-3)
