# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values in blocks of channels run through kernels, library calls and exchanges; against ONNX Runtime."""

import re

import numpy as np
import onnx
import pytest
from harness.backend import USAGE, call, tool
from harness.compare import differences
from harness.cpus import runnable_cpus
from harness.oracle import expected_outputs
from harness.partition import Partition, sizes_with_empty_shard
from ops import Draft
from subjects import SMALL_SUBJECTS
from test_processes import run_ranks

BLOCKS = ["--channel-blocks"]
IMAGE = (2, 20, 23, 11)


def _model():
    """Convolutions, one of them of each channel, with 20 and 37 channels, which fill no blocks; a pool; a residual; and
    between them what has generated kernels: a resize, and a sine of the products with a weight of each channel.
    """
    rng = np.random.default_rng(11)
    draft = Draft(rng)

    def weights(*shape):
        return draft.constant(rng.uniform(-0.3, 0.3, shape).astype(np.float32))

    image = draft.input(rng.standard_normal(IMAGE).astype(np.float32), "image")
    x = draft.node("Conv", image, weights(37, 20, 3, 3), weights(37), pads=[1, 1, 1, 1], final=False)
    x = draft.node("Relu", x, final=False)
    waves = draft.node("Sin", draft.node("Mul", x, weights(37, 1, 1), final=False), final=False)
    y = draft.node("Conv", waves, weights(37, 1, 3, 3), group=37, pads=[1, 1, 1, 1], final=False)
    y = draft.node("Add", y, x, final=False)
    y = draft.node("Resize", y, "", draft.constant(np.float32([1, 1, 2, 1])), mode="linear", final=False)
    y = draft.node("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], final=False)
    draft.node("Conv", y, weights(19, 37, 3, 3), pads=[1, 1, 1, 1])
    return draft


def _plan(folder, model, partition, *options):
    """The plan as text."""
    onnx.save(model, folder / "model.onnx")
    command = [tool("dovetail"), "compile", folder / "model.onnx", "--compile-to=lower", *partition.flags(), *options]
    code, text, messages = call(command)
    assert code == 0, messages
    return text


def _blocks_in(text):
    """What steps read or write blocks of a plan: kinds of steps, by how many of them."""
    buffers = re.findall(r"(%\S+) = plan\.buffer .*\], block 1 by \d+>", text)
    views = {view for view, buffer in re.findall(r"(%\S+) = plan\.view (%\S+)", text) if buffer in buffers}
    found = {}
    for line in text.splitlines():
        step = re.search(r"plan\.(launch|convolution|pool|exchange|reorder) ", line)
        if step and views & set(re.findall(r"%\w+", line)):
            found[step[1]] = found.get(step[1], 0) + 1
    return found


@pytest.mark.parametrize("dim, sizes", [(2, (23,)), (2, (5, 0, 11, 7)), (2, (1, 21, 1)), (3, (4, 7)), (1, (9, 0, 11)),
                                        (1, (16, 4)), (0, (1, 0, 1))], ids=str)  # fmt: skip
def test_model(backend, tmp_path, dim, sizes):
    draft = _model()
    model, inputs = draft.model(), draft.inputs
    partition = Partition({"y": len(sizes)}).split("image", 4, dim, "y", sizes)
    found = _blocks_in(_plan(tmp_path, model, partition, *BLOCKS))
    assert found["convolution"] == 3 and found["pool"] == 1 and found["launch"] >= 1 and found["reorder"] >= 1
    # Halos, if the image is split in space.
    assert dim != 2 or len(sizes) == 1 or found["exchange"] >= 2
    assert not _blocks_in(_plan(tmp_path, model, partition))
    expected = expected_outputs(model, inputs)
    names = list(expected)
    actual = backend.compile_and_run(model, partition, inputs, names, extra=BLOCKS)
    assert not differences(actual, expected)
    # What no rank has to share is what one rank has; sums of libraries differ in their order between layouts.
    assert not differences(actual, backend.compile_and_run(model, partition, inputs, names))


def test_two_axes(backend):
    """Rows and channels are split at once, the channels inside of blocks."""
    draft = _model()
    model, inputs = draft.model(), draft.inputs
    partition = Partition({"y": 2, "x": 2}).split("image", 4, 2, "y", (9, 14)).split("image", 4, 1, "x", (3, 17))
    expected = expected_outputs(model, inputs)
    assert not differences(backend.compile_and_run(model, partition, inputs, list(expected), extra=BLOCKS), expected)


@pytest.mark.parametrize("cpu", runnable_cpus())
@pytest.mark.parametrize("channels", [5, 8, 12, 16, 24])
def test_sums_between_activations(backend, channels, cpu):
    """What no convolution does: it is done by itself, and as much as is asked for."""
    rng = np.random.default_rng(channels)
    draft = Draft(rng)
    image = draft.input(rng.standard_normal((1, 3, 5, 5)).astype(np.float32), "image")

    def convolution(x, count):
        weights = rng.uniform(-0.3, 0.3, (channels, count, 3, 3)).astype(np.float32)
        return draft.node("Conv", x, draft.constant(weights), pads=[1, 1, 1, 1], final=False)

    x = draft.node("Relu", convolution(image, 3), final=False)
    y = draft.node("Elu", convolution(x, channels), final=False)
    draft.node("Relu", draft.node("Add", y, x, final=False))
    model, partition = draft.model(), Partition({"y": 2}).split("image", 4, 2, "y", (2, 3))
    expected = expected_outputs(model, draft.inputs)
    options = [*BLOCKS, "--cpu", cpu]
    actual = backend.compile_and_run(model, partition, draft.inputs, list(expected), extra=options)
    assert not differences(actual, expected)


@pytest.mark.parametrize("dim, sizes", [(2, (5, 0, 18)), (1, (9, 0, 11))], ids=str)
def test_processes(backend, tmp_path, dim, sizes):
    """Ranks that do not see each other's memory send each other blocks."""
    draft = _model()
    model, inputs = draft.model(), draft.inputs
    partition = Partition({"y": len(sizes)}).split("image", 4, dim, "y", sizes)
    onnx.save(model, tmp_path / "model.onnx")
    backend.compile(tmp_path / "model.onnx", tmp_path / "model.dvt", partition, extra=BLOCKS)
    np.save(tmp_path / "image.npy", inputs["image"])
    expected = expected_outputs(model, inputs)
    flags = ["--input", f"image=@{tmp_path}/image.npy"]
    for name in expected:
        flags += ["--output", f"{name}={tmp_path}/{name}.npy"]
    for code, _, messages in run_ranks(["run", tmp_path / "model.dvt", *flags], len(sizes)):
        assert code == 0, messages
    assert not differences({name: np.load(tmp_path / f"{name}.npy") for name in expected}, expected)


@pytest.mark.parametrize("cpu", runnable_cpus())
def test_cpus(backend, tmp_path, cpu):
    """Blocks are as long as vectors."""
    draft = _model()
    model, inputs = draft.model(), draft.inputs
    partition = Partition({"y": 3}).split("image", 4, 2, "y", sizes_with_empty_shard(23, 3))
    options = [*BLOCKS, "--cpu", cpu]
    expected = expected_outputs(model, inputs)
    assert not differences(backend.compile_and_run(model, partition, inputs, list(expected), extra=options), expected)
    text = _plan(tmp_path, model, partition, *options)
    assert f"block 1 by {8 if cpu == 'x86-64-v3' else 16}>" in text or cpu not in ("x86-64-v3", "x86-64-v4")


@pytest.mark.parametrize("subject", SMALL_SUBJECTS, ids=lambda subject: subject.name)
def test_small_models(backend, subject):
    case = subject.prepared()
    partition = subject.partition({"y": 3}, "uneven")
    expected = case.expected
    actual = backend.compile_and_run(case.path, partition, case.inputs, list(expected), extra=[*BLOCKS, *subject.flags()])
    assert not differences(actual, expected)


@pytest.mark.parametrize("options", [["--target", "cuda"], ["--no-libraries"]], ids=" ".join)
def test_usage(tmp_path, options):
    onnx.save(_model().model(), tmp_path / "model.onnx")
    code, _, messages = call([tool("dovetail"), "compile", tmp_path / "model.onnx", *BLOCKS, *options])
    assert code == USAGE
    assert "'--channel-blocks'" in messages

