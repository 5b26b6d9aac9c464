# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph network: messages along edges, which are data, summed where they arrive."""

import numpy as np
from onnx import TensorProto, numpy_helper

from .graph import Graph


def _zeros(g, *shape):
    return g.op("ConstantOfShape", g.ints(*shape), value=numpy_helper.from_array(np.zeros(1, np.float32)))


def _scatter_sum(g, values, places, count, size):
    """Rows of `values` added at `places` of `count` rows, as torch.scatter_add is exported."""
    index = g.op("Expand", g.op("Unsqueeze", places, g.ints(1)), g.op("Shape", values))
    return g.op("ScatterElements", _zeros(g, count, size), index, values, axis=0, reduction="add")


def _mlp(g, x, cin, size):
    hidden = g.op("Relu", g.linear(x, cin, size))
    return g.linear(hidden, size, size)


def _step(g, x, sources, targets, degrees, nodes, size):
    ends = g.op("Concat", g.op("Gather", x, targets, axis=0), g.op("Gather", x, sources, axis=0), axis=-1)
    sums = _scatter_sum(g, _mlp(g, ends, 2 * size, size), targets, nodes, size)
    means = g.op("Div", sums, degrees)
    update = _mlp(g, g.op("Concat", x, means, axis=-1), 2 * size, size)
    return g.op("Add", x, update)


def graph_network(nodes=90, edges=400, features=12, size=32, steps=3, graphs=4, opset=18, seed=0):
    """Inputs `nodes` (nodes, features), `edges` (2, edges), and `graph` (nodes), to which of the graphs a node belongs.

    Outputs `states` (nodes, size) and `graphs` (graphs, size).
    """
    g = Graph("graph_network", opset, seed)
    x = g.input("nodes", [nodes, features])
    ends = g.input("edges", [2, edges], TensorProto.INT64)
    graph = g.input("graph", [nodes], TensorProto.INT64)
    sources, targets = (g.op("Gather", ends, g.constant(i, np.int64), axis=0) for i in range(2))
    ones = g.op("Expand", g.constant([[1.0]]), g.ints(edges, 1))
    degrees = g.op("Clip", _scatter_sum(g, ones, targets, nodes, 1), g.constant(1.0))
    x = g.linear(x, features, size)
    for _ in range(steps):
        x = _step(g, x, sources, targets, degrees, nodes, size)
    g.output(x, "states", 2)
    # As torch.index_add is exported.
    index = g.op("Unsqueeze", graph, g.ints(1))
    pooled = g.op("ScatterND", _zeros(g, graphs, size), index, x, reduction="add")
    g.output(_mlp(g, pooled, size, size), "graphs", 2)
    return g.build()


def graph_inputs(nodes=90, edges=400, features=12, graphs=4, seed=7):
    """A random graph, with some nodes that no edge reaches."""
    rng = np.random.default_rng(seed)
    return {
        "nodes": rng.standard_normal((nodes, features)).astype(np.float32),
        "edges": rng.integers(0, [[nodes], [nodes - 5]], (2, edges)),
        "graph": np.sort(rng.integers(0, graphs, nodes)),
    }
