# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `inspect` says of the memory of each rank is what sessions allocate."""

import json

import pytest
from harness.backend import call, tool
from subjects import SMALL_SUBJECTS

MESHES = {"1": {"y": 1}, "3": {"y": 3}, "2x2": {"y": 2, "x": 2}}


def _json(*command):
    code, text, messages = call(command)
    assert code == 0, messages
    return json.loads(text)


def _compare(folder, subject, mesh, options, threads):
    partition = subject.partition(mesh, "uneven" if len(mesh) > 1 or mesh["y"] > 1 else "balanced")
    artifact = folder / "model.dvt"
    command = [tool("dovetail"), "compile", subject.prepared().path, "-o", artifact]
    code, _, messages = call([*command, *partition.flags(), *subject.flags(), *options])
    assert code == 0, messages
    planned = _json(tool("dovetail"), "inspect", "--json", artifact, "--threads", threads)["ranks"]
    in_all = threads * partition.ranks
    measured = _json(
        tool("dovetail-run"), "bench", "--json", "--iterations", 1, "--warmup", 0, "--threads", in_all, artifact
    )
    for rank in planned:
        del rank["received_bytes"]
    assert planned == measured["memory"]
    assert all(rank["total_bytes"] > 0 for rank in planned)
    return planned


@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("subject", SMALL_SUBJECTS, ids=lambda subject: subject.name)
def test_sessions_allocate_what_inspect_says(tmp_path, subject, mesh):
    ranks = _compare(tmp_path, subject, mesh, [], threads=1 + len(mesh))
    # These have weights that are packed for calls, which take scratch memory.
    assert all(rank["packed_bytes"] > 0 and rank["scratch_bytes"] > 0 for rank in ranks)


@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("subject", SMALL_SUBJECTS[:2], ids=lambda subject: subject.name)
def test_without_libraries(tmp_path, subject, target):
    ranks = _compare(tmp_path, subject, {"y": 3}, ["--no-libraries", "--target", target], threads=1)
    assert all(rank["packed_bytes"] == rank["scratch_bytes"] == 0 for rank in ranks)
