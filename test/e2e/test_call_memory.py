# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory that a plan sets aside for library calls, against the memory that they turn out to take on this machine, for
each instruction set that it has.

A bound that is too small shows in a comparison with a plan that has memory to spare (`--spare-call-memory`): there another
implementation does the call. The runtime's own kernels may do what the library has something slow for only.
"""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from harness.backend import ROOT, build_dir, call, tool
from harness.cpus import runnable_cpus
from harness.extent import EVERYTHING
from harness.partition import Partition
from harness.sanitizers import sanitizers
from onnx import TensorProto, helper
from subjects import SMALL_SUBJECTS, SUBJECTS

sys.path.append(str(ROOT / "bench"))

import sweep  # noqa: E402

pytestmark = pytest.mark.skipif(bool(sanitizers(build_dir())), reason="what a call takes does not depend on sanitizers")

LEVELS = [cpu for cpu in sweep.CPUS if cpu in runnable_cpus()]
MODELS = [subject for subject in SUBJECTS + SMALL_SUBJECTS if not subject.heavy]
#: Multiplications of a case, at most.
WORK = 5e7
#: Bytes of a thread's scratch memory that a single call may not use: the library decides by caches whether it copies the
#: inputs of strided convolutions.
SLACK = 512 << 10


def _calls(tmp_path, path, cpu, threads, flags=("--mesh", "y=1"), machine=None, inputs=None):
    """What `bench --json` says of each call on the first rank, on a machine like `cpu` or another one."""
    given = []
    if inputs:
        np.savez(tmp_path / "inputs.npz", **inputs)
        given = ["--input", f"@{tmp_path / 'inputs.npz'}"]
    artifact = tmp_path / "model.dvt"
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", artifact, "--cpu", cpu, *flags])
    assert code == 0, messages
    result = subprocess.run(
        [tool("dovetail"), "bench", artifact, "--json", "--warmup", "0", "--iterations", "1", "--threads", str(threads),
         *given],
        capture_output=True, text=True, env=sweep.environment(machine or cpu),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)["implementations"]
    assert all(each["excess_bytes"] == 0 for each in found), result.stderr
    return found


def _check_sufficient(tmp_path, path, label, cpu, threads, flags, inputs=None):
    """Memory to spare changes nothing but that the library does slowly what own kernels do otherwise."""
    planned = _calls(tmp_path, path, cpu, threads, flags, inputs=inputs)
    spared = _calls(tmp_path, path, cpu, threads, [*flags, "--spare-call-memory", str(1 << 28)], inputs=inputs)
    assert len(planned) == len(spared)
    for one, other in zip(planned, spared):
        name, unlimited = one["implementation"], other["implementation"]
        slow = "gemm:jit" in unlimited or other["is_reference"]
        assert name == unlimited or (slow and name.startswith("own ")), f"{label}: {one}, but with more memory {other}"
        assert not one["is_reference"], f"{label}: {one}"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("cpu", LEVELS)
def test_bounds_are_close(tmp_path, cpu, threads):
    cases = [case for case in sweep.make_cases(seed=17, count=200) if case.work <= WORK]
    bound = taken = calls = 0
    for case in cases[threads - 1 :: 1 if EVERYTHING else 5]:
        onnx.save(case.model(), tmp_path / "model.onnx")
        found = _calls(tmp_path, tmp_path / "model.onnx", cpu, threads)
        assert found, case.label
        for each in found:
            assert each["scratch_bound"] <= 1.2 * each["scratch_bytes"] + threads * SLACK, f"{case.label}: {each}"
            bound += each["scratch_bound"]
            taken += each["scratch_bytes"]
            calls += 1
    # Programs for AVX2 have room for descriptors that calls need on machines with AVX-512.
    descriptors = 0 if cpu == "x86-64-v4" else 16384 * threads * calls
    assert bound <= 1.2 * taken + descriptors, f"{bound} bytes of scratch memory, of which {taken} are used"


@pytest.mark.parametrize("threads, ranks", [(1, 1), (3, 1), (1, 3)])
@pytest.mark.parametrize("cpu", LEVELS)
def test_bounds_suffice(tmp_path, cpu, threads, ranks):
    """Also of narrow parts: the first of three ranks has one column, or row."""
    cases = [case for case in sweep.make_cases(seed=31, count=300) if case.work <= WORK / 2]
    for case in cases[ranks + threads :: 1 if EVERYTHING else 8]:
        model = onnx.shape_inference.infer_shapes(case.model())
        shape = [dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim]
        dim = len(shape) - (2 if case.kind == "product" else 1)
        partition = Partition({"y": ranks})
        if ranks > 1 and shape[dim] > ranks:
            half = (shape[dim] - 1) // 2
            partition.split("y", len(shape), dim, "y", (1, half, shape[dim] - 1 - half))
        onnx.save(model, tmp_path / "model.onnx")
        flags = partition.flags()
        _check_sufficient(tmp_path, tmp_path / "model.onnx", case.label, cpu, threads * ranks, flags)
        # The machine may have more than the CPU that the program is for.
        for each in _calls(tmp_path, tmp_path / "model.onnx", cpu, threads * ranks, flags, machine="native"):
            assert not each["is_reference"], f"{case.label}: {each}"


@pytest.mark.parametrize("number", range(0, len(MODELS), 1 if EVERYTHING else 5), ids=lambda number: MODELS[number].name)
def test_bounds_suffice_models(tmp_path, number):
    subject, cpu = MODELS[number], LEVELS[number % len(LEVELS)]
    flags = ["--mesh", "y=1", *subject.flags()]
    case = subject.prepared()
    _check_sufficient(tmp_path, case.path, subject.name, cpu, 2, flags, case.inputs)


@pytest.mark.parametrize("rows, terms, columns", [(22, 325, 38), (7, 1383, 2), (3, 2048, 512), (129, 69, 100)])
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("kind", ["BFLOAT16", "INT8"])
def test_bounds_of_narrow_types(tmp_path, kind, is_constant, rows, terms, columns):
    """The processor's matrices (AMX) want most: factors are padded where terms fill no matrix."""
    dtype = getattr(TensorProto, kind)
    tensors = {"a": (TensorProto.UINT8 if kind == "INT8" else dtype, (rows, terms)), "b": (dtype, (terms, columns))}
    result = TensorProto.INT32 if kind == "INT8" else dtype
    width = 1 if kind == "INT8" else 2
    weights = [helper.make_tensor("b", dtype, (terms, columns), bytes(width * terms * columns), raw=True)]
    inputs = [helper.make_tensor_value_info(n, *tensors[n]) for n in (("a",) if is_constant else ("a", "b"))]
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger" if kind == "INT8" else "MatMul", ["a", "b"], ["y"])], "product", inputs,
        [helper.make_tensor_value_info("y", result, (rows, columns))], weights if is_constant else [],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx")
    for threads in (1, 3):
        planned, spared = (
            _calls(tmp_path, tmp_path / "model.onnx", "native", threads, ["--mesh", "y=1", "--spare-call-memory", bytes])
            for bytes in ("0", str(1 << 28))
        )
        assert [c["implementation"] for c in planned] == [c["implementation"] for c in spared]


@pytest.mark.parametrize("split", ["y=_,_", "x=_,y"], ids=["whole", "terms"])
@pytest.mark.parametrize("kind, terms", [("BFLOAT16", 63), ("INT8", 125), ("INT8", 126), ("INT8", 127)])
def test_terms_that_end_processes(tmp_path, kind, terms, split):
    """oneDNN's code for the processor's matrices is illegal where terms nearly fill two of their rows, those of a rank."""
    dtype = getattr(TensorProto, kind)
    all_terms = terms if split == "y=_,_" else 2 * terms
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.UINT8 if kind == "INT8" else dtype, (72, all_terms)),
        helper.make_tensor_value_info("w", dtype, (all_terms, 8)),
    ]
    result = helper.make_tensor_value_info("y", TensorProto.INT32 if kind == "INT8" else dtype, (72, 8))
    node = helper.make_node("MatMulInteger" if kind == "INT8" else "MatMul", ["x", "w"], ["y"])
    model = helper.make_model(
        helper.make_graph([node], "product", inputs, [result]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, tmp_path / "model.onnx")
    command = [tool("dovetail"), "verify", tmp_path / "model.onnx", "--mesh", "y=2", "--shard", split]
    code, _, messages = call(command)
    assert code == 0, messages


def _product(a, b, node="MatMul", **attributes):
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("a", a), ("b", b))]
    graph = helper.make_graph(
        [helper.make_node(node, ["a", "b"], ["y"], **attributes)], "product", inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("model", [
    _product([50_000_000], [50_000_000]),
    _product([1, 50_000_000], [50_000_000, 1]),
    _product([4, 20_000_000], [64, 20_000_000], "Gemm", transB=1),
    _product([1, 20_000_000], [20_000_000, 256]),
    _product([1, 1, 20_000_000], [20_000_000, 256]),
], ids=["inner", "row and column", "transposed", "row", "rows"])  # fmt: skip
@pytest.mark.parametrize("ranks", [1, 4])
def test_long_sums_take_little(tmp_path, model, ranks):
    """Scratch memory does not grow with the number of terms."""
    onnx.save(model, tmp_path / "model.onnx")
    artifact = tmp_path / "model.dvt"
    split = ["--shard", "a=" + "_," * (len(model.graph.input[0].type.tensor_type.shape.dim) - 1) + "y"]
    command = [tool("dovetail"), "compile", tmp_path / "model.onnx", "-o", artifact, "--mesh", f"y={ranks}", *split]
    code, _, messages = call(command)
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", "--json", artifact])
    assert code == 0, messages
    for rank in json.loads(text)["ranks"]:
        assert rank["scratch_bytes"] < 1 << 20, rank
