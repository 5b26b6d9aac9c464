# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Algorithms that are chosen by measurement when a model is compiled (`--autotune`)."""

import re

import numpy as np
import onnx
import pytest
from harness.backend import call, tool
from harness.compare import differences
from harness.cpus import needs_cpu
from harness.oracle import expected_outputs
from ops import Draft

#: Elsewhere there is no other algorithm to choose.
pytestmark = needs_cpu("x86-64-v3")

CHOSEN = re.compile(r"--autotune: (\d+) of (\d+) convolutions with a choice")
NOTHING = "--autotune: no convolution has a choice of algorithms; nothing was measured"

MESHES = {
    "1": [],
    "uneven": ["--mesh", "y=3", "--shard", "image=_,_,y,_", "--sizes", "image:2=9,0,21"],
    "2x2": ["--mesh", "y=2,x=2", "--shard", "image=_,_,y,x"],
}


@pytest.fixture
def model(tmp_path):
    """Two convolutions with a choice, one with too few tiles for it to be clear, and two without: of stride 2, and of
    weights that the input gives.
    """
    rng = np.random.default_rng(3)
    draft = Draft(rng)

    def weights(outputs, inputs):
        return rng.uniform(-0.15, 0.15, (outputs, inputs, 3, 3)).astype(np.float32)

    image = draft.input(rng.standard_normal((1, 24, 30, 27)).astype(np.float32), "image")
    given = draft.input(weights(24, 24), "given")
    x = draft.node("Conv", image, draft.constant(weights(40, 24)), pads=[1] * 4, final=False)
    x = draft.node("Relu", x, final=False)
    x = draft.node("Conv", x, draft.constant(weights(24, 40)), pads=[1] * 4, final=False)
    x = draft.node("Conv", x, given, pads=[1] * 4, final=False)
    x = draft.node("Conv", x, draft.constant(weights(24, 24)), pads=[1] * 4, strides=[8, 8], final=False)
    draft.node("Conv", x, draft.constant(weights(16, 24)), pads=[1] * 4)
    onnx.save(draft.model(), tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", **draft.inputs)
    return tmp_path, expected_outputs(draft.model(), draft.inputs)


def _compile(folder, *flags):
    """What is printed of the program that is compiled, and the remarks."""
    command = [tool("dovetail"), "compile", folder / "m.onnx", "--remarks", *map(str, flags)]
    code, text, messages = call(command)
    assert code == 0, messages
    return text, messages


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
def test_results_and_what_is_said(model, mesh, threads):
    folder, expected = model
    flags = [*mesh, "--autotune", threads]
    text, messages = _compile(folder, *flags, "--compile-to=lower")
    chosen, all_of_them = map(int, CHOSEN.search(messages).groups())
    assert all_of_them == 3 and text.count("convolution_algorithm winograd") == chosen
    _, messages = _compile(folder, *flags, "-o", folder / "m.dvt", "--prepack", threads)
    assert CHOSEN.search(messages)
    code, _, messages = call(
        [tool("dovetail"), "run", folder / "m.dvt", "--input", f"@{folder}/x.npz", "--output", folder / "y.npz"]
    )
    assert code == 0, messages
    with np.load(folder / "y.npz") as results:
        assert not differences(dict(results), expected)


@pytest.mark.parametrize("flags", [["--math", "f32-strict"], ["--no-libraries"]], ids=" ".join)
def test_nothing_to_measure(model, flags):
    folder, _ = model
    text, messages = _compile(folder, "--autotune", 1, *flags, "--compile-to=lower")
    assert NOTHING in messages and "convolution_algorithm winograd" not in text


def _compiles(folder, *flags):
    """What is printed of the program, or nothing if it does not fit."""
    code, text, messages = call([tool("dovetail"), "compile", folder / "m.onnx", "--compile-to=lower", *flags])
    assert code in (0, 6), messages
    return text if code == 0 else ""


def test_all_choices_fit(model):
    """Memory must suffice for the transformed weights of all convolutions that have a choice, whatever is measured."""
    folder, _ = model
    # By estimates, the small one has no use for the algorithm.
    low, high = 1 << 14, 1 << 24
    assert _compiles(folder, "--memory", f"{high}B").count("convolution_algorithm winograd") == 2
    while high - low > 64:
        middle = (low + high) // 2
        if "convolution_algorithm winograd" in _compiles(folder, "--memory", f"{middle}B"):
            high = middle
        else:
            low = middle
    assert NOTHING in _compile(folder, "--autotune", 1, "--memory", f"{high}B", "--compile-to=lower")[1]
    # 36 values of four bytes for each pair of channels, and room for what these are packed to.
    high += 2 * 36 * 4 * 32 * 32
    assert CHOSEN.search(_compile(folder, "--autotune", 1, "--memory", f"{high}B", "--compile-to=lower")[1])


def test_other_targets_measure_when_they_run(model):
    folder, _ = model
    command = [tool("dovetail"), "compile", folder / "m.onnx", "--target", "cuda", "--autotune", "1"]
    code, _, messages = call([*command, "-o", folder / "m.dvt"])
    assert code == 2 and "pass --autotune to `dovetail run`" in messages
    assert not (folder / "m.dvt").exists()
