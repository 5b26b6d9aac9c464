# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images of varying size (`compile --bound`): windows, transposed convolutions, Resize, U-Nets; against ONNX Runtime.

Each program is compiled once and runs with many sizes, from the bound down to nothing and back.
"""

import numpy as np
import onnx
import pytest
from choices import Choices
from dovetail_models import onnxruntime_session
from harness.backend import UNSUPPORTED
from harness.compare import differences
from harness.extent import EVERYTHING
from harness.partition import random_partition
from onnx import TensorProto, helper, numpy_helper

SEEDS = range(400 if EVERYTHING else 30)


class _Graph(Choices):
    def __init__(self, rng):
        super().__init__(rng)
        self.nodes, self.constants = [], {}

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def weights(self, *shape):
        return self.constant(self.rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32))

    def add(self, op, *inputs, **attributes):
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, inputs, [f"t{len(self.nodes)}"], name=f"{op}{len(self.nodes)}", **attributes))
        return self.nodes[-1].output[0]

    def model(self, inputs, results):
        """`inputs`: shapes by name, with names for extents that vary. `results`: (tensor, rank)."""
        outputs = []
        for number, (tensor, rank) in enumerate(results):
            self.nodes.append(helper.make_node("Identity", [tensor], [f"y{number}"]))
            outputs.append(helper.make_tensor_value_info(f"y{number}", TensorProto.FLOAT, [None] * rank))
        ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
        constants = [numpy_helper.from_array(v, n) for n, v in self.constants.items()]
        graph = helper.make_graph(self.nodes, "g", ports, outputs, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        model.ir_version = 9
        onnx.checker.check_model(model)
        return model


def _compare(program, model, rng, shapes, tolerance=1e-5, what=""):
    session = onnxruntime_session(model, threads=1, optimise=False)
    names = [output.name for output in session.get_outputs()]
    for shape in shapes:
        x = rng.standard_normal(shape).astype(np.float32)
        expected = dict(zip(names, session.run(names, {"x": x})))
        found = differences(program.run({"x": x}), expected, tolerance, 1e-5)
        assert found is None, f"{what} {shape}: {found}"


def _window(g, x):
    """A window of one or two dimensions over x, with all that ONNX lets one say."""
    op = g.pick("Conv", "Conv", "MaxPool", "AveragePool", "ConvTranspose")
    kernel, stride = [g.integer(1, 4), g.integer(1, 3)], [g.integer(1, 3), g.integer(1, 2)]
    dilations = [g.integer(1, 2), 1] if op != "AveragePool" else None
    auto_pad = g.pick(None, None, "SAME_UPPER", "SAME_LOWER", "VALID")
    if auto_pad and dilations:
        dilations = [1, 1]
    if auto_pad and op != "Conv":
        # Pads that would be negative are errors in ONNX Runtime, or are left out.
        kernel = [max(k, s) for k, s in zip(kernel, stride)]
    # A window has an element of the tensor.
    pads = None if auto_pad else [g.integer(0, k - 1) for k in kernel * 2]
    attributes = dict(strides=stride, dilations=dilations, pads=pads, auto_pad=auto_pad)
    if op == "Conv":
        return g.add(op, x, g.weights(2, 3, *kernel), **attributes)
    if op == "ConvTranspose":
        output_padding = [g.integer(0, s - 1) for s in stride]
        return g.add(op, x, g.weights(3, 2, *kernel), output_padding=output_padding, **attributes)
    ceil = g.pick(None, 1) if not auto_pad else None
    if op == "AveragePool":
        attributes.pop("dilations")
        attributes["count_include_pad"] = g.pick(None, 1)
    return g.add(op, x, kernel_shape=kernel, ceil_mode=ceil, **attributes)


@pytest.mark.parametrize("seed", SEEDS)
def test_windows(dovetail, seed):
    rng = np.random.default_rng([seed, 0x71])
    g = _Graph(rng)
    bound, width = g.integer(8, 13), g.integer(8, 11)
    y = _window(g, "x")
    summed = g.add("ReduceSum", y, g.ints(2), keepdims=0)
    model = g.model({"x": [1, 3, "h", width]}, [(y, 4), (summed, 3)])
    flags = random_partition(rng, {"x": [1, 3, bound, width]}, {}).flags()
    program = dovetail.compile(model, bounds={"h": bound}, options=flags)
    sizes = [bound, 8, bound - 1, min(9, bound), bound]
    _compare(program, model, rng, [(1, 3, h, width) for h in sizes], what=f"seed {seed} {g.nodes[0]} {flags}")


@pytest.mark.parametrize("seed", SEEDS)
def test_resize(dovetail, seed):
    """By scales, by the size of another tensor, and by an extent that is computed."""
    rng = np.random.default_rng([seed, 0x72])
    g = _Graph(rng)
    bound, width = g.integer(4, 9), g.integer(2, 5)
    mode = g.pick("nearest", "linear", "cubic")
    coordinates = g.pick("half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners")
    how = g.pick("scale", "like", "like", "computed")
    attributes = dict(
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode=g.pick(None, "floor", "ceil", "round_prefer_ceil", "round_prefer_floor") if mode == "nearest" else None,
        cubic_coeff_a=g.pick(None, -0.5) if mode == "cubic" else None,
    )
    shape = g.add("Shape", "x")
    small = g.add("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 1])
    if how == "scale":
        scales = g.constant(np.array([1, 1, g.pick(2, 3, 0.5, 1.5, 0.7), g.pick(1, 2)], np.float32))
        y = g.add("Resize", "x", "", scales, **attributes)
    elif how == "like":
        y = g.add("Resize", small, "", "", g.add("Concat", g.ints(1, 2), g.add("Slice", shape, g.ints(2), g.ints(4)), axis=0), **attributes)
    else:
        height = g.add("Slice", shape, g.ints(2), g.ints(3))
        height = g.add(g.pick("Mul", "Add"), height, g.ints(g.integer(2, 3)))
        y = g.add("Resize", "x", "", "", g.add("Concat", g.ints(1, 2), height, g.ints(width), axis=0), **attributes)
    model = g.model({"x": [1, 2, "h", width]}, [(y, 4)])
    flags = random_partition(rng, {"x": [1, 2, bound, width]}, {}).flags()
    program = dovetail.compile(model, bounds={"h": bound}, options=flags)
    sizes = [bound, 2, bound - 1, 3, bound]
    _compare(program, model, rng, [(1, 2, h, width) for h in sizes], what=f"seed {seed} {how} {attributes} {flags}")


def _block(g, x, channels, filters):
    return g.add("Relu", g.add("Conv", x, g.weights(filters, channels, 3, 3), g.weights(filters), pads=[1, 1, 1, 1]))


def _unet(kind, rng):
    """Two levels down by pools, and up again: as torch exports interpolation by size, by scale, or ConvTranspose."""
    g = _Graph(rng)
    first = _block(g, "x", 2, 4)
    second = _block(g, g.add("MaxPool", first, kernel_shape=[2, 2], strides=[2, 2]), 4, 6)
    value = _block(g, g.add("MaxPool", second, kernel_shape=[2, 2], strides=[2, 2]), 6, 8)
    for skip, channels, filters in ((second, 8, 6), (first, 6, 4)):
        own = filters
        if kind == "size":
            shape = g.add("Shape", skip)
            size = g.add("Slice", shape, g.ints(2), g.ints(4))
            batch = g.add("Slice", g.add("Shape", value), g.ints(0), g.ints(2))
            value = g.add("Resize", value, "", "", g.add("Concat", batch, size, axis=0), mode="linear",
                          coordinate_transformation_mode="pytorch_half_pixel")  # fmt: skip
        elif kind == "scale":
            value = g.add("Resize", value, "", g.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
                          coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
        else:
            value = g.add("ConvTranspose", value, g.weights(channels, channels, 2, 2), strides=[2, 2])
        value = _block(g, g.add("Concat", value, skip, axis=1), channels + own, filters)
    y = g.add("Sigmoid", g.add("Conv", value, g.weights(1, 4, 1, 1)))
    return g.model({"x": [1, 2, "h", "w"]}, [(y, 4)])


MESHES = [[], ["--mesh", "y=2"], ["--mesh", "y=3", "--shard", "x=_,_,y,_", "--sizes", "x:2=9,3,12"],
          ["--mesh", "y=2,x=2", "--shard", "x=_,_,y,x"]]  # fmt: skip


@pytest.mark.parametrize("flags", MESHES, ids=["1", "2", "3", "2x2"])
@pytest.mark.parametrize("kind", ["size", "scale", "transposed"])
def test_unet(dovetail, kind, flags):
    rng = np.random.default_rng(5)
    model = _unet(kind, rng)
    program = dovetail.compile(model, bounds={"h": 24, "w": 20}, options=flags)
    # Any sizes, where the decoder takes those of the encoder; else multiples of 4.
    sizes = [(24, 20), (7, 9), (4, 4), (23, 20), (13, 5)] if kind == "size" else [(24, 20), (8, 12), (4, 4), (16, 20)]
    _compare(program, model, rng, [(1, 2, *size) for size in sizes], what=f"{kind} {flags}")


@pytest.mark.parametrize("kind", ["scale", "transposed"])
def test_unet_of_a_size_that_does_not_fit(dovetail, kind):
    """Is an error of the run that names the node, as ONNX Runtime's is."""
    rng = np.random.default_rng(5)
    program = dovetail.compile(_unet(kind, rng), bounds={"h": 24, "w": 20})
    with pytest.raises(dovetail.DovetailError, match="node 'Concat.*must be equal, but differ by"):
        program.run({"x": np.zeros((1, 2, 14, 20), np.float32)})


@pytest.mark.parametrize("factor", [0.7, 2.0])
def test_resize_of_opset_10(dovetail, factor):
    """Rounds places up where the image shrinks, which only constant extents do here."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 5, opset_import: ["" : 10]>
        g (float[1, 1, h, 4] x) => (float[1, 1, k, 4] y) <float[4] scales = {{1, 1, {factor}, 1}}> {{
          y = Resize<mode = "nearest">(x, scales)
        }}"""
    )
    if factor < 1:
        with pytest.raises(dovetail.DovetailError, match="scales below 1 need extents that are constant") as caught:
            dovetail.compile(model, bounds={"h": 9})
        assert caught.value.code == UNSUPPORTED
        return
    program = dovetail.compile(model, bounds={"h": 9})
    _compare(program, model, np.random.default_rng(3), [(1, 1, h, 4) for h in (9, 5, 2, 9)])
