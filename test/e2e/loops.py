# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with loops whose iterations are counted when the program runs, their inputs, and what runs must give."""

import numpy as np
from harness.oracle import expected_outputs
from harness.partition import Partition, uneven_sizes

HEAD = '<ir_version: 9, opset_import: ["" : 18]>'

#: Values that change places, one that stays, and one that is read of a table, so often as an input says.
COUNTED = f"""{HEAD}
counted (int64 trips, float[7, 6] a, float[7, 6] b, float[5, 6] table)
  => (float[7, 6] last, float[7, 6] other, float[7, 6] same, int64 number)
  <int64 rows = {{5}}>
{{
  start = Neg(a)
  scaled = Add(table, table)
  number0 = Constant<value_int = 0>()
  last, other, same, number = Loop(trips, , start, b, a, number0) <
    body = step (int64 i, bool on, float[7, 6] x, float[7, 6] y, float[7, 6] z, int64 n)
        => (bool goes, float[7, 6] x2, float[7, 6] y2, float[7, 6] z2, int64 n2) {{
      goes = Identity(on)
      at = Mod(i, rows)
      row = Gather<axis = 0>(scaled, at)
      sum = Add(x, row)
      x2 = Identity(y)
      y2 = Sub(sum, y)
      z2 = Identity(z)
      n2 = Add(n, i)
    }}>
}}
"""

#: Smooths an image until no element is larger than a limit.
FOUND = f"""{HEAD}
found (float[1, 2, 13, 9] image, float limit) => (float[1, 2, 13, 9] smooth, float largest)
  <float[2, 1, 3, 3] weights = {{0.0625, 0.125, 0.0625, 0.125, 0.125, 0.125, 0.0625, 0.125, 0.0625,
                                0.125, 0.0625, 0.125, 0.0625, 0.125, 0.0625, 0.125, 0.0625, 0.125}}>
{{
  first = ReduceMax<keepdims = 0>(image)
  begins = Less(limit, first)
  smooth, largest = Loop(, begins, image, first) <
    body = step (int64 i, bool on, float[1, 2, 13, 9] x, float m) => (bool goes, float[1, 2, 13, 9] y, float largest2) {{
      y = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1], group = 2>(x, weights)
      largest2 = ReduceMax<keepdims = 0>(y)
      goes = Less(limit, largest2)
    }}>
}}
"""

#: Powers of a matrix, in a loop that another one begins anew with more iterations each time.
NESTED = f"""{HEAD}
nested (int64 trips, float[6, 6] m, float[6, 5] x) => (float[6, 5] y)
  <float half = {{0.5}}>
{{
  y = Loop(trips, , x) <
    body = outer (int64 i, bool on, float[6, 5] a) => (bool goes, float[6, 5] b) {{
      goes = Identity(on)
      ones = Mul(m, half)
      inner = Loop(i, , ones) <
        body = power (int64 j, bool on2, float[6, 6] p) => (bool goes2, float[6, 6] q) {{
          goes2 = Identity(on2)
          product = MatMul(p, m)
          q = Mul(product, half)
        }}>
      moved = MatMul(inner, a)
      b = Add(moved, x)
    }}>
}}
"""

#: An inner loop that depends on the outer one by what it reads alone: it begins anew in each iteration all the same.
AGAIN = f"""{HEAD}
again (int64 trips, float[6, 5] x) => (float[6, 5] y)
{{
  start = Neg(x)
  y = Loop(trips, , x) <
    body = outer (int64 i, bool on, float[6, 5] a) => (bool goes, float[6, 5] b) {{
      goes = Identity(on)
      inner = Loop(trips, , start) <
        body = add (int64 j, bool on2, float[6, 5] p) => (bool goes2, float[6, 5] q) {{
          goes2 = Identity(on2)
          q = Add(p, a)
        }}>
      b = Sub(inner, x)
    }}>
}}
"""

#: In a branch: a loop that would never end is not begun where the branch is not taken.
BRANCH = f"""{HEAD}
branch (bool taken, float[8] x) => (float[8] y)
  <float limit = {{100.0}}>
{{
  y = If(taken) <
    then_branch = yes () => (float[8] grown) {{
      grown = Loop(, , x) <
        body = step (int64 i, bool on, float[8] a) => (bool goes, float[8] b) {{
          b = Add(a, a)
          least = ReduceMin<keepdims = 0>(b)
          goes = Less(least, limit)
        }}>
    }},
    else_branch = no () => (float[8] same) {{ same = Neg(x) }}>
}}
"""

#: Work that only one of two branches asks for, in each iteration, and an index that is wrong where it is not taken.
CHOSEN = f"""{HEAD}
chosen (int64 trips, int64 where, float[7, 6] x, float[6, 6] a, float[6, 6] b) => (float[7, 6] y)
  <int64 two = {{2}}, int64 zero = {{0}}, float scale = {{0.25}}>
{{
  y = Loop(trips, , x) <
    body = step (int64 i, bool on, float[7, 6] v) => (bool goes, float[7, 6] w) {{
      goes = Identity(on)
      rest = Mod(i, two)
      even = Equal(rest, zero)
      w = If(even) <
        then_branch = yes () => (float[7, 6] p) {{
          p0 = MatMul(v, a)
          p = Mul(p0, scale)
        }},
        else_branch = no () => (float[7, 6] q) {{
          q0 = MatMul(v, b)
          at = Add(i, where)
          row = Gather<axis = 0>(v, at)
          q = Sub(q0, row)
        }}>
    }}>
}}
"""

#: More iterations than are expanded.
LONG = f"""{HEAD}
long (float[7, 6] x) => (float[7, 6] y)
  <int64 trips = {{3000}}, float[6] step = {{1, 2, 3, 4, 5, 6}}>
{{
  y = Loop(trips, , x) <
    body = add (int64 i, bool on, float[7, 6] a) => (bool goes, float[7, 6] b) {{
      goes = Identity(on)
      c = Add(a, step)
      d = Neg(c)
      e = Neg(d)
      b = Identity(e)
    }}>
}}
"""

#: Tokens of a decoder, each of which writes a row of a cache and attends to those that there are.
DECODER = f"""{HEAD}
decoder (int64 tokens, float[1, 8] first, float[8, 24] qkv, float[8, 8] out) => (float[12, 8] seen, float[1, 8] last)
  <int64[1] zero = {{0}}, int64[2] one_row = {{1, 1}}, int64[3] parts = {{8, 8, 8}}, int64 most = {{12}}, int64 one = {{1}},
   int64 none = {{0}}, float scale = {{0.35}}, float far = {{-1.0e9}}>
{{
  empty_shape = Constant<value_ints = [12, 8]>()
  keys0 = ConstantOfShape(empty_shape)
  seen, values, last = Loop(tokens, , keys0, keys0, first) <
    body = token (int64 i, bool on, float[12, 8] keys, float[12, 8] values, float[1, 8] x)
        => (bool goes, float[12, 8] keys2, float[12, 8] values2, float[1, 8] x2) {{
      goes = Identity(on)
      all = MatMul(x, qkv)
      q, k, v = Split<axis = 1>(all, parts)
      at = Reshape(i, one_row)
      keys2 = ScatterND(keys, at, k)
      values2 = ScatterND(values, at, v)
      turned = Transpose<perm = [1, 0]>(keys2)
      scores = MatMul(q, turned)
      positions = Range(none, most, one)
      later = Greater(positions, i)
      scaled = Mul(scores, scale)
      masked = Where(later, far, scaled)
      weights = Softmax<axis = 1>(masked)
      mixed = MatMul(weights, values2)
      moved = MatMul(mixed, out)
      sum = Add(x, moved)
      x2 = Tanh(sum)
    }}>
}}
"""

#: Rows of all iterations, of which there are as many as it takes to reach a limit; nine at most.
STACKED = f"""{HEAD}
stacked (float[7, 6] x, float limit) => (float[7, 6] last, float[N, 7, 6] all, float[N] largest, float[7, 6] total)
  <int64 most = {{9}}, float[7, 6] step = {{{", ".join(["1, 0.5"] * 21)}}}, int64[1] first = {{0}}>
{{
  highest = ReduceMax<keepdims = 0>(x)
  begins = Less(highest, limit)
  last, all, largest = Loop(most, begins, x) <
    body = add (int64 i, bool on, float[7, 6] s) => (bool goes, float[7, 6] t, float[7, 6] u, float m) {{
      t = Add(s, step)
      u = Neg(t)
      m = ReduceMax<keepdims = 0>(t)
      goes = Less(m, limit)
    }}>
  total = ReduceSum<keepdims = 0>(all, first)
}}
"""

#: The same of more iterations than are expanded.
LONG_STACKED = STACKED.replace("most = {9}", "most = {2000}")


def integer_values(seed, *shape):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def small_values(seed, *shape):
    return (np.random.default_rng(seed).random(shape).astype(np.float32) - 0.5) * 0.6


def scalar(value, dtype=np.int64):
    return np.array(value, dtype)


#: Data end it, but a shape depends on the iteration: it is expanded.
SHAPES = f"""{HEAD}
shapes (float[7, 6] x, float limit) => (float[7, 6] last)
  <int64 most = {{7}}, int64 zero = {{0}}, int64 one = {{1}}>
{{
  first = ReduceMax<keepdims = 0>(x)
  begins = Less(first, limit)
  last = Loop(most, begins, x) <
    body = step (int64 i, bool on, float[7, 6] a) => (bool goes, float[7, 6] b) {{
      numbers = Range(zero, i, one)
      sum = ReduceSum<keepdims = 0>(numbers)
      more = Cast<to = 1>(sum)
      b = Add(a, more)
      largest = ReduceMax<keepdims = 0>(b)
      goes = Less(largest, limit)
    }}>
}}
"""

CASES = {
    "counted": (
        COUNTED,
        {"a": 0, "b": 1},
        True,
        [
            {"trips": scalar(trips), "a": integer_values(1, 7, 6), "b": integer_values(2, 7, 6), "table": integer_values(3, 5, 6)}
            for trips in (3, 0, 1, 12, -2)
        ],
    ),
    "found": (
        FOUND,
        {"image": 2},
        False,
        [{"image": integer_values(4, 1, 2, 13, 9) ** 2, "limit": scalar(limit, np.float32)} for limit in (3, 100, 0.5)],
    ),
    "nested": (
        NESTED,
        {"m": 0, "x": 1},
        False,
        [{"trips": scalar(trips), "m": small_values(5, 6, 6), "x": small_values(6, 6, 5)} for trips in (4, 0, 1)],
    ),
    "again": (
        AGAIN,
        {"x": 0},
        True,
        [{"trips": scalar(trips), "x": integer_values(17, 6, 5)} for trips in (3, 0, 1, 4)],
    ),
    "branch": (
        BRANCH,
        {"x": 0},
        True,
        [
            {"taken": scalar(True, bool), "x": np.arange(1, 9, dtype=np.float32)},
            {"taken": scalar(False, bool), "x": np.zeros(8, np.float32)},
        ],
    ),
    "chosen": (
        CHOSEN,
        {"x": 0, "a": 1},
        True,
        [
            {"trips": scalar(trips), "where": scalar(where)}
            | {"x": integer_values(11, 7, 6), "a": integer_values(12, 6, 6), "b": integer_values(13, 6, 6)}
            for trips, where in ((4, 2), (1, 99), (0, 0))
        ],
    ),
    "stacked": (
        STACKED,
        {"x": 0},
        True,
        [{"x": integer_values(18, 7, 6), "limit": scalar(limit, np.float32)} for limit in (7, -9, 99, 5)],
    ),
    "long stacked": (
        LONG_STACKED,
        {"x": 1},
        True,
        [{"x": integer_values(19, 7, 6), "limit": scalar(limit, np.float32)} for limit in (30, -9, 5)],
    ),
    "shapes": (
        SHAPES,
        {"x": 0},
        True,
        [{"x": integer_values(20, 7, 6), "limit": scalar(limit, np.float32)} for limit in (20, -9, 99, 3)],
    ),
    "long": (LONG, {"x": 0}, True, [{"x": integer_values(7, 7, 6)}]),
    "decoder": (
        DECODER,
        {"first": 1, "out": 0},
        False,
        [
            {"tokens": scalar(tokens), "first": small_values(8, 1, 8), "qkv": small_values(9, 8, 24), "out": small_values(10, 8, 8)}
            for tokens in (5, 12, 0)
        ],
    ),
}


def make_partition(mesh, model, tensors):
    partition = Partition(mesh)
    axes = "+".join(mesh)
    shapes = {port.name: [dim.dim_value for dim in port.type.tensor_type.shape.dim] for port in model.graph.input}
    for name, dim in tensors.items():
        shape = shapes[name]
        partition.split(name, len(shape), dim, axes, uneven_sizes(shape[dim], partition.ranks))
    return partition


def check_run(actual, model, inputs, exact, what):
    for name, expected in expected_outputs(model, inputs).items():
        assert actual[name].shape == expected.shape and actual[name].dtype == expected.dtype, (what, name)
        if exact:
            np.testing.assert_array_equal(actual[name], expected, f"{what}, {name}")
        else:
            np.testing.assert_allclose(actual[name], expected, rtol=2e-5, atol=2e-6, err_msg=f"{what}, {name}")
