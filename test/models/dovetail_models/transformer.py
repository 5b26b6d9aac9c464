# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pieces of transformers, spelt out as exporters write them."""

import numpy as np


def mean(g, x):
    """The mean over the last dimension, which is kept."""
    if g.opset >= 18:
        return g.op("ReduceMean", x, g.ints(-1), keepdims=1)
    return g.op("ReduceMean", x, axes=[-1], keepdims=1)


def layer_norm(g, x, size, spelt_out):
    """A layer normalisation over the last dimension: a node, or several, as older exporters make it."""
    scale = g.weight(g.uniform((size,), 0.5, 1.5), "scale")
    shift = g.weight(g.normal((size,), 0.1), "shift")
    if not spelt_out:
        return g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-6)
    centred = g.op("Sub", x, mean(g, x))
    variance = mean(g, g.op("Pow", centred, g.constant(2.0)))
    deviation = g.op("Sqrt", g.op("Add", variance, g.constant(1e-6)))
    return g.op("Add", g.op("Mul", g.op("Div", centred, deviation), scale), shift)


def gelu(g, x):
    erf = g.op("Erf", g.op("Div", x, g.constant(np.sqrt(2.0))))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.constant(1.0))), g.constant(0.5))


def heads_by_split(g, x, heads):
    """Query, transposed key and value by a Split of the last dimension."""
    parts = g.op("Split", x, outputs=3, axis=-1, **({"num_outputs": 3} if g.opset >= 18 else {}))
    shaped = [g.op("Reshape", p, g.ints(0, 0, heads, -1)) for p in parts]
    query, value = (g.op("Transpose", shaped[i], perm=[0, 2, 1, 3]) for i in (0, 2))
    return query, g.op("Transpose", shaped[1], perm=[0, 2, 3, 1]), value


def heads_by_gather(g, x, heads):
    """Query, transposed key and value by one Transpose of five dimensions and three Gathers."""
    shaped = g.op("Reshape", x, g.ints(0, 0, 3, heads, -1))
    shaped = g.op("Transpose", shaped, perm=[2, 0, 3, 1, 4])
    query, key, value = (
        g.op("Gather", shaped, g.constant(i, np.int64), axis=0) for i in range(3)
    )
    return query, g.op("Transpose", key, perm=[0, 1, 3, 2]), value


def merge_heads(g, mixed, x, size):
    """`mixed` (batch, heads, length, ...) as (batch, length, size); `x` has that batch and length."""
    mixed = g.op("Transpose", mixed, perm=[0, 2, 1, 3])
    # Shape arithmetic instead of constants: batch and length are unknown to an exporter.
    shape = g.op(
        "Concat",
        g.op("Unsqueeze", g.dim(x, 0), g.ints(0)),
        g.op("Unsqueeze", g.dim(x, 1), g.ints(0)),
        g.ints(size),
        axis=0,
    )
    return g.op("Reshape", mixed, shape)


def up_to(g, table, length, *axes):
    """The first `length` entries of a table along `axes`."""
    end = g.op("Unsqueeze", length, g.ints(0))
    for axis in axes:
        table = g.op("Slice", table, g.ints(0), end, g.ints(axis), g.ints(1))
    return table
