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


def _attention(tokens=300, mask=None, keys_first=True, heads=HEADS, batch=2, shared=False, joined=None):
    """Attention as exporters write it, with projections before and behind it; `mask` as in `MASKS`. `joined`: queries,
    keys and values are one product, which is split (`split`), or whose heads are moved apart together (`moved`)."""
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
    if joined == "moved":
        shape = draft.constant(np.array([batch, tokens, 3, heads, DEPTH]))
        moved = draft.node("Reshape", project(x, 3 * width), shape, final=False)
        moved = draft.node("Transpose", moved, perm=[2, 0, 3, 1, 4], final=False)
        query, key, value = (
            draft.node("Gather", moved, draft.constant(np.array(i)), axis=0, final=False) for i in range(3)
        )
        key = draft.node("Transpose", key, perm=[0, 1, 3, 2], final=False)
    else:
        if joined == "split":
            parts = project(x, 3 * width)
            bounds = [draft.constant(np.array([i * width])) for i in range(4)]
            last = draft.constant(np.array([2]))
            parts = [draft.node("Slice", parts, bounds[i], bounds[i + 1], last, final=False) for i in range(3)]
        else:
            parts = [project(x, count * DEPTH) for count in (heads, kept, kept)]
        query = heads_of(parts[0], heads, [0, 2, 1, 3])
        key = heads_of(parts[1], kept, [0, 2, 3, 1] if keys_first else [0, 2, 1, 3])
        if not keys_first:
            key = draft.node("Transpose", key, perm=[0, 1, 3, 2], final=False)
        value = heads_of(parts[2], kept, [0, 2, 1, 3])
    scores = draft.node("MatMul", query, key, final=False)
    scores = draft.node("Div", scores, draft.constant(np.float32(np.sqrt(DEPTH))), final=False)
    if mask is not None:
        scores = mask(draft, rng, scores, tokens)
    weights = draft.node("Softmax", scores, axis=-1, final=False)
    merged = draft.node("Transpose", draft.node("MatMul", weights, value, final=False), perm=[0, 2, 1, 3], final=False)
    merged = draft.node("Reshape", merged, draft.constant(np.array([batch, tokens, width])), final=False)
    # As many columns as there are lets the product write over what it reads, where there are enough rows.
    columns = 5 if tokens < 4096 else width
    draft.node("MatMul", merged, draft.constant(rng.standard_normal((width, columns)).astype(np.float32)))
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


SPELLINGS = [
    {"keys_first": False},
    {"shared": True},
    {"heads": 1, "batch": 1},
    {"joined": "split"},
    {"joined": "split", "keys_first": False},
    {"joined": "moved"},
]


@pytest.mark.parametrize("options", SPELLINGS, ids=str)
def test_spellings(backend, tmp_path, options):
    draft = _attention(**options)
    for name in ("whole", "tokens", "uneven"):
        plan = _plan(tmp_path, draft, PARTITIONS[name])
        assert plan.count("plan.attention ") == 1
        # Heads are read and written where they are.
        assert name != "whole" or "plan.launch" not in plan
        _check(backend, draft, PARTITIONS[name])


def test_heads_are_divided(backend, tmp_path):
    """One requested head a rank: attention is split by heads, and nothing else is exchanged for it."""
    draft = _attention(tokens=400)
    query = draft.nodes[0].output[0]
    partition = Partition({"t": 3}).split(query, 3, 2, "t")
    text = _plan(tmp_path, draft, partition)
    loops = re.search(r"plan.attention .* loops \[2, 400, 72 by <\{\"t\" : 0, 24, 48, 72\}>, 400, 24\]", text)
    assert loops, text
    _check(backend, draft, partition)


def _decoding(mask, queries=16, keys=9001, columns=5):
    """Queries of six heads that share keys by pairs, and a cache of keys and values."""
    rng = np.random.default_rng(11)
    draft = Draft(rng)

    def take(name, *shape):
        return draft.input(2 * rng.standard_normal(shape).astype(np.float32), name)

    query, key, value = take("q", 3, 2, queries, 8), take("k", 3, 1, keys, 8), take("v", 3, 1, keys, columns)
    key = draft.node("Transpose", key, perm=[0, 1, 3, 2], final=False)
    scores = draft.node("MatMul", query, key, final=False)
    if mask == "floats":
        floats = np.where(rng.random((queries, keys)) < 0.5, -np.inf, 0).astype(np.float32)
        floats[0, 4000:] = -np.inf  # The last ranks have nothing to say, of the next row none has.
        floats[1] = -np.inf
        floats[2] = -1e30  # Weights are alike, in parts of different sizes.
        scores = draft.node("Add", scores, draft.input(floats, "mask"), final=False)
    elif mask == "booleans":
        chosen = rng.random((queries, keys)) < 0.5
        chosen[0, :4000] = False
        chosen[1] = False
        fill = draft.constant(np.float32(-1e9))
        scores = draft.node("Where", draft.input(chosen, "mask"), scores, fill, final=False)
    draft.node("MatMul", draft.node("Softmax", scores, axis=-1, final=False), value)
    return draft


KEYS = {
    "two": Partition({"y": 2}).split("k", 4, 2, "y", (4000, 5001)).split("v", 4, 2, "y", (4000, 5001)),
    "uneven": Partition({"y": 3}).split("k", 4, 2, "y", (1, 0, 9000)).split("v", 4, 2, "y", (1, 0, 9000)),
    "four": Partition({"y": 4}).split("k", 4, 2, "y").split("v", 4, 2, "y"),
    "heads": Partition({"y": 2, "x": 2}).split("k", 4, 2, "y").split("v", 4, 2, "y").split("q", 4, 1, "x"),
}


@pytest.mark.parametrize("mask", ["none", "floats", "booleans"])
@pytest.mark.parametrize("partition", KEYS)
def test_keys_are_divided(backend, tmp_path, mask, partition):
    """Each rank goes through the keys that it has; what these come to is combined, and no key is sent."""
    for columns in (1, 5):
        draft = _decoding(mask, columns=columns)
        plan = _plan(tmp_path, draft, KEYS[partition])
        assert re.search(r"plan.attention .*9001 by <.* parts", plan), plan
        assert not re.search(r"plan.exchange .*9001x", plan), plan
        _check(backend, draft, KEYS[partition])


@pytest.mark.parametrize("seed", range(1, 9))
def test_parts_anywhere(backend, tmp_path, seed):
    """Parts are right however they, and what combines them, are split."""
    draft = _decoding(("none", "floats", "booleans")[seed % 3], queries=8)
    model = draft.model()
    expected = expected_outputs(model, draft.inputs)
    options = ["--shardings-seed", str(seed)]
    actual = backend.compile_and_run(model, Partition({"y": 3, "x": 2}), draft.inputs, list(expected), True, options)
    assert not differences(actual, expected, tolerance=1e-5)


def _contributed(op, tokens=300, **attributes):
    """An operator of ONNX Runtime, of which a kernel is one step."""
    draft = Draft(np.random.default_rng(7))

    def take(name, *shape):
        return draft.input(draft.values(shape), name)

    width = HEADS * DEPTH
    if op == "Attention":
        weights = [draft.constant(draft.values(shape, low=-0.2, high=0.2)) for shape in ([width, 3 * width], [3 * width])]
        lengths = draft.input(np.array([200, 300], np.int32))
        draft.contributed(op, take("x", 2, tokens, width), *weights, lengths, num_heads=HEADS, **attributes)
    elif op == "MultiHeadAttention":
        operands = [take(name, 2, tokens, width) for name in ("x", "k", "v")]
        bias = take("bias", 1, 1, tokens, tokens)
        draft.contributed(op, *operands, "", "", bias, num_heads=HEADS, **attributes)
    else:
        lengths = [draft.constant(np.full(2, tokens - 1, np.int32)), draft.constant(np.full(1, tokens, np.int32))]
        packed = take("x", 2, tokens, 8 * 16)
        draft.contributed(op, packed, "", "", "", "", *lengths, num_heads=4, kv_num_heads=2, **attributes)
    return draft


CONTRIBUTED = [
    ("Attention", {}),
    ("Attention", {"unidirectional": 1}),
    ("MultiHeadAttention", {}),
    ("MultiHeadAttention", {"unidirectional": 1}),
    ("GroupQueryAttention", {}),
    ("GroupQueryAttention", {"local_window_size": 50}),
]


@pytest.mark.parametrize("op, attributes", CONTRIBUTED, ids=str)
@pytest.mark.parametrize("partition", ["whole", "uneven"])
def test_contributed(backend, tmp_path, op, attributes, partition):
    draft = _contributed(op, **attributes)
    assert _plan(tmp_path, draft, PARTITIONS[partition]).count("plan.attention ") == 1
    _check(backend, draft, PARTITIONS[partition])


def test_tokens_of_caches_are_divided(backend, tmp_path):
    """A step of GroupQueryAttention: no key of a cache is sent."""
    draft = Draft(np.random.default_rng(8))
    caches = [draft.input(draft.values([2, 2, 9001, 16]), name) for name in ("k", "v")]
    # Small: many keys have a share in the result.
    query = draft.input(draft.values([2, 1, (16 + 2 * 2) * 16], low=-0.3, high=0.3), "x")
    lengths = [draft.input(np.array(v, np.int32)) for v in ([9000, 5000], [9001])]
    draft.contributed("GroupQueryAttention", query, "", "", *caches, *lengths, outputs=3, num_heads=16, kv_num_heads=2)
    for cache in caches:
        draft.inputs[cache][1, :, 5001:] = 0
    partition = Partition({"y": 3})
    for cache in caches:
        partition.split(cache, 4, 2, "y", (1, 0, 9000))
    plan = _plan(tmp_path, draft, partition)
    assert re.search(r"plan.attention .*9001 by <.* parts", plan), plan
    assert not re.search(r"plan.exchange .*9001x", plan), plan
    _check(backend, draft, partition)


def _open(kind, length):
    """An operator of ONNX Runtime whose tokens, or those of the past, are `length`; and names of these dimensions."""
    draft = Draft(np.random.default_rng(length))
    names = {}

    def take(name, *shape):
        extents = [length if extent == "n" else extent for extent in shape]
        names[name] = [dim for dim, extent in enumerate(shape) if extent == "n"]
        return draft.input(draft.values(extents), name)

    if kind == "growing":
        new = [take(name, 2, 3, 24) for name in ("q", "k", "v")]
        caches = [take(name, 2, 3, "n", 8) for name in ("pk", "pv")]
        options = dict(outputs=3, num_heads=3, unidirectional=1)
        draft.contributed("MultiHeadAttention", *new, "", "", "", *caches, **options)
    elif kind == "lengths":
        new = [take(name, 2, "n", 24) for name in ("q", "k", "v")]
        lengths = draft.input(np.array([length, (length + 1) // 2], np.int32), "lengths")
        draft.contributed("MultiHeadAttention", *new, "", lengths, num_heads=3, unidirectional=1)
    elif kind == "projected":
        weights = draft.constant(draft.values([12, 72], low=-0.3, high=0.3))
        bias = draft.constant(draft.values([72]))
        draft.contributed("Attention", take("x", 2, "n", 12), weights, bias, num_heads=3, unidirectional=1)
    else:
        lengths = draft.input(np.full(2, length - 1, np.int32), "lengths")
        total = draft.input(np.full(1, length, np.int32), "total")
        tables = [draft.constant(draft.values([40, 8])) for _ in range(2)]
        operands = [take("x", 2, "n", (4 + 2 * 2) * 16), "", "", "", "", lengths, total, *tables]
        options = dict(num_heads=4, kv_num_heads=2, do_rotary=1, local_window_size=11)
        draft.contributed("GroupQueryAttention", *operands, outputs=3, **options)
    return draft, names


@pytest.mark.parametrize("kind", ["growing", "lengths", "projected", "grouped"])
def test_any_number_of_tokens(backend, tmp_path, kind):
    draft, names = _open(kind, 30)
    model = draft.model()
    for given in model.graph.input:
        for dim in names.get(given.name, []):
            given.type.tensor_type.shape.dim[dim].dim_param = "n"
    onnx.save(model, tmp_path / "model.onnx")
    backend.compile(tmp_path / "model.onnx", tmp_path / "model.dvt", Partition({"y": 2}), extra=["--bound", "n=30"])
    for length in (30, 1, 17):
        # Weights are those of the model that was compiled.
        inputs = _open(kind, length)[0].inputs
        expected = expected_outputs(model, inputs)
        actual = backend.run(tmp_path / "model.dvt", inputs, list(expected), tmp_path)
        assert not differences(actual, expected, tolerance=1e-5), length


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


def _values_bytes(tmp_path, draft):
    """What values take of memory, as `inspect` says."""
    onnx.save(draft.model(), tmp_path / "model.onnx")
    artifact = tmp_path / "model.dvt"
    code, _, messages = call([tool("dovetail"), "compile", tmp_path / "model.onnx", "-o", artifact])
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", artifact, "--json"])
    assert code == 0, messages
    return max(int(number) for number in re.findall(r'"values_bytes": *(\d+)', text))


def test_memory_of_long_sequences(tmp_path):
    """4 096 tokens of 3 heads have 200 MB of scores, which are never stored."""
    assert 0 < _values_bytes(tmp_path, _attention(tokens=4096, batch=1)) < 16 << 20


def test_memory_of_32768_tokens(tmp_path):
    """Queries, keys and values are all that there is at a time: values are written over what they are made of, and the
    result over queries."""
    draft = _attention(tokens=32768, batch=1, heads=22)
    assert 3 < _values_bytes(tmp_path, draft) / (4 * 32768 * 22 * DEPTH) < 3.05


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_products_over_their_factors(backend, tmp_path, threads):
    """Rows that are written over are read before, whoever computes them; whole, and split unevenly."""
    rng = np.random.default_rng(5)
    draft = Draft(rng)
    value = draft.input(rng.standard_normal((2, 4133, 512)).astype(np.float32), "x")
    for _ in range(2):
        weights = (rng.standard_normal((512, 512)) / 22).astype(np.float32)
        value = draft.node("MatMul", value, draft.constant(weights), final=False)
        value = draft.node("Relu", value, final=False)
    draft.node("MatMul", value, draft.constant((rng.standard_normal((512, 512)) / 22).astype(np.float32)))
    model = draft.model()
    expected = expected_outputs(model, draft.inputs)
    onnx.save(model, tmp_path / "model.onnx")
    for partition in (Partition({"y": 1}), Partition({"y": 3}).split("x", 3, 1, "y", (17, 0, 4116))):
        assert len(re.findall(r"plan.buffer +arena", _plan(tmp_path, draft, partition))) == 1
        artifact = tmp_path / "model.dvt"
        backend.compile(tmp_path / "model.onnx", artifact, partition)
        actual = backend.run(artifact, draft.inputs, list(expected), tmp_path, threads=threads)
        assert not differences(actual, expected, tolerance=1e-5)
