# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files whose lengths vary from run to run: of the command line, of steps and of processes."""

import numpy as np
import onnx
import pytest
from harness.backend import FILE, USAGE, call, tool
from lengths import BOUND, CPU, ELEMENTWISE, LENGTHS, WIDTH, elementwise_inputs, parse
from test_processes import finish, free_port, run_ranks, start


def test_command_line(tmp_path):
    """Files have what there is."""
    model, artifact = tmp_path / "model.onnx", tmp_path / "model.dvt"
    onnx.save(parse(ELEMENTWISE), model)

    def done(*arguments):
        code, output, errors = call([tool("dovetail"), *arguments])
        assert code == 0, errors
        return output

    done("compile", model, "-o", artifact, "--bound", f"seq={BOUND}", "--cpu", CPU)
    assert f"[2, {BOUND}, {WIDTH}] at most" in done("inspect", artifact)
    inputs = elementwise_inputs(np.random.default_rng(1), 3)
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


def _compile_for_steps(dovetail, artifact, sizes, target):
    sizes = ",".join(map(str, sizes))
    options = ["--mesh", "y=3", "--shard", "shift=_,y,_", "--sizes", f"shift:1={sizes}", "--bound", f"seq={BOUND}"]
    dovetail.compile(parse(ELEMENTWISE), libraries=False, options=[*options, "--target", target]).save(artifact)


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
        inputs = elementwise_inputs(rng, length)
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
    model = parse("""
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
        inputs = elementwise_inputs(rng, 3)
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
