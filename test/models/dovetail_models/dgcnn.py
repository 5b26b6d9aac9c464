# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DGCNN: convolutions over the edges to the nearest neighbours of each point, which each layer finds anew."""

import numpy as np

from .graph import Graph


def _nearest(g, x, neighbours):
    """Of points x (batch, size, points), the indices (batch, points, neighbours) of those nearest to each."""
    products = g.op("MatMul", g.op("Transpose", x, perm=[0, 2, 1]), x)
    inner = g.op("Mul", products, g.constant(-2.0))
    squares = g.op("ReduceSum", g.op("Pow", x, g.constant(2.0)), g.ints(1), keepdims=1)
    negative = g.op("Sub", g.op("Sub", g.op("Neg", squares), inner), g.op("Transpose", squares, perm=[0, 2, 1]))
    return g.op("TopK", negative, g.ints(neighbours), outputs=2, axis=-1, largest=1, sorted=1)[1]


def _edges(g, x, batch, size, points, neighbours):
    """(batch, 2 * size, points, neighbours): how each neighbour differs from the point, and the point."""
    index = _nearest(g, x, neighbours)
    # Points of all clouds in one table.
    first = g.op("Range", g.constant(0, np.int64), g.constant(batch, np.int64), g.constant(1, np.int64))
    first = g.op("Mul", g.op("Reshape", first, g.ints(-1, 1, 1)), g.constant(points, np.int64))
    index = g.op("Reshape", g.op("Add", index, first), g.ints(-1))
    x = g.op("Transpose", x, perm=[0, 2, 1])
    found = g.op("Gather", g.op("Reshape", x, g.ints(batch * points, -1)), index, axis=0)
    found = g.op("Reshape", found, g.ints(batch, points, neighbours, size))
    # torch's repeat.
    centre = g.op("Tile", g.op("Reshape", x, g.ints(batch, points, 1, size)), g.ints(1, 1, neighbours, 1))
    edges = g.op("Concat", g.op("Sub", found, centre), centre, axis=3)
    return g.op("Transpose", edges, perm=[0, 3, 1, 2])


def _activated(g, x, channels):
    return g.op("LeakyRelu", g.batch_norm(x, channels), alpha=0.2)


def dgcnn(batch=2, points=70, neighbours=9, widths=(16, 16, 32), embedding=48, classes=10, opset=18, seed=0):
    """Input `cloud` (batch, 3, points); outputs `features` (batch, embedding, points) and `logits` (batch, classes)."""
    g = Graph("dgcnn", opset, seed)
    x = g.input("cloud", [batch, 3, points])
    size, layers = 3, []
    for width in widths:
        y = _edges(g, x, batch, size, points, neighbours)
        y = _activated(g, g.conv(y, 2 * size, width, (1, 1), bias=False), width)
        x = g.op("ReduceMax", y, g.ints(-1), keepdims=0)
        size = width
        layers.append(x)
    x = g.op("Concat", *layers, axis=1)
    x = _activated(g, g.conv(x, sum(widths), embedding, (1,), bias=False), embedding)
    g.output(x, "features", 3)
    largest = g.op("Reshape", g.op("GlobalMaxPool", x), g.ints(batch, -1))
    mean = g.op("Reshape", g.op("GlobalAveragePool", x), g.ints(batch, -1))
    x = g.op("Concat", largest, mean, axis=1)
    weight = g.weight(g.normal((classes, 2 * embedding), (2 * embedding) ** -0.5))
    g.output(g.op("Gemm", x, weight, g.weight(g.normal((classes,), 0.1), "bias"), transB=1), "logits", 2)
    return g.build()
