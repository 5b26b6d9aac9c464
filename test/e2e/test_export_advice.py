# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that were exported, or are compiled, with other options than their user meant: messages say what to do."""

import numpy as np
import onnx
import pytest
from harness.backend import USAGE, call, tool
from onnx import TensorProto, helper, numpy_helper


def _table(path, is_sliced):
    """Adds a table of eight rows, or its first ones, to an input of any length."""
    constants = {"table": np.ones((8, 4), np.float32), "zero": np.array([0]), "one": np.array([1])}
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "one"], ["length"]),
        helper.make_node("Slice", ["table", "zero", "length"], ["rows"]),
    ]
    add = helper.make_node("Add", ["x", "rows" if is_sliced else "table"], ["y"], name="add_positions")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["seq", 4]) for name in "xy"]
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph([*nodes, add] if is_sliced else [add], "g", values[:1], values[1:], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


@pytest.mark.parametrize("is_sliced, advice", [(True, ["--bound", "seq=8"]), (False, ["--dim", "seq=8"])])
def test_bounds_beyond_the_model(tmp_path, is_sliced, advice):
    _table(tmp_path / "table.onnx", is_sliced)
    compiled = ["compile", "table.onnx", "-q", "-o", "table.dvt"]
    code, _, messages = call([tool("dovetail"), *compiled, "--bound", "seq=512"], cwd=tmp_path)
    assert code == USAGE and messages.count("\n") == 1, messages
    assert "'add_positions' (Add)" in messages and "pass " + " ".join(advice) in messages
    assert call([tool("dovetail"), *compiled, *advice], cwd=tmp_path)[0] == 0


def test_batch_norm_in_training_mode(tmp_path):
    """The mean and variance are those of the input, and one warning says so, however many nodes there are."""
    ones = {name: numpy_helper.from_array(np.full(3, value, np.float32), name) for name, value in
            [("scale", 1), ("bias", 0), ("mean", 5), ("var", 9)]}
    nodes = [
        helper.make_node("BatchNormalization", [name, *ones], [result], name=f"bn_{result}", training_mode=1)
        for name, result in [("image", "a"), ("a", "b")]
    ]
    image, result = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3, 4, 4]) for n in ("image", "b"))
    graph = helper.make_graph(nodes, "g", [image], [result], list(ones.values()))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "bn.onnx")
    code, _, messages = call([tool("dovetail"), "compile", "bn.onnx", "-o", "bn.dvt", "-q"], cwd=tmp_path)
    assert code == 0
    assert messages.count("training mode") == 1 and messages.count("\n") == 1
    assert "model.eval()" in messages and "'bn_a'" in messages and "1 more" in messages
    values = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32) * 3 + 1
    np.save(tmp_path / "bn.npy", values)
    code, _, messages = call([tool("dovetail"), "run", "bn.dvt", "-i", "image=bn.npy", "-o", "b=b.npy"], cwd=tmp_path)
    assert code == 0, messages
    expected = values.astype(np.float64)
    for _ in range(2):
        mean, var = expected.mean((0, 2, 3), keepdims=True), expected.var((0, 2, 3), keepdims=True)
        expected = (expected - mean) / np.sqrt(var + 1e-5)
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), expected, rtol=1e-4, atol=1e-5)
