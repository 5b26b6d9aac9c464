# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dimensions whose extents depend on data, through a whole model and every way to run it; against NumPy."""

import numpy as np
import onnx
import pytest
from harness.backend import call, tool
from harness.partition import Partition, uneven_sizes
from test_processes import run_ranks

TARGETS = ["cpu", "emulated"]
EXTENT, WIDTH, ENTRIES = 13, 3, 7

#: Rows that are marked, the entries of a table that they name, and what is made of both.
MODEL = f"""
<ir_version: 9, opset_import: ["" : 18]>
chosen (bool[{EXTENT}] keep, float[{EXTENT}, {WIDTH}] rows, int64[{EXTENT}] names, float[{ENTRIES}, {WIDTH}] table)
  => (float[n, {WIDTH}] mixed, float[{WIDTH}, n] turned, int64[n] running, float[n, 1] total, float[{ENTRIES}, {WIDTH}] whole)
  <int64[1] last = {{1}}, int64 axis = {{0}}, int64 offset = {{2}}>
{{
  kept = Compress<axis = 0>(rows, keep)
  at = Compress<axis = 0>(names, keep)
  moved = Sub(at, offset)
  entries = Gather<axis = 0>(table, moved)
  product = Mul(kept, kept)
  shifted = Add(product, kept)
  mixed = Relu(shifted)
  turned = Transpose(entries)
  running = CumSum(at, axis)
  total = ReduceSum(entries, last)
  whole = Neg(table)
}}
"""


def _expected(keep, rows, names, table):
    kept, at = rows[keep], names[keep]
    return {
        "mixed": np.maximum(kept * kept + kept, 0),
        "turned": table[at - 2].T,
        "running": np.cumsum(at),
        "total": table[at - 2].sum(1, keepdims=True),
        "whole": -table,
    }


def _inputs(rng, density):
    """Where a row is not marked, its name would be out of range."""
    keep = rng.random(EXTENT) < density
    names = np.where(keep, rng.integers(2 - ENTRIES, ENTRIES + 2, EXTENT), 99)
    rows, table = (rng.integers(-9, 9, (n, WIDTH)).astype(np.float32) for n in (EXTENT, ENTRIES))
    return {"keep": keep, "rows": rows, "names": names, "table": table}


def _assert_equal(actual, expected):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        assert actual[name].dtype == value.dtype and actual[name].shape == value.shape, name
        np.testing.assert_array_equal(actual[name], value, name)


@pytest.fixture(scope="module")
def model():
    # Two counts of one mask need not be known to be equal: each output depends on one of them.
    return onnx.parser.parse_model(MODEL)


def _partition(mesh, tensors):
    partition = Partition(mesh)
    axes = "+".join(mesh)
    shapes = {"keep": (EXTENT,), "rows": (EXTENT, WIDTH), "names": (EXTENT,), "table": (ENTRIES, WIDTH), "mixed": (EXTENT, WIDTH)}
    for name in tensors:
        shape = shapes[name]
        partition.split(name, len(shape), 0, axes, uneven_sizes(shape[0], partition.ranks))
    return partition


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "mesh, tensors",
    [({"y": 1}, ()), ({"y": 3}, ("keep", "rows", "names")), ({"y": 2, "x": 2}, ("table", "mixed")), ({"y": 4}, ("rows",))],
    ids=str,
)
def test_runs_differ_in_extents(dovetail, model, mesh, tensors, target):
    """One program, with counts from none to all, and on devices a recorded run that is replayed with another count."""
    flags = [*_partition(mesh, tensors).flags(), "--target", target]
    program = dovetail.compile(model, libraries=False, options=flags)
    assert [port.shape for port in program.outputs] == [
        (EXTENT, WIDTH),
        (WIDTH, EXTENT),
        (EXTENT,),
        (EXTENT, 1),
        (ENTRIES, WIDTH),
    ]
    rng = np.random.default_rng(len(tensors))
    for density in (0.5, 0, 1, 0.2):
        inputs = _inputs(rng, density)
        _assert_equal(program.run(inputs), _expected(**inputs))


def test_indices_below_the_count_are_checked(dovetail, model):
    program = dovetail.compile(model, libraries=False, options=_partition({"y": 3}, ("table",)).flags())
    inputs = _inputs(np.random.default_rng(0), 0.5)
    inputs["names"][np.flatnonzero(inputs["keep"])[-1]] = ENTRIES + 2
    with pytest.raises(dovetail.DovetailError, match=rf"index {ENTRIES} .*of extent {ENTRIES}"):
        program.run(inputs)


@pytest.mark.parametrize("target", TARGETS)
def test_command_line_and_processes(dovetail, model, tmp_path, target):
    """Files have what there is, also those of which processes write parts, and `inspect` says that the bound is one."""
    inputs = _inputs(np.random.default_rng(1), 0.4)
    artifact = tmp_path / "model.dvt"
    flags = [*_partition({"y": 2}, ("rows", "keep")).flags(), "--target", target]
    dovetail.compile(model, libraries=False, options=flags).save(artifact)
    given = []
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        given += ["--input", f"{name}=@{tmp_path / name}.npy"]

    def check(file):
        with np.load(file) as archive:
            _assert_equal(dict(archive), _expected(**inputs))

    run = ["run", artifact, *given]
    code, _, messages = call([tool("dovetail-run"), *run, "--output", tmp_path / "threads.npz"])
    assert code == 0, messages
    check(tmp_path / "threads.npz")
    parts = [arg for name in _expected(**inputs) for arg in ("--output", f"{name}={tmp_path}/{name}-parts.npy")]
    assert run_ranks([*run, *parts], 2) == [(0, "", "")] * 2
    _assert_equal({name: np.load(tmp_path / f"{name}-parts.npy") for name in _expected(**inputs)}, _expected(**inputs))
    kept = f"float32[{inputs['keep'].sum()}, {WIDTH}]"
    (code, text, messages), (other, nothing, _) = run_ranks(run, 2)
    assert (code, other, nothing) == (0, 0, "") and kept in text, messages
    code, text, _ = call([tool("dovetail-run"), "inspect", artifact])
    assert code == 0
    assert f"float32[{EXTENT}, {WIDTH}] at most" in text
    assert f"float32[{ENTRIES}, {WIDTH}] at most" not in text


@pytest.mark.parametrize("ranks", [1, 3])
def test_steps_and_processes(dovetail, model, tmp_path, ranks):
    """Each step writes as much as it has, by threads and by processes, which begin with what is none at all."""
    artifact, densities = tmp_path / "model.dvt", [0, 0.4, 1, 0.1]
    dovetail.compile(model, options=_partition({"y": 3}, ("rows", "keep")).flags()).save(artifact)
    rng, given = np.random.default_rng(2), []
    steps = [_inputs(rng, density) for density in densities]
    for name in steps[0]:
        (tmp_path / name).mkdir()
        for number, inputs in enumerate(steps):
            np.save(tmp_path / name / f"{number}.npy", inputs[name])
        given += ["--input", f"{name}={tmp_path}/{name}/*.npy"]
    outputs = [arg for name in _expected(**steps[0]) for arg in ("--output", f"{name}={tmp_path}/out/{name}-{{step}}.npy")]
    (tmp_path / "out").mkdir()
    command = ["run", artifact, *given, *outputs]
    if ranks == 1:
        code, _, messages = call([tool("dovetail-run"), *command])
        assert code == 0, messages
    else:
        assert [code for code, _, _ in run_ranks(command, ranks)] == [0] * ranks
    for number, inputs in enumerate(steps):
        expected = _expected(**inputs)
        _assert_equal({name: np.load(tmp_path / f"out/{name}-{number + 1:04}.npy") for name in expected}, expected)


def test_verify_compares_what_there_is(tmp_path, backend):
    model = onnx.parser.parse_model(
        """
        <ir_version: 9, opset_import: ["" : 18]>
        marked (float[9, 5] x, bool[9] keep) => (int64[2, n] where, float[k, 5] kept)
        {
          larger = Greater(x, half)
          where = NonZero(larger)
          rows = Compress<axis = 0>(x, keep)
          kept = Exp(rows)
        }
        """.replace("{", "<float half = {0.5}> {", 1)
    )
    onnx.save(model, tmp_path / "model.onnx")
    for more in ([], ["--per-op"]):
        command = [tool("dovetail"), "verify", tmp_path / "model.onnx", "--mesh", "y=3", "--shard", "x=y,_", *more]
        code, output, messages = call(command)
        assert code == 0, (output, messages)
        assert "where" in output and "where:1" not in output


def test_kernels_end_where_outputs_do(tmp_path):
    """Of elements and lines, not of running sums, which go on from one element to the next."""
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "model.onnx")
    code, text, messages = call([tool("dovetail"), "compile", tmp_path / "model.onnx", "--compile-to", "lower"])
    assert code == 0, messages
    launches = {}
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["plan.launch"] and 'step_name = "' in line:
            launches[line.split('step_name = "')[1].split('"')[0]] = words[1].split("(")[0].lstrip("@")
    kernels = {line.split("@")[1].split("(")[0]: line for line in text.splitlines() if "plan.kernel @" in line}
    ends = {name for name, kernel in launches.items() if "counts = array<i64" in kernels[kernel]}
    assert {"Relu:mixed", "Transpose:turned", "ReduceSum:total"} <= ends, launches
    assert not ends & {"CumSum:running", "Neg:whole"}


@pytest.mark.parametrize("target", TARGETS)
def test_outputs_of_one_buffer_have_counts_of_their_own(dovetail, target):
    """A transpose moves nothing where extents are 1, so both outputs lie in the same memory."""
    text = """
    <ir_version: 9, opset_import: ["" : 18]>
    both (float[1, 1] x, bool[1] rows, bool[1] columns) => (float[n, m] kept, float[m, n] turned)
    {
      half = Compress<axis = 0>(x, rows)
      kept = Compress<axis = 1>(half, columns)
      turned = Transpose(kept)
    }
    """
    program = dovetail.compile(onnx.parser.parse_model(text), libraries=False, options=["--mesh", "y=1", "--target", target])
    x = np.float32([[3]])
    for row in (False, True):
        for column in (False, True):
            results = program.run({"x": x, "rows": np.array([row]), "columns": np.array([column])})
            kept = x[[row]][:, [column]] if row and column else np.zeros([int(row), int(column)], np.float32)
            _assert_equal(results, {"kept": kept, "turned": kept.T})
