# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much of a program's work a run does whose extents are below the bounds: iterations are counted, nothing is timed.

A trace says of each step which share of its iterations the run went through.
"""

import json

import numpy as np
import pytest
from harness.backend import call, tool
from test_varying_images import _Graph, _unet

BIG = ("convolution", "pool", "matmul", "attention")


def _shares(dovetail, tmp_path, model, bounds, shape, flags=(), threads=1):
    """(kind, share) of each step of a run with an input of this shape."""
    program = dovetail.compile(model, bounds=bounds, options=list(flags))
    program.save(tmp_path / "m.dvt")
    np.save(tmp_path / "x.npy", np.random.default_rng(3).standard_normal(shape).astype(np.float32))
    run = [tool("dovetail-run"), "run", tmp_path / "m.dvt", "--input", f"x={tmp_path}/x.npy"]
    code, _, messages = call([*run, "--threads", str(threads), "--trace", tmp_path / "t.json"])
    assert code == 0, messages
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    return [(e["args"]["kind"], e["args"].get("share", 1)) for e in events if e["ph"] == "X"]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["size", "scale", "transposed"])
def test_unet(dovetail, tmp_path, kind, threads):
    """All library calls of a U-Net do what a smaller image needs, rounded up to eighths and quarters of the bounds."""
    model = _unet(kind, np.random.default_rng(5))
    for shape, most in [((64, 64), 1), ((32, 64), 0.63), ((64, 16), 0.5), ((32, 32), 0.5), ((16, 16), 0.2)]:
        shares = _shares(dovetail, tmp_path, model, {"h": 64, "w": 64}, (1, 2, *shape), threads=threads)
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
    model = g.model({"x": [1, "n", 32]}, [(value, 3)])
    for n in (256, 200, 64, 1, 0):
        shares = _shares(dovetail, tmp_path, model, {"n": 256}, (1, n, 32))
        expected = -(-n // 32) / 8
        calls = [share for name, share in shares if name == "matmul"]
        assert calls == [expected] * 3, (n, shares)
