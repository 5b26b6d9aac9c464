# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Requested shardings hold for what follows: examples of the tutorials of DTensor and ShardTensor, and bad input.

Bytes and memory that are expected are counted here from the cuts alone.
"""

import json
import re

import numpy as np
import onnx
import pytest
from harness.backend import call, fastest_backend, tool
from harness.compare import differences
from harness.partition import Partition, random_sizes
from onnx import TensorProto, helper, numpy_helper

RANKS = 4
FLOAT = 4
#: What ranks may have beside their parts.
LITTLE = 1 << 20


def _model(nodes, inputs, outputs, weights=()):
    def infos(shapes):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in shapes.items()]

    tensors = [numpy_helper.from_array(value, name) for name, value in dict(weights).items()]
    graph = helper.make_graph(nodes, "g", infos(inputs), infos(outputs), tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _sum(count):
    node = helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0)
    return _model([node], {"x": [count]}, {"s": []})


def _dot(count):
    return _model([helper.make_node("MatMul", ["x", "y"], ["s"])], {"x": [count], "y": [count]}, {"s": []})


def _redistribution(rows, columns):
    shape = [rows, columns]
    return _model([helper.make_node("Identity", ["x"], ["z"])], {"x": shape}, {"z": shape})


def _product(rows, depth, columns):
    node = helper.make_node("MatMul", ["x", "y"], ["z"])
    return _model([node], {"x": [rows, depth], "y": [depth, columns]}, {"z": [rows, columns]})


def _convolution(extent, kernel, stride):
    weights = np.random.default_rng(0).integers(-3, 4, (8, 8, kernel, kernel)).astype(np.float32)
    pads = [max(kernel - stride, 0) // 2] * 2 + [max(kernel - stride + 1, 0) // 2] * 2
    node = helper.make_node("Conv", ["x", "w"], ["z"], strides=[stride, stride], pads=pads)
    shape, result = [1, 8, extent, extent], [1, 8, extent // stride, extent // stride]
    return _model([node], {"x": shape}, {"z": result}, {"w": weights})


def _flags(shards, sizes):
    partition = Partition({"y": RANKS}, objective="time")
    for name, spec in shards.items():
        partition.shards[name] = spec.split(",")
        if name in sizes:
            partition.sizes[name, spec.split(",").index("y")] = sizes[name]
    return partition


def _compile(folder, model, partition, *flags):
    """What `inspect` says of the compiled model, and the compiler of it."""
    onnx.save(model, folder / "m.onnx")
    command = [tool("dovetail"), "compile", folder / "m.onnx", "-o", folder / "m.dvt", "--quiet"]
    code, _, messages = call([*command, *partition.flags(), *flags])
    assert code == 0, messages
    code, text, errors = call([tool("dovetail"), "inspect", "--json", folder / "m.dvt"])
    assert code == 0, errors
    return json.loads(text), messages


UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20}


def _is_bytes(number, unit, actual):
    """Whether a number that is rounded to a tenth is that of bytes."""
    return abs(float(number) * UNITS[unit] - actual) <= 0.051 * UNITS[unit]


def _moved(plan):
    return sum(exchange["bytes"] for exchange in plan["exchanges"])


#: Of all ranks, each of which tells each other one.
SCALARS = RANKS * (RANKS - 1) * FLOAT
UNEVEN = [400_000_000, 100_000_000, 0, 500_000_000]
FEW = [1000, 20_000_000, 0, 30_000_000]
ROWS, COLUMNS = [40, 30, 20, 10], [10, 10, 24, 20]
TALL = [1000, 1100, 1050, 946]


def _to_columns(rows, columns):
    """Bytes of all but what lies in the rows and in the columns of the same rank."""
    return FLOAT * (sum(rows) * sum(columns) - sum(r * c for r, c in zip(rows, columns)))


#: Model, what is requested, sizes, and the bytes that have to move.
EXAMPLES = {
    "sum": (_sum(10**9), {"x": "y"}, {"x": UNEVEN}, SCALARS),
    "dot": (_dot(10**9), {"x": "y", "y": "y"}, {"x": UNEVEN, "y": UNEVEN}, SCALARS),
    "dot of one cut": (_dot(sum(FEW)), {"x": "y"}, {"x": FEW}, SCALARS),
    "rows to columns": (
        _redistribution(sum(ROWS), sum(COLUMNS)),
        {"x": "y,_", "z": "_,y"},
        {"x": ROWS, "z": COLUMNS},
        _to_columns(ROWS, COLUMNS),
    ),
    # Ranks lack most of the other factor.
    "rows by columns": (
        _product(sum(TALL), 64, sum(COLUMNS)),
        {"x": "y,_", "y": "_,y", "z": "y,_"},
        {"x": TALL, "y": COLUMNS, "z": TALL},
        FLOAT * 64 * sum(COLUMNS) * (RANKS - 1),
    ),
    # All have sums of a part of the terms: each gets its rows from all others.
    "columns by rows": (
        _product(16, sum(TALL) * 16, 16),
        {"x": "_,y", "y": "y,_", "z": "y,_"},
        {"x": [16 * n for n in TALL], "y": [16 * n for n in TALL], "z": [4, 4, 4, 4]},
        FLOAT * 16 * 16 * (RANKS - 1),
    ),
    # A row above and one below of each border.
    "convolution": (
        _convolution(1024, 3, 1),
        {"x": "_,_,y,_"},
        {"x": [270, 250, 254, 250]},
        FLOAT * 8 * 1024 * 2 * (RANKS - 1),
    ),
    "aligned convolution": (_convolution(1024, 2, 2), {"x": "_,_,_,y"}, {"x": [270, 250, 254, 250]}, 0),
}


def _get_part(shape, spec, sizes, rank):
    """Bytes of a rank's part."""
    volume = FLOAT
    for extent, axis in zip(shape, spec.split(",")):
        volume *= extent if axis == "_" else sizes[rank]
    return volume


@pytest.mark.parametrize("name", EXAMPLES)
def test_tutorials(tmp_path, name):
    """Each example moves what it must, and ranks have their inputs and little else."""
    model, shards, sizes, least = EXAMPLES[name]
    plan, messages = _compile(tmp_path, model, _flags(shards, sizes))
    assert _moved(plan) <= least
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in [*model.graph.input, *model.graph.output]
    }
    inputs = [value.name for value in model.graph.input]
    for rank, memory in enumerate(plan["ranks"]):
        parts = 0
        for value, shape in shapes.items():
            # The other vector is cut like the first.
            spec = shards.get(value, "y" if value in inputs else shards.get("x"))
            parts += _get_part(shape, spec, sizes.get(value, sizes["x"]), rank) if shape else 0
        assert memory["values_bytes"] <= parts + memory["received_bytes"] + LITTLE, rank
    assert "the requested split" not in messages
    assert ("two requests contradict each other" in messages) == (name in ("rows to columns", "rows by columns")), messages


#: Of the examples, small ones: the cuts, and what NumPy makes of integers, which sums in any order are exact for.
SMALL = {
    "dot": (_dot(61), {"x": "y", "y": "y"}, {"x": [11, 20, 0, 30], "y": [11, 20, 0, 30]}),
    "dot of different cuts": (_dot(61), {"x": "y", "y": "y"}, {"x": [11, 20, 0, 30], "y": [20, 20, 20, 1]}),
    "rows to columns": (_redistribution(100, 64), {"x": "y,_", "z": "_,y"}, {"x": ROWS, "z": COLUMNS}),
    "product": (_product(41, 16, 64), {"x": "y,_", "y": "_,y"}, {"x": [1, 20, 0, 20], "y": COLUMNS}),
    "terms": (_product(4, 41, 4), {"x": "_,y", "z": "y,_"}, {"x": [1, 20, 0, 20], "z": [1, 1, 1, 1]}),
    "convolution": (_convolution(64, 3, 1), {"x": "_,_,y,_"}, {"x": [13, 1, 20, 30]}),
    # No cut is a multiple of the stride.
    "unaligned": (_convolution(64, 4, 4), {"x": "_,_,y,_"}, {"x": [13, 1, 21, 29]}),
    "contradiction": (
        _convolution(64, 3, 1),
        {"x": "_,_,y,_", "z": "_,_,_,y"},
        {"x": [13, 1, 20, 30], "z": [20, 20, 20, 4]},
    ),
    "one index": (_redistribution(1, 64), {"x": "y,_", "z": "_,y"}, {"x": [0, 1, 0, 0], "z": COLUMNS}),
}


def _reference(model, inputs):
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString())
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))


@pytest.mark.parametrize("follow", ["0", "10", "100"])
@pytest.mark.parametrize("name", SMALL)
def test_exact(tmp_path, name, follow):
    model, shards, sizes = SMALL[name]
    rng = np.random.default_rng(1)
    inputs = {
        value.name: rng.integers(-4, 5, [dim.dim_value for dim in value.type.tensor_type.shape.dim]).astype(np.float32)
        for value in model.graph.input
    }
    expected = _reference(model, inputs)
    partition = _flags(shards, sizes)
    actual = fastest_backend().compile_and_run(model, partition, inputs, list(expected), extra=["--follow", follow])
    for output, value in expected.items():
        np.testing.assert_array_equal(actual[output], value)


def _chain(stride):
    """Convolutions that take long enough to be divided; the second one steps over what it reads."""
    weights = {name: np.ones((64, 64, 3, 3), np.float32) for name in ("v", "w")}
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"], pads=[1] * 4),
        helper.make_node("Conv", ["a", "w"], ["z"], pads=[1] * 4, strides=[stride, stride]),
    ]
    extent = (256 - 1) // stride + 1
    return _model(nodes, {"x": [1, 64, 256, 256]}, {"z": [1, 64, extent, extent]}, weights)


def _branches(count):
    """Convolutions of one tensor."""
    nodes = [helper.make_node("Conv", ["x", "w"], [f"z{i}"]) for i in range(count)]
    shape = [1, 64, 256, 256]
    results = {f"z{i}": shape for i in range(count)}
    return _model(nodes, {"x": shape}, results, {"w": np.ones((64, 64, 1, 1), np.float32)})


def _stepping():
    """Convolutions of two tensors, which step over them as wide as they are."""
    names = {"x": "z0", "y": "z1"}
    nodes = [helper.make_node("Conv", [name, "w"], [result], strides=[2, 2]) for name, result in names.items()]
    inputs, results = (dict.fromkeys(part, [1, 64, n, n]) for part, n in ((names, 256), (names.values(), 128)))
    return _model(nodes, inputs, results, {"w": np.ones((64, 64, 2, 2), np.float32)})


ROW = "_,_,y,_"
MILD = [66, 62, 65, 63]
#: Model, request, what is said, and how the second convolution is split.
SAYINGS = {
    "followed": (_chain(1), {"x": ROW}, {"x": MILD}, [], "66+62+65+63"),
    "output": (_chain(1), {"z": ROW}, {"z": MILD}, [], "66+62+65+63"),
    "inner tensor": (_chain(1), {"a": ROW}, {"a": MILD}, [], "66+62+65+63"),
    "uneven": (_chain(1), {"x": ROW}, {"x": [100, 56, 50, 50]}, ["the requested split is not kept downstream"], "64+64+64+64"),
    "uneven output": (
        _chain(1),
        {"z": ROW},
        {"z": [100, 56, 50, 50]},
        ["the requested split is not kept upstream"],
        "64+64+64+64",
    ),
    "steps of wide windows": (_chain(2), {"x": ROW}, {"x": [65, 63, 65, 63]}, [], None),
    "unaligned": (_convolution(256, 2, 2), {"x": ROW}, {"x": [65, 63, 65, 63]}, ["with '--sizes x:2=66,62,66,62'"], None),
    "contradiction": (
        _chain(1),
        {"x": ROW, "z": ROW},
        {"x": MILD, "z": MILD[::-1]},
        ["two requests contradict each other: tensor 'z'"],
        "66+62+65+63",
    ),
    "three contradictions": (
        _branches(3),
        {"x": ROW, **{f"z{i}": ROW for i in range(3)}},
        {"x": MILD, **{f"z{i}": MILD[::-1] for i in range(3)}},
        ["--remarks lists 2 more places"],
        None,
    ),
    "two strides": (
        _stepping(),
        {"x": ROW, "y": ROW},
        {"x": [65, 63, 65, 63], "y": [63, 65, 63, 65]},
        ["with '--sizes x:2=66,62,66,62'", "with '--sizes y:2=64,64,64,64'"],
        None,
    ),
    "batch of one": (_chain(1), {"x": "y,_,_,_"}, {"x": [0, 1, 0, 0]}, ["cannot follow --shard and --sizes"], None),
}


@pytest.mark.parametrize("name", SAYINGS)
def test_what_is_said(tmp_path, name):
    """Requests are followed without a word, and one line says where they are not."""
    model, shards, sizes, said, split = SAYINGS[name]
    plan, messages = _compile(tmp_path, model, _flags(shards, sizes))
    assert len(messages.splitlines()) == len(said), messages
    for text, line in zip(said, messages.splitlines()):
        assert text in line
    last = next(step for step in reversed(plan["steps"]) if step["kind"] in ("convolution", "winograd"))
    assert split is None or f"y:{split}" in last["writes"][0]["sharding"]


@pytest.mark.parametrize("kernel, stride", [(1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (3, 4), (4, 4), (5, 4)])
@pytest.mark.parametrize("first", [65, 67])
def test_steps_that_do_not_fit(tmp_path, kernel, stride, first):
    """It is said if and only if cuts at the steps before or after the given ones move fewer bytes."""
    model = _convolution(256, kernel, stride)

    def compile_at(cut):
        cuts = [0, cut, 128, 192, 256]
        partition = _flags({"x": ROW}, {"x": np.diff(cuts).tolist()})
        plan, messages = _compile(tmp_path, model, partition, "--follow", "100")
        return _moved(plan), messages

    moved, messages = compile_at(first)
    aligned = {first // stride * stride, -(-first // stride) * stride}
    least = min(compile_at(cut)[0] for cut in aligned)
    assert ("with '--sizes x:2=" in messages) == (moved > least), messages
    if moved > least:
        sizes, said = re.search(r"--sizes x:2=([0-9,]+)'", messages)[1], re.search(r"and ([0-9.]+) (\w+) with", messages)
        plan, _ = _compile(tmp_path, model, _flags({"x": ROW}, {"x": sizes.split(",")}), "--follow", "100")
        assert _moved(plan) <= least and _is_bytes(*said.groups(), _moved(plan))


def _wrapped(layers):
    """Convolutions of a ring: what the planner expects of the ends differs from what programs take."""
    weights = {f"w{i}": np.ones((8, 8, 3, 3), np.float32) for i in range(layers)}
    pads = numpy_helper.from_array(np.array([0, 0, 1, 1] * 2, np.int64), "pads")
    nodes, tensor = [], "x"
    for i in range(layers):
        nodes += [
            helper.make_node("Pad", [tensor, "pads"], [f"p{i}"], mode="wrap"),
            helper.make_node("Conv", [f"p{i}", f"w{i}"], [f"c{i}"]),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
        ]
        tensor = f"r{i}"
    model = _model(nodes, {"x": [1, 8, 64, 64]}, {tensor: [1, 8, 64, 64]}, weights)
    model.graph.initializer.append(pads)
    model.opset_import[0].version = 19
    return model


def _predict(folder, model, partition, *flags):
    """Milliseconds that `plan` predicts, and what it says."""
    onnx.save(model, folder / "m.onnx")
    command = [tool("dovetail"), "plan", folder / "m.onnx", "--json", folder / "plan.json"]
    code, _, messages = call([*command, *partition.flags(), *flags])
    assert code == 0, messages
    return 1e3 * json.loads((folder / "plan.json").read_text())["seconds"], messages


@pytest.mark.parametrize(
    "model, sizes",
    [(_chain(1), {"x": [100, 56, 50, 50]}), (_chain(1), {"x": [0, 256, 0, 0]}), (_wrapped(20), {})],
    ids=["uneven", "one rank", "wrapped"],
)
def test_gains_are_true(tmp_path, model, sizes):
    """What a departure is said to gain is what programs with and without it are predicted to take."""
    partition = _flags({"x": ROW}, sizes)
    own, messages = _predict(tmp_path, model, partition)
    followed, _ = _predict(tmp_path, model, partition, "--follow", "100")
    said = re.search(r"take ([0-9.]+) ms, ([0-9.]+) % less than ([0-9.]+) ms", messages)
    assert (own, messages) == (followed, "") if not said else own <= 0.9 * followed
    assert bool(said) == bool(sizes)
    if said:
        actual = [own, 100 * (1 - own / followed), followed]
        np.testing.assert_allclose([float(number) for number in said.groups()], actual, rtol=0.02)


class _Chain:
    """A random chain of layers, and shapes of its tensors."""

    def __init__(self, rng):
        self.shape = [1, int(rng.choice([3, 8, 16, 64])), int(rng.choice([16, 24, 48, 96])), int(rng.choice([8, 16, 32]))]
        self.shapes, self.nodes, self.weights, self.last = {"x": list(self.shape)}, [], {}, "x"
        for _ in range(rng.integers(2, 7)):
            getattr(self, str(rng.choice(["convolve", "convolve", "step", "pool", "resize", "soften", "bend"])))(rng)
        if not self.nodes:
            self.bend(rng)

    def add(self, kind, *inputs, **attributes):
        name = f"e{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [self.last, *inputs], [name], name=f"n{len(self.nodes)}", **attributes))
        self.shapes[name], self.last = list(self.shape), name

    def weigh(self, value):
        name = f"w{len(self.weights)}"
        self.weights[name] = value.astype(np.float32)
        return name

    def convolve(self, rng, kernel=0, stride=1):
        kernel = kernel or int(rng.choice([1, 3]))
        before, self.shape[1] = self.shape[1], int(rng.choice([8, 16, 64, 128]))
        pad = (kernel - 1) // 2
        for dim in (2, 3):
            self.shape[dim] = (self.shape[dim] + 2 * pad - kernel) // stride + 1
        weight = self.weigh(np.ones((self.shape[1], before, kernel, kernel)))
        self.add("Conv", weight, pads=[pad] * 4, strides=[stride] * 2)

    def step(self, rng):
        kernel = int(rng.choice([2, 3, 4, 5]))
        if min(self.shape[2:]) >= 2 * kernel:
            self.convolve(rng, kernel, 2)

    def pool(self, rng):
        if min(self.shape[2:]) >= 4:
            self.shape[2:] = [extent // 2 for extent in self.shape[2:]]
            self.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])

    def resize(self, rng):
        if self.shape[2] <= 100:
            self.shape[2:] = [extent * 2 for extent in self.shape[2:]]
            self.add("Resize", "", self.weigh(np.array([1, 1, 2, 2])), mode="nearest")

    def soften(self, rng):
        self.add("Softmax", axis=int(rng.integers(1, 4)))

    def bend(self, rng):
        self.add("LeakyRelu")

    def model(self):
        return _model(self.nodes, {"x": self.shapes["x"]}, {self.last: self.shapes[self.last]}, self.weights)

    def partition(self, rng):
        """Requests for the input, and perhaps for the output and one between, which may contradict each other."""
        partition = Partition({"y": int(rng.integers(2, 5))}, objective="time")
        names = ["x", *[self.last] * (rng.random() < 0.4), *[str(rng.choice(list(self.shapes)))] * (rng.random() < 0.3)]
        for name in dict.fromkeys(names):
            dim = int(rng.choice([1, 2, 2, 2, 3]))
            sizes = random_sizes(rng, self.shapes[name][dim], partition.ranks) if rng.random() < 0.7 else None
            partition.split(name, 4, dim, "y", sizes)
        return partition


@pytest.mark.parametrize("seed", range(40))
def test_what_departures_gain(tmp_path, seed):
    """No plan is predicted to be slower than the one that follows, and a line has the figures of both."""
    rng = np.random.default_rng(seed)
    chain = _Chain(rng)
    model, partition = chain.model(), chain.partition(rng)

    def predict(follow):
        own, messages = _predict(tmp_path, model, partition, "--follow", follow)
        steps = json.loads((tmp_path / "plan.json").read_text())["steps"]
        return own, sum(step.get("bytes", 0) for step in steps), messages

    strict, received, messages = predict("100")
    assert "memory" not in messages
    for follow in ("0", "10"):
        own, bytes, messages = predict(follow)
        assert own <= strict * (1 + 1e-9)
        said = re.search(r"take ([0-9.]+) ms, ([0-9.]+) % less than ([0-9.]+) ms with --follow 100; (.*)", messages)
        assert (said is not None) == (own != strict), messages
        if said:
            np.testing.assert_allclose([float(said[1]), float(said[3])], [own, strict], atol=6e-4)
            number, unit, other, its = re.match(r"ranks receive (\S+) (\w+), and (\S+) (\w+) with", said[4]).groups()
            assert _is_bytes(number, unit, bytes) and _is_bytes(other, its, received)


def test_never_departs(tmp_path):
    """Even where all is on one rank."""
    partition = _flags({"x": ROW}, {"x": [0, 256, 0, 0]})
    plan, messages = _compile(tmp_path, _chain(1), partition, "--follow", "100")
    assert _moved(plan) == 0 and "the requested split" not in messages
    plan, messages = _compile(tmp_path, _chain(1), partition)
    assert "the requested split is not kept downstream" in messages and "less than" in messages


def test_nothing_moves_that_need_not_for_bytes(tmp_path):
    partition = _flags({"x": ROW}, {"x": [100, 56, 50, 50]})
    partition.objective = "bytes"
    plan, _ = _compile(tmp_path, _chain(1), partition)
    assert _moved(plan) == FLOAT * 64 * 256 * 2 * 2 * (RANKS - 1)
