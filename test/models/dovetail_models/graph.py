# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds an ONNX graph node by node, with seeded random weights."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IR_VERSION = 8


class Graph:
    """A graph under construction. Every method that adds a node returns the name of its result."""

    def __init__(self, name, opset=17, seed=0):
        self.name = name
        self.opset = opset
        self.rng = np.random.default_rng(seed)
        self.nodes = []
        self.inputs = []
        self.outputs = []
        self.initializers = []
        self._counts = {}
        self._constants = {}

    # Plumbing.

    def unique(self, stem):
        count = self._counts[stem] = self._counts.get(stem, -1) + 1
        return f"{stem}_{count}"

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        """Declares an input; an entry of `shape` that is a string is a symbolic dimension."""
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, name, rank, dtype=TensorProto.FLOAT):
        """Gives `value` the name `name` and declares it as an output (its shape is left to inference)."""
        self.nodes.append(helper.make_node("Identity", [value], [name], name="output/" + name))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, [None] * rank))

    def op(self, op_type, *inputs, outputs=1, name=None, **attributes):
        """Adds a node; returns the name of its result, or a list of names if it has several.

        A `name` is that of the node and of its result. Without one both are numbered.
        """
        stem = name or self.unique(op_type)
        names = [stem] if outputs == 1 else [f"{stem}.{i}" for i in range(outputs)]
        node = helper.make_node(op_type, list(inputs), names, name=name or "/" + stem, **attributes)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def weight(self, array, stem="weight"):
        """Adds an initializer."""
        name = self.unique(stem)
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def constant(self, value, dtype=np.float32):
        """A small constant as a Constant node, the way exporters write it; equal ones are shared."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            tensor = numpy_helper.from_array(array)
            self._constants[key] = self.op("Constant", value=tensor)
        return self._constants[key]

    def ints(self, *values):
        return self.constant(values, np.int64)

    def normal(self, shape, scale=1.0, mean=0.0):
        values = self.rng.standard_normal(shape, dtype=np.float32)
        return (values * np.float32(scale) + np.float32(mean)).astype(np.float32)

    def uniform(self, shape, low, high):
        return self.rng.uniform(low, high, shape).astype(np.float32)

    def build(self):
        graph = helper.make_graph(
            self.nodes, self.name, self.inputs, self.outputs, self.initializers
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = IR_VERSION
        model.producer_name = "dovetail_models"
        onnx.checker.check_model(model)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)

    # Layers. He initialisation keeps activations near one.

    def conv(self, x, cin, cout, kernel, stride=1, pad=None, group=1, dilation=1, bias=True):
        """A convolution; `kernel` has one entry a spatial dimension, `pad` is one number, or all as ONNX has them."""
        rank = len(kernel)
        if pad is None:
            pads = [dilation * (k - 1) // 2 for k in kernel] * 2
        else:
            pads = list(pad) if isinstance(pad, (list, tuple)) else [pad] * (2 * rank)
        fan_in = cin // group * int(np.prod(kernel))
        inputs = [x, self.weight(self.normal((cout, cin // group, *kernel), (2 / fan_in) ** 0.5))]
        if bias:
            inputs.append(self.weight(self.normal((cout,), 0.1), "bias"))
        return self.op(
            "Conv",
            *inputs,
            kernel_shape=list(kernel),
            strides=[stride] * rank,
            pads=pads,
            dilations=[dilation] * rank,
            group=group,
        )

    def conv_transpose(self, x, cin, cout, kernel, stride, pad=0):
        """A transposed convolution; `pad` is left out of its result on all sides."""
        taps = int(np.prod(kernel)) / stride ** len(kernel)
        weight = self.normal((cin, cout, *kernel), (1 / (cin * taps)) ** 0.5)
        return self.op(
            "ConvTranspose",
            x,
            self.weight(weight),
            self.weight(self.normal((cout,), 0.1), "bias"),
            kernel_shape=list(kernel),
            strides=[stride] * len(kernel),
            pads=[pad] * (2 * len(kernel)),
        )

    def batch_norm(self, x, channels, gain=1.0):
        """A batch normalisation with statistics that leave the scale of activations about unchanged."""
        return self.op(
            "BatchNormalization",
            x,
            self.weight(self.uniform((channels,), 0.8 * gain, 1.2 * gain), "scale"),
            self.weight(self.normal((channels,), 0.1), "shift"),
            self.weight(self.normal((channels,), 0.1), "mean"),
            self.weight(self.uniform((channels,), 0.7, 1.3), "variance"),
            epsilon=1e-5,
        )

    def linear(self, x, cin, cout, gain=1.0, bias=True, name=None):
        """MatMul and Add over the last dimension; without `bias` MatMul alone."""
        weight = self.weight(self.normal((cin, cout), gain * cin**-0.5))
        if not bias:
            return self.op("MatMul", x, weight, name=name)
        product = self.op("MatMul", x, weight)
        return self.op("Add", self.weight(self.normal((cout,), 0.1), "bias"), product, name=name)

    def dim(self, x, index):
        """One entry of the shape of `x`, as a scalar, through Shape and Gather."""
        return self.op("Gather", self.op("Shape", x), self.constant(index, np.int64), axis=0)
