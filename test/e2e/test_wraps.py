# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What wraps around is a halo of the other end: padding, rolls, and the ways in which exporters write them.

Expected values are NumPy's, of integers, so that they are equal or wrong. Expected bytes are counted from the cuts. The
seed of a failing case is in its name; DOVETAIL_SEED and DOVETAIL_RANDOM_WRAPS say which are run.
"""

import json
import os

import numpy as np
import onnx
import pytest
from harness.backend import call, fastest_backend, tool
from harness.partition import MESHES, Partition, sizes_with_empty_shard, uneven_sizes
from onnx import TensorProto, helper, numpy_helper

FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "4100"))
COUNT = int(os.environ.get("DOVETAIL_RANDOM_WRAPS", "60"))
FLOAT = 4


class Graph:
    """Nodes over an input `x` of float integers, and their value by NumPy."""

    def __init__(self, shape, rng):
        self.shape, self.nodes, self.weights, self.name = tuple(map(int, shape)), [], [], "x"
        self.input = self.value = rng.integers(-9, 10, shape).astype(np.float32)

    def constant(self, value):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind, inputs, value, **attributes):
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        self.name, self.value = output, value
        return output

    def part(self, source, dim, begin, end):
        """A slice of the current value."""
        output = f"t{len(self.nodes)}"
        ends = [self.constant(np.array([n], np.int64)) for n in (begin, end, dim)]
        self.nodes.append(helper.make_node("Slice", [source, *ends], [output]))
        return output

    def pad(self, pads):
        """Padding as the operator has it; `pads` are (before, behind) of each dimension."""
        flat = [p[0] for p in pads] + [p[1] for p in pads]
        value = np.pad(self.value, pads, mode="wrap")
        self.add("Pad", [self.name, self.constant(np.array(flat, np.int64))], value, mode="wrap")

    def joined(self, pads):
        """Padding as slices that are concatenated, one dimension after the other."""
        for dim, (low, high) in enumerate(pads):
            extent, source = self.value.shape[dim], self.name
            parts = [self.part(source, dim, extent - low, extent)] if low else []
            parts += [source] + ([self.part(source, dim, 0, high)] if high else [])
            if len(parts) == 1:
                continue
            own = [(0, 0)] * dim + [(low, high)] + [(0, 0)] * (self.value.ndim - dim - 1)
            self.add("Concat", parts, np.pad(self.value, own, mode="wrap"), axis=dim)

    def gathered(self, pads):
        """Padding as a gather of constant indices, one dimension after the other."""
        for dim, (low, high) in enumerate(pads):
            if low or high:
                indices = np.arange(-low, self.value.shape[dim] + high) % self.value.shape[dim]
                value = np.take(self.value, indices, dim)
                self.add("Gather", [self.name, self.constant(indices.astype(np.int64))], value, axis=dim)

    def roll(self, dim, shift):
        extent, source = self.value.shape[dim], self.name
        shift %= extent
        if shift:
            parts = [self.part(source, dim, extent - shift, extent), self.part(source, dim, 0, extent - shift)]
            self.add("Concat", parts, np.roll(self.value, shift, dim), axis=dim)

    def rolled_by_gather(self, dim, shift):
        indices = (np.arange(self.value.shape[dim]) - shift) % self.value.shape[dim]
        value = np.take(self.value, indices, dim)
        self.add("Gather", [self.name, self.constant(indices.astype(np.int64))], value, axis=dim)

    def stride(self, dim, step):
        """Every `step`-th element, which cuts follow."""
        values = [np.array([v], np.int64) for v in (0, self.value.shape[dim], dim, step)]
        value = self.value[(slice(None),) * dim + (slice(None, None, step),)]
        self.add("Slice", [self.name, *map(self.constant, values)], value)

    def difference(self, dim):
        """Neighbours in a valid convolution by hand: y[i] = x[i + 1] - x[i]."""
        extent, source = self.value.shape[dim], self.name
        later, first = self.part(source, dim, 1, extent), self.part(source, dim, 0, extent - 1)
        self.add("Sub", [later, first], np.diff(self.value, axis=dim))

    def model(self):
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)]
        outputs = [helper.make_tensor_value_info(self.name, TensorProto.FLOAT, self.value.shape)]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def _pads(rng, shape):
    """Of some dimensions, now and then wider than these."""
    pads = [(0, 0)] * len(shape)
    for dim in rng.permutation(len(shape))[: rng.integers(1, 3)]:
        widest = shape[dim] * 3 if rng.random() < 0.2 else shape[dim]
        pads[dim] = tuple(int(n) for n in rng.integers(0, widest + 1, 2))
    return pads


def _grow(graph, rng):
    for _ in range(rng.integers(1, 4)):
        shape = graph.value.shape
        dim, kind = int(rng.integers(len(shape))), rng.integers(7)
        if kind == 0:
            graph.pad(_pads(rng, shape))
        elif kind == 1:
            graph.joined([tuple(min(n, shape[d]) for n in pad) for d, pad in enumerate(_pads(rng, shape))])
        elif kind == 2:
            graph.gathered(_pads(rng, shape))
        elif kind == 3:
            graph.roll(dim, int(rng.integers(-9, 10)))
        elif kind == 4:
            graph.rolled_by_gather(dim, int(rng.integers(-9, 10)))
        elif kind == 5 and shape[dim] > 2:
            graph.stride(dim, int(rng.integers(2, 4)))
        elif shape[dim] > 2:
            graph.difference(dim)
        if graph.value.size > 20000:
            break
    graph.add("Neg", [graph.name], -graph.value)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + COUNT))
def test_random_wraps(seed):
    rng = np.random.default_rng(seed)
    graph = Graph(rng.integers(2, 14, rng.integers(1, 4)), rng)
    _grow(graph, rng)
    mesh = MESHES[1 + seed % (len(MESHES) - 1)]
    # By time, small models would be computed whole; whatever is decided is right.
    partition = Partition(mesh, objective=("bytes", "time")[seed % 2])
    dims = rng.permutation(len(graph.shape))
    for axis, dim in zip(mesh, dims):
        sizes = (uneven_sizes, sizes_with_empty_shard)[rng.integers(2)](graph.shape[dim], mesh[axis])
        partition.split("x", len(graph.shape), int(dim), axis, sizes)
    follow = ("--follow", str((0, 10, 100)[seed % 3]))
    outputs = fastest_backend().compile_and_run(graph.model(), partition, {"x": graph.input}, [graph.name], extra=follow)
    np.testing.assert_array_equal(outputs[graph.name], graph.value)


def _received(path, flags, folder):
    """Bytes that all ranks receive in a run."""
    artifact = folder / "wraps.dvt"
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", artifact, *flags])
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", "--json", artifact])
    assert code == 0, messages
    return sum(exchange["bytes"] for exchange in json.loads(text)["exchanges"])


def _network(mode, height, width, form=None):
    """Convolutions, some with strides, whose input is padded in both dimensions."""
    rng = np.random.default_rng(0)
    nodes, weights, name, channels, ends = [], [], "x", 8, []
    shape = [height, width]
    for layer, (kernel, stride, filters) in enumerate([(3, 1, 16), (5, 2, 16), (3, 1, 32), (3, 2, 16), (3, 1, 8)]):
        pad, out = kernel // 2, f"p{layer}"
        weights.append(numpy_helper.from_array(np.array([0, 0, pad, pad, 0, 0, pad, pad], np.int64), f"pads{layer}"))
        nodes.append(helper.make_node("Pad", [name, f"pads{layer}"], [out], mode=mode))
        kernels = rng.integers(-2, 3, (filters, channels, kernel, kernel)).astype(np.float32)
        weights.append(numpy_helper.from_array(kernels, f"w{layer}"))
        nodes.append(helper.make_node("Conv", [out, f"w{layer}"], [f"y{layer}"], strides=[stride, stride]))
        # Both ends, as wide as the padding, go to the other one: of rows, and of columns.
        ends.append([2 * pad * channels * shape[1 - dim] * FLOAT for dim in (0, 1)])
        name, channels, shape = f"y{layer}", filters, [(n - 1) // stride + 1 for n in shape]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, height, width])]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, *shape])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    return model, np.sum(ends, 0)


@pytest.mark.parametrize(
    "mesh, spec, sizes",
    [
        ({"y": 4}, "_,_,y,_", None),
        ({"y": 4}, "_,_,_,y", None),
        ({"y": 3}, "_,_,y,_", "x:2=100,0,92"),
        ({"y": 2, "x": 2}, "_,_,y,x", None),
    ],
)
def test_a_network_on_a_torus_exchanges_halos(tmp_path, mesh, spec, sizes):
    """Bytes are at most those of mirrored padding and the two ends, times 1.05."""
    flags = ["--mesh", ",".join(f"{a}={n}" for a, n in mesh.items()), "--shard", f"x={spec}", "--follow", "100"]
    # Halos that ranks compute may move more bytes in fewer messages.
    flags += ["--halos", "never", *(["--sizes", sizes] if sizes else [])]
    received = {}
    for mode in ("wrap", "reflect"):
        model, ends = _network(mode, 192, 256)
        onnx.save(model, tmp_path / f"{mode}.onnx")
        received[mode] = _received(tmp_path / f"{mode}.onnx", flags, tmp_path)
    split = spec.split(",")
    own = sum(int(ends[dim]) for dim in (0, 1) if split[2 + dim] != "_")
    assert received["wrap"] <= 1.05 * (received["reflect"] + own)
