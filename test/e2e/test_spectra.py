# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms of all kinds of lengths are as exact as NumPy's of the same type, against NumPy in float64."""

import json

import numpy as np
import onnx
import pytest
from dovetail_models import fno2d, fno2d_torch, random_inputs, run_onnxruntime
from harness.backend import call, tool
from harness.compare import differences
from harness.extent import one_of
from harness.partition import Partition, sizes_with_empty_shard
from onnx import TensorProto, helper, numpy_helper

#: Powers of two, other small factors, factors of up to 31, primes beyond that, and what is too long for one operation.
LENGTHS = [64, 60, 63, 125, 31 * 29, 37, 2 * 113, 1024, 3 * 5 * 7 * 11, 4093, 4096, 20000]


def _model(shape, axis, length=None, parts=None, dtype=np.float32, opset=20, **attributes):
    constants = [numpy_helper.from_array(np.array(axis, np.int64), "axis")]
    if length is not None:
        constants.append(numpy_helper.from_array(np.array(length, np.int64), "length"))
    node = helper.make_node("DFT", ["x", "length" if length is not None else "", "axis"], ["y"], **attributes)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [node],
        "spectrum",
        [helper.make_tensor_value_info("x", kind, [*shape, parts])],
        [helper.make_tensor_value_info("y", kind, [None] * (len(shape) + 1))],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 10
    onnx.checker.check_model(model)
    return model


def _complex(x):
    return x.astype(np.float64)[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)


def _error(actual, expected):
    """The root of the mean square error, of that of what is expected, in units of the last place."""
    assert actual.shape[:-1] == expected.shape
    assert np.isrealobj(expected) == (actual.shape[-1] == 1)
    difference = _complex(actual) - expected
    norm = np.sqrt(np.mean(np.abs(expected) ** 2))
    return np.sqrt(np.mean(np.abs(difference) ** 2)) / norm / np.finfo(actual.dtype).eps


def _run(backend, model, x, partition=None, extra=()):
    return backend.compile_and_run(model, partition or Partition({"y": 1}), {"x": x}, ["y"], extra=extra)["y"]


#: A target whose library has transforms as cuFFT has them: unscaled, and of spectra that real numbers have.
LIBRARY = ["--target", "emulated"]


def _count_calls(model, partition, tmp_path, target=LIBRARY):
    """How many transforms are library calls."""
    path, artifact = tmp_path / "model.onnx", tmp_path / "model.dvt"
    onnx.save(model, path)
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", artifact, *partition.flags(), *target])
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", "--json", artifact])
    assert code == 0, messages
    return sum(step["kind"] == "transform" for step in json.loads(text)["steps"])


@one_of(2)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", ["complex", "inverse", "real", "inverse real"])
def test_lengths(backend, length, kind):
    """Along the last dimension, where a vector of lines is not whole, and along the one before, with one line."""
    rng = np.random.default_rng(length)
    for dtype, layouts in ((np.float32, (((11, length), 1), ((length, 9), 0), ((1, length), 1))), (np.float64, (((6, length), 1),))):
        for shape, axis in layouts:
            if kind == "inverse real":
                given = list(shape)
                given[axis] = length // 2 + 1
                x = rng.standard_normal([*given, 2]).astype(dtype)
                model = _model(given, axis, length, 2, dtype, inverse=1, onesided=1)
                expected = np.fft.irfft(_complex(x), length, axis)
            elif kind == "real":
                x = rng.standard_normal([*shape, 1]).astype(dtype)
                model = _model(shape, axis, None, 1, dtype, onesided=1)
                expected = np.fft.rfft(_complex(x).real, axis=axis)
            else:
                x = rng.standard_normal([*shape, 2]).astype(dtype)
                model = _model(shape, axis, None, 2, dtype, inverse=int(kind == "inverse"))
                expected = (np.fft.ifft if kind == "inverse" else np.fft.fft)(_complex(x), axis=axis)
            error = _error(_run(backend, model, x), expected)
            assert error < (3 if dtype == np.float32 else 8), (shape, dtype, error)


@one_of(2)
@pytest.mark.parametrize("length", [1, 2, 15, 16, 37, 96])
@pytest.mark.parametrize("kind", ["complex", "inverse", "real", "inverse real", "whole spectrum of real", "inverse of real"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_library(backend, tmp_path, length, kind, dtype):
    """As libraries of devices have them, whole and split along other dimensions. Imaginary parts that do not count are there."""
    rng = np.random.default_rng(length)
    shape, axis = [3, length, 4], 1
    onesided = kind in ("real", "inverse real")
    inverse = kind.startswith("inverse")
    given = [3, length // 2 + 1, 4] if kind == "inverse real" else shape
    parts = 2 if kind in ("complex", "inverse", "inverse real") else 1
    x = rng.standard_normal([*given, parts]).astype(dtype)
    stated = length if kind == "inverse real" else None
    model = _model(given, axis, stated, parts, dtype, onesided=int(onesided), inverse=int(inverse))
    z = _complex(x)
    if onesided:
        expected = np.fft.irfft(z, length, axis) if inverse else np.fft.rfft(z.real, axis=axis)
    else:
        expected = (np.fft.ifft if inverse else np.fft.fft)(z, axis=axis)
    for ranks, dim in ((1, 0), (2, 0), (3, 2)):
        partition = Partition({"y": ranks}).split("x", 4, dim, "y", sizes_with_empty_shard(shape[dim], ranks))
        assert _error(_run(backend, model, x, partition, LIBRARY), expected) < (3 if dtype == np.float32 else 8), partition
    if length in (16, 96):
        assert _count_calls(model, Partition({"y": 1}), tmp_path) == 1


@one_of(2)
@pytest.mark.parametrize("build", [fno2d, fno2d_torch])
@pytest.mark.parametrize("mesh, axes", [({"y": 1}, []), ({"y": 3}, [2]), ({"y": 3}, [3]), ({"y": 2, "x": 2}, [2, 3])])
def test_spectral_layers_of_a_library(backend, tmp_path, build, mesh, axes):
    model = build(height=20, width=18, modes=(4, 5), channels=6, layers=2)
    inputs = random_inputs(model, seed=2)
    partition = Partition(mesh)
    for name in ("field", "solution"):
        for dim, axis in zip(axes, mesh):
            partition.split(name, 4, dim, axis)
    expected = run_onnxruntime(model, inputs)
    found = differences(backend.compile_and_run(model, partition, inputs, list(expected), extra=LIBRARY), expected)
    assert not found, found
    # Two there and two back of each layer.
    for target in (LIBRARY, ["--target", "cuda", "--arch", "sm_90"]):
        assert _count_calls(model, partition, tmp_path, target) == 8


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_split_along_any_dimension(backend, axis):
    """Where the transformed dimension is split, with an empty part, exchanges bring lines together."""
    rng = np.random.default_rng(3)
    shape = [10, 12, 14]
    x = rng.standard_normal([*shape, 2]).astype(np.float32)
    for transformed in range(3):
        expected = np.fft.fft(_complex(x), axis=transformed)
        partition = Partition({"y": 3})
        for tensor in ("x", "y"):
            partition.split(tensor, 4, axis, "y", sizes_with_empty_shard(shape[axis], 3))
        assert _error(_run(backend, _model(shape, transformed, parts=2), x, partition), expected) < 3


def test_pads_and_cuts(backend):
    """A stated length pads with zeros, or cuts, before the transform."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal([5, 12, 1]).astype(np.float32)
    for length in (7, 12, 20, 37):
        expected = np.fft.rfft(_complex(x).real, length, axis=1)
        assert _error(_run(backend, _model([5, 12], 1, length, 1, onesided=1), x), expected) < 3


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_types_of_16_bits_are_rounded_once(backend, kind):
    rng = np.random.default_rng(5)
    x = rng.standard_normal([6, 60, 2]).astype(np.float32)
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=kind),
        helper.make_node("DFT", ["narrow"], ["z"], axis=1),
        helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["narrow"], ["given"], to=TensorProto.FLOAT),
    ]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * 3) for n in ("y", "given")]
    graph = helper.make_graph(nodes, "narrow", [helper.make_tensor_value_info("x", 1, [6, 60, 2])], infos)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    results = backend.compile_and_run(model, Partition({"y": 1}), {"x": x}, ["y", "given"])
    expected = np.fft.fft(_complex(results["given"]), axis=1)
    step = 2.0**-11 if kind == TensorProto.FLOAT16 else 2.0**-8
    parts = np.stack([expected.real, expected.imag], -1)
    assert np.all(np.abs(results["y"] - parts) <= step * np.abs(parts) + 1e-4)


@pytest.mark.parametrize("build", [fno2d, fno2d_torch])
@pytest.mark.parametrize("axis", [2, 3])
def test_only_modes_that_are_kept_move(backend, tmp_path, build, axis):
    """Modes are cut off behind both transforms, and put among zeros before the inverse ones."""
    channels, extent, modes = 16, 64, 6
    model = build(height=extent, width=extent, modes=(modes, modes), channels=channels, layers=2)
    inputs = random_inputs(model, seed=2)
    partition = Partition({"y": 4})
    for name in ("field", "solution"):
        partition.split(name, 4, axis, "y")
    expected = run_onnxruntime(model, inputs)
    found = differences(backend.compile_and_run(model, partition, inputs, list(expected)), expected)
    assert not found, found
    path, artifact = tmp_path / "fno.onnx", tmp_path / "fno.dvt"
    onnx.save(model, path)
    command = [tool("dovetail"), "compile", path, "-o", artifact, *partition.flags()]
    code, _, messages = call(command)
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", "--json", artifact])
    assert code == 0, messages
    # The field itself is brought together for the first transform where that dimension is split: of three channels.
    field, spectrum = 3 * extent * extent * 4, channels * extent * modes * 2 * 4
    for exchange in json.loads(text)["exchanges"]:
        assert exchange["bytes"] <= max(field, spectrum), exchange
