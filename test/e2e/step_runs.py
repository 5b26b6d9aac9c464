# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of two states that is run in steps, the commands that run it, and what its steps give."""

import numpy as np
import onnx
import pytest
from harness import mpi
from harness.backend import call, tool

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


def write_states(folder):
    """The model, its inputs, a file of `force` for each of 11 steps, and all of these in one; returns the folder."""
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


def compile_states(folder, name, flags=("--feedback", "next_a:a", "--feedback", "next_b:b"), target="cpu"):
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


def run_line(processes, arguments):
    line = mpi.run_program(*arguments) if processes else [tool("dovetail-run"), *arguments]
    return mpi.command(processes, line) if processes else [str(part) for part in line]


def call_run(processes, *arguments):
    return mpi.call(run_line(processes, ["run", *arguments]))


def run_steps(processes, *arguments):
    code, output, messages = call_run(processes, *arguments)
    assert code == 0, messages
    return output, messages


def given_flags(folder, **other):
    names = {name: f"@{folder}/{name}.npy" for name in ("a", "b", "force")} | other
    return [part for name, value in names.items() for part in ("--input", f"{name}={value}")]


def run_one_by_one(folder, artifact, out, steps, forces=None):
    """What a step after the other gives, each a run of its own; by step and output."""
    results = []
    given = {}
    for step in range(steps):
        if forces:
            given["force"] = f"@{forces[step]}"
        files = {name: out / f"{name}-{step + 1}.npy" for name in ("next_a", "next_b", "half")}
        flags = [part for name, file in files.items() for part in ("--output", f"{name}={file}")]
        run_steps(None, artifact, *given_flags(folder, **given), *flags)
        given |= {"a": f"@{files['next_a']}", "b": f"@{files['next_b']}"}
        results.append({name: np.load(file) for name, file in files.items()})
    return results


def check_steps(out, results, pattern="{name}-{step:04}.npy", names=("next_a", "next_b", "half")):
    for step, result in enumerate(results, 1):
        for name in names:
            found = np.load(out / pattern.format(name=name, step=step))
            assert found.dtype == result[name].dtype and found.shape == result[name].shape
            assert found.tobytes() == result[name].tobytes(), (name, step)


def output_flags(out, names=("next_a", "next_b", "half")):
    return [part for name in names for part in ("--output", f"{name}={out}/{name}-{{step}}.npy")]
