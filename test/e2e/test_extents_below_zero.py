# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Extents that are differences of lengths, which are below 0 in some runs; against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from dovetail_models import onnxruntime_session
from harness.backend import USAGE

BOUND = 9
LENGTHS = (BOUND, 3, 0, 4, 6, 1, BOUND)
FLAGS = ["--mesh", "y=2", "--shard", "x=y,_"]


def _model(nodes, rank=1, kind="float"):
    return onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 18]>
        g (float[n, 2] x, float[24] p) => ({kind}[{", ".join("abcd"[:rank])}] y)
          <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] three = {{3}},
           int64[1] four = {{4}}, int64[1] five = {{5}}, int64[1] seven = {{7}}, int64[1] nine = {{9}},
           int64 first = {{0}}, int64 up = {{1}}, int64 down = {{-1}}, int64 twice_down = {{-2}}, int64 low = {{-5}}> {{
          shape = Shape(x) n = Gather<axis = 0>(shape, zero) {nodes}
        }}"""
    )


def _run(dovetail, model):
    """For each length the result, or the error's text, and what ONNX Runtime says."""
    program = dovetail.compile(model, bounds={"n": BOUND}, options=FLAGS)
    session = onnxruntime_session(model, threads=1, optimise=False)
    for length in LENGTHS:
        inputs = {"x": np.ones((length, 2), np.float32), "p": np.arange(24, dtype=np.float32)}
        try:
            actual = program.run(inputs)["y"]
        except dovetail.DovetailError as error:
            assert error.code == USAGE
            actual = str(error)
        yield length, actual, session.run(["y"], inputs)[0]


EXACT = {
    "sum": "less = Sub(n, five) end = Add(less, seven) y = Slice(p, zero, end, zero)",
    "multiple": "less = Sub(n, five) more = Mul(less, two) end = Add(more, nine) last = Add(end, one) y = Slice(p, zero, last, zero)",
    "quotient": "less = Sub(n, one) half = Div(less, two) end = Add(half, one) y = Slice(p, zero, end, zero)",
    "rest": "left = Sub(nine, n) y = ConstantOfShape(left)",
    "twice": "double = Mul(n, two) own = Sub(double, n) y = Expand(x_one, own)",
}

RANGES = {
    "limit": "less = Sub(n, five) limit = Squeeze(less) y = Range(first, limit, up)",
    "low": "less = Sub(n, seven) limit = Squeeze(less) y = Range(low, limit, up)",
    "start": "less = Sub(n, five) start = Squeeze(less) limit = Squeeze(n) y = Range(start, limit, up)",
    "down": "less = Sub(n, one) start = Squeeze(less) y = Range(start, down, down)",
    "further down": "less = Sub(n, one) start = Squeeze(less) y = Range(start, low, twice_down)",
}


@pytest.mark.parametrize("name", [*EXACT, *RANGES])
def test_numbers_below_zero(dovetail, name):
    """A number on the way to an extent may be below 0, and so may the ends of a range."""
    nodes = EXACT.get(name) or RANGES[name]
    if "x_one" in nodes:
        nodes = f"x_one = Cast<to = 1>(one) {nodes}"
    for length, actual, expected in _run(dovetail, _model(nodes, kind="int64" if name in RANGES else "float")):
        np.testing.assert_array_equal(actual, expected, err_msg=f"{name}, {length}")


#: With what the extent is.
REFUSED = {
    "end": ("less = Sub(n, five) y = Slice(p, zero, less, zero)", lambda n: n - 5),
    "quotient": (
        "less = Sub(n, four) third = Div(less, three) end = Add(third, one) y = Slice(p, zero, end, zero)",
        lambda n: n - 4 + 2,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_extents_below_zero(dovetail, name):
    """Such a run is an error, where ONNX counts from the end; others are not touched by it."""
    nodes, extent = REFUSED[name]
    seen = set()
    for length, actual, expected in _run(dovetail, _model(nodes)):
        if extent(length) < 0:
            assert f"is too small by {-extent(length)} in this run" in actual and "node 'Slice" in actual
        else:
            np.testing.assert_array_equal(actual, expected, err_msg=f"{name}, {length}")
        seen.add(extent(length) < 0)
    assert seen == {True, False}
