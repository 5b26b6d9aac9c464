# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lines that say what came of a compilation, and those that say what a command is doing."""

import json
import re

import numpy as np
import onnx
import pytest
from harness.backend import InProcessBackend, call, fastest_backend, tool
from onnx import TensorProto, helper

HEADS = ["compiled", "cuts", "memory", "predicted", "next"]
ROWS = ["--shard", "x=_,_,y,_"]
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Two convolutions, each of which reads a row of its neighbours."""
    weights = [
        onnx.numpy_helper.from_array(np.ones((8, 8, 3, 3), np.float32), name) for name in ("v", "w")
    ]
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"], pads=[1] * 4),
        helper.make_node("Conv", ["a", "w"], ["z"], pads=[1] * 4),
    ]
    ports = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 128, 64])] for name in ("x", "z")
    ]
    graph = helper.make_graph(nodes, "g", *ports, weights)
    path = tmp_path_factory.mktemp("summary") / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def _compile(model, folder, *flags):
    """What `compile` prints on standard error, and what `inspect` says of the artifact."""
    code, output, messages = call([tool("dovetail"), "compile", model, "-o", folder / "m.dvt", *flags])
    assert code == 0 and output == "", messages
    return messages, json.loads(call([tool("dovetail"), "inspect", "--json", folder / "m.dvt"])[1])


def _parse(messages):
    lines = dict(line.split(maxsplit=1) for line in messages.splitlines())
    assert list(lines) == HEADS, messages
    return lines


def _bytes(text):
    """All amounts of memory in a text, with what rounding may be off by."""
    found = re.findall(r"([0-9.]+) (B|KiB|MiB|GiB)\b", text)
    assert found, text
    return [(float(number) * UNITS[unit], 0.051 * UNITS[unit]) for number, unit in found]


def _seconds(text):
    number, unit = text.split()
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def _agrees(said, actual):
    value, error = said
    return abs(value - actual) <= error


@pytest.mark.parametrize(
    "mesh, flags, cuts",
    [
        (4, [*ROWS, "--sizes", "x:2=40,30,20,38"], "x:2 40 | 30 | 20 | 38"),
        (4, ["--shard", "z=_,_,_,y"], "z:3 16 | 16 | 16 | 16"),
        (64, ROWS, "x:2 64 pieces of 2"),
        (60, ROWS, "x:2 60 pieces of 2 to 3"),
    ],
)
def test_summary_is_true(model, tmp_path, mesh, flags, cuts):
    flags = ["--mesh", f"y={mesh}", *flags, "--follow", "100", "--objective", "time"]
    messages, plan = _compile(model, tmp_path, *flags, "--cpu", "x86-64-v3")
    messages = "\n".join(line for line in messages.splitlines() if not line.startswith("dovetail: warning: fewer"))
    lines = _parse(messages)
    start = f"{model} -> {tmp_path / 'm.dvt'}: {mesh} ranks (y={mesh}), "
    assert lines["compiled"].startswith(start)
    assert _agrees(_bytes(lines["compiled"][len(start) :])[0], plan["file_bytes"])
    assert lines["cuts"].startswith(cuts + "; ")
    exchanges = plan["exchanges"]
    assert f"; {len(exchanges) or 'no'} exchange" in lines["cuts"]
    if exchanges:
        assert _agrees(_bytes(lines["cuts"])[0], sum(exchange["bytes"] for exchange in exchanges))
    halos = sum(exchange["moves"][0]["class"] == "halo" for exchange in exchanges)
    # The number of a class is left out where there is no other one.
    assert ("(halo)" if halos == len(exchanges) else f"{halos} halo") in lines["cuts"] or not halos
    lines["memory"], alone_bytes = lines["memory"].split("; one device alone ")
    lines["predicted"], alone_time = lines["predicted"].split("; one device alone ")
    memory = [rank["total_bytes"] for rank in plan["ranks"]]
    if mesh > 8:
        listed = [int(rank) for rank in lines["memory"].split(", of ranks ")[1].split(", ")]
        memory = [memory[rank] for rank in listed]
        assert len(memory) == 4 and listed[-1] == mesh - 1
    said = _bytes(lines["memory"])
    assert _agrees(said[0], max(memory)) and _agrees(said[-1], min(memory))
    code, _, errors = call([tool("dovetail"), "plan", model, *flags, "--json", tmp_path / "p.json", "--cpu", "x86-64-v3"])
    assert code == 0, errors
    prediction = json.loads((tmp_path / "p.json").read_text())
    number, unit = lines["predicted"].split()[:2]
    assert lines["predicted"] == f"{number} {unit} a run on cluster 'cpu'"
    assert _seconds(f"{number} {unit}") == pytest.approx(prediction["seconds"], rel=1e-2)
    # What `plan` says beside several ranks, and what it says of one.
    command = [tool("dovetail"), "plan", model, "--json", tmp_path / "p.json", "--cpu", "x86-64-v3"]
    assert call([*command, "--objective", "time"])[0] == 0
    one = json.loads((tmp_path / "p.json").read_text())
    assert one["num_ranks"] == 1
    assert prediction["alone"] == {"seconds": one["seconds"], "total_bytes": one["alone"]["total_bytes"]}
    assert _seconds(alone_time) == pytest.approx(one["seconds"], rel=1e-2)
    assert _agrees(_bytes(alone_bytes)[0], one["ranks"][0]["memory"]["total_bytes"])


def test_next_command_runs(model, tmp_path):
    messages, _ = _compile(model, tmp_path, "--mesh", "y=2", *ROWS)
    command = _parse(messages)["next"].split()
    assert command[:2] == ["dovetail", "run"]
    np.save(tmp_path / "x.npy", np.ones((1, 8, 128, 64), np.float32))
    code, output, errors = call([tool("dovetail"), *command[1:]], cwd=tmp_path)
    assert code == 0 and "z" in output, errors


def test_one_rank_and_limits(model, tmp_path):
    messages, plan = _compile(model, tmp_path, "--memory", "1GiB")
    lines = _parse(messages)
    assert ": 1 rank, " in lines["compiled"] and lines["cuts"] == "none, one rank has all"
    assert not any("alone" in line for line in lines.values())
    said = _bytes(lines["memory"])
    assert _agrees(said[0], plan["ranks"][0]["total_bytes"]) and said[1][0] == 2**30


@pytest.mark.parametrize("flag", ["-q", "--quiet"])
def test_quiet(model, tmp_path, flag):
    assert _compile(model, tmp_path, flag)[0] == ""
    code, _, messages = call([tool("dovetail"), "compile", model, "-o", tmp_path / "n.dvt", flag, "--mesh", "y=0"])
    assert code == 2 and messages.startswith("dovetail: error: ")


def test_nothing_is_said_of_what_is_not_written(model, tmp_path):
    command = [tool("dovetail"), "compile", model, "--mesh", "y=2"]
    assert call([*command, "--compile-to", "lower", "-o", tmp_path / "m.mlir"])[2] == ""
    code, _, messages = call([*command, "-o", tmp_path / "no" / "m.dvt"])
    assert code == 3 and len(messages.splitlines()) == 1


def test_in_python(model, capfd):
    backend = fastest_backend()
    assert isinstance(backend, InProcessBackend), "the shared libraries are not built"
    import dovetail

    program = dovetail.compile(model, mesh={"y": 2}, shard={"x": "_,_,y,_"})
    assert capfd.readouterr() == ("", "")
    lines = dict(line.split(maxsplit=1) for line in program.summary.splitlines())
    assert list(lines) == HEADS[:-1] and lines["compiled"].startswith("2 ranks (y=2), ")
    assert dovetail.Program(program._bytes()).summary == ""
