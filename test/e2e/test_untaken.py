# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What branches and loops that are not run leave undone is not missed elsewhere; against ONNX Runtime.

Each artifact first runs where the branch is not taken, or there is no iteration: memory then has nothing of an earlier
run.
"""

import numpy as np
import onnx
import pytest
from harness.oracle import expected_outputs
from harness.partition import Partition

HEAD = '<ir_version: 9, opset_import: ["" : 18]>'

#: Both branches multiply by the same weights.
WEIGHTS = f"""{HEAD}
weights (bool c, float[40, 64] x, float[40, 64] u) => (float[40, 64] o) {{
  o = If(c) <
    then_branch = yes () => (float[40, 64] p) {{ p = MatMul(x, w) }},
    else_branch = no () => (float[40, 64] q) {{ q = MatMul(u, w) }}>
}}
"""

#: Both branches convolve the same image.
IMAGE = f"""{HEAD}
image (bool c, float[1, 16, 12, 10] x) => (float[1, 16, 12, 10] o) {{
  o = If(c) <
    then_branch = yes () => (float[1, 16, 12, 10] p) {{ p = Conv<pads = [1, 1, 1, 1]>(x, k) }},
    else_branch = no () => (float[1, 16, 12, 10] q) {{ q0 = Conv<pads = [1, 1, 1, 1]>(x, k) q = Neg(q0) }}>
}}
"""

#: An image that is convolved in a loop and behind it.
BEHIND = f"""{HEAD}
behind (int64 trips, float[1, 16, 12, 10] x, float[1, 16, 12, 10] s) => (float[1, 16, 12, 10] o) {{
  sum = Loop(trips, , s) <
    body = step (int64 i, bool on, float[1, 16, 12, 10] v) => (bool goes, float[1, 16, 12, 10] v2) {{
      goes = Identity(on)
      xv = Mul(x, v)
      h = Conv<pads = [1, 1, 1, 1]>(xv, k)
      h2 = Conv<pads = [1, 1, 1, 1]>(x, k)
      h3 = Add(h, h2)
      v2 = Add(v, h3)
    }}>
  last = Conv<pads = [1, 1, 1, 1]>(x, k)
  o = Add(sum, last)
}}
"""

#: An index that a branch computes is nowhere where it is not taken.
INDEX = f"""{HEAD}
index (bool c, float[300, 6] x, float[6, 6] w) => (float[300, 6] o) {{
  o = If(c) <
    then_branch = yes () => (float[300, 6] p) {{
      h = MatMul(x, w)
      k = ArgMax<axis = 1, keepdims = 0>(h)
      p = Gather<axis = 0>(x, k)
    }},
    else_branch = no () => (float[300, 6] q) {{ q = Neg(x) }}>
}}
"""

#: An index that does not depend on the iteration, and is wrong where there is none.
NO_ITERATION = f"""{HEAD}
no_iteration (int64 trips, int64[64] place, float[64, 64] x, float[64, 64] m, float[5, 64] table) => (float[64, 64] y) {{
  y = Loop(trips, , x) <
    body = step (int64 i, bool on, float[64, 64] v) => (bool goes, float[64, 64] v2) {{
      goes = Identity(on)
      row = Gather<axis = 0>(table, place)
      h = MatMul(row, m)
      v2 = Add(v, h)
    }}>
}}
"""

#: A loop that would never end, in one that has no iteration.
ENDLESS = f"""{HEAD}
endless (int64 n, float[8] x, float[8] s) => (float[8] y) <float limit = {{100.0}}, bool yes = {{1}}> {{
  y = Loop(n, , s) <
    body = outer (int64 i, bool on, float[8] v) => (bool goes, float[8] w) {{
      goes = Identity(on)
      g = Loop(, yes, x) <
        body = inner (int64 j, bool on2, float[8] a) => (bool g2, float[8] b) {{
          b = Add(a, a)
          least = ReduceMin<keepdims = 0>(b)
          g2 = Less(least, limit)
        }}>
      w = Add(v, g)
    }}>
}}
"""


def _whole(rng, *shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


def _model(text, **constants):
    model = onnx.parser.parse_model(text)
    for name, value in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return model


def _check(backend, model, runs, partition):
    """Each run with memory that nobody has written to before it, as the program is loaded anew."""
    for inputs in runs:
        expected = expected_outputs(model, inputs)
        actual = backend.compile_and_run(model, partition, inputs, list(expected))
        for name, value in expected.items():
            np.testing.assert_allclose(actual[name], value, rtol=1e-4, atol=1e-3)


def _rows(ranks, *names, rank=2, dim=0, sizes):
    partition = Partition({"y": ranks})
    for name in names:
        partition.split(name, rank, dim, "y", sizes)
    return partition


@pytest.mark.parametrize("c", [False, True])
@pytest.mark.parametrize("ranks, sizes", [(2, [25, 15]), (3, [17, 0, 23])])
def test_weights_that_are_gathered(backend, c, ranks, sizes):
    rng = np.random.default_rng(1)
    model = _model(WEIGHTS, w=_whole(rng, 64, 64))
    inputs = {"c": np.array(c), "x": _whole(rng, 40, 64), "u": _whole(rng, 40, 64)}
    partition = _rows(ranks, "x", "u", sizes=sizes)
    partition.objective = "memory"
    _check(backend, model, [inputs], partition)


@pytest.mark.parametrize("c", [False, True])
@pytest.mark.parametrize("ranks, sizes", [(1, [12]), (2, [7, 5])])
def test_images(backend, c, ranks, sizes):
    rng = np.random.default_rng(2)
    model = _model(IMAGE, k=_whole(rng, 16, 16, 3, 3))
    inputs = {"c": np.array(c), "x": _whole(rng, 1, 16, 12, 10)}
    partition = _rows(ranks, "x", rank=4, dim=2, sizes=sizes) if ranks > 1 else Partition({"y": 1})
    _check(backend, model, [inputs], partition)


@pytest.mark.parametrize("trips", [0, 1, 2])
def test_behind_a_loop(backend, trips):
    rng = np.random.default_rng(3)
    model = _model(BEHIND, k=(_whole(rng, 16, 16, 3, 3) / 16).astype(np.float32))
    inputs = {"trips": np.array(trips), "x": _whole(rng, 1, 16, 12, 10) / 4, "s": _whole(rng, 1, 16, 12, 10) / 4}
    _check(backend, model, [inputs], Partition({"y": 1}))


@pytest.mark.parametrize("ranks, sizes", [(1, [300]), (2, [100, 200])])
def test_indices_of_a_branch(backend, ranks, sizes):
    rng = np.random.default_rng(4)
    model = _model(INDEX)
    runs = [{"c": np.array(c), "x": _whole(rng, 300, 6), "w": _whole(rng, 6, 6)} for c in (False, True)]
    partition = _rows(ranks, "x", sizes=sizes) if ranks > 1 else Partition({"y": 1})
    _check(backend, model, runs, partition)


@pytest.mark.parametrize("trips, place", [(0, 99), (2, 3), (0, 2)])
def test_indices_of_no_iteration(backend, trips, place):
    rng = np.random.default_rng(5)
    inputs = {"trips": np.array(trips), "place": np.full(64, place)}
    inputs |= {"x": _whole(rng, 64, 64), "m": _whole(rng, 64, 64), "table": _whole(rng, 5, 64)}
    _check(backend, _model(NO_ITERATION), [inputs], Partition({"y": 1}))


@pytest.mark.parametrize("n, x", [(2, 1), (0, 0)])
def test_endless_loop_that_is_not_begun(backend, n, x):
    inputs = {"n": np.array(n), "x": np.full(8, x, np.float32), "s": np.ones(8, np.float32)}
    _check(backend, _model(ENDLESS), [inputs], Partition({"y": 1}))


@pytest.mark.parametrize("n, m", [(2, 3), (20, 300)])
@pytest.mark.parametrize("axis", [0, 1])
def test_one_index_for_all(backend, n, m, axis):
    """A scatter to one place is none to neighbours; the last update wins."""
    data, updates = ((n + 3, m), (n, m)) if axis == 0 else ((m, n + 3), (m, n))
    shape = ", ".join(map(str, updates))
    text = f"""{HEAD}
    one_index (float[{data[0]}, {data[1]}] x, float[{shape}] u) => (float[{data[0]}, {data[1]}] y)
      <int64[1, 1] one = {{1}}, int64[2] shape = {{{shape}}}>
    {{ i = Expand(one, shape) y = ScatterElements<axis = {axis}>(x, i, u) }}"""
    rng = np.random.default_rng(6)
    inputs = {"x": rng.random(data, np.float32), "u": rng.random(updates, np.float32)}
    actual = backend.compile_and_run(_model(text), Partition({"y": 1}), inputs, ["y"])["y"]
    expected = inputs["x"].copy()
    expected[(1, slice(None)) if axis == 0 else (slice(None), 1)] = np.take(inputs["u"], -1, axis)
    np.testing.assert_array_equal(actual, expected)
