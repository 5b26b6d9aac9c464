# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Archives of arrays (.npz): what NumPy and zipfile write is read, damaged ones are refused, and they read ours."""

import io
import struct
import zipfile

import numpy as np
import onnx
import pytest
from harness.backend import FILE, call, tool
from onnx import TensorProto, helper

pytestmark = pytest.mark.quick

NAMES = ["a", "β"]
VALUES = {name: np.arange(index, index + 3000, dtype=np.float32).reshape(30, 100) for index, name in enumerate(NAMES)}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """s = a + β, d = a - β."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [30, 100]) for name in NAMES]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [30, 100]) for name in "sd"]
    nodes = [helper.make_node("Add", NAMES, ["s"]), helper.make_node("Sub", NAMES, ["d"])]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    folder = tmp_path_factory.mktemp("archives")
    onnx.save(model, folder / "m.onnx")
    code, _, messages = call([tool("dovetail"), "compile", folder / "m.onnx", "-o", folder / "m.dvt", "-q"])
    assert code == 0, messages
    return folder / "m.dvt"


def _run(program, archive, output):
    return call([tool("dovetail-run"), "run", program, "--input", f"@{archive}", "--output", output])


def _write(path, method=zipfile.ZIP_STORED, comment=b"", is64=False, extra=False):
    """An archive as zipfile makes it."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, value in VALUES.items():
            bytes_ = io.BytesIO()
            np.save(bytes_, value)
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = method
            if extra:
                info.extra = struct.pack("<HH4s", 0xCAFE, 4, b"abcd")
            with archive.open(info, "w", force_zip64=is64) as member:
                member.write(bytes_.getvalue())
        archive.comment = comment


WAYS = {
    "savez": lambda path: np.savez(path, **VALUES),
    "savez_compressed": lambda path: np.savez_compressed(path, **VALUES),
    "stored": _write,
    "deflated": lambda path: _write(path, zipfile.ZIP_DEFLATED),
    "comment": lambda path: _write(path, comment=b"PK\x05\x06 is no end" * 100),
    "zip64": lambda path: _write(path, is64=True),
    "zip64 deflated": lambda path: _write(path, zipfile.ZIP_DEFLATED, is64=True),
    "fields": lambda path: _write(path, zipfile.ZIP_DEFLATED, extra=True),
}


@pytest.mark.parametrize("way", WAYS)
def test_archives_of_others(program, tmp_path, way):
    path = tmp_path / "in.npz"
    WAYS[way](path)
    code, _, messages = _run(program, path, tmp_path / "out.npz")
    assert code == 0, messages
    with np.load(tmp_path / "out.npz") as results:
        assert set(results) == {"s", "d"}
        np.testing.assert_array_equal(results["s"], VALUES["a"] + VALUES["β"])
        np.testing.assert_array_equal(results["d"], VALUES["a"] - VALUES["β"])


def test_archives_for_others(program, tmp_path):
    _write(tmp_path / "in.npz")
    for name in ("first.npz", "second.npz"):
        assert _run(program, tmp_path / "in.npz", tmp_path / name)[0] == 0
    # Neither times nor random numbers are inside.
    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "second.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "first.npz") as archive:
        assert archive.testzip() is None
        assert [info.compress_type for info in archive.infolist()] == [zipfile.ZIP_STORED] * 2


def _damage(path, change):
    data = bytearray(path.read_bytes())
    # The record of the first member in the directory.
    change(data, data.index(b"PK\x01\x02"))
    path.write_bytes(data)


def _flip(data, _):
    data[len(data) // 4] ^= 1


def _set(offset, value):
    def change(data, record):
        data[record + offset : record + offset + 4] = struct.pack("<I", value)

    return change


SIZE = 128 + 4 * 3000
DAMAGES = {
    "bit": _flip,
    "checksum": _set(16, 12345),
    "too short": _set(24, SIZE - 1),
    "too long": _set(24, SIZE + 1),
    "much too long": _set(24, 0xFFFFFFF0),
    "elsewhere": _set(42, 0x7FFFFFFF),
    "packed is longer": _set(20, 0x7FFFFFFF),
    "encrypted": lambda data, record: data.__setitem__(record + 8, data[record + 8] | 1),
    "bzip2": lambda data, record: data.__setitem__(record + 10, 12),
    "half of it": lambda data, _: data.__delitem__(slice(len(data) // 2, None)),
}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_archives(program, tmp_path, damage, method):
    path = tmp_path / "in.npz"
    _write(path, method)
    _damage(path, DAMAGES[damage])
    code, _, messages = _run(program, path, tmp_path / "out.npz")
    assert code == FILE, (code, messages)
    assert messages.count("\n") == 1 and "in.npz" in messages and len(messages) < 400
    assert not (tmp_path / "out.npz").exists()
