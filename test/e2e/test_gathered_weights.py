# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where memory does not suffice for whole weights, ranks store pieces, and gather them just in time."""

import json
import re

import dovetail_models
import numpy as np
import onnx
import pytest
from harness.backend import build_dir, call, fastest_backend, tool
from harness.compare import differences
from harness.partition import Partition
from onnx import TensorProto, helper, numpy_helper
from test_processes import run_ranks

DOES_NOT_FIT = 6
MESHES = {"2": {"y": 2}, "3": {"y": 3}, "4": {"y": 4}, "2x2": {"y": 2, "x": 2}}
FLOAT = 4


def _weights(name, *shape):
    values = np.random.default_rng(len(name) + sum(map(ord, name))).standard_normal(shape)
    return numpy_helper.from_array((values / np.sqrt(np.prod(shape[1:]))).astype(np.float32), name)


def _model(name, nodes, inits, shape):
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        inits,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _mlp(rows=512, narrow=131, wide=259, layers=6):
    """So many rows that to send weights is cheaper than to send values; 131 and 259 are prime or almost so."""
    nodes, inits, value = [], [], "x"
    for layer in range(layers):
        last = "y" if layer + 1 == layers else f"x{layer}"
        inits += [_weights(f"up{layer}", narrow, wide), _weights(f"down{layer}", wide, narrow)]
        nodes += [
            helper.make_node("MatMul", [value, f"up{layer}"], [f"h{layer}"]),
            helper.make_node("Relu", [f"h{layer}"], [f"a{layer}"]),
            helper.make_node("MatMul", [f"a{layer}", f"down{layer}"], [last]),
        ]
        value = last
    return _model("mlp", nodes, inits, [rows, narrow])


def _conv(channels=67, extent=40, layers=16):
    """As large, for the same reason; so that memory limits what is done, values are still smaller than all weights."""
    nodes, inits, value = [], [], "x"
    for layer in range(layers):
        last = "y" if layer + 1 == layers else f"x{layer}"
        inits.append(_weights(f"w{layer}", channels, channels, 3, 3))
        nodes += [
            helper.make_node("Conv", [value, f"w{layer}"], [f"c{layer}"], kernel_shape=[3, 3], pads=[1] * 4),
            helper.make_node("Relu", [f"c{layer}"], [last]),
        ]
        value = last
    return _model("conv", nodes, inits, [1, channels, extent, extent])


#: With how the input is split, and as many whole weights as there is room for: one that is gathered, and those that lie
#: in a library's blocks, which take twice as much for 67 channels. With more room sums of parts need no weights.
MODELS = {"mlp": (_mlp, ["y", "_"], 3.5), "conv": (_conv, ["_", "_", "y", "_"], 4)}


def _sizes(model):
    return [FLOAT * int(np.prod(init.dims)) for init in model.graph.initializer]


def _inputs(model):
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    return {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}


def _json(*command):
    code, text, messages = call(command)
    assert code == 0, messages
    return json.loads(text)


def _compile(model, folder, *flags):
    onnx.save(model, folder / "m.onnx")
    return call([tool("dovetail"), "compile", folder / "m.onnx", "-o", folder / "m.dvt", *map(str, flags)])


def _plan(model, folder, *flags):
    code, _, messages = _compile(model, folder, *flags)
    assert code == 0, messages
    return _json(tool("dovetail"), "inspect", "--json", folder / "m.dvt")


def _most(plan, key="total_bytes"):
    return max(rank[key] for rank in plan["ranks"])


def _gathers(plan, model):
    """The steps of exchanges that move weights."""
    types = {f"float32[{', '.join(map(str, init.dims))}]" for init in model.graph.initializer}
    return [e["step"] for e in plan["exchanges"] if any(move["tensor"] in types for move in e["moves"])]


def _limit(model, ranks, room, values):
    """Memory for the pieces of all weights, for `room` of them whole, and for the values."""
    sizes = _sizes(model)
    return int(1.05 * sum(sizes) / ranks + room * max(sizes) + values)


def _values(model, folder, *flags):
    """Memory of values with algorithms that need no larger weights: without AVX-512 they gather windows of 67 channels."""
    return _most(_plan(model, folder, *flags, "--math", "f32-strict"), "values_bytes")


def _flags(mesh, shard, objective="time"):
    return Partition(mesh, {"x": shard}, objective=objective).flags()


@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("name", MODELS)
def test_pieces_suffice(tmp_path, name, mesh):
    """Whole weights do not fit, pieces do. Results are exact, and memory is what sessions allocate."""
    make, shard, room = MODELS[name]
    model, ranks = make(), int(np.prod(list(mesh.values())))
    assert not _gathers(_plan(model, tmp_path, *_flags(mesh, shard)), model)
    values = _values(model, tmp_path, *_flags(mesh, shard))
    limit = _limit(model, ranks, room, values)
    assert limit < sum(_sizes(model)) + values
    plan = _plan(model, tmp_path, *_flags(mesh, shard), "--memory", limit)
    assert _most(plan) <= limit
    assert _gathers(plan, model)
    measured = _json(
        tool("dovetail-run"), "bench", "--json", "--iterations", 1, "--warmup", 0, "--threads", ranks, tmp_path / "m.dvt"
    )
    for rank in plan["ranks"]:
        del rank["received_bytes"]
        rank["message_bytes"] = 0  # Ranks are threads.
    assert plan["ranks"] == measured["memory"]
    inputs = _inputs(model)
    expected = dovetail_models.run_onnxruntime(model, inputs)
    partition = Partition(mesh, {"x": shard}, objective="time")
    actual = fastest_backend().compile_and_run(model, partition, inputs, ["y"], extra=["--memory", str(limit)])
    assert not differences(actual, expected)


@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("mesh", [MESHES["3"], MESHES["4"], MESHES["2x2"]], ids=["3", "4", "2x2"])
def test_processes(tmp_path, mesh, target):
    """Ranks that do not see each other's memory send each other pieces; even ones are gathered by the transport."""
    # 64 channels and rows are divided by 2 and 4, not by 3. Of so many weights pieces take less memory.
    model = _mlp(rows=640, narrow=64, wide=96, layers=8)
    flags = [*_flags(mesh, ["y", "_"], "memory"), "--target", target, "--no-libraries"]
    plan = _plan(model, tmp_path, *flags)
    assert _gathers(plan, model)
    inputs = _inputs(model)
    np.save(tmp_path / "x.npy", inputs["x"])
    expected = dovetail_models.run_onnxruntime(model, inputs)
    ranks = int(np.prod(list(mesh.values())))
    run = ["run", tmp_path / "m.dvt", "--input", f"x=@{tmp_path}/x.npy"]
    for name in expected:
        run += ["--output", f"{name}={tmp_path}/{name}.npy"]
    for code, _, messages in run_ranks(run, ranks):
        assert code == 0, messages
    assert not differences({name: np.load(tmp_path / f"{name}.npy") for name in expected}, expected)


def test_weights_are_freed(tmp_path):
    """One weight at a time is whole; where exchanges go on beside steps, that of the next layer, too."""
    model = _mlp(rows=2048)
    flags = ["--mesh", "y=2", "--shard", "x=y,_", "--no-libraries"]
    largest = max(_sizes(model))
    for target, at_once in (("cpu", 1), ("emulated", 2)):
        whole = _plan(model, tmp_path, *flags, "--target", target)
        # What is planned: kernels of devices that finish products need less.
        prediction = tmp_path / "plan.json"
        command = [tool("dovetail"), "plan", tmp_path / "m.onnx", *flags, "--target", target, "--json", prediction]
        assert call(command)[0] == 0
        values = max(rank["memory"]["values_bytes"] for rank in json.loads(prediction.read_text())["ranks"])
        assert values >= _most(whole, "values_bytes")
        # Less than there is for any other way: every weight is stored in pieces.
        limit = int(sum(_sizes(model)) / 2 * 1.02 + (at_once + 0.2) * largest + values)
        plan = _plan(model, tmp_path, *flags, "--target", target, "--memory", limit)
        assert _most(plan) <= limit
        gathers = _gathers(plan, model)
        assert gathers
        launches = [n for n, step in enumerate(plan["steps"]) if step["kind"] == "kernel"]
        for gather in gathers:
            users = [n for n in launches if n > gather]
            assert users, "a gather comes before a step"
        assert _most(plan, "values_bytes") <= _most(whole, "values_bytes") + at_once * (largest + 1024)


def test_remarks_and_plan(tmp_path):
    model = _mlp()
    flags = ["--mesh", "y=2", "--shard", "x=y,_"]
    limit = _limit(model, 2, 3.5, _values(model, tmp_path, *flags))
    code, _, messages = _compile(model, tmp_path, *flags, "--memory", limit, "--remarks")
    assert code == 0
    assert re.search(r"weights of shape \[(131, 259|259, 131)\] are stored in pieces", messages), messages
    assert "gathered just in time" in messages
    plan = tmp_path / "plan.json"
    code, text, messages = call(
        [tool("dovetail"), "plan", tmp_path / "m.onnx", *flags, "--memory", limit, "--json", plan]
    )
    assert code == 0, messages
    predicted, compiled = json.loads(plan.read_text()), _json(tool("dovetail"), "inspect", "--json", tmp_path / "m.dvt")
    assert all(rank["memory"]["total_bytes"] <= limit for rank in predicted["ranks"])
    assert [step["kind"] for step in predicted["steps"]] == [step["kind"] for step in compiled["steps"]]


def test_too_little(tmp_path):
    """Where pieces do not fit, either, the message names a mesh on which they do."""
    model = _mlp()
    flags = ["--shard", "x=y,_"]
    least = sum(_sizes(model)) // 2
    code, _, messages = _compile(model, tmp_path, "--mesh", "y=2", *flags, "--memory", least)
    assert code == DOES_NOT_FIT, messages
    mesh = re.search(r"'--mesh (y=\d+)'", messages)[1]
    plan = _plan(model, tmp_path, "--mesh", mesh, *flags, "--memory", least)
    assert _most(plan) <= least and _gathers(plan, model)


def test_devices(tmp_path, monkeypatch):
    """On a driver, cuDNN and cuBLASLt that are imitated on the host; see `test/unit/Cuda`."""
    imitations = build_dir() / "test" / "unit" / "Cuda"
    if not (imitations / "cudnn").exists():
        pytest.skip("the plug-in for CUDA is not built")
    monkeypatch.setenv("DOVETAIL_CUDA_PATH", ":".join(str(imitations / n) for n in ("driver", "cudnn", "cublaslt")))
    model = _mlp(rows=2048)
    flags = ["--mesh", "y=3", "--shard", "x=y,_", "--target", "cuda", "--arch", "sm_90", "--cluster", "h100"]
    whole = _plan(model, tmp_path, *flags)
    limit = _most(whole) - sum(_sizes(model)) // 4
    plan = _plan(model, tmp_path, *flags, "--memory", limit)
    assert _most(plan) <= limit and _gathers(plan, model)
    measured = _json(tool("dovetail-run"), "bench", "--json", "--iterations", 1, "--warmup", 0, tmp_path / "m.dvt")
    for rank in plan["ranks"]:
        del rank["received_bytes"]
        rank["message_bytes"] = 0
    assert plan["ranks"] == measured["memory"]
