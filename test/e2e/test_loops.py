# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose iterations are counted when the program runs, whole and split; against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from harness.extent import one_of
from harness.oracle import expected_outputs
from loops import CASES, HEAD, STACKED, check_run, integer_values, make_partition, scalar
from test_processes import run_ranks

MESHES = [{"y": 1}, {"y": 2}, {"y": 3}, {"y": 4}, {"y": 2, "x": 2}]


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_runs_differ_in_iterations(dovetail, case, mesh):
    """One program with as many iterations as its inputs say, none among them."""
    text, tensors, exact, runs = CASES[case]
    model = onnx.parser.parse_model(text)
    for libraries in (True, False):
        program = dovetail.compile(model, libraries=libraries, options=make_partition(mesh, model, tensors).flags())
        for number, inputs in enumerate(runs):
            check_run(program.run(inputs), model, inputs, exact, f"run {number}")


@one_of(2)
@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", CASES)
def test_any_way_to_split(dovetail, case, seed, target):
    """What is split at random, and how the planner would never do it."""
    text, _, exact, runs = CASES[case]
    model = onnx.parser.parse_model(text)
    options = ["--target", target, "--mesh", "y=3,x=2", "--shardings-seed", str(seed + 1)]
    program = dovetail.compile(model, libraries=target == "cpu", options=options)
    for number, inputs in enumerate(runs):
        check_run(program.run(inputs), model, inputs, exact, f"run {number}")


def test_results_of_all_iterations(dovetail):
    """A long sequence, forward and backward, stacked along another dimension."""
    text = f"""{HEAD}
    rows (float[3, 3000] x, float[3] start) => (float[3] last, float[3, 3000] sums, float[3000, 3] back)
    {{
      last, sums, back = Scan<num_scan_inputs = 2, scan_input_axes = [1, 1], scan_input_directions = [0, 1],
                              scan_output_axes = [1, 0], scan_output_directions = [0, 1],
                              body = each (float[3] s, float[3] a, float[3] b) => (float[3] t, float[3] u, float[3] v) {{
        t = Add(s, a)
        u = Neg(t)
        v = Sub(t, b)
      }}>(start, x, x)
    }}
    """
    model = onnx.parser.parse_model(text)
    inputs = {"x": integer_values(14, 3, 3000), "start": integer_values(15, 3)}
    for mesh in ({"y": 1}, {"y": 2}, {"y": 3}):
        program = dovetail.compile(model, options=make_partition(mesh, model, {"x": 0}).flags())
        check_run(program.run(inputs), model, inputs, True, str(mesh))


def test_results_that_are_left_out(dovetail):
    """A stacked result without a name, which ONNX Runtime does not take: what others are is known of the whole model."""
    whole, model = onnx.parser.parse_model(STACKED), onnx.parser.parse_model(STACKED)
    loop, total = (node for node in model.graph.node if node.op_type in ("Loop", "ReduceSum"))
    model.graph.node.remove(total)
    loop.output[1] = ""
    for output in [output for output in model.graph.output if output.name in ("all", "total")]:
        model.graph.output.remove(output)
    # Where the condition is not given either, its name is the same.
    for condition, limits in (("begins", (7, -9)), ("", (7, 99))):
        for each in (whole, model):
            next(node for node in each.graph.node if node.op_type == "Loop").input[1] = condition
        program = dovetail.compile(model, mesh={"y": 2})
        for limit in limits:
            inputs = {"x": integer_values(20, 7, 6), "limit": scalar(limit, np.float32)}
            actual, expected = program.run(inputs), expected_outputs(whole, inputs)
            for name in ("last", "largest"):
                np.testing.assert_array_equal(actual[name], expected[name], f"limit {limit}, {name}")


@pytest.mark.parametrize("target", ["cpu", "emulated"])
def test_processes_decide_together(dovetail, tmp_path, target):
    """Rank 0 tells the others, which are processes, whether there is another iteration."""
    text, tensors, _, runs = CASES["found"]
    model = onnx.parser.parse_model(text)
    artifact = tmp_path / "model.dvt"
    options = ["--target", target, *make_partition({"y": 3}, model, tensors).flags()]
    dovetail.compile(model, libraries=target == "cpu", options=options).save(artifact)
    command = ["run", artifact, "--output", f"smooth={tmp_path}/smooth.npy", "--output", f"largest={tmp_path}/largest.npy"]
    for name, value in runs[0].items():
        np.save(tmp_path / f"{name}.npy", value)
        command += ["--input", f"{name}=@{tmp_path}/{name}.npy"]
    for code, _, messages in run_ranks(command, 3):
        assert code == 0, messages
    actual = {name: np.load(tmp_path / f"{name}.npy") for name in ("smooth", "largest")}
    check_run(actual, model, runs[0], False, "processes")


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_devices_repeat(dovetail, monkeypatch, case, mesh):
    """The emulated device, in two orders of its work. Iterations are recorded once, and replayed in all runs."""
    text, tensors, exact, runs = CASES[case]
    model = onnx.parser.parse_model(text)
    options = ["--target", "emulated", *make_partition(mesh, model, tensors).flags()]
    program = dovetail.compile(model, libraries=False, options=options)
    for seed in ("0", "1"):
        monkeypatch.setenv("DOVETAIL_EMULATED_SEED", seed)
        for number, inputs in enumerate(runs):
            check_run(program.run(inputs), model, inputs, exact, f"seed {seed}, run {number}")
