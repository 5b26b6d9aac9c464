# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks compute elements that others have, too, where that costs less than to send them; against ONNX Runtime."""

import dataclasses
import json

import numpy as np
import onnx
import pytest
from graphs.case import random_graph
from harness.backend import call, tool
from harness.compare import differences
from harness.oracle import expected_outputs
from harness.partition import Partition
from ops import Draft

#: Their sums are what a convolution reads.
COLUMNS, ROW = (1, 4, 23, 1), (1, 4, 1, 21)


def _model():
    """A column is added to a row; the sums are convolved."""
    rng = np.random.default_rng(5)
    draft = Draft(rng)
    column = draft.input(rng.standard_normal(COLUMNS).astype(np.float32), "image")
    row = draft.constant(rng.standard_normal(ROW).astype(np.float32))
    weights = draft.constant(rng.standard_normal((5, 4, 5, 3)).astype(np.float32))
    draft.node("Conv", draft.node("Add", column, row, final=False), weights, pads=[2, 1, 2, 1])
    return draft


@pytest.mark.parametrize("libraries", [True, False], ids=["libraries", "kernels"])
@pytest.mark.parametrize("sizes", [(12, 11), (3, 1, 19), (9, 0, 8, 6)], ids=str)
def test_columns_are_sent(backend, tmp_path, sizes, libraries):
    """Halos of the column are exchanged, not those of the sums, of which a rank computes what it needs."""
    draft = _model()
    model, inputs = draft.model(), draft.inputs
    partition = Partition({"y": len(sizes)}).split("image", 4, 2, "y", sizes)
    expected = expected_outputs(model, inputs)
    actual = backend.compile_and_run(model, partition, inputs, list(expected), libraries)
    assert not differences(actual, expected)

    onnx.save(model, tmp_path / "model.onnx")
    command = [tool("dovetail"), "compile", tmp_path / "model.onnx", "-o", tmp_path / "model.dvt"]
    code, _, messages = call([*command, "--report", tmp_path / "report.json", *partition.flags()])
    assert code == 0, messages
    exchanges = json.loads((tmp_path / "report.json").read_text())["exchanges"]
    assert [move["tensor"] for exchange in exchanges for move in exchange["moves"]] == ["float32[1, 4, 23, 1]"]


def _network():
    """Windows one behind the other: with strides, with gaps, and spread again over the rows that there were."""
    rng = np.random.default_rng(6)
    draft = Draft(rng)

    def weights(*shape):
        return draft.constant((rng.standard_normal(shape) / 6).astype(np.float32))

    x = draft.input(rng.standard_normal((1, 3, 48, 40)).astype(np.float32), "image")
    y = draft.node("Conv", x, weights(6, 3, 3, 3), weights(6), pads=[1, 1, 1, 1], final=False)
    y = draft.node("Relu", y, final=False)
    z = draft.node("Conv", y, weights(6, 1, 3, 3), pads=[2, 2, 2, 2], dilations=[2, 2], group=6, final=False)
    y = draft.node("Add", y, draft.node("Tanh", z, final=False), final=False)
    z = draft.node("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], final=False)
    z = draft.node("Conv", z, weights(8, 6, 3, 3), pads=[1, 1, 1, 1], final=False)
    z = draft.node("ConvTranspose", z, weights(8, 6, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1], final=False)
    y = draft.node("Concat", y, z, axis=1, final=False)
    draft.node("Conv", y, weights(2, 12, 3, 3), pads=[1, 1, 1, 1])
    return draft


@pytest.mark.parametrize("libraries", [True, False], ids=["libraries", "kernels"])
@pytest.mark.parametrize(
    "rows, columns",
    [
        ((24, 24), None),
        ((20, 13, 15), None),
        ((29, 0, 19), None),
        ((12, 9, 20, 7), None),
        ((0, 25, 0, 23), None),
        ((26, 22), (18, 22)),
        ((41, 7), (21, 19)),
        ((29, 0, 19), (18, 22)),
    ],
    ids=str,
)
def test_one_halo_for_a_network(backend, tmp_path, rows, columns, libraries):
    """Where that is asked for, all that ranks have of others is what they are sent of the image."""
    draft = _network()
    model, inputs = draft.model(), draft.inputs
    partition = Partition({"y": len(rows), **({"x": len(columns)} if columns else {})}).split("image", 4, 2, "y", rows)
    if columns:
        partition.split("image", 4, 3, "x", columns)
    expected = expected_outputs(model, inputs)
    actual = backend.compile_and_run(model, partition, inputs, list(expected), libraries, ["--halos", "always"])
    assert not differences(actual, expected)

    def exchanged(halos):
        onnx.save(model, tmp_path / "model.onnx")
        command = [tool("dovetail"), "compile", tmp_path / "model.onnx", "-o", tmp_path / "model.dvt", "--halos", halos]
        code, _, messages = call([*command, "--report", tmp_path / "report.json", *partition.flags()])
        assert code == 0, messages
        exchanges = json.loads((tmp_path / "report.json").read_text())["exchanges"]
        return [move["tensor"] for exchange in exchanges for move in exchange["moves"]]

    assert exchanged("always") == ["float32[1, 3, 48, 40]"]
    assert len(exchanged("never")) > 4


def test_small_layers_exchange_once(tmp_path):
    """What is chosen by time: many small convolutions need fewer exchanges than there are, large ones one each."""

    def count(channels, rows, halos):
        rng = np.random.default_rng(7)
        draft = Draft(rng)
        x = draft.input(np.zeros((1, channels, rows, rows), np.float32), "image")
        for layer in range(8):
            weights = draft.constant(rng.standard_normal((channels, channels, 3, 3)).astype(np.float32))
            x = draft.node("Conv", x, weights, pads=[1, 1, 1, 1], final=layer == 7)
        path = tmp_path / "model.onnx"
        onnx.save(draft.model(), path)
        partition = Partition({"y": 2}, objective="time").split("image", 4, 2, "y").split(x, 4, 2, "y")
        command = [tool("dovetail"), "compile", path, "-o", tmp_path / "model.dvt", *partition.flags()]
        code, _, messages = call([*command, "--cluster", "cpu", "--halos", halos])
        assert code == 0, messages
        code, text, messages = call([tool("dovetail"), "inspect", "--json", tmp_path / "model.dvt"])
        assert code == 0, messages
        return len(json.loads(text)["exchanges"])

    assert count(4, 64, "never") == 8
    assert count(4, 64, "gain") <= 3
    assert count(96, 128, "gain") == 8


@pytest.mark.parametrize("objective", ["bytes", "memory"])
@pytest.mark.parametrize("seed", range(1, 9))
def test_other_objectives_lose_nothing(tmp_path, seed, objective):
    """Ranks receive no more where bytes are to be least, and the plan is the same where memory is."""
    case = random_graph(seed, images=True)
    onnx.save(case.model, tmp_path / "model.onnx")
    partition = dataclasses.replace(case.partition, objective=objective)
    plans = {}
    for halos in ("never", "gain"):
        command = [tool("dovetail"), "compile", tmp_path / "model.onnx", "-o", tmp_path / "model.dvt", "--halos", halos]
        code, _, messages = call([*command, *partition.flags()])
        assert code == 0, messages
        code, text, messages = call([tool("dovetail"), "inspect", "--json", tmp_path / "model.dvt"])
        assert code == 0, messages
        plans[halos] = json.loads(text)
    received = {halos: sum(exchange["bytes"] for exchange in plan["exchanges"]) for halos, plan in plans.items()}
    assert received["gain"] <= received["never"]
    if objective == "memory":
        assert plans["gain"] == plans["never"]
