# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lengths that vary from run to run (`compile --bound`), each model compiled once; against ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from harness.backend import InProcessBackend, UNSUPPORTED, USAGE, call, fastest_backend, tool
from harness.partition import Partition, uneven_sizes

BOUND, WIDTH, ENTRIES = 11, 6, 9
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


#: All machines of tests run it.
CPU = "x86-64-v3"


@pytest.fixture(scope="module")
def dovetail(backend):
    assert isinstance(fastest_backend(), InProcessBackend), "the shared libraries are not built"
    import dovetail

    return dovetail


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
    """Files have what there is. Who reads parts of files cannot tell how much that is, and says so."""
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
    code, _, errors = call([tool("dovetail"), "run", artifact, *given, "--steps", "2", "--output", f"mixed={tmp_path}/{{step}}.npy"])
    assert code == UNSUPPORTED and "'seq' varies from run to run" in errors, errors
