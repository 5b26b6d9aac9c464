# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An If computes the branch that a run takes alone, where that saves much; against ONNX Runtime."""

import json

import numpy as np
import onnx
import pytest
from harness.backend import call, tool
from loops import HEAD, check_run, small_values


@pytest.mark.parametrize("rows", [64, 25])
def test_only_one_branch_runs(dovetail, tmp_path, rows):
    """Steps of the branch that is not taken take no time in a trace, also where branches differ in extents."""
    text = f"""{HEAD}
    one (bool taken, float[64, 64] x) => (float[{64 if rows == 64 else "n"}, 64] y)
      <int64[1] start = {{0}}, int64[1] end = {{{rows}}}>
    {{
      y = If(taken) <then_branch = yes () => (float[64, 64] p) {{ p = MatMul(x, x) }},
                     else_branch = no () => (float[{rows}, 64] q) {{
                       t = Mul(x, x) u = Slice(t, start, end) r = MatMul(u, x) s = MatMul(r, t) q = Neg(s)
                     }}>
    }}
    """
    model = onnx.parser.parse_model(text)
    artifact = tmp_path / "model.dvt"
    dovetail.compile(model, options=["--mesh", "y=2"]).save(artifact)
    x = small_values(16, 64, 64)
    np.save(tmp_path / "x.npy", x)
    for taken, products in ((True, 1), (False, 2)):
        np.save(tmp_path / "taken.npy", np.array(taken))
        files = {"trace": tmp_path / "trace.json", "y": tmp_path / "y.npy"}
        command = ["run", artifact, "--input", f"x=@{tmp_path}/x.npy", "--input", f"taken=@{tmp_path}/taken.npy"]
        command += ["--trace", files["trace"], "--output", f"y={files['y']}"]
        code, _, messages = call([tool("dovetail-run"), *command])
        assert code == 0, messages
        check_run({"y": np.load(files["y"])}, model, {"taken": np.array(taken), "x": x}, False, str(taken))
        events = json.loads(files["trace"].read_text())["traceEvents"]
        run = [event for event in events if event.get("cat") == "matmul" and event["pid"] == 0]
        assert len(run) == 3 and sum(event["dur"] > 0 for event in run) == products


def _many(first, name, operations):
    """So many operations behind each other, from `first` to `name`."""
    names = [first, *(f"{name}{i}" for i in range(operations - 1)), name]
    return " ".join(
        f"{after} = {'Sub' if i % 2 else 'Add'}({before}, {'b' if i % 2 else 'a'})"
        for i, (before, after) in enumerate(zip(names, names[1:]))
    )


@pytest.mark.parametrize("operations, products", [(100, 1), (10, 2)])
def test_devices_choose_what_is_much(dovetail, tmp_path, operations, products):
    """A device runs one branch where that saves much, and computes both where it does not."""
    text = f"""{HEAD}
    much (bool taken, float[256, 256] a, float[256, 256] b) => (float[256, 256] y)
    {{
      y = If(taken) <then_branch = yes () => (float[256, 256] p) {{ m = MatMul(a, b) {_many("m", "p", operations)} }},
                     else_branch = no () => (float[256, 256] q) {{ n = MatMul(b, a) {_many("n", "q", operations)} }}>
    }}
    """
    model = onnx.parser.parse_model(text)
    artifact = tmp_path / "model.dvt"
    program = dovetail.compile(model, libraries=False, options=["--mesh", "y=2", "--target", "emulated"])
    program.save(artifact)
    inputs = {"a": small_values(17, 256, 256), "b": small_values(18, 256, 256)}
    # Each side is recorded when it is taken for the second time, and replayed from then on.
    for taken in (True, False, True, True, False, False, True):
        inputs["taken"] = np.array(taken)
        check_run(program.run(inputs), model, inputs, False, str(taken))
    command = ["run", artifact, "--output", f"y={tmp_path}/y.npy", "--trace", tmp_path / "trace.json"]
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        command += ["--input", f"{name}=@{tmp_path}/{name}.npy"]
    code, _, messages = call([tool("dovetail-run"), *command])
    assert code == 0, messages
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel" and event["pid"] == 0]
    assert sum(event["dur"] > 0 and "MatMul" in event["name"] for event in kernels) == products, kernels
