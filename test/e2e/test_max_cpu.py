# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DOVETAIL_MAX_CPU: compiler, runtime and oneDNN are as on a lesser CPU."""

import json
import re

import numpy as np
import onnx
import onnxruntime
import pytest
from harness.backend import USAGE, call, tool
from harness.cpus import LEVELS, can_run, cpu_parameters
from onnx import TensorProto, helper, numpy_helper

ARTIFACT = 7

#: What LLVM calls the features that a level adds.
ADDED = {
    "x86-64-v2": {"popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"},
    "x86-64-v3": {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"},
    "x86-64-v4": {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"},
}
#: What oneDNN calls its instruction sets, the least first.
ISAS = ["SSE41", "AVX", "AVX2", "AVX512_CORE"]
ISA_OF_LEVEL = {"x86-64-v2": "SSE41", "x86-64-v3": "AVX2", "x86-64-v4": "AVX512_CORE"}


def _features(level):
    """All that a level has."""
    names = list(LEVELS)
    return set().union(*(ADDED[name] for name in names[: names.index(level) + 1]))


@pytest.fixture
def files(tmp_path):
    """A folder with a model `m.onnx`, its input `x.npy`, and what ONNX Runtime makes of it."""
    random = np.random.default_rng(2)
    weights = {"c": (24, 8, 3, 3), "d": (24, 24, 1, 1)}
    nodes = [
        helper.make_node("Conv", ["x", "c"], ["a"], pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Conv", ["a", "d"], ["b"]),
        helper.make_node("Exp", ["b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 19, 23])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 24, 10, 12])],
        [numpy_helper.from_array((0.1 * random.standard_normal(s)).astype(np.float32), n) for n, s in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    x = random.standard_normal([1, 8, 19, 23]).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    return tmp_path, expected


def _compile(folder, *options):
    code, _, messages = call([tool("dovetail"), "compile", folder / "m.onnx", "-o", folder / "m.dvt", *options])
    assert code == 0, messages
    return folder / "m.dvt"


def _run(folder, artifact):
    return call([tool("dovetail-run"), "run", artifact, "--input", f"x=@{folder}/x.npy", "--output", f"y={folder}/y.npy"])


def _isa(text):
    """The instructions that oneDNN says it uses."""
    names = {"Intel SSE4.1": "SSE41", "Intel AVX": "AVX", "Intel AVX2": "AVX2"}
    found = re.search(r"verbose,info,cpu,isa:(.*)", text)[1].split(" with ")[0]
    return names.get(found, "AVX512_CORE" if "AVX-512" in found else found)


#: What no name of an implementation has that oneDNN runs at a level.
BEYOND = {"x86-64-v2": "avx", "x86-64-v3": "avx512", "x86-64-v4": "vnni"}


@pytest.mark.parametrize("level", cpu_parameters(*LEVELS))
def test_levels(files, monkeypatch, level):
    folder, expected = files
    monkeypatch.setenv("DOVETAIL_MAX_CPU", level)
    artifact = _compile(folder)
    code, text, messages = call([tool("dovetail"), "inspect", "--json", artifact])
    assert code == 0, messages
    plan = json.loads(text)
    assert plan["cpu"] == level and set(plan["cpu_features"]) == _features(level)
    monkeypatch.setenv("DNNL_VERBOSE", "1")
    code, text, messages = _run(folder, artifact)
    assert code == 0, messages
    np.testing.assert_allclose(np.load(folder / "y.npy"), expected, rtol=1e-4, atol=1e-5)
    assert _isa(text) == ISA_OF_LEVEL[level]
    ran = [line for line in text.splitlines() if "verbose,exec,cpu,convolution" in line]
    assert ran and not any(BEYOND[level] in line for line in ran), ran
    code, text, messages = call([tool("dovetail-run"), "devices", "--json"])
    assert code == 0, messages
    (cpu,) = (device for device in json.loads(text)["devices"] if device["kind"] == "cpu")
    assert cpu["max_cpu"] == level
    assert cpu["vectors"] == {"x86-64-v2": "SSE", "x86-64-v3": "AVX2", "x86-64-v4": "AVX-512"}[level]


@pytest.mark.parametrize("chosen", ISAS)
@pytest.mark.parametrize("level", cpu_parameters(*LEVELS))
def test_the_lower_limit_holds(files, monkeypatch, level, chosen):
    """oneDNN's own variable lowers the limit and does not raise it."""
    folder, _ = files
    monkeypatch.setenv("DOVETAIL_MAX_CPU", level)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", chosen)
    monkeypatch.setenv("DNNL_VERBOSE", "1")
    code, text, messages = _run(folder, _compile(folder))
    assert code == 0, messages
    assert _isa(text) == min(chosen, ISA_OF_LEVEL[level], key=ISAS.index)


@pytest.mark.parametrize(
    "limit, cpu",
    [("x86-64-v2", "x86-64-v3"), ("x86-64-v2", "znver5"), ("x86-64-v3", "x86-64-v4"), ("x86-64-v4", "cascadelake")],
)
def test_programs_for_other_cpus_are_rejected(files, monkeypatch, limit, cpu):
    """Whatever the machine is: this one lacks the features, or the variable excludes them."""
    folder, _ = files
    artifact = _compile(folder, "--cpu", cpu)
    monkeypatch.setenv("DOVETAIL_MAX_CPU", limit)
    code, _, messages = _run(folder, artifact)
    missing = {"x86-64-v2": "avx2", "x86-64-v3": "avx512f", "x86-64-v4": "avx512vnni"}[limit]
    assert code == ARTIFACT, messages
    what = rf"features that this machine lacks or DOVETAIL_MAX_CPU={limit} excludes \(.*\b{missing}\b"
    assert re.search(what, messages), messages
    if not can_run(limit):
        return
    # The machine has at most the level, and can have less than the CPU of the program lacks.
    assert f", or with --cpu {min(limit, 'x86-64-v3')}\n" in messages, messages
    code, _, messages = _run(folder, _compile(folder))
    assert code == 0, messages


def test_wrong_levels(files, monkeypatch):
    folder, _ = files
    artifact = _compile(folder)
    monkeypatch.setenv("DOVETAIL_MAX_CPU", "avx2")
    expected = "DOVETAIL_MAX_CPU: 'avx2' is not a level of CPUs; the levels are x86-64-v2, x86-64-v3 and x86-64-v4"
    commands = (
        ["compile", folder / "m.onnx", "-o", folder / "other.dvt"],
        ["verify", folder / "m.onnx"],
        ["run", artifact],
        ["bench", artifact],
        ["devices"],
    )
    for command in commands:
        code, _, messages = call([tool("dovetail"), *command])
        assert code == USAGE and expected in messages, messages
    monkeypatch.setenv("DOVETAIL_MAX_CPU", "")
    code, _, messages = _run(folder, artifact)
    assert code == 0, messages
