# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of kinds that oneDNN has no fast implementation for: dilated, causal, of even kernels, with pads as wide as
windows reach, in small groups, transposed. Against ONNX Runtime, whole and split; and that no reference implementation of
oneDNN computes any of them.

The cases are those of bench/sweep.py that take little time.
"""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from harness.backend import ROOT, build_dir, call, tool
from harness.compare import differences
from harness.cpus import runnable_cpus
from harness.extent import EVERYTHING
from harness.oracle import expected_outputs
from harness.partition import Partition, sizes_with_empty_shard
from harness.sanitizers import sanitizers

sys.path.append(str(ROOT / "bench"))

import sweep  # noqa: E402

#: Multiplications of a case, at most.
WORK = 8e6
_ALL = [case for case in sweep.make_cases(seed=2, count=1200) if case.work <= WORK and case.kind != "product"]
#: Transposed ones of few channels of results have an algorithm of their own, and taps that read padding alone are left out
#: where windows reach far.
_SCATTERED = [c for c in _ALL if c.kind == "transposed" and c.attributes["group"] == 1 and c.shape[1] >= 2 * c.weights[1] and c.weights[1] <= 16]
_FAR = [c for c in _ALL if c.kind == "aspp" and 3 * c.attributes["dilations"][0] > c.shape[2]]
CASES = _ALL[: 72 if EVERYTHING else 32]
CASES += [case for case in [*_SCATTERED[:: 1 if EVERYTHING else 4][:9], *_FAR[:3]] if case not in CASES]


_CUT = [*range(0, 32, 3), *range(32, len(CASES))]


def _lower(folder, model, partition, *options):
    """The plan."""
    onnx.save(model, folder / "model.onnx")
    command = [tool("dovetail"), "compile", folder / "model.onnx", "--compile-to=lower", *partition.flags(), *options]
    code, text, messages = call(command)
    assert code == 0, messages
    return text


def _is_gathered(folder, model, *options):
    return "convolution_algorithm gathered" in _lower(folder, model, Partition({"y": 1}), *options)


def test_cases_are_of_all_kinds():
    assert {case.kind for case in CASES} == set(sweep.KINDS)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{case.kind}-{case.name}" for case in CASES])
def test_split(backend, number):
    """Each case for one CPU in turn, and split along one dimension in turn, into parts of which one is empty."""
    case = CASES[number]
    cpus = runnable_cpus()
    cpu = cpus[number % len(cpus)]
    model, inputs = case.model(), case.inputs()
    expected = expected_outputs(model, inputs)
    dim = (2 + number % (len(case.shape) - 2)) if number % 4 else number // 4 % 2
    partition = Partition({"y": 3}).split("x", len(case.shape), dim, "y", sizes_with_empty_shard(case.shape[dim], 3))
    for split in (Partition({"y": 1}), partition):
        actual = backend.compile_and_run(model, split, inputs, list(expected), extra=["--cpu", cpu])
        assert not differences(actual, expected), f"{case.label} for {cpu}, {split.flags()}"


@pytest.mark.parametrize("number", _CUT, ids=[f"{CASES[number].kind}-{CASES[number].name}" for number in _CUT])
def test_partitions_do_not_matter(backend, tmp_path, number):
    """Results of own kernels are bitwise those of one rank, however images are cut, and channels of results, inside of
    groups as well."""
    case = CASES[number]
    model, inputs = case.model(), case.inputs()
    options = ["--cpu", runnable_cpus()[number // (3 if number < 32 else 1) % len(runnable_cpus())]]
    if not _is_gathered(tmp_path, model, *options):
        pytest.skip("the library does it")
    whole = backend.compile_and_run(model, Partition({"y": 1}), inputs, ["y"], extra=options)["y"]
    for tensor, dim in [("y", 1), *(("x", dim) for dim in range(2, len(case.shape)))]:
        extent = whole.shape[1] if tensor == "y" else case.shape[dim]
        partition = Partition({"y": 2}).split(tensor, len(case.shape), dim, "y", (1, extent - 1))
        # Ranks may have parts of sums where there are few channels of results: these are rounded differently.
        if "partial = sum" in _lower(tmp_path, model, partition, *options):
            continue
        actual = backend.compile_and_run(model, partition, inputs, ["y"], extra=options)["y"]
        np.testing.assert_array_equal(actual, whole, err_msg=f"{case.label}, '{tensor}' cut along {dim}")


@pytest.mark.parametrize("cpu", runnable_cpus())
def test_threads_do_not_matter(cpu):
    import dovetail

    for case in [*_SCATTERED[:3], *_FAR[:1]]:
        program = dovetail.compile(case.model(), options=["--mesh", "y=1", "--cpu", cpu])
        one, three = (program.run(case.inputs(), threads=threads)["y"] for threads in (1, 3))
        np.testing.assert_array_equal(one, three, err_msg=case.label)


def test_some_are_gathered(tmp_path):
    """Else there would be nothing to compare above."""
    number = sum(_is_gathered(tmp_path, case.model(), "--cpu", "x86-64-v3") for case in CASES[::3])
    assert number >= len(CASES[::3]) // 3


@pytest.mark.parametrize("cpu", [cpu for cpu in sweep.CPUS if cpu in runnable_cpus()])
def test_no_reference(tmp_path, cpu):
    """Nor is anything said of one."""
    if sanitizers(build_dir()):
        pytest.skip("what computes does not depend on sanitizers")
    references = {}
    for case in CASES:
        onnx.save(case.model(), tmp_path / "model.onnx")
        command = [tool("dovetail"), "compile", tmp_path / "model.onnx", "-o", tmp_path / "model.dvt", "--cpu", cpu]
        code, _, messages = call(command)
        assert code == 0, messages
        result = subprocess.run(
            [tool("dovetail"), "bench", tmp_path / "model.dvt", "--json", "--warmup", "0", "--iterations", "1"],
            capture_output=True, text=True, check=True, env=sweep.environment(cpu),
        )  # fmt: skip
        report = json.loads(result.stdout)
        assert len(report["implementations"]) >= 1, case.label
        slow = [step["implementation"] for step in report["implementations"] if step["is_reference"]]
        if slow or "reference" in result.stderr:
            references[case.label] = slow, result.stderr
    assert not references

