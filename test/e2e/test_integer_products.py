# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of integers of 8 bits, by libraries where the CPU has them and by generated kernels: exact, against NumPy."""

import re

import numpy as np
import onnx
import pytest
from harness.backend import BackendError, call, tool
from harness.cpus import runnable_cpus
from harness.extent import EVERYTHING, one_of
from harness.oracle import expected_outputs
from harness.partition import MESHES, Partition, sizes_with_empty_shard, uneven_sizes
from onnx import helper, numpy_helper

#: One with integer products, whatever the host is: what is compiled for it is looked at, not run.
VNNI = "cascadelake"
#: One without: products are done in f32, in parts whose sums that holds.
PLAIN = "skylake-avx512"
#: AVX-512 without integer products does what AVX2 does: in parts.
CPUS = runnable_cpus() if EVERYTHING else runnable_cpus()[:2]
SIGNS = [(a, b) for a in (np.uint8, np.int8) for b in (np.uint8, np.int8)]


def _integers(rng, dtype, shape):
    """All values that there are; those at the ends are the most frequent, as sums of these overflow first."""
    ends = np.iinfo(dtype)
    values = rng.integers(ends.min, ends.max + 1, shape)
    return np.where(rng.random(shape) < 0.5, rng.choice([ends.min, ends.max], shape), values).astype(dtype)


class Case:
    """A model of one operator: its inputs, its constants, and what NumPy makes of these."""

    def __init__(self, op, operands, constants, expected, **attributes):
        """`operands`: names and values in order, None for one that is left out. `constants`: names of them."""
        given = {name: value for name, value in operands if value is not None}
        self.inputs = {name: value for name, value in given.items() if name not in constants}
        self.expected = expected
        type_of = lambda value: helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype)  # noqa: E731
        names = [name if value is not None else "" for name, value in operands]
        graph = helper.make_graph(
            [helper.make_node(op, names, ["y"], name="product", **attributes)],
            "case",
            [helper.make_tensor_value_info(n, type_of(v), np.shape(v)) for n, v in self.inputs.items()],
            [helper.make_tensor_value_info("y", type_of(expected), expected.shape)],
            [numpy_helper.from_array(np.asarray(given[name]), name) for name in constants if name in given],
        )
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

    def check(self, backend, partition=None, cpu="native", libraries=True):
        partition = partition or Partition({"y": 1})
        actual = backend.compile_and_run(self.model, partition, self.inputs, ["y"], libraries, ["--cpu", cpu])["y"]
        assert actual.dtype == self.expected.dtype
        np.testing.assert_array_equal(actual, self.expected)


def _large(rng, dtype, shape):
    """Values far from 0, all of one sign: sums of many go beyond what f32 holds."""
    far = np.iinfo(dtype).max if dtype == np.uint8 else np.iinfo(dtype).min
    return (far - np.sign(far) * rng.integers(0, 8, shape)).astype(dtype)


def _product(rng, signs, left, right, zeros=("number", "number"), constants=("b", "za", "zb"), draw=_integers):
    """MatMulInteger. `zeros`: what zero points there are: none, "number", or "each" (row or column one)."""
    a, b = (draw(rng, dtype, shape) for dtype, shape in zip(signs, (left, right)))
    extents = {"number": ((), ()), "each": (left[-2:-1], right[-1:])}
    za, zb = (
        None if zero is None else _integers(rng, dtype, extents[zero][side])
        for side, (dtype, zero) in enumerate(zip(signs, zeros))
    )
    wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
    if za is not None:
        wide_a = wide_a - za.astype(np.int64).reshape([-1, 1] if za.ndim else [])
    if zb is not None:
        wide_b = wide_b - zb.astype(np.int64)
    return Case(
        "MatMulInteger", [("a", a), ("b", b), ("za", za), ("zb", zb)], constants, (wide_a @ wide_b).astype(np.int32)
    )


@one_of(2)
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("signs", SIGNS, ids=lambda pair: "-".join(np.dtype(each).name for each in pair))
@pytest.mark.parametrize("zeros", [(None, None), ("number", None), ("number", "number"), ("each", "each")], ids=str)
def test_signs(backend, signs, zeros, cpu):
    rng = np.random.default_rng(11)
    for left, right in (((33, 130), (130, 70)), ((1, 64), (64, 5)), ((7, 3), (3, 1)), ((2, 3, 9, 200), (200, 16))):
        _product(rng, signs, left, right, zeros).check(backend, cpu=cpu)


@pytest.mark.parametrize("rows, terms, columns", [(1, 1030, 200), (17, 515, 129), (6, 68, 65), (64, 1, 48), (5, 193, 1)])
def test_packed(backend, rows, terms, columns):
    """Constant weights that fill no block of what the library packs them into."""
    rng = np.random.default_rng(18)
    for signs in SIGNS:
        _product(rng, signs, (rows, terms), (terms, columns)).check(backend)


@pytest.mark.parametrize("constants", [("b", "za", "zb"), ("za", "zb"), ("b",), ()], ids="+".join)
def test_constants(backend, constants):
    """Of weights that change sums are taken in each run; zero points, too, may be known at run time only."""
    rng = np.random.default_rng(12)
    for signs in SIGNS:
        _product(rng, signs, (40, 96), (96, 48), constants=constants).check(backend)
        _product(rng, signs, (3, 20, 65), (3, 65, 17), constants=constants).check(backend)


def test_without_libraries(backend):
    rng = np.random.default_rng(13)
    for signs in SIGNS:
        _product(rng, signs, (20, 70), (70, 30)).check(backend, libraries=False)


@pytest.mark.parametrize("mesh", MESHES, ids=lambda mesh: "x".join(map(str, mesh.values())))
@pytest.mark.parametrize("tensor, dim", [("a", 0), ("a", 1), ("y", 1)], ids=["rows", "terms", "columns"])
def test_partitioned(backend, mesh, tensor, dim):
    rng = np.random.default_rng(14)
    axes = "+".join(mesh)
    for sizes in (uneven_sizes, sizes_with_empty_shard):
        case = _product(rng, (np.uint8, np.uint8), (23, 90), (90, 50))
        partition = Partition(mesh)
        extent = {"a": (23, 90), "y": (23, 50)}[tensor][dim]
        case.check(backend, partition.split(tensor, 2, dim, axes, sizes(extent, partition.parts(axes))))


@pytest.mark.parametrize("isa", ["AVX2", "AVX512_CORE"])
def test_saturation(backend, monkeypatch, isa):
    """Kept from using VNNI, the library would add pairs of products in 16 bits: it is not asked to."""
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", isa)
    case = _product(np.random.default_rng(16), (np.uint8, np.int8), (33, 130), (130, 70))
    try:
        case.check(backend)
    except BackendError as error:
        assert "need instructions (VNNI) that oneDNN does not use here" in str(error)


def _plan(folder, case, cpu):
    """The plan as text."""
    onnx.save(case.model, folder / "model.onnx")
    code, text, messages = call([tool("dovetail"), "compile", folder / "model.onnx", "--compile-to=lower", "--cpu", cpu])
    assert code == 0, messages
    return text


def _types(plan, kind):
    """The types of elements that calls of this kind have as results."""
    results = re.findall(rf"plan\.{kind} .* -> (!ref\d*)$", plan, re.MULTILINE)
    return {re.search(rf"^{result} = .*?x([a-z]+\d+),", plan, re.MULTILINE)[1] for result in results}


def test_calls(tmp_path):
    """Libraries multiply integers where the CPU adds the products of these in 32 bits."""
    case = _product(np.random.default_rng(15), (np.uint8, np.uint8), (64, 64), (64, 64))
    assert _types(_plan(tmp_path, case, VNNI), "matmul") == {"i32"}
    assert _types(_plan(tmp_path, case, PLAIN), "matmul") == {"f32"}


def _convolve(x, w, strides, dilations, pads, groups):
    """NumPy's, of any number of spatial dimensions."""
    spatial = len(strides)
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:spatial], pads[spatial:])])
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, 2 + spatial)))
    windows = windows[(..., *(slice(None, None, d) for d in dilations))]
    windows = windows[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]
    inputs, outputs = x.shape[1] // groups, w.shape[0] // groups
    taps = list(range(2 + spatial, 2 + 2 * spatial))
    results = [
        np.tensordot(
            windows[:, g * inputs : (g + 1) * inputs], w[g * outputs : (g + 1) * outputs], ([1, *taps], list(range(1, 2 + spatial)))
        )
        for g in range(groups)
    ]
    return np.moveaxis(np.concatenate(results, -1), -1, 1)


def _convolution(
    rng, signs, shape, weights, zeros=("number", "number"), constants=("w", "zx", "zw"), draw=_integers, **attributes
):
    """ConvInteger. `zeros`: as for `_product`; those of weights may be for each channel."""
    groups, spatial = attributes.get("group", 1), len(shape) - 2
    x, w = (draw(rng, dtype, each) for dtype, each in zip(signs, (shape, weights)))
    extents = {"number": ((), ()), "each": ((), weights[:1])}
    zx, zw = (
        None if zero is None else _integers(rng, dtype, extents[zero][side])
        for side, (dtype, zero) in enumerate(zip(signs, zeros))
    )
    wide_x, wide_w = x.astype(np.int64), w.astype(np.int64)
    if zx is not None:
        wide_x = wide_x - zx.astype(np.int64)
    if zw is not None:
        wide_w = wide_w - zw.astype(np.int64).reshape([-1] + [1] * (spatial + 1) if zw.ndim else [])
    expected = _convolve(
        wide_x,
        wide_w,
        attributes.get("strides", [1] * spatial),
        attributes.get("dilations", [1] * spatial),
        attributes.get("pads", [0] * 2 * spatial),
        groups,
    )
    operands = [("x", x), ("w", w), ("zx", zx), ("zw", zw)]
    return Case("ConvInteger", operands, constants, expected.astype(np.int32), **attributes)


#: Shape, weights and attributes.
_CONVOLUTIONS = (
    ((1, 24, 13, 18), (32, 24, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 3, 21, 20), (20, 3, 7, 7), {"pads": [3, 2, 3, 1], "strides": [2, 3]}),
    ((1, 70, 9, 9), (17, 70, 1, 1), {"strides": [2, 2]}),
    ((2, 8, 14, 11), (5, 8, 3, 2), {"pads": [2, 0, 1, 1], "dilations": [2, 3]}),
    ((1, 24, 12, 12), (24, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 24}),
    ((1, 12, 12, 9), (9, 4, 3, 3), {"pads": [1, 1, 0, 1], "group": 3}),
    ((2, 10, 40), (6, 10, 5), {"pads": [4, 4]}),
    ((1, 6, 7, 8, 9), (8, 6, 2, 3, 3), {"pads": [1, 1, 1, 0, 1, 1]}),
)


@one_of(2)
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("signs", SIGNS, ids=lambda pair: "-".join(np.dtype(each).name for each in pair))
@pytest.mark.parametrize("zeros", [(None, None), ("number", None), ("number", "number"), ("number", "each")], ids=str)
def test_convolutions(backend, signs, zeros, cpu):
    rng = np.random.default_rng(21)
    for shape, weights, attributes in _CONVOLUTIONS:
        _convolution(rng, signs, shape, weights, zeros, **attributes).check(backend, cpu=cpu)


@pytest.mark.parametrize("constants", [("zx", "zw"), ("w",), ()], ids="+".join)
def test_weights_that_change(backend, constants):
    rng = np.random.default_rng(22)
    for signs in SIGNS:
        for shape, weights, attributes in _CONVOLUTIONS[:2]:
            _convolution(rng, signs, shape, weights, constants=constants, **attributes).check(backend)


@pytest.mark.parametrize("mesh", MESHES, ids=lambda mesh: "x".join(map(str, mesh.values())))
@pytest.mark.parametrize("tensor, dim", [("x", 1), ("x", 2), ("y", 1), ("y", 3)], ids=["inputs", "rows", "outputs", "columns"])
def test_partitioned_convolutions(backend, mesh, tensor, dim):
    rng = np.random.default_rng(23)
    axes = "+".join(mesh)
    for number, sizes in ((0, uneven_sizes), (1, sizes_with_empty_shard), (4, uneven_sizes)):
        shape, weights, attributes = _CONVOLUTIONS[number]
        case = _convolution(rng, (np.uint8, np.int8), shape, weights, ("number", None), **attributes)
        extent = {"x": shape, "y": case.expected.shape}[tensor][dim]
        partition = Partition(mesh)
        case.check(backend, partition.split(tensor, 4, dim, axes, sizes(extent, partition.parts(axes))))


#: Of more than 514 terms, whose sums f32 does not hold, or in groups.
_LONG_SUMS = (
    ((1, 1100, 3, 2), (8, 1100, 1, 1), {}),
    ((1, 600, 50), (5, 600, 2), {"pads": [1, 0]}),
    ((1, 70, 9, 9), (17, 70, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 100, 12, 12), (16, 100, 3, 3), {"pads": [1, 2, 0, 1]}),
    ((1, 126, 9, 9), (10, 63, 8, 8), {"pads": [1, 0, 0, 0], "group": 2}),
    ((1, 4, 30, 30), (4, 1, 28, 29), {"group": 4}),
    ((1, 2, 1503), (32, 1, 1500), {"group": 2}),
    ((1, 4, 10, 4), (8, 1, 8, 1), {"group": 4}),
)


@one_of(2)
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("signs", SIGNS, ids=lambda pair: "-".join(np.dtype(each).name for each in pair))
def test_long_sums(backend, signs, cpu):
    """i32 has what f32 has not."""
    rng = np.random.default_rng(25)
    for zeros in ((None, None), ("number", "each")):
        for constants in (("b", "za", "zb"), ()):
            for terms in (1040, 70001):
                _product(rng, signs, (3, terms), (terms, 5), zeros, constants, _large).check(backend, cpu=cpu)
        for shape, weights, attributes in _LONG_SUMS:
            _convolution(rng, signs, shape, weights, zeros, draw=_large, **attributes).check(backend, cpu=cpu)


#: In f32 in parts: of rows of windows, and of channels.
_PARTS = (
    ((1, 32, 40, 44), (32, 32, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 100, 12, 12), (16, 100, 3, 3), {"pads": [1, 2, 0, 1]}),
    ((1, 360, 8, 9), (8, 360, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 64, 15, 11), (8, 64, 5, 3), {"pads": [4, 2, 4, 2], "dilations": [2, 2]}),
    ((1, 40, 1, 9), (6, 40, 3, 3), {"pads": [1, 1, 1, 1]}),
    # Three of whose rows would be a convolution of 3 x 3.
    ((1, 50, 32, 32), (64, 50, 9, 3), {}),
    ((1, 60, 16, 15), (33, 60, 5, 3), {"pads": [3, 1, 0, 1]}),
    ((1, 30, 9, 8, 7), (6, 30, 3, 3, 3), {"pads": [1, 1, 1, 1, 1, 1]}),
    ((1, 400, 33), (7, 400, 3), {"pads": [1, 1]}),
)


@one_of(2)
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("signs", SIGNS, ids=lambda pair: "-".join(np.dtype(each).name for each in pair))
@pytest.mark.parametrize("zeros", [(None, None), ("number", None), ("number", "each")], ids=str)
def test_parts(backend, signs, zeros, cpu):
    rng = np.random.default_rng(27)
    for shape, weights, attributes in _PARTS:
        _convolution(rng, signs, shape, weights, zeros, draw=_large, **attributes).check(backend, cpu=cpu)
    for terms in (258, 515, 4096):
        _product(rng, signs, (9, terms), (terms, 33), zeros, draw=_large).check(backend, cpu=cpu)


@pytest.mark.parametrize("mesh", MESHES, ids=lambda mesh: "x".join(map(str, mesh.values())))
@pytest.mark.parametrize("tensor, dim", [("x", 1), ("x", 2), ("y", 1)], ids=["inputs", "rows", "outputs"])
def test_partitioned_parts(backend, mesh, tensor, dim):
    rng = np.random.default_rng(28)
    axes = "+".join(mesh)
    for shape, weights, attributes in _PARTS[:3]:
        case = _convolution(rng, (np.uint8, np.int8), shape, weights, ("number", None), draw=_large, **attributes)
        extent = {"x": shape, "y": case.expected.shape}[tensor][dim]
        partition = Partition(mesh)
        partition.split(tensor, 4, dim, axes, uneven_sizes(extent, partition.parts(axes)))
        case.check(backend, partition, cpu=runnable_cpus()[-1])


def test_convolution_calls(tmp_path):
    shape, weights, attributes = _CONVOLUTIONS[0]
    case = _convolution(np.random.default_rng(24), (np.uint8, np.int8), shape, weights, ("number", None), **attributes)
    assert _types(_plan(tmp_path, case, VNNI), "convolution") == {"i32"}
    plan = _plan(tmp_path, case, PLAIN)
    assert _types(plan, "convolution") == {"f32"} and "winograd" not in plan


def _dequantized(folder, weights, zero, terms):
    """The plan of a product of what is dequantised. `zero`: of the weights."""
    nodes = [
        helper.make_node("DequantizeLinear", ["a", "s", "za"], ["a_f"]),
        helper.make_node("DequantizeLinear", ["b", "t", "zb"], ["b_f"], axis=0),
        helper.make_node("Gemm", ["a_f", "b_f"], ["y"], transB=1, name="product"),
    ]
    constants = {
        "b": np.arange(16 * terms, dtype=np.int64).reshape(16, terms).astype(weights),
        "s": np.float32(0.5),
        "za": np.uint8(3),
        "t": np.full(16, 0.25, np.float32),
        "zb": np.full(16, zero, weights),
    }
    given = [helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, (8, terms))]
    made = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (8, 16))]
    graph = helper.make_graph(
        nodes, "case", given, made, [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, folder / "model.onnx")
    code, text, messages = call([tool("dovetail"), "compile", folder / "model.onnx", "--compile-to=legalize", "--cpu", VNNI])
    assert code == 0, messages
    return text


@pytest.mark.parametrize("weights, zero, terms, is_formed", [
    (np.int8, 0, 8, True),
    (np.int8, 0, 128, True),
    (np.int8, 5, 128, True),
    (np.int8, 0, 1 << 15, True),
    (np.int8, 0, (1 << 15) + 1, False),
], ids=str)  # fmt: skip
def test_dequantized(tmp_path, weights, zero, terms, is_formed):
    """What it takes for products of f32 to be such of integers: sums must not wrap around, as those of f32 do not."""
    assert ("xi32>" in _dequantized(tmp_path, weights, zero, terms).split("dovetail.matmul")[1].split("\n")[0]) == is_formed


#: Graphs with moves between products and integers, or behind products. What is no `x` is constant.
_MOVES = {
    "transposed input": """(uint8[32,24] x, int8[32,48] w, uint8 z) => (int32[24,48] y) {
        a = Transpose(x)
        y = MatMulInteger(a, w, z)
    }""",
    "sliced result": """(uint8[24,32] x, int8[32,48] w, uint8 z) => (int32[24,20] y) {
        a = MatMulInteger(x, w, z)
        b = Constant<value_ints = [0]>() c = Constant<value_ints = [20]>() d = Constant<value_ints = [1]>()
        y = Slice(a, b, c, d)
    }""",
    "sliced rows": """(uint8[24,32] x, int8[32,48] w, uint8 z) => (int32[10,48] y) {
        a = MatMulInteger(x, w, z)
        b = Constant<value_ints = [0]>() c = Constant<value_ints = [10]>() d = Constant<value_ints = [0]>()
        y = Slice(a, b, c, d)
    }""",
    "channels last": """(uint8[1,9,8,8] x, float s, uint8 z, int8[3,3,8,16] w, float[16] t, int8[16] u) => (float[1,9,8,16] y) {
        a = DequantizeLinear(x, s, z)
        b = Transpose<perm = [0, 3, 1, 2]>(a)
        c = DequantizeLinear<axis = 3>(w, t, u)
        d = Transpose<perm = [3, 2, 0, 1]>(c)
        e = Conv<pads = [1, 1, 1, 1]>(b, d)
        y = Transpose<perm = [0, 2, 3, 1]>(e)
    }""",
    "requantised": """(uint8[1,9,8,6] x, float s, uint8 z, int8[16,6,3,3] w, float t, int8 u) => (uint8[1,9,8,16] y) {
        a = Transpose<perm = [0, 3, 1, 2]>(x)
        r = Constant<value_float = 50.0>()
        b = QLinearConv<pads = [1, 1, 1, 1]>(a, s, z, w, t, u, r, z)
        y = Transpose<perm = [0, 2, 3, 1]>(b)
    }""",
    "depthwise": """(uint8[1,9,8,24] x, float s, uint8 z, int8[3,3,24,1] w, float[24] t) => (float[1,24,7,6] y) {
        a = DequantizeLinear(x, s, z)
        b = Transpose<perm = [0, 3, 1, 2]>(a)
        c = DequantizeLinear<axis = 2>(w, t)
        d = Transpose<perm = [2, 3, 0, 1]>(c)
        y = Conv<group = 24>(b, d)
    }""",
    "padded": """(uint8[1,6,9,8] x, float s, uint8 z, int8[16,6,3,3] w, float t) => (float[1,16,9,8] y) {
        a = DequantizeLinear(x, s, z)
        p = Constant<value_ints = [0, 0, 1, 1, 0, 0, 1, 1]>()
        b = Pad(a, p)
        c = DequantizeLinear(w, t)
        y = Conv(b, c)
    }""",
    "reshaped": """(uint8[4,8,8,6] x, float s, uint8 z, int8[12,4,48] w, float[48] t, int8[48] u) => (float[4,48] y) {
        a = DequantizeLinear(x, s, z)
        r = Constant<value_ints = [4, 8, 48]>() q = Constant<value_ints = [48, 48]>()
        b = Reshape(a, r)
        c = DequantizeLinear<axis = 2>(w, t, u)
        d = Reshape(c, q)
        e = MatMul(b, d)
        i = Constant<value_int = 3>()
        y = Gather<axis = 1>(e, i)
    }""",
    "spelt out": """(uint8[4,32,10] x, uint8[10] x_z, int8[48,32] w, int8[48] u) => (int32[4,10,48] y) {
        a = Cast<to = 6>(x) b = Cast<to = 6>(x_z)
        c = Sub(a, b)
        d = Transpose<perm = [0, 2, 1]>(c)
        e = Cast<to = 6>(w) f = Cast<to = 6>(u)
        g = Transpose(e) h = Sub(g, f)
        y = MatMul(d, h)
    }""",
    # Scales of channels are not such of what a reshape makes of them.
    "merged channels": """(uint8[24,32] x, float s, int8[48,32] w, float[48] t) => (float[24,48] y) {
        a = DequantizeLinear(x, s)
        b = DequantizeLinear<axis = 0>(w, t)
        r = Constant<value_ints = [32, 48]>()
        c = Reshape(b, r)
        y = MatMul(a, c)
    }""",
}


def _moved(text, rng):
    """The model of a graph of `_MOVES`, and its inputs."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> moves {text}')
    inputs = {}
    for info in list(model.graph.input):
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if np.issubdtype(dtype, np.integer):
            value = _integers(rng, dtype, shape)
        else:
            value = rng.uniform(0.01, 0.1, shape).astype(dtype)
        if info.name.startswith("x"):
            inputs[info.name] = value
        else:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), info.name))
            model.graph.input.remove(info)
    return model, inputs


@pytest.mark.parametrize("moved", _MOVES)
def test_moves_beside_products(backend, tmp_path, moved):
    """A product stays one of integers if what it reads, or what is read of it, is moved."""
    model, inputs = _moved(_MOVES[moved], np.random.default_rng(31))
    onnx.save(model, tmp_path / "m.onnx")
    code, text, messages = call([tool("dovetail"), "compile", tmp_path / "m.onnx", "--compile-to=legalize", "--cpu", VNNI])
    assert code == 0, messages
    factors = set(re.findall(r"dovetail\.(?:matmul|conv) .* : \(tensor<[^>]*x(\w+)>, tensor<[^>]*x(\w+)>\)", text))
    assert factors == {("f32", "f32") if moved == "merged channels" else ("ui8", "i8")}
    (expected,) = expected_outputs(model, inputs).values()
    for mesh in ({"y": 1}, {"y": 3}):
        partition = Partition(mesh)
        partition.split("y", expected.ndim, 1, "y", uneven_sizes(expected.shape[1], partition.parts("y")))
        actual = backend.compile_and_run(model, partition, inputs, ["y"])["y"]
        assert actual.dtype == expected.dtype
        if expected.dtype == np.float32:
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
        else:
            # Of requantised results, one next to a tie may be a step further.
            assert np.abs(actual.astype(int) - expected).max() <= (expected.dtype == np.uint8)
