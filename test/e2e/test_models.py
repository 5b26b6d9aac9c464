# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real models, partitioned, against ONNX Runtime within 1e-4 of the largest magnitude.

A few partitions of each model; all of them with DOVETAIL_ALL=1 (`make verify-all`).
"""

import numpy as np
import pytest
from harness.backend import call, tool
from harness.compare import differences
from harness.extent import EVERYTHING, one_of
from subjects import SMALL_SUBJECTS, SUBJECTS, combinations


def _name(value):
    if isinstance(value, dict):
        return "x".join(map(str, value.values()))
    return getattr(value, "name", str(value))


#: Convolutions and resizing, products and norms, and a recurrence: what `make check` runs.
QUICK = {"unet2d-transposed", "vit", "bilstm"}


def _combinations():
    for subject, mesh, style in combinations(EVERYTHING):
        quick = subject.name in QUICK and (mesh, style) == ({"y": 3}, "uneven")
        yield pytest.param(subject, mesh, style, marks=pytest.mark.quick if quick else ())


def _check(backend, subject, partition, libraries=True):
    case = subject.prepared()
    actual = backend.compile_and_run(
        case.path, partition, case.inputs, list(case.expected), libraries, subject.flags()
    )
    found = differences(actual, case.expected)
    assert not found, f"{partition}: {found}"


@pytest.mark.parametrize("subject", SUBJECTS + SMALL_SUBJECTS, ids=_name)
def test_expected_outputs_tell_errors(subject):
    """ONNX Runtime's answer is finite and differs between positions: an error would show."""
    for name, value in subject.prepared().expected.items():
        assert np.isfinite(value).all(), name
        assert value.std() > 1e-2 * np.abs(value).max(), name


@one_of(2)
@pytest.mark.parametrize("subject, mesh, style", list(_combinations()), ids=_name)
def test_model(backend, subject, mesh, style):
    _check(backend, subject, subject.partition(mesh, style))


@one_of(2)
@pytest.mark.parametrize(
    "subject", [s for s in SUBJECTS if not s.heavy][::2] if not EVERYTHING else SUBJECTS, ids=_name
)
def test_model_without_libraries(backend, subject):
    _check(backend, subject, subject.partition({"y": 2}, "uneven"), libraries=False)


@pytest.mark.parametrize("mesh", [{"t": 2}, {"t": 3}, {"y": 2, "t": 2}], ids=_name)
def test_heads_and_mlp(backend, mesh):
    """Heads and the inner layer of the MLP split by the names of what is computed, and the length as well."""
    subject = next(s for s in SUBJECTS if s.name == "llama")
    partition = subject.partition({a: n for a, n in mesh.items() if a != "t"}, "uneven")
    partition.mesh = mesh
    for layer in range(dict(subject.sizes)["layers"]):
        for name in ("q", "k", "v", "gate", "up"):
            partition.split(f"/layers.{layer}/{name}", 3, 2, "t")
            if "y" in mesh:
                partition.split(f"/layers.{layer}/{name}", 3, 1, "y")
    _check(backend, subject, partition)


@pytest.mark.parametrize("name", ["unet2d-dynamic", "unet3d", "vit"])
def test_verify(backend, name):
    """`dovetail verify` compares the partitioned program with the whole one, value by value."""
    subject = next(s for s in SUBJECTS if s.name == name)
    partition = subject.partition({"y": 3}, "uneven")
    command = [tool("dovetail"), "verify", subject.prepared().path, "--per-op"]
    code, _, messages = call([*command, *partition.flags(), *subject.flags()])
    assert code == 0, messages
