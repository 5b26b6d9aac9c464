# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches that are split, so that ranks compute while they exchange, give the bits that whole ones give."""

import json

import numpy as np
import onnx
import pytest
from harness.backend import call, tool
from harness.compare import differences
from harness.extent import one_of
from harness.oracle import expected_outputs
from harness.partition import Partition
from ops import Draft

IMAGE = (1, 4, 23, 18)


def _model():
    """Two convolutions, the second with a stride, and what is between them."""
    rng = np.random.default_rng(7)
    draft = Draft(rng)
    image = draft.input(rng.standard_normal(IMAGE).astype(np.float32), "image")
    first = draft.constant(rng.standard_normal((6, 4, 5, 3)).astype(np.float32))
    second = draft.constant(rng.standard_normal((3, 6, 3, 3)).astype(np.float32))
    value = draft.node("Conv", image, first, pads=[2, 1, 2, 1], final=False)
    value = draft.node("Relu", value, final=False)
    draft.node("Conv", value, second, pads=[1, 1, 1, 1], strides=[2, 1])
    return draft


def _partitions():
    for sizes in [(12, 11), (3, 1, 19), (9, 0, 8, 6), (2, 2, 19)]:
        yield Partition({"y": len(sizes)}).split("image", 4, 2, "y", sizes)
    yield Partition({"y": 2, "x": 2}).split("image", 4, 2, "y", (14, 9)).split("image", 4, 3, "x", (5, 13))
    yield Partition({"y": 2, "x": 3}).split("image", 4, 2, "y", (22, 1)).split("image", 4, 3, "x", (10, 0, 8))


def _plan(model, partition, folder, options, libraries=False):
    """The steps of a run."""
    onnx.save(model, folder / "model.onnx")
    command = [tool("dovetail"), "compile", folder / "model.onnx", "-o", folder / "model.dvt"]
    command += [] if libraries else ["--no-libraries"]
    code, _, messages = call([*command, *partition.flags(), *options])
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", "--json", folder / "model.dvt"])
    assert code == 0, messages
    return json.loads(text)["steps"]


def _steps(model, partition, folder, options, libraries=False):
    """The names of the kernels that are launched, or of what libraries do."""
    steps = _plan(model, partition, folder, options, libraries)
    return [step["name"] for step in steps if (step["kind"] != "kernel") == libraries]


def _borders(steps):
    """The names of steps whose borders come first. Their interiors come behind the exchange, and nothing else does."""
    names = []
    for position, step in enumerate(steps):
        name = step["name"].removesuffix(" (border)")
        if name == step["name"] or name in names:
            continue
        names.append(name)
        while steps[position]["name"] == f"{name} (border)":
            position += 1
        assert steps[position]["kind"] == "exchange", steps[position]
        position += 1
        assert steps[position]["kind"] != "wait", "the interior waits for the exchange"
        assert steps[position]["name"] == f"{name} (interior)", steps[position]
    return names


@one_of(2)
@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("partition", list(_partitions()), ids=str)
def test_split_launches(backend, tmp_path, partition, target):
    """`--split-launches always` changes the order of work and nothing else."""
    draft = _model()
    model, inputs = draft.model(), draft.inputs
    options = ["--target", target]
    never, always = ([*options, "--split-launches", where] for where in ("never", "always"))
    whole = _steps(model, partition, tmp_path, never)
    split = _steps(model, partition, tmp_path, always)
    assert not any("(interior)" in name for name in whole)
    assert any("(interior)" in name for name in split) and any("(boundary)" in name for name in split)

    expected = expected_outputs(model, inputs)
    once = backend.compile_and_run(model, partition, inputs, list(expected), False, never)
    again = backend.compile_and_run(model, partition, inputs, list(expected), False, always)
    assert not differences(again, expected)
    for name, value in once.items():
        assert again[name].tobytes() == value.tobytes(), name


def _chain(rng, operators):
    """Convolutions and pools whose values are exchanged, each after something that reads no halo."""
    draft = Draft(rng)
    value = draft.input(rng.standard_normal(IMAGE).astype(np.float32), "image")
    weights = lambda *shape: draft.constant((rng.standard_normal(shape) / 4).astype(np.float32))
    for last, operator in zip([False] * (len(operators) - 1) + [True], operators):
        value = draft.node("Conv", value, weights(4, 4, 1, 1), final=False)
        if operator == "Conv":
            value = draft.node("Conv", value, weights(4, 4, 3, 3), pads=[1, 1, 1, 1], final=last)
        elif operator == "ConvTranspose":
            value = draft.node("ConvTranspose", value, weights(4, 4, 3, 3), pads=[1, 1, 0, 0], strides=[2, 2], final=last)
        else:
            value = draft.node("MaxPool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], final=last)
    return draft


@one_of(3)
@pytest.mark.parametrize("libraries", [False, True], ids=["kernels", "libraries"])
@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("partition", list(_partitions()), ids=str)
def test_borders_come_first(backend, tmp_path, partition, target, libraries):
    """What other ranks need of a value is computed before it is sent, and the rest while it is."""
    draft = _chain(np.random.default_rng(5), ["Conv", "MaxPool", "ConvTranspose"])
    model, inputs = draft.model(), draft.inputs
    never, always = (["--target", target, "--split-launches", where] for where in ("never", "always"))
    assert not _borders(_plan(model, partition, tmp_path, never, libraries))
    assert len(_borders(_plan(model, partition, tmp_path, always, libraries))) >= 2

    expected = expected_outputs(model, inputs)
    once = backend.compile_and_run(model, partition, inputs, list(expected), libraries, never)
    again = backend.compile_and_run(model, partition, inputs, list(expected), libraries, always)
    assert not differences(again, expected)
    for name, value in once.items():
        # Algorithms of libraries may differ with extents.
        assert libraries or again[name].tobytes() == value.tobytes(), name


def test_scans_stay_in_one_piece(backend, tmp_path):
    """A scan that reads a row of its neighbour begins where its rank does, and nowhere else."""
    rng = np.random.default_rng(3)
    draft = Draft(rng)
    x = draft.input(rng.standard_normal((1, 1, 64, 8)).astype(np.float32), "x")
    pool = draft.node("MaxPool", x, kernel_shape=[3, 1], pads=[1, 0, 1, 0])
    scan = draft.node("CumSum", x, draft.ints(2))
    partition = Partition({"y": 4}).split("x", 4, 2, "y", (16, 16, 16, 16))
    partition.split(pool, 4, 2, "y", (16, 16, 16, 16)).split(scan, 4, 2, "y", (17, 16, 16, 15))
    model, inputs = draft.model(), draft.inputs
    options = ["--no-libraries", "--split-launches", "always"]
    expected = expected_outputs(model, inputs)
    assert any("(interior)" in name for name in _steps(model, partition, tmp_path, options[1:]))
    actual = backend.compile_and_run(model, partition, inputs, list(expected), False, options)
    assert not differences(actual, expected)


#: Calls that read halos: their operator, attributes, and the shape of their weights for 16 channels.
CALLS = {
    "winograd": ("Conv", {"pads": [1, 1, 1, 1]}, (16, 16, 3, 3)),
    "strides": ("Conv", {"pads": [2, 1, 2, 1], "strides": [2, 1]}, (16, 16, 5, 3)),
    "dilations": ("Conv", {"pads": [3, 1, 1, 1], "dilations": [2, 1]}, (16, 16, 3, 3)),
    "groups": ("Conv", {"pads": [1, 0, 1, 0], "group": 4}, (16, 4, 3, 1)),
    "depthwise": ("Conv", {"pads": [2, 2, 2, 2], "group": 16}, (16, 1, 5, 5)),
    "transposed": ("ConvTranspose", {"pads": [1, 1, 1, 1], "strides": [2, 2]}, (16, 16, 4, 4)),
    "average": ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, None),
}


@pytest.mark.parametrize("sizes", [(16, 17), (5, 1, 27), (9, 0, 8, 16)], ids=str)
@pytest.mark.parametrize("kind", CALLS)
def test_library_calls(backend, tmp_path, kind, sizes):
    """The same of what libraries do, and of epilogues. Algorithms may differ with extents, and so may last bits. Where
    ranks have few rows all of them may need halos."""
    operator, attributes, shape = CALLS[kind]
    rng = np.random.default_rng(len(sizes))
    draft = Draft(rng)
    image = draft.input(rng.standard_normal((1, 16, 33, 20)).astype(np.float32), "image")
    # What is exchanged is computed.
    point = draft.constant(rng.standard_normal((16, 16, 1, 1)).astype(np.float32) / 4)
    value = draft.node("Conv", image, point, final=False)
    weights = [draft.constant(rng.standard_normal(shape).astype(np.float32) / 4)] if shape else []
    value = draft.node(operator, value, *weights, **attributes, final=not shape)
    if shape:
        draft.node("Relu", value)
    model, inputs = draft.model(), draft.inputs
    partition = Partition({"y": len(sizes)}).split("image", 4, 2, "y", sizes)
    expected = expected_outputs(model, inputs)
    actual = backend.compile_and_run(model, partition, inputs, list(expected), True, ["--split-launches", "always"])
    assert not differences(actual, expected)
    names = _steps(model, partition, tmp_path, ["--split-launches", "always"], libraries=True)
    assert min(sizes) < 16 or any("(interior)" in name for name in names), names
