# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floats of 8 and 4 bits, integers of 4 and 2: conversions of all of their numbers, and operations that move them."""

import ml_dtypes
import numpy as np
import pytest
from harness.backend import UNSUPPORTED, BackendError, fastest_backend
from harness.cpus import cpu_parameters
from harness.partition import Partition, uneven_sizes
from onnx import TensorProto, helper, numpy_helper
from onnx.reference.ops.op_cast import cast_to

FLOATS = {
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "FLOAT4E2M1": ml_dtypes.float4_e2m1fn,
}
INTS = {"INT4": ml_dtypes.int4, "UINT4": ml_dtypes.uint4, "INT2": ml_dtypes.int2, "UINT2": ml_dtypes.uint2}
NARROW = FLOATS | INTS | {"FLOAT8E8M0": ml_dtypes.float8_e8m0fnu}
WIDE = {
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
    "FLOAT16": np.float16,
    "BFLOAT16": ml_dtypes.bfloat16,
    "BOOL": np.bool_,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
}


def _bits(kind):
    return ml_dtypes.iinfo(INTS[kind]).bits if kind in INTS else ml_dtypes.finfo(NARROW[kind]).bits


def _all(kind):
    """All elements of a narrow type."""
    return np.arange(1 << _bits(kind), dtype=np.uint8).view(NARROW[kind])


def _model(nodes, inputs, outputs, constants=()):
    """`inputs` are arrays by name, `outputs` names of types by name."""
    given = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items()]
    made = [helper.make_tensor_value_info(n, getattr(TensorProto, kind), None) for n, kind in outputs.items()]
    graph = helper.make_graph(nodes, "narrow", given, made, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)


def _run(nodes, inputs, outputs, partition=None, constants=()):
    backend = fastest_backend()
    model = _model(nodes, inputs, outputs, constants)
    partition = partition or Partition({"y": 1})
    return backend.compile_and_run(model, partition, inputs, list(outputs))


def _cast(x, requests):
    """`x` converted as each of `requests` says: a type and attributes."""
    names = [f"y{i}" for i in range(len(requests))]
    nodes = [
        helper.make_node("Cast", ["x"], [name], to=getattr(TensorProto, kind), **attributes)
        for name, (kind, attributes) in zip(names, requests)
    ]
    results = _run(nodes, {"x": x}, {name: kind for name, (kind, _) in zip(names, requests)})
    return [results[name] for name in names]


def _check(actual, expected, x, what):
    """Equal bits. `expected` is of the type, `actual` its bits; NaN may have any sign and payload of f32 and wider."""
    if expected.dtype.itemsize == 1 or np.dtype(expected.dtype).type.__module__ == "ml_dtypes":
        wrong = actual.view(f"u{actual.itemsize}") != expected.view(f"u{expected.itemsize}")
        wrong &= ~(np.isnan(expected.astype(np.float32)) & (expected.itemsize > 1))
    else:
        wrong = ~((actual == expected) | (np.isnan(actual) & np.isnan(expected)))
    assert not wrong.any(), f"{what}: {wrong.sum()} differ, the first {x[wrong][:8]} gives {actual[wrong][:8]}, " + str(
        expected[wrong][:8]
    )


def _neighbours(values):
    """Numbers, what is halfway between neighbours, and what is next to all of these in their type."""
    values = np.unique(values[np.isfinite(values)])
    middles = (values[1:] + values[:-1]) / 2
    values = np.concatenate([values, middles, 2 * values])
    return np.concatenate([values, np.nextafter(values, -np.inf), np.nextafter(values, np.inf)])


def _floats(dtype):
    """Numbers that are hard to round to narrow types, and some others."""
    rng = np.random.default_rng(0)
    halves = np.arange(1 << 16, dtype=np.uint16)
    if dtype == np.float16:
        return halves.view(np.float16)
    if dtype == ml_dtypes.bfloat16:
        return halves.view(ml_dtypes.bfloat16)
    hard = [_neighbours(_all(kind).astype(dtype)) for kind in NARROW]
    bits = rng.integers(0, 1 << (8 * np.dtype(dtype).itemsize), 1 << 16, np.uint64)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, np.finfo(np.float32).max], dtype)
    random = bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)
    return np.concatenate([*hard, special, random, halves.view(np.float16).astype(dtype)])


def _nearest(x, dtype, saturate):
    """`x`, of f64, rounded to nearest even by comparing it with all numbers of the type."""
    codes = np.arange(1 << (ml_dtypes.finfo(dtype).bits - 1), dtype=np.uint8)
    numbers = codes.view(dtype).astype(np.float64)
    codes, numbers = codes[np.isfinite(numbers)], numbers[np.isfinite(numbers)]
    # What follows the largest number is where rounding overflows.
    beyond = 2 * numbers[-1] - numbers[-2]
    middles = (np.append(numbers, beyond)[1:] + numbers) / 2
    size = np.abs(x)
    index = np.searchsorted(middles, size, side="left")
    tie = np.isin(size, middles)
    index = np.where(tie & (codes[np.minimum(index, len(codes) - 1)] % 2 == 1), index + 1, index)
    # The last number is odd where the next code would be NaN.
    clamped = numbers[np.minimum(index, len(numbers) - 1)]
    overflow = index >= len(numbers)
    limit = np.where(overflow & (not saturate), np.inf, clamped)
    return np.where(np.isnan(x), np.nan, np.copysign(limit, x)).astype(np.float32).astype(dtype)


def _power(x, saturate, round_mode):
    """FLOAT8E8M0 as the standard's table and its words about `round_mode` have it, by logarithms that are exact."""
    size = np.abs(x.astype(np.float64))
    fraction, exponent = np.frexp(np.where(np.isfinite(size) & (size > 0), size, 1.0))
    # The number is fraction * 2 of 2^(exponent - 1).
    up = {"up": fraction > 0.5, "down": np.zeros(x.shape, bool), "nearest": fraction >= 0.75}[round_mode]
    power = exponent - 1 + up
    least, most = -127, 127
    code = np.clip(power, least, most) + 127
    if saturate:
        code = np.where(size < 2.0**least, 0, code)
        code = np.where(np.isinf(size), 254, code)
    else:
        code = np.where((size < 2.0**least) | (power > most) | np.isinf(size), 255, code)
    return np.where(np.isnan(size), 255, code).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


@pytest.mark.parametrize("source", ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_from_floats(backend, source):
    """Every number of 16 bits, all ties and their neighbours, with and without saturation."""
    x = _floats(WIDE[source])
    requests = [(kind, {"saturate": s}) for kind in FLOATS for s in (1, 0)] + [(kind, {}) for kind in INTS]
    modes = [{"saturate": s, "round_mode": m} for s in (1, 0) for m in ("up", "down", "nearest")]
    requests += [("FLOAT8E8M0", attributes) for attributes in modes]
    for actual, (kind, attributes) in zip(_cast(x, requests), requests):
        what = f"{source} to {kind} {attributes}"
        if kind in INTS:  # Beyond 32 bits nothing is defined.
            inside = np.abs(np.nan_to_num(x.astype(np.float64), nan=1e9)) < 2**31
            expected = np.trunc(x[inside].astype(np.float64)).astype(np.int64) & ((1 << _bits(kind)) - 1)
            _check(actual[inside], expected.astype(np.uint8).view(INTS[kind]), x[inside], what)
        elif kind == "FLOAT8E8M0":
            _check(actual, _power(x, attributes["saturate"], attributes["round_mode"]), x, what)
        elif source == "DOUBLE":  # The evaluator of onnx rounds to f32 first.
            numbers = np.isfinite(x) | np.isinf(x)
            _check(actual[numbers], _nearest(x, FLOATS[kind], attributes["saturate"])[numbers], x[numbers], what)
        else:
            _check(actual, cast_to(x, getattr(TensorProto, kind), **attributes), x, what)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_oracles_agree():
    """Rounding by comparison, which judges f64, is what the evaluator of onnx does for f32."""
    x = _floats(np.float32)
    for kind, dtype in FLOATS.items():
        for saturate in (0, 1):
            numbers = ~np.isnan(x)
            expected = cast_to(x[numbers], getattr(TensorProto, kind), saturate)
            _check(_nearest(x[numbers].astype(np.float64), dtype, saturate).view(np.uint8), expected, x[numbers], kind)


@pytest.mark.parametrize("kind", NARROW)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_from_narrow(backend, kind):
    """Every element as one of every type, but where a number is not in range."""
    x = _all(kind)
    numbers = x.astype(np.float64)
    requests = [(to, {}) for to in (*WIDE, *NARROW)]
    for actual, (to, _) in zip(_cast(x, requests), requests):
        defined = np.ones(x.shape, bool)
        if to in WIDE and np.dtype(WIDE[to]).kind in "iu":
            info = np.iinfo(WIDE[to])
            defined = np.isfinite(numbers) & (numbers > float(info.min) - 1) & (numbers < float(info.max) + 1)
            expected = np.trunc(np.where(defined, numbers, 0)).astype(WIDE[to])
        elif to in WIDE:
            expected = numbers.astype(WIDE[to])
        elif to in INTS:
            defined = np.isfinite(numbers) & (np.abs(numbers) < 2**31)
            expected = np.trunc(np.where(defined, numbers, 0)).astype(np.int64) & ((1 << _bits(to)) - 1)
            expected = expected.astype(np.uint8).view(INTS[to])
        elif to == kind:  # Not a conversion at all.
            expected = x
        elif to == "FLOAT8E8M0":
            expected = _power(numbers, True, "up")
        else:
            expected = cast_to(x.astype(np.float32), getattr(TensorProto, to), True)
        _check(actual[defined], expected[defined], x[defined], f"{kind} to {to}")


@pytest.mark.parametrize("source", ["BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"])
def test_from_integers(backend, source):
    """Every number of 8 and 16 bits, and those around powers of two."""
    dtype = np.dtype(WIDE[source])
    if dtype.itemsize <= 2:
        x = np.arange(2 if source == "BOOL" else 1 << (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}").view(dtype)
    else:
        # f64 has all of these.
        powers = 2 ** np.arange(min(8 * dtype.itemsize - 1, 52), dtype=np.int64)
        x = np.concatenate([powers + d for d in (-1, 0, 1)] + [3 * powers[:-2] // 2])
        x = np.concatenate([x, -x]) if dtype.kind == "i" else x
        x = x[(x >= np.iinfo(dtype).min) & (x <= np.iinfo(dtype).max)].astype(dtype)
    requests = [(kind, {}) for kind in NARROW]
    for actual, (kind, _) in zip(_cast(x, requests), requests):
        if kind in INTS:
            expected = (x.astype(np.uint64) & np.uint64((1 << _bits(kind)) - 1)).astype(np.uint8).view(INTS[kind])
        elif kind == "FLOAT8E8M0":
            expected = _power(x.astype(np.float64), True, "up")
        else:
            expected = _nearest(x.astype(np.float64), FLOATS[kind], True)
        _check(actual, expected, x, f"{source} to {kind}")


def _constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


#: Operators that move elements, of x [6, 5], and what NumPy makes of it.
MOVEMENTS = {
    "Transpose": ({"perm": [1, 0]}, (), lambda x: x.T),
    "Reshape": ({}, (np.array([3, 10]),), lambda x: x.reshape(3, 10)),
    "Slice": ({}, (np.array([4, 1]), np.array([-10, 5]), np.array([0, 1]), np.array([-2, 1])), lambda x: x[4::-2, 1:5]),
    "Gather": ({"axis": 0}, (np.array([5, 0, 0, -1]),), lambda x: x[[5, 0, 0, -1]]),
    "Expand": ({}, (np.array([2, 6, 5]),), lambda x: np.broadcast_to(x, (2, 6, 5))),
    "Pad": ({}, (np.array([1, 0, 0, 2]),), lambda x: np.pad(x.view(np.uint8), ((1, 0), (0, 2))).view(x.dtype)),
    "Identity": ({}, (), lambda x: x),
}


@pytest.mark.parametrize("kind", NARROW)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_movement(backend, kind, axis):
    """Whole, and split over ranks."""
    x = np.resize(_all(kind)[::-1], (6, 5))
    nodes, constants, outputs, expected = [], [], {}, {}
    for op, (attributes, operands, function) in MOVEMENTS.items():
        names = [f"{op}{i}" for i in range(len(operands))]
        constants += [_constant(n, a.astype(np.int64)) for n, a in zip(names, operands)]
        nodes.append(helper.make_node(op, ["x", *names], [op.lower()], **attributes))
        outputs[op.lower()], expected[op.lower()] = kind, function(x)
    constants.append(_constant("more", x[:, ::-1]))
    nodes.append(helper.make_node("Concat", ["x", "more"], ["concat"], axis=1))
    outputs["concat"], expected["concat"] = kind, np.concatenate([x, x[:, ::-1]], 1)
    nodes.append(helper.make_node("Where", ["which", "x", "more"], ["where"]))
    which = np.random.default_rng(1).random((6, 5)) < 0.5
    outputs["where"], expected["where"] = kind, np.where(which, x, x[:, ::-1])
    partition = None
    if axis is not None:
        partition = Partition({"y": 3}).split("x", 2, axis, "y", uneven_sizes(x.shape[axis], 3))
    results = _run(nodes, {"x": x, "which": which}, outputs, partition, constants)
    for name, value in expected.items():
        np.testing.assert_array_equal(results[name], np.ascontiguousarray(value).view(np.uint8), name)


@pytest.mark.parametrize("kind", ["INT4", "UINT2", "FLOAT4E2M1"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_packed_weights(backend, tmp_path, kind, axis):
    """Weights take their few bits in the artifact, and ranks may cut them between elements of a byte."""
    rng = np.random.default_rng(2)
    weights = rng.choice(_all(kind), (301, 1037))
    scales = rng.uniform(0.5, 1, (7, 1037)).astype(np.float32)
    x = rng.standard_normal((6, 301)).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["f"], axis=0, block_size=43),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    partition = Partition({"y": 3})
    if axis is not None:
        partition.split("x", 2, axis, "y", uneven_sizes(x.shape[axis], 3))
    constants = [_constant("w", weights), _constant("s", scales)]
    model, artifact = _model(nodes, {"x": x}, {"y": "FLOAT"}, constants), tmp_path / "model.dvt"
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    backend.compile(path, artifact, partition)
    actual = backend.run(artifact, {"x": x}, ["y"], tmp_path)["y"]
    expected = x.astype(np.float64) @ (weights.astype(np.float64) * np.repeat(scales, 43, 0))
    np.testing.assert_allclose(actual, expected, atol=1e-5 * np.abs(expected).max())
    # Besides weights and scales, code and plan.
    assert artifact.stat().st_size < weights.size * _bits(kind) / 8 + scales.nbytes + 60000


@pytest.mark.parametrize("op", ["Add", "Relu", "MatMul", "ReduceMax"])
@pytest.mark.parametrize("kind", ["INT4", "FLOAT8E5M2"])
def test_arithmetic_is_refused(backend, op, kind):
    x = _all(kind)[:4].reshape(2, 2)
    operands = ["x", "x"] if op in ("Add", "MatMul") else ["x"]
    with pytest.raises(BackendError, match=f"{op}.*bits or more") as error:
        _run([helper.make_node(op, operands, ["y"])], {"x": x}, {"y": kind})
    assert error.value.code in (4, UNSUPPORTED)


def test_strings_are_refused(backend):
    node = helper.make_node("Equal", ["x", "x"], ["y"])
    given = [helper.make_tensor_value_info("x", TensorProto.STRING, [2])]
    made = [helper.make_tensor_value_info("y", TensorProto.BOOL, [2])]
    graph = helper.make_graph([node], "strings", given, made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    with pytest.raises(BackendError, match="input 'x' has strings as elements: programs compute with numbers") as error:
        fastest_backend().compile_and_run(model, Partition({"y": 1}), {}, ["y"])
    assert error.value.code == UNSUPPORTED


@pytest.mark.parametrize("wide, kind", [("FLOAT", "FLOAT16"), ("FLOAT", "BFLOAT16"), ("DOUBLE", "FLOAT"), ("DOUBLE", "FLOAT16")])
@pytest.mark.parametrize("cpu", cpu_parameters("native", "x86-64-v3"))
def test_conversions_there_and_back_round(backend, wide, kind, cpu):
    """In one kernel, too."""
    x = (np.random.default_rng(3).standard_normal((5, 40)) / 3).astype(WIDE[wide])
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=getattr(TensorProto, kind)),
        helper.make_node("Cast", ["narrow"], ["back"], to=getattr(TensorProto, wide)),
        helper.make_node("Neg", ["back"], ["y"]),
    ]
    model = _model(nodes, {"x": x}, {"y": wide})
    results = backend.compile_and_run(model, Partition({"y": 1}), {"x": x}, ["y"], extra=["--cpu", cpu])
    np.testing.assert_array_equal(results["y"], -x.astype(WIDE[kind]).astype(WIDE[wide]))
