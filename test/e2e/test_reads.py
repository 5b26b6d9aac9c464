# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What operations read, recorded by evaluation, is what ranks hold; what they write is what they compute.

Needs, kernels and the check of partitions follow from one definition. This is their witness: it asks no relation. The
cases are those of test_random_ops.py, of other seeds, each split unevenly.
"""

import pytest
from cases import random_case
from harness.backend import UNSUPPORTED, call, tool
from harness.extent import one_of

#: Enough for each operator to come up a few times.
SEEDS = range(900_000, 900_300)


def partition_text(case, folder):
    """The case after partition, as text; None if it is not supported."""
    path = folder / "model.onnx"
    path.write_bytes(case.model.SerializeToString())
    flags = [] if case.partition is None else case.partition.flags()
    code, out, messages = call([tool("dovetail"), "compile", str(path), "--compile-to=partition", *flags])
    if code == UNSUPPORTED:
        return None
    assert code == 0, f"{case}: {messages}"
    return out


@one_of(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_reads_are_held(seed, tmp_path):
    case = random_case(seed)
    text = partition_text(case, tmp_path)
    if text is None:
        pytest.skip("not supported")
    (tmp_path / "partition.mlir").write_text(text)
    command = [tool("dovetail-opt"), tmp_path / "partition.mlir", f"--dovetail-witness-reads=seed={seed}", "-o", "/dev/null"]
    code, _, messages = call([str(word) for word in command])
    assert code == 0, f"{case}: {messages}"
