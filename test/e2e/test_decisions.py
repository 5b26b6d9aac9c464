# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is decided for whole models: bytes that ranks receive, and how evenly they work."""

import json

import dovetail_models
import numpy as np
import onnx
import pytest
from harness.backend import call, fastest_backend, tool
from harness.compare import differences
from harness.extent import one_of
from harness.partition import Partition

LAYERS = 4


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """8 heads of 32, 2 key/value heads, 211 tokens."""
    path = tmp_path_factory.mktemp("llama") / "llama.onnx"
    path.write_bytes(dovetail_models.build("llama").SerializeToString())
    return path


def compiled(model, flags, tmp_path):
    """What `inspect` says of the model, compiled."""
    artifact = tmp_path / "m.dvt"
    code, _, messages = call([tool("dovetail"), "compile", model, "-o", artifact, *flags])
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", "--json", artifact])
    assert code == 0, messages
    return json.loads(text)


def layer_exchanges(plan):
    """Exchanges of each layer: those that lie between the scores of its attention and those of the one before it."""
    steps = enumerate(plan["steps"])
    scores = [n for n, step in steps if step["kind"] == "matmul" and step["name"].endswith("/scores")]
    assert len(scores) == LAYERS
    return [[e for e in plan["exchanges"] if begin < e["step"] <= end] for begin, end in zip(scores, scores[1:])]


def split_of(plan, name):
    """How what the step of this name writes is split."""
    steps = (step for step in plan["steps"] if step["name"] == name and step["kind"] not in ("exchange", "wait"))
    return next(steps)["writes"][0]["sharding"]


def test_keys_and_values_are_gathered_before_they_are_repeated(llama, tmp_path):
    """Three of four parts of 2 heads of 32 for 211 tokens, to each of 4 ranks, for keys and for values: no more."""
    plan = compiled(llama, Partition({"s": 4}).split("ids", 2, 1, "s").flags(), tmp_path)
    for exchanges in layer_exchanges(plan):
        assert [e["bytes"] for e in exchanges] == [211 * 64 * 4 * 3] * 2
    assert split_of(plan, "/layers.1/scores") == "[_, _, s:53+53+53+52, _]"


def test_heads_that_are_requested_are_divided_evenly(llama, tmp_path):
    """Megatron's pattern takes two all-reduces of 211 x 256 a layer: 4 * 211 * 256 * 4 bytes on two ranks."""
    partition = Partition({"t": 2})
    for layer in range(LAYERS):
        partition.split(f"/layers.{layer}/q", 3, 2, "t").split(f"/layers.{layer}/gate", 3, 2, "t")
    plan = compiled(llama, partition.flags(), tmp_path)
    for exchanges in layer_exchanges(plan):
        assert sum(e["bytes"] for e in exchanges) <= 4 * 211 * 256 * 4
    for layer in range(LAYERS):
        assert split_of(plan, f"/layers.{layer}/scores") == "[_, t:4+4, _, _]"
        assert split_of(plan, f"/layers.{layer}/up") == "[_, _, t:344+344]"


def test_one_request_leaves_the_rest_even(llama, tmp_path):
    plan = compiled(llama, Partition({"t": 2}).split("/layers.1/gate", 3, 2, "t").flags(), tmp_path)
    for exchanges in layer_exchanges(plan):
        assert sum(e["bytes"] for e in exchanges) <= 4 * 211 * 256 * 4
    for layer in range(LAYERS):
        assert split_of(plan, f"/layers.{layer}/scores") in ("[_, t:4+4, _, _]", "[_, _, t:106+105, _]")


#: Models and their sizes.
_ALONE = {
    "resnet18": {"height": 64, "width": 64},
    "unet3d": {"depth": 16, "height": 16, "width": 16},
    "vit": {},
    "llama": {},
}


@one_of(2)
@pytest.mark.parametrize("mesh", [{"d": 2}, {"d": 3}, {"a": 2, "b": 2}], ids=["2", "3", "2x2"])
@pytest.mark.parametrize("name", _ALONE)
def test_a_mesh_is_enough(backend, tmp_path, name, mesh):
    """Without a word about shardings the model is divided, and its outputs are those of ONNX Runtime."""
    model = dovetail_models.build(name, **_ALONE[name])
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    partition = Partition(mesh)
    plan = compiled(path, partition.flags(), tmp_path)
    memory = [rank["values_bytes"] for rank in plan["ranks"]]
    whole = compiled(path, [], tmp_path)["ranks"][0]["values_bytes"]
    assert max(memory) < whole and min(memory) > 0, (memory, whole)
    inputs = dovetail_models.random_inputs(model)
    if name == "llama":
        inputs = {"ids": np.random.default_rng(0).integers(0, 512, (1, 211))}
    outputs = [output.name for output in model.graph.output]
    expected = dovetail_models.run_onnxruntime(model, inputs)
    actual = fastest_backend().compile_and_run(model, partition, inputs, outputs)
    assert not differences(actual, expected)


@pytest.mark.parametrize("flags", [["--shard", "ids=_,a"], []], ids=["ids", "mesh"])
def test_deep_networks_are_divided(tmp_path, flags):
    """However many operations share the time, so that each takes little of it."""
    path = tmp_path / "deep.onnx"
    model = dovetail_models.build("llama", layers=24, heads=4, width=16, inner=128)
    path.write_bytes(model.SerializeToString())
    plan = compiled(path, ["--mesh", "a=2", *flags], tmp_path)
    products = [step for step in plan["steps"] if step["kind"] == "matmul"]
    assert len(products) > 200
    # Light ones may be repeated, in place of bringing ranks what they give.
    whole = {step["name"].split("/")[-1] for step in products if "a:" not in step["writes"][0]["sharding"]}
    assert whole <= {"k", "v"}, whole


def test_deep_networks_name_ranks_that_idle(tmp_path):
    """No operation of 150 takes much of the time: all of them together do."""
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3, 1]) for name in ("v0", "v150")]
    nodes = [onnx.helper.make_node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(150)]
    weight = onnx.numpy_helper.from_array(np.full((1, 1), 0.5, np.float32), "w")
    graph = onnx.helper.make_graph(nodes, "deep", values[:1], values[1:], [weight])
    path = tmp_path / "deep.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", tmp_path / "m.dvt", "--mesh", "a=5"])
    assert code == 0 and "ranks 3, 4 have no work: no operation has enough elements for all ranks" in messages, messages


def test_products_of_sums(backend, tmp_path):
    """Cosine similarity: three sums over what is split, two of which are multiplied."""
    value, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    axes = onnx.numpy_helper.from_array(np.array([1]), "axes")
    nodes = [node("Mul", pair, [name]) for pair, name in ((["a", "b"], "ab"), (["a", "a"], "aa"), (["b", "b"], "bb"))]
    nodes += [node("ReduceSum", [name, "axes"], [f"s{name}"]) for name in ("ab", "aa", "bb")]
    nodes += [node("Mul", ["saa", "sbb"], ["n"]), node("Sqrt", ["n"], ["r"]), node("Div", ["sab", "r"], ["y"])]
    inputs = [value(name, onnx.TensorProto.FLOAT, [1, 640]) for name in ("a", "b")]
    graph = onnx.helper.make_graph(nodes, "cosine", inputs, [value("y", onnx.TensorProto.FLOAT, [1, 1])], [axes])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    given = dovetail_models.random_inputs(model)
    expected = dovetail_models.run_onnxruntime(model, given)
    for partition in (Partition({"k": 3}), Partition({"k": 2}).split("a", 2, 1, "k").split("b", 2, 1, "k")):
        actual = fastest_backend().compile_and_run(model, partition, given, ["y"])
        assert not differences(actual, expected)


@pytest.mark.parametrize("mesh", [{"y": 3}, {"y": 4}, {"y": 2, "x": 2}], ids=["3", "4", "2x2"])
def test_no_rank_has_all_of_it(tmp_path, mesh):
    """Cuts that follow each other through the shifts of windows must not end up on one side."""
    path = tmp_path / "swin.onnx"
    path.write_bytes(dovetail_models.build("swin").SerializeToString())
    partition = Partition(mesh).split("image", 4, 2, "y")
    if "x" in mesh:
        partition.split("image", 4, 3, "x")
    whole = compiled(path, [], tmp_path)["ranks"][0]["values_bytes"]
    ranks = compiled(path, partition.flags(), tmp_path)["ranks"]
    assert max(rank["values_bytes"] for rank in ranks) < 0.7 * whole
