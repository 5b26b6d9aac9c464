# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that ONNX Runtime adds to ONNX's, where extents are known only when a program runs: against its kernels."""

import numpy as np
import pytest
from dovetail_models import run_onnxruntime
from harness.backend import call, tool
from harness.compare import difference
from onnx import TensorProto, helper, numpy_helper, save

FLOAT, INT32, INT64, UINT8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8
WIDE = 64


def _node(op, operands, results, domain="com.microsoft", **attributes):
    return helper.make_node(op, operands.split(), results.split(), domain=domain, **attributes)


def _optional(op, operands, results, **attributes):
    """The same, with "-" for what is absent."""
    node = _node(op, operands, results, **attributes)
    node.input[:] = ["" if name == "-" else name for name in node.input]
    node.output[:] = ["" if name == "-" else name for name in node.output]
    return node


def _bytes(rng, *shape):
    return rng.integers(0, 256, shape, np.uint8)


def _floats(rng, *shape):
    return rng.uniform(0.05, 0.1, shape).astype(np.float32)


def _decoder(rng):
    nodes = [
        _node("GatherBlockQuantized", "table ids scales", "e", block_size=32, bits=4),
        _node("MatMulNBits", "e w s", "q", K=WIDE, N=WIDE, block_size=32),
        _optional("SkipSimplifiedLayerNormalization", "e q g", "n - - r"),
        _node("SkipLayerNormalization", "n r g g", "m"),
        _node("SimplifiedLayerNormalization", "m g", "y", domain=""),
    ]
    constants = dict(table=_bytes(rng, 50, WIDE // 2), scales=_floats(rng, 50, 2), g=_floats(rng, WIDE))
    constants |= dict(w=_bytes(rng, WIDE, 2, 16), s=_floats(rng, WIDE, 2))
    ids = lambda b, s: {"ids": rng.integers(0, 50, [b, s])}
    return nodes, {"ids": (INT64, ["B", "S"])}, {"y": FLOAT}, constants, ids


def _embedding(rng):
    nodes = [_optional("EmbedLayerNormalization", "ids - w p - g g mask", "y c")]
    constants = dict(w=_floats(rng, 9, 16), p=_floats(rng, 12, 16), g=_floats(rng, 16))
    draw = lambda b, s: {"ids": rng.integers(0, 9, [b, s], np.int32), "mask": rng.integers(0, 2, [b, s], np.int32)}
    ports = {"ids": (INT32, ["B", "S"]), "mask": (INT32, ["B", "S"])}
    return nodes, ports, {"y": FLOAT, "c": INT32}, constants, draw


def _quantized(rng):
    nodes = [
        _node("QLinearSigmoid", "x s z s z", "a"),
        _node("QLinearAdd", "a s z x s z s z", "b"),
        _node("QLinearSoftmax", "b s z t zero", "d", axis=-1, opset=13),
        _node("MatMulIntegerToFloat", "d w t s zero z", "y"),
    ]
    constants = dict(s=np.float32(0.05), z=np.uint8(3), t=np.float32(1 / 256), zero=np.uint8(0), w=_bytes(rng, 7, 4))
    draw = lambda b, s: {"x": _bytes(rng, b, s, 7)}
    return nodes, {"x": (UINT8, ["B", "S", 7])}, {"y": FLOAT, "b": UINT8}, constants, draw


def _dynamic(rng):
    constants = dict(s=np.float32(0.05), w=_bytes(rng, 7, 4))
    draw = lambda b, s: {"x": rng.standard_normal((b, s, 7)).astype(np.float32)}
    nodes = [_node("DynamicQuantizeMatMul", "x w s", "y")]
    return nodes, {"x": (FLOAT, ["B", "S", 7])}, {"y": FLOAT}, constants, draw


def _images(rng):
    nodes = [
        _node("QLinearConv", "x s z w s z s z", "a", channels_last=1, pads=[1] * 4),
        _node("QLinearGlobalAveragePool", "a s z t z", "y", channels_last=1),
    ]
    # Of one scale, means would often be ties.
    constants = dict(s=np.float32(0.05), t=np.float32(0.0437), z=np.uint8(3), w=rng.integers(0, 9, [4, 3, 3, 3], np.uint8))
    draw = lambda b, s: {"x": _bytes(rng, b, 6, s, 3)}
    return nodes, {"x": (UINT8, ["B", 6, "S", 3])}, {"a": UINT8, "y": UINT8}, constants, draw


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("make", [_decoder, _embedding, _quantized, _dynamic, _images])
def test_lengths(backend, tmp_path, make, ranks):
    rng = np.random.default_rng(ranks)
    nodes, ports, results, constants, draw = make(rng)
    graph = helper.make_graph(
        nodes,
        "lengths",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in ports.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in results.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    save(model, tmp_path / "model.onnx")
    bounds = ["--bound", "B=4", "--bound", "S=8", "--mesh", f"y={ranks}"]
    compiled = [tool("dovetail"), "compile", tmp_path / "model.onnx", "-o", tmp_path / "model.dvt", *bounds]
    code, _, errors = call(compiled)
    assert code == 0, errors
    for batch, length in ((2, 5), (4, 8), (1, 1)):
        inputs = draw(batch, length)
        options = []
        for name, value in inputs.items():
            np.save(tmp_path / f"{name}.npy", value)
            options += ["--input", f"{name}=@{tmp_path}/{name}.npy"]
        for name in results:
            options += ["--output", f"{name}={tmp_path}/{name}.npy"]
        code, _, errors = call([tool("dovetail"), "run", tmp_path / "model.dvt", *options])
        assert code == 0, errors
        for name, expected in run_onnxruntime(model, inputs, threads=1, optimise=False).items():
            wrong = difference(np.load(tmp_path / f"{name}.npy"), expected, 1e-5, name)
            assert not wrong, f"{batch} × {length}: {wrong}"
