# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions by Winograd's algorithm, whole and split; against ONNX Runtime, and their errors against sums in f64."""

import numpy as np
import onnx
import pytest
from harness.backend import call, tool
from harness.compare import difference, differences
from harness.cpus import needs_cpu, runnable_cpus
from harness.oracle import expected_outputs
from harness.partition import Partition, sizes_with_empty_shard
from ops import Draft

#: The algorithm takes longer without vectors of AVX2.
pytestmark = needs_cpu("x86-64-v3")

#: What is said to be the most that the algorithm is wrong, of the largest result.
LIMIT = 1e-5


def _plan(folder, model, partition, *options):
    """The plan as text."""
    onnx.save(model, folder / "model.onnx")
    command = [tool("dovetail"), "compile", folder / "model.onnx", "--compile-to=lower", *partition.flags(), *options]
    code, text, messages = call(command)
    assert code == 0, messages
    return text


def _count(text):
    """How many convolutions are done so."""
    return text.count("convolution_algorithm winograd")


def _convolution(shape, outputs, pads=(1, 1, 1, 1), seed=0):
    rng = np.random.default_rng(seed)
    draft = Draft(rng)
    image = draft.input(rng.uniform(-0.5, 0.5, shape).astype(np.float32), "image")
    weights = draft.constant(rng.uniform(-0.5, 0.5, (outputs, shape[1], 3, 3)).astype(np.float32))
    draft.node("Conv", image, weights, pads=list(pads))
    return draft


def _model():
    """Epilogues of all kinds, channels that fill no vectors, concatenations that are written and read in place, and a
    batch.
    """
    rng = np.random.default_rng(5)
    draft = Draft(rng)

    def convolve(x, inputs, outputs, *bias):
        weights = draft.constant(rng.uniform(-0.15, 0.15, (outputs, inputs, 3, 3)).astype(np.float32))
        return draft.node("Conv", x, weights, *bias, pads=[1, 1, 1, 1], final=False)

    def vector(count):
        return draft.constant(rng.uniform(-0.3, 0.3, count).astype(np.float32))

    image = draft.input(rng.standard_normal((2, 24, 30, 27)).astype(np.float32), "image")
    x = draft.node("Relu", convolve(image, 24, 40, vector(40)), final=False)
    y = draft.node("LeakyRelu", convolve(x, 40, 33, vector(33)), alpha=0.2, final=False)
    y = draft.node("HardSwish", convolve(y, 33, 40, vector(40)), final=False)
    y = draft.node("Relu", draft.node("Add", convolve(y, 40, 40, vector(40)), x, final=False), final=False)
    z = draft.node("Sigmoid", convolve(y, 40, 24), final=False)
    z = draft.node("Concat", z, y, axis=1, final=False)
    z = draft.node("Clip", convolve(z, 64, 48), draft.constant(np.float32(-0.5)), draft.constant(np.float32(0.7)), final=False)
    draft.node("Tanh", convolve(z, 48, 17, vector(17)))
    return draft


@pytest.mark.parametrize("dim, sizes", [(2, (30,)), (2, (5, 0, 18, 7)), (2, (1, 28, 1)), (3, (4, 23)), (1, (9, 0, 15)),
                                        (0, (1, 0, 1))], ids=str)  # fmt: skip
def test_model(backend, tmp_path, dim, sizes):
    draft = _model()
    model, inputs = draft.model(), draft.inputs
    partition = Partition({"y": len(sizes)}).split("image", 4, dim, "y", sizes)
    assert _count(_plan(tmp_path, model, Partition({"y": 1}))) == 7
    assert _count(_plan(tmp_path, model, partition)) >= 1
    expected = expected_outputs(model, inputs)
    actual = backend.compile_and_run(model, partition, inputs, list(expected))
    assert not differences(actual, expected, tolerance=LIMIT)


@pytest.mark.parametrize("shape", [(1, 16, 40, 40), (1, 64, 64, 64), (3, 100, 9, 33), (1, 256, 28, 28), (1, 512, 16, 16),
                                   (1, 32, 97, 5)], ids=str)  # fmt: skip
def test_errors(backend, tmp_path, shape):
    draft = _convolution(shape, max(shape[1], 32))
    model, inputs = draft.model(), draft.inputs
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0]).astype(np.float64)
    image = np.pad(inputs["image"].astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
    exact = np.einsum("nchwyx,ocyx->nohw", windows, weights, optimize=True)
    whole = Partition({"y": 1})
    assert _count(_plan(tmp_path, model, whole)) == 1
    (name,) = expected_outputs(model, inputs)
    actual = backend.compile_and_run(model, whole, inputs, [name])[name]
    assert np.abs(actual - exact).max() <= LIMIT * np.abs(exact).max()


@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (2, 0, 1, 3), (4, 4, 4, 4), (0, 1, 2, 0)], ids=str)
def test_pads(backend, tmp_path, pads):
    """Some windows have nothing but padding, and borders differ."""
    draft = _convolution((1, 32, 22, 19), 32, pads)
    model, inputs = draft.model(), draft.inputs
    partition = Partition({"y": 3}).split("image", 4, 2, "y", sizes_with_empty_shard(22, 3))
    assert _count(_plan(tmp_path, model, partition)) == 1
    expected = expected_outputs(model, inputs)
    actual = backend.compile_and_run(model, partition, inputs, list(expected))
    assert not differences(actual, expected, tolerance=LIMIT)


@pytest.mark.parametrize("cpu", runnable_cpus())
def test_cpus(backend, tmp_path, cpu):
    draft = _model()
    model, inputs = draft.model(), draft.inputs
    partition = Partition({"y": 2}).split("image", 4, 2, "y", (11, 19))
    assert _count(_plan(tmp_path, model, partition, "--cpu", cpu)) == 7
    expected = expected_outputs(model, inputs)
    actual = backend.compile_and_run(model, partition, inputs, list(expected), extra=["--cpu", cpu])
    assert not differences(actual, expected, tolerance=LIMIT)


def test_strict(backend, tmp_path):
    draft = _convolution((1, 64, 32, 32), 64)
    model, inputs = draft.model(), draft.inputs
    whole, options = Partition({"y": 1}), ["--math", "f32-strict"]
    assert _count(_plan(tmp_path, model, whole)) == 1
    assert _count(_plan(tmp_path, model, whole, *options)) == 0
    # Nor on processors without vectors of AVX2, or where weights must not grow. The tensors take 1 MiB or 16 KiB, weights
    # 144 KiB or, transformed, 576 KiB.
    small = _convolution((1, 64, 8, 8), 64).model()
    assert _count(_plan(tmp_path, small, whole)) == 1
    for others in (["--cpu", "x86-64-v2"], ["--memory", "600KiB"]):
        assert _count(_plan(tmp_path, small, whole, *others)) == 0
    assert _count(_plan(tmp_path, small, Partition({"y": 1}, objective="memory"))) == 0
    # What is no number is in windows that have it, and nowhere else.
    inputs["image"][0, 5, 10, 20] = np.nan
    expected = expected_outputs(model, inputs)
    actual = backend.compile_and_run(model, whole, inputs, list(expected), extra=options)
    assert not differences(actual, expected)


def test_nan(backend):
    """It spreads over tiles that read it, and no further."""
    draft = _convolution((1, 64, 32, 32), 64)
    model, inputs = draft.model(), draft.inputs
    (name,), clean = expected_outputs(model, inputs), expected_outputs(model, inputs)
    inputs["image"][0, 5, 10, 20] = np.nan
    actual = backend.compile_and_run(model, Partition({"y": 1}), inputs, [name])[name]
    exact = expected_outputs(model, inputs)[name]
    spread = np.isnan(actual)
    assert np.isnan(exact).any() and spread[np.isnan(exact)].all()
    assert not spread[:, :, :6].any() and not spread[:, :, 15:].any()
    assert not spread[..., :16].any() and not spread[..., 25:].any()
    assert not difference(actual[~spread], clean[name][~spread], tolerance=LIMIT)
