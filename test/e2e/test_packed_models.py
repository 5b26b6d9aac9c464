# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose weights are packed into bytes: the time and memory to compile them, and what artifacts take.

CI compiles 10 MB, `make verify-all` 1 GB, too.
"""

import os
import subprocess
import time

import numpy as np
import onnx
import pytest
from contributed.packed import pack
from harness.backend import call, tool
from harness.compare import difference
from harness.extent import EVERYTHING
from onnx import TensorProto, helper

BLOCK = 32
#: Extents of weights, and how many there are.
SMALL, LARGE = (512, 2048, 16), (4096, 16384, 26)


class Model:
    """A chain of products with weights of 4 bits, with external data: MatMulNBits, or DequantizeLinear and MatMul."""

    def __init__(self, folder, op, narrow, wide, count):
        rng = np.random.default_rng(0)
        self.file, self.data = folder / "model.onnx", folder / "weights.bin"
        self.op, self.narrow, self.wide, self.weights, constants, nodes = op, narrow, wide, [], [], []
        value = "x"
        with self.data.open("wb") as data:
            for layer in range(count):
                terms, rows = (narrow, wide) if layer % 2 == 0 else (wide, narrow)
                weights = rng.integers(0, 256, [rows, terms // BLOCK, BLOCK // 2], np.uint8)
                scales = (rng.uniform(0.1, 0.2, [rows, terms // BLOCK]) / np.sqrt(terms)).astype(np.float32)
                if (narrow, wide, count) == SMALL:
                    self.weights.append((weights, scales))
                operands, result = [value, f"w{layer}", f"s{layer}"], f"t{layer}"
                if op == "MatMulNBits":
                    attributes = dict(K=terms, N=rows, bits=4, block_size=BLOCK, domain="com.microsoft")
                    nodes.append(helper.make_node(op, operands, [result], **attributes))
                    shape = None
                else:
                    # The same bytes, of which the columns are others.
                    shape, scales = [terms, rows], scales.reshape(-1, rows)
                    nodes.append(helper.make_node(op, operands[1:], [f"d{layer}"], axis=0, block_size=BLOCK))
                    nodes.append(helper.make_node("MatMul", [value, f"d{layer}"], [result]))
                constants.append(self._external(data, operands[1], weights, shape))
                constants.append(self._external(data, operands[2], scales))
                value = result
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, narrow]) for name in ("x", value)]
        self.result = value
        graph = helper.make_graph(nodes, "packed", ports[:1], ports[1:], constants)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), self.file)
        self.bytes = self.data.stat().st_size

    @staticmethod
    def _external(data, name, array, packed=None):
        """`packed` is the shape of elements of 4 bits, if these are the bytes of such."""
        dtype = TensorProto.UINT4 if packed else helper.np_dtype_to_tensor_dtype(array.dtype)
        shape, place = packed or array.shape, TensorProto.EXTERNAL
        tensor = TensorProto(name=name, data_type=dtype, dims=shape, data_location=place)
        for key, number in (("location", "weights.bin"), ("offset", data.tell()), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(number))
        data.write(array.tobytes())
        return tensor

    def compute(self, x):
        """In f64."""
        for packed, scales in self.weights:
            numbers = np.stack([packed & 15, packed >> 4], -1).astype(np.float64)
            if self.op == "MatMulNBits":
                numbers = numbers.reshape(*packed.shape[:2], BLOCK) - 8
                x = x @ (numbers * scales[..., None]).reshape(len(packed), -1).T
            else:
                numbers = numbers.reshape(-1, BLOCK, len(packed))
                scales = scales.reshape(-1, 1, len(packed))
                x = x @ (numbers * scales).reshape(-1, len(packed))
        return x


def _compile(model, artifact, *flags):
    """Seconds, and the most memory in bytes."""
    start = time.monotonic()
    process = subprocess.Popen(
        [tool("dovetail"), "compile", model.file, "-o", artifact, *flags], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return time.monotonic() - start, usage.ru_maxrss * 1024


def test_packing_is_as_documented():
    assert pack(np.array([[1, 2, 3]]), 4).tolist() == [[0x21, 0x03]]
    assert pack(np.array([[1, 2, 3, 0, 1]]), 2).tolist() == [[0b00111001, 0b01]]


@pytest.mark.parametrize("mesh", [1, 3])
@pytest.mark.parametrize("op", ["MatMulNBits", "DequantizeLinear"])
def test_artifact_has_packed_weights(backend, tmp_path, op, mesh):
    model = Model(tmp_path, op, *SMALL)
    artifact = tmp_path / "model.dvt"
    # Both dimensions of weights are split.
    _compile(model, artifact, "--mesh", f"y={mesh}", "--shard", "t0=_,y", "--shard", "t2=_,y")
    assert artifact.stat().st_size < 1.05 * model.bytes + (1 << 20)
    x = np.random.default_rng(1).standard_normal((1, model.narrow)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    command = [tool("dovetail"), "run", artifact, "--input", f"x=@{tmp_path}/x.npy"]
    code, _, errors = call([*command, "--output", f"{model.result}={tmp_path}/y.npy"])
    assert code == 0, errors
    wrong = difference(np.load(tmp_path / "y.npy"), model.compute(x).astype(np.float32), 1e-5)
    assert not wrong, wrong


@pytest.mark.skipif(not EVERYTHING, reason="takes 2 GB of disk: in `make verify-all`")
@pytest.mark.parametrize("op, mesh", [("MatMulNBits", 1), ("MatMulNBits", 2), ("DequantizeLinear", 2)])
def test_large_model(backend, tmp_path, op, mesh):
    model = Model(tmp_path, op, *LARGE)
    artifact = tmp_path / "model.dvt"
    try:
        seconds, memory = _compile(model, artifact, "--mesh", f"y={mesh}")
        print(f"{model.bytes / 1e9:.2f} GB, {op}, {mesh} ranks: {seconds:.1f} s, {memory / model.bytes:.2f} times the memory")
        assert model.bytes > 1e9
        assert artifact.stat().st_size < 1.02 * model.bytes
        assert memory < 3 * model.bytes
        assert seconds < 60
    finally:
        model.data.unlink()
        artifact.unlink(missing_ok=True)
