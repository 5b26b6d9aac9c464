# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs in steps: on their own outputs, on a file for each step, interrupted and resumed; in one process and in several."""

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
import pytest
from harness import mpi
from harness.backend import ROOT, InProcessBackend, call, fastest_backend, tool

FLOAT, FLOAT16 = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16
SHAPE = [1, 2, 9, 12]
LOCAL = pytest.param(None, id="local")
MPI = pytest.param(3, id="mpi", marks=pytest.mark.skipif(bool(mpi.missing()), reason=mpi.missing() or "it is there"))

# (mesh, shardings): the states cut alike, in other ways, open, whole.
CUTS = {
    "alike": (["y=3"], ["a=_,_,y,_", "b=_,_,y,_"]),
    "uneven": (["y=3"], ["a=_,_,y,_", "--sizes", "a:2=4,0,5"]),
    "other": (["y=3"], ["a=_,_,y,_", "next_a=_,_,_,y", "b=_,_,_,y"]),
    "open": (["y=3"], ["next_b=_,_,_,y"]),
    "two-axes": (["y=3,x=2"], ["a=_,_,y,x", "next_b=_,_,x,y"]),
    "one": (["y=1"], []),
}


def _model():
    """Two states that take each other's places, of which one is computed with what stays the same."""
    value, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    weight = np.random.default_rng(1).standard_normal([2, 2, 3, 3]).astype(np.float32) / 5
    graph = onnx.helper.make_graph(
        [
            node("Conv", ["b", "weight"], ["mixed"], pads=[1, 1, 1, 1]),
            node("Add", ["mixed", "force"], ["forced"]),
            node("Tanh", ["forced"], ["next_a"]),
            node("Sin", ["a"], ["next_b"]),
            node("Cast", ["a"], ["half"], to=FLOAT16),
        ],
        "states",
        [value(name, FLOAT, SHAPE) for name in ("a", "b", "force")],
        [value("next_a", FLOAT, SHAPE), value("next_b", FLOAT, SHAPE), value("half", FLOAT16, SHAPE)],
        [onnx.numpy_helper.from_array(weight, "weight")],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The model, its inputs, a file of `force` for each of 11 steps, and all of these in one."""
    folder = tmp_path_factory.mktemp("steps")
    onnx.save(_model(), folder / "states.onnx")
    rng = np.random.default_rng(2)
    for name in ("a", "b", "force"):
        np.save(folder / f"{name}.npy", rng.standard_normal(SHAPE).astype(np.float32))
    (folder / "forces").mkdir()
    forces = rng.standard_normal([11, *SHAPE]).astype(np.float32)
    for index, force in enumerate(forces):
        # 10 and 11 come after 9.
        np.save(folder / "forces" / f"hour{index + 1}.npy", force)
    np.save(folder / "forces.npy", forces)
    return folder


def _compile(folder, name, flags=("--feedback", "next_a:a", "--feedback", "next_b:b"), target="cpu"):
    mesh, shards = CUTS[name]
    artifact = folder / f"{name}-{target}-{len(flags)}.dvt"
    if not artifact.exists():
        line = ["--mesh", *mesh, "--objective", "bytes", "--target", target, *flags]
        line += ["--no-libraries"] if target == "emulated" else []
        for shard in shards:
            line += ["--shard"] if "=_" in shard else []
            line.append(shard)
        code, output, messages = call([tool("dovetail"), "compile", folder / "states.onnx", "-o", artifact, *line])
        assert code == 0, messages
    return artifact


def _start(processes, arguments):
    line = mpi.run_program(*arguments) if processes else [tool("dovetail-run"), *arguments]
    return mpi.command(processes, line) if processes else [str(part) for part in line]


def _call(processes, *arguments):
    return mpi.call(_start(processes, ["run", *arguments]))


def _run(processes, *arguments):
    code, output, messages = _call(processes, *arguments)
    assert code == 0, messages
    return output, messages


def _given(folder, **other):
    names = {name: f"@{folder}/{name}.npy" for name in ("a", "b", "force")} | other
    return [part for name, value in names.items() for part in ("--input", f"{name}={value}")]


def _one_by_one(folder, artifact, out, steps, forces=None):
    """What a step after the other gives, each a run of its own; by step and output."""
    results = []
    given = {}
    for step in range(steps):
        if forces:
            given["force"] = f"@{forces[step]}"
        files = {name: out / f"{name}-{step + 1}.npy" for name in ("next_a", "next_b", "half")}
        flags = [part for name, file in files.items() for part in ("--output", f"{name}={file}")]
        _run(None, artifact, *_given(folder, **given), *flags)
        given |= {"a": f"@{files['next_a']}", "b": f"@{files['next_b']}"}
        results.append({name: np.load(file) for name, file in files.items()})
    return results


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


def _check(out, results, pattern="{name}-{step:04}.npy", names=("next_a", "next_b", "half")):
    for step, result in enumerate(results, 1):
        for name in names:
            found = np.load(out / pattern.format(name=name, step=step))
            assert found.dtype == result[name].dtype and found.shape == result[name].shape
            assert found.tobytes() == result[name].tobytes(), (name, step)


def _outputs(out, names=("next_a", "next_b", "half")):
    return [part for name in names for part in ("--output", f"{name}={out}/{name}-{{step}}.npy")]


@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("name", CUTS)
def test_feedback(folder, tmp_path, name, target):
    artifact = _compile(folder, name, target=target)
    (tmp_path / "alone").mkdir()
    (tmp_path / "out").mkdir()
    results = _one_by_one(folder, artifact, tmp_path / "alone", 4)
    _check_onnxruntime(folder, results)
    assert _run(None, artifact, *_given(folder), "--steps", 4, *_outputs(tmp_path / "out")) == ("", "")
    _check(tmp_path / "out", results)
    # With threads, and after runs on numbers that are none.
    _run(None, artifact, *_given(folder), "--steps", 4, "--threads", 5, "--warmup", 2, *_outputs(tmp_path / "out"))
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
    _run(None, tmp_path / "states.dvt", *_given(folder), "--steps", 4, *_outputs(tmp_path, ("next_a", "next_b")))
    found = [{name: np.load(tmp_path / f"{name}-{step:04}.npy") for name in ("next_a", "next_b")} for step in (1, 2, 3, 4)]
    _check_onnxruntime(folder, found)


@pytest.mark.skipif(bool(mpi.missing()), reason=mpi.missing() or "it is there")
@pytest.mark.parametrize("name", ["uneven", "other"])
def test_feedback_among_processes(folder, tmp_path, name):
    artifact = _compile(folder, name)
    for kind in ("local", "mpi"):
        (tmp_path / kind).mkdir()
        _run(3 if kind == "mpi" else None, artifact, *_given(folder), "--steps", 5, *_outputs(tmp_path / kind))
    names = sorted(file.name for file in (tmp_path / "local").iterdir())
    assert len(names) == 16 and names == sorted(file.name for file in (tmp_path / "mpi").iterdir())
    for file in names:
        if file.endswith(".npy"):
            assert (tmp_path / "local" / file).read_bytes() == (tmp_path / "mpi" / file).read_bytes(), file


def test_feedback_in_memory(folder):
    """The interface of Python, and so of C."""
    assert isinstance(fastest_backend(), InProcessBackend), "the shared libraries are not built"
    import dovetail

    program = dovetail.Program.load(_compile(folder, "other"))
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
    plain = dovetail.Program.load(_compile(folder, "one", flags=()))
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
    artifact = _compile(folder, "uneven", flags=("--feedback", "next_a:a", "--feedback", "next_b:b") if kind == "both" else ())
    (tmp_path / "out").mkdir()
    force = {"at": f"@{folder}/forces/*.npy", "stacked": f"@{folder}/forces.npy"}.get(kind, f"{folder}/forces/hour*.npy")
    pattern = "{name}-{step:04}.npy" if kind == "stacked" else "{name}-hour{step}.npy"
    place = "{step}" if kind == "stacked" else "{name}"
    flags = [part for n in ("next_a", "next_b", "half") for part in ("--output", f"{n}={tmp_path}/out/{n}-{place}.npy")]
    assert _run(processes, artifact, *_given(folder, force=force), *flags) == ("", "")
    if kind == "both":
        results = _one_by_one(folder, artifact, tmp_path, 11, _forces(folder))
    else:
        results = [_one_by_one(folder, artifact, tmp_path, 1, [file])[0] for file in _forces(folder)]
    _check(tmp_path / "out", results, pattern)
    assert len(list((tmp_path / "out").iterdir())) == 3 * 11 + 1
    # Fewer steps than files.
    output, _ = _run(processes, artifact, *_given(folder, force=force), "--steps", 2)
    assert [line.split()[:3] for line in output.splitlines()] == [
        ["step", str(step), name] for step in (1, 2) for name in ("next_a", "next_b", "half")
    ]


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
    artifact = _compile(folder, "other")
    steps = 600
    whole, out = tmp_path / "whole", tmp_path / "out"
    whole.mkdir()
    out.mkdir()
    arguments = [artifact, *_given(folder), "--steps", steps]
    _run(None, *arguments, *_outputs(whole, names))
    resumed = []
    for number, last in enumerate((7, 31)):
        line = _start(processes, ["run", *arguments, *_outputs(out, names), *(["--resume"] if number else [])])
        _kill_midway(mpi.start(line), out, f"{names[0]}-{last:04}.npy")
        for file in out.glob(f"{names[0]}-????.npy"):
            assert file.read_bytes() == (whole / file.name).read_bytes()
        resumed.append(json.loads((out / f"{names[0]}.resume.json").read_text())["done"])
    assert 7 <= resumed[0] + 1 and resumed[0] < resumed[1] + 1 < steps
    _, messages = _run(processes, *arguments, *_outputs(out, names), "--resume")
    assert f"goes on with step {resumed[1] + 1} of {steps}" in messages
    expected = {file.name: file for file in whole.iterdir()}
    assert sorted(expected) == sorted(file.name for file in out.iterdir())
    for name, file in expected.items():
        if name.endswith(".npy"):
            assert file.read_bytes() == (out / name).read_bytes(), name
    # Nothing is left to do; more steps are.
    _, messages = _run(processes, *arguments, *_outputs(out, names), "--resume")
    assert "all steps are complete" in messages
    arguments[-1] = steps + 2
    _run(processes, *arguments, *_outputs(out, names), "--resume")
    _run(None, *arguments, *_outputs(whole, names))
    assert (out / f"{names[0]}-{steps + 2:04}.npy").read_bytes() == (whole / f"{names[0]}-{steps + 2:04}.npy").read_bytes()


def test_resume_with_outputs_in_another_order(folder, tmp_path):
    line = [_compile(folder, "other"), *_given(folder), "--steps"]
    _run(None, *line, 3, *_outputs(tmp_path, ("next_a", "half")))
    _, messages = _run(None, *line, 5, *_outputs(tmp_path, ("half", "next_a")), "--resume")
    assert "goes on with step 4 of 5" in messages
    _check(tmp_path, _one_by_one(folder, line[0], tmp_path, 5), names=("next_a", "half"))


def test_asked_to_end(folder, tmp_path):
    """By SIGTERM, as batch systems do: what is not complete is gone at once."""
    line = _start(None, ["run", _compile(folder, "other"), *_given(folder), "--steps", 5000, *_outputs(tmp_path, ("next_a",))])
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
    line = ["run", _compile(folder, "other"), *_given(folder), "--steps"]
    process = mpi.start(_start(None, [*line, 1000000, *_outputs(tmp_path, ("next_a",))]))
    try:
        _wait_for(tmp_path / "next_a-0002.npy", process)
        for names in (("next_a",), ("next_b", "next_a")):
            code, _, messages = mpi.call(_start(processes, [*line, 3, *_outputs(tmp_path, names), "--resume"]))
            assert code == 3, messages
            assert f"another run (process {process.pid} on host '{os.uname().nodename}') holds '{tmp_path}/next_a.lock'" in messages
        assert not (tmp_path / "next_b.lock").exists()
        # One step keeps no state, but writes such a file, too.
        code, _, messages = mpi.call(_start(processes, [*line, 1, *_outputs(tmp_path, ("next_a",))]))
        assert code == 3 and f"holds '{tmp_path}/next_a.lock'" in messages, messages
        _run(processes, *line[1:], 3, *_outputs(tmp_path, ("half",)))
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert not list(tmp_path.glob("*.lock"))
    _run(processes, *line[1:], 3, *_outputs(tmp_path, ("next_a",)))
    assert json.loads((tmp_path / "next_a.resume.json").read_text())["done"] == 3


@pytest.mark.parametrize("then", [("next_a",), ("half",), ("next_b",)])
def test_fewer_outputs_than_before(folder, tmp_path, then):
    """What a killed run has left of outputs that the next one does not have goes, too."""
    artifact, first = _compile(folder, "other"), ("next_a", "half")
    process = mpi.start(_start(None, ["run", artifact, *_given(folder), "--steps", 5000, *_outputs(tmp_path, first)]))
    _wait_for(tmp_path / "half-0003.npy", process)
    os.kill(process.pid, signal.SIGSTOP)
    kept = {file for file in tmp_path.iterdir() if file.suffix == ".npy" and "resume" not in file.name}
    process.kill()
    process.communicate()
    unfinished = {file.name for file in tmp_path.glob("*.npy.*")}
    assert any(name.startswith("half-") for name in unfinished), unfinished
    _run(None, artifact, *_given(folder), "--steps", 2, *_outputs(tmp_path, then))
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
    line = ["run", tmp_path / "many.dvt", "--input", "x=random:1", "--steps", 5000, *_outputs(out, names)]
    process = mpi.start(_start(None, line))
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
    given = _given(folder, force=f"@{file}")
    process = mpi.start(_start(None, ["run", _compile(folder, "uneven"), *given, "--steps", 3000, *_outputs(tmp_path, ("next_a",))]))
    _wait_for(tmp_path / "next_a-0003.npy", process)
    os.truncate(file, 5000)
    code, _, messages = mpi.finish(process)
    assert code == 3 and f"'{file}' ends at byte" in messages and "it was cut short while it was read" in messages, messages
    assert not list(tmp_path.glob("*.npy.*"))


def test_many_steps_begin_at_once(folder, tmp_path):
    """Names are compared before anything runs: of 300 000 steps in less than 4 s of a processor, and the last is found."""
    (tmp_path / "y-300000.npy").symlink_to(folder / "force.npy")
    given = _given(folder, force=f"@{tmp_path}/y-300000.npy")
    artifact = _compile(folder, "one")
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    code, _, messages = _call(None, artifact, *given, "--output", f"half={tmp_path}/y-{{step}}.npy", "--steps", 300000)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert code == 2 and "y-300000.npy' would be written over an input" in messages, messages
    assert end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime < 4


def test_resume_is_refused(folder, tmp_path):
    artifact, other = _compile(folder, "uneven"), _compile(folder, "alike")
    flags = _outputs(tmp_path, ("next_a", "next_b"))
    given = _given(folder, force=f"{tmp_path}/f*.npy")
    for step in (1, 2, 3):
        np.save(tmp_path / f"f{step}.npy", np.load(folder / "force.npy"))

    def refused(program, given, flags, what):
        code, _, messages = _call(None, program, *given, *flags, "--resume")
        assert code == 2 and what in messages and "next_a.resume.json' is of another run" in messages, messages

    _, messages = _run(None, artifact, *given, *flags, "--resume")
    assert "next_a.resume.json'; begins with step 1" in messages
    refused(other, given, flags, "it ran another program than")
    refused(artifact, _given(folder), [*flags, "--steps", 3], "it had no --input force=@")
    refused(artifact, given, _outputs(tmp_path, ("next_a",)), "it had --output next_b=")
    changed = tmp_path / "next_b-0003.npy"
    value = changed.read_bytes()
    changed.write_bytes(value)
    refused(artifact, given, flags, "next_b-0003.npy', which input 'b' is fed, has changed since, or was removed")
    np.save(tmp_path / "f2.npy", np.zeros(SHAPE, np.float32))
    refused(artifact, given, flags, "the files of input 'force' have changed since")
    manifest = tmp_path / "next_a.resume.json"
    manifest.write_text("{")
    code, _, messages = _call(None, artifact, *given, *flags, "--resume")
    assert code == 3 and "next_a.resume.json' has no number of complete steps" in messages
    manifest.write_text('{"dovetail_run": 99, "done": [1, "of another form"]}')
    code, _, messages = _call(None, artifact, *given, *flags, "--resume")
    assert code == 3 and "was written by another version of Dovetail: it has format 99, and this" in messages, messages
    assert "; remove it, or resume the run with that version\n" in messages and messages.count("\n") == 1
    # Who begins anew does not mind.
    _run(None, artifact, *given, *flags)
    assert json.loads(manifest.read_text())["done"] == 3


@pytest.mark.parametrize("processes", [LOCAL, MPI])
def test_errors_name_step_and_file(folder, tmp_path, processes):
    artifact = _compile(folder, "uneven", flags=())
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for step in (1, 2, 3, 4):
        np.save(tmp_path / "in" / f"{step}.npy", np.zeros(SHAPE if step != 3 else SHAPE[1:], np.float32))
    arguments = [artifact, *_given(folder, force=f"{tmp_path}/in/*.npy"), "--output", f"next_a={tmp_path}/out/{{name}}.npy"]
    code, _, messages = _call(processes, *arguments)
    assert code == 2, messages
    assert "step 3: " in messages and "/in/3.npy': input 'force' is float32[1, 2, 9, 12], but a tensor float32[2, 9, 12]" in messages
    # What was complete stays, and nothing else does.
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names in (["1.npy", "run.resume.json"], ["1.npy", "2.npy", "run.resume.json"]), names
    np.save(tmp_path / "in" / "3.npy", np.zeros(SHAPE, np.float32))
    _run(processes, *arguments, "--resume")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["1.npy", "2.npy", "3.npy", "4.npy", "run.resume.json"]


@pytest.mark.parametrize("processes", [LOCAL, MPI])
def test_steps_that_cannot_be_written(folder, tmp_path, processes):
    """What came before is there."""
    artifact = _compile(folder, "uneven")
    (tmp_path / "next_a-0003.npy").mkdir()
    code, _, messages = _call(processes, artifact, *_given(folder), "--steps", 4, *_outputs(tmp_path))
    assert code == 3, messages
    assert "step 3: " in messages and "next_a-0003.npy'" in messages
    done = json.loads((tmp_path / "next_a.resume.json").read_text())["done"]
    files = [f"{name}-{step:04}.npy" for name in ("half", "next_a", "next_b") for step in range(1, done + 1)]
    assert 1 <= done <= 2
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([*files, "next_a-0003.npy", "next_a.resume.json"])
    (tmp_path / "next_a-0003.npy").rmdir()
    _run(processes, artifact, *_given(folder), "--steps", 4, *_outputs(tmp_path), "--resume")
    assert len(list(tmp_path.iterdir())) == 13


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
    code, _, messages = _call(None, _compile(folder, "one", flags=()), *_given(folder, **given), *map(fill, flags))
    assert code == (3 if "no file" in what else 2), messages
    assert what in messages
    assert not list(tmp_path.iterdir())


def test_fed_inputs_have_no_sequence(folder):
    code, _, messages = _call(None, _compile(folder, "one"), *_given(folder, a=f"{folder}/forces/*.npy"))
    assert code == 2
    assert "input 'a' is output 'next_a' of the previous step, so only its first value can be given" in messages


def test_progress(folder, tmp_path, monkeypatch):
    """On a terminal: the step, and how long the rest takes."""
    monkeypatch.delenv("DOVETAIL_PROGRESS")
    line = _start(None, ["run", _compile(folder, "one"), *_given(folder), "--steps", 3])
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
