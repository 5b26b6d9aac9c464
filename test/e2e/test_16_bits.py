# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What libraries do, with epilogues, in f16 and bf16, whole and split at random.

Expected is what ONNX Runtime computes in f32 from the same, rounded, inputs and weights. Every operator may round its
result once, so an element may be off by as many halves of a last place as there are operators, measured at the largest
value on the way. The number of cases of each kind comes from DOVETAIL_HALF_CASES.
"""

import os

import ml_dtypes
import numpy as np
import onnx
import pytest
from dovetail_models import (
    build,
    input_shape,
    random_inputs,
    rounded_weights,
    run_exactly,
    run_rounding_each,
    with_element_type,
)
from harness import backend as backends
from harness.compare import differences, relative_distance
from harness.cpus import cpu_parameters, cpu_up_to
from harness.extent import one_of
from harness.oracle import expected_outputs
from harness.partition import Partition, random_partition
from onnx import TensorProto, helper
from ops import GENERATORS, Draft
from ops.draft import NEWEST_OPSET

COUNT = int(os.environ.get("DOVETAIL_HALF_CASES", "12"))
OPS = ("Conv", "ConvTranspose", "MatMul", "Gemm", "MaxPool", "AveragePool")
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
#: Half of a last place at one.
ROUNDING = {"f16": 2.0**-11, "bf16": 2.0**-8}
#: No function of an epilogue is steeper.
STEEPEST = 1.2
#: bf16 is a type of windows from here on.
FIRST_OPSET = 22


class HalfDraft(Draft):
    def since(self, first, last=NEWEST_OPSET):
        return super().since(max(first, FIRST_OPSET), last)

    def extend(self):
        """Puts up to three operators that epilogues have behind the last one."""
        (value,) = self.outputs
        model = self.model()
        shape = expected_outputs(model, self.inputs)[value].shape
        # ONNX's shape inference is wrong for some transposed convolutions: nothing fits behind those.
        if tuple(input_shape(model.graph.output[0])) != shape:
            return
        for _ in range(self.integer(0, 3)):
            op = self.pick("Relu", "LeakyRelu", "Sigmoid", "Clip", "Add", "Add", "Mul")
            operands = []
            if op == "Clip":
                operands = [self.constant(np.float32(-0.5)), self.constant(np.float32(2))]
            if op in ("Add", "Mul"):
                own = [1 if self.chance(0.5) and dim != 1 else n for dim, n in enumerate(shape)]
                operands = [self.either(self.values(own, low=-1, high=1), 0.5)]
            self.outputs.remove(value)
            value = self.node(op, value, *operands)


def _with_all_values(model):
    """The model with all of its values as outputs."""
    outputs = {o.name for o in model.graph.output}
    for node in model.graph.node:
        model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in node.output if n not in outputs)
    return onnx.shape_inference.infer_shapes(model)


def _with_wide_ports(model, dtype):
    """The model of `dtype` with inputs and outputs of f32: NumPy's files have no bf16."""
    half = with_element_type(model, dtype)
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    before, after = [], []

    def widen(value):
        if value.type.tensor_type.elem_type != element_type:
            return None
        value.type.tensor_type.elem_type = TensorProto.FLOAT
        return f"{value.name}_half"

    renamed = {}
    for value in half.graph.input:
        if name := widen(value):
            renamed[value.name] = name
            before.append(helper.make_node("Cast", [value.name], [name], to=element_type))
    for value in half.graph.output:
        if name := widen(value):
            renamed[value.name] = name
            after.append(helper.make_node("Cast", [name], [value.name], to=TensorProto.FLOAT))
    nodes = list(half.graph.node)
    for node in nodes:
        node.input[:] = [renamed.get(n, n) for n in node.input]
        node.output[:] = [renamed.get(n, n) for n in node.output]
    del half.graph.node[:], half.graph.value_info[:]
    half.graph.node.extend([*before, *nodes, *after])
    onnx.checker.check_model(half)
    return half


def _draft(op, seed):
    """A case of `op` in f32; seeds whose operands are integers are passed over."""
    for attempt in range(100):
        draft = HalfDraft(np.random.default_rng([seed, OPS.index(op), attempt]))
        GENERATORS[op](draft, op)
        arrays = [*draft.inputs.values(), *draft.constants.values()]
        if len(draft.outputs) == 1 and all(a.dtype == np.float32 for a in arrays):
            draft.extend()
            return draft
    raise AssertionError(f"no case of {op} with floats")


def _check(op, kind, seed, whole, backend, extra=(), libraries=True, sums=0):
    """`sums`: how many more roundings there are for each rank, of its part of a sum."""
    draft, dtype = _draft(op, seed), TYPES[kind]
    inputs = {n: v.astype(dtype).astype(v.dtype) for n, v in draft.inputs.items()}
    model = draft.model()
    values = expected_outputs(_with_all_values(rounded_weights(model, dtype)), inputs)
    expected = {o.name: values[o.name] for o in model.graph.output}
    shapes = [{n: v.shape for n, v in arrays.items()} for arrays in (inputs, expected)]
    partition = Partition({"y": 1}) if whole else random_partition(draft.rng, *shapes)
    actual = backend.compile_and_run(
        _with_wide_ports(model, dtype), partition, inputs, list(expected), libraries, extra
    )
    largest = max(float(np.abs(v).max()) for v in values.values() if v.size)
    roundings = sum(STEEPEST**i for i in range(len(draft.nodes))) + sums * partition.ranks
    found = differences(actual, expected, 1e-6, floor=largest * roundings * ROUNDING[kind])
    assert not found, f"{op} seed {seed}, {partition}: {found}"


CASES = [(op, kind, seed) for op in OPS for kind in TYPES for seed in range(COUNT)]


@pytest.mark.parametrize("op, kind, seed", CASES)
def test_on_cpus(backend, op, kind, seed):
    """For this machine's CPU, and for one without instructions for bf16."""
    cpu = ["--cpu", cpu_up_to("x86-64-v3")] if seed % 3 == 2 else []
    # A CPU that has bf16 sums parts in it.
    sums = 1 if kind == "bf16" and not cpu else 0
    _check(op, kind, seed, seed % 4 == 0, backends.fastest_backend(), cpu, sums=sums)


@pytest.mark.parametrize("op, kind, seed", [c for c in CASES if c[2] < (COUNT + 3) // 4])
def test_on_emulated_device(backend, op, kind, seed):
    backend = backends.replaying_backend()
    _check(op, kind, seed, seed == 0, backend, ["--target", "emulated"], libraries=False, sums=1)


@one_of(3)
@pytest.mark.parametrize("cpu", cpu_parameters("native", "x86-64-v3"))
@pytest.mark.parametrize("sizes", [None, (31, 33), (20, 0, 44)])
@pytest.mark.parametrize("kind", TYPES)
def test_error_of_a_network(backend, kind, sizes, cpu):
    """A network is no further from f64 than it would be if every operator rounded its result.

    Which way roundings go is chance: with one input fewer of them may happen to be further away. So it is several.
    """
    dtype = TYPES[kind]
    model = build("resnet18", height=64, width=48, base=16, classes=100)
    partition = Partition({"y": len(sizes or [0])})
    if sizes:
        partition.split("image", 4, 2, "y", sizes)
    ours, theirs = 0, 0
    for seed in range(6):
        inputs = {n: v.astype(dtype).astype(np.float32) for n, v in random_inputs(model, seed=seed).items()}
        exact = run_exactly(model, inputs, dtype)["logits"]
        actual = backends.fastest_backend().compile_and_run(
            _with_wide_ports(model, dtype), partition, inputs, ["logits"], extra=["--cpu", cpu]
        )["logits"]
        distance = relative_distance(actual, exact)
        assert distance > 0
        ours += distance
        theirs += relative_distance(run_rounding_each(model, inputs, dtype)["logits"], exact)
    assert ours <= theirs
