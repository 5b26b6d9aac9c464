# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs in steps: on their own outputs, and on a file for each step; in one process and in several."""

import os
import pathlib
import resource
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from harness import mpi
from harness.backend import ROOT, InProcessBackend, call, fastest_backend, tool
from step_runs import (
    CUTS,
    LOCAL,
    MPI,
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


def _check_onnxruntime(folder, results, forces=None):
    session = onnxruntime.InferenceSession(str(folder / "states.onnx"), providers=["CPUExecutionProvider"])
    feed = {name: np.load(folder / f"{name}.npy") for name in ("a", "b", "force")}
    for step, result in enumerate(results):
        if forces:
            feed["force"] = np.load(forces[step])
        names = [output.name for output in session.get_outputs()]
        expected = dict(zip(names, session.run(names, feed)))
        for name in ("next_a", "next_b"):
            np.testing.assert_allclose(result[name], expected[name], rtol=0, atol=1e-5)
        feed |= {"a": expected["next_a"], "b": expected["next_b"]}


@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("name", CUTS)
def test_feedback(folder, tmp_path, name, target):
    artifact = compile_states(folder, name, target=target)
    (tmp_path / "alone").mkdir()
    (tmp_path / "out").mkdir()
    results = run_one_by_one(folder, artifact, tmp_path / "alone", 4)
    _check_onnxruntime(folder, results)
    assert run_steps(None, artifact, *given_flags(folder), "--steps", 4, *output_flags(tmp_path / "out")) == ("", "")
    check_steps(tmp_path / "out", results)
    # With threads, and after runs on numbers that are none.
    run_steps(None, artifact, *given_flags(folder), "--steps", 4, "--threads", 5, "--warmup", 2, *output_flags(tmp_path / "out"))
    _check_onnxruntime(folder, [{n: np.load(tmp_path / "out" / f"{n}-{s:04}.npy") for n in ("next_a", "next_b")} for s in (1, 2, 3, 4)])


@pytest.mark.parametrize("seed", [3, 5, 7, 10, 12])
def test_feedback_however_all_is_split(folder, tmp_path, seed):
    """All that can be decided is, at random: which ranks hold what of states, and whether they compute halos."""
    mesh, halos = [("y=3", "never"), ("y=2,x=2", "always"), ("y=4", "gain")][seed % 3]
    target = ["emulated", "--no-libraries"] if seed % 5 == 0 else ["cpu"]
    feedback = ["--feedback", "next_a:a", "--feedback", "next_b:b"]
    line = [tool("dovetail"), "compile", folder / "states.onnx", "-o", tmp_path / "states.dvt", "--mesh", mesh, *feedback]
    code, _, messages = call([*line, "--halos", halos, "--shardings-seed", seed, "--target", *target])
    assert code == 0, messages
    run_steps(None, tmp_path / "states.dvt", *given_flags(folder), "--steps", 4, *output_flags(tmp_path, ("next_a", "next_b")))
    found = [{name: np.load(tmp_path / f"{name}-{step:04}.npy") for name in ("next_a", "next_b")} for step in (1, 2, 3, 4)]
    _check_onnxruntime(folder, found)


@pytest.mark.skipif(bool(mpi.missing()), reason=mpi.missing() or "it is there")
@pytest.mark.parametrize("name", ["uneven", "other"])
def test_feedback_among_processes(folder, tmp_path, name):
    artifact = compile_states(folder, name)
    for kind in ("local", "mpi"):
        (tmp_path / kind).mkdir()
        run_steps(3 if kind == "mpi" else None, artifact, *given_flags(folder), "--steps", 5, *output_flags(tmp_path / kind))
    names = sorted(file.name for file in (tmp_path / "local").iterdir())
    assert len(names) == 16 and names == sorted(file.name for file in (tmp_path / "mpi").iterdir())
    for file in names:
        if file.endswith(".npy"):
            assert (tmp_path / "local" / file).read_bytes() == (tmp_path / "mpi" / file).read_bytes(), file


def test_feedback_in_memory(folder):
    """The interface of Python, and so of C."""
    assert isinstance(fastest_backend(), InProcessBackend), "the shared libraries are not built"
    import dovetail

    program = dovetail.Program.load(compile_states(folder, "other"))
    assert program.feedback == {"a": "next_a", "b": "next_b"}
    inputs = {name: np.load(folder / f"{name}.npy") for name in ("a", "b", "force")}
    found = program.run(inputs, steps=3)
    state = dict(inputs)
    for _ in range(3):
        expected = program.run(state)
        state |= {"a": expected["next_a"], "b": expected["next_b"]}
    for name, value in expected.items():
        assert found[name].tobytes() == value.tobytes(), name
    # Compiled in this process, too.
    again = dovetail.compile(folder / "states.onnx", feedback={"next_a": "a", "next_b": "b"}).run(inputs, steps=3)
    np.testing.assert_allclose(again["next_a"], found["next_a"], rtol=0, atol=1e-5)
    plain = dovetail.Program.load(compile_states(folder, "one", flags=()))
    with pytest.raises(dovetail.DovetailError, match="all of 2 steps would be the same"):
        plain.run(inputs, steps=2)
    with pytest.raises(dovetail.DovetailError, match="give a number from 1"):
        program.run(inputs, steps=0)


def _forces(folder):
    return [folder / "forces" / f"hour{step}.npy" for step in range(1, 12)]


@pytest.mark.parametrize("processes", [LOCAL, MPI])
@pytest.mark.parametrize("kind", ["pattern", "at", "stacked", "both"])
def test_sequences(folder, tmp_path, processes, kind):
    """With a file for each step, whose numbers count, or a part of a file, and with feedback, too."""
    artifact = compile_states(folder, "uneven", flags=("--feedback", "next_a:a", "--feedback", "next_b:b") if kind == "both" else ())
    (tmp_path / "out").mkdir()
    force = {"at": f"@{folder}/forces/*.npy", "stacked": f"@{folder}/forces.npy"}.get(kind, f"{folder}/forces/hour*.npy")
    pattern = "{name}-{step:04}.npy" if kind == "stacked" else "{name}-hour{step}.npy"
    place = "{step}" if kind == "stacked" else "{name}"
    flags = [part for n in ("next_a", "next_b", "half") for part in ("--output", f"{n}={tmp_path}/out/{n}-{place}.npy")]
    assert run_steps(processes, artifact, *given_flags(folder, force=force), *flags) == ("", "")
    if kind == "both":
        results = run_one_by_one(folder, artifact, tmp_path, 11, _forces(folder))
    else:
        results = [run_one_by_one(folder, artifact, tmp_path, 1, [file])[0] for file in _forces(folder)]
    check_steps(tmp_path / "out", results, pattern)
    assert len(list((tmp_path / "out").iterdir())) == 3 * 11 + 1
    # Fewer steps than files.
    output, _ = run_steps(processes, artifact, *given_flags(folder, force=force), "--steps", 2)
    assert [line.split()[:3] for line in output.splitlines()] == [
        ["step", str(step), name] for step in (1, 2) for name in ("next_a", "next_b", "half")
    ]


def test_many_steps_begin_at_once(folder, tmp_path):
    """Names are compared before anything runs: of 300 000 steps in less than 4 s of a processor, and the last is found."""
    (tmp_path / "y-300000.npy").symlink_to(folder / "force.npy")
    given = given_flags(folder, force=f"@{tmp_path}/y-300000.npy")
    artifact = compile_states(folder, "one")
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    code, _, messages = call_run(None, artifact, *given, "--output", f"half={tmp_path}/y-{{step}}.npy", "--steps", 300000)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert code == 2 and "y-300000.npy' would be written over an input" in messages, messages
    assert end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime < 4


@pytest.mark.parametrize(
    "given, flags, what",
    [
        ({}, ["--steps", 2], "all steps would be the same; compile the model with --feedback OUT:IN"),
        ({}, ["--steps", -1], "--steps -1: give a number from 1"),
        ({}, ["--steps", 0], "--steps 0: give a number from 1"),
        ({}, ["--resume"], "--resume: a run without --output cannot be resumed"),
        ({"force": "{0}/none*.npy"}, [], "there is no file '"),
        ({"force": "{0}/forces/*.npy"}, ["--steps", 12], "input 'force' is given for 11 steps, but there are 12"),
        ({"force": "{0}/forces/*.npy", "a": "{0}/forces/hour1*.npy"}, [], "input 'a' is given for 3 steps, but input 'force' for 11"),
        ({"force": "{0}/forces/*.npy"}, ["--output", "half={1}/y.npy"], "11 steps would write to it; put {step} into its name, or {name}"),
        ({"force": "{0}/forces/*.npy"}, ["--output", "{1}/y.npz"], "the steps of a run write arrays, no archives"),
        ({"force": "@{0}/forces.npy"}, ["--output", "half={1}/{name}.npy"], "but no input has a file for each step"),
        ({"force": "{0}/forces/*.npy"}, ["--output", "half={0}/forces/{name}.npy"], "would be written over an input"),
        ({"force": "{0}/forces/*.npy"}, ["--output", "half={1}/{step}.npy", "--output", "next_a={1}/{step}.npy"], "would be written over another output"),
    ],
)  # fmt: skip
def test_refused(folder, tmp_path, given, flags, what):
    def fill(text):
        return str(text).replace("{0}", str(folder)).replace("{1}", str(tmp_path))

    given = {name: fill(value) for name, value in given.items()}
    code, _, messages = call_run(None, compile_states(folder, "one", flags=()), *given_flags(folder, **given), *map(fill, flags))
    assert code == (3 if "no file" in what else 2), messages
    assert what in messages
    assert not list(tmp_path.iterdir())


def test_fed_inputs_have_no_sequence(folder):
    code, _, messages = call_run(None, compile_states(folder, "one"), *given_flags(folder, a=f"{folder}/forces/*.npy"))
    assert code == 2
    assert "input 'a' is output 'next_a' of the previous step, so only its first value can be given" in messages


def test_progress(folder, tmp_path, monkeypatch):
    """On a terminal: the step, and how long the rest takes."""
    monkeypatch.delenv("DOVETAIL_PROGRESS")
    line = run_line(None, ["run", compile_states(folder, "one"), *given_flags(folder), "--steps", 3])
    leader, follower = os.openpty()
    process = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=follower, timeout=60)
    os.close(follower)
    shown = os.read(leader, 1 << 16).decode()
    assert process.returncode == 0
    assert "step 1 of 3 ..." in shown and "step 3 of 3, 0 s left ..." in shown


@pytest.mark.skipif(bool(mpi.missing()), reason=mpi.missing() or "it is there")
def test_weather(tmp_path):
    """The example, small: four ranks, compared with one."""
    line = [sys.executable, ROOT / "examples" / "weather.py", "--build", tool("dovetail").parents[1], "--out", tmp_path]
    code, output, messages = mpi.call([str(part) for part in [*line, "--height", 37, "--width", 72, "--steps", 3]])
    assert code == 0, messages
    assert "Largest difference from one rank in any step" in output
    assert pathlib.Path(tmp_path / "weather.png").read_bytes()[:4] == b"\x89PNG"
