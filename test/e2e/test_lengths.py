# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lengths that vary from run to run (`compile --bound`), each model compiled once; against ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from harness.backend import FILE, UNSUPPORTED, USAGE, call, tool
from harness.cpus import cpu_up_to
from harness.extent import one_of
from harness.partition import Partition, uneven_sizes
from test_processes import finish, free_port, run_ranks, start

BOUND, WIDTH, ENTRIES = 11, 6, 12
LENGTHS = [4, 0, BOUND, 1, 7]
MESHES = [{"y": 1}, {"y": 2}, {"y": 3}, {"y": 4}, {"y": 2, "x": 2}]

#: What changes elements, moves them along with their positions, or sums up to them.
ELEMENTWISE = f"""
<ir_version: 9, opset_import: ["" : 18]>
elementwise (int64[2, seq] tokens, float[2, seq, {WIDTH}] shift, float[{ENTRIES}, {WIDTH}] table)
  => (float[2, seq, {WIDTH}] mixed, float[{WIDTH}, 2, seq] turned, int64[2, seq] running)
  <int64 one = {{1}}>
{{
  rows = Gather<axis = 0>(table, tokens)
  sum = Add(rows, shift)
  mixed = Relu(sum)
  turned = Transpose<perm = [2, 0, 1]>(rows)
  running = CumSum(tokens, one)
}}
"""


#: The same on nearly all machines.
CPU = cpu_up_to("x86-64-v3")


def _parse(text):
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model)
    return model


def _elementwise_inputs(rng, length):
    return {
        "tokens": rng.integers(-ENTRIES, ENTRIES, (2, length)),
        "shift": rng.standard_normal((2, length, WIDTH), np.float32),
        "table": rng.standard_normal((ENTRIES, WIDTH), np.float32),
    }


def _flags(mesh, name, shape, dim):
    """`mesh` splits a dimension of an input, unevenly."""
    partition = Partition(mesh)
    if partition.ranks > 1:
        partition.split(name, len(shape), dim, "+".join(mesh), uneven_sizes(shape[dim], partition.ranks))
    return partition.flags()


def _check(program, model, make_inputs, lengths=LENGTHS, rtol=0.0, atol=0.0):
    """One program, with lengths in an order in which longer runs leave behind what shorter ones must not read."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    rng = np.random.default_rng(7)
    for length in lengths:
        inputs = make_inputs(rng, length)
        actual = program.run(inputs)
        for name, expected in zip(names, session.run(names, inputs)):
            assert actual[name].shape == expected.shape and actual[name].dtype == expected.dtype, (name, length)
            np.testing.assert_allclose(actual[name], expected, rtol, atol, err_msg=f"{name} at length {length}")


@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("dim", [1, 2], ids=["along", "across"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_elementwise(dovetail, mesh, dim, target):
    model = _parse(ELEMENTWISE)
    flags = _flags(mesh, "shift", (2, BOUND, WIDTH), dim)
    program = dovetail.compile(model, bounds={"seq": BOUND}, target=target, cpu=CPU, libraries=False, options=flags)
    assert [port.lengths for port in program.inputs] == [(None, "seq"), (None, "seq", None), ()]
    assert str(program.inputs[1]) == f"shift: float32[2, seq<={BOUND}, {WIDTH}]"
    _check(program, model, _elementwise_inputs)


def test_several_lengths_and_dimensions_without_names(dovetail):
    """Each dimension without a name has a length of its own, and several counts bound one output."""
    model = _parse(
        """<ir_version: 9, opset_import: ["" : 18]>
        outer (float[?, 1] a, float[1, cols] b, bool[cols] keep) => (float[n, cols] product, float[n, k] chosen)
        { product = Mul(a, b)  chosen = Compress<axis = 1>(product, keep) }"""
    )
    program = dovetail.compile(model, bounds={("a", 0): 5, "cols": 7}, cpu=CPU)
    rng = np.random.default_rng(3)
    for rows, columns in ((5, 7), (2, 7), (0, 3), (3, 0), (1, 1)):
        a, b = rng.standard_normal((rows, 1), np.float32), rng.standard_normal((1, columns), np.float32)
        keep = rng.random(columns) < 0.5
        outputs = program.run({"a": a, "b": b, "keep": keep})
        np.testing.assert_array_equal(outputs["product"], a * b)
        np.testing.assert_array_equal(outputs["chosen"], (a * b)[:, keep])


def test_inputs_that_do_not_agree(dovetail):
    program = dovetail.compile(_parse(ELEMENTWISE), bounds={"seq": BOUND}, cpu=CPU)
    inputs = _elementwise_inputs(np.random.default_rng(0), 5)

    def refused(message, **changed):
        with pytest.raises(dovetail.DovetailError, match=message) as caught:
            program.run(inputs | changed)
        assert caught.value.code == USAGE

    shift = inputs["shift"]
    refused("'seq' is 5 in dimension 1 of input 'tokens', but 4 in dimension 1 of input 'shift'", shift=shift[:, :4])
    refused(r"'shift' is .*\[2, 12, 6\], but the program takes float32\[2, seq<=11, 6\]", shift=np.zeros((2, 12, 6), "f4"))
    refused(r"'shift' is .*\[1, 5, 6\], but", shift=shift[:1])
    # It goes on after that.
    assert program.run(inputs)["mixed"].shape == (2, 5, WIDTH)


def test_indices_beyond_the_length_are_not_checked(dovetail):
    program = dovetail.compile(_parse(ELEMENTWISE), bounds={"seq": BOUND}, cpu=CPU)
    inputs = _elementwise_inputs(np.random.default_rng(0), BOUND)
    with pytest.raises(dovetail.DovetailError, match=f"index {ENTRIES} .*of extent {ENTRIES}"):
        program.run(inputs | {"tokens": np.full((2, BOUND), ENTRIES)})
    assert program.run(_elementwise_inputs(np.random.default_rng(0), 3))["mixed"].shape == (2, 3, WIDTH)


def test_command_line(tmp_path):
    """Files have what there is."""
    model, artifact = tmp_path / "model.onnx", tmp_path / "model.dvt"
    onnx.save(_parse(ELEMENTWISE), model)

    def done(*arguments):
        code, output, errors = call([tool("dovetail"), *arguments])
        assert code == 0, errors
        return output

    done("compile", model, "-o", artifact, "--bound", f"seq={BOUND}", "--cpu", CPU)
    assert f"[2, {BOUND}, {WIDTH}] at most" in done("inspect", artifact)
    inputs = _elementwise_inputs(np.random.default_rng(1), 3)
    given = []
    for name, array in inputs.items():
        np.save(tmp_path / f"{name}.npy", array)
        given += ["--input", f"{name}=@{tmp_path / name}.npy"]
    done("run", artifact, *given, "--output", f"mixed={tmp_path}/mixed.npy")
    expected = np.maximum(inputs["table"][inputs["tokens"]] + inputs["shift"], 0)
    np.testing.assert_array_equal(np.load(tmp_path / "mixed.npy"), expected)
    # Random inputs, those of `bench` too, are as long as can be.
    random = [argument for name in inputs for argument in ("--input", f"{name}=random:1")]
    done("run", artifact, *random, "--output", f"mixed={tmp_path}/mixed.npy")
    assert np.load(tmp_path / "mixed.npy").shape == (2, BOUND, WIDTH)
    done("bench", artifact, "--iterations", "1", "--warmup", "0")
    # But others are as long as what is given.
    tokens = ("--input", f"tokens=@{tmp_path}/tokens.npy")
    done("run", artifact, *tokens, *random[2:], "--output", f"mixed={tmp_path}/mixed.npy")
    assert np.load(tmp_path / "mixed.npy").shape == (2, 3, WIDTH)
    done("bench", artifact, *tokens, "--iterations", "1", "--warmup", "0")
    inputs["shift"].tofile(tmp_path / "shift.raw")
    code, _, errors = call([tool("dovetail"), "run", artifact, *given[:2], *given[4:], "--input", f"shift=@{tmp_path}/shift.raw"])
    assert code == FILE and f"as float32[2, seq<={BOUND}, {WIDTH}] has at its bounds" in errors, errors


#: Recurrences end where rows do: at the length, or before.
RECURRENCES = f"""
<ir_version: 9, opset_import: ["" : 18]>
recurrences (float[seq, 3, {WIDTH}] x, int32[3] ends)
  => (float[seq, 2, 3, 4] states, float[2, 3, 4] last, float[2, 3, 4] cell, float[seq, 1, 3, 5] gated, float[1, 3, 5] gate,
      float[seq, 1, 3, 4] simple, float[seq, 3, 4] used)
  <int64[1] directions = {{1}}>
{{
  states, last, cell = LSTM<hidden_size = 4, direction = "bidirectional">(x, w4, r4, b4)
  gated, gate = GRU<hidden_size = 5, direction = "reverse", linear_before_reset = 1>(x, w3, r3, b3, ends)
  simple = RNN<hidden_size = 4>(x, w1, r1)
  squeezed = Squeeze(simple, directions)
  used = Relu(squeezed)
}}
"""


def _recurrent_model():
    model = onnx.parser.parse_model(RECURRENCES)
    rng = np.random.default_rng(9)
    for name, shape in {
        "w4": (2, 16, WIDTH), "r4": (2, 16, 4), "b4": (2, 32), "w3": (1, 15, WIDTH), "r3": (1, 15, 5), "b3": (1, 30),
        "w1": (1, 4, WIDTH), "r1": (1, 4, 4),
    }.items():  # fmt: skip
        model.graph.initializer.append(onnx.numpy_helper.from_array(rng.standard_normal(shape, np.float32) / 2, name))
    onnx.checker.check_model(model)
    return model


@one_of(2)
@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("dim", [0, 1, 2], ids=["time", "batch", "input"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_recurrences(dovetail, mesh, dim, target):
    model = _recurrent_model()

    def make_inputs(rng, length):
        return {
            "x": rng.standard_normal((length, 3, WIDTH), np.float32),
            "ends": rng.integers(0, length + 1, 3).astype(np.int32),
        }

    options = [*_flags(mesh, "x", [BOUND, 3, WIDTH], dim), "--bound", f"seq={BOUND}", "--target", target]
    program = dovetail.compile(model, libraries=target == "cpu", options=options)
    _check(program, model, make_inputs, lengths=[4, BOUND, 1, 7], rtol=1e-5, atol=1e-6)


#: Windows along what varies: as many elements as before, or as many as the strides leave; and statistics of what there is.
WINDOWS = f"""
<ir_version: 9, opset_import: ["" : 22]>
windows (float[2, 4, seq] x, float[1, 3, seq, {WIDTH}] image)
  => (float[2, 4, seq] rest, float[2, 6, half] both, float[2, 6, half] most, float[2, 4, third] mean, float[2, 4, padded] even,
      float[2, 4, shorter] norm, float[2, 4, seq] own, float[2, 4, seq] grouped, float[1, 2, rows, 5] flat, float[1, 3, tall, wide] tops, float[1, 2, rows, 5] all)
{{
  same = Conv<dilations = [2], pads = [2, 2]>(x, w3, b4)
  positive = Relu(same)
  rest = Add(positive, x)
  one = Conv<strides = [2], pads = [1, 2]>(rest, w4)
  two = Conv<strides = [2], pads = [2, 1], group = 2>(x, g4)
  both = Mul(one, two)
  most = MaxPool<kernel_shape = [3], pads = [1, 1]>(both)
  mean = AveragePool<kernel_shape = [3], strides = [3]>(x)
  even = AveragePool<kernel_shape = [3], strides = [2], pads = [1, 1], count_include_pad = 1>(x)
  norm = LpPool<kernel_shape = [2]>(x)
  own = InstanceNormalization(same, b4, s4)
  grouped = GroupNormalization<num_groups = 2>(x, s4, b4)
  flat = Conv<strides = [3, 1], pads = [0, 1, 1, 0], auto_pad = "NOTSET">(image, w33)
  tops = MaxPool<kernel_shape = [2, 2], auto_pad = "SAME_UPPER">(image)
  all = Neg(flat)
}}
"""


def _windows_model():
    model = onnx.parser.parse_model(WINDOWS)
    rng = np.random.default_rng(11)
    for name, shape in {"w3": (4, 4, 3), "b4": (4,), "s4": (4,), "w4": (6, 4, 4), "g4": (6, 2, 4), "w33": (2, 3, 3, 3)}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(rng.standard_normal(shape, np.float32), name))
    return model


@one_of(2)
@pytest.mark.parametrize("target, libraries", [("cpu", True), ("cpu", False), ("emulated", False)])
@pytest.mark.parametrize("dim", [0, 1, 2], ids=["batch", "channels", "along"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_windows(dovetail, mesh, dim, target, libraries):
    def make_inputs(rng, length):
        shapes = {"x": (2, 4, length), "image": (1, 3, length, WIDTH)}
        return {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}

    model = _windows_model()
    options = [*_flags(mesh, "x", [2, 4, BOUND], dim), "--bound", f"seq={BOUND}", "--target", target]
    program = dovetail.compile(model, libraries=libraries, options=options)
    _check(program, model, make_inputs, lengths=[5, BOUND, 3, 8, 4], rtol=1e-5, atol=1e-5)


#: Elements of what varies, counted from its end, too.
ELEMENTS = f"""
<ir_version: 9, opset_import: ["" : 18]>
elements (float[2, seq, {WIDTH}] x, int64[3] at, int64[seq] order)
  => (float[2, {WIDTH}] last, float[2, 2, {WIDTH}] ends, float[2, 3, {WIDTH}] some, float[2, seq, {WIDTH}] all, float[2] sum)
  <int64 final = {{-1}}, int64[2] both = {{0, -2}}, int64[1] along = {{1}}>
{{
  double = Add(x, x)
  last = Gather<axis = 1>(double, final)
  ends = Gather<axis = 1>(x, both)
  some = Gather<axis = 1>(x, at)
  all = Gather<axis = 1>(x, order)
  sum = ReduceSum<keepdims = 0>(last, along)
}}
"""


@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("dim", [0, 1, 2], ids=["batch", "along", "across"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_elements(dovetail, mesh, dim, target):
    def make_inputs(rng, length):
        return {
            "x": rng.standard_normal((2, length, WIDTH), np.float32),
            "at": rng.integers(-length, length, 3),
            "order": rng.permutation(length),
        }

    options = [*_flags(mesh, "x", [2, BOUND, WIDTH], dim), "--bound", f"seq={BOUND}", "--target", target]
    program = dovetail.compile(_parse(ELEMENTS), libraries=False, options=options)
    _check(program, _parse(ELEMENTS), make_inputs, lengths=[4, BOUND, 2, 7], rtol=1e-6)
    inputs = make_inputs(np.random.default_rng(1), 5)
    for index in (5, -6, BOUND - 1):
        inputs["at"] = np.array([0, index, -5])
        words = "Gather:some.*index 11 is out of range .* where the extent varies from run to run, pass indices of elements that exist"
        with pytest.raises(dovetail.DovetailError, match=words) as error:
            program.run(inputs)
        assert error.value.code == USAGE


#: What varies before and behind others, and behind each other.
CONCATENATIONS = f"""
<ir_version: 9, opset_import: ["" : 18]>
concatenations (float[2, seq, {WIDTH}] x, float[2, 1, {WIDTH}] first, float[2, 3, {WIDTH}] end, float[2, past, {WIDTH}] old)
  => (float[2, more, {WIDTH}] headed, float[2, longer, {WIDTH}] tailed, float[2, both, {WIDTH}] joined, float[2, {WIDTH}] sum,
      float[{WIDTH}, 2, n] turned, float[2, seq, {WIDTH}] attention)
  <int64[1] along = {{1}}>
{{
  negative = Neg(x)
  head = Concat<axis = 1>(first, x)
  again = Concat<axis = 1>(first, negative)
  headed = Mul(head, again)
  tailed = Concat<axis = 1>(x, end)
  joined = Concat<axis = -2>(old, first, x, end, negative)
  sum = ReduceSum<keepdims = 0>(joined, along)
  part = Concat<axis = 1>(old, x)
  turned = Transpose<perm = [2, 0, 1]>(part)
  oldest = Neg(old)
  keys = Concat<axis = 1>(oldest, negative)
  columns = Transpose<perm = [0, 2, 1]>(keys)
  scores = MatMul(x, columns)
  weights = Softmax<axis = -1>(scores)
  attention = MatMul(weights, part)
}}
"""


@one_of(2)
@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("dim", [0, 1, 2], ids=["batch", "along", "across"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_concatenations(dovetail, mesh, dim, target):
    def make_inputs(rng, length):
        extents = {"x": length, "first": 1, "end": 3, "old": (length * 3) % 6}
        return {name: rng.standard_normal((2, n, WIDTH), np.float32) for name, n in extents.items()}

    options = [*_flags(mesh, "x", [2, BOUND, WIDTH], dim), "--bound", f"seq={BOUND}", "--bound", "past=5"]
    program = dovetail.compile(_parse(CONCATENATIONS), libraries=False, options=[*options, "--target", target])
    _check(program, _parse(CONCATENATIONS), make_inputs, rtol=1e-5, atol=1e-6)


#: (start, end, step) of parts of what varies.
SLICES = [
    (1, 2**31, 1), (0, -1, 1), (2, -2, 1), (-3, 2**31, 1), (-1, 2**31, 1), (1, 4, 1), (0, 2**31, 2), (1, -1, 3), (-4, -1, 2),
    (-5, 3, 1), (-1, -(2**31), -1), (-2, 1, -1), (5, -(2**31), -2), (3, -6, -1), (2**31, 0, -3), (20, 30, 1), (-30, 2, 1), (0, -30, 1),
]  # fmt: skip


@one_of(2)
@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("dim", [0, 1, 2], ids=["batch", "along", "across"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_slices(dovetail, mesh, dim, target):
    slices = [
        f"""s{i} = Constant<value_ints = [{start}, 1]>() e{i} = Constant<value_ints = [{end}, 5]>()
        t{i} = Constant<value_ints = [{step}, 2]>() y{i} = Slice(x, s{i}, e{i}, axes, t{i})"""
        for i, (start, end, step) in enumerate(SLICES)
    ]
    outputs = ", ".join(f"float[2, n{i}, 2] y{i}" for i in range(len(SLICES)))
    model = _parse(f"""
        <ir_version: 9, opset_import: ["" : 18]>
        slices (float[2, seq, {WIDTH}] x) => ({outputs}, float[2, m, 2] sum, float[2, k, 2] product) <int64[2] axes = {{1, 2}}>
        {{ {" ".join(slices)} z = Neg(x) part = Slice(z, s0, e0, axes, t0) sum = Add(y0, part)
           other = Slice(z, s8, e8, axes, t8) product = Mul(y8, other) }}
    """)
    options = [*_flags(mesh, "x", [2, BOUND, WIDTH], dim), "--bound", f"seq={BOUND}", "--target", target]
    program = dovetail.compile(model, libraries=False, options=options)
    _check(program, model, lambda rng, length: {"x": rng.standard_normal((2, length, WIDTH), np.float32)}, [*LENGTHS, 2, 5])


def test_concatenations_that_may_not_fit(dovetail):
    model = _parse("""
        <ir_version: 9, opset_import: ["" : 18]>
        concatenation (float[rows, seq] x, float[8, seq] y) => (float[m, n] z) { z = Concat<axis = 1>(x, y) }
    """)
    with pytest.raises(dovetail.DovetailError, match="operand 0 .*at most 8.*need not have as many elements") as error:
        dovetail.compile(model, options=["--bound", "rows=8", "--bound", "seq=5"])
    assert error.value.code == UNSUPPORTED


def _compile_for_steps(dovetail, artifact, sizes, target):
    sizes = ",".join(map(str, sizes))
    options = ["--mesh", "y=3", "--shard", "shift=_,y,_", "--sizes", f"shift:1={sizes}", "--bound", f"seq={BOUND}"]
    dovetail.compile(_parse(ELEMENTWISE), libraries=False, options=[*options, "--target", target]).save(artifact)


@pytest.mark.parametrize("sizes", [(2, 4, 5), (6, 5, 0)], ids=str)
@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_steps_and_processes(dovetail, tmp_path, ranks, target, sizes):
    """Steps with files of other lengths, in which ranks have nothing or more, by threads and by processes."""
    artifact, expected, rng = tmp_path / "model.dvt", [], np.random.default_rng(3)
    _compile_for_steps(dovetail, artifact, sizes, target)
    for folder in ("tokens", "shift", "out"):
        (tmp_path / folder).mkdir()
    for number, length in enumerate(LENGTHS):
        inputs = _elementwise_inputs(rng, length)
        for name in ("tokens", "shift"):
            np.save(tmp_path / name / f"{number}.npy", inputs[name])
        if number == 0:
            table = inputs["table"]
            np.save(tmp_path / "table.npy", table)
        rows = table[inputs["tokens"]]
        turned, running = rows.transpose(2, 0, 1), np.cumsum(inputs["tokens"], 1)
        expected.append({"mixed": np.maximum(rows + inputs["shift"], 0), "turned": turned, "running": running})
    command = ["run", artifact, "--input", f"table=@{tmp_path}/table.npy"]
    for name in ("tokens", "shift"):
        command += ["--input", f"{name}={tmp_path}/{name}/*.npy"]
    for name in expected[0]:
        command += ["--output", f"{name}={tmp_path}/out/{name}-{{step}}.npy"]
    results = run_ranks(command, ranks) if ranks > 1 else [call([tool("dovetail-run"), *command])]
    assert [code for code, _, _ in results] == [0] * ranks, results
    for number, outputs in enumerate(expected):
        for name, value in outputs.items():
            actual = np.load(tmp_path / f"out/{name}-{number + 1:04}.npy")
            np.testing.assert_array_equal(actual, value, f"{name} in step {number + 1}")
    if ranks == 1:
        return
    # One run, of what the first step has.
    single = ["run", artifact, "--input", f"table=@{tmp_path}/table.npy", "--output", f"mixed={tmp_path}/mixed.npy"]
    own = [[*single, *_inputs_of(tmp_path, ("tokens", "shift"), number)] for number in (0, 0, 3)]
    assert [code for code, _, _ in run_ranks(own[0], ranks)] == [0] * ranks
    np.testing.assert_array_equal(np.load(tmp_path / "mixed.npy"), expected[0]["mixed"])
    # One of the processes is given something else.
    port = free_port()
    results = finish([start(arguments, rank, ranks, port, True) for rank, arguments in enumerate(own)])
    for code, _, messages in results:
        assert code == USAGE and "rank 2 was given inputs with seq = 1, but rank 0 with seq = 4" in messages, results


def test_outputs_that_go_in_slabs(dovetail, tmp_path):
    """Processes that have short pieces of each row of a file exchange them for longer ones, of what there is."""
    model = _parse("""
        <ir_version: 9, opset_import: ["" : 18]>
        negative (float[300, seq, 3] x) => (float[300, seq, 3] y) { y = Neg(x) }
    """)
    options = ["--mesh", "y=3", "--shard", "x=_,y,_", "--sizes", "x:1=100,400,200", "--bound", "seq=700"]
    dovetail.compile(model, options=[*options, "--cpu", CPU]).save(tmp_path / "model.dvt")
    (tmp_path / "x").mkdir()
    steps = [np.random.default_rng(length).standard_normal((300, length, 3), np.float32) for length in (650, 0, 90, 700)]
    for number, x in enumerate(steps):
        np.save(tmp_path / "x" / f"{number}.npy", x)
    command = ["run", tmp_path / "model.dvt", "--input", f"x={tmp_path}/x/*.npy", "--output", f"y={tmp_path}/{{step}}.npy"]
    results = run_ranks(command, 3)
    assert [code for code, _, _ in results] == [0] * 3, results
    for number, x in enumerate(steps):
        np.testing.assert_array_equal(np.load(tmp_path / f"{number + 1:04}.npy"), -x)


@pytest.mark.parametrize("ranks", [1, 3])
def test_files_that_steps_cannot_read(dovetail, tmp_path, ranks):
    """What is wrong with a file is said of it, not of lengths that do not agree."""
    artifact, rng = tmp_path / "model.dvt", np.random.default_rng(4)
    _compile_for_steps(dovetail, artifact, (6, 5, 0), "cpu")
    for name in ("tokens", "shift"):
        (tmp_path / name).mkdir()
    for number in range(3):
        inputs = _elementwise_inputs(rng, 3)
        np.save(tmp_path / "table.npy", inputs["table"])
        for name in ("tokens", "shift"):
            np.save(tmp_path / name / f"{number}.npy", inputs[name])
    command = ["run", artifact, "--input", f"table=@{tmp_path}/table.npy", "--output", f"mixed={tmp_path}/{{step}}.npy"]
    for name in ("tokens", "shift"):
        command += ["--input", f"{name}={tmp_path}/{name}/*.npy"]
    bad = tmp_path / "shift" / "1.npy"
    for content, exit_code, words in (
        (b"nothing", FILE, "not a .npy array"),
        (np.zeros((2, 3, WIDTH)), USAGE, "float64[2, 3, 6]"),
        (np.zeros((2, BOUND + 1, WIDTH), np.float32), USAGE, f"seq<={BOUND}"),
    ):
        bad.write_bytes(content) if isinstance(content, bytes) else np.save(bad, content)
        results = run_ranks(command, ranks) if ranks > 1 else [call([tool("dovetail-run"), *command])]
        for code, _, messages in results:
            assert code == exit_code and "step 2" in messages and "1.npy" in messages and words in messages, messages


def _inputs_of(folder, names, number):
    return [argument for name in names for argument in ("--input", f"{name}=@{folder}/{name}/{number}.npy")]


#: What brings all of a dimension together: tails count nothing. Products sum over it.
REDUCTIONS = f"""
<ir_version: 9, opset_import: ["" : 18]>
reductions (float[2, seq, {WIDTH}] x, int32[seq] n, float[seq, 3] y)
  => (float[2, {WIDTH}] total, float[2, 1, {WIDTH}] mean, float[2, {WIDTH}] most, float[2, {WIDTH}] least, float[{WIDTH}] product,
      float[2, 1, {WIDTH}] norm, float[1] all, int32[1] number, int32[1] largest, int32[1] smallest, int32[1] average,
      int64[2, {WIDTH}] where, float[2, seq, {WIDTH}] weights, float[2, seq, {WIDTH}] logs, float[2, {WIDTH}, 3] both, float[2, seq, seq] pairs)
  <int64[1] along = {{1}}, int64[2] outer = {{0, 1}}, int64[3] every = {{0, 1, 2}}, int64[1] first = {{0}}>
{{
  total = ReduceSum<keepdims = 0>(x, along)
  mean = ReduceMean(x, along)
  most = ReduceMax<keepdims = 0>(x, along)
  least = ReduceMin<keepdims = 0>(x, along)
  product = ReduceProd<keepdims = 0>(x, outer)
  norm = ReduceL2(x, along)
  everything = ReduceLogSumExp<keepdims = 0>(x, every)
  all = Unsqueeze(everything, first)
  number = ReduceSum(n, first)
  largest = ReduceMax(n, first)
  smallest = ReduceMin(n, first)
  average = ReduceMean(n, first)
  where = ArgMax<axis = 1, keepdims = 0>(x)
  weights = Softmax<axis = 1>(x)
  logs = LogSoftmax<axis = 1>(x)
  turned = Transpose<perm = [0, 2, 1]>(x)
  both = MatMul(turned, y)
  pairs = MatMul(x, turned)
}}
"""


@one_of(2)
@pytest.mark.parametrize("target, libraries", [("cpu", True), ("cpu", False), ("emulated", False)], ids=str)
@pytest.mark.parametrize("dim", [1, 2], ids=["along", "across"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_reductions(dovetail, mesh, dim, target, libraries):
    """Of nothing ONNX says too little to compare it with anything but sums."""

    def inputs(rng, length):
        return {
            "x": rng.standard_normal((2, length, WIDTH), np.float32),
            "n": rng.integers(-99, 99, length, np.int32),
            "y": rng.standard_normal((length, 3), np.float32),
        }

    model = _parse(REDUCTIONS)
    flags = _flags(mesh, "x", (2, BOUND, WIDTH), dim)
    program = dovetail.compile(model, bounds={"seq": BOUND}, target=target, cpu=CPU, libraries=libraries, options=flags)
    _check(program, model, inputs, [length for length in LENGTHS if length > 0], rtol=1e-5, atol=1e-6)
    outputs = program.run(inputs(np.random.default_rng(0), 0))
    for name in ("total", "both", "number"):
        assert not outputs[name].any(), name
    assert outputs["weights"].shape == (2, 0, WIDTH)


HEADS, DEPTH = 2, 4
CHANNELS = HEADS * DEPTH

#: A block of an encoder, with attention as exporters spell it: all heads are one dimension, and scores are masked where
#: the mask says that there is padding.
ENCODER = f"""
<ir_version: 9, opset_import: ["" : 20]>
encoder (int64[2, seq] tokens, float[2, 1, 1, seq] mask, float[seq, {CHANNELS}] position, float[{ENTRIES}, {CHANNELS}] table,
         float[{CHANNELS}] gain, float[{CHANNELS}] bias, float[{CHANNELS}, {CHANNELS}] wq, float[{CHANNELS}, {CHANNELS}] wk,
         float[{CHANNELS}, {CHANNELS}] wv, float[{CHANNELS}, {CHANNELS}] wo, float[{CHANNELS}, {2 * CHANNELS}] w1,
         float[{2 * CHANNELS}, {CHANNELS}] w2) => (float[2, seq, {CHANNELS}] y, float[2, {CHANNELS}] pooled)
  <int64[4] heads = {{0, 0, {HEADS}, {DEPTH}}}, int64[3] merged = {{0, 0, {CHANNELS}}}, float scale = {{{DEPTH**-0.5}}}, int64[1] along = {{1}}>
{{
  embedded = Gather<axis = 0>(table, tokens)
  x = Add(embedded, position)
  normal = LayerNormalization<axis = -1>(x, gain, bias)
  q = MatMul(normal, wq)
  k = MatMul(normal, wk)
  v = MatMul(normal, wv)
  q4 = Reshape(q, heads)
  k4 = Reshape(k, heads)
  v4 = Reshape(v, heads)
  qt = Transpose<perm = [0, 2, 1, 3]>(q4)
  kt = Transpose<perm = [0, 2, 3, 1]>(k4)
  vt = Transpose<perm = [0, 2, 1, 3]>(v4)
  raw = MatMul(qt, kt)
  scaled = Mul(raw, scale)
  masked = Add(scaled, mask)
  weights = Softmax<axis = -1>(masked)
  mixed = MatMul(weights, vt)
  back = Transpose<perm = [0, 2, 1, 3]>(mixed)
  flat = Reshape(back, merged)
  projected = MatMul(flat, wo)
  attended = Add(x, projected)
  normal2 = LayerNormalization<axis = -1>(attended, gain, bias)
  hidden = MatMul(normal2, w1)
  active = Gelu(hidden)
  out = MatMul(active, w2)
  y = Add(attended, out)
  pooled = ReduceMean<keepdims = 0>(y, along)
}}
"""


@one_of(2)
@pytest.mark.parametrize("libraries", [True, False], ids=["libraries", "kernels"])
@pytest.mark.parametrize("split", ["tokens", "y"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_encoder(dovetail, mesh, split, libraries):
    """Split along the sequence, or along the channels of the result."""
    weights = {"table": (ENTRIES, CHANNELS), "gain": (CHANNELS,), "bias": (CHANNELS,)}
    weights |= dict.fromkeys(("wq", "wk", "wv", "wo"), (CHANNELS, CHANNELS))
    weights |= {"w1": (CHANNELS, 2 * CHANNELS), "w2": (2 * CHANNELS, CHANNELS)}

    def inputs(rng, length):
        mask = np.where(rng.random((2, 1, 1, length)) < 0.3, np.float32(-1e4), np.float32(0))
        return {
            "tokens": rng.integers(0, ENTRIES, (2, length)),
            "mask": mask,
            "position": rng.standard_normal((length, CHANNELS), np.float32),
            **{name: rng.standard_normal(shape, np.float32) / 2 for name, shape in weights.items()},
        }

    model = _parse(ENCODER)
    shape, dim = ((2, BOUND), 1) if split == "tokens" else ((2, BOUND, CHANNELS), 2)
    program = dovetail.compile(
        model, bounds={"seq": BOUND}, cpu=CPU, libraries=libraries, options=_flags(mesh, split, shape, dim)
    )
    _check(program, model, inputs, [length for length in LENGTHS if length > 0], rtol=1e-4, atol=1e-5)
    assert program.run(inputs(np.random.default_rng(0), 0))["y"].shape == (2, 0, CHANNELS)


#: What exporters make of the length itself: positions, masks, and shapes with it in them.
SHAPES = f"""
<ir_version: 9, opset_import: ["" : 18]>
shapes (int64[2, seq] tokens, float[2, seq, {WIDTH}] x, float[{BOUND}, {WIDTH}] positions)
  => (float[2, seq, {WIDTH}] y, float[2, seq, 2, 3] apart, float[2, seq] ones, int64[2, seq] ids, int64[2] shape, float[2, {WIDTH}] pooled)
  <int64 zero = {{0}}, int64 one = {{1}}, int64[1] first = {{0}}, int64[1] two = {{2}}, int64[2] rest = {{2, 3}}, int64[1] along = {{1}}>
{{
  shape = Shape(tokens)
  length = Gather(shape, one)
  range = Range(zero, length, one)
  row = Unsqueeze(range, first)
  ids = Expand(row, shape)
  embedded = Gather(positions, ids)
  y = Add(x, embedded)
  vector = Unsqueeze(length, first)
  target = Concat<axis = 0>(two, vector, rest)
  apart = Reshape(x, target)
  ones = ConstantOfShape<value = float[1] {{1}}>(shape)
  wide = Unsqueeze(ones, along)
  sums = MatMul(wide, y)
  pooled = Squeeze(sums, along)
}}
"""


@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("dim", [1, 2], ids=["along", "across"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_shapes(dovetail, mesh, dim, target):
    def inputs(rng, length):
        return {
            "tokens": rng.integers(0, ENTRIES, (2, length)),
            "x": rng.standard_normal((2, length, WIDTH), np.float32),
            "positions": rng.standard_normal((BOUND, WIDTH), np.float32),
        }

    model = _parse(SHAPES)
    flags = _flags(mesh, "x", (2, BOUND, WIDTH), dim)
    program = dovetail.compile(model, bounds={"seq": BOUND}, target=target, cpu=CPU, libraries=False, options=flags)
    _check(program, model, inputs, [length for length in LENGTHS if length > 0], rtol=1e-5, atol=1e-5)
    assert list(program.run(inputs(np.random.default_rng(0), 0))["shape"]) == [2, 0]


#: What decoders and causal convolutions make of the length: parts of tables, masks, pads, the last token.
CAUSAL = f"""
<ir_version: 9, opset_import: ["" : 18]>
causal (float[2, seq, {WIDTH}] x, float[1, {BOUND + 4}, {WIDTH}] table, float[1, 5, {WIDTH}] short, float[{WIDTH}, {WIDTH}, 3] kernel, float fill)
  => (float[2, seq, {WIDTH}] y, float[2, after, {WIDTH}] shifted, float[1, few, {WIDTH}] head, float[2, seq, {WIDTH}] attended, float[seq, seq] lower,
      float[2, {WIDTH}, seq] convolved, float[2, ends, {WIDTH}] padded, float[2, {WIDTH}, half] halves, float[2, {WIDTH}] last)
  <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] minus = {{-1}}, int64[1] end = {{{2**62}}}, float unit = {{1}},
   int64[6] before = {{0, 0, 2, 0, 0, 0}}, int64[6] around = {{0, 1, 0, 0, 3, 0}}, int64[3] pair = {{0, 0, 1}}>
{{
  shape = Shape(x)
  length = Slice(shape, one, two)
  own = Slice(table, zero, length, one)
  y = Add(x, own)
  later = Slice(table, two, length, one)
  same = Slice(x, two, length, one)
  shifted = Mul(same, later)
  head = Slice(short, zero, length, one)
  square = Concat<axis = 0>(length, length)
  ones = ConstantOfShape<value = float[1] {{1}}>(square)
  lower = Trilu<upper = 0>(ones)
  columns = Transpose<perm = [0, 2, 1]>(y)
  scores = MatMul(x, columns)
  mask = Sub(unit, lower)
  hidden = Mul(mask, fill)
  masked = Sub(scores, hidden)
  weights = Softmax<axis = -1>(masked)
  attended = MatMul(weights, y)
  turned = Transpose<perm = [0, 2, 1]>(x)
  history = Pad(turned, before)
  filtered = Conv(history, kernel)
  convolved = Add(filtered, turned)
  padded = Pad(x, around, fill)
  once = MaxPool<kernel_shape = [2], strides = [2]>(turned)
  twice = MaxPool<kernel_shape = [2], strides = [2]>(once)
  fours = MaxPool<kernel_shape = [4], strides = [4]>(turned)
  halves = Add(twice, fours)
  final = Slice(y, minus, end, one)
  last = Squeeze(final, one)
}}
"""


@one_of(2)
@pytest.mark.parametrize("target, libraries", [("cpu", True), ("cpu", False), ("emulated", False)], ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2], ids=["batch", "along", "across"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_causal(dovetail, mesh, dim, target, libraries):
    def inputs(rng, length):
        shapes = {
            "x": (2, length, WIDTH), "table": (1, BOUND + 4, WIDTH), "short": (1, 5, WIDTH), "kernel": (WIDTH, WIDTH, 3),
        }  # fmt: skip
        values = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
        return {**values, "fill": np.array(100, np.float32)}

    model = _parse(CAUSAL)
    flags = _flags(mesh, "x", (2, BOUND, WIDTH), dim)
    program = dovetail.compile(model, bounds={"seq": BOUND}, target=target, cpu=CPU, libraries=libraries, options=flags)
    # ONNX Runtime pools at least as many elements as a window has.
    _check(program, model, inputs, [4, BOUND, 5, 7, 4], rtol=1e-5, atol=1e-5)


def test_the_last_of_nothing_is_an_error(dovetail):
    model = _parse(f"""
        <ir_version: 9, opset_import: ["" : 18]>
        last (float[2, seq, 3] x) => (float[2, 3] y) <int64[1] minus = {{-1}}, int64[1] end = {{{2**62}}}, int64[1] one = {{1}}>
        {{ final = Slice(x, minus, end, one) y = Squeeze(final, one) }}
    """)
    program = dovetail.compile(model, bounds={"seq": BOUND})
    x = np.arange(2 * BOUND * 3, dtype=np.float32).reshape(2, BOUND, 3)
    np.testing.assert_array_equal(program.run({"x": x})["y"], x[:, -1])
    with pytest.raises(dovetail.DovetailError, match="Squeeze:y"):
        program.run({"x": x[:, :0]})


@pytest.mark.parametrize("target", ["cpu", "emulated"])
def test_slices_keep_other_lengths(dovetail, target):
    """Of a dimension that varies, while another is cut to a length, and a third by a number."""
    model = _parse("""
        <ir_version: 9, opset_import: ["" : 18]>
        parts (float[1, seq, 3] x, float[rows, 15, 6] y) => (float[rows, n, 3] z, float[rows, n, 3] w)
          <int64[1] one = {1}, int64[1] two = {2}, int64[1] four = {4}, int64[2] starts = {0, 1}, int64[2] axes = {1, 2}>
        { shape = Shape(x) length = Slice(shape, one, two) ends = Concat<axis = 0>(length, four) z = Slice(y, starts, ends, axes)
          negative = Neg(y) part = Slice(negative, starts, ends, axes) w = Mul(z, part) }
    """)
    options = ["--bound", "seq=12", "--bound", "rows=9", "--mesh", "r=2", "--shard", "y=r,_,_", "--target", target]
    program = dovetail.compile(model, libraries=False, options=options)

    def inputs(rng, length):
        shapes = {"x": (1, length, 3), "y": ((length * 5) % 10, 15, 6)}
        return {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}

    _check(program, model, inputs, [4, 0, 12, 7, 1])


def test_what_ends_elsewhere_is_refused(dovetail):
    text = """
        <ir_version: 9, opset_import: ["" : 18]>
        parts (float[rows, seq] x, float[8, 8] y) => (float[m, n] z)
          <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] minus = {{-1}}, int64[4] cut = {{0, -1, 0, 0}}>
        {{ shape = Shape(x) length = Slice(shape, one, two) {body} }}
    """
    for body, words in (
        ("z = Slice(x, zero, length, zero)", "the operand has another one there"),
        ("z = Slice(y, zero, length, one, two)", "not those from a constant one on, in order"),
        ("z = Slice(y, minus, length, one)", "not those from a constant one on, in order"),
        ("z = Pad(x, cut)", "'pads' leaves elements of it out"),
    ):
        with pytest.raises(dovetail.DovetailError, match=words) as error:
            dovetail.compile(_parse(text.format(body=body)), options=["--bound", "rows=8", "--bound", "seq=5"])
        assert error.value.code == UNSUPPORTED
