# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators along lengths that vary from run to run (`compile --bound`); against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from harness.backend import UNSUPPORTED, USAGE
from harness.extent import one_of
from lengths import BOUND, CPU, LENGTHS, MESHES, WIDTH, check_lengths, parse, split_flags

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

    options = [*split_flags(mesh, "x", [BOUND, 3, WIDTH], dim), "--bound", f"seq={BOUND}", "--target", target]
    program = dovetail.compile(model, libraries=target == "cpu", options=options)
    check_lengths(program, model, make_inputs, lengths=[4, BOUND, 1, 7], rtol=1e-5, atol=1e-6)


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
    options = [*split_flags(mesh, "x", [2, 4, BOUND], dim), "--bound", f"seq={BOUND}", "--target", target]
    program = dovetail.compile(model, libraries=libraries, options=options)
    check_lengths(program, model, make_inputs, lengths=[5, BOUND, 3, 8, 4], rtol=1e-5, atol=1e-5)


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

    options = [*split_flags(mesh, "x", [2, BOUND, WIDTH], dim), "--bound", f"seq={BOUND}", "--target", target]
    program = dovetail.compile(parse(ELEMENTS), libraries=False, options=options)
    check_lengths(program, parse(ELEMENTS), make_inputs, lengths=[4, BOUND, 2, 7], rtol=1e-6)
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

    options = [*split_flags(mesh, "x", [2, BOUND, WIDTH], dim), "--bound", f"seq={BOUND}", "--bound", "past=5"]
    program = dovetail.compile(parse(CONCATENATIONS), libraries=False, options=[*options, "--target", target])
    check_lengths(program, parse(CONCATENATIONS), make_inputs, rtol=1e-5, atol=1e-6)


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
    model = parse(f"""
        <ir_version: 9, opset_import: ["" : 18]>
        slices (float[2, seq, {WIDTH}] x) => ({outputs}, float[2, m, 2] sum, float[2, k, 2] product) <int64[2] axes = {{1, 2}}>
        {{ {" ".join(slices)} z = Neg(x) part = Slice(z, s0, e0, axes, t0) sum = Add(y0, part)
           other = Slice(z, s8, e8, axes, t8) product = Mul(y8, other) }}
    """)
    options = [*split_flags(mesh, "x", [2, BOUND, WIDTH], dim), "--bound", f"seq={BOUND}", "--target", target]
    program = dovetail.compile(model, libraries=False, options=options)
    check_lengths(program, model, lambda rng, length: {"x": rng.standard_normal((2, length, WIDTH), np.float32)}, [*LENGTHS, 2, 5])


def test_concatenations_that_may_not_fit(dovetail):
    model = parse("""
        <ir_version: 9, opset_import: ["" : 18]>
        concatenation (float[rows, seq] x, float[8, seq] y) => (float[m, n] z) { z = Concat<axis = 1>(x, y) }
    """)
    with pytest.raises(dovetail.DovetailError, match="operand 0 .*at most 8.*need not have as many elements") as error:
        dovetail.compile(model, options=["--bound", "rows=8", "--bound", "seq=5"])
    assert error.value.code == UNSUPPORTED


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

    model = parse(REDUCTIONS)
    flags = split_flags(mesh, "x", (2, BOUND, WIDTH), dim)
    program = dovetail.compile(model, bounds={"seq": BOUND}, target=target, cpu=CPU, libraries=libraries, options=flags)
    check_lengths(program, model, inputs, [length for length in LENGTHS if length > 0], rtol=1e-5, atol=1e-6)
    outputs = program.run(inputs(np.random.default_rng(0), 0))
    for name in ("total", "both", "number"):
        assert not outputs[name].any(), name
    assert outputs["weights"].shape == (2, 0, WIDTH)


@pytest.mark.parametrize("target", ["cpu", "emulated"])
def test_slices_keep_other_lengths(dovetail, target):
    """Of a dimension that varies, while another is cut to a length, and a third by a number."""
    model = parse("""
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

    check_lengths(program, model, inputs, [4, 0, 12, 7, 1])


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
            dovetail.compile(parse(text.format(body=body)), options=["--bound", "rows=8", "--bound", "seq=5"])
        assert error.value.code == UNSUPPORTED
