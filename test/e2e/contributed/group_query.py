# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of queries that share keys, with caches: GroupQueryAttention."""

import numpy as np

from .attention_reference import group_query, heads_of, normal, rotated
from .multi_head import HALF, positional
from .registry import contributes
from .rotary import tables

REFUSED = ("k_quant_type", "v_quant_type", "kv_cache_bit_width", "sliding_window_cache", "k_scale", "v_scale")

#: What caches are for: prompts, later tokens in caches of their whole length, and in caches that grow.
KINDS = ("prompt", "prompt in cache", "step", "step", "growing step", "more", "chunks")


def _lengths(d, kind, batch, tokens):
    """Tokens of each sequence after this step, their largest number, and what caches before it have room for."""
    past = {"prompt": 0, "growing step": d.integer(1, 6)}.get(kind)
    if kind.startswith("prompt"):
        longest = tokens
        lengths = d.rng.integers(1, tokens + 1, batch) if d.chance(0.4) else np.full(batch, tokens)
    elif kind == "growing step":
        longest = past + tokens
        lengths = d.rng.integers(1, longest + 1, batch)
    elif kind == "more":
        longest = tokens + d.integer(1, 6)
        lengths = np.full(batch, longest)
    else:
        longest = tokens + d.integer(1, 6)
        lengths = d.rng.integers(1, longest + 1, batch)
    lengths[d.integer(0, batch - 1)] = longest
    return lengths, longest, longest + d.pick(0, 3) if past is None else past


def _drop_padding(d, names, rows, dtype):
    """Has the outputs for rows of padding, of which nothing is said, be 0."""
    for index, shape in {0: rows.shape + (1,), 3: (len(rows), 1, rows.shape[1], 1)}.items():
        if index < len(names):
            d.outputs.remove(names[index])
            kept = d.node("Where", d.constant(rows.reshape(shape)), names[index], d.constant(np.zeros([], dtype)))
            names[index] = kept


@contributes("GroupQueryAttention", refused=REFUSED)
def group_query_attention(d, op):
    kind = d.pick(*KINDS)
    groups, shared, size = d.integer(1, 3), d.integer(1, 3), 8 * d.integer(1, 2)
    heads = groups * shared
    batch = 1 if kind == "more" else d.integer(1, 3)
    tokens = 1 if "step" in kind else d.integer(2, 7)
    half = d.chance(0.2)
    # Rotated ones are rounded to f16, and exponentials of their products show it.
    dtype, bound = (np.float16, 1) if half else (np.float32, 3)
    d.tolerance = HALF if half else None
    lengths, longest, past = _lengths(d, kind, batch, tokens)
    counts = None
    if kind == "chunks":
        # In any order they fit any of the lengths: a run that comes before has the inputs in another one.
        counts = d.rng.integers(0, min(tokens, min(lengths)) + 1, batch)
        past = max(past, int(max(lengths) - min(counts)) + tokens)
    query = d.values([batch, tokens, heads * size], dtype, -bound, bound)
    key, value = (d.values([batch, tokens, groups * size], dtype, -bound, bound) for _ in range(2))
    operands = [""] * 17
    if d.chance(0.3):
        operands[0] = d.input(np.concatenate([query, key, value], axis=2))
    else:
        operands[:3] = d.input(query), d.input(key), d.input(value)
    caches = None
    if past:
        caches = [d.values([batch, groups, past, size], dtype, -bound, bound) for _ in range(2)]
        # What stands behind is kept in place, and is not what a kernel leaves that copies.
        for cache in caches:
            cache[np.broadcast_to(np.arange(past)[:, None] >= lengths[:, None, None, None], cache.shape)] = 0
        operands[3:5] = d.input(caches[0]), d.input(caches[1])
    operands[5] = d.either((lengths - 1).astype(np.int32), 0.2)
    total = np.array([longest], np.int32) if d.chance(0.7) else np.array(longest, np.int32)
    # An extent of results, if caches grow or there are scores.
    fixed = kind == "growing step" or d.chance(0.6)
    operands[6] = d.constant(total) if fixed else d.input(total)
    options = dict(
        scale=d.pick(None, None, 0.25, 0.0),
        softcap=d.pick(None, None, 0.0, 2.0),
        local_window_size=d.pick(None, None, -1, 2, 4),
        smooth_softmax=d.pick(None, None, 0, 1),
        causal=1 if counts is not None else d.pick(None, None, 1, 0),
    )
    if options["causal"] == 0:
        options["local_window_size"] = None
    turned = size % 16 == 0 and d.chance(0.6)
    turn = None
    if turned:
        columns, interleaved = d.pick(size // 2, 8), d.pick(None, 0, 1)
        operands[7:9] = tables(d, longest + 3, columns, dtype)
        options |= dict(do_rotary=1, rotary_interleaved=interleaved)
        starts = np.maximum(lengths - (tokens if counts is None else counts), 0)
        places = starts[:, None] + np.arange(tokens)
        if d.chance(0.5):
            places = d.rng.integers(0, longest + 3, [batch, tokens])
            if kind.startswith("prompt") and counts is None:
                places = (d.integer(0, 3) + np.arange(tokens))[None] + np.zeros([batch, 1], np.int64)
            operands[9] = d.input(places)
        cos, sin = ((d.constants | d.inputs)[name].astype(np.float64) for name in operands[7:9])
        turn = lambda v: rotated(v, cos, sin, np.minimum(places, longest + 2), interleaved)  # noqa: E731
    bias = sink = weights = None
    if (fixed or not past) and d.chance(0.3):
        bias = d.values([d.pick(1, batch), d.pick(1, heads), tokens, longest], dtype)
        operands[10] = d.either(bias, 0.4)
    if d.chance(0.3):
        sink = d.values([heads], dtype)
        operands[11] = d.either(sink)
    if d.chance(0.15):
        weights = [d.values([size], dtype) for _ in range(2)]
        operands[14:16] = d.either(weights[0]), d.either(weights[1])
        options |= dict(
            q_norm_epsilon=d.pick(None, 0.5), k_norm_epsilon=d.pick(None, 0.25), qk_norm_epsilon=d.pick(None, 0.125)
        )
    if counts is not None:
        operands[16] = d.input(counts.astype(np.int32))
    outputs = d.pick(*((1, 3, 4) if fixed or not past else (1, 3)))
    if outputs == 4:
        options |= dict(qk_output=d.pick(1, 2))
    names = d.contributed(op, *positional(*operands), outputs=outputs, num_heads=heads, kv_num_heads=groups, **options)
    names = [names] if outputs == 1 else names
    if outputs == 4:
        d.declare(names[3], np.zeros([batch, heads, tokens, longest], dtype))
    rows = np.arange(tokens) < (lengths if counts is None else counts)[:, None]
    if not rows.all():
        _drop_padding(d, names, rows, dtype)

    def reference():
        q, k, v = (heads_of(part.astype(np.float64), n) for part, n in ((query, heads), (key, groups), (value, groups)))
        if weights:
            common = options["qk_norm_epsilon"] or 1e-6
            q = normal(q, weights[0], options["q_norm_epsilon"] or common)
            k = normal(k, weights[1], options["k_norm_epsilon"] or common)
        if turn:
            q, k = turn(q), turn(k)
        smooth = np.zeros(heads) if options["smooth_softmax"] == 1 else None
        result, keys, values, scores, shares = group_query(
            q, k, v, caches, lengths, max(past, longest), longest, given=counts, scale=options["scale"],
            cap=options["softcap"], bias=bias, sink=smooth if sink is None else sink,
            window=options["local_window_size"] or -1, causal=options["causal"] != 0,
        )  # fmt: skip
        shown = scores if options.get("qk_output") == 1 else shares
        arrays = [a.astype(dtype) for a in (result, keys, values, shown)]
        return dict(zip(names, arrays))

    d.reference = reference
    # ONNX Runtime has norms of queries and keys on GPUs alone. Without results for caches it does not look at given ones.
    if weights or (past and outputs == 1):
        d.expected = reference()
