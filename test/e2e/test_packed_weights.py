# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products whose weights stay in memory as they are stored: what they give, and what sessions take."""

import json

import ml_dtypes
import numpy as np
import pytest
from harness.backend import call, fastest_backend, tool
from harness.compare import difference
from harness.cpus import cpu_parameters
from harness.extent import one_of
from harness.partition import Partition, sizes_with_empty_shard, uneven_sizes
from onnx import TensorProto, helper, numpy_helper

INTS = {
    "INT2": (ml_dtypes.int2, -2, 2),
    "UINT2": (ml_dtypes.uint2, 0, 4),
    "INT4": (ml_dtypes.int4, -8, 8),
    "UINT4": (ml_dtypes.uint4, 0, 16),
    "INT8": (np.int8, -128, 128),
    "UINT8": (np.uint8, 0, 256),
}
FLOATS = {
    "FLOAT4E2M1": ml_dtypes.float4_e2m1fn,
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
}
MESHES = {"1": {"y": 1}, "2": {"y": 2}, "3": {"y": 3}, "4": {"y": 4}, "2x2": {"y": 2, "x": 2}}
#: Odd numbers of elements, and blocks that end with the axis or are cut.
TERMS, COLUMNS = 203, 131


def _draw(rng, kind, shape):
    if kind in INTS:
        dtype, low, high = INTS[kind]
        return rng.integers(low, high, shape).astype(dtype)
    return rng.uniform(-3, 3, shape).astype(FLOATS[kind])


def _spread(parameter, shape, axis, block):
    """One number, one for each index of `axis`, or one for each block, for all elements of `shape`."""
    if parameter.ndim == 0:
        return parameter
    if not block:
        return parameter.reshape([-1 if dim == axis else 1 for dim in range(len(shape))])
    return np.take(parameter, np.arange(shape[axis]) // block, axis)


class Case:
    """A product of `x` and weights of type `kind`, stored in `shape`, with scales for `axis` or blocks of it."""

    def __init__(self, op, kind, x, shape, axis=None, block=0, zero=False, seed=0, **attributes):
        rng = np.random.default_rng(seed)
        self.op, self.attributes = op, attributes
        self.weights = _draw(rng, kind, shape)
        if axis is None:
            scales = ()
        elif block:
            scales = [-(-extent // block) if dim == axis else extent for dim, extent in enumerate(shape)]
        else:
            scales = (shape[axis],)
        scale = rng.uniform(0.05, 0.1, scales).astype(np.float32)
        constants = {"w": self.weights, "s": scale}
        wide = self.weights.astype(np.float32)
        if zero:
            constants["z"] = _draw(rng, kind, scales)
            wide = wide - _spread(constants["z"].astype(np.float32), shape, axis, block)
        self.wide = wide * _spread(scale, shape, axis, block)
        self.x = rng.standard_normal(x).astype(np.float32)
        quantized = {key: value for key, value in (("axis", axis), ("block_size", block)) if value}
        if axis == 0:
            quantized["axis"] = 0
        nodes = [
            helper.make_node("DequantizeLinear", list(constants), ["wide"], **quantized),
            helper.make_node(op, ["x", "wide"], ["y"], **attributes),
        ]
        expected = self.compute(self.x)
        graph = helper.make_graph(
            nodes,
            "packed",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, expected.shape)],
            [numpy_helper.from_array(value, name) for name, value in constants.items()],
        )
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
        self.bytes = sum(-(-v.size * _bits(v.dtype) // 8) for v in constants.values())

    def compute(self, x):
        """In f64, of what is dequantised in f32."""
        x, wide = x.astype(np.float64), self.wide.astype(np.float64)
        if self.op == "Conv":
            return _convolve(x, wide)
        return x @ (wide.T if self.attributes.get("transB") else wide)

    def check(self, partition, extra=(), libraries=True):
        results = fastest_backend().compile_and_run(self.model, partition, {"x": self.x}, ["y"], libraries, extra)
        wrong = difference(results["y"], self.compute(self.x).astype(np.float32), 1e-5, "y")
        assert not wrong, f"{partition}: {wrong}"


def _bits(dtype):
    try:
        return ml_dtypes.iinfo(dtype).bits
    except ValueError:
        return ml_dtypes.finfo(dtype).bits


def _convolve(x, w):
    high, wide = (a - b + 1 for a, b in zip(x.shape[2:], w.shape[2:]))
    y = 0
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            y = y + np.einsum("nchw,oc->nohw", x[:, :, i : i + high, j : j + wide], w[:, :, i, j])
    return y


def _matmul(rows, kind="INT4", **options):
    return Case("MatMul", kind, (rows, TERMS), (TERMS, COLUMNS), **options)


def _gemm(rows, kind="INT4", **options):
    return Case("Gemm", kind, (rows, TERMS), (COLUMNS, TERMS), transB=1, **options)


def _conv(kind="INT4", **options):
    return Case("Conv", kind, (1, 33, 9, 7), (37, 33, 3, 3), **options)


#: How scales are given, and zero points.
SCALES = {
    "tensor": {},
    "axis0": {"axis": 0},
    "axis1": {"axis": 1, "zero": True},
    "blocks0": {"axis": 0, "block": 32},
    "blocks1": {"axis": 1, "block": 32, "zero": True},
    "blocks16": {"axis": 0, "block": 16, "zero": True},
}


@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("product", [_matmul, _gemm], ids=["matmul", "gemm"])
def test_scales(product, scales, rows):
    product(rows, **scales).check(Partition({"y": 1}))


@pytest.mark.parametrize("rows", [1, 3, 64, 512, 1100])
@pytest.mark.parametrize("kind", [*INTS, *FLOATS])
def test_types(kind, rows):
    _matmul(rows, kind, axis=0, block=32, zero=kind in INTS).check(Partition({"y": 1}))


@pytest.mark.parametrize("kind", ["INT4", "UINT2", "FLOAT4E2M1", "INT8"])
@pytest.mark.parametrize("scales", [{}, {"axis": 0}, {"axis": 1, "block": 11}], ids=["tensor", "axis", "blocks"])
def test_convolutions(kind, scales):
    _conv(kind, **scales).check(Partition({"y": 1}))


def _split(mesh, case, tensor, dim, sizes):
    extent = (case.x.shape if tensor == "x" else case.compute(case.x).shape)[dim]
    parts = int(np.prod(list(mesh.values())))
    rank = case.x.ndim
    return Partition(mesh).split(tensor, rank, dim, "+".join(mesh), sizes(extent, parts) if parts > 1 else None)


def _even(extent, parts):
    return None


@one_of(3)
@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("tensor, dim", [("x", 1), ("y", 1), ("x", 0)], ids=["terms", "columns", "rows"])
def test_partitioned(mesh, rows, tensor, dim):
    """Blocks of scales are cut, and bytes of several elements; some ranks have no columns, or no terms."""
    for product, scales in ((_matmul, "blocks0"), (_gemm, "blocks1")):
        case = product(rows, **SCALES[scales])
        for sizes in (uneven_sizes, sizes_with_empty_shard):
            case.check(_split(mesh, case, tensor, dim, sizes))


@pytest.mark.parametrize("mesh", [MESHES["2x2"]], ids=["2x2"])
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_partitioned_in_two_dimensions(mesh, rows):
    case = _matmul(rows, axis=0, block=32, zero=True)
    partition = Partition(mesh).split("x", 2, 1, "y", [101, 102]).split("y", 2, 1, "x", [64, 67])
    case.check(partition)


@pytest.mark.parametrize("mesh", [MESHES["3"], MESHES["2x2"]], ids=["3", "2x2"])
@pytest.mark.parametrize("tensor, dim", [("x", 1), ("y", 1), ("x", 2)], ids=["terms", "channels", "rows"])
def test_partitioned_convolutions(mesh, tensor, dim):
    case = _conv(axis=1, block=11)
    case.check(_split(mesh, case, tensor, dim, uneven_sizes))


@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("product", [_matmul, _gemm], ids=["matmul", "gemm"])
def test_exactly_dequantized(product, rows):
    """A product with rows of the identity gives what was dequantised, bit for bit."""
    case = product(rows, axis=1 if product is _gemm else 0, block=32, zero=True)
    picked = np.random.default_rng(3).choice(TERMS, rows, replace=False)
    case.x = np.eye(TERMS, dtype=np.float32)[picked]
    expected = (case.wide.T if product is _gemm else case.wide)[picked]
    for libraries in (True, False):
        results = fastest_backend().compile_and_run(case.model, Partition({"y": 1}), {"x": case.x}, ["y"], libraries)
        np.testing.assert_array_equal(results["y"], expected)


@pytest.mark.parametrize("cpu", cpu_parameters("x86-64-v2", "x86-64-v3", "x86-64-v4"))
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_other_processors(cpu, rows):
    _matmul(rows, axis=0, block=32, zero=True).check(Partition({"y": 1}), ["--cpu", cpu])


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("product", [_matmul, _gemm], ids=["matmul", "gemm"])
def test_on_emulated_device(product, rows, ranks):
    case = product(rows, axis=0, block=32, zero=True)
    partition = _split({"y": ranks}, case, "x", 1, uneven_sizes)
    case.check(partition, ["--target", "emulated"], libraries=False)


@pytest.mark.parametrize("rows", [2, 5])
def test_many_row_dimensions(rows):
    """Rows in several dimensions, of which some are of one element."""
    for shape in ((rows, 1, TERMS), (3, rows, TERMS), (1, 1, rows, TERMS)):
        Case("MatMul", "INT4", shape, (TERMS, COLUMNS), axis=0, block=32).check(Partition({"y": 1}))


@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16"])
def test_products_in_16_bits(tmp_path, kind, rows):
    """What is dequantised is rounded to 16 bits before it is multiplied, wherever that is."""
    dtype = np.float16 if kind == "FLOAT16" else ml_dtypes.bfloat16
    rng = np.random.default_rng(9)
    weights = rng.integers(-8, 8, (TERMS, COLUMNS)).astype(ml_dtypes.int4)
    scale = rng.uniform(0.05, 0.1, (7, COLUMNS)).astype(dtype)
    x = rng.standard_normal((rows, TERMS)).astype(dtype)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["wide"], axis=0, block_size=32),
        helper.make_node("MatMul", ["x", "wide"], ["y"]),
    ]
    shapes = {"x": (rows, TERMS), "y": (rows, COLUMNS)}
    infos = [helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape) for name, shape in shapes.items()]
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(scale, "s")]
    graph = helper.make_graph(nodes, "packed", infos[:1], infos[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    wide = weights.astype(np.float32) * np.repeat(scale.astype(np.float32), 32, 0)[:TERMS]
    expected = (x.astype(np.float64) @ wide.astype(dtype).astype(np.float64)).astype(dtype)
    results = fastest_backend().compile_and_run(model, Partition({"y": 1}), {"x": x}, ["y"])
    assert not difference(results["y"], expected, float(ml_dtypes.finfo(dtype).eps), "y")
    (rank,), _ = _inspect(tmp_path, model, Partition({"y": 1}))
    assert _kept(rank) <= 1.1 * (weights.size / 2 + scale.nbytes)


@pytest.mark.parametrize("rows", [3, 1100])
def test_loops(tmp_path, rows):
    """In each iteration of a loop, and not before it, so that there is no more memory for widened weights than for one."""
    rng = np.random.default_rng(10)
    extent, turns = 256, 3
    weights = [rng.integers(-8, 8, (extent, extent)).astype(ml_dtypes.int4) for _ in range(2)]
    scale = np.float32(0.01)
    nodes, value = [], "v"
    for number in range(2):
        nodes += [
            helper.make_node("DequantizeLinear", [f"w{number}", "s"], [f"wide{number}"]),
            helper.make_node("MatMul", [value, f"wide{number}"], [f"v{number}"]),
        ]
        value = f"v{number}"
    nodes.append(helper.make_node("Identity", ["going"], ["goes"]))
    shape = (rows, extent)
    body = helper.make_graph(
        nodes,
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("going", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, shape),
        ],
        [
            helper.make_tensor_value_info("goes", TensorProto.BOOL, ()),
            helper.make_tensor_value_info(value, TensorProto.FLOAT, shape),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)],
        "loop",
        [
            helper.make_tensor_value_info("turns", TensorProto.INT64, ()),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)] + [numpy_helper.from_array(scale, "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    x = rng.standard_normal(shape).astype(np.float32)
    expected = x.astype(np.float64)
    for _ in range(turns):
        for each in weights:
            expected = expected @ (each.astype(np.float32) * scale).astype(np.float64)
    inputs = {"turns": np.array(turns), "x": x}
    results = fastest_backend().compile_and_run(model, Partition({"y": 1}), inputs, ["y"])
    assert not difference(results["y"], expected.astype(np.float32), 1e-5, "y")
    (rank,), _ = _inspect(tmp_path, model, Partition({"y": 1}))
    assert _kept(rank) <= 1.1 * extent * extent
    wide = extent * extent * 4 if rows > 1024 else 0
    assert rank["values_bytes"] - rank["scratch_bytes"] <= 4 * x.nbytes + wide + 4096


@pytest.mark.parametrize("cpu", cpu_parameters("native", "x86-64-v2", "x86-64-v3", "x86-64-v4"))
def test_threads_do_not_matter(cpu):
    """The kernel is ours, and rounds each element alike however threads divide the rows: in fours, or one by one."""
    from harness.backend import InProcessBackend

    case = _matmul(64, axis=0, block=32, zero=True)
    if not isinstance(fastest_backend(), InProcessBackend):
        pytest.skip("needs the Python package")
    results = [
        InProcessBackend(threads=threads).compile_and_run(
            case.model, Partition({"y": 1}), {"x": case.x}, ["y"], extra=["--cpu", cpu]
        )["y"]
        for threads in (1, 2, 3, 5, 7)
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def _inspect(folder, model, partition, *options):
    path, artifact = folder / "model.onnx", folder / "model.dvt"
    path.write_bytes(model.SerializeToString())
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", artifact, *partition.flags(), *options])
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", "--json", artifact])
    assert code == 0, messages
    planned = json.loads(text)["ranks"]
    # Sessions take what was said, as far as they count it.
    once = [tool("dovetail-run"), "bench", "--json", "--iterations", 1, "--warmup", 0, "--threads", len(planned)]
    code, text, messages = call([*once, artifact])
    assert code == 0, messages
    for rank, measured in zip(planned, json.loads(text)["memory"]):
        assert all(rank[key] == measured[key] for key in ("weights_bytes", "prologue_bytes", "packed_bytes", "values_bytes"))
    return planned, artifact.stat().st_size


def _kept(rank):
    return rank["weights_bytes"] + rank["prologue_bytes"] + rank["packed_bytes"]


@pytest.mark.parametrize("rows", [1, 3, 64, 600, 1100])
@pytest.mark.parametrize("kind", ["INT4", "UINT2", "FLOAT4E2M1", "INT8", "FLOAT8E4M3FN"])
@pytest.mark.parametrize("product", [_matmul, _gemm], ids=["matmul", "gemm"])
def test_memory(tmp_path, product, kind, rows):
    """What a session keeps is about what is stored, and so is the artifact; but 8 bits, where that would take longer."""
    case = product(rows, kind, axis=1 if product is _gemm else 0, block=32)
    (rank,), size = _inspect(tmp_path, case.model, Partition({"y": 1}))
    if kind in ("INT8", "FLOAT8E4M3FN") and rows == 64:
        assert _kept(rank) >= case.wide.nbytes
    else:
        assert case.bytes <= _kept(rank) <= 1.1 * case.bytes
    assert size < case.bytes + 32768


@pytest.mark.parametrize("prepack", [[], ["--prepack", "1"]], ids=["packed-later", "prepacked"])
@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("tensor", ["x", "y"], ids=["terms", "columns"])
def test_memory_of_ranks(tmp_path, mesh, tensor, prepack):
    # Ranks cannot divide rows.
    case = Case("MatMul", "INT4", (1, 256), (256, 256), axis=0, block=32)
    partition = _split(mesh, case, tensor, 1, uneven_sizes)
    ranks, _ = _inspect(tmp_path, case.model, partition, *prepack)
    # Blocks that are cut have their scales on two ranks.
    assert case.bytes <= sum(map(_kept, ranks)) <= 1.3 * case.bytes
    largest = max(uneven_sizes(256, len(ranks)))
    assert max(map(_kept, ranks)) <= 1.3 * case.bytes * largest / 256


def test_memory_is_shared_by_layers(tmp_path):
    """Of weights that a library reads widened, there is one at a time."""
    extent, layers = 256, 5
    rng = np.random.default_rng(5)
    nodes, constants = [], [numpy_helper.from_array(np.float32(0.02), "s")]
    for layer in range(layers):
        weights = rng.integers(-8, 8, (extent, extent)).astype(ml_dtypes.int4)
        constants.append(numpy_helper.from_array(weights, f"w{layer}"))
        nodes += [
            helper.make_node("DequantizeLinear", [f"w{layer}", "s"], [f"wide{layer}"]),
            helper.make_node("MatMul", [f"x{layer}", f"wide{layer}"], [f"x{layer + 1}"]),
        ]
    # All are widened before the first product, as far as the model's order goes.
    nodes = nodes[::2] + nodes[1::2]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1100, extent)) for name in ("x0", f"x{layers}")]
    graph = helper.make_graph(nodes, "layers", ports[:1], ports[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    (rank,), _ = _inspect(tmp_path, model, Partition({"y": 1}))
    values, wide = 1100 * extent * 4, extent * extent * 4
    assert _kept(rank) <= 1.1 * layers * extent * extent / 2
    assert rank["values_bytes"] - rank["scratch_bytes"] <= 2 * values + 2 * wide


@pytest.mark.parametrize("kind", ["FLOAT", "FLOAT16"])
def test_wide_weights_stay(tmp_path, kind):
    """Elements of 16 or 32 bits are no smaller than twice what products read: sessions keep them as products do."""
    dtype = np.float32 if kind == "FLOAT" else np.float16
    weights = np.random.default_rng(6).standard_normal((128, 128)).astype(dtype)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    ports = [helper.make_tensor_value_info(name, getattr(TensorProto, kind), (3, 128)) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "wide", ports[:1], ports[1:], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    (rank,), _ = _inspect(tmp_path, model, Partition({"y": 1}))
    assert rank["packed_bytes"] >= weights.nbytes


def test_shared_weights(tmp_path):
    """Two products read the same weights, one of few rows and one of many: they are there once, as stored."""
    rng = np.random.default_rng(7)
    weights = rng.integers(-8, 8, (256, 256)).astype(ml_dtypes.int4)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["wide"]),
        helper.make_node("MatMul", ["a", "wide"], ["p"]),
        helper.make_node("MatMul", ["b", "wide"], ["q"]),
    ]
    rows = {"a": 2, "b": 1100, "p": 2, "q": 1100}
    inputs = {name: rng.standard_normal((rows[name], 256)).astype(np.float32) for name in "ab"}
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (count, 256)) for name, count in rows.items()]
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.float32(0.25), "s")]
    graph = helper.make_graph(nodes, "shared", infos[:2], infos[2:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    partition = Partition({"y": 1})
    (rank,), _ = _inspect(tmp_path, model, partition)
    assert _kept(rank) <= 1.1 * 256 * 256 / 2
    results = fastest_backend().compile_and_run(model, partition, inputs, ["p", "q"])
    wide = weights.astype(np.float64) / 4
    for given, made in (("a", "p"), ("b", "q")):
        expected = (inputs[given].astype(np.float64) @ wide).astype(np.float32)
        assert not difference(results[made], expected, 1e-5, made)


@pytest.mark.parametrize("name", ["w", "wide"])
def test_weights_that_are_stored_transposed_have_lost_their_names(tmp_path, name):
    """Dimensions of the model's tensor are not those of what is stored."""
    q = np.random.default_rng(0).integers(-8, 8, (96, 96)).astype(ml_dtypes.int4)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["wide"]),
        helper.make_node("Gemm", ["x", "wide"], ["y"], transB=1),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, (4, 96))],
        [value("y", TensorProto.FLOAT, (4, 96))],
        [numpy_helper.from_array(q, "w"), numpy_helper.from_array(np.float32(0.1), "s")],
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11).SerializeToString()
    )
    line = [tool("dovetail"), "compile", path, "-o", tmp_path / "m.dvt", "--mesh", "y=2", "--shard", f"{name}=y,_"]
    code, _, messages = call(line)
    assert code == 2 and f"'{name}', which the model does not have, or loses" in messages, messages


@pytest.mark.parametrize("rows", [1, 8, 64])
@pytest.mark.parametrize("libraries", [False, True], ids=["kernels", "libraries"])
def test_weights_in_16_bits_are_rounded_before_they_are_multiplied(rows, libraries):
    """Two columns of x cancel but for how their weights are rounded."""
    rng = np.random.default_rng(rows)
    terms, columns = 256, 256
    q = rng.integers(-8, 8, (terms, columns)).astype(ml_dtypes.int4)
    scale = rng.uniform(0.1, 1, (terms, 1)).astype(np.float16) * np.ones((1, columns), np.float16)
    q[1] = q[0]
    scale[1] = np.nextafter(scale[0], np.float16(9))
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["wide"], axis=0, block_size=1),
        helper.make_node("MatMul", ["x", "wide"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT16, (rows, terms))],
        [value("y", TensorProto.FLOAT16, (rows, columns))],
        [numpy_helper.from_array(q, "w"), numpy_helper.from_array(scale, "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    x = np.zeros((rows, terms), np.float16)
    x[:, 0], x[:, 1] = 1, -1
    rounded = q.astype(np.float16) * scale
    results = fastest_backend().compile_and_run(model, Partition({"y": 1}), {"x": x}, ["y"], libraries)
    np.testing.assert_array_equal(results["y"], np.broadcast_to(rounded[0] - rounded[1], (rows, columns)))
