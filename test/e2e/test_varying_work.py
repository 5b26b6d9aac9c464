# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much of a program's work a run does whose extents are below the bounds: iterations are counted, nothing is timed.

A trace says of each step which share of its iterations the run went through.
"""

import json

import numpy as np
import pytest
from dovetail_models import onnxruntime_session
from harness.backend import call, tool
from harness.compare import differences
from test_varying_images import _Graph, _unet

BIG = ("convolution", "pool", "matmul", "attention")


def _shares(program, tmp_path, shape, threads=1):
    """(kind, share) of each step of a run with an input of this shape."""
    program.save(tmp_path / "m.dvt")
    np.save(tmp_path / "x.npy", np.random.default_rng(3).standard_normal(shape).astype(np.float32))
    run = [tool("dovetail-run"), "run", tmp_path / "m.dvt", "--input", f"x={tmp_path}/x.npy"]
    code, _, messages = call([*run, "--threads", threads, "--trace", tmp_path / "t.json"])
    assert code == 0, messages
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    return [(e["args"]["kind"], e["args"].get("share", 1)) for e in events if e["ph"] == "X"]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["size", "scale", "transposed"])
def test_unet(dovetail, tmp_path, kind, threads):
    """All library calls of a U-Net do what a smaller image needs, rounded up to eighths and quarters of the bounds."""
    program = dovetail.compile(_unet(kind, np.random.default_rng(5)), bounds={"h": 64, "w": 64})
    for shape, most in [((64, 64), 1), ((32, 64), 0.63), ((64, 16), 0.5), ((32, 32), 0.5), ((16, 16), 0.2)]:
        shares = _shares(program, tmp_path, (1, 2, *shape), threads)
        calls = [share for name, share in shares if name in BIG]
        assert len(calls) >= 8, shares
        if most == 1:
            assert calls == [1] * len(calls)
        else:
            assert max(calls) <= most, (shape, shares)


def test_tokens(dovetail, tmp_path):
    """Products, and normalisation between them."""
    g = _Graph(np.random.default_rng(5))
    value = "x"
    for _ in range(3):
        value = g.add("Relu", g.add("MatMul", value, g.weights(32, 32)))
        value = g.add("LayerNormalization", value, g.constant(np.ones(32, np.float32)), axis=-1)
    program = dovetail.compile(g.model({"x": [1, "n", 32]}, [(value, 3)]), bounds={"n": 256})
    for n in (256, 200, 64, 1, 0):
        shares = _shares(program, tmp_path, (1, n, 32))
        expected = -(-n // 32) / 8
        calls = [share for name, share in shares if name == "matmul"]
        assert calls == [expected] * 3, (n, shares)


def test_attention(dovetail, tmp_path):
    """Queries, keys and values of some tokens: products of rows that there are, whose keys' tails are anything."""
    g = _Graph(np.random.default_rng(7))
    heads = [g.add("Reshape", g.add("MatMul", "x", g.weights(32, 32)), g.ints(0, 0, 4, 8)) for _ in range(3)]
    query, value = (g.add("Transpose", head, perm=[0, 2, 1, 3]) for head in heads[::2])
    scores = g.add("MatMul", query, g.add("Transpose", heads[1], perm=[0, 2, 3, 1]))
    mixed = g.add("Transpose", g.add("MatMul", g.add("Softmax", scores, axis=-1), value), perm=[0, 2, 1, 3])
    y = g.add("MatMul", g.add("Reshape", mixed, g.ints(0, 0, 32)), g.weights(32, 32))
    model = g.model({"x": [1, "n", 32]}, [(y, 3)])
    session = onnxruntime_session(model, threads=1, optimise=False)
    program = dovetail.compile(model, bounds={"n": 128})
    for n in (128, 16, 50, 1, 128):
        x = np.random.default_rng(n).standard_normal((1, n, 32)).astype(np.float32)
        found = differences(program.run({"x": x}), {"y0": session.run(None, {"x": x})[0]}, 1e-5, 1e-5)
        assert found is None, f"{n}: {found}"
        shares = _shares(program, tmp_path, (1, n, 32))
        calls = [share for name, share in shares if name == "matmul"]
        assert calls == [-(-n // 16) / 8] * 6, (n, shares)
