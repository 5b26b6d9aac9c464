# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A vision transformer with its attention and activations spelt out, as exporters write them."""

import numpy as np

from .graph import Graph


def _layer_norm(g, x, size, spelt_out):
    scale = g.weight(g.uniform((size,), 0.5, 1.5), "scale")
    shift = g.weight(g.normal((size,), 0.1), "shift")
    if not spelt_out:
        return g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-6)
    centred = g.op("Sub", x, _mean(g, x))
    variance = _mean(g, g.op("Pow", centred, g.constant(2.0)))
    deviation = g.op("Sqrt", g.op("Add", variance, g.constant(1e-6)))
    return g.op("Add", g.op("Mul", g.op("Div", centred, deviation), scale), shift)


def _mean(g, x):
    if g.opset >= 18:
        return g.op("ReduceMean", x, g.ints(-1), keepdims=1)
    return g.op("ReduceMean", x, axes=[-1], keepdims=1)


def _gelu(g, x):
    erf = g.op("Erf", g.op("Div", x, g.constant(np.sqrt(2.0))))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.constant(1.0))), g.constant(0.5))


def _hard_swish(g, x):
    gate = g.op("Clip", g.op("Add", x, g.constant(3.0)), g.constant(0.0), g.constant(6.0))
    return g.op("Div", g.op("Mul", x, gate), g.constant(6.0))


def _heads_by_split(g, x, heads):
    """Query, key and value by splitting the last dimension, then Reshape and Transpose for each."""
    parts = g.op("Split", x, outputs=3, axis=-1, **({"num_outputs": 3} if g.opset >= 18 else {}))
    shaped = [g.op("Reshape", p, g.ints(0, 0, heads, -1)) for p in parts]
    query, value = (g.op("Transpose", shaped[i], perm=[0, 2, 1, 3]) for i in (0, 2))
    return query, g.op("Transpose", shaped[1], perm=[0, 2, 3, 1]), value


def _heads_by_gather(g, x, heads):
    """Query, key and value by one Reshape and Transpose to five dimensions and three Gathers."""
    shaped = g.op("Reshape", x, g.ints(0, 0, 3, heads, -1))
    shaped = g.op("Transpose", shaped, perm=[2, 0, 3, 1, 4])
    query, key, value = (
        g.op("Gather", shaped, g.constant(i, np.int64), axis=0) for i in range(3)
    )
    return query, g.op("Transpose", key, perm=[0, 1, 3, 2]), value


def _attention(g, x, size, heads, by_split):
    qkv = g.linear(x, size, 3 * size)
    query, key, value = (_heads_by_split if by_split else _heads_by_gather)(g, qkv, heads)
    query = g.op("Mul", query, g.constant((size // heads) ** -0.5))
    weights = g.op("Softmax", g.op("MatMul", query, key), axis=-1)
    mixed = g.op("Transpose", g.op("MatMul", weights, value), perm=[0, 2, 1, 3])
    # Shape arithmetic instead of constants: batch and length are unknown to an exporter.
    shape = g.op(
        "Concat",
        g.op("Unsqueeze", g.dim(x, 0), g.ints(0)),
        g.op("Unsqueeze", g.dim(x, 1), g.ints(0)),
        g.ints(size),
        axis=0,
    )
    return g.linear(g.op("Reshape", mixed, shape), size, size)


def _encoder(g, x, size, heads, blocks):
    for block in range(blocks):
        odd = block % 2 == 1
        y = _attention(g, _layer_norm(g, x, size, odd), size, heads, by_split=not odd)
        x = g.op("Add", x, y)
        y = g.linear(_layer_norm(g, x, size, not odd), size, 4 * size)
        y = _hard_swish(g, y) if odd else _gelu(g, y)
        x = g.op("Add", x, g.linear(y, 4 * size, size))
    return _layer_norm(g, x, size, False)


def vit_encoder(batch=1, length=197, size=96, heads=4, blocks=4, opset=17, seed=0):
    """Input `tokens` (batch, length, size); output `features` of the same shape."""
    g = Graph("vit-encoder", opset, seed)
    x = g.input("tokens", [batch, length, size])
    g.output(_encoder(g, x, size, heads, blocks), "features", 3)
    return g.build()


def vit(
    batch=1,
    height=112,
    width=80,
    patch=16,
    size=96,
    heads=4,
    blocks=4,
    classes=10,
    class_token=True,
    opset=17,
    seed=0,
):
    """Input `image` (batch, 3, height, width); outputs `features` (batch, length, size) and `logits`.

    The position embedding fixes height and width; `batch` may be symbolic. The length is
    (height / patch) * (width / patch), and one more with the class token.
    """
    g = Graph("vit", opset, seed)
    x = g.input("image", [batch, 3, height, width])
    x = g.conv(x, 3, size, (patch, patch), stride=patch, pad=0)
    x = g.op("Transpose", g.op("Reshape", x, g.ints(0, size, -1)), perm=[0, 2, 1])
    length = (height // patch) * (width // patch)
    if class_token:
        shape = g.op(
            "Concat", g.op("Unsqueeze", g.dim(x, 0), g.ints(0)), g.ints(1, size), axis=0
        )
        token = g.op("Expand", g.weight(g.normal((1, 1, size)), "token"), shape)
        x = g.op("Concat", token, x, axis=1)
        length += 1
    x = g.op("Add", x, g.weight(g.normal((1, length, size), 0.2), "positions"))
    x = _encoder(g, x, size, heads, blocks)
    g.output(x, "features", 3)
    if class_token:
        pooled = g.op("Gather", x, g.constant(0, np.int64), axis=1)
    elif g.opset >= 18:
        pooled = g.op("ReduceMean", x, g.ints(1), keepdims=0)
    else:
        pooled = g.op("ReduceMean", x, axes=[1], keepdims=0)
    weight = g.weight(g.normal((classes, size), size**-0.5))
    bias = g.weight(g.normal((classes,), 0.1), "bias")
    g.output(g.op("Gemm", pooled, weight, bias, transB=1), "logits", 2)
    return g.build()
