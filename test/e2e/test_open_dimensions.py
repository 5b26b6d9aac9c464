# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that leave extents open: what `inspect` says of them, and extents that are expressions of symbols."""

import json

import numpy as np
import onnx
import pytest
from harness.backend import USAGE, call, tool
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def _save(tmp_path, inputs, nodes=None, outputs=None, values=()):
    """A model with these inputs, each the list of its extents; without nodes, the negative of each is an output."""
    ports = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()]
    if nodes is None:
        nodes = [helper.make_node("Neg", [name], [f"{name}_out"], name=f"node_{name}") for name in inputs]
        outputs = {f"{name}_out": shape for name, shape in inputs.items()}
    results = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs.items()]
    graph = helper.make_graph(nodes, "open", ports, results)
    graph.value_info.extend(helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return path


def _inspect(path, *options):
    code, report, messages = call([tool("dovetail"), "inspect", path, "--json", *options])
    assert code == 0, messages
    return json.loads(report)


def _shapes(path, *options):
    """The shapes of inputs, once options give all extents."""
    report = _inspect(path, *options)
    assert report["open"] == []
    return {port["name"]: port["shape"] for port in report["inputs"]}


def _error(path, *options):
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", path.with_suffix(".dvt"), *options])
    assert code == USAGE, messages
    return messages.strip().removeprefix("dovetail: error: ")


@pytest.fixture
def expressions(tmp_path):
    return _save(tmp_path, {"image": [1, "4*h4", "2*s + 1"], "grid": ["h4", "(((n - 1)//2)) + 1"]})


def test_symbols_of_expressions(expressions):
    # 4 * 80, 2 * 5 + 1; and (9 - 1) // 2 + 1.
    wanted = {"image": [1, 320, 11], "grid": [80, 5]}
    assert _shapes(expressions, "--dim", "h4=80", "--dim", "s=5", "--dim", "n=9") == wanted
    assert _shapes(expressions, "--dim", "4*h4=320", "--dim", "2*s + 1=11", "--dim", "n=9") == wanted
    assert _shapes(expressions, "--shape", "image=1,320,11", "--dim", "n=9") == wanted
    # With n = 10 the division rounds down to the same.
    assert _shapes(expressions, "--shape", "image=1,320,11", "--dim", "n=10") == wanted


@pytest.mark.parametrize(
    "options, message",
    [
        (["--dim", "h4=80", "--dim", "4*h4=321"], "--dim '4*h4=321': dimension '4*h4' is 320 by --dim h4=80; give either"),
        (["--dim", "4*h4=321"], "--dim '4*h4=321': there is no extent 'h4' for which dimension '4*h4' is 321"),
        (["--dim", "2*s + 1=0"], "--dim '2*s + 1=0': there is no extent 's' for which dimension '2*s + 1' is 0"),
        (
            ["--shape", "image=1,320,11", "--dim", "h4=81"],
            "--shape image=1,320,11: dimension '4*h4' is 324 by --dim h4=81; give either of them",
        ),
        (
            ["--shape", "image=1,320,11", "--shape", "grid=81,5"],
            "--shape image=1,320,11: dimension '4*h4' is 324 by --shape grid=81,5; give either of them",
        ),
        (["--bound", "4*h4=320", "--dim", "h4=80"], "--bound '4*h4=320': dimension '4*h4' is 320 by --dim h4=80"),
        (["--bound", "h4=80", "--dim", "4*h4=320"], "--bound h4=80: dimension '4*h4' is 320 by --dim '4*h4=320', so 'h4'"),
        (["--bound", "s=5"], "--bound s=5: the model has this name in expressions only: give --bound for each of them"),
        (["--dim", f"h4={2**62}"], f"--dim h4={2**62}: dimension '4*h4' cannot be computed"),
        (["--dim", "n=0"], "input 'image' has shape [1, 4*h4, 2*s + 1], pass --dim h4=... --dim s=... or --shape"),
        (["--dim", "q=1"], "--dim q=1: no input has a dimension of this name"),
    ],
)
def test_contradictions(expressions, options, message):
    assert message in _error(expressions, *options)


def test_expressions_without_a_value(tmp_path):
    path = _save(tmp_path, {"x": ["8//a", "a - b", "a*b"]})
    assert "--dim a=0: dimension '8//a' cannot be computed" in _error(path, "--dim", "a=0")
    message = _error(path, "--dim", "a=2", "--dim", "b=3")
    assert "--dim a=2 and --dim b=3: dimension 'a - b' would be -1; an extent is at least 0" in message
    assert _shapes(path, "--dim", "a=3", "--dim", "b=2") == {"x": [2, 1, 6]}
    # 'a - b' = 1 and a = 3 say what b is.
    assert _shapes(path, "--dim", "a=3", "--dim", "a - b=1") == {"x": [2, 1, 6]}


@pytest.mark.parametrize("name", ["Max(1, u)", "x-0", "2 x", "v**2", "8", "((a)", "a + ", "-", "(" * 100_000 + "a"])
def test_names_that_are_no_expressions(tmp_path, name):
    """A name means the same extent everywhere, whatever it is."""
    path = _save(tmp_path, {"x": [name, "x-1"], "y": [name]})
    if len(name) < 100:
        assert _shapes(path, "--dim", f"{name}=3", "--dim", "x-1=5") == {"x": [3, 5], "y": [3]}
    code, _, messages = call([tool("dovetail"), "inspect", path])
    assert code == 0, messages[:1000]


def test_deep_expressions(tmp_path):
    """60 parentheses are read, and 4 000 make a name."""
    for depth, isRead in ((60, True), (2000, False)):
        path = _save(tmp_path, {"x": ["(" * depth + "a" + ")" * depth + "*2"]})
        assert [entry["name"] == "a" for entry in _inspect(path)["open"]] == [isRead]


def test_inspect_of_open_dimensions(tmp_path):
    nodes = [
        helper.make_node("Neg", ["image"], ["negative"], name="node_neg"),
        helper.make_node("Relu", ["negative"], ["mask"], name="node_relu"),
    ]
    shape = ["N", 3, "4*h4", "w"]
    path = _save(tmp_path, {"image": shape, "free": [None, 7]}, nodes, {"mask": shape}, [("negative", shape)])
    report = _inspect(path)
    assert {port["name"]: port["shape"] for port in report["inputs"]} == {"image": shape, "free": ["?", 7]}
    assert report["outputs"] == [{"name": "mask", "node": "node_relu", "shape": shape, "type": "f32"}]
    assert report["tensors"] == [{"name": "negative", "node": "node_neg", "shape": shape, "type": "f32"}]
    assert [entry["option"] for entry in report["open"]] == [
        "--dim N=...",
        "--dim h4=...",
        "--dim w=...",
        "--shape free=...,7",
    ]
    assert report["open"][1]["dimensions"] == [{"input": "image", "dimension": 2, "extent": "4*h4"}]
    # What is given is not asked for again.
    report = _inspect(path, "--dim", "N=2", "--dim", "h4=5")
    assert [entry["option"] for entry in report["open"]] == ["--dim w=...", "--shape free=...,7"]
    assert report["inputs"][0]["shape"] == [2, 3, 20, "w"]

    code, text, messages = call([tool("dovetail"), "inspect", path])
    assert code == 0, messages
    assert "image  f32[N, 3, 4*h4, w]" in text
    assert "h4    image:2 (4*h4)  --dim h4=..." in text


def test_what_inspect_says_to_type_next(tmp_path):
    path = _save(tmp_path, {"an image": ["N", 3, "4*h4", "w"]})
    report = _inspect(path)
    assert report["next"].startswith(f"dovetail compile {path} --dim N=... --dim h4=... --dim w=... --mesh y=2 --shard")
    # The command works, once there are numbers in the places of '...'.
    command = report["next"].replace("...", "6").replace("dovetail", str(tool("dovetail")), 1)
    code, _, messages = call(["sh", "-c", f"{command} -o {tmp_path}/model.dvt"])
    assert code == 0, messages
    report = _inspect(path, "--shape", "an image=1,3,8,9")
    assert "--shape 'an image=1,3,8,9'" in report["next"]
    assert report["next"].endswith("--mesh y=2 --shard 'an image=_,_,_,y'")


def test_lengths_that_vary(tmp_path):
    path = _save(tmp_path, {"tokens": [1, "seq"], "mask": [1, None]})
    report = _inspect(path, "--bound", "seq=512", "--bound", "mask:1=64")
    assert [port["shape"] for port in report["inputs"]] == [[1, 512], [1, 64]]
    assert [port["lengths"] for port in report["inputs"]] == [[None, "seq"], [None, "mask:1"]]
    _, text, _ = call([tool("dovetail"), "inspect", path, "--bound", "seq=512", "--bound", "mask:1=64"])
    assert "tokens  f32[1, seq<=512]" in text and "f32[1, mask:1<=64]" in text


def test_tensors_that_shard_takes(tmp_path):
    """All names that are listed are taken, and lists are cut after 20 entries."""
    names = [f"t{index}" for index in range(30)]
    nodes = [
        helper.make_node(("Exp", "Tanh")[index % 2], [source], [target], name=f"node_{target}")
        for index, (source, target) in enumerate(zip(["x", *names], [*names, "y"]))
    ]
    path = _save(tmp_path, {"x": [8, 4]}, nodes, {"y": [8, 4]})
    report = _inspect(path)
    assert [tensor["name"] for tensor in report["tensors"]] == names
    assert [tensor["node"] for tensor in report["tensors"]] == [f"node_{name}" for name in names]
    shards = [part for tensor in report["tensors"] for part in ("--shard", f"{tensor['name']}=y,_")]
    command = [tool("dovetail"), "compile", path, "-o", tmp_path / "model.dvt", "--mesh", "y=2", *shards]
    code, _, messages = call(command)
    assert code == 0, messages
    _, text, _ = call([tool("dovetail"), "inspect", path])
    assert "20 of 30; --all lists them all" in text and "t19 " in text and "t20 " not in text
    _, text, _ = call([tool("dovetail"), "inspect", path, "--all"])
    assert "t29 " in text and "--all" not in text


def test_weights_that_are_missing(tmp_path):
    """What is described needs no weights."""
    weight = numpy_helper.from_array(np.full((4, 4), 0.5, np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    ports = [helper.make_tensor_value_info(name, FLOAT, [3, 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "outside", ports[:1], ports[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert _inspect(path)["missing_files"] == []
    (tmp_path / "weights.bin").unlink()
    assert [name.endswith("weights.bin") for name in _inspect(path)["missing_files"]] == [True]
