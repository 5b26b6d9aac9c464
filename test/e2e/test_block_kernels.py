# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for devices: run on the emulated device against ONNX Runtime, and assembled for real ones.

The cases are those of test_random_ops.py. The emulated device runs each thread of each block as it would run on a GPU,
with barriers, shuffles and shared memory, and ends the run when an access is outside of what a launch may touch.
"""

import json
import os
import re

import numpy as np
import onnx
import pytest
from cases import fixed_cases, quick_seeds, random_case
from harness.backend import call, fastest_backend, replaying_backend, tool
from harness.compare import differences
from harness.extent import some
from harness.isolated import IsolatedPool
from harness.partition import Partition
from ops import GENERATORS
from ops.draft import Draft
from random_ops import PASSED, Request
from random_ops import workers as create_workers
from subjects import SMALL_SUBJECTS

FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "20250"))
COUNT = int(os.environ.get("DOVETAIL_RANDOM_CASES", "640"))

ARCHS = ("sm_80", "sm_90", "sm_100")

#: Families of operators, and of fixed cases, whose kernels need few registers: local memory would be a fault of their
#: generator.
NEVER_SPILL = {"ops.elementwise", "ops.movement"}
TILED = ("product-", "conv-tiles-")


@pytest.fixture(scope="module")
def workers(backend):
    workers = create_workers(1)
    yield workers
    workers.close()


@pytest.mark.parametrize("name", list(fixed_cases()))
def test_emulated_fixed_case(workers, name):
    outcome = workers(Request(fixed=name, target="emulated"))
    assert outcome.status == PASSED, f"{outcome.case}\n{outcome.message}"


def _seeds():
    quick = quick_seeds(FIRST_SEED)
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        yield pytest.param(seed, marks=pytest.mark.quick if seed in quick else ())


@pytest.mark.parametrize("seed", list(_seeds()))
def test_emulated_random_case(workers, seed):
    outcome = workers(Request(seed=seed, target="emulated"))
    assert outcome.status == PASSED, f"{outcome.case}\n{outcome.message}"


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("subject", SMALL_SUBJECTS, ids=lambda subject: subject.name)
def test_emulated_model(subject, ranks):
    case = subject.prepared()
    partition = subject.partition({"y": ranks}, "uneven" if ranks > 1 else "balanced")
    flags = [*subject.flags(), "--target", "emulated"]
    actual = replaying_backend().compile_and_run(case.path, partition, case.inputs, list(case.expected), False, flags)
    found = differences(actual, case.expected)
    assert not found, f"{partition}: {found}"


@pytest.mark.parametrize(
    "sizes, width, channels", [((35,), 9, 24), ((17, 18), 9, 24), ((1, 0, 34), 9, 24), ((130,), 260, 64)]
)
def test_padding_is_not_multiplied(backend, sizes, width, channels):
    """Padding does not make a number of a weight that is none; ONNX Runtime multiplies it by zero."""
    draft = Draft(np.random.default_rng(0))
    image = draft.values([1, 16, sum(sizes), width])
    weights = draft.values([channels, 16, 3, 3])
    weights[3, 5, 0, 1], weights[7, 2, 2, 2], weights[20, 0, 1, 0] = np.inf, np.nan, -np.inf
    draft.node("Conv", draft.input(image, "x"), draft.constant(weights), pads=[1] * 4)
    expected = np.zeros([1, channels, sum(sizes), width])
    for taps in np.ndindex(3, 3):
        # The rows and columns of the result for which the tap is inside of the image, and those that it is at.
        pairs = list(zip(taps, image.shape[2:]))
        to = tuple(slice(max(0, 1 - tap), extent - max(0, tap - 1)) for tap, extent in pairs)
        at = tuple(slice(max(0, tap - 1), extent - max(0, 1 - tap)) for tap, extent in pairs)
        expected[:, :, *to] += np.einsum("nchw,oc->nohw", image[:, :, *at], weights[:, :, *taps], dtype=np.float64)
    assert not np.isfinite(expected).all() and np.isfinite(expected[0, 3, 0]).all()
    model = draft.model()
    partition = Partition({"y": len(sizes)}).split("x", 4, 2, "y", sizes)
    name = model.graph.output[0].name
    actual = backend.compile_and_run(model, partition, draft.inputs, [name], False, ["--target", "emulated"])
    found = differences(actual, {name: expected.astype(np.float32)})
    assert not found, found


def assemble(request):
    """Compiles a case for real devices; returns what is wrong with its kernels. Runs in a worker."""
    name, folder, archs = request
    case = fixed_cases()[name] if isinstance(name, str) else random_case(name)
    artifact = f"{folder}/model.dvt"
    extra = ["--target", "cuda", "--arch", ",".join(archs)]
    fastest_backend().compile(case.model, artifact, case.partition, libraries=False, extra=extra)
    code, report, messages = call([tool("dovetail-run"), "inspect", artifact, "--json"])
    assert code == 0, messages
    report = json.loads(report)
    kernels = {step["symbol"] for step in report["prologue"] + report["steps"] if step["kind"] == "kernel"}
    for arch in archs:
        assembled = {kernel["symbol"] for kernel in report["kernels"] if kernel["arch"] == arch}
        assert assembled == kernels, f"{case}: {arch} has {assembled}, not {kernels}"
    family = getattr(GENERATORS.get(case.model.graph.node[-1].op_type), "__module__", None)
    if family in NEVER_SPILL or case.name.startswith(TILED):
        spilled = [kernel for kernel in report["kernels"] if kernel["spill_bytes"]]
        assert not spilled, f"{case}: {spilled}"
    return ""


@pytest.fixture(scope="module")
def assembler(backend):
    pool = IsolatedPool(assemble, lambda request, message: message)
    yield pool
    pool.close()


def test_roots_are_rounded_once(backend, tmp_path):
    """What the emulated device cannot see: libdevice's root is an approximation."""
    draft = Draft(np.random.default_rng(0))
    for dtype in (np.float16, np.float32, np.float64):
        draft.node("Sqrt", draft.input(np.ones([40], dtype), f"x{np.dtype(dtype).itemsize}"))
    onnx.save(draft.model(), tmp_path / "roots.onnx")
    command = ["compile", tmp_path / "roots.onnx", "-o", tmp_path / "roots.dvt", "--dump-phases", tmp_path / "phases"]
    code, _, messages = call([tool("dovetail"), *map(str, command), "--target", "cuda"])
    assert code == 0, messages
    assembly = next((tmp_path / "phases").glob("*.s")).read_text()
    roots = set(re.findall(r"sqrt[.a-z0-9]*", assembly))
    assert roots == {"sqrt.rn.f32", "sqrt.rn.f64"}


def test_many_arguments(backend, tmp_path):
    """A kernel of so many tensors would have more arguments than a GPU takes."""
    draft = Draft(np.random.default_rng(0))
    values = {f"x{i}": np.full([1, 1, 1 + i % 2, 2], i, np.float32) for i in range(900)}
    result = draft.node("Concat", *(draft.input(value, name) for name, value in values.items()), axis=2)
    onnx.save(draft.model(), tmp_path / "wide.onnx")
    extra = ["--target", "cuda"]
    fastest_backend().compile(tmp_path / "wide.onnx", tmp_path / "wide.dvt", Partition({"y": 1}), extra=extra)
    partition = Partition({"y": 2}).split(result, 4, 2, "y", [500, 850])
    flags = ["--target", "emulated"]
    actual = backend.compile_and_run(tmp_path / "wide.onnx", partition, values, [result], False, flags)
    assert np.array_equal(actual[result], np.concatenate(list(values.values()), 2))


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("reduction", ["none", "add", "max"])
@pytest.mark.parametrize("shape", [(70_001,), (257, 300), (5, 3, 41, 97)], ids=str)
def test_scatter_by_many_threads(backend, tmp_path, shape, reduction, ranks):
    """Threads own parts of what is scattered to. Updates of a place come in their order, so that no bit varies."""
    rng = np.random.default_rng(len(shape))
    data = rng.standard_normal(shape).astype(np.float32)
    # Few places in some of the dimensions: many updates meet.
    indices = np.stack([rng.integers(-extent, extent, 200) // 7 * 7 % extent for extent in shape], -1)
    updates = rng.standard_normal(200).astype(np.float32)
    draft = Draft(rng)
    values = {"data": data, "indices": indices, "updates": updates}
    inputs = [draft.input(value, name) for name, value in values.items()]
    result = draft.node("ScatterND", *inputs, reduction=reduction)
    onnx.save(draft.model(), tmp_path / "scatter.onnx")
    expected = data.copy()
    for place, update in zip(map(tuple, indices), updates):
        expected[place] = {
            "none": update, "add": expected[place] + update, "max": max(expected[place], update)
        }[reduction]
    partition = Partition({"y": ranks})
    if ranks > 1:
        longest = int(np.argmax(shape))
        partition.split("data", len(shape), longest, "y", [1, 0, shape[longest] - 1])
    flags = ["--target", "emulated"]
    actual = backend.compile_and_run(tmp_path / "scatter.onnx", partition, values, [result], False, flags)
    assert np.array_equal(actual[result], expected)


@pytest.mark.parametrize("number, name", list(enumerate([*fixed_cases(), *range(FIRST_SEED, FIRST_SEED + COUNT)])))
def test_assembled(assembler, tmp_path, number, name):
    """Each case for one architecture in turn, in `make verify-all` for all."""
    assert assembler((name, str(tmp_path), some(ARCHS, number, 1))) == ""
