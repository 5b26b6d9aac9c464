# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs in steps that end early, by a signal or an error, and are resumed; in one process and in several."""

import json
import os
import pathlib
import signal
import time

import numpy as np
import onnx
import pytest
from harness import mpi
from harness.backend import call, tool
from step_runs import (
    FLOAT,
    LOCAL,
    MPI,
    SHAPE,
    call_run,
    check_steps,
    compile_states,
    given_flags,
    output_flags,
    run_line,
    run_one_by_one,
    run_steps,
    write_states,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the model and its inputs."""
    return write_states(tmp_path_factory.mktemp("steps"))


def _kill_midway(process, out, file):
    """Kills all processes of a run once `file` is there."""
    deadline = time.monotonic() + 120
    while not (out / file).exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.001)
    for entry in pathlib.Path("/proc").iterdir():
        # mpirun's ranks have groups of their own.
        try:
            session = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3]) if entry.name.isdigit() else 0
        except OSError:
            continue
        if session == process.pid:
            os.kill(int(entry.name), signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("processes", [LOCAL, MPI])
@pytest.mark.parametrize("names", [("next_a", "next_b"), ("next_a",), ("half",)], ids=["all", "one", "none"])
def test_resume(folder, tmp_path, processes, names):
    """Killed, and killed again: the outputs are those of a run that was not. States may be no outputs."""
    artifact = compile_states(folder, "other")
    steps = 600
    whole, out = tmp_path / "whole", tmp_path / "out"
    whole.mkdir()
    out.mkdir()
    arguments = [artifact, *given_flags(folder), "--steps", steps]
    run_steps(None, *arguments, *output_flags(whole, names))
    resumed = []
    for number, last in enumerate((7, 31)):
        line = run_line(processes, ["run", *arguments, *output_flags(out, names), *(["--resume"] if number else [])])
        _kill_midway(mpi.start(line), out, f"{names[0]}-{last:04}.npy")
        for file in out.glob(f"{names[0]}-????.npy"):
            assert file.read_bytes() == (whole / file.name).read_bytes()
        resumed.append(json.loads((out / f"{names[0]}.resume.json").read_text())["done"])
    assert 7 <= resumed[0] + 1 and resumed[0] < resumed[1] + 1 < steps
    _, messages = run_steps(processes, *arguments, *output_flags(out, names), "--resume")
    assert f"goes on with step {resumed[1] + 1} of {steps}" in messages
    expected = {file.name: file for file in whole.iterdir()}
    assert sorted(expected) == sorted(file.name for file in out.iterdir())
    for name, file in expected.items():
        if name.endswith(".npy"):
            assert file.read_bytes() == (out / name).read_bytes(), name
    # Nothing is left to do; more steps are.
    _, messages = run_steps(processes, *arguments, *output_flags(out, names), "--resume")
    assert "all steps are complete" in messages
    arguments[-1] = steps + 2
    run_steps(processes, *arguments, *output_flags(out, names), "--resume")
    run_steps(None, *arguments, *output_flags(whole, names))
    assert (out / f"{names[0]}-{steps + 2:04}.npy").read_bytes() == (whole / f"{names[0]}-{steps + 2:04}.npy").read_bytes()


def test_resume_with_outputs_in_another_order(folder, tmp_path):
    line = [compile_states(folder, "other"), *given_flags(folder), "--steps"]
    run_steps(None, *line, 3, *output_flags(tmp_path, ("next_a", "half")))
    _, messages = run_steps(None, *line, 5, *output_flags(tmp_path, ("half", "next_a")), "--resume")
    assert "goes on with step 4 of 5" in messages
    check_steps(tmp_path, run_one_by_one(folder, line[0], tmp_path, 5), names=("next_a", "half"))


def test_asked_to_end(folder, tmp_path):
    """By SIGTERM, as batch systems do: what is not complete is gone at once."""
    arguments = [compile_states(folder, "other"), *given_flags(folder), "--steps", 5000, *output_flags(tmp_path, ("next_a",))]
    line = run_line(None, ["run", *arguments])
    process = mpi.start(line)
    while not (tmp_path / "next_a-0005.npy").exists():
        assert process.poll() is None
        time.sleep(0.001)
    process.terminate()
    process.communicate()
    assert process.returncode == -signal.SIGTERM
    last = json.loads((tmp_path / "next_a.resume.json").read_text())["done"]
    expected = {f"next_a-{step:04}.npy" for step in range(1, last + 1)} | {"next_a.resume.json"}
    # Between a step's files and what says so, it may have ended, too.
    more = {f"next_a-{last + 1:04}.npy", *(f"next_a.resume.1.{step:04}.npy" for step in (last - 1, last, last + 1))}
    names = {file.name for file in tmp_path.iterdir()}
    assert expected <= names <= expected | more, names ^ expected


def _wait_for(path, process):
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("processes", [LOCAL, MPI])
def test_two_runs_at_once(folder, tmp_path, processes):
    """Who comes second to the same files is refused, and does no harm; other files in that folder are another matter."""
    line = ["run", compile_states(folder, "other"), *given_flags(folder), "--steps"]
    process = mpi.start(run_line(None, [*line, 1000000, *output_flags(tmp_path, ("next_a",))]))
    try:
        _wait_for(tmp_path / "next_a-0002.npy", process)
        for names in (("next_a",), ("next_b", "next_a")):
            code, _, messages = mpi.call(run_line(processes, [*line, 3, *output_flags(tmp_path, names), "--resume"]))
            assert code == 3, messages
            assert f"another run (process {process.pid} on host '{os.uname().nodename}') holds '{tmp_path}/next_a.lock'" in messages
        assert not (tmp_path / "next_b.lock").exists()
        # One step keeps no state, but writes such a file, too.
        code, _, messages = mpi.call(run_line(processes, [*line, 1, *output_flags(tmp_path, ("next_a",))]))
        assert code == 3 and f"holds '{tmp_path}/next_a.lock'" in messages, messages
        run_steps(processes, *line[1:], 3, *output_flags(tmp_path, ("half",)))
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert not list(tmp_path.glob("*.lock"))
    run_steps(processes, *line[1:], 3, *output_flags(tmp_path, ("next_a",)))
    assert json.loads((tmp_path / "next_a.resume.json").read_text())["done"] == 3


@pytest.mark.parametrize("then", [("next_a",), ("half",), ("next_b",)])
def test_fewer_outputs_than_before(folder, tmp_path, then):
    """What a killed run has left of outputs that the next one does not have goes, too."""
    artifact, first = compile_states(folder, "other"), ("next_a", "half")
    process = mpi.start(run_line(None, ["run", artifact, *given_flags(folder), "--steps", 5000, *output_flags(tmp_path, first)]))
    _wait_for(tmp_path / "half-0003.npy", process)
    os.kill(process.pid, signal.SIGSTOP)
    kept = {file for file in tmp_path.iterdir() if file.suffix == ".npy" and "resume" not in file.name}
    process.kill()
    process.communicate()
    unfinished = {file.name for file in tmp_path.glob("*.npy.*")}
    assert any(name.startswith("half-") for name in unfinished), unfinished
    run_steps(None, artifact, *given_flags(folder), "--steps", 2, *output_flags(tmp_path, then))
    left = {file.name for file in tmp_path.glob("*.npy.*")}
    # Of a run whose manifest has another name, what both write.
    assert left == {name for name in unfinished if then[0] != "next_a" and not name.startswith(then[0])}
    assert kept <= set(tmp_path.iterdir())
    if then == ("next_a",):
        names = {f"next_a.resume.{name}" for name in ("json", "1.0002.npy")}
        assert {file.name for file in tmp_path.iterdir()} == names | {file.name for file in kept}


def test_a_hundred_outputs_when_asked_to_end(tmp_path):
    """None of them stays without its name."""
    value, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    names = [f"y{index}" for index in range(100)]
    graph = onnx.helper.make_graph(
        [node("Add", ["x", "x" if index == 0 else names[index - 1]], [name]) for index, name in enumerate(names)],
        "many",
        [value("x", FLOAT, [4])],
        [value(name, FLOAT, [4]) for name in names],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "many.onnx")
    feedback = ["--feedback", "y99:x"]
    code, _, messages = call([tool("dovetail"), "compile", tmp_path / "many.onnx", "-o", tmp_path / "many.dvt", *feedback])
    assert code == 0, messages
    out = tmp_path / "out"
    out.mkdir()
    line = ["run", tmp_path / "many.dvt", "--input", "x=random:1", "--steps", 5000, *output_flags(out, names)]
    process = mpi.start(run_line(None, line))
    _wait_for(out / "y99-0002.npy", process)
    process.terminate()
    process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert not list(out.glob("*.npy.*")) and not list(out.glob("*.lock"))


@pytest.mark.parametrize("kind", ["npy", "fortran", "npz"])
def test_input_that_is_cut_short_meanwhile(folder, tmp_path, kind):
    """After it was opened: an error that names it, and no signal as from a mapping. What is complete stays."""
    forces = np.random.default_rng(3).standard_normal([3000, *SHAPE]).astype(np.float32)
    file = tmp_path / ("forces.npz" if kind == "npz" else "forces.npy")
    if kind == "npz":
        np.savez(file, force=forces)
    else:
        np.save(file, np.asfortranarray(forces) if kind == "fortran" else forces)
    given = given_flags(folder, force=f"@{file}")
    arguments = [compile_states(folder, "uneven"), *given, "--steps", 3000, *output_flags(tmp_path, ("next_a",))]
    process = mpi.start(run_line(None, ["run", *arguments]))
    _wait_for(tmp_path / "next_a-0003.npy", process)
    os.truncate(file, 5000)
    code, _, messages = mpi.finish(process)
    assert code == 3 and f"'{file}' ends at byte" in messages and "it was cut short while it was read" in messages, messages
    assert not list(tmp_path.glob("*.npy.*"))


def test_resume_is_refused(folder, tmp_path):
    artifact, other = compile_states(folder, "uneven"), compile_states(folder, "alike")
    flags = output_flags(tmp_path, ("next_a", "next_b"))
    given = given_flags(folder, force=f"{tmp_path}/f*.npy")
    for step in (1, 2, 3):
        np.save(tmp_path / f"f{step}.npy", np.load(folder / "force.npy"))

    def refused(program, given, flags, what):
        code, _, messages = call_run(None, program, *given, *flags, "--resume")
        assert code == 2 and what in messages and "next_a.resume.json' is of another run" in messages, messages

    _, messages = run_steps(None, artifact, *given, *flags, "--resume")
    assert "next_a.resume.json'; begins with step 1" in messages
    refused(other, given, flags, "it ran another program than")
    refused(artifact, given_flags(folder), [*flags, "--steps", 3], "it had no --input force=@")
    refused(artifact, given, output_flags(tmp_path, ("next_a",)), "it had --output next_b=")
    changed = tmp_path / "next_b-0003.npy"
    value = changed.read_bytes()
    changed.write_bytes(value)
    refused(artifact, given, flags, "next_b-0003.npy', which input 'b' is fed, has changed since, or was removed")
    np.save(tmp_path / "f2.npy", np.zeros(SHAPE, np.float32))
    refused(artifact, given, flags, "the files of input 'force' have changed since")
    manifest = tmp_path / "next_a.resume.json"
    manifest.write_text("{")
    code, _, messages = call_run(None, artifact, *given, *flags, "--resume")
    assert code == 3 and "next_a.resume.json' has no number of complete steps" in messages
    manifest.write_text('{"dovetail_run": 99, "done": [1, "of another form"]}')
    code, _, messages = call_run(None, artifact, *given, *flags, "--resume")
    assert code == 3 and "was written by another version of Dovetail: it has format 99, and this" in messages, messages
    assert "; remove it, or resume the run with that version\n" in messages and messages.count("\n") == 1
    # Who begins anew does not mind.
    run_steps(None, artifact, *given, *flags)
    assert json.loads(manifest.read_text())["done"] == 3


@pytest.mark.parametrize("processes", [LOCAL, MPI])
def test_errors_name_step_and_file(folder, tmp_path, processes):
    artifact = compile_states(folder, "uneven", flags=())
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for step in (1, 2, 3, 4):
        np.save(tmp_path / "in" / f"{step}.npy", np.zeros(SHAPE if step != 3 else SHAPE[1:], np.float32))
    arguments = [artifact, *given_flags(folder, force=f"{tmp_path}/in/*.npy"), "--output", f"next_a={tmp_path}/out/{{name}}.npy"]
    code, _, messages = call_run(processes, *arguments)
    assert code == 2, messages
    assert "step 3: " in messages and "/in/3.npy': input 'force' is float32[1, 2, 9, 12], but a tensor float32[2, 9, 12]" in messages
    # What was complete stays, and nothing else does.
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names in (["1.npy", "run.resume.json"], ["1.npy", "2.npy", "run.resume.json"]), names
    np.save(tmp_path / "in" / "3.npy", np.zeros(SHAPE, np.float32))
    run_steps(processes, *arguments, "--resume")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["1.npy", "2.npy", "3.npy", "4.npy", "run.resume.json"]


@pytest.mark.parametrize("processes", [LOCAL, MPI])
def test_steps_that_cannot_be_written(folder, tmp_path, processes):
    """What came before is there."""
    artifact = compile_states(folder, "uneven")
    (tmp_path / "next_a-0003.npy").mkdir()
    code, _, messages = call_run(processes, artifact, *given_flags(folder), "--steps", 4, *output_flags(tmp_path))
    assert code == 3, messages
    assert "step 3: " in messages and "next_a-0003.npy'" in messages
    done = json.loads((tmp_path / "next_a.resume.json").read_text())["done"]
    files = [f"{name}-{step:04}.npy" for name in ("half", "next_a", "next_b") for step in range(1, done + 1)]
    assert 1 <= done <= 2
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([*files, "next_a-0003.npy", "next_a.resume.json"])
    (tmp_path / "next_a-0003.npy").rmdir()
    run_steps(processes, artifact, *given_flags(folder), "--steps", 4, *output_flags(tmp_path), "--resume")
    assert len(list(tmp_path.iterdir())) == 13
