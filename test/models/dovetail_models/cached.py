# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decoder with caches of keys and values of fixed extents: a step of it, and a Loop that generates with it."""

import numpy as np
from onnx import TensorProto, helper

from .graph import Graph
from .transformer import gelu, layer_norm


def _attention(g, x, position, caches, batch, room, size, heads):
    """Of one token of each sequence x (batch, 1, size). Returns also the caches (batch, heads, room, width) with it."""
    width = size // heads
    query, *new = (
        g.op("Transpose", g.op("Reshape", g.linear(x, size, size), g.ints(batch, 1, heads, width)), perm=[0, 2, 1, 3])
        for _ in range(3)
    )
    key, value = (
        g.op("TensorScatter", cache, given, position, axis=2, mode="linear") for cache, given in zip(caches, new)
    )
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = g.op("Mul", scores, g.constant(width**-0.5))
    places = g.op("Range", g.constant(0, np.int64), g.constant(room, np.int64), g.constant(1, np.int64))
    seen = g.op("LessOrEqual", places, g.op("Reshape", position, g.ints(batch, 1, 1, 1)))
    scores = g.op("Where", seen, scores, g.constant(np.finfo(np.float32).min))
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
    mixed = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), g.ints(batch, 1, size))
    return g.linear(mixed, size, size), [key, value]


def _step(g, ids, position, caches, batch, room, layers, heads, size, vocabulary):
    """Logits (batch, vocabulary) and caches after the tokens `ids` (batch, 1) at `position` (batch)."""
    x = g.op("Gather", g.weight(g.normal((vocabulary, size)), "embedding"), ids, axis=0)
    table = g.weight(g.normal((room, size), 0.3), "positions")
    x = g.op("Add", x, g.op("Unsqueeze", g.op("Gather", table, position, axis=0), g.ints(1)))
    written = []
    for layer in range(layers):
        y, new = _attention(
            g, layer_norm(g, x, size, False), position, caches[2 * layer : 2 * layer + 2], batch, room, size, heads
        )
        written += new
        x = g.op("Add", x, y)
        y = gelu(g, g.linear(layer_norm(g, x, size, False), size, 4 * size))
        x = g.op("Add", x, g.linear(y, 4 * size, size))
    x = g.op("Squeeze", layer_norm(g, x, size, False), g.ints(1))
    return g.linear(x, size, vocabulary, gain=2.0, bias=False), written


def _cache_names(layers):
    return [f"{kind}_{layer}" for layer in range(layers) for kind in ("keys", "values")]


def cached_step(batch=3, room=37, layers=2, heads=4, size=48, vocabulary=96, opset=24, seed=0):
    """One step of a decoder.

    Inputs `ids` (batch, 1), `position` (batch) of these in their sequences, and caches `keys_N`, `values_N` (batch,
    heads, room, size / heads). Outputs `logits` (batch, vocabulary) and the caches, `next_keys_N`, `next_values_N`.
    """
    g = Graph("cached_step", opset, seed)
    ids = g.input("ids", [batch, 1], TensorProto.INT64)
    position = g.input("position", [batch], TensorProto.INT64)
    names = _cache_names(layers)
    caches = [g.input(name, [batch, heads, room, size // heads]) for name in names]
    logits, written = _step(g, ids, position, caches, batch, room, layers, heads, size, vocabulary)
    g.output(logits, "logits", 2)
    for name, value in zip(names, written):
        g.output(value, "next_" + name, 4)
    return g.build()


def cached_loop(batch=3, steps=5, room=37, layers=2, heads=4, size=48, vocabulary=96, opset=24, seed=0):
    """A Loop of `steps` steps, each of which takes the token that the one before finds most likely.

    Inputs as those of `cached_step`. Outputs `tokens` (steps, batch), `logits` of all steps (steps, batch, vocabulary),
    and `last_keys_0`, a cache as the last step leaves it.
    """
    g = Graph("cached_loop", opset, seed)
    first = g.input("ids", [batch, 1], TensorProto.INT64)
    start = g.input("position", [batch], TensorProto.INT64)
    names = _cache_names(layers)
    shape = [batch, heads, room, size // heads]
    caches = [g.input(name, shape) for name in names]
    outer, g.nodes = g.nodes, []
    inner = ["in_" + name for name in names]
    logits, written = _step(g, "in_ids", "in_position", inner, batch, room, layers, heads, size, vocabulary)
    token = g.op("ArgMax", logits, axis=-1, keepdims=1)
    moved = g.op("Add", "in_position", g.constant(1, np.int64))
    go_on = g.op("Identity", "in_go_on")
    flat = g.op("Squeeze", token, g.ints(1))
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        g.nodes,
        "body",
        [value("step", TensorProto.INT64, []), value("in_go_on", TensorProto.BOOL, [])]
        + [value("in_ids", TensorProto.INT64, [batch, 1]), value("in_position", TensorProto.INT64, [batch])]
        + [value(name, TensorProto.FLOAT, shape) for name in inner],
        [value(go_on, TensorProto.BOOL, []), value(token, TensorProto.INT64, [batch, 1])]
        + [value(moved, TensorProto.INT64, [batch])]
        + [value(name, TensorProto.FLOAT, shape) for name in written]
        + [value(flat, TensorProto.INT64, [batch]), value(logits, TensorProto.FLOAT, [batch, vocabulary])],
    )
    # Constants of the body are nobody else's.
    g.nodes, g._constants = outer, {}
    count, condition = g.constant(steps, np.int64), g.constant(True, np.bool_)
    results = g.op("Loop", count, condition, first, start, *caches, outputs=4 + len(caches), body=body)
    g.output(results[-2], "tokens", 2, TensorProto.INT64)
    g.output(results[-1], "logits", 3)
    g.output(results[2], "last_keys_0", 4)
    return g.build()


def cached_inputs(batch=3, room=37, layers=2, heads=4, size=48, vocabulary=96, seed=7):
    """Sequences of different lengths; what lies behind them in the caches is never looked at."""
    rng = np.random.default_rng(seed)
    inputs = {
        "ids": rng.integers(0, vocabulary, (batch, 1)),
        "position": (room * (np.arange(batch) + 1)) // (batch + 2),
    }
    for name in _cache_names(layers):
        inputs[name] = rng.standard_normal((batch, heads, room, size // heads)).astype(np.float32)
    return inputs
