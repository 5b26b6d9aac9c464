# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Extents that a model computes from lengths which vary from run to run (`compile --bound`); against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from dovetail_models import onnxruntime_session
from harness.cpus import cpu_up_to
from harness.extent import EVERYTHING

CPU = cpu_up_to("x86-64-v3")


def _random_extent(rng, depth):
    """(lines, name, value by lengths): integers computed from two lengths."""
    lines, names = [], []

    def build(depth):
        name = f"e{len(names)}"
        names.append(name)
        if depth == 0 or rng.random() < 0.2:
            index = int(rng.integers(3))
            if index == 2:
                number = int(rng.integers(0, 5))
                lines.append(f"{name} = Constant<value_int = {number}>()")
                return name
            lines.append(f"{name}_i = Constant<value_int = {index}>() {name} = Gather(shape, {name}_i)")
            return name
        kind = rng.choice(["add", "sub", "mul", "div", "sum", "difference", "real"])
        inner, number = build(depth - 1), int(rng.integers(1, 5))
        if kind == "sum":
            lines.append(f"{name} = Add({inner}, {build(depth - 1)})")
        elif kind == "difference":
            # Never below 0.
            other = build(depth - 1)
            lines.append(f"{name}_s = Add({inner}, {other}) {name} = Sub({name}_s, {other})")
        elif kind == "real":
            scale = rng.choice([0.5, 2.0, 1.5, 0.25])
            lines.append(f"{name}_r = Cast<to = 1>({inner}) {name}_c = Constant<value_float = {scale}>()")
            lines.append(f"{name}_m = Mul({name}_r, {name}_c) {name}_f = Floor({name}_m) {name} = Cast<to = 7>({name}_f)")
        else:
            operator = {"add": "Add", "sub": "Add", "mul": "Mul", "div": "Div"}[kind]
            lines.append(f"{name}_c = Constant<value_int = {number}>() {name} = {operator}({inner}, {name}_c)")
            if kind == "sub":
                lines[-1] = lines[-1].replace(f"{name} = Add", f"{name}_b = Add")
                lines.append(f"{name} = Sub({name}_b, {name}_c)")
        return name

    return lines, build(depth)


@pytest.mark.parametrize("seed", range(200 if EVERYTHING else 20))
def test_extents_that_are_computed(dovetail, seed):
    """Sums, products and quotients of lengths are extents, and equal ones meet."""
    rng = np.random.default_rng([seed, 0xE7])
    lines, extent = _random_extent(rng, int(rng.integers(1, 4)))
    step = int(rng.choice([1, 2, 3, -1, -2]))
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
        computed (float[a, b] x) => (int64[p] places, float[q] twice, int64[r] back) <int64[1] flat = {{-1}}> {{
          shape = Shape(x) {" ".join(lines)}
          zero = Constant<value_int = 0>() one = Constant<value_int = 1>() step = Constant<value_int = {step}>()
          first = Constant<value_int = 0>() start = Gather(shape, first) limit = Add(start, {extent})
          places = Range(start, limit, one)
          wanted = Reshape({extent}, flat)
          filled = ConstantOfShape(wanted)
          doubled = Add({extent}, {extent}) more = Sub(doubled, {extent}) other = Reshape(more, flat)
          ones = ConstantOfShape<value = float[1] {{1.0}}>(other)
          twice = Add(filled, ones)
          back = Range({"limit, start" if step < 0 else "start, limit"}, step)
        }}"""
    model = onnx.parser.parse_model(text)
    program = dovetail.compile(model, bounds={"a": 7, "b": 5}, cpu=CPU)
    session = onnxruntime_session(model, threads=1, optimise=False)
    for a, b in ((7, 5), (0, 0), (1, 4), (6, 3), (3, 0)):
        inputs = {"x": np.zeros((a, b), np.float32)}
        actual = program.run(inputs)
        for output, expected in zip(session.get_outputs(), session.run(None, inputs)):
            np.testing.assert_array_equal(actual[output.name], expected, err_msg=f"{output.name} {a} {b}\n{text}")


def _parse(text):
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {text}')


def test_extents_are_compared_whatever_the_index_checks(dovetail):
    """Without index checks an index is clamped, but results of extents that do not fit would be wrong."""
    model = _parse("g (float[a] x, float[b] y) => (float[n] z) { z = Add(x, y) }")
    program = dovetail.compile(model, bounds={"a": 5, "b": 5}, cpu=CPU, index_checks=False)
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(program.run({"x": x, "y": x})["z"], x + x)
    with pytest.raises(dovetail.DovetailError, match="must be equal, but differ by 2 in this run"):
        program.run({"x": x, "y": x[:2]})
    # Also where there is nothing to add.
    for a, b in ((0, 3), (3, 0)):
        with pytest.raises(dovetail.DovetailError, match="must be equal, but differ by 3 in this run"):
            program.run({"x": x[:a], "y": x[:b]})
    assert program.run({"x": x[:0], "y": x[:0]})["z"].shape == (0,)


@pytest.mark.parametrize("operation", ["y = ReduceSum<keepdims = 0>(t, columns)", "u = Slice(z, begin, end, rows) y = MatMul(t, u)"])
@pytest.mark.parametrize("bound", [5, 6])
def test_sums_over_dimensions_that_are_always_empty(dovetail, operation, bound):
    """A slice from the fifth element on has none, if the bound is 5: sums are 0."""
    shape = "float[2]" if "ReduceSum" in operation else "float[2, 3]"
    model = _parse(
        f"""g (float[2, h] x, float[h, 3] z) => ({shape} y)
            <int64[1] columns = {{1}}, int64[1] rows = {{0}}, int64[1] begin = {{5}}, int64[1] end = {{1000}}> {{
              t = Slice(x, begin, end, columns) {operation} }}"""
    )
    program = dovetail.compile(model, bounds={"h": bound}, cpu=CPU)
    for h in (bound, 5, 2):
        x, z = np.arange(2 * h, dtype=np.float32).reshape(2, h), np.ones((h, 3), np.float32)
        expected = x[:, 5:].sum(axis=1) if "ReduceSum" in operation else x[:, 5:] @ z[5:]
        np.testing.assert_array_equal(program.run({"x": x, "z": z})["y"], expected)


def test_resize_of_nothing(dovetail):
    """Is an error, as for fixed extents, where there are elements to make."""
    model = _parse(
        """g (float[1, 1, h] x, float[1, 1, k] like) => (float[1, 1, m] y) <float[0] none = {}> {
             shape = Shape(like) y = Resize<mode = "nearest">(x, none, none, shape) }"""
    )
    program = dovetail.compile(model, bounds={"h": 5, "k": 6}, cpu=CPU)
    session = onnxruntime_session(model, threads=1, optimise=False)
    for h, k in ((5, 6), (2, 6), (3, 1)):
        arrays = {name: np.random.default_rng(h).random((1, 1, n), np.float32) for name, n in (("x", h), ("like", k))}
        np.testing.assert_array_equal(program.run(arrays)["y"], session.run(["y"], arrays)[0])
    with pytest.raises(dovetail.DovetailError, match="node 'Resize.* too small by 1 in this run"):
        program.run({"x": np.zeros((1, 1, 0), np.float32), "like": np.zeros((1, 1, 4), np.float32)})


def test_range_between_two_differences(dovetail):
    """Is as long in all runs: its bound is no more than that. One that is too long is an error of the model."""
    body = """g (float[h] x) => (int64[n] y) <int64 five = {5}, int64 three = {3}, int64 one = {1}, int64 large = {LARGE}> {
              shape = Shape(x) zero = Constant<value_int = 0>() h1 = Gather(shape, zero)
              first = Sub(h1, five) last = Add(h1, three) START y = Range(from, to, one) }"""
    model = _parse(body.replace("LARGE", "1").replace("START", "from = Identity(first) to = Identity(last)"))
    program = dovetail.compile(model, bounds={"h": 12}, cpu=CPU)
    assert program.outputs[0].shape == (8,)
    for length in (12, 3, 0):
        expected = np.arange(length - 5, length + 3)
        np.testing.assert_array_equal(program.run({"x": np.zeros(length, np.float32)})["y"], expected)
    text = body.replace("LARGE", str(2**62)).replace(
        "START", "down = Sub(zero, h1) from = Mul(first, large) other = Add(down, five) to = Mul(other, large)"
    )
    with pytest.raises(dovetail.DovetailError):
        dovetail.compile(_parse(text), bounds={"h": 12}, cpu=CPU)
