# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of every operator link for CPUs that are not at hand: the compiler refuses what they could not call there."""

import pathlib
import tempfile
import zlib

import onnx
import pytest
from cases import random_case
from harness.backend import BackendError, fastest_backend
from harness.cpus import LINKED_CPUS
from harness.extent import EVERYTHING, some
from harness.isolated import IsolatedPool
from harness.partition import Partition
from onnx import TensorProto, helper
from ops import GENERATORS

TYPES = (
    "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FLOAT16", "BFLOAT16", "FLOAT",
    "DOUBLE",
)  # fmt: skip


def _casts():
    """Every type from every type."""
    graph = onnx.GraphProto(name="casts")
    for name in TYPES:
        graph.input.append(helper.make_tensor_value_info(name, TensorProto.DataType.Value(name), [70]))
        for to in TYPES:
            result = f"{name}-{to}"
            graph.node.append(helper.make_node("Cast", [name], [result], to=TensorProto.DataType.Value(to)))
            graph.output.append(helper.make_tensor_value_info(result, TensorProto.DataType.Value(to), [70]))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def link(name):
    """Compiles a case for all CPUs and one of its own for each, in CI for three CPUs in turn; returns what went wrong. Runs
    in a worker."""
    failures = []
    with tempfile.TemporaryDirectory(prefix="dovetail-") as folder:
        cpus = some(enumerate(LINKED_CPUS), zlib.crc32(name.encode()), 3)
        cases = [(seed, cpu) for own, cpu in cpus for seed in ((0, 1, 2 + own) if EVERYTHING else (0, 1 + own))]
        for seed, cpu in [(0, cpu) for cpu in LINKED_CPUS] if name == "casts" else cases:
            case = None if name == "casts" else random_case(seed, name)
            model, partition = (case.model, case.partition) if case else (_casts(), Partition({"y": 1}))
            path, artifact = pathlib.Path(folder) / "model.onnx", pathlib.Path(folder) / "model.dvt"
            path.write_bytes(model.SerializeToString())
            try:
                fastest_backend().compile(path, artifact, partition, libraries=False, extra=["--cpu", cpu])
            except BackendError as error:
                failures.append(f"{case or name} --cpu {cpu}: {error}")
    return failures


@pytest.fixture(scope="module")
def linker(backend):
    pool = IsolatedPool(link, lambda name, message: [f"{name}: {message}"])
    yield pool
    pool.close()


@pytest.mark.parametrize("name", ["casts", *sorted(GENERATORS)])
def test_kernels_link(linker, name):
    assert linker(name) == []
