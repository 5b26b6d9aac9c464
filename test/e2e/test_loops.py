# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose iterations are counted when the program runs, whole and split; against ONNX Runtime."""

import json

import numpy as np
import onnx
import pytest
from harness.backend import call, tool
from harness.extent import one_of
from harness.oracle import expected_outputs
from harness.partition import Partition, uneven_sizes
from test_processes import run_ranks

MESHES = [{"y": 1}, {"y": 2}, {"y": 3}, {"y": 4}, {"y": 2, "x": 2}]

HEAD = '<ir_version: 9, opset_import: ["" : 18]>'

#: Values that change places, one that stays, and one that is read of a table, so often as an input says.
COUNTED = f"""{HEAD}
counted (int64 trips, float[7, 6] a, float[7, 6] b, float[5, 6] table)
  => (float[7, 6] last, float[7, 6] other, float[7, 6] same, int64 number)
  <int64 rows = {{5}}>
{{
  start = Neg(a)
  scaled = Add(table, table)
  number0 = Constant<value_int = 0>()
  last, other, same, number = Loop(trips, , start, b, a, number0) <
    body = step (int64 i, bool on, float[7, 6] x, float[7, 6] y, float[7, 6] z, int64 n)
        => (bool goes, float[7, 6] x2, float[7, 6] y2, float[7, 6] z2, int64 n2) {{
      goes = Identity(on)
      at = Mod(i, rows)
      row = Gather<axis = 0>(scaled, at)
      sum = Add(x, row)
      x2 = Identity(y)
      y2 = Sub(sum, y)
      z2 = Identity(z)
      n2 = Add(n, i)
    }}>
}}
"""

#: Smooths an image until no element is larger than a limit.
FOUND = f"""{HEAD}
found (float[1, 2, 13, 9] image, float limit) => (float[1, 2, 13, 9] smooth, float largest)
  <float[2, 1, 3, 3] weights = {{0.0625, 0.125, 0.0625, 0.125, 0.125, 0.125, 0.0625, 0.125, 0.0625,
                                0.125, 0.0625, 0.125, 0.0625, 0.125, 0.0625, 0.125, 0.0625, 0.125}}>
{{
  first = ReduceMax<keepdims = 0>(image)
  begins = Less(limit, first)
  smooth, largest = Loop(, begins, image, first) <
    body = step (int64 i, bool on, float[1, 2, 13, 9] x, float m) => (bool goes, float[1, 2, 13, 9] y, float largest2) {{
      y = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1], group = 2>(x, weights)
      largest2 = ReduceMax<keepdims = 0>(y)
      goes = Less(limit, largest2)
    }}>
}}
"""

#: Powers of a matrix, in a loop that another one begins anew with more iterations each time.
NESTED = f"""{HEAD}
nested (int64 trips, float[6, 6] m, float[6, 5] x) => (float[6, 5] y)
  <float half = {{0.5}}>
{{
  y = Loop(trips, , x) <
    body = outer (int64 i, bool on, float[6, 5] a) => (bool goes, float[6, 5] b) {{
      goes = Identity(on)
      ones = Mul(m, half)
      inner = Loop(i, , ones) <
        body = power (int64 j, bool on2, float[6, 6] p) => (bool goes2, float[6, 6] q) {{
          goes2 = Identity(on2)
          product = MatMul(p, m)
          q = Mul(product, half)
        }}>
      moved = MatMul(inner, a)
      b = Add(moved, x)
    }}>
}}
"""

#: An inner loop that depends on the outer one by what it reads alone: it begins anew in each iteration all the same.
AGAIN = f"""{HEAD}
again (int64 trips, float[6, 5] x) => (float[6, 5] y)
{{
  start = Neg(x)
  y = Loop(trips, , x) <
    body = outer (int64 i, bool on, float[6, 5] a) => (bool goes, float[6, 5] b) {{
      goes = Identity(on)
      inner = Loop(trips, , start) <
        body = add (int64 j, bool on2, float[6, 5] p) => (bool goes2, float[6, 5] q) {{
          goes2 = Identity(on2)
          q = Add(p, a)
        }}>
      b = Sub(inner, x)
    }}>
}}
"""

#: In a branch: a loop that would never end is not begun where the branch is not taken.
BRANCH = f"""{HEAD}
branch (bool taken, float[8] x) => (float[8] y)
  <float limit = {{100.0}}>
{{
  y = If(taken) <
    then_branch = yes () => (float[8] grown) {{
      grown = Loop(, , x) <
        body = step (int64 i, bool on, float[8] a) => (bool goes, float[8] b) {{
          b = Add(a, a)
          least = ReduceMin<keepdims = 0>(b)
          goes = Less(least, limit)
        }}>
    }},
    else_branch = no () => (float[8] same) {{ same = Neg(x) }}>
}}
"""

#: Work that only one of two branches asks for, in each iteration, and an index that is wrong where it is not taken.
CHOSEN = f"""{HEAD}
chosen (int64 trips, int64 where, float[7, 6] x, float[6, 6] a, float[6, 6] b) => (float[7, 6] y)
  <int64 two = {{2}}, int64 zero = {{0}}, float scale = {{0.25}}>
{{
  y = Loop(trips, , x) <
    body = step (int64 i, bool on, float[7, 6] v) => (bool goes, float[7, 6] w) {{
      goes = Identity(on)
      rest = Mod(i, two)
      even = Equal(rest, zero)
      w = If(even) <
        then_branch = yes () => (float[7, 6] p) {{
          p0 = MatMul(v, a)
          p = Mul(p0, scale)
        }},
        else_branch = no () => (float[7, 6] q) {{
          q0 = MatMul(v, b)
          at = Add(i, where)
          row = Gather<axis = 0>(v, at)
          q = Sub(q0, row)
        }}>
    }}>
}}
"""

#: More iterations than are expanded.
LONG = f"""{HEAD}
long (float[7, 6] x) => (float[7, 6] y)
  <int64 trips = {{3000}}, float[6] step = {{1, 2, 3, 4, 5, 6}}>
{{
  y = Loop(trips, , x) <
    body = add (int64 i, bool on, float[7, 6] a) => (bool goes, float[7, 6] b) {{
      goes = Identity(on)
      c = Add(a, step)
      d = Neg(c)
      e = Neg(d)
      b = Identity(e)
    }}>
}}
"""

#: Tokens of a decoder, each of which writes a row of a cache and attends to those that there are.
DECODER = f"""{HEAD}
decoder (int64 tokens, float[1, 8] first, float[8, 24] qkv, float[8, 8] out) => (float[12, 8] seen, float[1, 8] last)
  <int64[1] zero = {{0}}, int64[2] one_row = {{1, 1}}, int64[3] parts = {{8, 8, 8}}, int64 most = {{12}}, int64 one = {{1}},
   int64 none = {{0}}, float scale = {{0.35}}, float far = {{-1.0e9}}>
{{
  empty_shape = Constant<value_ints = [12, 8]>()
  keys0 = ConstantOfShape(empty_shape)
  seen, values, last = Loop(tokens, , keys0, keys0, first) <
    body = token (int64 i, bool on, float[12, 8] keys, float[12, 8] values, float[1, 8] x)
        => (bool goes, float[12, 8] keys2, float[12, 8] values2, float[1, 8] x2) {{
      goes = Identity(on)
      all = MatMul(x, qkv)
      q, k, v = Split<axis = 1>(all, parts)
      at = Reshape(i, one_row)
      keys2 = ScatterND(keys, at, k)
      values2 = ScatterND(values, at, v)
      turned = Transpose<perm = [1, 0]>(keys2)
      scores = MatMul(q, turned)
      positions = Range(none, most, one)
      later = Greater(positions, i)
      scaled = Mul(scores, scale)
      masked = Where(later, far, scaled)
      weights = Softmax<axis = 1>(masked)
      mixed = MatMul(weights, values2)
      moved = MatMul(mixed, out)
      sum = Add(x, moved)
      x2 = Tanh(sum)
    }}>
}}
"""

#: Rows of all iterations, of which there are as many as it takes to reach a limit; nine at most.
STACKED = f"""{HEAD}
stacked (float[7, 6] x, float limit) => (float[7, 6] last, float[N, 7, 6] all, float[N] largest, float[7, 6] total)
  <int64 most = {{9}}, float[7, 6] step = {{{", ".join(["1, 0.5"] * 21)}}}, int64[1] first = {{0}}>
{{
  highest = ReduceMax<keepdims = 0>(x)
  begins = Less(highest, limit)
  last, all, largest = Loop(most, begins, x) <
    body = add (int64 i, bool on, float[7, 6] s) => (bool goes, float[7, 6] t, float[7, 6] u, float m) {{
      t = Add(s, step)
      u = Neg(t)
      m = ReduceMax<keepdims = 0>(t)
      goes = Less(m, limit)
    }}>
  total = ReduceSum<keepdims = 0>(all, first)
}}
"""

#: The same of more iterations than are expanded.
LONG_STACKED = STACKED.replace("most = {9}", "most = {2000}")


def _values(seed, *shape):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def _small(seed, *shape):
    return (np.random.default_rng(seed).random(shape).astype(np.float32) - 0.5) * 0.6


def _number(value, dtype=np.int64):
    return np.array(value, dtype)


#: Data end it, but a shape depends on the iteration: it is expanded.
SHAPES = f"""{HEAD}
shapes (float[7, 6] x, float limit) => (float[7, 6] last)
  <int64 most = {{7}}, int64 zero = {{0}}, int64 one = {{1}}>
{{
  first = ReduceMax<keepdims = 0>(x)
  begins = Less(first, limit)
  last = Loop(most, begins, x) <
    body = step (int64 i, bool on, float[7, 6] a) => (bool goes, float[7, 6] b) {{
      numbers = Range(zero, i, one)
      sum = ReduceSum<keepdims = 0>(numbers)
      more = Cast<to = 1>(sum)
      b = Add(a, more)
      largest = ReduceMax<keepdims = 0>(b)
      goes = Less(largest, limit)
    }}>
}}
"""

CASES = {
    "counted": (
        COUNTED,
        {"a": 0, "b": 1},
        True,
        [
            {"trips": _number(trips), "a": _values(1, 7, 6), "b": _values(2, 7, 6), "table": _values(3, 5, 6)}
            for trips in (3, 0, 1, 12, -2)
        ],
    ),
    "found": (
        FOUND,
        {"image": 2},
        False,
        [{"image": _values(4, 1, 2, 13, 9) ** 2, "limit": _number(limit, np.float32)} for limit in (3, 100, 0.5)],
    ),
    "nested": (
        NESTED,
        {"m": 0, "x": 1},
        False,
        [{"trips": _number(trips), "m": _small(5, 6, 6), "x": _small(6, 6, 5)} for trips in (4, 0, 1)],
    ),
    "again": (
        AGAIN,
        {"x": 0},
        True,
        [{"trips": _number(trips), "x": _values(17, 6, 5)} for trips in (3, 0, 1, 4)],
    ),
    "branch": (
        BRANCH,
        {"x": 0},
        True,
        [
            {"taken": _number(True, bool), "x": np.arange(1, 9, dtype=np.float32)},
            {"taken": _number(False, bool), "x": np.zeros(8, np.float32)},
        ],
    ),
    "chosen": (
        CHOSEN,
        {"x": 0, "a": 1},
        True,
        [
            {"trips": _number(trips), "where": _number(where)}
            | {"x": _values(11, 7, 6), "a": _values(12, 6, 6), "b": _values(13, 6, 6)}
            for trips, where in ((4, 2), (1, 99), (0, 0))
        ],
    ),
    "stacked": (
        STACKED,
        {"x": 0},
        True,
        [{"x": _values(18, 7, 6), "limit": _number(limit, np.float32)} for limit in (7, -9, 99, 5)],
    ),
    "long stacked": (
        LONG_STACKED,
        {"x": 1},
        True,
        [{"x": _values(19, 7, 6), "limit": _number(limit, np.float32)} for limit in (30, -9, 5)],
    ),
    "shapes": (
        SHAPES,
        {"x": 0},
        True,
        [{"x": _values(20, 7, 6), "limit": _number(limit, np.float32)} for limit in (20, -9, 99, 3)],
    ),
    "long": (LONG, {"x": 0}, True, [{"x": _values(7, 7, 6)}]),
    "decoder": (
        DECODER,
        {"first": 1, "out": 0},
        False,
        [
            {"tokens": _number(tokens), "first": _small(8, 1, 8), "qkv": _small(9, 8, 24), "out": _small(10, 8, 8)}
            for tokens in (5, 12, 0)
        ],
    ),
}


def _partition(mesh, model, tensors):
    partition = Partition(mesh)
    axes = "+".join(mesh)
    shapes = {port.name: [dim.dim_value for dim in port.type.tensor_type.shape.dim] for port in model.graph.input}
    for name, dim in tensors.items():
        shape = shapes[name]
        partition.split(name, len(shape), dim, axes, uneven_sizes(shape[dim], partition.ranks))
    return partition


def _check(actual, model, inputs, exact, what):
    for name, expected in expected_outputs(model, inputs).items():
        assert actual[name].shape == expected.shape and actual[name].dtype == expected.dtype, (what, name)
        if exact:
            np.testing.assert_array_equal(actual[name], expected, f"{what}, {name}")
        else:
            np.testing.assert_allclose(actual[name], expected, rtol=2e-5, atol=2e-6, err_msg=f"{what}, {name}")


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_runs_differ_in_iterations(dovetail, case, mesh):
    """One program with as many iterations as its inputs say, none among them."""
    text, tensors, exact, runs = CASES[case]
    model = onnx.parser.parse_model(text)
    for libraries in (True, False):
        program = dovetail.compile(model, libraries=libraries, options=_partition(mesh, model, tensors).flags())
        for number, inputs in enumerate(runs):
            _check(program.run(inputs), model, inputs, exact, f"run {number}")


@one_of(2)
@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", CASES)
def test_any_way_to_split(dovetail, case, seed, target):
    """What is split at random, and how the planner would never do it."""
    text, _, exact, runs = CASES[case]
    model = onnx.parser.parse_model(text)
    options = ["--target", target, "--mesh", "y=3,x=2", "--shardings-seed", str(seed + 1)]
    program = dovetail.compile(model, libraries=target == "cpu", options=options)
    for number, inputs in enumerate(runs):
        _check(program.run(inputs), model, inputs, exact, f"run {number}")


def test_results_of_all_iterations(dovetail):
    """A long sequence, forward and backward, stacked along another dimension."""
    text = f"""{HEAD}
    rows (float[3, 3000] x, float[3] start) => (float[3] last, float[3, 3000] sums, float[3000, 3] back)
    {{
      last, sums, back = Scan<num_scan_inputs = 2, scan_input_axes = [1, 1], scan_input_directions = [0, 1],
                              scan_output_axes = [1, 0], scan_output_directions = [0, 1],
                              body = each (float[3] s, float[3] a, float[3] b) => (float[3] t, float[3] u, float[3] v) {{
        t = Add(s, a)
        u = Neg(t)
        v = Sub(t, b)
      }}>(start, x, x)
    }}
    """
    model = onnx.parser.parse_model(text)
    inputs = {"x": _values(14, 3, 3000), "start": _values(15, 3)}
    for mesh in ({"y": 1}, {"y": 2}, {"y": 3}):
        program = dovetail.compile(model, options=_partition(mesh, model, {"x": 0}).flags())
        _check(program.run(inputs), model, inputs, True, str(mesh))


def test_results_that_are_left_out(dovetail):
    """A stacked result without a name, which ONNX Runtime does not take: what others are is known of the whole model."""
    whole, model = onnx.parser.parse_model(STACKED), onnx.parser.parse_model(STACKED)
    loop, total = (node for node in model.graph.node if node.op_type in ("Loop", "ReduceSum"))
    model.graph.node.remove(total)
    loop.output[1] = ""
    for output in [output for output in model.graph.output if output.name in ("all", "total")]:
        model.graph.output.remove(output)
    # Where the condition is not given either, its name is the same.
    for condition, limits in (("begins", (7, -9)), ("", (7, 99))):
        for each in (whole, model):
            next(node for node in each.graph.node if node.op_type == "Loop").input[1] = condition
        program = dovetail.compile(model, mesh={"y": 2})
        for limit in limits:
            inputs = {"x": _values(20, 7, 6), "limit": _number(limit, np.float32)}
            actual, expected = program.run(inputs), expected_outputs(whole, inputs)
            for name in ("last", "largest"):
                np.testing.assert_array_equal(actual[name], expected[name], f"limit {limit}, {name}")


@pytest.mark.parametrize("rows", [64, 25])
def test_only_one_branch_runs(dovetail, tmp_path, rows):
    """Steps of the branch that is not taken take no time in a trace, also where branches differ in extents."""
    text = f"""{HEAD}
    one (bool taken, float[64, 64] x) => (float[{64 if rows == 64 else "n"}, 64] y)
      <int64[1] start = {{0}}, int64[1] end = {{{rows}}}>
    {{
      y = If(taken) <then_branch = yes () => (float[64, 64] p) {{ p = MatMul(x, x) }},
                     else_branch = no () => (float[{rows}, 64] q) {{
                       t = Mul(x, x) u = Slice(t, start, end) r = MatMul(u, x) s = MatMul(r, t) q = Neg(s)
                     }}>
    }}
    """
    model = onnx.parser.parse_model(text)
    artifact = tmp_path / "model.dvt"
    dovetail.compile(model, options=["--mesh", "y=2"]).save(artifact)
    x = _small(16, 64, 64)
    np.save(tmp_path / "x.npy", x)
    for taken, products in ((True, 1), (False, 2)):
        np.save(tmp_path / "taken.npy", np.array(taken))
        files = {"trace": tmp_path / "trace.json", "y": tmp_path / "y.npy"}
        command = ["run", artifact, "--input", f"x=@{tmp_path}/x.npy", "--input", f"taken=@{tmp_path}/taken.npy"]
        command += ["--trace", files["trace"], "--output", f"y={files['y']}"]
        code, _, messages = call([tool("dovetail-run"), *command])
        assert code == 0, messages
        _check({"y": np.load(files["y"])}, model, {"taken": np.array(taken), "x": x}, False, str(taken))
        events = json.loads(files["trace"].read_text())["traceEvents"]
        run = [event for event in events if event.get("cat") == "matmul" and event["pid"] == 0]
        assert len(run) == 3 and sum(event["dur"] > 0 for event in run) == products


def _many(first, name, operations):
    """So many operations behind each other, from `first` to `name`."""
    names = [first, *(f"{name}{i}" for i in range(operations - 1)), name]
    return " ".join(
        f"{after} = {'Sub' if i % 2 else 'Add'}({before}, {'b' if i % 2 else 'a'})"
        for i, (before, after) in enumerate(zip(names, names[1:]))
    )


@pytest.mark.parametrize("operations, products", [(100, 1), (10, 2)])
def test_devices_choose_what_is_much(dovetail, tmp_path, operations, products):
    """A device runs one branch where that saves much, and computes both where it does not."""
    text = f"""{HEAD}
    much (bool taken, float[256, 256] a, float[256, 256] b) => (float[256, 256] y)
    {{
      y = If(taken) <then_branch = yes () => (float[256, 256] p) {{ m = MatMul(a, b) {_many("m", "p", operations)} }},
                     else_branch = no () => (float[256, 256] q) {{ n = MatMul(b, a) {_many("n", "q", operations)} }}>
    }}
    """
    model = onnx.parser.parse_model(text)
    artifact = tmp_path / "model.dvt"
    program = dovetail.compile(model, libraries=False, options=["--mesh", "y=2", "--target", "emulated"])
    program.save(artifact)
    inputs = {"a": _small(17, 256, 256), "b": _small(18, 256, 256)}
    # Each side is recorded when it is taken for the second time, and replayed from then on.
    for taken in (True, False, True, True, False, False, True):
        inputs["taken"] = np.array(taken)
        _check(program.run(inputs), model, inputs, False, str(taken))
    command = ["run", artifact, "--output", f"y={tmp_path}/y.npy", "--trace", tmp_path / "trace.json"]
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        command += ["--input", f"{name}=@{tmp_path}/{name}.npy"]
    code, _, messages = call([tool("dovetail-run"), *command])
    assert code == 0, messages
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel" and event["pid"] == 0]
    assert sum(event["dur"] > 0 and "MatMul" in event["name"] for event in kernels) == products, kernels


@pytest.mark.parametrize("target", ["cpu", "emulated"])
def test_processes_decide_together(dovetail, tmp_path, target):
    """Rank 0 tells the others, which are processes, whether there is another iteration."""
    text, tensors, _, runs = CASES["found"]
    model = onnx.parser.parse_model(text)
    artifact = tmp_path / "model.dvt"
    options = ["--target", target, *_partition({"y": 3}, model, tensors).flags()]
    dovetail.compile(model, libraries=target == "cpu", options=options).save(artifact)
    command = ["run", artifact, "--output", f"smooth={tmp_path}/smooth.npy", "--output", f"largest={tmp_path}/largest.npy"]
    for name, value in runs[0].items():
        np.save(tmp_path / f"{name}.npy", value)
        command += ["--input", f"{name}=@{tmp_path}/{name}.npy"]
    for code, _, messages in run_ranks(command, 3):
        assert code == 0, messages
    actual = {name: np.load(tmp_path / f"{name}.npy") for name in ("smooth", "largest")}
    _check(actual, model, runs[0], False, "processes")


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_devices_repeat(dovetail, monkeypatch, case, mesh):
    """The emulated device, in two orders of its work. Iterations are recorded once, and replayed in all runs."""
    text, tensors, exact, runs = CASES[case]
    model = onnx.parser.parse_model(text)
    options = ["--target", "emulated", *_partition(mesh, model, tensors).flags()]
    program = dovetail.compile(model, libraries=False, options=options)
    for seed in ("0", "1"):
        monkeypatch.setenv("DOVETAIL_EMULATED_SEED", seed)
        for number, inputs in enumerate(runs):
            _check(program.run(inputs), model, inputs, exact, f"seed {seed}, run {number}")
