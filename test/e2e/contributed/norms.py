# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layer norms of sums and of embeddings."""

import numpy as np

from .registry import contributes

_HALF = 2e-3


def _type(d):
    """The type of elements; what is less precise has another tolerance."""
    dtype = d.pick(np.float32, np.float32, np.float16)
    if dtype == np.float16:
        d.tolerance = _HALF
    return dtype


def _norm(value, epsilon, axes=(-1,), center=True):
    """The norm in f64, the mean, and the reciprocal of the deviation."""
    value = value.astype(np.float64)
    mean = value.mean(axes, keepdims=True)
    centered = value - mean if center else value
    inverse = 1 / np.sqrt((centered * centered).mean(axes, keepdims=True) + epsilon)
    return centered * inverse, mean, inverse


@contributes("SimplifiedLayerNormalization", domain="")
def simplified(d, op):
    dtype = d.pick(np.float32, np.float32, np.float16, np.float64)
    shape = d.shape(1, 4)
    axis = d.integer(-len(shape), len(shape) - 1)
    scale = d.values(shape[axis:], dtype)
    x = d.values(shape, dtype)
    attributes = dict(epsilon=d.pick(None, 1e-3), axis=None if axis == -1 else axis, stash_type=d.pick(None, 1, 1))
    # ONNX Runtime has this result in f32 alone.
    outputs = d.pick(1, 2)
    if d.chance(0.2):
        attributes["stash_type"] = 11
    names = d.contributed(op, d.input(x), d.either(scale), outputs=outputs, domain="", **attributes)
    names = [names] if outputs == 1 else names
    if dtype == np.float16:
        d.tolerance = _HALF
    if outputs == 2 and (dtype != np.float32 or attributes["stash_type"] == 11):
        axes = tuple(range(axis % len(shape), len(shape)))
        norm, _, inverse = _norm(x, attributes["epsilon"] or 1e-5, axes, center=False)
        d.expect(names[0], (norm * scale).astype(dtype))
        d.expect(names[1], inverse.astype(np.float64 if attributes["stash_type"] == 11 else np.float32))


def _keep_results(d, names, keep):
    """Drops results of the last node that are not to be kept."""
    node = d.nodes[-1]
    node.output[:] = [name if kept else "" for name, kept in zip(names, keep)]
    while not node.output[-1]:
        node.output.pop()
    d.outputs[:] = [name for name, kept in zip(names, keep) if kept]


@contributes("SkipLayerNormalization")
def skip(d, op):
    _skip(d, op, center=True)


@contributes("SkipSimplifiedLayerNormalization", refused=("mean",))
def skip_simplified(d, op):
    _skip(d, op, center=False)


def _skip(d, op, center):
    dtype = _type(d)
    shape = [d.integer(1, 3), d.integer(1, 9), d.integer(2, 33)][d.pick(0, 0, 1) :]
    skipped = d.pick(shape, shape, [1, *shape[1:]], shape[1:]) if len(shape) == 3 else shape
    x, skip, gamma = (d.values(s, dtype) for s in (shape, skipped, shape[-1:]))
    vectors = [d.values(shape[-1:], dtype) if d.chance(0.6) else None for _ in range(2 if center else 1)]
    operands = [d.input(x), d.either(skip, 0.3), d.either(gamma)]
    operands += [d.either(v) if v is not None else "" for v in vectors]
    while not operands[-1]:
        operands.pop()
    # ONNX Runtime leaves these results out.
    statistics = d.chance(0.3)
    epsilon = d.pick(None, 1e-3)
    names = d.contributed(op, *operands, outputs=4, epsilon=epsilon)
    _keep_results(d, names, [True, statistics and center, statistics, d.chance(0.6)])
    if not statistics:
        return
    total = x.astype(np.float64) + skip
    beta, bias = vectors if center else (None, *vectors)
    total = total if bias is None else total + bias
    norm, mean, inverse = _norm(total, epsilon or 1e-12, center=center)
    results = norm * gamma + (0 if beta is None else beta), mean, inverse, total
    for name, result, result_type in zip(names, results, (dtype, np.float32, np.float32, dtype)):
        if name in d.outputs:
            d.expect(name, result.astype(result_type))


@contributes("EmbedLayerNormalization")
def embed(d, op):
    dtype = _type(d)
    batch, length, hidden, rows = d.integer(1, 3), d.integer(1, 9), d.integer(2, 17), d.integer(2, 9)
    ids = lambda: d.values([batch, length], np.int32, 0, rows - 1)
    positions = d.values([d.pick(1, batch), length], np.int32, 0, rows - 1) if d.chance(0.4) else None
    words, segments = ids(), ids() if d.chance(0.6) else None
    mask = d.values([batch, length], np.int32, 0, 1) if d.chance(0.5) else None
    tables = [d.values([extent, hidden], dtype) for extent in (rows, max(rows, length) + 1, rows)]
    gamma, beta = d.values([hidden], dtype), d.values([hidden], dtype)
    operands = [
        d.input(words),
        "" if segments is None else d.input(segments),
        d.constant(tables[0]),
        d.constant(tables[1]),
        "" if segments is None else d.constant(tables[2]),
        d.either(gamma),
        d.either(beta),
        "" if mask is None else d.input(mask),
        "" if positions is None else d.either(positions),
    ]
    while not operands[-1]:
        operands.pop()
    epsilon, kind = d.pick(None, 1e-3), d.pick(None, 0, 1)
    names = d.contributed(op, *operands, outputs=3, epsilon=epsilon, mask_index_type=kind)
    keep = [True, d.chance(0.5), d.chance(0.5)]
    # ONNX Runtime wants two results, unless the second one is said to be none.
    keep[1] = keep[1] or not (keep[2] or kind == 0)
    _keep_results(d, names, keep)
    # ONNX Runtime's CPU kernel is for f32.
    if dtype == np.float32:
        return
    places = np.arange(length)[None] if positions is None else positions
    total = tables[0][words].astype(np.float64) + tables[1][places]
    if segments is not None:
        total = total + tables[2][segments]
    norm, _, _ = _norm(total, epsilon or 1e-12)
    counts = np.zeros(batch, np.int32) if mask is None else mask.sum(1, dtype=np.int32)
    for name, result in zip(names, ((norm * gamma + beta).astype(dtype), counts, total.astype(dtype))):
        if name in d.outputs:
            d.expect(name, result)
