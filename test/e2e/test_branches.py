# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""If whose branches differ in the extents of their results: each program decides for both values of the condition."""

import numpy as np
import onnx
import pytest
from choices import Choices
from harness.compare import differences
from harness.extent import EVERYTHING
from harness.partition import random_partition
from onnx import TensorProto, helper, numpy_helper

from dovetail_models import onnxruntime_session

SEEDS = range(400 if EVERYTHING else 24)


class _Branches(Choices):
    """A model of one If, whose results are used as they are, by their shapes, together, and summed."""

    def __init__(self, rng):
        super().__init__(rng)
        self.rank = self.integer(1, 4)
        self.shape = [self.integer(1, 6) for _ in range(self.rank)]
        self.axis = self.integer(0, self.rank - 1)
        self.constants = {}

    def ints(self, *values):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array(values, np.int64)
        return name

    def branch(self, name):
        """(a graph, ...): two results of equal extents, which differ from those of the other branch."""
        kind = self.pick("slice", "concat", "pad", "empty", "as it is", "chosen")
        axis = self.axis
        extent = self.shape[axis]
        nodes = []

        def add(op, *inputs, **attributes):
            nodes.append(helper.make_node(op, inputs, [f"{name}{len(nodes)}"], **attributes))
            return nodes[-1].output[0]

        first, second = add("Neg", "x"), add("Tanh", "x")
        if kind == "slice":
            bounds = [self.ints(self.integer(0, extent)), self.ints(extent), self.ints(axis)]
            first, second = add("Slice", first, *bounds), add("Slice", second, *bounds)
        elif kind == "concat":
            first, second = add("Concat", first, second, axis=axis), add("Concat", second, second, axis=axis)
        elif kind == "pad":
            pads = [0] * (2 * self.rank)
            pads[axis], pads[axis + self.rank] = self.integer(0, 2), self.integer(0, 3)
            pads = self.ints(*pads)
            first, second = add("Pad", first, pads), add("Pad", second, pads)
        elif kind == "empty":
            bounds = [self.ints(0), self.ints(0), self.ints(axis)]
            first, second = add("Slice", first, *bounds), add("Slice", second, *bounds)
        elif kind == "chosen":
            first, second = add("Compress", first, "keep", axis=axis), add("Compress", second, "keep", axis=axis)
        outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * self.rank) for n in (first, second)]
        return helper.make_graph(nodes, name, [], outputs)

    def model(self):
        branches = {"then_branch": self.branch("a"), "else_branch": self.branch("b")}
        nodes = [helper.make_node("If", ["flag"], ["u", "v"], name="If", **branches)]
        nodes.append(helper.make_node("Shape", ["u"], ["shape"]))
        nodes.append(helper.make_node("Mul", ["u", "v"], ["product"]))
        nodes.append(helper.make_node("ReduceSum", ["u", self.ints(self.axis)], ["sum"], keepdims=0))
        nodes.append(helper.make_node("Concat", ["u", "x", "v"], ["joined"], axis=self.axis))
        inputs = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape),
            helper.make_tensor_value_info("keep", TensorProto.BOOL, [self.shape[self.axis]]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
        ]
        ranks = {"u": self.rank, "v": self.rank, "product": self.rank, "sum": self.rank - 1, "joined": self.rank}
        outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * r) for n, r in ranks.items()]
        outputs.append(helper.make_tensor_value_info("shape", TensorProto.INT64, [self.rank]))
        graph = helper.make_graph(
            nodes, "g", inputs, outputs, [numpy_helper.from_array(v, n) for n, v in self.constants.items()]
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        model.ir_version = 9
        onnx.checker.check_model(model)
        return model


@pytest.mark.parametrize("seed", SEEDS)
def test_extents_of_branches(dovetail, seed):
    rng = np.random.default_rng([seed, 0x1F])
    branches = _Branches(rng)
    model = branches.model()
    session = onnxruntime_session(model, threads=1, optimise=False)
    names = [output.name for output in session.get_outputs()]
    flags = random_partition(rng, {"x": branches.shape}, {}).flags()
    program = dovetail.compile(model, options=flags)
    for flag in (True, False, True):
        inputs = {
            "x": rng.standard_normal(branches.shape).astype(np.float32),
            "keep": rng.random(branches.shape[branches.axis]) < 0.5,
            "flag": np.array(flag),
        }
        expected = dict(zip(names, session.run(names, inputs)))
        found = differences(program.run(inputs), expected, 1e-5, 1e-6)
        assert found is None, f"seed {seed}, flag {flag}, {flags}: {found}"


@pytest.mark.parametrize("axis", [0, 1])
def test_branches_without_elements(dovetail, axis):
    """The other extents of an empty result vary as those of the branches."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 18]>
        g (float[n, m] x, bool flag) => (float[a, b] y) <int64[1] zero = {{0}}, int64[1] axis = {{{axis}}}> {{
          y = If (flag) <then_branch = a () => (float[c, d] u) {{ w = Slice(x, zero, zero, axis) u = Neg(w) }},
                         else_branch = b () => (float[e, f] v) {{ v = Slice(x, zero, zero, axis) }}>
        }}"""
    )
    session = onnxruntime_session(model, threads=1, optimise=False)
    program = dovetail.compile(model, bounds={"n": 4, "m": 3})
    for n, m in ((4, 3), (1, 1), (0, 2), (3, 0)):
        for flag in (True, False):
            inputs = {"x": np.ones((n, m), np.float32), "flag": np.array(flag)}
            assert program.run(inputs)["y"].shape == session.run(["y"], inputs)[0].shape
