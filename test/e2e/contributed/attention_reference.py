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
