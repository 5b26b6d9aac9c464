# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of arithmetic with constants, which are folded into each other and into weights."""

import random

import numpy as np
import onnx
import pytest
from harness.backend import fastest_backend
from harness.oracle import expected_outputs
from harness.partition import Partition

#: Shape of the input, shapes of constants, and a product with weights.
FORMS = {
    "elements": ([4, 6], ([], [1], [6]), None),
    "matmul": ([4, 6], ([], [1], [6], [4, 1]), ("MatMul({0}, {1})", (6, 6), 0.4)),
    "conv": ([2, 6, 5, 5], ([], [1], [6, 1, 1]), ("Conv<pads=[1,1,1,1]>({0}, {1})", (6, 6, 3, 3), 0.15)),
}
NUMBERS = (0.5, 2.0, 1.0, -1.0, 3.0, 0.25, 0.1)


def _build(seed, form):
    """A model `x` -> `y` of up to 24 operations."""
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    shape, constants, product = FORMS[form]
    code, initializers, last = [], {}, "x"

    def constant(value):
        initializers[f"c{len(initializers)}"] = np.asarray(value, np.float32)
        return f"c{len(initializers) - 1}"

    for number in range(choose.randint(3, 24)):
        op = choose.choice(["Add", "Mul"] * 3 + ["Sub", "Div", "Max", "Min", "Neg", "Relu", "Clip", "product"])
        if op == "product" and product:
            text = product[0].format(last, constant(rng.standard_normal(product[1]) * product[2]))
        elif op == "Clip":
            text = f"Clip({last}, {constant(-2)}, {constant(5)})"
        elif op in ("Neg", "Relu", "product"):
            text = f"{op if op != 'product' else 'Neg'}({last})"
        else:
            operands = [last, constant(rng.choice(NUMBERS, choose.choice(constants)))]
            if op != "Div" and choose.random() < 0.3:
                operands.reverse()
            text = f"{op}({', '.join(operands)})"
        code.append(f"t{number} = {text}")
        last = f"t{number}"
    dims = ",".join(map(str, shape))
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 20]> chain (float[{dims}] x) => (float[{dims}] y) '
        f"{{ {' '.join(code)} y = Identity({last}) }}"
    )
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in initializers.items())
    return model, rng.standard_normal(shape).astype(np.float32)


def test_long_chain():
    """As long as it likes: each operation is folded into the one before it."""
    sums = " ".join(f"t{i} = Add({f't{i - 1}' if i else 'start'}, {'up' if i % 2 else 'down'})" for i in range(100))
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20]> chain (float[5] x) => (float[5] y) '
        f"<float half = {{0.5}}, float up = {{0.25}}, float down = {{-0.5}}> {{ start = Mul(x, half) {sums} y = Neg(t99) }}"
    )
    x = np.arange(5, dtype=np.float32)
    actual = fastest_backend().compile_and_run(model, Partition({"y": 1}), {"x": x}, ["y"])["y"]
    np.testing.assert_array_equal(actual, expected_outputs(model, {"x": x})["y"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(20))
def test_chains(backend, seed, form):
    model, x = _build(seed, form)
    expected = expected_outputs(model, {"x": x})["y"]
    partition = Partition({"y": 2})
    partition.split("x", x.ndim, 0, "y")
    actual = fastest_backend().compile_and_run(model, partition, {"x": x}, ["y"])["y"]
    size = max(1, np.abs(expected).max())
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5 * size)
