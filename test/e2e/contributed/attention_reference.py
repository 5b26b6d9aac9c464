# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention by NumPy, in numbers of 64 bits, as ONNX Runtime's documentation has it.

For what its CPU kernels do not have; `test_reference_agrees` compares the rest with these kernels.
"""

import numpy as np


def heads_of(value, heads):
    """(batch, tokens, heads * size) as (batch, heads, tokens, size)."""
    batch, tokens, width = value.shape
    return value.reshape(batch, tokens, heads, width // heads).swapaxes(1, 2)


def merged(value):
    batch, heads, tokens, size = value.shape
    return value.swapaxes(1, 2).reshape(batch, tokens, heads * size)


def softmax(scores, sink=None):
    """Of the last dimension; `sink` is a score that broadcasts to it and has a share, but no place."""
    top = scores.max(-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink)
    powers = np.exp(scores - top)
    total = powers.sum(-1, keepdims=True)
    return powers / (total if sink is None else total + np.exp(sink - top))


def multi_head(query, key, value, heads, scale=None, mask=0.0, unidirectional=False, past=0):
    """Of (batch, heads, tokens, size); `mask` is added to scores. Returns the result and what the softmax sees."""
    query, key, value = (np.asarray(v, np.float64) for v in (query, key, value))
    scores = query @ key.swapaxes(2, 3) * (scale or query.shape[-1] ** -0.5) + mask
    if unidirectional:
        places = np.arange(key.shape[2])
        scores = np.where(places <= past + np.arange(query.shape[2])[:, None], scores, np.finfo(np.float32).min)
    return merged(softmax(scores) @ value), scores


def normal(value, weight, epsilon):
    return value / np.sqrt((value**2).mean(-1, keepdims=True) + epsilon) * weight


def rotated(value, cos, sin, positions, interleaved):
    """(batch, heads, tokens, size), whose first entries turn by the angles of `positions`, (batch, tokens)."""
    count = 2 * cos.shape[1]
    cos, sin = (table[positions][:, None] for table in (cos, sin))
    turned = value.copy()
    pair = (slice(0, count, 2), slice(1, count, 2)) if interleaved else (slice(0, count // 2), slice(count // 2, count))
    real, imaginary = (value[..., p] for p in pair)
    turned[..., pair[0]] = real * cos - imaginary * sin
    turned[..., pair[1]] = imaginary * cos + real * sin
    return turned


def group_query(
    query, key, value, past, lengths, capacity, columns, *, given=None, scale=None, cap=0.0, bias=None, sink=None,
    window=-1, causal=True,
):  # fmt: skip
    """Of (batch, heads, tokens, size); `past` has two caches or is None. Scores are of the first `columns` keys.

    Returns the result, both caches of `capacity` tokens, scores and weights.
    """
    batch, heads, tokens, size = query.shape
    groups = key.shape[1]
    caches = [np.zeros([batch, groups, capacity, size]) for _ in range(2)]
    result = np.zeros(query.shape)
    scores, weights = np.zeros([2, batch, heads, tokens, columns])
    for b in range(batch):
        count = tokens if given is None else given[b]
        before = max(lengths[b] - count, 0)
        for index, new in enumerate((key, value)):
            if past is not None:
                caches[index][b, :, :before] = past[index][b, :, :before]
            caches[index][b, :, before : before + count] = new[b, :, :count]
        # Further rows are padding.
        for s in range(min(count, lengths[b])):
            last = min(before + s + 1, lengths[b]) if causal else lengths[b]
            first = max(before + s + 1 - window, 0) if window > 0 else 0
            seen = slice(first, last)
            for h in range(heads):
                own = caches[0][b, h * groups // heads, seen] @ query[b, h, s] * (scale or size**-0.5)
                if cap:
                    own = cap * np.tanh(own / cap)
                if bias is not None:
                    own = own + np.broadcast_to(bias, scores.shape)[b, h, s, seen]
                scores[b, h, s, seen] = own
                share = softmax(own, None if sink is None else sink[h])
                weights[b, h, s, seen] = share
                result[b, h, s] = share @ caches[1][b, h * groups // heads, seen]
    return merged(result), *caches, scores, weights
