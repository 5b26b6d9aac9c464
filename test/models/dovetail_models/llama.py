# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Llama-like decoder: RMS normalisation, rotary positions, grouped queries, a gated MLP."""

import numpy as np
from onnx import TensorProto

from .graph import Graph
from .transformer import mean, merge_heads, up_to

_LOWEST = np.finfo(np.float32).min


def _rms_norm(g, x, size, name):
    square = mean(g, g.op("Pow", x, g.constant(2.0)))
    deviation = g.op("Sqrt", g.op("Add", square, g.constant(1e-6)))
    normal = g.op("Mul", x, g.op("Div", g.constant(1.0), deviation))
    return g.op("Mul", g.weight(g.uniform((size,), 0.5, 1.5), "scale"), normal, name=name)


def _vector(g, *entries):
    """A shape of scalars, computed and given ones: batch and length are unknown to an exporter."""
    parts = [g.ints(e) if isinstance(e, int) else g.op("Unsqueeze", e, g.ints(0)) for e in entries]
    return g.op("Concat", *parts, axis=0)


def _rotary_tables(g, length, positions, width):
    """Cosines and sines (1, 1, length, width) of each position's angles."""
    frequencies = 10000.0 ** (-np.arange(0, width, 2) / width)
    angles = np.outer(np.arange(positions), np.concatenate([frequencies, frequencies]))
    for function, stem in ((np.cos, "cos"), (np.sin, "sin")):
        table = g.weight(function(angles).astype(np.float32), stem)
        yield g.op("Unsqueeze", up_to(g, table, length, 0), g.ints(0, 1))


def _rotate(g, x, cos, sin, width, name):
    """x * cos + rotate_half(x) * sin."""
    low = g.op("Slice", x, g.ints(0), g.ints(width // 2), g.ints(3), g.ints(1))
    end = np.iinfo(np.int64).max
    high = g.op("Slice", x, g.ints(width // 2), g.ints(end), g.ints(3), g.ints(1))
    half = g.op("Concat", g.op("Neg", high), low, axis=-1)
    return g.op("Add", g.op("Mul", x, cos), g.op("Mul", half, sin), name=name)


def _repeat(g, x, batch, length, groups, repeats, width):
    """Each head of a key or value once for each query head that shares it."""
    if repeats == 1:
        return x
    shape = _vector(g, batch, groups, repeats, length, width)
    x = g.op("Expand", g.op("Unsqueeze", x, g.ints(2)), shape)
    return g.op("Reshape", x, _vector(g, batch, groups * repeats, length, width))


def _attention(g, x, size, heads, groups, tables, mask, path):
    width = size // heads
    batch, length = g.dim(x, 0), g.dim(x, 1)

    def project(name, count):
        projected = g.linear(x, size, count * width, bias=False, name=f"{path}/{name}")
        shaped = g.op("Reshape", projected, _vector(g, batch, length, count, width))
        return g.op("Transpose", shaped, perm=[0, 2, 1, 3])

    query, key, value = project("q", heads), project("k", groups), project("v", groups)
    query = _rotate(g, query, *tables, width, f"{path}/q_rotated")
    key = _rotate(g, key, *tables, width, f"{path}/k_rotated")
    key = _repeat(g, key, batch, length, groups, heads // groups, width)
    value = _repeat(g, value, batch, length, groups, heads // groups, width)
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]), name=f"{path}/scores")
    scores = g.op("Add", g.op("Div", scores, g.constant(width**0.5)), mask)
    weights = g.op("Softmax", scores, axis=-1, name=f"{path}/weights")
    mixed = merge_heads(g, g.op("MatMul", weights, value), x, size)
    return g.linear(mixed, size, size, bias=False, name=f"{path}/o")


def _mlp(g, x, size, inner, path):
    gate = g.linear(x, size, inner, bias=False, name=f"{path}/gate")
    gate = g.op("Mul", gate, g.op("Sigmoid", gate))
    up = g.linear(x, size, inner, bias=False, name=f"{path}/up")
    return g.linear(g.op("Mul", gate, up), inner, size, gain=1.5, bias=False, name=f"{path}/down")


def llama(
    batch=1,
    length=211,
    layers=4,
    heads=8,
    groups=2,
    width=32,
    inner=688,
    vocabulary=512,
    positions=256,
    opset=17,
    seed=0,
):
    """Input `ids` (batch, length) int64, below `vocabulary`.

    Output `logits` (batch, length, vocabulary).

    `heads` query heads of `width` share `groups` key and value heads. The tables of rotary positions
    and of the causal mask have `positions` rows, of which the length takes the first: batch and
    length may be symbolic.

    Values that a user may want to split have names of their own: `/embed`, in each layer N from 0
    `/layers.N/` with `norm1`, `q`, `k`, `v` (batch, length, heads or groups * width), `q_rotated`,
    `k_rotated`, `scores`, `weights` (batch, heads, ...), `o`, `add1`, `norm2`, `gate`, `up`
    (batch, length, inner), `down` and `add2`, and `/norm`.
    """
    g = Graph("llama", opset, seed)
    size = heads * width
    ids = g.input("ids", [batch, length], TensorProto.INT64)
    x = g.op("Gather", g.weight(g.normal((vocabulary, size))), ids, axis=0, name="/embed")
    rows = g.dim(ids, 1)
    tables = list(_rotary_tables(g, rows, positions, width))
    causal = np.triu(np.full((positions, positions), _LOWEST), 1)[None, None]
    mask = up_to(g, g.weight(causal, "causal"), rows, 2, 3)
    for layer in range(layers):
        path = f"/layers.{layer}"
        y = _rms_norm(g, x, size, f"{path}/norm1")
        y = _attention(g, y, size, heads, groups, tables, mask, path)
        x = g.op("Add", x, y, name=f"{path}/add1")
        y = _mlp(g, _rms_norm(g, x, size, f"{path}/norm2"), size, inner, path)
        x = g.op("Add", x, y, name=f"{path}/add2")
    x = _rms_norm(g, x, size, "/norm")
    g.output(g.linear(x, size, vocabulary, bias=False), "logits", 3)
    return g.build()
