# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NaN and infinities through functions that cut values off, alone and behind library calls; against ONNX Runtime.

16-bit types are compared with ONNX Runtime in f32: what is NaN or infinite is the same in all types.
"""

import ml_dtypes
import numpy as np
import pytest
from dovetail_models import with_element_type
from harness.compare import difference, differences
from harness.cpus import needs_cpu
from harness.oracle import expected_outputs
from harness.partition import Partition
from ops import Draft

#: Functions of one operand behind a call, with their other operands and attributes.
FUNCTIONS = {
    "relu": ("Relu", (), {}),
    "clip": ("Clip", (0.0, 6.0), {}),
    "clip-above": ("Clip", (0.5, 0.75), {}),
    "hard-sigmoid": ("HardSigmoid", (), {"alpha": 0.3, "beta": 0.4}),
    "leaky-relu": ("LeakyRelu", (), {"alpha": 0.2}),
    # Infinity times zero is NaN.
    "flat-relu": ("LeakyRelu", (), {"alpha": 0.0}),
    "sigmoid": ("Sigmoid", (), {}),
    "tanh": ("Tanh", (), {}),
    "hard-swish": ("HardSwish", (), {}),
    "elu": ("Elu", (), {}),
}
#: What a call's result goes through before the function: nothing, a bias, tensors of other calls, and functions that
#: make numbers of infinities, with a tensor added to the result.
FORMS = ("plain", "bias", "add", "multiply", "twice", "chain", "chain-add")
CHANNELS = 16
KINDS = ("conv", "1x1", "depthwise", "groups", "tiles", "transposed", "matmul", "gemm", "batched")
#: Inputs of products.
SHAPES = {"matmul": (24, CHANNELS), "gemm": (24, CHANNELS), "batched": (2, 12, CHANNELS)}


def _special(rng, shape):
    """Few elements of the first dimensions are not finite, so that most sums are."""
    x = rng.uniform(-1, 1, shape).astype(np.float32)
    for value in (np.nan, np.inf, -np.inf, -np.nan):
        x[tuple(rng.integers(n) for n in shape)] = value
    return x


class Calls:
    """Calls of one kind, each with weights of its own, so that each has its own epilogue."""

    def __init__(self, kind, channels=CHANNELS):
        self.channels = channels
        self.rng = np.random.default_rng(11)
        self.draft = Draft(self.rng)
        self.kind = kind
        self.shape = (*SHAPES[kind][:-1], channels) if kind in SHAPES else (1, channels, 12, 10)
        self.vector = (channels,) if kind in SHAPES else (1, channels, 1, 1)
        self.x = self.draft.input(_special(self.rng, self.shape), "x")

    def constant(self, *shape):
        # No weight is zero: zero times infinity is NaN.
        values = self.rng.uniform(0.02, 0.2, shape) * self.rng.choice([-1, 1], shape)
        return self.draft.constant(values.astype(np.float32))

    def node(self, *operands, final=False, **attributes):
        return self.draft.node(*operands, final=final, **attributes)

    def call(self, x, hasBias=False):
        count = self.channels
        bias = [self.constant(count)] if hasBias else []
        if self.kind == "gemm":
            return self.node("Gemm", x, self.constant(count, count), *bias, transB=1)
        if self.kind in ("matmul", "batched"):
            y = self.node("MatMul", x, self.constant(count, count))
            return self.node("Add", y, *bias) if hasBias else y
        if self.kind == "tiles":
            return self.node("ConvTranspose", x, self.constant(count, count, 2, 2), *bias, strides=[2, 2])
        if self.kind == "transposed":
            return self.node("ConvTranspose", x, self.constant(count, count, 3, 3), *bias, pads=[1, 1, 1, 1])
        inputs, extent = {"depthwise": (1, 3), "groups": (4, 3), "1x1": (count, 1)}.get(self.kind, (count, 3))
        pads = [extent // 2] * 4
        weights = self.constant(count, inputs, extent, extent)
        return self.node("Conv", x, weights, *bias, pads=pads, group=count // inputs)

    def apply(self, name, x, final):
        op, operands, attributes = FUNCTIONS[name]
        constants = [self.draft.constant(np.float32(operand)) for operand in operands]
        return self.node(op, x, *constants, final=final, **attributes)

    def form(self, form, name):
        y = self.call(self.x, form != "plain")
        if form == "add":
            y = self.node("Add", y, self.call(self.x))
        if form == "multiply":
            y = self.node("Mul", y, self.constant(*self.vector))
        if form == "twice":
            first = self.apply(name, y, final=False)
            y = self.node("Add", self.call(first, True), first) if self.kind != "tiles" else self.call(first)
        if form.startswith("chain"):
            for before in ("relu", "clip"):
                y = self.apply(before, y, final=False)
        if form == "chain-add":
            other = self.call(self.x)
            return self.node("Add", self.apply(name, y, final=False), other, final=True)
        return self.apply(name, y, final=True)


def _wrong(actual, expected, names, tolerance):
    """The outputs that differ, with the number of NaN of both."""
    found = {}
    for output, name in names.items():
        text = difference(actual[output].astype(np.float32), expected[output], tolerance, name)
        if text:
            found[name] = f"{text}; NaN: {np.isnan(actual[output]).sum()}, expected {np.isnan(expected[output]).sum()}"
    return found


def _build(kind, functions=FUNCTIONS, forms=FORMS, channels=CHANNELS):
    calls = Calls(kind, channels)
    names = {calls.form(form, name): f"{form} {name}" for form in forms for name in functions}
    return calls.draft, names


def _check(backend, draft, names, partition, tolerance=1e-4, dtype=None, **options):
    model = draft.model()
    with np.errstate(invalid="ignore"):
        expected = expected_outputs(model, draft.inputs)
    inputs = draft.inputs
    if dtype:
        model = with_element_type(model, dtype)
        inputs = {name: value.astype(dtype) for name, value in inputs.items()}
    actual = backend.compile_and_run(model, partition, inputs, list(names), **options)
    if dtype:
        actual = {name: value.view(dtype) for name, value in actual.items()}
    wrong = _wrong(actual, expected, names, tolerance)
    assert not wrong, "\n".join(wrong.values())
    assert all(np.isnan(expected[output]).any() for output in names)
    return actual


def _partition(kind, ranks):
    if ranks == 1:
        return Partition({"y": 1})
    dim, sizes = {"matmul": (0, (7, 17)), "gemm": (0, (24, 0)), "batched": (1, (5, 7))}.get(kind, (2, (4, 8)))
    return Partition({"y": 2}).split("x", len(SHAPES.get(kind, range(4))), dim, "y", sizes)


def _cases():
    yield pytest.param("none", 2)
    for cpu, ranks in (("native", 1), ("native", 2), ("x86-64-v3", 1), ("x86-64-v3", 2), ("x86-64-v2", 1)):
        yield pytest.param(cpu, ranks, marks=needs_cpu(cpu))


@pytest.mark.parametrize("cpu, ranks", list(_cases()))
@pytest.mark.parametrize("kind", KINDS)
def test_calls(backend, kind, cpu, ranks):
    """`cpu` is "none" for generated kernels alone."""
    draft, names = _build(kind)
    # Winograd's algorithm spreads NaN.
    extra = ["--cpu", cpu, "--math", "f32-strict"] if cpu != "none" else []
    _check(backend, draft, names, _partition(kind, ranks), libraries=cpu != "none", extra=extra)


@pytest.mark.parametrize("channels", [CHANNELS, 24])
@pytest.mark.parametrize("kind", KINDS)
def test_threads(backend, tmp_path, kind, channels):
    """Three threads divide calls. 24 channels fill one vector of 16 and half of another one."""
    draft, names = _build(kind, channels=channels)
    model, artifact = draft.model(), tmp_path / "model.dvt"
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    extra = ["--math", "f32-strict"]
    backend.compile(tmp_path / "model.onnx", artifact, Partition({"y": 1}), extra=extra)
    actual = backend.run(artifact, draft.inputs, list(names), tmp_path, threads=3)
    wrong = _wrong(actual, expected_outputs(model, draft.inputs), names, 1e-4)
    assert not wrong, "\n".join(wrong.values())


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_halves(backend, kind, dtype):
    draft, names = _build(kind)
    draft.opset = 22
    _check(backend, draft, names, _partition(kind, 2), tolerance=0.05, dtype=dtype)


def _pool_input():
    x = np.random.default_rng(3).uniform(-1, 1, (1, 20, 12, 10)).astype(np.float32)
    lowest = np.finfo(np.float32).min
    # Whole windows of 3 x 3, of which one has the least number, and one an infinity above the others.
    x[0, 0:4, 2:5, 2:7] = -np.inf
    x[0, 1, 3, 3] = lowest
    x[0, 2, 4, 4] = np.inf
    x[0, 19, 9:12, 5:10] = -np.inf
    x[0, 18] = lowest
    return x


@pytest.mark.parametrize("options", [(), ("--no-libraries",), ("--cpu", "x86-64-v3")], ids=str)
def test_pool(backend, options):
    """The largest of no more than minus infinity, which is not the least number."""
    draft = Draft(np.random.default_rng(1))
    x = draft.input(_pool_input(), "x")
    # No pads: ONNX Runtime takes the least number for them.
    draft.node("MaxPool", x, kernel_shape=[3, 3])
    draft.node("MaxPool", x, kernel_shape=[2, 3], strides=[2, 1], dilations=[1, 2])
    draft.node("MaxPool", x, kernel_shape=[2, 2], strides=[1, 2])
    model = draft.model()
    expected = expected_outputs(model, draft.inputs)
    assert all((value == -np.inf).any() for value in expected.values())
    for ranks in (1, 2):
        partition = Partition({"y": ranks})
        if ranks == 2:
            partition.split("x", 4, 2, "y", (7, 5))
        actual = backend.compile_and_run(model, partition, draft.inputs, list(expected), extra=options)
        assert not differences(actual, expected, tolerance=0)


@pytest.mark.parametrize("options", [(), ("--no-libraries",)], ids=str)
def test_pool_skips_nan(backend, options):
    """As the ONNX reference does; with ONNX Runtime it depends on where in its window NaN is."""
    x = _pool_input()
    x[0, 5:9, 3, 4] = x[0, 7:9, 4, 4] = x[0, 8, 3:7, 3:7] = np.nan
    draft = Draft(np.random.default_rng(1))
    name = draft.node("MaxPool", draft.input(x, "x"), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    padded = np.pad(np.where(np.isnan(x), -np.inf, x), [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    expected = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3)).max(axis=(-2, -1))
    partition = Partition({"y": 2}).split("x", 4, 2, "y", (4, 8))
    actual = backend.compile_and_run(draft.model(), partition, draft.inputs, [name], extra=options)
    assert not difference(actual[name], expected, tolerance=0)
