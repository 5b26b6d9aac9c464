# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention whose scores are never stored, whole and split, against ONNX Runtime."""

import re

import numpy as np
import onnx
import pytest
from harness.backend import call, tool
from harness.compare import differences
from harness.oracle import expected_outputs
from harness.partition import Partition
from ops import Draft

HEADS, DEPTH = 3, 24


def _attention(tokens=300, mask=None, keys_first=True, heads=HEADS, batch=2, shared=False):
    """Attention as exporters write it, with projections before and behind it; `mask` as in `MASKS`."""
    rng = np.random.default_rng(3)
    draft = Draft(rng)
    width = heads * DEPTH
    x = draft.input(rng.standard_normal((batch, tokens, width)).astype(np.float32), "x")

    def project(source, outputs):
        weights = rng.standard_normal((width, outputs)).astype(np.float32) * 1.5 / np.sqrt(width)
        return draft.node("MatMul", source, draft.constant(weights.astype(np.float32)), final=False)

    def heads_of(value, count, order):
        shape = draft.constant(np.array([batch, tokens, count, DEPTH]))
        return draft.node("Transpose", draft.node("Reshape", value, shape, final=False), perm=order, final=False)

    kept = 1 if shared else heads
    query = heads_of(project(x, width), heads, [0, 2, 1, 3])
    key = heads_of(project(x, kept * DEPTH), kept, [0, 2, 3, 1] if keys_first else [0, 2, 1, 3])
    if not keys_first:
        key = draft.node("Transpose", key, perm=[0, 1, 3, 2], final=False)
    value = heads_of(project(x, kept * DEPTH), kept, [0, 2, 1, 3])
    scores = draft.node("MatMul", query, key, final=False)
    scores = draft.node("Div", scores, draft.constant(np.float32(np.sqrt(DEPTH))), final=False)
    if mask is not None:
        scores = mask(draft, rng, scores, tokens)
    weights = draft.node("Softmax", scores, axis=-1, final=False)
    joined = draft.node("Transpose", draft.node("MatMul", weights, value, final=False), perm=[0, 2, 1, 3], final=False)
    joined = draft.node("Reshape", joined, draft.constant(np.array([batch, tokens, width])), final=False)
    draft.node("MatMul", joined, draft.constant(rng.standard_normal((width, 5)).astype(np.float32)))
    return draft


def _causal(draft, rng, scores, tokens):
    mask = np.triu(np.full((tokens, tokens), np.finfo(np.float32).min, np.float32), 1)
    return draft.node("Add", scores, draft.constant(mask), final=False)


def _given(draft, rng, scores, tokens):
    """Which keys count is an input, for each of the batch."""
    keep = draft.input((rng.random((2, 1, 1, tokens)) < 0.7), "keep")
    mask = draft.node("Where", keep, draft.constant(np.float32(0)), draft.constant(np.float32(-np.inf)), final=False)
    return draft.node("Add", mask, scores, final=False)


def _chosen(draft, rng, scores, tokens):
    keep = draft.input(np.tril(np.ones((tokens, tokens), bool)) | (rng.random((tokens, tokens)) < 0.2), "keep")
    return draft.node("Where", keep, scores, draft.constant(np.float32(-1e9)), final=False)


def _left_out(draft, rng, scores, tokens):
    drop = draft.input(rng.random((2, HEADS, tokens, tokens)) < 0.5, "drop")
    return draft.node("Where", drop, draft.constant(np.float32(-3)), scores, final=False)


MASKS = {"none": None, "causal": _causal, "given": _given, "chosen": _chosen, "left-out": _left_out}


def _plan(folder, draft, partition, *options):
    onnx.save(draft.model(), folder / "model.onnx")
    command = [tool("dovetail"), "compile", folder / "model.onnx", "--compile-to=lower", *partition.flags(), *options]
    code, text, messages = call(command)
    assert code == 0, messages
    return text


def _check(backend, draft, partition):
    model = draft.model()
    expected = expected_outputs(model, draft.inputs)
    actual = backend.compile_and_run(model, partition, draft.inputs, list(expected))
    assert not differences(actual, expected, tolerance=1e-5)


PARTITIONS = {
    "whole": Partition({"y": 1}),
    "tokens": Partition({"y": 2}).split("x", 3, 1, "y", (101, 199)),
    "uneven": Partition({"y": 3}).split("x", 3, 1, "y", (0, 17, 283)),
    "four": Partition({"y": 4}).split("x", 3, 1, "y", (1, 150, 0, 149)),
    "batch": Partition({"y": 2, "x": 2}).split("x", 3, 0, "y").split("x", 3, 1, "x", (120, 180)),
    "automatic": Partition({"y": 3}),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_masks(backend, tmp_path, mask, partition):
    draft = _attention(mask=MASKS[mask])
    assert "plan.attention" in _plan(tmp_path, draft, PARTITIONS[partition])
    _check(backend, draft, PARTITIONS[partition])


@pytest.mark.parametrize("options", [{"keys_first": False}, {"shared": True}, {"heads": 1, "batch": 1}], ids=str)
def test_spellings(backend, tmp_path, options):
    draft = _attention(**options)
    for name in ("whole", "tokens", "uneven"):
        assert _plan(tmp_path, draft, PARTITIONS[name]).count("plan.attention ") == 1
        _check(backend, draft, PARTITIONS[name])


def test_heads_are_divided(backend, tmp_path):
    """One requested head a rank: attention is split by heads, and nothing else is exchanged for it."""
    draft = _attention(tokens=400)
    query = draft.nodes[0].output[0]
    partition = Partition({"t": 3}).split(query, 3, 2, "t")
    text = _plan(tmp_path, draft, partition)
    loops = re.search(r"plan.attention .* loops \[2, 3 by <\{\"t\" : 0, 1, 2, 3\}>, 400, 24, 400, 24\]", text)
    assert loops, text
    _check(backend, draft, partition)


def test_short_ones_stay_products(tmp_path):
    """Scores that a cache holds are left to the library's products, as are those of `--no-libraries`."""
    assert "plan.attention" not in _plan(tmp_path, _attention(tokens=128), PARTITIONS["whole"])
    assert "plan.attention" not in _plan(tmp_path, _attention(), PARTITIONS["whole"], "--no-libraries")


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads(backend, tmp_path, threads):
    """The same bits, whoever computes which rows."""
    draft = _attention(mask=_causal)
    model, artifact = draft.model(), tmp_path / "model.dvt"
    onnx.save(model, tmp_path / "model.onnx")
    backend.compile(tmp_path / "model.onnx", artifact, PARTITIONS["whole"])
    names = [output.name for output in model.graph.output]
    first, second = (backend.run(artifact, draft.inputs, names, tmp_path, threads=n) for n in (1, threads))
    for name in names:
        assert np.array_equal(first[name], second[name])


def test_memory_of_long_sequences(tmp_path):
    """4 096 tokens of 3 heads have 200 MB of scores, which are never stored."""
    onnx.save(_attention(tokens=4096, batch=1).model(), tmp_path / "model.onnx")
    artifact = tmp_path / "model.dvt"
    code, _, messages = call([tool("dovetail"), "compile", tmp_path / "model.onnx", "-o", artifact])
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", artifact, "--json"])
    assert code == 0, messages
    arena = max(int(number) for number in re.findall(r'"values_bytes": *(\d+)', text))
    assert 0 < arena < 16 << 20
