# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotary positions."""

import numpy as np

from .registry import contributes


def tables(d, positions, columns, dtype=np.float32):
    """Cosines and sines, of as many angles as there are columns."""
    angles = np.outer(np.arange(positions), 1 + np.arange(columns)) * 0.3
    return [d.either(f(angles).astype(dtype), 0.8) for f in (np.cos, np.sin)]


@contributes("RotaryEmbedding", refused=("scale",))
def rotary_embedding(d, op):
    batch, heads, tokens = d.integer(1, 3), d.integer(1, 4), d.integer(1, 9)
    size = 2 * d.integer(1, 6)
    part = d.pick(None, None, 2 * d.integer(1, size // 2))
    packed = d.pick(None, None, 0, 1)
    positions = d.integer(1 if packed else tokens, 20)
    half = d.chance(0.2)
    dtype = np.float16 if half else np.float32
    d.tolerance = 2e-3 if half else None
    value = d.values(d.pick([batch, tokens, heads * size], [batch, heads, tokens, size]), dtype)
    if positions >= tokens and d.chance(0.4):
        places = np.array([d.integer(0, positions - tokens)])
    else:
        places = d.rng.integers(0, positions, [batch, tokens])
    d.contributed(
        op,
        d.input(value),
        d.either(places, 0.3),
        *tables(d, positions, (part or size) // 2, dtype),
        num_heads=heads if part else d.pick(None, heads),
        rotary_embedding_dim=part,
        interleaved=d.pick(None, 0, 1),
        is_packed_batching=packed,
    )
