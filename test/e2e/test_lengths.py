# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lengths that vary from run to run (`compile --bound`), each model compiled once; against ONNX Runtime."""

import numpy as np
import pytest
from harness.backend import USAGE
from harness.extent import one_of
from lengths import (
    BOUND,
    CPU,
    ELEMENTWISE,
    ENTRIES,
    LENGTHS,
    MESHES,
    WIDTH,
    check_lengths,
    elementwise_inputs,
    parse,
    split_flags,
)


@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("dim", [1, 2], ids=["along", "across"])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_elementwise(dovetail, mesh, dim, target):
    model = parse(ELEMENTWISE)
    flags = split_flags(mesh, "shift", (2, BOUND, WIDTH), dim)
    program = dovetail.compile(model, bounds={"seq": BOUND}, target=target, cpu=CPU, libraries=False, options=flags)
    assert [port.lengths for port in program.inputs] == [(None, "seq"), (None, "seq", None), ()]
    assert str(program.inputs[1]) == f"shift: float32[2, seq<={BOUND}, {WIDTH}]"
    check_lengths(program, model, elementwise_inputs)


def test_several_lengths_and_dimensions_without_names(dovetail):
    """Each dimension without a name has a length of its own, and several counts bound one output."""
    model = parse(
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
    program = dovetail.compile(parse(ELEMENTWISE), bounds={"seq": BOUND}, cpu=CPU)
    inputs = elementwise_inputs(np.random.default_rng(0), 5)

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
    program = dovetail.compile(parse(ELEMENTWISE), bounds={"seq": BOUND}, cpu=CPU)
    inputs = elementwise_inputs(np.random.default_rng(0), BOUND)
    with pytest.raises(dovetail.DovetailError, match=f"index {ENTRIES} .*of extent {ENTRIES}"):
        program.run(inputs | {"tokens": np.full((2, BOUND), ENTRIES)})
    assert program.run(elementwise_inputs(np.random.default_rng(0), 3))["mixed"].shape == (2, 3, WIDTH)


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

    model = parse(ENCODER)
    shape, dim = ((2, BOUND), 1) if split == "tokens" else ((2, BOUND, CHANNELS), 2)
    program = dovetail.compile(
        model, bounds={"seq": BOUND}, cpu=CPU, libraries=libraries, options=split_flags(mesh, split, shape, dim)
    )
    check_lengths(program, model, inputs, [length for length in LENGTHS if length > 0], rtol=1e-4, atol=1e-5)
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

    model = parse(SHAPES)
    flags = split_flags(mesh, "x", (2, BOUND, WIDTH), dim)
    program = dovetail.compile(model, bounds={"seq": BOUND}, target=target, cpu=CPU, libraries=False, options=flags)
    check_lengths(program, model, inputs, [length for length in LENGTHS if length > 0], rtol=1e-5, atol=1e-5)
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

    model = parse(CAUSAL)
    flags = split_flags(mesh, "x", (2, BOUND, WIDTH), dim)
    program = dovetail.compile(model, bounds={"seq": BOUND}, target=target, cpu=CPU, libraries=libraries, options=flags)
    # ONNX Runtime pools at least as many elements as a window has.
    check_lengths(program, model, inputs, [4, BOUND, 5, 7, 4], rtol=1e-5, atol=1e-5)


def test_the_last_of_nothing_is_an_error(dovetail):
    model = parse(f"""
        <ir_version: 9, opset_import: ["" : 18]>
        last (float[2, seq, 3] x) => (float[2, 3] y) <int64[1] minus = {{-1}}, int64[1] end = {{{2**62}}}, int64[1] one = {{1}}>
        {{ final = Slice(x, minus, end, one) y = Squeeze(final, one) }}
    """)
    program = dovetail.compile(model, bounds={"seq": BOUND})
    x = np.arange(2 * BOUND * 3, dtype=np.float32).reshape(2, BOUND, 3)
    np.testing.assert_array_equal(program.run({"x": x})["y"], x[:, -1])
    with pytest.raises(dovetail.DovetailError, match="Squeeze:y"):
        program.run({"x": x[:, :0]})
