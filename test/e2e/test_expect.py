# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`dovetail verify` with outputs in files, and programs where models are wanted, and the reverse."""

import json

import numpy as np
import onnx
import pytest
from harness.backend import FILE, USAGE, call, tool
from onnx import TensorProto, helper

FLOAT = TensorProto.FLOAT


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model of two outputs, sum = a + b and a=b = a * b, its program, inputs and right and wrong outputs."""
    folder = tmp_path_factory.mktemp("expect")
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Mul", ["a", "b"], ["a=b"])]
    ports = [helper.make_tensor_value_info(name, FLOAT, [6, 5]) for name in ("a", "b", "sum", "a=b")]
    graph = helper.make_graph(nodes, "example", ports[:2], ports[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    code, _, messages = call(
        [tool("dovetail"), "compile", folder / "model.onnx", "-o", folder / "model.dvt", "--mesh", "y=2"]
    )
    assert code == 0, messages
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(6, 5)).astype(np.float32) for _ in "ab")
    np.savez(folder / "inputs.npz", a=a, b=b)
    wrong = a + b
    wrong[2, 3] += 1
    np.save(folder / "sum.npy", a + b)
    np.save(folder / "wrong.npy", wrong)
    np.save(folder / "f64.npy", (a + b).astype(np.float64))
    np.save(folder / "turned.npy", (a + b).T)
    np.savez(folder / "both.npz", **{"sum": a + b, "a=b": a * b})
    np.savez(folder / "other.npz", other=a)
    return folder


def _verify(files, *options, subject="model.onnx"):
    command = [tool("dovetail"), "verify", files / subject, "--input", f"@{files}/inputs.npz"]
    command += ["--mesh", "y=2", "--shard", "a=y,_"] if subject == "model.onnx" else []
    return call([*command, *(option.replace("{}", str(files)) for option in options)])


@pytest.mark.parametrize("subject", ["model.onnx", "model.dvt"])
@pytest.mark.parametrize(
    "options, compared",
    [
        (["sum={}/sum.npy"], ["sum"]),
        (["sum=@{}/sum.npy"], ["sum"]),
        (["{}/both.npz"], ["sum", "a=b"]),
        (["@{}/both.npz"], ["sum", "a=b"]),
        (["a=b={}/both.npz"], ["a=b"]),
        (["sum={}/sum.npy", "a=b={}/both.npz"], ["sum", "a=b"]),
    ],
)
def test_equal(files, subject, options, compared):
    expect = [part for option in options for part in ("--expect", option)]
    code, text, messages = _verify(files, *expect, "--json", "-", subject=subject)
    assert code == 0, messages
    report = json.loads(text)
    assert report["equal"] and report["compared_with"] == "files"
    assert [output["name"] for output in report["outputs"]] == compared
    assert all(output["equal"] for output in report["outputs"])


@pytest.mark.parametrize("subject", ["model.onnx", "model.dvt"])
def test_different(files, subject, tmp_path):
    code, text, messages = _verify(files, "--expect", "sum={}/wrong.npy", "--json", str(tmp_path / "x.json"), subject=subject)
    assert code == 1
    assert "output 'sum' differs in 1 of 30 elements, first at [2, 3]" in messages
    assert "1 elements DIFFER" in text
    report = json.loads((tmp_path / "x.json").read_text())
    assert not report["equal"]
    [output] = report["outputs"]
    assert output["different_elements"] == 1 and output["first_different"]["index"] == [2, 3]
    assert abs(output["first_different"]["expected"] - output["first_different"]["value"] - 1) < 1e-5


@pytest.mark.parametrize("subject", ["model.onnx", "model.dvt"])
@pytest.mark.parametrize(
    "option, code, message",
    [
        ("{}/sum.npy", USAGE, "there are several outputs; write NAME=FILE.npy, with one of 'sum', 'a=b'"),
        ("total={}/sum.npy", USAGE, "the program has no output of this name; its outputs are 'sum', 'a=b'"),
        ("sum={}/f64.npy", USAGE, "the file has float64[6, 5], but output 'sum' is float32[6, 5]; convert it with astype"),
        ("sum={}/turned.npy", USAGE, "the file has float32[5, 6], but output 'sum' is float32[6, 5]"),
        ("{}/other.npz", USAGE, "there is no output 'other'; the outputs are 'sum', 'a=b'"),
        ("{}/inputs.npz", USAGE, "there is no output 'a'"),
        ("a=b={}/inputs.npz", USAGE, "the file has no array 'a=b'"),
        ("sum={}/absent.npy", FILE, "absent.npy"),
        ("sum", USAGE, "expected NAME=FILE.npy, NAME=FILE.npz or FILE.npz"),
        ("", USAGE, "expected NAME=FILE.npy"),
    ],
)
def test_wrong_files(files, subject, option, code, message):
    got, _, messages = _verify(files, "--expect", option, subject=subject)
    assert (got, message in messages) == (code, True), messages


def test_options_that_do_not_go_together(files):
    expect = ["--expect", "sum={}/sum.npy"]
    code, _, messages = _verify(files, *expect, "--per-op")
    assert code == USAGE and "'--per-op' compares with the unpartitioned model" in messages
    code, _, messages = _verify(files, *expect, "--mesh", "y=2", subject="model.dvt")
    assert code == USAGE and "'--mesh' is for the compilation of models" in messages
    code, _, messages = _verify(files, *expect, *expect)
    assert code == USAGE and "output 'sum' is given twice" in messages
    code, _, messages = _verify(files, *expect, "--json", "{}/absent/x.json")
    assert code == FILE and "absent" in messages


def test_one_output(files, tmp_path):
    """A file alone is the output of a program that has one."""
    model = onnx.load(files / "model.onnx")
    del model.graph.output[1], model.graph.node[1]
    onnx.save(model, tmp_path / "model.onnx")
    command = [tool("dovetail"), "verify", tmp_path / "model.onnx", "--input", f"@{files}/inputs.npz"]
    code, text, messages = call([*command, "--expect", files / "sum.npy"])
    assert code == 0 and "equal" in text, messages
    code, _, messages = call([*command, "--expect", files / "wrong.npy"])
    assert code == 1, messages


@pytest.mark.parametrize("name", ["model.dvt", "renamed.onnx", "renamed"])
@pytest.mark.parametrize("command", ["compile", "plan", "verify", "operators"])
def test_programs_where_models_are_wanted(files, command, name, tmp_path):
    path = tmp_path / name
    path.write_bytes((files / "model.dvt").read_bytes())
    code, output, messages = call([tool("dovetail"), command, path], cwd=tmp_path)
    assert code == USAGE and "is a compiled program, not a model" in messages, messages
    assert messages.count("error: ") == 1 and output == ""
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["model.onnx", "renamed.dvt"])
@pytest.mark.parametrize("program", ["dovetail", "dovetail-run"])
@pytest.mark.parametrize("command", ["run", "bench", "inspect"])
def test_models_where_programs_are_wanted(files, program, command, name, tmp_path):
    path = tmp_path / name
    path.write_bytes((files / "model.onnx").read_bytes())
    if (program, command, name) == ("dovetail", "inspect", "model.onnx"):
        return  # It takes both.
    code, output, messages = call([tool(program), command, path])
    assert code == USAGE and "is not a Dovetail artifact but an ONNX model; compile it first" in messages, messages
    assert output == ""
