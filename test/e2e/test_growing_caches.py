# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders whose caches grow from step to step (`--feedback` of lengths), token by token against ONNX Runtime."""

import json
import os
import sys

import numpy as np
import onnx
import pytest
from dovetail_models import onnxruntime_session
from harness import mpi
from harness.backend import MEMORY_FILL, ROOT, USAGE, InProcessBackend, call, fastest_backend, tool
from harness.partition import Partition, split_alike
from test_processes import run_ranks

HEADS, SIZE, VOCABULARY, ROOM, LONGEST = 4, 6, 23, 9, 4
WIDTH = HEADS * SIZE
WEIGHTS = {
    "words": (VOCABULARY, WIDTH), "places": (ROOM + LONGEST, WIDTH), "out": (WIDTH, VOCABULARY),
    **{f"{kind}{layer}": (WIDTH, WIDTH) for layer in (0, 1) for kind in ("wq", "wk", "wv")},
}  # fmt: skip
CACHES = [f"{kind}{layer}" for layer in (0, 1) for kind in ("key", "value")]
#: Inputs, and the outputs that they are in the next step.
FED = {"ids": "next_ids", "flag": "next_flag"} | {f"past_{cache}": cache for cache in CACHES}


def _layer(layer, x, past_and_new):
    """The text of attention of the last token over the cache, and what follows it."""
    names = {kind: f"{kind}{layer}" for kind in ("key", "value")}
    lines = [
        f"""{name}_{layer} = MatMul({x}, {weight}{layer}) {name}_r{layer} = Reshape({name}_{layer}, heads)
        {name}_n{layer} = Transpose<perm = [0, 2, 1, 3]>({name}_r{layer})"""
        for name, weight in (("q", "wq"), ("k", "wk"), ("v", "wv"))
    ]
    lines.append(past_and_new(layer, names))
    lines.append(
        f"""keys{layer} = Transpose<perm = [0, 1, 3, 2]>({names["key"]}) scores{layer} = MatMul(q_n{layer}, keys{layer})
        weights{layer} = Softmax<axis = -1>(scores{layer}) mixed{layer} = MatMul(weights{layer}, {names["value"]})
        rows{layer} = Transpose<perm = [0, 2, 1, 3]>(mixed{layer}) flat{layer} = Reshape(rows{layer}, whole)
        y{layer} = Add({x}, flat{layer})"""
    )
    return "\n".join(lines)


def _concatenated(layer, names):
    return f"""{names["key"]} = Concat<axis = 2>(past_key{layer}, k_n{layer})
        {names["value"]} = Concat<axis = 2>(past_value{layer}, v_n{layer})"""


def _merged(layer, names):
    """The decoder with a cache and the one without, of which a flag chooses one."""
    cache = f"float[1, {HEADS}, n, {SIZE}]"
    return f"""{names["key"]}, {names["value"]} = If(flag) <
        then_branch = cached () => ({cache} a{layer}, {cache} b{layer}) {{
          a{layer} = Concat<axis = 2>(past_key{layer}, k_n{layer}) b{layer} = Concat<axis = 2>(past_value{layer}, v_n{layer}) }},
        else_branch = prompt () => ({cache} c{layer}, {cache} d{layer}) {{ c{layer} = Identity(k_n{layer}) d{layer} = Identity(v_n{layer}) }}>"""


def _model(is_merged):
    """Two layers. A step has the tokens of a prompt, or one; positions follow those of the cache."""
    flag, next_flag = (", bool flag", ", bool next_flag") if is_merged else ("", "")
    pasts = ", ".join(f"float[1, {HEADS}, past, {SIZE}] past_{cache}" for cache in CACHES)
    caches = ", ".join(f"float[1, {HEADS}, total, {SIZE}] {cache}" for cache in CACHES)
    text = f"""
    <ir_version: 9, opset_import: ["" : 18]>
    decoder (int64[1, tokens] ids{flag}, {pasts}) => (float[1, tokens, {VOCABULARY}] logits, int64[1, 1] next_ids{next_flag}, {caches})
      <{", ".join(f"float[{rows}, {columns}] {name}" for name, (rows, columns) in WEIGHTS.items())},
       int64[4] heads = {{1, -1, {HEADS}, {SIZE}}}, int64[3] whole = {{1, -1, {WIDTH}}}, int64[1] last = {{-1}}, int64 two = {{2}}>
    {{
      word = Gather(words, ids)
      shape = Shape(past_key0) before = Gather(shape, two) place = Gather(places, before)
      x = Add(word, place)
      {_layer(0, "x", _merged if is_merged else _concatenated)}
      {_layer(1, "y0", _merged if is_merged else _concatenated)}
      logits = MatMul(y1, out)
      end = Gather<axis = 1>(logits, last)
      next_ids = ArgMax<axis = -1, keepdims = 0>(end)
      {"off = Not(flag) next_flag = Or(flag, off)" if is_merged else ""}
    }}
    """
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(4)
    del model.graph.value_info[:]
    for name, shape in WEIGHTS.items():
        values = rng.standard_normal(shape, np.float32) * np.float32(0.5)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    onnx.checker.check_model(model)
    return model


class Decoder:
    def __init__(self, is_merged, folder):
        self.model = _model(is_merged)
        self.path = folder / f"{'merged' if is_merged else 'plain'}.onnx"
        onnx.save(self.model, self.path)
        self.session = onnxruntime_session(self.model, threads=1)
        self.fed = {name: output for name, output in FED.items() if is_merged or name != "flag"}

    def inputs(self, prompt, past=0):
        rng = np.random.default_rng(prompt + 10 * past)
        inputs = {"ids": rng.integers(0, VOCABULARY, (1, prompt)), "flag": np.array(past > 0)}
        inputs |= {f"past_{cache}": rng.standard_normal((1, HEADS, past, SIZE), np.float32) for cache in CACHES}
        return {name: inputs[name] for name in self.fed}

    def run(self, inputs, steps):
        """The outputs of each step."""
        names = [output.name for output in self.session.get_outputs()]
        results = []
        for _ in range(steps):
            results.append(dict(zip(names, self.session.run(names, inputs))))
            inputs = {name: results[-1][output] for name, output in self.fed.items()}
        return results

    def bounds(self):
        return {"past": ROOM, "tokens": LONGEST}

    def compile(self, folder, partition, *extra):
        line = [tool("dovetail"), "compile", self.path, "-o", folder / "decoder.dvt", *partition.flags(), *extra]
        line += [part for name, bound in self.bounds().items() for part in ("--bound", f"{name}={bound}")]
        line += [part for name, output in self.fed.items() for part in ("--feedback", f"{output}:{name}")]
        code, _, messages = call(line)
        assert code == 0, messages
        return folder / "decoder.dvt"


@pytest.fixture(scope="module", params=["plain", "merged"])
def decoder(request, backend, tmp_path_factory):
    return Decoder(request.param == "merged", tmp_path_factory.mktemp("decoder"))


def _split(dim, sizes, names=tuple(f"past_{cache}" for cache in CACHES)):
    return split_alike(names, 4, dim, sizes)


PARTITIONS = {
    "whole": Partition({"y": 1}),
    "heads": _split(1, (1, 3)),
    "cache": _split(2, (6, 3)),
    "heads-of-three": _split(1, (2, 0, 2)),
    "cache-of-three": _split(2, (2, 0, 7)),
    "mixed": Partition({"y": 3}).split("past_key0", 4, 2, "y", (4, 4, 1)).split("past_value1", 4, 1, "y", (1, 1, 2)),
    "output": Partition({"y": 2}).split("value0", 4, 2, "y"),
}


def _arguments(artifact, folder, inputs, outputs, steps):
    line = ["run", artifact, "--steps", steps]
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        line += ["--input", f"{name}=@{folder}/{name}.npy"]
    return line + [part for name in outputs for part in ("--output", f"{name}={folder}/{name}-{{step}}.npy")]


def _check(folder, expected):
    for step, outputs in enumerate(expected, 1):
        for name, value in outputs.items():
            found = np.load(folder / f"{name}-{step:04}.npy")
            assert found.shape == value.shape and found.dtype == value.dtype, (name, step)
            np.testing.assert_allclose(found, value, rtol=0, atol=1e-4, err_msg=f"{name} of step {step}")


def _is_full(messages):
    return "has 10 in dimension 2, but input 'past_" in messages and "has room for 9; run fewer steps" in messages


@pytest.mark.parametrize("name", PARTITIONS)
def test_steps(decoder, tmp_path, name):
    artifact = decoder.compile(tmp_path, PARTITIONS[name])
    # The longest caches come first, so that shorter ones must not read what these left.
    for prompt, past in ((1, 3), (3, 0), (1, 0), (1, ROOM)):
        inputs = decoder.inputs(prompt, past)
        # One token beyond the cache's room is computed, but not fed back.
        steps = ROOM + 2 - prompt - past
        expected = decoder.run(inputs, steps)
        line = [tool("dovetail-run"), *_arguments(artifact, tmp_path, inputs, expected[0], steps), "--fill-memory", MEMORY_FILL]
        code, _, messages = call(line)
        assert code == 0, messages
        _check(tmp_path, expected)


def test_caches_that_are_full(decoder, tmp_path):
    """The step that has no room is an error, and those before it are complete."""
    artifact = decoder.compile(tmp_path, PARTITIONS["cache-of-three"])
    inputs = decoder.inputs(prompt=2)
    expected = decoder.run(inputs, ROOM)
    code, _, messages = call([tool("dovetail-run"), *_arguments(artifact, tmp_path, inputs, expected[0], 20)])
    assert code == USAGE and _is_full(messages), messages
    assert f"step {ROOM + 1}: output 'key0'" in messages and "larger --bound for 'past'" in messages, messages
    _check(tmp_path, expected)


def test_resume(decoder, tmp_path):
    artifact = decoder.compile(tmp_path, PARTITIONS["mixed"])
    inputs = decoder.inputs(prompt=3)
    expected = decoder.run(inputs, 6)
    line = [tool("dovetail-run"), *_arguments(artifact, tmp_path, inputs, expected[0], 3), "--resume"]
    for steps in (3, 6):
        line[line.index("--steps") + 1] = steps
        code, _, messages = call(line)
        assert code == 0, messages
    assert "goes on with step 4 of 6" in messages
    _check(tmp_path, expected)


@pytest.mark.skipif(bool(mpi.missing()), reason=mpi.missing() or "it is there")
def test_mpi(decoder, tmp_path):
    artifact = decoder.compile(tmp_path, PARTITIONS["cache-of-three"])
    inputs = decoder.inputs(prompt=3)
    expected = decoder.run(inputs, ROOM - 1)
    for steps in (ROOM - 1, 20):
        line = _arguments(artifact, tmp_path, inputs, expected[0], steps)
        code, _, messages = mpi.call(mpi.command(3, mpi.run_program(*line)))
        assert (code, _is_full(messages)) == ((0, False) if steps < 20 else (USAGE, True)), messages
        if steps < 20:
            _check(tmp_path, expected)


@pytest.mark.parametrize("target", ["cpu", "emulated"])
def test_sockets(decoder, tmp_path, target):
    artifact = decoder.compile(tmp_path, PARTITIONS["heads"], "--target", target, "--no-libraries")
    inputs = decoder.inputs(prompt=3)
    expected = decoder.run(inputs, ROOM - 1)
    for steps in (ROOM - 1, 20):
        results = run_ranks(_arguments(artifact, tmp_path, inputs, expected[0], steps), 2)
        assert {code for code, _, _ in results} == {0 if steps < 20 else USAGE}, results
        assert any(_is_full(messages) for _, _, messages in results) == (steps == 20), results
        if steps < 20:
            _check(tmp_path, expected)


@pytest.mark.parametrize("name", ["whole", "heads", "cache-of-three"])
def test_python(decoder, name):
    assert isinstance(fastest_backend(), InProcessBackend), "the shared libraries are not built"
    import dovetail

    feedback = {output: name for name, output in decoder.fed.items()}
    program = dovetail.compile(decoder.model, bounds=decoder.bounds(), feedback=feedback, options=PARTITIONS[name].flags())
    for prompt, past in ((1, 3), (2, 0)):
        inputs = decoder.inputs(prompt, past)
        expected = decoder.run(inputs, ROOM + 2 - prompt - past)
        # The last number of steps does not fit, and the program goes on after that.
        for steps in (len(expected), len(expected) + 1, 1, 4):
            if steps > len(expected):
                with pytest.raises(dovetail.DovetailError, match="has room for 9; run fewer steps") as caught:
                    program.run(inputs, steps=steps)
                assert caught.value.code == USAGE
                continue
            actual = program.run(inputs, steps=steps)
            for output, value in expected[steps - 1].items():
                assert actual[output].shape == value.shape, (output, steps)
                np.testing.assert_allclose(actual[output], value, rtol=0, atol=1e-4, err_msg=f"{output} after {steps} steps")


#: A process that is given all of its tensors, and calls the C interface.
PROGRAM = """
import sys, numpy, dovetail
from dovetail import _program as api
artifact, folder, steps = sys.argv[1:]
program, keep = dovetail.Program.load(artifact), []
with dovetail.Runner(program, comm="mpi") as runner:
    inputs = [numpy.load(f"{folder}/{port.name}.npy") for port in program.inputs]
    outputs = [numpy.empty(port.shape, port.numpy_dtype) for port in program.outputs if runner.ranks.start == 0]
    tensors = [program._tensors("input", inputs, keep), len(inputs), program._tensors("output", outputs, keep), len(outputs)]
    code = api._runtime().dovetail_runner_run_steps(runner._handle, *tensors, int(steps))
    if code:
        sys.exit(api._runtime().dovetail_last_error().decode())
    for index, (port, array) in enumerate(zip(program.outputs, outputs)):
        numpy.save(f"{folder}/{port.name}.npy", program._cut(runner._handle, index, array))
"""


@pytest.mark.skipif(bool(mpi.missing()), reason=mpi.missing() or "it is there")
def test_tensors_of_processes(decoder, tmp_path):
    artifact = decoder.compile(tmp_path, PARTITIONS["cache-of-three"])
    inputs = decoder.inputs(prompt=3)
    expected = decoder.run(inputs, ROOM - 1)
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
    variables = {"PYTHONPATH": os.environ.get("PYTHONPATH") or str(ROOT / "python")}
    for steps in (ROOM - 1, 2, ROOM):
        line = mpi.command(3, [sys.executable, "-c", PROGRAM, artifact, tmp_path, steps], variables=variables)
        code, _, messages = mpi.call(line)
        assert (code == 0, _is_full(messages)) == ((True, False) if steps < ROOM else (False, True)), messages
        for name, value in expected[steps - 1].items() if steps < ROOM else ():
            np.testing.assert_allclose(np.load(tmp_path / f"{name}.npy"), value, rtol=0, atol=1e-4, err_msg=name)


def test_lengths_that_differ(backend):
    """Two outputs, one of which may have more than the other, are inputs of one length."""
    import dovetail

    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 18]>
        pair (float[n] x, float[n] y, float[3] a, float[3] b) => (float[k] next_x, float[m] next_y, float[n] sum) <float zero = {0}>
        { p = Greater(a, zero) q = Greater(b, zero) next_x = Compress(a, p) next_y = Compress(b, q) sum = Add(x, y) }""")
    program = dovetail.compile(model, bounds={"n": 3}, feedback={"next_x": "x", "next_y": "y"})
    inputs = {"x": np.ones(1, np.float32), "y": np.ones(1, np.float32), "a": np.array([1, -1, 2], np.float32)}
    same, other = np.array([3, 4, -1], np.float32), np.array([3, 4, 5], np.float32)
    np.testing.assert_array_equal(program.run(inputs | {"b": same}, steps=2)["sum"], [4, 6])
    words = "'n' would be 2 in the next run by dimension 0 of output 'next_x', but 3 by dimension 0 of output 'next_y'"
    with pytest.raises(dovetail.DovetailError, match=words) as caught:
        program.run(inputs | {"b": other}, steps=2)
    assert caught.value.code == USAGE
    np.testing.assert_array_equal(program.run(inputs | {"b": other})["next_y"], other)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_state_with_a_larger_bound(backend, ranks):
    """What is fed back is extended to the input's bound, of which the first step may have more."""
    import dovetail

    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 18]>
        chosen (float[n] x, float[4] y) => (float[k] next_x, float[4] next_y, float total, float[n] twice) <float one = {1}>
        { total = ReduceSum<keepdims = 0>(x) twice = Add(x, x) limit = Sub(total, one) keep = Greater(y, limit)
          next_x = Compress(y, keep) next_y = Sub(y, one) }""")
    options = Partition({"y": ranks}).split("x", 1, 0, "y", (7, 0, 0)[:ranks] if ranks < 3 else (2, 4, 1)).flags()
    program = dovetail.compile(model, bounds={"n": 7}, feedback={"next_x": "x", "next_y": "y"}, options=options)
    session = onnxruntime_session(model, threads=1)
    names = [output.name for output in session.get_outputs()]
    inputs = {"x": np.arange(-3, 4, dtype=np.float32), "y": np.array([0, 3, -2, 5], np.float32)}
    fed = inputs
    sizes = []
    for steps in range(1, 6):
        expected = dict(zip(names, session.run(names, fed)))
        fed = {"x": expected["next_x"], "y": expected["next_y"]}
        sizes.append(len(fed["x"]))
        actual = program.run(inputs, steps=steps)
        for name, value in expected.items():
            np.testing.assert_array_equal(actual[name], value, err_msg=f"{name} after {steps} steps")
    assert len(set(sizes)) > 1, sizes


def test_inspect(decoder, tmp_path):
    artifact = decoder.compile(tmp_path, PARTITIONS["heads"])
    code, output, messages = call([tool("dovetail"), "inspect", artifact, "--json"])
    assert code == 0, messages
    fed = {port["name"]: port["fed_by"] for port in json.loads(output)["inputs"]}
    assert fed == decoder.fed
