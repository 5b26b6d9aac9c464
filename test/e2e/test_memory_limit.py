# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs fit the memory that ranks have, by `--memory` or by their devices, or it is said why not."""

import json
import re

import dovetail_models
import numpy as np
import onnx
import pytest
from harness.backend import call, fastest_backend, tool
from harness.compare import differences
from harness.partition import Partition
from onnx import TensorProto, helper

DOES_NOT_FIT = 6
LAYERS = 4


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """8 heads of 32, 2 key/value heads, 211 tokens."""
    path = tmp_path_factory.mktemp("llama") / "llama.onnx"
    path.write_bytes(dovetail_models.build("llama").SerializeToString())
    return path


def _compile(model, tmp_path, *flags):
    return call([tool("dovetail"), "compile", model, "-o", tmp_path / "m.dvt", *map(str, flags)])


def _plan(model, tmp_path, *flags):
    code, _, messages = _compile(model, tmp_path, *flags)
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", "--json", tmp_path / "m.dvt"])
    assert code == 0, messages
    return json.loads(text)


def _most(plan):
    return max(rank["total_bytes"] for rank in plan["ranks"])


def test_weights_are_divided(llama, tmp_path):
    """With 0.6 of what replicated weights need, heads and hidden activations are divided as in Megatron's pattern."""
    replicated = _plan(llama, tmp_path, "--mesh", "t=2", "--objective", "bytes")
    limit = int(0.6 * _most(replicated))
    plan = _plan(llama, tmp_path, "--mesh", "t=2", "--objective", "bytes", "--memory", limit)
    assert _most(plan) <= limit
    splits = {step["name"]: step["writes"][0]["sharding"] for step in plan["steps"] if step["kind"] == "matmul"}
    for layer in range(LAYERS):
        assert splits[f"/layers.{layer}/scores"] == "[_, t:4+4, _, _]"
        assert splits[f"/layers.{layer}/up"] == "[_, _, t:344+344]"
    scores = [n for n, step in enumerate(plan["steps"]) if step["name"].endswith("/scores")]
    for begin, end in zip(scores, scores[1:]):
        # Two all-reduces of 211 x 256, or less.
        assert sum(e["bytes"] for e in plan["exchanges"] if begin < e["step"] <= end) <= 4 * 211 * 256 * 4


def test_more_memory_costs_no_more(llama, tmp_path):
    """The planner only estimates what programs take, so that some are made until one fits: not the worst of them."""
    flags = ["--mesh", "t=2", "--objective", "bytes"]
    most = _most(_plan(llama, tmp_path, *flags))
    received = []
    for share in (0.62, 0.65, 0.7, 0.75):
        plan = _plan(llama, tmp_path, *flags, "--memory", int(share * most))
        assert _most(plan) <= share * most
        received.append(sum(exchange["bytes"] for exchange in plan["exchanges"]))
    assert received == sorted(received, reverse=True)


def test_just_above_and_below(llama, tmp_path):
    """What a program needs is enough, and leads to that program."""
    flags = ["--mesh", "t=2", "--objective", "bytes"]
    plan = _plan(llama, tmp_path, *flags)
    assert _plan(llama, tmp_path, *flags, "--memory", _most(plan))["exchanges"] == plan["exchanges"]
    below = _plan(llama, tmp_path, *flags, "--memory", _most(plan) - 1)
    assert _most(below) < _most(plan)


def test_too_little(llama, tmp_path):
    """The message says how many ranks would do, and then they do."""
    code, _, messages = _compile(llama, tmp_path, "--mesh", "t=2", "--memory", "6MiB")
    assert code == DOES_NOT_FIT
    assert re.search(r"rank \d needs 7\.\d MiB, and has 6\.0 MiB", messages), messages
    assert "most room is taken by" in messages
    mesh = re.search(r"'--mesh (t=\d+)'", messages)[1]
    assert _most(_plan(llama, tmp_path, "--mesh", mesh, "--memory", "6MiB")) <= 6 << 20
    code, _, messages = _compile(llama, tmp_path, "--mesh", "t=2", "--memory", "64KiB")
    assert code == DOES_NOT_FIT and "no mesh" in messages, messages


def test_warnings_come_once(tmp_path):
    """What is said of programs that are made on the way is left out."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "exp", values[:1], values[1:])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    code, _, messages = _compile(path, tmp_path, "--mesh", "a=5", "--memory", "1GiB")
    assert code == 0 and messages.count("have no work") == 1, messages


def test_devices_have_memory(llama, tmp_path):
    cluster = {"name": "small", "devices": {"core": {"base": "cpu", "memory": "15MiB"}}}
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    plan = _plan(llama, tmp_path, "--mesh", "t=2", "--cluster", tmp_path / "cluster.json")
    assert _most(plan) <= 15 << 20


def _cluster(tmp_path, *memory):
    """A file: ranks that differ by their memory alone."""
    devices = {f"core{i}": {"base": "cpu", "memory": size} for i, size in enumerate(memory)}
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"devices": devices, "ranks": list(devices)}))
    return path


def test_each_rank_has_its_own_memory(llama, tmp_path):
    """What devices have that are no ranks does not matter, and a rank may take more than another one has."""
    free = _plan(llama, tmp_path, "--mesh", "t=2")
    needed = [rank["total_bytes"] for rank in free["ranks"]]
    assert needed[0] > needed[1]
    for memory in ((*needed, 1), (needed[0], needed[0] - 1)):
        plan = _plan(llama, tmp_path, "--mesh", "t=2", "--cluster", _cluster(tmp_path, *memory))
        assert plan["exchanges"] == free["exchanges"], memory
    limits = needed[0], needed[1] - 1
    plan = _plan(llama, tmp_path, "--mesh", "t=2", "--cluster", _cluster(tmp_path, *limits))
    assert all(rank["total_bytes"] <= limit for rank, limit in zip(plan["ranks"], limits, strict=True))


def test_no_more_ranks_than_the_cluster_has(llama, tmp_path):
    code, _, messages = _compile(llama, tmp_path, "--mesh", "t=2", "--memory", "6MiB")
    assert code == DOES_NOT_FIT and re.search(r"'--mesh t=\d+'", messages), messages
    cluster = _cluster(tmp_path, "6MiB", "6MiB")
    code, _, messages = _compile(llama, tmp_path, "--mesh", "t=2", "--cluster", cluster)
    assert code == DOES_NOT_FIT and "no mesh with more ranks" in messages, messages


def test_a_mesh_is_made_that_fits(tmp_path):
    """Of 16 ranks along one axis 4 have something of such a tensor, of 4 x 4 all have."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4] * 6) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "exp", values[:1], values[1:])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    least = _most(_plan(path, tmp_path, "--mesh", "a=4,b=4", "--objective", "memory"))
    assert least < _most(_plan(path, tmp_path, "--mesh", "a=16", "--objective", "memory"))
    # Beginning an exchange takes so long that all compute all of it.
    cluster = {"devices": {"core": {"base": "cpu", "step": "10ms"}}}
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    plan = _plan(path, tmp_path, "--mesh", "auto=16", "--cluster", tmp_path / "cluster.json", "--memory", least)
    assert _most(plan) <= least


def test_results_are_the_same(backend, tmp_path):
    model = dovetail_models.build("llama")
    inputs = {"ids": np.random.default_rng(0).integers(0, 512, (1, 211))}
    outputs = [output.name for output in model.graph.output]
    expected = dovetail_models.run_onnxruntime(model, inputs)
    actual = fastest_backend().compile_and_run(
        model, Partition({"t": 3}, objective="time"), inputs, outputs, extra=["--memory", "13MiB"]
    )
    assert not differences(actual, expected)


def test_axes_are_made(llama, tmp_path):
    plan = _plan(llama, tmp_path, "--mesh", "auto=6")
    assert np.prod([axis["size"] for axis in plan["mesh"]]) == 6 and len(plan["ranks"]) == 6
    code, _, messages = _compile(llama, tmp_path, "--mesh", "auto=6", "--remarks")
    assert code == 0 and 'the mesh is a=' in messages and ' a=2,b=3 ' in messages, messages
    for flags, message in (
        (["--mesh", "auto=0"], "expected a number of ranks"),
        (["--mesh", "auto=4", "--shard", "ids=_,a"], "the compiler makes the axes"),
        (["--memory", "much"], "expected a size such as '80GiB'"),
    ):
        code, _, messages = _compile(llama, tmp_path, *flags)
        assert code == 2 and message in messages, messages


def test_advice_is_right_where_values_are_what_takes_room(tmp_path):
    """What is needed is said of the smallest program that was made, and as many ranks as are named do."""
    path = tmp_path / "unet.onnx"
    path.write_bytes(dovetail_models.build("unet2d-transposed").SerializeToString())
    needed = _most(_plan(path, tmp_path, "--mesh", "y=2", "--no-libraries"))
    limit = needed // 2
    code, _, messages = _compile(path, tmp_path, "--mesh", "y=2", "--no-libraries", "--memory", limit)
    assert code == DOES_NOT_FIT, messages
    found = re.search(r"needs ([0-9.]+) (MiB|KiB), .*'--mesh (y=[0-9]+)', of", messages)
    assert found, messages
    assert float(found[1]) * (1 << 20 if found[2] == "MiB" else 1 << 10) <= 1.01 * needed, messages
    code, _, messages = _compile(path, tmp_path, "--mesh", found[3], "--no-libraries", "--memory", limit)
    assert code == 0, messages


def test_least_memory_is_that_of_programs(tmp_path):
    """What the planner expects to take least may take most: programs tell, and which limits suffice."""
    path = tmp_path / "unet.onnx"
    path.write_bytes(dovetail_models.build("unet2d-transposed").SerializeToString())
    flags = ["--mesh", "y=4"]
    free = {objective: _most(_plan(path, tmp_path, *flags, "--objective", objective)) for objective in ("time", "bytes")}
    least = _most(_plan(path, tmp_path, *flags, "--objective", "memory"))
    assert least <= min(free.values())
    code, _, messages = _compile(path, tmp_path, *flags, "--objective", "memory", "--remarks")
    assert code == 0 and re.search("--objective memory: split for (time|bytes), the program takes less: ", messages)
    for objective in ("time", "bytes", "memory"):
        plan = _plan(path, tmp_path, *flags, "--objective", objective, "--memory", min(free.values()))
        assert _most(plan) <= min(free.values()), objective


def test_the_limit_is_that_of_ranks(tmp_path):
    """What `verify` compares with is computed by one rank that may have all."""
    path = tmp_path / "unet.onnx"
    path.write_bytes(dovetail_models.build("unet2d-transposed").SerializeToString())
    limit = int(1.2 * _most(_plan(path, tmp_path, "--mesh", "y=4")))
    assert limit < _most(_plan(path, tmp_path))
    code, _, messages = call([tool("dovetail"), "verify", path, "--mesh", "y=4", "--memory", str(limit)])
    assert code == 0, messages
