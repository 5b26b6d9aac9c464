# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts of each format that this version reads, and of those that it refuses; docs/formats.md has the promise.

`python test/e2e/test_formats.py` writes the artifact of the current format to test/artifacts, once.
"""

import json
import pathlib
import struct
import sys

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import numpy as np
import onnx
import pytest
from harness.artifact import FORMAT, READER, fit_checksums
from harness.backend import ROOT, call, default_backend, tool
from harness.partition import Partition
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.quick

FOLDER = ROOT / "test/artifacts"
INCOMPATIBLE = 7


def _numbers(*shape):
    """Numbers from -1 to 1 that need no generator, and are exact."""
    count = int(np.prod(shape))
    return ((np.arange(count) * 37 % 64 - 32) / 32).reshape(shape).astype(np.float32)


IMAGE, WEIGHTS, BIAS, MATRIX = _numbers(1, 2, 7, 6), _numbers(3, 2, 3, 3), _numbers(3), _numbers(6, 4)


def _model():
    """mask = relu(conv(image, weights) + bias), scores = mask x matrix + mean of the image's rows."""
    constants = {"weights": WEIGHTS, "bias": BIAS, "matrix": MATRIX}
    nodes = [
        helper.make_node("Conv", ["image", "weights", "bias"], ["convolved"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["convolved"], ["mask"]),
        helper.make_node("MatMul", ["mask", "matrix"], ["product"]),
        helper.make_node("ReduceMean", ["image"], ["mean"], axes=[1, 3], keepdims=1),
        helper.make_node("Add", ["product", "mean"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "formats",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, IMAGE.shape)],
        [
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, [1, 3, 7, 6]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 3, 7, 4]),
        ],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _expected():
    padded = np.pad(IMAGE, ((0, 0), (0, 0), (1, 1), (1, 1)))
    mask = np.empty((1, 3, 7, 6), np.float64)
    for channel, row, column in np.ndindex(3, 7, 6):
        window = padded[0, :, row : row + 3, column : column + 3]
        mask[0, channel, row, column] = np.sum(window * WEIGHTS[channel], dtype=np.float64) + BIAS[channel]
    mask = np.maximum(mask, 0)
    return {"mask": mask, "scores": mask @ MATRIX + IMAGE.mean((1, 3), keepdims=True, dtype=np.float64)}


def _run(artifact, folder):
    """(exit code, outputs, messages)."""
    np.save(folder / "image.npy", IMAGE)
    command = [tool("dovetail-run"), "run", artifact, "--input", f"image=@{folder / 'image.npy'}"]
    code, _, messages = call([*command, "--output", folder / "outputs.npz"])
    if code:
        return code, None, messages
    with np.load(folder / "outputs.npz") as outputs:
        return code, dict(outputs), messages


def _check_runs(artifact, folder):
    code, outputs, messages = _run(artifact, folder)
    assert code == 0, messages
    expected = _expected()
    assert set(outputs) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(outputs[name], value, 1e-5, 1e-5)


def _facts():
    code, text, messages = call([tool("dovetail-run"), "--version", "--json"])
    assert code == 0, messages
    return json.loads(text)


@pytest.fixture(scope="module")
def facts(backend):
    return _facts()


@pytest.fixture(scope="module")
def current(facts):
    """The artifact of the current format."""
    return (FOLDER / f"format-{facts['artifact_format']}.dvt").read_bytes()


def _formats():
    return sorted(int(path.stem.removeprefix("format-")) for path in FOLDER.glob("format-*.dvt"))


def test_each_format_has_an_artifact(facts):
    assert set(range(facts["oldest_read_format"], facts["artifact_format"] + 1)) <= set(_formats())


@pytest.mark.parametrize("number", _formats())
def test_artifact(facts, tmp_path, number):
    path = FOLDER / f"format-{number}.dvt"
    assert struct.unpack_from("<I", path.read_bytes(), FORMAT)[0] == number
    if number >= facts["oldest_read_format"]:
        _check_runs(path, tmp_path)
    else:
        _check_refused(path.read_bytes(), tmp_path, f"has format {number}")


def test_inspect_names_the_format(facts, tmp_path):
    path = FOLDER / f"format-{facts['artifact_format']}.dvt"
    code, text, messages = call([tool("dovetail-run"), "inspect", path, "--json"])
    assert code == 0, messages
    assert json.loads(text)["format"] == facts["artifact_format"]
    assert json.loads(text)["oldest_reader"] <= facts["artifact_format"]
    code, text, messages = call([tool("dovetail-run"), "inspect", path])
    assert code == 0 and f"format    {facts['artifact_format']}, for readers of format " in text, text


def _check_refused(content, folder, *words):
    """A sentence with the name of the file, and exit code 7, for each command that reads artifacts."""
    path = folder / "other.dvt"
    path.write_bytes(content)
    commands = [
        [tool("dovetail-run"), "run", path, "--output", folder / "y.npz"],
        [tool("dovetail-run"), "inspect", path],
        [tool("dovetail-run"), "bench", path],
        [tool("dovetail"), "run", path],
        [tool("dovetail"), "inspect", path],
    ]
    for command in commands:
        code, _, messages = call(command)
        assert code == INCOMPATIBLE, f"{command}: exit code {code}: {messages}"
        assert messages.count("\n") == 1 and "other.dvt" in messages, messages
        for word in words:
            assert word in messages, messages
    assert not (folder / "y.npz").exists()


def _with_header(content, number, reader):
    content = bytearray(content)
    struct.pack_into("<I", content, FORMAT, number)
    struct.pack_into("<I", content, READER, reader)
    return bytes(content)


def test_older_formats_are_refused(facts, current, tmp_path):
    """Format 8, the last that did not say who can read it, had the number of sections after its own."""
    version, ours = facts["version"], facts["artifact_format"]
    for number, sections in ((8, 3), (8, 1000), (1, 3), (0, 0)):
        words = f"the artifact has format {number}, but Dovetail {version} reads format"
        _check_refused(_with_header(current, number, sections), tmp_path, words, f" {ours}; compile the model again")


def test_newer_formats_say_who_reads_them(facts, current, tmp_path):
    version, ours = facts["version"], facts["artifact_format"]
    for number, reader in ((ours + 1, ours + 1), (ours + 7, ours + 2)):
        words = f"the artifact has format {number}, which needs a Dovetail that reads format {reader} or newer"
        ways_out = "use a newer Dovetail, or compile the model again with this version"
        content = _with_header(current, number, reader)
        _check_refused(content, tmp_path, words, f"but Dovetail {version} reads format", ways_out)
        # Nothing behind these numbers is looked at.
        _check_refused(content[:16] + b"\xff" * 5000, tmp_path, words)


def test_a_newer_format_for_readers_of_ours_is_read(facts, current, tmp_path):
    ours = facts["artifact_format"]
    path = tmp_path / "newer.dvt"
    path.write_bytes(fit_checksums(bytearray(_with_header(current, ours + 3, ours))))
    _check_runs(path, tmp_path)


def test_damaged_headers_are_refused(facts, current, tmp_path):
    ours = facts["artifact_format"]
    for number, reader in ((ours, 0), (ours, ours + 1), (ours + 5, 0), (ours + 5, ours + 6)):
        _check_refused(_with_header(current, number, reader), tmp_path, "the file is damaged")
    for size in (8, 15, 16, 39, 40, len(current) - 1):
        _check_refused(current[:size], tmp_path, "cut short")
    for size in (0, 7):
        _check_refused(current[:size], tmp_path, "not a Dovetail artifact")
    # A format for readers of ours, but the checksum is that of another header.
    _check_refused(_with_header(current, ours + 3, ours), tmp_path, "checksum of the header", "damaged")


def main():
    path = FOLDER / f"format-{_facts()['artifact_format']}.dvt"
    if path.exists():
        raise SystemExit(f"{path} is there: a format has one artifact, which stays as it is")
    model = path.with_suffix(".onnx")
    onnx.save(_model(), model)
    try:
        # Any machine can run it.
        default_backend().compile(model, path, Partition({"y": 2}, {"image": ["_", "_", "y", "_"]}), extra=["--cpu", "x86-64-v2"])
    finally:
        model.unlink()


if __name__ == "__main__":
    main()
