# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Swin-like transformer: attention in windows, which every other block shifts."""

import numpy as np

from .graph import Graph
from .transformer import gelu, heads_by_gather, layer_norm

END = np.iinfo(np.int64).max


def roll(g, x, shift):
    """torch.roll of height and width, towards the beginning or, by a negative shift, the end."""
    for axis in (1, 2):
        low = g.op("Slice", x, g.ints(shift), g.ints(END), g.ints(axis), g.ints(1))
        high = g.op("Slice", x, g.ints(0), g.ints(shift), g.ints(axis), g.ints(1))
        x = g.op("Concat", low, high, axis=axis)
    return x


def split_windows(g, x, height, width, window, size):
    """(batch, height, width, size) as (batch * windows, window * window, size)."""
    shape = g.ints(-1, height // window, window, width // window, window, size)
    x = g.op("Transpose", g.op("Reshape", x, shape), perm=[0, 1, 3, 2, 4, 5])
    return g.op("Reshape", x, g.ints(-1, window * window, size))


def from_windows(g, x, height, width, window, size):
    shape = g.ints(-1, height // window, width // window, window, window, size)
    x = g.op("Transpose", g.op("Reshape", x, shape), perm=[0, 1, 3, 2, 4, 5])
    return g.op("Reshape", x, g.ints(-1, height, width, size))


def shift_mask(height, width, window, shift):
    """(windows, positions, positions): -100 between what is adjacent only because it was rolled."""
    regions = np.zeros((height, width))
    bounds = [slice(0, -window), slice(-window, -shift), slice(-shift, None)]
    for index, (rows, columns) in enumerate((r, c) for r in bounds for c in bounds):
        regions[rows, columns] = index
    regions = regions.reshape(height // window, window, width // window, window)
    regions = regions.transpose(0, 2, 1, 3).reshape(-1, window * window)
    return np.where(regions[:, None] == regions[:, :, None], 0, -100).astype(np.float32)


def _position_bias(g, window, heads, is_folded):
    """(1, heads, positions, positions): of a table of relative positions, folded as most exporters do."""
    table = g.normal((2 * window - 1, 2 * window - 1, heads), 0.5)
    rows, columns = (c.ravel() for c in np.indices((window, window)))
    index = (rows[:, None] - rows + window - 1, columns[:, None] - columns + window - 1)
    if is_folded:
        return g.weight(table[index].transpose(2, 0, 1)[None], "bias_table")
    # table[index] of PyTorch, and of functional frameworks.
    positions = window * window
    if heads % 2:
        flat = g.weight(table.reshape(-1, heads), "bias_table")
        number = g.weight((index[0] * (2 * window - 1) + index[1]).ravel(), "index")
        bias = g.op("Reshape", g.op("Gather", flat, number, axis=0), g.ints(positions, positions, heads))
    else:
        bias = g.op("GatherND", g.weight(table, "bias_table"), g.weight(np.stack(index, -1), "index"))
    return g.op("Unsqueeze", g.op("Transpose", bias, perm=[2, 0, 1]), g.ints(0))


def weigh_values(g, scores, value, size, heads, positions, mask):
    """What is behind the scores of windows: `mask` has one entry a window of an image, or is None."""
    if mask is not None:
        scores = g.op("Reshape", scores, g.ints(-1, len(mask), heads, positions, positions))
        scores = g.op("Add", scores, g.weight(mask[None, :, None], "mask"))
        scores = g.op("Reshape", scores, g.ints(-1, heads, positions, positions))
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
    mixed = g.op("Transpose", mixed, perm=[0, 2, 1, 3])
    return g.linear(g.op("Reshape", mixed, g.ints(-1, positions, size)), size, size)


def _attention(g, x, size, heads, window, mask, is_folded):
    """Within each window; `mask` has one entry a window of an image, or is None."""
    positions = window * window
    query, key, value = heads_by_gather(g, g.linear(x, size, 3 * size), heads)
    scores = g.op("MatMul", g.op("Mul", query, g.constant((size // heads) ** -0.5)), key)
    scores = g.op("Add", scores, _position_bias(g, window, heads, is_folded))
    return weigh_values(g, scores, value, size, heads, positions, mask)


def swin_block(g, x, height, width, size, heads, window, shift, is_folded):
    """Attention in windows, shifted or not, and a perceptron, both residual: x is (batch, height * width, size)."""
    y = layer_norm(g, x, size, False)
    y = g.op("Reshape", y, g.ints(-1, height, width, size))
    if shift:
        y = roll(g, y, shift)
    mask = shift_mask(height, width, window, shift) if shift else None
    y = split_windows(g, y, height, width, window, size)
    y = _attention(g, y, size, heads, window, mask, is_folded)
    y = from_windows(g, y, height, width, window, size)
    if shift:
        y = roll(g, y, -shift)
    x = g.op("Add", x, g.op("Reshape", y, g.ints(-1, height * width, size)))
    y = g.linear(layer_norm(g, x, size, False), size, 4 * size)
    return g.op("Add", x, g.linear(gelu(g, y), 4 * size, size))


def _merge_patches(g, x, height, width, size):
    """Four neighbours become one position of twice the size."""
    x = g.op("Reshape", x, g.ints(-1, height, width, size))
    parts = []
    for column in (0, 1):
        for row in (0, 1):
            part = x
            for axis, begin in ((1, row), (2, column)):
                part = g.op("Slice", part, g.ints(begin), g.ints(END), g.ints(axis), g.ints(2))
            parts.append(part)
    x = g.op("Reshape", g.op("Concat", *parts, axis=-1), g.ints(-1, height * width // 4, 4 * size))
    return g.linear(layer_norm(g, x, 4 * size, False), 4 * size, 2 * size, bias=False)


def swin(
    batch=1,
    height=96,
    width=64,
    patch=4,
    window=4,
    size=48,
    heads=(3, 6),
    blocks=(2, 2),
    classes=10,
    is_folded=True,
    opset=17,
    seed=0,
):
    """Input `image` (batch, 3, height, width).

    Outputs `features` (batch, length, channels) and `logits` (batch, classes).

    Stage N has `blocks[N]` blocks and `size` * 2**N channels; every stage's patches must make whole
    windows. Height and width are fixed; `batch` may be symbolic. Tables of relative positions are gathered unless
    `is_folded`.
    """
    g = Graph("swin", opset, seed)
    x = g.input("image", [batch, 3, height, width])
    x = g.conv(x, 3, size, (patch, patch), stride=patch, pad=0)
    height, width = height // patch, width // patch
    x = g.op("Transpose", g.op("Reshape", x, g.ints(0, size, -1)), perm=[0, 2, 1])
    x = layer_norm(g, x, size, False)
    for stage, count in enumerate(blocks):
        if stage:
            x = _merge_patches(g, x, height, width, size)
            height, width, size = height // 2, width // 2, 2 * size
        for block in range(count):
            shift = window // 2 if block % 2 else 0
            x = swin_block(g, x, height, width, size, heads[stage], window, shift, is_folded)
    x = layer_norm(g, x, size, False)
    g.output(x, "features", 3)
    pooled = g.op("GlobalAveragePool", g.op("Transpose", x, perm=[0, 2, 1]))
    weight = g.weight(g.normal((classes, size), size**-0.5))
    bias = g.weight(g.normal((classes,), 0.1), "bias")
    g.output(g.op("Gemm", g.op("Flatten", pooled, axis=1), weight, bias, transB=1), "logits", 2)
    return g.build()
