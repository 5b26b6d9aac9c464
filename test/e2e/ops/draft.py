# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A test case of one operator under construction, and the registry of generators."""

import numpy as np
import onnx
from choices import Choices
from onnx import helper, numpy_helper

#: The newest opset that ONNX Runtime reads.
NEWEST_OPSET = 26

GENERATORS = {}
WEIGHTS = {}


def generates(*ops, weight=1):
    """Registers `function(draft, op)` as the generator of each of `ops`.

    An operator comes up `weight` times in a round.
    """

    def register(function):
        for op in ops:
            GENERATORS[op] = function
            WEIGHTS[op] = weight
        return function

    return register


class Draft(Choices):
    """The model, its inputs and how exactly the outputs must agree; filled by a generator."""

    def __init__(self, rng):
        super().__init__(rng)
        self.opset = NEWEST_OPSET
        self.nodes = []
        self.inputs = {}
        self.constants = {}
        self.outputs = []
        #: Types and shapes of outputs whose operator has no shape inference at some opsets.
        self.declared = {}
        #: Shapes of outputs whose extents depend on data, with their bounds, of which cuts are.
        self.bounded = {}
        #: Domains of operators that ONNX does not have.
        self.domains = set()
        #: How far outputs may be off, relative to the largest one; None for the default.
        self.tolerance = None
        #: Outputs must be equal to the last bit.
        self.exact = False
        #: ONNX Runtime is known to be wrong here: ask the reference of the onnx package.
        self.prefer_reference = False
        #: A function of what these should be by the documentation, where a generator has one.
        self.reference = None
        #: Values of all outputs, where ONNX Runtime's CPU kernels do not have what the operator's documentation says.
        self.expected = {}
        #: Of outputs that are rounded to whole numbers, the values before that, in f64.
        self.unrounded = {}

    # Choices.

    def since(self, first, last=NEWEST_OPSET):
        """Chooses an opset from `first` to `last`; returns it."""
        self.opset = int(self.rng.integers(first, last + 1))
        return self.opset

    def shape(self, min_rank=1, max_rank=4, largest=9):
        """Mostly small extents, with one of them larger at times."""
        rank = self.integer(min_rank, max_rank)
        shape = [self.integer(1, largest) for _ in range(rank)]
        if rank and rank < 4 and self.chance(0.3):
            shape[self.rng.integers(rank)] = self.integer(largest, 4 * largest)
        return shape

    def axis(self, rank, negative=True):
        """An axis of a tensor of `rank` dimensions, counted from either end."""
        axis = self.integer(0, rank - 1)
        return axis - rank if negative and self.chance(0.4) else axis

    # Values.

    def values(self, shape, dtype=np.float32, low=-3, high=3):
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return self.rng.random(shape) < 0.5
        if np.issubdtype(dtype, np.integer):
            if np.issubdtype(dtype, np.unsignedinteger):
                low = max(low, 0)
            return self.rng.integers(int(low), int(high) + 1, shape).astype(dtype)
        return self.rng.uniform(low, high, shape).astype(dtype)

    # The graph.

    def input(self, array, name=None):
        """An input of the model."""
        name = name or f"x{len(self.inputs)}"
        self.inputs[name] = np.asarray(array)
        return name

    def constant(self, array, name=None):
        """An initializer."""
        name = name or f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def either(self, array, constant=0.6):
        """An initializer with probability `constant`, else an input."""
        return self.constant(array) if self.chance(constant) else self.input(array)

    def node(self, op, *inputs, outputs=1, final=True, **attributes):
        """Adds a node, whose results are outputs of the model if `final`; returns their names.

        Attributes that are None are left out.
        """
        names = [f"{'y' if final else 't'}{len(self.nodes)}_{i}" for i in range(outputs)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(
            helper.make_node(op, list(inputs), names, name=f"{op}_{len(self.nodes)}", **attributes)
        )
        if final:
            self.outputs += names
        return names[0] if outputs == 1 else names

    def contributed(self, op, *inputs, domain="com.microsoft", **others):
        """Adds a node, as `node` does, of an operator that ONNX does not have."""
        self.domains.add(domain)
        self.tolerance = self.tolerance or 1e-5
        return self.node(op, *inputs, domain=domain, **others)

    def expect(self, name, array):
        """States the values of an output, made from the operator's documentation. Then all outputs need it."""
        self.expected[name] = np.asarray(array)

    def declare(self, name, like):
        """States the type and shape of an output: those of the array `like`."""
        dtype = helper.np_dtype_to_tensor_dtype(like.dtype)
        self.declared[name] = helper.make_tensor_value_info(name, dtype, like.shape)

    def declare_type(self, name, element_type, rank):
        """States the type of an output without its extents."""
        self.declared[name] = helper.make_tensor_value_info(name, element_type, [None] * rank)

    def model(self):
        """The finished ModelProto, checked and with its shapes inferred."""
        inputs = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
            for name, value in self.inputs.items()
        ]
        graph = helper.make_graph(
            self.nodes,
            "case",
            inputs,
            [self.declared.get(n) or onnx.ValueInfoProto(name=n) for n in self.outputs],
            [numpy_helper.from_array(v, n) for n, v in self.constants.items()],
        )
        opsets = [helper.make_opsetid(domain, 1) for domain in sorted(self.domains) if domain]
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset), *opsets])
        model.ir_version = 10
        if self.domains:
            # The onnx package knows these operators no more than ONNX does.
            return model
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        onnx.checker.check_model(model)
        return model
