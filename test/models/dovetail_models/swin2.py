# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Swin v2: attention by the cosines of queries and keys, biases of a small network, and norms behind the branches."""

import numpy as np

from .graph import Graph
from .swin import from_windows, roll, shift_mask, split_windows, weigh_values, END
from .transformer import gelu, heads_by_gather, layer_norm


def _normalize(g, x):
    """torch.nn.functional.normalize over the last dimension."""
    norm = g.op("ReduceL2", x, g.ints(-1), keepdims=1)
    norm = g.op("Clip", norm, g.constant(1e-12))
    return g.op("Div", x, g.op("Expand", norm, g.op("Shape", x)))


def _log_spaced(window):
    """All differences of two positions of a window (1, 2 window - 1, 2 window - 1, 2), in logarithmic steps."""
    steps = np.arange(1 - window, window, dtype=np.float32)
    table = np.stack(np.meshgrid(steps, steps, indexing="ij"), -1)[None] * 8 / (window - 1)
    return (np.sign(table) * np.log2(np.abs(table) + 1) / 3).astype(np.float32)


def _position_bias(g, window, heads, inner):
    """(1, heads, positions, positions)."""
    positions = window * window
    rows, columns = (c.ravel() for c in np.indices((window, window)))
    index = (rows[:, None] - rows + window - 1) * (2 * window - 1) + columns[:, None] - columns + window - 1
    hidden = g.op("Relu", g.linear(g.weight(_log_spaced(window), "coordinates"), 2, inner))
    table = g.op("Reshape", g.linear(hidden, inner, heads, bias=False), g.ints(-1, heads))
    bias = g.op("Gather", table, g.weight(index.ravel(), "index"), axis=0)
    bias = g.op("Reshape", bias, g.ints(positions, positions, heads))
    bias = g.op("Unsqueeze", g.op("Transpose", bias, perm=[2, 0, 1]), g.ints(0))
    return g.op("Mul", g.op("Sigmoid", bias), g.constant(16.0))


def _attention(g, x, size, heads, window, mask, inner):
    positions = window * window
    query, key, value = heads_by_gather(g, g.linear(x, size, 3 * size), heads)
    key = g.op("Transpose", key, perm=[0, 1, 3, 2])
    scores = g.op("MatMul", _normalize(g, query), g.op("Transpose", _normalize(g, key), perm=[0, 1, 3, 2]))
    scale = g.weight(g.uniform((heads, 1, 1), 1.0, 5.0), "logit_scale")
    scale = g.op("Exp", g.op("Clip", scale, "", g.constant(np.log(100.0))))
    scores = g.op("Add", g.op("Mul", scores, scale), _position_bias(g, window, heads, inner))
    return weigh_values(g, scores, value, size, heads, positions, mask)


def _block(g, x, height, width, size, heads, window, shift, inner):
    """Of (batch, height, width, size), as torchvision keeps it."""
    y = roll(g, x, shift) if shift else x
    mask = shift_mask(height, width, window, shift) if shift else None
    y = split_windows(g, y, height, width, window, size)
    y = _attention(g, y, size, heads, window, mask, inner)
    y = from_windows(g, y, height, width, window, size)
    y = roll(g, y, -shift) if shift else y
    x = g.op("Add", x, layer_norm(g, y, size, False))
    y = g.linear(gelu(g, g.linear(x, size, 4 * size)), 4 * size, size)
    return g.op("Add", x, layer_norm(g, y, size, False))


def _merge_patches(g, x, size):
    parts = []
    for column in (0, 1):
        for row in (0, 1):
            part = x
            for axis, begin in ((1, row), (2, column)):
                part = g.op("Slice", part, g.ints(begin), g.ints(END), g.ints(axis), g.ints(2))
            parts.append(part)
    x = g.linear(g.op("Concat", *parts, axis=-1), 4 * size, 2 * size, bias=False)
    return layer_norm(g, x, 2 * size, False)


def swin_v2(
    batch=1,
    height=96,
    width=64,
    patch=4,
    window=4,
    size=48,
    heads=(3, 6),
    blocks=(2, 2),
    inner=64,
    classes=10,
    opset=18,
    seed=0,
):
    """Input `image` (batch, 3, height, width).

    Outputs `features` (batch, rows, columns, channels) and `logits` (batch, classes). Sizes as those of `swin`; `inner`
    is the hidden size of the network that gives biases of relative positions.
    """
    g = Graph("swin_v2", opset, seed)
    x = g.input("image", [batch, 3, height, width])
    x = g.conv(x, 3, size, (patch, patch), stride=patch, pad=0)
    height, width = height // patch, width // patch
    x = layer_norm(g, g.op("Transpose", x, perm=[0, 2, 3, 1]), size, False)
    for stage, count in enumerate(blocks):
        if stage:
            x = _merge_patches(g, x, size)
            height, width, size = height // 2, width // 2, 2 * size
        for block in range(count):
            shift = window // 2 if block % 2 else 0
            x = _block(g, x, height, width, size, heads[stage], window, shift, inner)
    x = layer_norm(g, x, size, False)
    g.output(x, "features", 4)
    pooled = g.op("GlobalAveragePool", g.op("Transpose", x, perm=[0, 3, 1, 2]))
    weight = g.weight(g.normal((classes, size), size**-0.5))
    bias = g.weight(g.normal((classes,), 0.1), "bias")
    g.output(g.op("Gemm", g.op("Flatten", pooled, axis=1), weight, bias, transB=1), "logits", 2)
    return g.build()
