# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plans of the test models are those recorded in plans.json, so that a change of a plan is seen and explained.

A record says nothing about right or wrong: test_models.py compares with ONNX Runtime. After a change that is meant,
`python test/e2e/test_plans.py` writes the records anew, and their difference shows what became of each plan: steps by
kind, bytes that all ranks receive, bytes of memory of all ranks, and a digest of everything that `inspect` tells.
"""

import collections
import hashlib
import json
import pathlib
import sys
import tempfile

if __name__ == "__main__":
    sys.path[:0] = [str(pathlib.Path(__file__).parents[1]), str(pathlib.Path(__file__).parents[1] / "models")]

import pytest
from harness.backend import call, tool
from harness.extent import EVERYTHING, one_of
from subjects import SMALL_SUBJECTS, SUBJECTS

RECORDS = pathlib.Path(__file__).with_name("plans.json")
MESHES = {"1": {"y": 1}, "3": {"y": 3}, "2x2": {"y": 2, "x": 2}}
#: What `inspect` says of code and file, not of the plan.
NOT_OF_THE_PLAN = (
    "code_bytes", "cpu", "cpu_features", "file", "file_bytes", "format", "kernels", "oldest_reader", "producer"
)


def cases():
    """Name, subject, mesh and options of each plan."""
    for subject in SUBJECTS:
        for name in ("3",) if subject.heavy else MESHES:
            yield f"{subject.name} {name} cpu", subject, MESHES[name], []
    for subject in SMALL_SUBJECTS:
        for name in ("3", "2x2"):
            yield f"{subject.name} {name} kernels", subject, MESHES[name], ["--no-libraries"]
            yield f"{subject.name} {name} cuda", subject, MESHES[name], ["--target", "cuda", "--arch", "sm_90"]


def record(subject, mesh, options):
    """What is recorded of the plan of a model."""
    if "--target" not in options:
        options = [*options, "--cpu", "x86-64-v3"]
    partition = subject.partition(mesh, "uneven" if len(mesh) > 1 or mesh["y"] > 1 else "balanced")
    with tempfile.TemporaryDirectory() as folder:
        artifact = pathlib.Path(folder) / "plan.dvt"
        command = [tool("dovetail"), "compile", subject.prepared().path, "-o", artifact]
        code, _, messages = call([*command, *partition.flags(), *subject.flags(), *options])
        assert code == 0, messages
        code, text, messages = call([tool("dovetail"), "inspect", "--json", artifact])
        assert code == 0, messages
    plan = json.loads(text)
    for key in NOT_OF_THE_PLAN:
        del plan[key]
    steps = collections.Counter(step["kind"] for step in plan["steps"])
    memory = sum(rank[f"{what}_bytes"] for rank in plan["ranks"] for what in ("values", "weights", "prologue"))
    return {
        "steps": dict(sorted(steps.items())),
        "prologue": len(plan["prologue"]),
        "received": sum(exchange["bytes"] for exchange in plan["exchanges"]),
        "memory": memory,
        "digest": hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16],
    }


CASES = list(cases())
#: Those on one rank are compared in `make verify-all` alone: they have all that the others have, but for exchanges.
COMPARED = CASES if EVERYTHING else [case for case in CASES if case[2] != MESHES["1"]]


@one_of(2)
@pytest.mark.parametrize("name, subject, mesh, options", COMPARED, ids=[case[0] for case in COMPARED])
def test_plan(name, subject, mesh, options):
    known = json.loads(RECORDS.read_text())
    assert name in known, f"no record of this plan: run `python {pathlib.Path(__file__).name}` and look at it"
    assert record(subject, mesh, options) == known[name]


def test_nothing_else_is_recorded():
    assert set(json.loads(RECORDS.read_text())) == {case[0] for case in CASES}


def write():
    """Writes all records anew, one plan a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(record(*case))}" for name, *case in CASES]
    RECORDS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
