# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A vision transformer with its attention and activations spelt out, as exporters write them."""

import numpy as np

from .graph import Graph
from .transformer import gelu, heads_by_gather, heads_by_split, layer_norm, merge_heads


def _hard_swish(g, x):
    gate = g.op("Clip", g.op("Add", x, g.constant(3.0)), g.constant(0.0), g.constant(6.0))
    return g.op("Div", g.op("Mul", x, gate), g.constant(6.0))


def _attention(g, x, size, heads, by_split):
    qkv = g.linear(x, size, 3 * size)
    query, key, value = (heads_by_split if by_split else heads_by_gather)(g, qkv, heads)
    query = g.op("Mul", query, g.constant((size // heads) ** -0.5))
    weights = g.op("Softmax", g.op("MatMul", query, key), axis=-1)
    mixed = merge_heads(g, g.op("MatMul", weights, value), x, size)
    return g.linear(mixed, size, size)


def _encoder(g, x, size, heads, blocks):
    for block in range(blocks):
        odd = block % 2 == 1
        y = _attention(g, layer_norm(g, x, size, odd), size, heads, by_split=not odd)
        x = g.op("Add", x, y)
        y = g.linear(layer_norm(g, x, size, not odd), size, 4 * size)
        y = _hard_swish(g, y) if odd else gelu(g, y)
        x = g.op("Add", x, g.linear(y, 4 * size, size))
    return layer_norm(g, x, size, False)


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
