# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A BERT-like encoder: sequences of several lengths under a mask, normalisation after each sum."""

import numpy as np
from onnx import TensorProto

from .graph import Graph
from .transformer import gelu, layer_norm, merge_heads


def _embeddings(g, ids, size, vocabulary, positions):
    """Words and kinds of sequence by Gathers, positions by a Slice of a table."""
    end = g.op("Unsqueeze", g.dim(ids, 1), g.ints(0))
    words = g.op("Gather", g.weight(g.normal((vocabulary, size), 0.7), "words"), ids, axis=0)
    zeros = g.weight(np.zeros((1, positions), np.int64), "kinds")
    kinds = g.op("Slice", zeros, g.ints(0), end, g.ints(1), g.ints(1))
    kinds = g.op("Expand", kinds, g.op("Shape", ids))
    kinds = g.op("Gather", g.weight(g.normal((2, size), 0.3), "kinds"), kinds, axis=0)
    placed = g.weight(g.normal((1, positions, size), 0.5), "positions")
    placed = g.op("Slice", placed, g.ints(0), end, g.ints(1), g.ints(1))
    x = g.op("Add", g.op("Add", words, kinds), placed)
    return layer_norm(g, x, size, True)


def _penalty(g, mask):
    """0 where the mask (batch, length) is 1, else the lowest number, for any head and query."""
    mask = g.op("Unsqueeze", g.op("Unsqueeze", mask, g.ints(1)), g.ints(2))
    mask = g.op("Cast", mask, to=TensorProto.FLOAT)
    hidden = g.op("Sub", g.constant(1.0), mask)
    return g.op("Mul", hidden, g.constant(np.finfo(np.float32).min))


def _attention(g, x, size, heads, penalty):
    def project(perm):
        shaped = g.op("Reshape", g.linear(x, size, size), g.ints(0, 0, heads, size // heads))
        return g.op("Transpose", shaped, perm=perm)

    query, key, value = project([0, 2, 1, 3]), project([0, 2, 3, 1]), project([0, 2, 1, 3])
    scores = g.op("Div", g.op("MatMul", query, key), g.constant((size // heads) ** 0.5))
    weights = g.op("Softmax", g.op("Add", scores, penalty), axis=-1)
    mixed = merge_heads(g, g.op("MatMul", weights, value), x, size)
    return g.linear(mixed, size, size)


def bert(
    batch=1,
    length=100,
    layers=3,
    heads=4,
    size=128,
    vocabulary=512,
    positions=128,
    opset=14,
    seed=0,
):
    """Inputs `ids` and `mask` (batch, length), both int64.

    Outputs `features` (batch, length, size) and `pooled` (batch, size).

    Ids are below `vocabulary`. The mask is 1 where a sequence has a token, and 0 behind its end;
    the first is always 1. Tables have `positions` rows, of which the length takes the first: batch
    and length may be symbolic.
    """
    g = Graph("bert", opset, seed)
    ids = g.input("ids", [batch, length], TensorProto.INT64)
    penalty = _penalty(g, g.input("mask", [batch, length], TensorProto.INT64))
    x = _embeddings(g, ids, size, vocabulary, positions)
    for _ in range(layers):
        y = _attention(g, x, size, heads, penalty)
        x = layer_norm(g, g.op("Add", y, x), size, True)
        y = g.linear(gelu(g, g.linear(x, size, 4 * size)), 4 * size, size)
        x = layer_norm(g, g.op("Add", y, x), size, True)
    g.output(x, "features", 3)
    first = g.op("Gather", x, g.constant(0, np.int64), axis=1)
    weight = g.weight(g.normal((size, size), size**-0.5))
    pooled = g.op("Gemm", first, weight, g.weight(g.normal((size,), 0.1), "bias"), transB=1)
    g.output(g.op("Tanh", pooled), "pooled", 2)
    return g.build()
