# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices that differ: pieces weigh all that a device does, and what does not pay is said."""

import functools
import json
import re

import dovetail_models
import numpy as np
import onnx
import pytest
from harness.backend import call, fastest_backend, tool
from harness.compare import differences
from harness.extent import one_of
from harness.partition import Partition
from onnx import TensorProto, helper

DOES_NOT_FIT = 6
PRODUCTS = {"products_32": 6e10, "products_16": 1.2e11, "depthwise": 4.2e10}
OTHERS = {"operations": 5e10, "bytes": 3.5e10, "cached_bytes": 1e11, "near_bytes": 1.8e11, "copied_bytes": 2.3e10}
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1}


def _device(products, others):
    """A device that is so many times as fast as the built-in one at products, and at all else."""
    speeds = {key: value * products for key, value in PRODUCTS.items()}
    speeds |= {key: value * others for key, value in OTHERS.items()}
    return {"base": "cpu", "step": 7e-7 / others, **speeds}


def _cluster(folder, *devices):
    """A file: the device of each rank."""
    path = folder / "cluster.json"
    named = {f"d{rank}": device for rank, device in enumerate(devices)}
    path.write_text(json.dumps({"devices": named, "ranks": list(named)}))
    return path


FAST, SLOW = _device(1, 1), _device(1 / 7, 1 / 12)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Paths by name, made as they are asked for."""
    folder = tmp_path_factory.mktemp("models")

    @functools.cache
    def get(name, **sizes):
        path = folder / f"{name}{'-'.join(map(str, sizes.values()))}.onnx"
        path.write_bytes(dovetail_models.build(name, **sizes).SerializeToString())
        return path

    return get


def _plan(folder, model, *flags, expected=0):
    """What is predicted, and what is said."""
    code, _, messages = call([tool("dovetail"), "plan", model, "--json", folder / "plan.json", *flags])
    assert code == expected, messages
    return json.loads((folder / "plan.json").read_text()), messages


def _seconds(folder, model, *flags):
    return _plan(folder, model, *flags)[0]["seconds"]


def test_twice_the_speed_twice_the_rows(models, tmp_path):
    model = models("unet2d-transposed", height=96, width=96)
    cluster = _cluster(tmp_path, FAST, _device(2, 2))
    code, _, messages = call(
        [tool("dovetail"), "compile", model, "-o", tmp_path / "m.dvt", "--mesh", "y=2", "--cluster", cluster]
    )
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", "--json", tmp_path / "m.dvt"])
    # As near to it as the few rows deep in the network allow.
    sizes = re.search(r"y:(\d+)\+(\d+)", json.loads(text)["outputs"][0]["sharding"])
    assert 1.6 <= int(sizes[2]) / int(sizes[1]) <= 2.4


@pytest.mark.parametrize(
    "name, sizes, most",
    [("unet2d-bilinear", {"height": 512, "width": 512}, 1), ("resnet18", {}, 1.03), ("llama", {}, 1.02)],
)
def test_slow_third_rank(models, tmp_path, name, sizes, most):
    """Such a device helps little, but it does not hold up the others, wherever it stands."""
    model = models(name, **sizes)
    two = _seconds(tmp_path, model, "--mesh", "y=2", "--cluster", _cluster(tmp_path, FAST, FAST))
    for devices in ([FAST, FAST, SLOW], [SLOW, FAST, FAST]):
        three = _seconds(tmp_path, model, "--mesh", "y=3", "--cluster", _cluster(tmp_path, *devices))
        assert three <= most * two
        assert _seconds(tmp_path, model, "--mesh", "auto=3", "--cluster", _cluster(tmp_path, *devices)) <= 1.01 * three


def _hand_cuts(extent, speeds):
    """Sizes that somebody may try: by either speed and between these, without the slowest, in several steps."""
    found = set()
    for exponent in (0, 0.5, 0.85, 1):
        weights = [products**exponent * others ** (1 - exponent) for products, others in speeds]
        for least in (0, 0.3):
            shares = np.array([w if w >= least * max(weights) else 0 for w in weights])
            for step in (1, 8):
                units = extent // step
                bounds = np.round(np.cumsum(shares) / shares.sum() * units).astype(int) * step
                bounds[-1] = extent
                found.add(tuple(int(size) for size in np.diff([0, *bounds])))
    return sorted(found)


@one_of(3)
@pytest.mark.parametrize("seed", range(9))
def test_no_cuts_by_hand_are_better(models, tmp_path, seed):
    """Random devices: no sizes that are tried by hand are faster by more than 5 %, and results are those of one rank."""
    random = np.random.default_rng(seed)
    name, sizes = [
        ("unet2d-transposed", {"height": 128, "width": 128}),
        ("resnet18", {"height": 96, "width": 96}),
        ("unet3d", {"depth": 32, "height": 32, "width": 32}),
    ][seed % 3]
    model = models(name, **sizes)
    ranks = int(random.integers(2, 5))
    speeds = [(1, 1)] + [tuple(random.choice([1, 0.6, 0.3, 0.1], 2)) for _ in range(ranks - 1)]
    random.shuffle(speeds)
    cluster = _cluster(tmp_path, *(_device(*speed) for speed in speeds))
    (info,) = dovetail_models.input_infos(onnx.load(model))
    shape = dovetail_models.input_shape(info)
    shard = f"{info.name}=" + ",".join("y" if dim == 2 else "_" for dim in range(len(shape)))
    flags = ["--mesh", f"y={ranks}", "--cluster", cluster]
    chosen = min(_seconds(tmp_path, model, *flags), _seconds(tmp_path, model, *flags, "--shard", shard))
    for cuts in _hand_cuts(shape[2], speeds):
        sizes = f"{info.name}:2={','.join(map(str, cuts))}"
        by_hand = _seconds(tmp_path, model, *flags, "--shard", shard, "--sizes", sizes, "--follow", "100")
        assert chosen <= 1.05 * by_hand, (speeds, cuts)
    loaded = onnx.load(model)
    inputs = dovetail_models.random_inputs(loaded, seed=seed)
    expected = dovetail_models.run_onnxruntime(loaded, inputs)
    actual = fastest_backend().compile_and_run(
        model, Partition({"y": ranks}, objective="time"), inputs, list(expected), extra=["--cluster", str(cluster)]
    )
    assert not differences(actual, expected)


def _padded_layers(folder, mode, channels, layers=8):
    """Convolutions of which each reads what all have, if rows are not divided, as ends of its input are brought to it."""
    weights = np.full((channels, channels, 3, 3), 0.01, np.float32)
    nodes = []
    for i in range(layers):
        nodes.append(helper.make_node("Pad", [f"v{i}", "pads"], [f"p{i}"], mode=mode))
        nodes.append(helper.make_node("Conv", [f"p{i}", "w"], [f"c{i}"]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"v{i + 1}"]))
    shape = [1, channels, 32, 32]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("v0", f"v{layers}")]
    tensors = [
        helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.flatten()),
        helper.make_tensor("pads", TensorProto.INT64, [8], [0, 0, 1, 1, 0, 0, 1, 1]),
    ]
    graph = helper.make_graph(nodes, "layers", values[:1], values[1:], tensors)
    path = folder / f"{mode}{channels}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path)
    return path


@pytest.mark.parametrize("mode, channels", [("wrap", 2), ("wrap", 8), ("reflect", 2)])
@pytest.mark.parametrize("shard", [[], ["--shard", "v0=_,_,y,_"]], ids=["free", "rows"])
def test_a_slow_rank_holds_up_nobody(tmp_path, mode, channels, shard):
    """Nor does it repeat what others do: fewer ranks, or rows alone, are no faster. Who has no part does nothing."""
    model = _padded_layers(tmp_path, mode, channels)
    fast, slow, slowest = (each | {"serial_share": 0} for each in (FAST, _device(1 / 2, 1 / 10), _device(1e-3, 1e-3)))
    cluster = _cluster(tmp_path, fast, slow, slowest, fast)
    plan, messages = _plan(tmp_path, model, "--mesh", "y=4", "--cluster", cluster, *shard)
    for first, last in re.findall(r"(\d+)(?: to (\d+))?(?=, |$)", "".join(re.findall(r"no part.*: (.*)", messages))):
        for rank in range(int(first), int(last or first) + 1):
            seconds = plan["ranks"][rank]["seconds"]
            assert seconds["products"] + seconds["elements"] + seconds["copies"] == 0, messages
    others = [["--mesh", "y=4", "--cluster", cluster, *shard, "--follow", "100"]]
    for some in ([fast, fast], [fast]):
        lesser = tmp_path / str(len(some))
        lesser.mkdir()
        others.append(["--mesh", f"y={len(some)}", "--cluster", _cluster(lesser, *some), *shard])
    assert plan["seconds"] <= 1.05 * min(_seconds(tmp_path, model, *flags) for flags in others)


def _advice(messages):
    """Seconds and mesh of fewer ranks, then of what there is; nothing if nothing is said."""
    found = re.findall(r"fewer ranks are predicted to be faster: (.*)", messages)
    assert len(found) <= 1, messages
    if not found:
        return None
    times = re.findall(r"([0-9.]+) (us|ms|s) with '--mesh ([a-z0-9=,]+)'", found[0])
    return [(float(number) * UNITS[unit], mesh) for number, unit, mesh in times]


def _small_layers(folder):
    """Layers of so few rows that exchanges take longer than work."""
    weights = np.full((4, 4, 3, 3), 0.1, np.float32)
    nodes = [helper.make_node("Conv", [f"v{i}", "w"], [f"v{i + 1}"], pads=[1] * 4) for i in range(6)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4, 64, 64]) for name in ("v0", "v6")]
    tensor = helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.flatten())
    graph = helper.make_graph(nodes, "layers", values[:1], values[1:], [tensor])
    path = folder / "layers.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_fewer_ranks_are_named(models, tmp_path):
    """One line names both times, which are those that are predicted of either mesh."""
    link = [{"name": "slow", "exchange": "300us", "message": "100us", "bytes": "1GB/s"}]
    path = tmp_path / "network.json"
    path.write_text(json.dumps({"devices": {"core": {"base": "cpu"}}, "links": link}))
    model = _small_layers(tmp_path)
    flags = ["--cluster", path, "--shard", "v0=_,_,y,_"]
    plan, messages = _plan(tmp_path, model, "--mesh", "y=4", *flags, "--follow", "100")
    (lesser, mesh), (own, same) = _advice(messages)
    assert same == "y=4" and own == pytest.approx(plan["seconds"], rel=0.01)
    assert lesser < 0.95 * own
    fewer = _plan(tmp_path, model, "--mesh", mesh, *flags, "--follow", "100")[0]
    assert lesser == pytest.approx(fewer["seconds"], rel=0.01)
    code, _, messages = call(
        [tool("dovetail"), "compile", model, "-o", tmp_path / "m.dvt", "--mesh", "y=4", *flags, "--follow", "100"]
    )
    assert code == 0 and _advice(messages) == [(lesser, mesh), (own, same)], messages
    # Where more ranks pay, nothing is said.
    _, messages = _plan(tmp_path, models("unet2d-bilinear", height=256, width=256), "--mesh", "y=4")
    assert _advice(messages) is None


def test_devices_that_are_in_the_way_are_named(models, tmp_path):
    """Where no smaller mesh of the same file leaves them out."""
    model = models("vit")
    _, messages = _plan(tmp_path, model, "--mesh", "y=3", "--cluster", _cluster(tmp_path, SLOW, FAST, FAST))
    (lesser, mesh), _ = _advice(messages)
    assert mesh == "y=2" and "and only the devices of ranks 1-2 in the cluster's file" in messages, messages
    two = _seconds(tmp_path, model, "--mesh", "y=2", "--cluster", _cluster(tmp_path, FAST, FAST))
    assert lesser == pytest.approx(two, rel=0.01)


def test_less_memory_less_work(models, tmp_path):
    """A rank with a fifth of the memory has a smaller piece; only where no pieces fit is the program refused."""
    model = models("unet2d-bilinear", height=512, width=512)

    def cluster(*memory):
        return ["--mesh", "y=2", "--cluster", _cluster(tmp_path, *({"base": "cpu", "memory": size} for size in memory))]

    free, _ = _plan(tmp_path, model, "--mesh", "y=2")
    assert min(rank["memory"]["total_bytes"] for rank in free["ranks"]) > 40 << 20
    for memory in (("100MiB", "20MiB"), ("20MiB", "100MiB")):
        plan, _ = _plan(tmp_path, model, *cluster(*memory))
        assert all(rank["memory"]["fits"] for rank in plan["ranks"])
        # The other one has at most all the work.
        assert plan["seconds"] < plan["alone"]["seconds"]
    _plan(tmp_path, model, *cluster("12MiB", "12MiB"), expected=DOES_NOT_FIT)
