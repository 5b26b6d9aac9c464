# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory that a plan sets aside for library calls, against the memory that they turn out to take on this machine, for
each instruction set that it has.

A bound that is too small is told by a call that the plan leaves to the library, and that kernels of the runtime's own do.
"""

import json
import subprocess
import sys

import onnx
import pytest
from harness.backend import ROOT, build_dir, call, tool
from harness.cpus import runnable_cpus
from harness.extent import EVERYTHING, one_of
from harness.sanitizers import sanitizers
from onnx import TensorProto, helper
from subjects import SMALL_SUBJECTS, SUBJECTS

sys.path.append(str(ROOT / "bench"))

import sweep  # noqa: E402

pytestmark = pytest.mark.skipif(bool(sanitizers(build_dir())), reason="what a call takes does not depend on sanitizers")

LEVELS = [cpu for cpu in sweep.CPUS if cpu in runnable_cpus()]
#: Random inputs of others would be indices that are out of range.
MODELS = [subject for subject in SUBJECTS + SMALL_SUBJECTS if not subject.make_input]
#: Multiplications of a case, at most.
WORK = 5e7


def _calls(tmp_path, path, cpu, threads, flags=()):
    """What `bench --json` says of each call. Of convolutions, the runtime's own kernels do those that the plan says."""
    artifact, phases = tmp_path / "model.dvt", tmp_path / "phases"
    options = ["--mesh", "y=1", "--cpu", cpu, "--dump-phases", phases, *flags]
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", artifact, *options])
    assert code == 0, messages
    result = subprocess.run(
        [tool("dovetail"), "bench", artifact, "--json", "--warmup", "0", "--iterations", "1", "--threads", str(threads)],
        capture_output=True, text=True, env=sweep.environment(cpu),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    calls = json.loads(result.stdout)["implementations"]
    planned = (phases / "5-lower.mlir").read_text().count("convolution_algorithm gathered")
    assert sum(c["implementation"].startswith("own gathered") for c in calls) == planned, calls
    return calls


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("cpu", LEVELS)
def test_bounds_are_close(tmp_path, cpu, threads):
    cases = [case for case in sweep.make_cases(seed=17, count=200) if case.work <= WORK]
    bound = taken = 0
    for case in cases[threads - 1 :: 1 if EVERYTHING else 5]:
        onnx.save(case.model(), tmp_path / "model.onnx")
        calls = _calls(tmp_path, tmp_path / "model.onnx", cpu, threads)
        assert calls, case.label
        bound += sum(c["scratch_bound"] for c in calls)
        taken += sum(c["scratch_bytes"] for c in calls)
    assert bound <= 1.2 * taken, f"{bound} bytes of scratch memory, of which {taken} are used"


@one_of(8)
@pytest.mark.parametrize("cpu", LEVELS)
@pytest.mark.parametrize("subject", MODELS, ids=lambda subject: subject.name)
def test_bounds_suffice(tmp_path, subject, cpu):
    _calls(tmp_path, subject.prepared().path, cpu, 2, subject.flags())


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
], ids=["inner", "row and column", "transposed", "row"])  # fmt: skip
@pytest.mark.parametrize("ranks", [1, 4])
def test_long_sums_take_little(tmp_path, model, ranks):
    """Scratch memory does not grow with the number of terms."""
    onnx.save(model, tmp_path / "model.onnx")
    artifact = tmp_path / "model.dvt"
    split = ["--shard", "a=y" if len(model.graph.input[0].type.tensor_type.shape.dim) == 1 else "a=_,y"]
    command = [tool("dovetail"), "compile", tmp_path / "model.onnx", "-o", artifact, "--mesh", f"y={ranks}", *split]
    code, _, messages = call(command)
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", "--json", artifact])
    assert code == 0, messages
    for rank in json.loads(text)["ranks"]:
        assert rank["scratch_bytes"] < 1 << 20, rank
