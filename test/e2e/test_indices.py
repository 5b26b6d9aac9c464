# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices that are read from data and out of range, against NumPy."""

import re

import numpy as np
import pytest
from harness.backend import InProcessBackend, fastest_backend
from harness.partition import Partition, uneven_sizes
from onnx import TensorProto, helper, numpy_helper

USAGE, INVALID_MODEL = 2, 4
TARGETS = ["cpu", "emulated"]
#: Meshes, and the axes that split something.
SPLITS = [({"y": 1}, "y"), ({"y": 3}, "y"), ({"y": 2, "x": 2}, "y+x"), ({"y": 2, "x": 2}, "x")]


@pytest.fixture(scope="module")
def dovetail(backend):
    assert isinstance(fastest_backend(), InProcessBackend), "the shared libraries are not built"
    import dovetail

    return dovetail


def _model(op, table, indices, axis, users=(), constant=None):
    """`op` of the inputs `table` and `indices`, then operators of one operand."""
    nodes = [helper.make_node(op, ["table", "indices"], ["picked"], name="the_lookup", axis=axis)]
    for number, user in enumerate(users):
        nodes.append(helper.make_node(user, [nodes[-1].output[0]], [f"used{number}"]))
    types = {"table": table, "indices": indices}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in types.items()
        if name != constant
    ]
    shape = _expected(op, table, np.zeros_like(indices), axis).shape
    type = helper.np_dtype_to_tensor_dtype(table.dtype)
    outputs = [helper.make_tensor_value_info(nodes[-1].output[0], type, shape)]
    constants = [] if constant is None else [numpy_helper.from_array(types[constant], constant)]
    graph = helper.make_graph(nodes, "lookup", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _positions(indices, extent):
    """Negative ones count from the end, others are clamped."""
    indices = indices.astype(object)
    return np.clip(np.where(indices < 0, indices + extent, indices), 0, extent - 1).astype(np.int64)


def _expected(op, table, indices, axis):
    positions = _positions(indices, table.shape[axis])
    return np.take(table, positions, axis) if op == "Gather" else np.take_along_axis(table, positions, axis)


def _assert_same_bits(actual, expected):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    assert actual.tobytes() == np.ascontiguousarray(expected).tobytes()


def _case(op, dtype, rng):
    """A table and indices in range, negative ones among them: the table has more than two elements for each one."""
    table = rng.standard_normal((7, 11, 3)).astype(np.float32)
    indices = rng.integers(-11, 11, (2, 2) if op == "Gather" else (7, 5, 3)).astype(dtype)
    return table, indices


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("split", ["table", "indices", "nothing"])
@pytest.mark.parametrize("mesh, axes", SPLITS, ids=str)
@pytest.mark.parametrize("op", ["Gather", "GatherElements"])
def test_out_of_range(dovetail, op, mesh, axes, split, target):
    """The node, index, extent and rank are named, memory is not read there, and the next run is as if it had not been."""
    rng = np.random.default_rng([len(op), len(axes), len(split)])
    dtype = np.int32 if axes == "y" else np.int64
    table, indices = _case(op, dtype, rng)
    partition = Partition(mesh)
    if split == "table":
        sizes = [0, *uneven_sizes(11, partition.parts(axes) - 1)] if partition.parts(axes) > 2 else None
        partition.split("table", 3, 1, axes, sizes)
    elif split == "indices":
        partition.split("indices", indices.ndim, 0, axes)
    model = _model(op, table, indices, 1)
    options = [*partition.flags(), "--target", target]
    program = dovetail.compile(model, options=options)
    clamping = dovetail.compile(model, index_checks=False, options=options)
    for wrong in [11, -12, np.iinfo(dtype).max, np.iinfo(dtype).min]:
        bad = indices.copy()
        bad[tuple(rng.integers(bad.shape))] = wrong
        expected = _expected(op, table, bad, 1)
        with pytest.raises(dovetail.DovetailError) as error:
            program.run({"table": table, "indices": bad}, threads=4)
        assert error.value.code == USAGE
        pattern = (
            rf"^rank (\d+), node 'the_lookup': index {wrong} is out of range for dimension 1 of extent 11; "
            "pass indices from -11 to 10$"
        )
        assert re.search(pattern, str(error.value)), error.value
        _assert_same_bits(program.run({"table": table, "indices": indices})["picked"], _expected(op, table, indices, 1))
        _assert_same_bits(clamping.run({"table": table, "indices": bad})["picked"], expected)


@pytest.mark.parametrize("target", TARGETS)
def test_unsigned(dovetail, target):
    """Gather has unsigned indices in Dovetail where a model casts them: these have no negative ones."""
    table = np.arange(40, dtype=np.int64).reshape(10, 4)
    nodes = [
        helper.make_node("Cast", ["indices"], ["cast"], to=TensorProto.UINT8),
        helper.make_node("Gather", ["table", "cast"], ["picked"], name="unsigned"),
    ]
    inputs = [
        helper.make_tensor_value_info("table", TensorProto.INT64, [10, 4]),
        helper.make_tensor_value_info("indices", TensorProto.INT64, [3]),
    ]
    outputs = [helper.make_tensor_value_info("picked", TensorProto.INT64, [3, 4])]
    graph = helper.make_graph(nodes, "unsigned", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    program = dovetail.compile(model, target=target)
    with pytest.raises(dovetail.DovetailError, match="index 255 is out of range .* pass indices from 0 to 9$"):
        program.run({"table": table, "indices": np.int64([0, -1, 2])})
    _assert_same_bits(program.run({"table": table, "indices": np.int64([0, 9, 2])})["picked"], table[[0, 9, 2]])


@pytest.mark.parametrize("op", ["Gather", "GatherElements"])
def test_constants(dovetail, op):
    """What is wrong in the model is found when it is compiled."""
    table, indices = _case(op, np.int64, np.random.default_rng(0))
    indices[0, 0] = 11
    model = _model(op, table, indices, 1, constant="indices")
    for checks in (True, False):
        with pytest.raises(dovetail.DovetailError, match="node 'the_lookup'.*index 11\\b.*extent") as error:
            dovetail.compile(model, index_checks=checks)
        assert error.value.code == INVALID_MODEL


def test_processes_hear_of_it(dovetail, tmp_path):
    """Rank 0, whose caller has the outputs, says what another process has found."""
    from test_processes import run_ranks

    table, indices = _case("Gather", np.int64, np.random.default_rng(1))
    indices[-1, -1] = 30
    partition = Partition({"y": 3}).split("indices", 2, 0, "y", [1, 0, 1])
    program = dovetail.compile(_model("Gather", table, indices, 1), options=partition.flags())
    program.save(tmp_path / "m.dvt")
    np.savez(tmp_path / "in.npz", table=table, indices=indices)
    results = run_ranks(["run", tmp_path / "m.dvt", "--input", f"@{tmp_path}/in.npz"], 3)
    assert [code for code, _, _ in results] == [USAGE, 0, USAGE], results
    for rank in (0, 2):
        assert "rank 2, node 'the_lookup': index 30 is out of range" in results[rank][2]
