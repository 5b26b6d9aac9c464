# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Randomly damaged artifacts: refused with the right exit code and the file's name, never a crash.

Damage to padding may go unnoticed; then the outputs must be the right ones.
"""

import numpy as np
import pytest
from cases import fixed_cases
from harness.backend import call, tool

DAMAGED = 7
COUNT = 1000
BATCH = 50


@pytest.fixture(scope="module")
def good(backend, tmp_path_factory):
    """(bytes of an artifact with weights, kernels and exchanges; its folder; the case that it is of)."""
    folder = tmp_path_factory.mktemp("damaged")
    case = fixed_cases()["conv-k3s2p1-15+17"]
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    backend.compile(folder / "model.onnx", folder / "good.dvt", case.partition)
    for name, value in case.inputs.items():
        np.save(folder / f"{name}.npy", value)
    return (folder / "good.dvt").read_bytes(), folder, case


def _damage(rng, data):
    """A damaged copy: bits flipped, bytes overwritten, cut off, removed, repeated or appended."""
    data = bytearray(data)
    at = int(rng.integers(len(data)))
    length = int(min(2 ** rng.integers(0, 13), len(data) - at))
    kind = rng.integers(7)
    if kind == 0:
        data[at] ^= 1 << rng.integers(8)
    elif kind == 1:
        data[at : at + length] = rng.bytes(length)
    elif kind == 2:
        data[at : at + length] = bytes(length)
    elif kind == 3:
        del data[at:]
    elif kind == 4:
        del data[at : at + length]
    elif kind == 5:
        data[at:at] = data[at : at + length]
    else:
        # The header is small, so that it is hardly hit by chance.
        data[int(rng.integers(128))] = int(rng.integers(256))
    return bytes(data)


@pytest.mark.parametrize("seed", range(COUNT // BATCH))
def test_damaged(good, seed, tmp_path):
    data, folder, case = good
    rng = np.random.default_rng(seed)
    expected = case.expected()
    (name,) = expected
    path = tmp_path / "damaged.dvt"
    inputs = [f"--input={n}=@{folder / n}.npy" for n in case.inputs]
    refused = 0
    for index in range(BATCH):
        broken = _damage(rng, data)
        path.write_bytes(broken)
        command = [tool("dovetail-run"), "run", path, *inputs, f"--output={name}={tmp_path / 'y.npy'}"]
        code, _, messages = call(command, timeout=60)
        where = f"seed {seed}, artifact {index}"
        if code == 0:
            np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected[name], 1e-4, 1e-4)
            continue
        assert code == DAMAGED, f"{where}: exit code {code}: {messages}"
        assert "damaged.dvt" in messages, f"{where}: {messages}"
        refused += 1
    assert refused > BATCH // 2
