# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A GPT-2-like decoder: learned positions, one linear layer for query, key and value, tanh GELU."""

import numpy as np
from onnx import TensorProto

from .graph import Graph
from .transformer import heads_by_split, layer_norm, merge_heads, up_to


def _tanh_gelu(g, x):
    cube = g.op("Mul", g.op("Pow", x, g.constant(3.0)), g.constant(0.044715))
    inner = g.op("Mul", g.op("Add", x, cube), g.constant(np.sqrt(2 / np.pi)))
    gate = g.op("Add", g.op("Tanh", inner), g.constant(1.0))
    return g.op("Mul", g.op("Mul", x, g.constant(0.5)), gate)


def _flat_linear(g, x, cin, cout, gain=1.0):
    """A Gemm of all positions of all sequences, as GPT-2's linear layers are written."""
    leading = g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(2), g.ints(0))
    weight = g.weight(g.normal((cin, cout), gain * cin**-0.5))
    bias = g.weight(g.normal((cout,), 0.1), "bias")
    y = g.op("Gemm", g.op("Reshape", x, g.ints(-1, cin)), weight, bias)
    return g.op("Reshape", y, g.op("Concat", leading, g.ints(cout), axis=0))


def _causal(g, length, positions):
    """Whether a position sees another (1, 1, length, length), of a table for more of them."""
    table = g.weight(np.tril(np.ones((1, 1, positions, positions), bool)), "causal")
    return up_to(g, table, length, 2, 3)


def _attention(g, x, size, heads, seen):
    query, key, value = heads_by_split(g, _flat_linear(g, x, size, 3 * size), heads)
    scores = g.op("Div", g.op("MatMul", query, key), g.constant((size // heads) ** 0.5))
    scores = g.op("Where", seen, scores, g.constant(np.finfo(np.float32).min))
    weights = g.op("Softmax", scores, axis=-1)
    mixed = merge_heads(g, g.op("MatMul", weights, value), x, size)
    return _flat_linear(g, mixed, size, size)


def gpt(
    batch=1,
    length=100,
    layers=3,
    heads=4,
    size=128,
    vocabulary=512,
    positions=128,
    opset=17,
    seed=0,
):
    """Input `ids` (batch, length) int64, below `vocabulary`.

    Output `logits` (batch, length, vocabulary).

    The tables of positions and of the causal mask have `positions` rows, of which the length takes
    the first: batch and length may be symbolic. The head's weights are those of the embedding.
    """
    g = Graph("gpt", opset, seed)
    ids = g.input("ids", [batch, length], TensorProto.INT64)
    embedding = g.weight(g.normal((vocabulary, size), 0.2), "embedding")
    rows = g.dim(ids, 1)
    numbers = g.op("Range", g.constant(0, np.int64), rows, g.constant(1, np.int64))
    numbers = g.op("Unsqueeze", numbers, g.ints(0))
    table = g.weight(g.normal((positions, size), 0.2), "positions")
    placed = g.op("Gather", table, numbers, axis=0)
    x = g.op("Add", g.op("Gather", embedding, ids, axis=0), placed)
    seen = _causal(g, rows, positions)
    for _ in range(layers):
        x = g.op("Add", x, _attention(g, layer_norm(g, x, size, False), size, heads, seen))
        y = _tanh_gelu(g, _flat_linear(g, layer_norm(g, x, size, False), size, 4 * size))
        x = g.op("Add", x, _flat_linear(g, y, 4 * size, size))
    x = layer_norm(g, x, size, False)
    g.output(g.op("MatMul", x, g.op("Transpose", embedding, perm=[1, 0])), "logits", 3)
    return g.build()
