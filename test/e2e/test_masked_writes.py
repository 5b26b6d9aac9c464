# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes where a mask says, `x[mask] = values` as exporters spell it: as many as only a run knows, and none at times."""

import numpy as np
import onnx
import pytest
from choices import Choices
from dovetail_models import onnxruntime_session
from harness.backend import USAGE
from harness.compare import differences
from harness.extent import EVERYTHING
from harness.partition import random_partition
from onnx import TensorProto, helper, numpy_helper

SEEDS = range(300 if EVERYTHING else 24)
BOUND = 6


class _Write(Choices):
    """A model of one write into x, whose first dimension varies from run to run at times."""

    def __init__(self, rng):
        super().__init__(rng)
        self.kind = self.pick("slices", "constant", "elements", "rows")
        self.rank = self.integer(1, 3)
        self.shape = [self.integer(1, 6) for _ in range(self.rank)]
        self.varies = self.chance(0.3) and self.kind != "elements"
        if self.varies:
            self.shape[0] = BOUND
        #: Dimensions of the mask, the leading ones of x.
        self.depth = self.rank if self.kind == "constant" else self.integer(1, self.rank)
        if self.kind == "elements":
            self.depth = 1
        self.reduction = self.pick(None, None, "add", "mul", "max", "min")
        self.places = int(np.prod(self.shape[: self.depth]))
        self.given = self.places if self.chance(0.5) else self.integer(1, self.places)
        self.nodes, self.constants = [], {}

    def ints(self, *values):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array(values, np.int64)
        return name

    def add(self, op, *inputs, **attributes):
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, inputs, [f"t{len(self.nodes)}"], name=f"{op}{len(self.nodes)}", **attributes))
        return self.nodes[-1].output[0]

    def model(self):
        add, ints = self.add, self.ints
        inputs = {"x": self.shape, "mask": self.shape[: self.depth]}
        found = add("NonZero", "mask")
        number = add("Gather", add("Shape", found), ints(1), axis=0)
        places = add("Transpose", found, perm=[1, 0])
        if self.kind == "constant":
            value = self.constants["value"] = np.array([2.5], np.float32)
            updates = add("Expand", "value", number)
            assert value.size == 1
        elif self.kind == "rows":
            # A row for all places, as many times as there are some.
            inputs["values"] = self.shape[self.depth :]
            tail = [ints(*self.shape[self.depth :])] if self.rank > self.depth else []
            updates = add("Expand", "values", add("Concat", number, *tail, axis=0) if tail else number)
        else:
            inputs["values"] = [self.given, *self.shape[self.depth :]]
            updates = add("Slice", "values", ints(0), number, ints(0))
        if self.kind == "elements":
            wanted = add("Unsqueeze", add("Squeeze", found, ints(0)), ints(*range(1, self.rank))) if self.rank > 1 else add("Squeeze", found, ints(0))
            if self.rank > 1:
                wanted = add("Expand", wanted, add("Concat", number, ints(*self.shape[1:]), axis=0))
            result = add("ScatterElements", "x", wanted, updates, axis=0, reduction=self.reduction)
        else:
            result = add("ScatterND", "x", places, updates, reduction=self.reduction)
        self.nodes.append(helper.make_node("Neg", [result], ["y"]))

        def describe(name, kind):
            shape = list(inputs[name])
            if self.varies and name in ("x", "mask"):
                shape[0] = "n"
            return helper.make_tensor_value_info(name, kind, shape)

        ports = [describe(n, TensorProto.BOOL if n == "mask" else TensorProto.FLOAT) for n in inputs]
        graph = helper.make_graph(
            self.nodes, "g", ports, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * self.rank)],
            [numpy_helper.from_array(v, n) for n, v in self.constants.items()],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        model.ir_version = 9
        onnx.checker.check_model(model)
        return model, inputs

    def arrays(self, inputs, density):
        arrays = {}
        length = self.integer(0, BOUND) if self.varies else self.shape[0]
        for name, shape in inputs.items():
            shape = list(shape)
            if name in ("x", "mask"):
                shape[0] = length
            arrays[name] = self.rng.uniform(-2, 2, shape).astype(np.float32)
        mask = self.rng.random(arrays["mask"].shape) < density
        if self.kind in ("slices", "elements"):
            # No more places than values.
            flat = np.flatnonzero(mask)
            mask.flat[flat[self.given :]] = False
        return arrays | {"mask": mask}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_write(dovetail, seed):
    rng = np.random.default_rng([seed, 0x3A5C])
    write = _Write(rng)
    model, inputs = write.model()
    session = onnxruntime_session(model, threads=1, optimise=False)
    flags = random_partition(rng, inputs, {}).flags()
    program = dovetail.compile(model, bounds={"n": BOUND} if write.varies else {}, options=flags)
    for density in (0.5, 0.0, 1.0, 0.3):
        arrays = write.arrays(inputs, density)
        expected = {"y": session.run(["y"], arrays)[0]}
        found = differences(program.run(arrays), expected, 0.0 if not write.reduction else 1e-6, 1e-6)
        assert found is None, f"seed {seed}, {write.kind} {write.reduction} {write.shape} {density} {flags}: {found}"


def test_more_places_than_values(dovetail):
    """Is an error of the run, which the next one does not remember."""
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18]>
        g (float[5] x, bool[5] mask, float[3] values) => (float[5] y) <int64[1] zero = {0}, int64[1] one = {1}> {
          found = NonZero(mask) shape = Shape(found) number = Gather<axis = 0>(shape, one)
          places = Transpose<perm = [1, 0]>(found) part = Slice(values, zero, number, zero)
          y = ScatterND(x, places, part)
        }"""
    )
    program = dovetail.compile(model)
    x, values = np.arange(5, dtype=np.float32), -np.ones(3, np.float32)
    with pytest.raises(dovetail.DovetailError, match="must be equal, but differ by 1 in this run") as caught:
        program.run({"x": x, "values": values, "mask": np.array([1, 1, 1, 1, 0], bool)})
    assert caught.value.code == USAGE
    mask = np.array([0, 1, 0, 1, 1], bool)
    expected = x.copy()
    expected[mask] = values
    np.testing.assert_array_equal(program.run({"x": x, "values": values, "mask": mask})["y"], expected)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_places_from_the_end_of_what_varies(dovetail, kind):
    element = "int32" if kind == np.int32 else "int64"
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 18]>
        g (float[n, 3] x, {element}[2, 3] places, float[2, 3] values) => (float[m, 3] y) {{
          y = ScatterElements<axis = 0>(x, places, values)
        }}"""
    )
    program = dovetail.compile(model, bounds={"n": BOUND})
    session = onnxruntime_session(model, threads=1, optimise=False)
    rng = np.random.default_rng(2)
    for length in (BOUND, 4, 3):
        arrays = {"x": rng.random((length, 3), np.float32), "values": rng.random((2, 3), np.float32),
                  "places": np.array([[0, -1, 1], [2, 1, -2]], kind)}  # fmt: skip
        np.testing.assert_array_equal(program.run(arrays)["y"], session.run(["y"], arrays)[0])
