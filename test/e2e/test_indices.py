# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices that are read from data: out of range, and into tables that are split along what is indexed; against NumPy."""

import json
import re

import numpy as np
import onnx
import pytest
from harness.backend import call, fastest_backend, replaying_backend, tool
from harness.partition import Partition, uneven_sizes
from onnx import TensorProto, helper, numpy_helper

USAGE, INVALID_MODEL = 2, 4
TARGETS = ["cpu", "emulated"]
#: Meshes, and the axes that split something.
SPLITS = [({"y": 1}, "y"), ({"y": 3}, "y"), ({"y": 2, "x": 2}, "y+x"), ({"y": 2, "x": 2}, "x")]


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
    table = rng.standard_normal((7, 44, 3)).astype(np.float32)
    indices = rng.integers(-44, 44, (2, 2) if op == "Gather" else (7, 5, 3)).astype(dtype)
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
        sizes = [0, *uneven_sizes(44, partition.parts(axes) - 1)] if partition.parts(axes) > 2 else None
        partition.split("table", 3, 1, axes, sizes)
    elif split == "indices":
        partition.split("indices", indices.ndim, 0, axes)
    model = _model(op, table, indices, 1)
    options = [*partition.flags(), "--target", target]
    program = dovetail.compile(model, options=options)
    clamping = dovetail.compile(model, index_checks=False, options=options)
    for wrong in [44, -45, np.iinfo(dtype).max, np.iinfo(dtype).min]:
        bad = indices.copy()
        bad[tuple(rng.integers(bad.shape))] = wrong
        expected = _expected(op, table, bad, 1)
        with pytest.raises(dovetail.DovetailError) as error:
            program.run({"table": table, "indices": bad}, threads=4)
        assert error.value.code == USAGE
        pattern = (
            rf"^rank (\d+), node 'the_lookup': index {wrong} is out of range for dimension 1 of extent 44; "
            "pass indices from -44 to 43$"
        )
        found = re.search(pattern, str(error.value))
        assert found, error.value
        # Who clamps would read at the end, which the last or first rank that is not empty owns.
        if split == "table" and axes == "y+x":
            assert int(found[1]) == (3 if wrong > 0 else 1)
        _assert_same_bits(program.run({"table": table, "indices": indices})["picked"], _expected(op, table, indices, 1))
        _assert_same_bits(clamping.run({"table": table, "indices": bad})["picked"], expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dim", [0, 1, 2, None])
def test_tuples_out_of_range(dovetail, dim, target):
    """Each index of a tuple is checked against its own dimension."""
    rng = np.random.default_rng([0 if dim is None else dim + 1])
    table = rng.standard_normal((7, 44, 3)).astype(np.float32)
    indices = rng.integers([-7, -44], [7, 44], (5, 2))
    node = helper.make_node("GatherND", ["table", "indices"], ["picked"], name="the_lookup")
    inputs = [
        helper.make_tensor_value_info("table", TensorProto.FLOAT, table.shape),
        helper.make_tensor_value_info("indices", TensorProto.INT64, indices.shape),
    ]
    outputs = [helper.make_tensor_value_info("picked", TensorProto.FLOAT, [5, 3])]
    graph = helper.make_graph([node], "lookup", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    partition = Partition({"y": 3})
    if dim is not None:
        partition.split("table", 3, dim, "y", [[2, 0, 5], [4, 39, 1], [0, 1, 2]][dim])
    options = [*partition.flags(), "--target", target]
    program = dovetail.compile(model, options=options)
    clamping = dovetail.compile(model, index_checks=False, options=options)
    for component, extent in enumerate(table.shape[:2]):
        for wrong in [extent, -extent - 1, np.iinfo(np.int64).max]:
            bad = indices.copy()
            bad[3, component] = wrong
            pattern = f"^rank \\d+, node 'the_lookup': index {wrong} is out of range for dimension {component} of extent {extent}; "
            with pytest.raises(dovetail.DovetailError, match=pattern) as error:
                program.run({"table": table, "indices": bad}, threads=4)
            assert error.value.code == USAGE
            _assert_same_bits(program.run({"table": table, "indices": indices})["picked"], table[tuple(indices.T)])
            clamped = tuple(_positions(bad[:, i], table.shape[i]) for i in range(2))
            _assert_same_bits(clamping.run({"table": table, "indices": bad})["picked"], table[clamped])


def _scatter(op, rng):
    """A model that scatters 6 updates into [7, 11], and indices that are all different."""
    names = {"ScatterND": [6, 2], "ScatterElements": [6, 1]}
    inputs = [
        helper.make_tensor_value_info("data", TensorProto.FLOAT, [7, 11]),
        helper.make_tensor_value_info("indices", TensorProto.INT64, names[op]),
        helper.make_tensor_value_info("updates", TensorProto.FLOAT, [6] if op == "ScatterND" else [6, 1]),
    ]
    attributes = {} if op == "ScatterND" else {"axis": 1}
    node = helper.make_node(op, ["data", "indices", "updates"], ["result"], name="the_scatter", **attributes)
    outputs = [helper.make_tensor_value_info("result", TensorProto.FLOAT, [7, 11])]
    graph = helper.make_graph([node], "scatter", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    rows, columns = np.arange(6), rng.integers(-11, 11, 6)
    indices = np.stack([rows, columns], -1) if op == "ScatterND" else columns[:, None]
    data = rng.standard_normal((7, 11)).astype(np.float32)
    updates = rng.standard_normal(6).astype(np.float32)
    expected = data.copy()
    expected[rows, columns] = updates
    shaped = updates if op == "ScatterND" else updates[:, None]
    return model, {"data": data, "indices": indices, "updates": shaped}, expected


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
def test_scatter_out_of_range(dovetail, op, dim, target):
    """As for what is looked up; without checks such an update is not written."""
    model, inputs, expected = _scatter(op, np.random.default_rng(len(op)))
    partition = Partition({"y": 3})
    if dim is not None:
        partition.split("data", 2, dim, "y", [2, 0, 5] if dim == 0 else [4, 6, 1])
    options = [*partition.flags(), "--target", target]
    program = dovetail.compile(model, options=options)
    careless = dovetail.compile(model, index_checks=False, options=options)
    for wrong in [44, -45, np.iinfo(np.int64).max]:
        bad = dict(inputs, indices=inputs["indices"].copy())
        bad["indices"][3, -1] = wrong
        with pytest.raises(dovetail.DovetailError) as error:
            program.run(bad, threads=4)
        assert error.value.code == USAGE
        pattern = rf"^rank \d+, node 'the_scatter': index {wrong} is out of range for dimension 1 of extent 11; "
        assert re.search(pattern + "pass indices from -11 to 10$", str(error.value)), error.value
        _assert_same_bits(program.run(inputs)["result"], expected)
        without = expected.copy()
        without[3] = inputs["data"][3]
        _assert_same_bits(careless.run(bad)["result"], without)


@pytest.mark.parametrize("mesh", [{"y": 1}, {"y": 3}], ids=str)
def test_cache_out_of_range(dovetail, mesh):
    """A cache whose new slices would lie beyond its end, or before its beginning."""
    node = helper.make_node("TensorScatter", ["cache", "update", "places"], ["result"], name="the_cache", axis=1)
    inputs = [
        helper.make_tensor_value_info("cache", TensorProto.FLOAT, [2, 9, 3]),
        helper.make_tensor_value_info("update", TensorProto.FLOAT, [2, 4, 3]),
        helper.make_tensor_value_info("places", TensorProto.INT64, [2]),
    ]
    outputs = [helper.make_tensor_value_info("result", TensorProto.FLOAT, [2, 9, 3])]
    graph = helper.make_graph([node], "cache", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    partition = Partition(mesh).split("cache", 3, 1, "y", [4, 0, 5] if mesh["y"] == 3 else None)
    program = dovetail.compile(model, options=partition.flags())
    rng = np.random.default_rng(0)
    cache, update = (rng.standard_normal((2, n, 3)).astype(np.float32) for n in (9, 4))
    for wrong, found in ((6, 9), (-1, 2**64 - 1)):
        with pytest.raises(dovetail.DovetailError, match=f"node 'the_cache': index {found} is out of range .* extent 9"):
            program.run({"cache": cache, "update": update, "places": np.int64([5, wrong])})
    expected = cache.copy()
    expected[0, 5:9], expected[1, :4] = update
    given = {"cache": cache, "update": update, "places": np.int64([5, 0])}
    _assert_same_bits(program.run(given)["result"], expected)


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
    indices[0, 0] = 44
    model = _model(op, table, indices, 1, constant="indices")
    for checks in (True, False):
        with pytest.raises(dovetail.DovetailError, match="node 'the_lookup'.*index 44\\b.*extent") as error:
            dovetail.compile(model, index_checks=checks)
        assert error.value.code == INVALID_MODEL


def test_processes_hear_of_it(dovetail, tmp_path):
    """All processes say what one of them has found."""
    from test_processes import run_ranks

    table, indices = _case("Gather", np.int64, np.random.default_rng(1))
    # There is nothing else to divide than rows of indices.
    table, indices = table[:1, :, :1], indices[:, :1]
    indices[-1, -1] = 60
    partition = Partition({"y": 3}).split("indices", 2, 0, "y", [1, 0, 1])
    program = dovetail.compile(_model("Gather", table, indices, 1), options=partition.flags())
    program.save(tmp_path / "m.dvt")
    np.savez(tmp_path / "in.npz", table=table, indices=indices)
    results = run_ranks(["run", tmp_path / "m.dvt", "--input", f"@{tmp_path}/in.npz"], 3)
    assert [code for code, _, _ in results] == [USAGE] * 3, results
    for rank in range(3):
        assert "rank 2, node 'the_lookup': index 60 is out of range" in results[rank][2]


#: Bits that sums and comparisons of numbers would not keep.
_TABLES = {
    np.float32: lambda rng, shape: _bits(rng, shape, np.uint32, [0x80000000, 0x7FC12345, 0xFFC00001, 0x7F800001]),
    np.float16: lambda rng, shape: _bits(rng, shape, np.uint16, [0x8000, 0x7E12, 0xFE01]).view(np.float16),
    np.int64: lambda rng, shape: rng.integers(-(2**63), 2**63 - 1, shape),
    np.uint8: lambda rng, shape: rng.integers(0, 256, shape).astype(np.uint8),
    np.bool_: lambda rng, shape: rng.integers(0, 2, shape).astype(bool),
}


def _bits(rng, shape, unsigned, special):
    values = rng.integers(0, np.iinfo(unsigned).max, shape).astype(unsigned)
    values[rng.random(shape) < 0.5] = special[0]
    for pattern in special[1:]:
        values[rng.random(shape) < 0.2] = pattern
    return values.view({4: np.float32, 2: np.float16}[values.itemsize])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op, axis", [("Gather", 0), ("Gather", 1), ("GatherElements", 0)])
@pytest.mark.parametrize("type", _TABLES, ids=lambda type: type.__name__)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 2.2], ids=str)
def test_owners(backend, type, op, axis, ranks, target):
    """Ranks read of a table what they own; every bit arrives, wherever the cuts are and whoever has nothing."""
    rng = np.random.default_rng([int(10 * ranks), axis, len(op)])
    table = _TABLES[type](rng, (13, 17))
    extent = table.shape[axis]
    indices = rng.integers(-extent, extent, (3, 2) if op == "Gather" else (9, 17))
    mesh, axes = ({"y": 2, "x": 2}, "x+y") if ranks == 2.2 else ({"y": ranks}, "y")
    model, expected = _model(op, table, indices, axis), _expected(op, table, indices, axis)
    for _ in range(2):
        parts = Partition(mesh).parts(axes)
        cuts = np.sort(rng.integers(0, extent + 1, parts - 1))
        sizes = np.diff([0, *cuts, extent])
        partition = Partition(mesh).split("table", 2, axis, axes, sizes)
        flags = ["--target", target]
        actual = replaying_backend().compile_and_run(
            model, partition, {"table": table, "indices": indices}, ["picked"], extra=flags
        )
        _assert_same_bits(actual["picked"], expected)


def _exchanges(tmp_path, model, partition):
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    command = [tool("dovetail"), "compile", tmp_path / "m.onnx", "-o", tmp_path / "m.dvt", "--report"]
    code, _, messages = call([*command, tmp_path / "report.json", *partition.flags()])
    assert code == 0, messages
    return json.loads((tmp_path / "report.json").read_text())["exchanges"]


def _turned(ranks, *sizes):
    """What moves of tensors of these sizes that are split along one dimension and then along another."""
    return (ranks - 1) * sum(sizes) // ranks


def _least_to_rows(table, result, ranks):
    return min((ranks - 1) * table, _turned(ranks, table, result))


#: Rows of the table, indices, who uses the result and how that is split: what moves is the least of the table, given to
#: all or split along its other dimension, the result once (reduce-scatter) and twice (all-reduce).
_CHOICES = {
    "reduce-scatter": (20000, 1024, ["Abs"], None, lambda table, result, ranks: (ranks - 1) * result),
    "requested": (20000, 1024, [], 0, lambda table, result, ranks: (ranks - 1) * result),
    "all-reduce": (20000, 1024, [], None, lambda table, result, ranks: 2 * (ranks - 1) * result),
    "small": (2000, 60, ["Abs"], None, None),
    "table": (500, 1024, [], None, lambda table, result, ranks: _turned(ranks, table)),
    "table-divided": (500, 1024, ["Abs"], 0, _least_to_rows),
    "table-requested": (500, 1024, [], 0, _least_to_rows),
}


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("choice", _CHOICES)
def test_least_is_moved(backend, tmp_path, choice, ranks):
    rows, count, users, requested, bytes = _CHOICES[choice]
    rng = np.random.default_rng(3)
    table = rng.standard_normal((rows, 64)).astype(np.float32)
    indices = rng.integers(0, rows, count)
    model = _model("Gather", table, indices, 0, users)
    partition = Partition({"y": ranks}).split("table", 2, 0, "y")
    output = model.graph.output[0].name
    if requested is not None:
        partition.split(output, 2, requested, "y")
    exchanges = _exchanges(tmp_path, model, partition)
    if bytes is not None and choice != "reduce-scatter":
        assert sum(e["bytes"] for e in exchanges) == bytes(table.nbytes, count * 256, ranks)
    elif choice == "reduce-scatter":
        # The result is whole in the end, which the program's caller collects.
        assert exchanges[0]["bytes"] == bytes(table.nbytes, count * 256, ranks)
    expected = _expected("Gather", table, indices, 0)
    inputs = {"table": table, "indices": indices}
    actual = fastest_backend().compile_and_run(model, partition, inputs, [output])[output]
    _assert_same_bits(actual, np.abs(expected) if users else expected)


@pytest.mark.parametrize("wrong, found", [(16, "16"), (-1, str(2**64 - 1)), (2**32, str(2**32))])
def test_positions_are_reported_as_given(dovetail, wrong, found):
    """MaxUnpool's indices are positions, of which coordinates are made."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> unpool (float[1, 1, 2, 2] x, int64[1, 1, 2, 2] i) '
        "=> (float[n, c, h, w] y) "
        "{ y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i) }"
    )
    inputs = {"x": np.ones([1, 1, 2, 2], np.float32), "i": np.array([0, 3, wrong, 12]).reshape(1, 1, 2, 2)}
    pattern = f"index {found} is out of range for dimension 0 of extent 16; pass indices from 0 to 15$"
    with pytest.raises(dovetail.DovetailError, match=pattern):
        dovetail.compile(model).run(inputs)


@pytest.mark.parametrize("split", ["table", "indices", "nothing"])
@pytest.mark.parametrize("op", ["Gather", "GatherElements", "ScatterElements"])
def test_random_inputs_are_in_range(backend, op, split, tmp_path):
    """Random indices find something in a table of 3 rows, and others are as they always were."""
    updates = [helper.make_tensor_value_info("updates", TensorProto.FLOAT, [3, 40])] if op == "ScatterElements" else []
    shape = [40] if op == "Gather" else [3, 40]
    inputs = [
        helper.make_tensor_value_info("table", TensorProto.FLOAT, [5, 3] if op == "ScatterElements" else [3, 3]),
        helper.make_tensor_value_info("indices", TensorProto.INT64, shape),
        helper.make_tensor_value_info("numbers", TensorProto.INT64, [40]),
        *updates,
    ]
    names = ["table", "indices", *(value.name for value in updates)]
    nodes = [
        helper.make_node(op, names, ["result"], axis=1),
        helper.make_node("Identity", ["numbers"], ["same"]),
    ]
    outputs = [onnx.ValueInfoProto(name="result"), helper.make_tensor_value_info("same", TensorProto.INT64, [40])]
    model = helper.make_model(
        helper.make_graph(nodes, "random", inputs, outputs), opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    )
    path, artifact, results = tmp_path / "model.onnx", tmp_path / "model.dvt", tmp_path / "same.npy"
    path.write_bytes(model.SerializeToString())
    partition = Partition({"y": 3})
    if split == "table":
        partition.split("table", 2, 1, "y")
    elif split == "indices":
        partition.split("indices", len(shape), 0, "y")
    code, _, messages = call([tool("dovetail"), "verify", path, *partition.flags()])
    assert code == 0, messages
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", artifact, *partition.flags()])
    assert code == 0, messages
    code, _, messages = call([tool("dovetail-run"), "bench", artifact, "--iterations", "1"])
    assert code == 0, messages
    command = [tool("dovetail-run"), "run", artifact, *(f"--input={name}=random:1" for name in [*names, "numbers"])]
    code, _, messages = call([*command, "--output", f"same={results}"])
    assert code == 0, messages
    assert np.load(results).max() == 9
