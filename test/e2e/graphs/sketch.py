# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A random graph under construction, and the registry of motifs."""

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from choices import Choices
from dovetail_models import onnxruntime_session

#: Weight and function of each motif, by name.
MOTIFS = {}

#: Operators that move elements, or compute them exactly whatever the order.
_EXACT = {
    "Abs", "Concat", "Clip", "DepthToSpace", "Expand", "Flatten", "Gather", "Identity", "Max", "MaxPool", "Min", "Neg",
    "Pad", "ReduceMax", "ReduceMin", "Relu", "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile",
    "Transpose", "Trilu", "Unsqueeze", "Where",
}  # fmt: skip

#: Larger values would make too much of their rounding errors.
_LARGEST_VALUE = 1e3


def _quiet():
    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    return options


class Reject(Exception):
    """What was drawn makes no sense here: another motif is tried."""


def motif(weight=1):
    """Registers `function(sketch)`, which adds nodes that belong together."""

    def register(function):
        MOTIFS[function.__name__] = weight, function
        return function

    return register


class Sketch(Choices):
    """Nodes are computed by ONNX Runtime as they are added, so that motifs see shapes and values."""

    def __init__(self, rng, opset, largest_size):
        super().__init__(rng)
        self.opset = opset
        self.largest_size = largest_size
        self.nodes = []
        self.inputs = {}
        self.constants = {}
        #: All tensors by name, in order.
        self.values = {}
        #: Float tensors whose last bit is certain: jumps at a threshold are the same everywhere.
        self.exact = set()
        #: Constants whose last bits mean nothing.
        self.drawn = set()

    # Choices.

    def tensor(self, accepts=lambda value: True, types="f"):
        """The name of a tensor, more likely a late one, whose type is of one of the NumPy kinds `types`."""
        names = [
            name
            for name, value in self.values.items()
            if name not in self.constants and value.dtype.kind in types and accepts(value)
        ]
        if not names:
            raise Reject
        weights = np.arange(1, len(names) + 1) ** 2.0
        return names[self.rng.choice(len(names), p=weights / weights.sum())]

    def shape(self, name):
        return list(self.values[name].shape)

    # The graph.

    def input(self, value):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.values[name] = value
        self.exact.add(name)
        return name

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants[name] = self.values[name] = np.asarray(value)
        self.exact.add(name)
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def number(self, value, like):
        """One number of the type of tensor `like`, at times with dimensions of one."""
        rank = self.pick(0, 0, min(1, self.values[like].ndim))
        return self.constant(np.full([1] * rank, value, self.values[like].dtype))

    def scalar(self, value, like):
        """A scalar of the type of tensor `like`."""
        return self.constant(np.array(value, self.values[like].dtype))

    def weights(self, shape, like, low=-1.0, high=1.0):
        name = self.constant(self.rng.uniform(low, high, shape).astype(self.values[like].dtype))
        self.drawn.add(name)
        return name

    def add(self, op, *inputs, outputs=1, **attributes):
        """Adds a node and returns the names of its results. Raises `Reject` if they would be of no use."""
        names = [f"t{len(self.nodes)}" + (f"_{i}" if outputs > 1 else "") for i in range(outputs)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        node = helper.make_node(op, list(inputs), names, name=f"{op}_{len(self.nodes)}", **attributes)
        given = {name: self.values[name] for name in inputs if name}
        for name, value in zip(names, self._compute(node, given, names)):
            if value.size > self.largest_size:
                raise Reject
            if value.size and value.dtype.kind == "f" and not np.abs(value).max() <= _LARGEST_VALUE:
                raise Reject
            self.values[name] = value
            if op in _EXACT and all(name in self.exact or not name for name in inputs) or value.dtype.kind != "f":
                self.exact.add(name)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def _compute(self, node, given, names):
        graph = helper.make_graph(
            [node], "node", [_port(n, v) for n, v in given.items()], [onnx.ValueInfoProto(name=n) for n in names]
        )
        try:
            session = onnxruntime_session(self._proto(graph), threads=1, optimise=False)
            return [np.asarray(value) for value in session.run(names, given, _quiet())]
        except Exception as error:
            raise Reject(str(error)) from None

    def _proto(self, graph):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 10
        return model

    def attempt(self, function):
        """Lets a motif add nodes; takes them back if it gives up."""
        nodes, values, constants = len(self.nodes), set(self.values), set(self.constants)
        try:
            function(self)
        except Reject:
            del self.nodes[nodes:]
            self.values = {n: v for n, v in self.values.items() if n in values}
            self.constants = {n: v for n, v in self.constants.items() if n in constants}
            self.exact &= set(self.values)
            self.drawn &= set(self.constants)
            return False
        return True

    def model(self, outputs):
        """The finished ModelProto, checked and with its shapes inferred."""
        graph = helper.make_graph(
            self.nodes,
            "graph",
            [_port(n, v) for n, v in self.inputs.items()],
            [_port(n, self.values[n]) for n in outputs],
            [numpy_helper.from_array(v, n) for n, v in self.constants.items()],
        )
        model = self._proto(graph)
        onnx.checker.check_model(model)
        return model


def _port(name, value):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
