# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks compute elements that others have, too, where that costs less than to send them; against ONNX Runtime."""

import json

import numpy as np
import onnx
import pytest
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
