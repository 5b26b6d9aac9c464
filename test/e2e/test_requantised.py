# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers between DequantizeLinear and QuantizeLinear: what is rounded, against the same in exact arithmetic.

Networks that round between layers go apart where a value lies next to a tie, so that outputs differ by a step or more,
whoever computes them. What can be asked is that each layer by itself is right: with the same quantised operands, a
result differs from the exact one only where that is a tie but for errors of f32, and then by one step.
"""

import numpy as np
import pytest
from harness.backend import fastest_backend
from harness.partition import Partition, uneven_sizes
from onnx import TensorProto, helper, numpy_helper

#: Errors of f32 of a value, as a part of the sum of its terms' sizes: what products, sums and the quotient round.
ERROR = 2.0**-21


class Layer:
    """A model of one layer, its quantised input, and the exact value, in steps of the result."""

    def __init__(self, rng):
        self.rng, self.nodes, self.constants, self.inputs = rng, [], [], {}

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def dequantized(self, name, values, scale, zero, **attributes):
        """A node for quantised values, which are an input unless `constant` made them; returns values in f64."""
        operands = [name, self.constant(f"{name}_s", scale), self.constant(f"{name}_z", zero)]
        self.nodes.append(helper.make_node("DequantizeLinear", operands, [f"{name}_f"], **attributes))
        return values.astype(np.float64) - np.asarray(zero, np.float64).reshape(
            [-1] + [1] * (values.ndim - 1) if np.ndim(zero) else []
        )

    def activation(self, name, shape):
        values = self.rng.integers(0, 256, shape).astype(np.uint8)
        self.inputs[name] = values
        scale = np.float32(self.rng.uniform(0.01, 0.1))
        return self.dequantized(name, values, scale, np.uint8(self.rng.integers(100, 150))) * np.float64(scale)

    def filters(self, name, shape):
        values = self.rng.integers(-127, 128, shape).astype(np.int8)
        self.constant(name, values)
        scale = self.rng.uniform(0.001, 0.01, shape[0]).astype(np.float32)
        steps = self.dequantized(name, values, scale, np.zeros(shape[0], np.int8), axis=0)
        return steps * scale.astype(np.float64).reshape([-1] + [1] * (len(shape) - 1))

    def quantize(self, exact, sizes):
        """Ends the layer. `sizes`: the sums of sizes of what `exact` is the sum of."""
        scale = np.float32(np.abs(exact).max() / 120)
        self.nodes.append(
            helper.make_node("QuantizeLinear", ["y_f", self.constant("y_s", scale), self.constant("y_z", np.uint8(128))], ["y"])
        )
        self.steps, self.errors = exact / np.float64(scale), ERROR * sizes / np.float64(scale)

    def run(self, partition, libraries):
        given = [helper.make_tensor_value_info(n, TensorProto.UINT8, v.shape) for n, v in self.inputs.items()]
        made = [helper.make_tensor_value_info("y", TensorProto.UINT8, None)]
        graph = helper.make_graph(self.nodes, "layer", given, made, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        return fastest_backend().compile_and_run(model, partition, self.inputs, ["y"], libraries)["y"]


def _convolve(x, w, stride):
    """A convolution of windows of 3 x 3 with pads of 1."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchwij,ocij->nohw", windows, w, optimize=True)


def _convolution(layer, stride):
    x, w = layer.activation("x", (1, 24, 20, 18)), layer.filters("w", (32, 24, 3, 3))
    layer.nodes.append(
        helper.make_node("Conv", ["x_f", "w_f"], ["y_f"], pads=[1, 1, 1, 1], strides=[stride, stride], name="conv")
    )
    layer.quantize(_convolve(x, w, stride), _convolve(np.abs(x), np.abs(w), stride))


def _product(layer, _):
    x, w = layer.activation("x", (40, 96)), layer.filters("w", (64, 96))
    layer.nodes.append(helper.make_node("Gemm", ["x_f", "w_f"], ["y_f"], transB=1, name="product"))
    layer.quantize(x @ w.T, np.abs(x) @ np.abs(w).T)


def _sum(layer, _):
    a, b = layer.activation("x", (2, 30, 40)), layer.activation("b", (2, 30, 40))
    layer.nodes.append(helper.make_node("Add", ["x_f", "b_f"], ["y_f"], name="sum"))
    layer.quantize(a + b, np.abs(a) + np.abs(b))


@pytest.mark.parametrize("libraries", [True, False])
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(
    "make, stride", [(_convolution, 1), (_convolution, 2), (_product, 1), (_sum, 1)], ids=["conv", "strided", "product", "sum"]
)
def test_layer(backend, make, stride, ranks, libraries):
    for seed in range(3):
        layer = Layer(np.random.default_rng(seed))
        make(layer, stride)
        partition = Partition({"y": ranks})
        if ranks > 1:
            shape = layer.inputs["x"].shape
            dim = len(shape) - 2
            partition.split("x", len(shape), dim, "y", uneven_sizes(shape[dim], ranks))
        actual = layer.run(partition, libraries).astype(np.int64)
        exact = np.clip(np.rint(layer.steps) + 128, 0, 255).astype(np.int64)
        from_tie = np.abs(layer.steps - np.floor(layer.steps) - 0.5)
        wrong = (np.abs(actual - exact) > 1) | ((actual != exact) & (from_tie > layer.errors))
        assert not wrong.any(), f"seed {seed}: {wrong.sum()} of {wrong.size}, {np.argwhere(wrong)[:3]}"
