# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention whose keys have the heads of the queries: MultiHeadAttention and Attention."""

import numpy as np

from .attention_reference import heads_of, multi_head
from .registry import contributes

#: Outputs of f16 are those of f32, rounded; ours are so, too, but bits of f32 differ.
HALF = 2e-3


def _type(d):
    """The type of elements and their largest values: sums with biases are rounded to f16, and exponentials show it."""
    half = d.chance(0.2)
    d.tolerance = HALF if half else None
    return (np.float16, 0.5) if half else (np.float32, 3)


def make_mask(d, batch, queries, past, keys, starts, columns=True):
    """A mask, each row of which keeps a key, as integers of 32 bits; unless `columns`, one of lengths."""
    total = past + keys
    kinds = ["lengths", "joined"] + (["rows", "each"] if columns else []) + (["starts", "dummy"] if starts else [])
    kind = d.pick(*kinds)
    if kind == "dummy":
        return np.full([d.pick(1, batch), 1], d.integer(0, 1), np.int32)
    if kind in ("lengths", "joined", "starts"):
        ends = d.rng.integers(1, total + 1, batch)
        if kind == "lengths":
            return ends.astype(np.int32)
        if kind == "joined":
            sums = np.concatenate([[0], np.cumsum(ends)])
            return np.concatenate([ends, np.arange(batch + 1) * queries, sums]).astype(np.int32)
        return np.concatenate([ends, d.rng.integers(0, ends)]).astype(np.int32)
    mask = d.rng.random([batch, total] if kind == "rows" else [batch, queries, total]) < 0.6
    # Where all keys are masked, numbers of 32 bits do not tell scores from each other beside the filter.
    mask[..., 0] = True
    return mask.astype(np.int32)


def _bias(d, batch, heads, queries, total, dtype):
    return d.values([d.pick(1, batch), d.pick(1, heads), queries, total], dtype, -1, 1)


def make_options(d):
    return dict(
        scale=d.pick(None, None, 0.25, 0.0),
        mask_filter_value=d.pick(None, None, -50000.0, -3.0),
    )


def positional(*operands):
    """Without those that are absent at the end."""
    operands = list(operands)
    while operands and operands[-1] == "":
        operands.pop()
    return operands


@contributes("MultiHeadAttention", refused=("cache_indirection",))
def multi_head_attention(d, op):
    batch, heads, size = d.integer(1, 3), d.integer(1, 4), d.integer(1, 8)
    value_size = d.pick(size, d.integer(1, 8))
    queries, keys = d.integer(1, 9), d.integer(1, 9)
    unidirectional = d.pick(None, None, 0, 1)
    kind = d.pick("split", "split", "split", "heads", "packed", "packed keys")
    if unidirectional or kind == "packed":
        keys = queries
    if kind != "split":
        value_size = size
    dtype, bound = _type(d)
    past = d.pick(0, d.integer(1, 5)) if kind != "heads" else 0
    if past:
        value_size = size
    total = past + keys
    # Caches that are written in place have room for more.
    shared = kind == "split" and past > 0 and d.chance(0.6)
    known = d.chance(0.5)
    operands = [""] * 9
    query = d.values([batch, queries, heads * size], dtype, -bound, bound)
    shapes = {"heads": [batch, heads, keys, size]}
    key = d.values(shapes.get(kind, [batch, keys, heads * size]), dtype, -bound, bound)
    shape = [batch, heads, keys, value_size] if kind == "heads" else [batch, keys, heads * value_size]
    value = d.values(shape, dtype, -bound, bound)

    def stacked(*parts):
        return np.stack([part.reshape(*part.shape[:2], heads, size) for part in parts], axis=3)

    if kind == "packed":
        operands[0] = d.input(stacked(query, key, value))
    elif kind == "packed keys":
        operands[:2] = d.input(query), d.input(stacked(key, value))
    else:
        operands[:3] = d.input(query), d.input(key), d.input(value)
    bias = mask = added = None
    if kind != "packed keys" and d.chance(0.5):
        bias = d.values([heads * (2 * size + value_size)], dtype, -bound, bound)
        operands[3] = d.either(bias)
    if d.chance(0.5):
        mask = make_mask(d, batch, queries, past, keys, False, known or not shared)
        operands[4] = d.either(mask, 0.4)
    if (known or not shared) and d.chance(0.4):
        added = _bias(d, batch, heads, queries, total, dtype)
        operands[5] = d.either(added, 0.4)
    room = total + d.integer(0, 4) if shared else past
    before = [d.values([batch, heads, room, size], dtype, -bound, bound) for _ in range(2)] if past else None
    if past:
        operands[6:8] = d.input(before[0]), d.input(before[1])
    if shared:
        operands[8] = (d.constant if known else d.input)(np.array([past], np.int32))
    common = make_options(d)
    outputs = d.pick(3, 4 if known else 3) if shared else d.pick(1, 3, 4)
    names = d.contributed(
        op, *positional(*operands), outputs=outputs, num_heads=heads, unidirectional=unidirectional, **common
    )
    if outputs == 4:
        d.declare(names[3], np.zeros([batch, heads, queries, total], dtype))

    def reference():
        parts = [query, key, value]
        if bias is not None:
            added_to_all = np.split(bias, [heads * size, 2 * heads * size])
            parts = [v + b if v.ndim == 3 else v for v, b in zip(parts, added_to_all)]
        q, k, v = (heads_of(part, heads) if part.ndim == 3 else part for part in parts)
        if past:
            k, v = (np.concatenate([b[:, :, :past], new, b[:, :, total:]], axis=2) for b, new in zip(before, (k, v)))
        masked = 0.0 if added is None else added.astype(np.float64)
        if mask is not None:
            masked = masked + np.where(_kept(mask, batch, total), 0, common["mask_filter_value"] or -10000.0)
        result, scores = multi_head(
            q, k[:, :, :total], v[:, :, :total], heads, common["scale"], masked, unidirectional, past
        )
        with np.errstate(over="ignore"):
            arrays = [a.astype(dtype) for a in (result, k, v, scores)]
        return dict(zip([names] if outputs == 1 else names, arrays))

    d.reference = reference
    # ONNX Runtime has no kernel for CPUs that takes packed ones. Without results for them it reads past keys and values
    # from where none are.
    if kind.startswith("packed") or (past and outputs == 1):
        d.expected = reference()


def _kept(mask, batch, total):
    """Which keys a mask keeps, as a tensor that broadcasts to scores."""
    if mask.ndim == 1:
        return (np.arange(total) < mask[:batch, None])[:, None, None]
    return (mask if mask.ndim == 3 else mask[:, None])[:, None] > 0


@contributes("Attention", refused=("do_rotary", "past_present_share_buffer", "past_sequence_length"))
def attention(d, op):
    batch, heads, size, tokens = d.integer(1, 3), d.integer(1, 4), d.integer(1, 8), d.integer(1, 9)
    width = d.integer(1, 16)
    past = d.pick(None, None, d.integer(1, 5))
    outputs = 2 if past else d.pick(1, 2)
    value_size = size if outputs == 2 else d.pick(size, d.integer(1, 8))
    columns = heads * (2 * size + value_size)
    dtype, bound = _type(d)
    total = (past or 0) + tokens
    weights = d.values([width, columns], dtype, -0.5, 0.5)
    operands = [d.input(d.values([batch, tokens, width], dtype, -bound, bound)), d.either(weights, 0.8)] + [""] * 4
    if d.chance(0.7):
        operands[2] = d.either(d.values([columns], dtype, -bound, bound))
    if d.chance(0.5):
        operands[3] = d.either(make_mask(d, batch, tokens, past or 0, tokens, True), 0.4)
    if past:
        operands[4] = d.input(d.values([2, batch, heads, past, size], dtype))
    elif d.chance(0.4):
        operands[5] = d.either(_bias(d, batch, heads, tokens, total, dtype), 0.4)
    sizes = [heads * size, heads * size, heads * value_size]
    d.contributed(
        op,
        *positional(*operands),
        outputs=outputs,
        num_heads=heads,
        qkv_hidden_sizes=sizes if value_size != size else d.pick(None, sizes),
        unidirectional=d.pick(None, None, 0, 1),
        # Of 'do_rotary' alone.
        rotary_embedding_dim=d.pick(None, None, 32),
        **make_options(d),
    )
