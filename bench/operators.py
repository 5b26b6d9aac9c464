# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single operators that are measured, most of them at sizes beyond a core's caches."""

import dataclasses
import re

import numpy as np
import onnx


@dataclasses.dataclass(frozen=True)
class Operator:
    """A graph of one operator, in ONNX's text format."""

    label: str
    #: `float[2,3] x, float[3] y`
    inputs: str
    #: The same of the result.
    output: str
    #: `y = Add(x, b)`; may name initializers.
    code: str
    #: `int64[2] shape = {2, 3}, float[1] one = {1}`
    initializers: str = ""
    #: Bytes that must be read, as a part of those of all inputs.
    read: float = 1.0
    #: Whether time is that of moving bytes, as that of arithmetic on one core is less.
    bound_by_memory: bool = True

    @property
    def stem(self):
        """Of its files."""
        return "op-" + re.sub(r"[^a-z0-9]+", "-", self.label.lower()).strip("-")

    def flags(self):
        """Of `dovetail compile`."""
        return []

    def build(self):
        """The model."""
        initializers = f" <{self.initializers}>" if self.initializers else ""
        text = (
            '<ir_version: 9, opset_import: ["" : 20]>\n'
            f"operator ({self.inputs}) => ({self.output}){initializers} {{ {self.code} }}"
        )
        return onnx.parser.parse_model(text)

    def make_inputs(self, model):
        """All inputs by name: floats as of a normal distribution, small positive integers, booleans."""
        rng = np.random.default_rng(5)
        return {info.name: _random(rng, *_type(info)) for info in model.graph.input}

    def count_bytes(self, model):
        """Bytes of inputs that must be read, and of the result, which must be written."""
        size = lambda infos: sum(int(np.prod(shape)) * dtype.itemsize for dtype, shape in map(_type, infos))  # noqa: E731
        return self.read * size(model.graph.input) + size(model.graph.output)


def _type(info):
    """(NumPy type, shape)"""
    tensor = info.type.tensor_type
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)), [d.dim_value for d in tensor.shape.dim]


def _random(rng, dtype, shape):
    if dtype.kind == "f":
        return rng.standard_normal(shape, np.float32).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


def _map(name, code=None, **others):
    """An elementwise operator of one tensor of 16 MiB."""
    return Operator(name, "float[2048,2048] x", "float[2048,2048] y", code or f"y = {name}(x)", **others)


def _zip(label, code):
    """One of two such tensors."""
    return Operator(label, "float[2048,2048] a, float[2048,2048] b", "float[2048,2048] y", code)


def _image(label, height, code, initializers="", width=None, **others):
    """One of 64 channels of 256², to `height` × `width`."""
    return Operator(
        label, "float[1,64,256,256] x", f"float[1,64,{height},{width or height}] y", code, initializers, **others
    )


def _fold(label, shape, code, initializers="", source="4096,1024", **others):
    return Operator(label, f"float[{source}] x", f"float[{shape}] y", code, initializers, **others)


OPERATORS = (
    # Elementwise.
    _zip("Add, 2048²", "y = Add(a, b)"),
    Operator(
        "Add of a bias, 64 × 256²", "float[1,64,256,256] a, float[1,64,1,1] b", "float[1,64,256,256] y", "y = Add(a, b)"
    ),
    _zip("Mul, 2048²", "y = Mul(a, b)"),
    _zip("Div, 2048²", "y = Div(a, b)"),
    _map("Relu, 2048²", "y = Relu(x)"),
    _map("Clip, 2048²", "y = Clip(x, lo, hi)", initializers="float lo = {-1}, float hi = {1}"),
    _map("Sqrt of Abs, 2048²", "a = Abs(x) y = Sqrt(a)"),
    _map("Exp, 2048²", "y = Exp(x)", bound_by_memory=False),
    _map("Log of Abs, 2048²", "a = Abs(x) y = Log(a)", bound_by_memory=False),
    _map("Sigmoid, 2048²", "y = Sigmoid(x)", bound_by_memory=False),
    _map("Tanh, 2048²", "y = Tanh(x)", bound_by_memory=False),
    _map("Erf, 2048²", "y = Erf(x)", bound_by_memory=False),
    _map("Gelu, 2048²", "y = Gelu(x)", bound_by_memory=False),
    _map("Softplus, 2048²", "y = Softplus(x)", bound_by_memory=False),
    _map("HardSwish, 2048²", "y = HardSwish(x)"),
    Operator(
        "Where, 2048²", "bool[2048,2048] c, float[2048,2048] a, float[2048,2048] b", "float[2048,2048] y",
        "y = Where(c, a, b)",
    ),
    Operator("Greater, 2048²", "float[2048,2048] a, float[2048,2048] b", "bool[2048,2048] y", "y = Greater(a, b)"),
    Operator("Cast to f16, 2048²", "float[2048,2048] x", "float16[2048,2048] y", "y = Cast<to=10>(x)"),
    Operator("Cast from u8, 2048²", "uint8[2048,2048] x", "float[2048,2048] y", "y = Cast<to=1>(x)"),
    Operator(
        "QuantizeLinear, 2048²", "float[2048,2048] x", "uint8[2048,2048] y", "y = QuantizeLinear(x, s, z)",
        "float s = {0.02}, uint8 z = {128}",
    ),
    # Movement.
    Operator("Transpose, 2048²", "float[2048,2048] x", "float[2048,2048] y", "y = Transpose<perm=[1,0]>(x)"),
    Operator("Transpose, 2048² of u8", "uint8[2048,2048] x", "uint8[2048,2048] y", "y = Transpose<perm=[1,0]>(x)"),
    Operator("Transpose, 2048² of f16", "float16[2048,2048] x", "float16[2048,2048] y", "y = Transpose<perm=[1,0]>(x)"),
    Operator(
        "Transpose to NHWC, 64 × 256²", "float[1,64,256,256] x", "float[1,256,256,64] y",
        "y = Transpose<perm=[0,2,3,1]>(x)",
    ),
    Operator(
        "Transpose to NCHW, 256² × 64", "float[1,256,256,64] x", "float[1,64,256,256] y",
        "y = Transpose<perm=[0,3,1,2]>(x)",
    ),
    Operator(
        "Transpose of image rows, 256² × 3", "float[1,1024,1024,3] x", "float[1,3,1024,1024] y",
        "y = Transpose<perm=[0,3,1,2]>(x)",
    ),
    Operator(
        "Transpose of heads, 2048 × 16 × 64", "float[2,2048,16,64] x", "float[2,16,2048,64] y",
        "y = Transpose<perm=[0,2,1,3]>(x)",
    ),
    Operator(
        "Transpose of all, 160³", "float[160,160,160] x", "float[160,160,160] y", "y = Transpose<perm=[2,1,0]>(x)"
    ),
    _image("Pad with zeros by 8", 272, "y = Pad(x, p)", "int64[8] p = {0,0,8,8,0,0,8,8}"),
    _image("Pad with edges by 8", 272, 'y = Pad<mode="edge">(x, p)', "int64[8] p = {0,0,8,8,0,0,8,8}"),
    _image("Pad by reflection by 8", 272, 'y = Pad<mode="reflect">(x, p)', "int64[8] p = {0,0,8,8,0,0,8,8}"),
    Operator(
        "Concat of channels, 64 × 256²", "float[1,32,256,256] a, float[1,32,256,256] b", "float[1,64,256,256] y",
        "y = Concat<axis=1>(a, b)",
    ),
    Operator(
        "Concat of columns, 2048²", "float[2048,1024] a, float[2048,1024] b", "float[2048,2048] y",
        "y = Concat<axis=1>(a, b)",
    ),
    _image(
        "Slice of the middle, 240²", 240, "y = Slice(x, s, e, a)",
        "int64[2] s = {8,8}, int64[2] e = {248,248}, int64[2] a = {2,3}", read=240**2 / 256**2,
    ),
    _image(
        "Slice of every other column", 256, "y = Slice(x, s, e, a, t)",
        "int64[1] s = {0}, int64[1] e = {256}, int64[1] a = {3}, int64[1] t = {2}", width=128,
    ),
    _image(
        "Slice backwards", 256, "y = Slice(x, s, e, a, t)",
        "int64[1] s = {-1}, int64[1] e = {-1000}, int64[1] a = {3}, int64[1] t = {-1}",
    ),
    Operator("Expand, 2048²", "float[2048,1] x", "float[2048,2048] y", "y = Expand(x, s)", "int64[2] s = {2048,2048}"),
    Operator("Tile, 1024² to 2048²", "float[1024,1024] x", "float[2048,2048] y", "y = Tile(x, r)", "int64[2] r = {2,2}"),
    Operator(
        "Gather of rows, 16384 × 256", "float[10000,256] x, int64[16384] i", "float[16384,256] y", "y = Gather(x, i)",
        read=16384 / 10000,
    ),
    Operator(
        "GatherElements, 2048²", "float[2048,2048] x, int64[2048,2048] i", "float[2048,2048] y",
        "y = GatherElements<axis=1>(x, i)",
    ),
    Operator(
        "DepthToSpace, 64 × 256²", "float[1,64,256,256] x", "float[1,16,512,512] y", "y = DepthToSpace<blocksize=2>(x)"
    ),
    Operator(
        "SpaceToDepth, 64 × 256²", "float[1,64,256,256] x", "float[1,256,128,128] y", "y = SpaceToDepth<blocksize=2>(x)"
    ),
    _image(
        "Resize, nearest, × 2", 512, 'y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", '
        'nearest_mode="floor">(x, , s)', "float[4] s = {1,1,2,2}",
    ),
    _image(
        "Resize, linear, × 2", 512, 'y = Resize<mode="linear">(x, , s)', "float[4] s = {1,1,2,2}", bound_by_memory=False
    ),
    # Reductions and normalisations.
    _fold("ReduceSum of rows, 4096 × 1024", "4096", "y = ReduceSum<keepdims=0>(x, a)", "int64[1] a = {1}"),
    _fold("ReduceSum of columns, 4096 × 1024", "1024", "y = ReduceSum<keepdims=0>(x, a)", "int64[1] a = {0}"),
    _fold(
        "ReduceSum of the middle, 64 × 256 × 256", "64,256", "y = ReduceSum<keepdims=0>(x, a)", "int64[1] a = {1}",
        source="64,256,256",
    ),
    _fold("ReduceMax of rows, 4096 × 1024", "4096", "y = ReduceMax<keepdims=0>(x, a)", "int64[1] a = {1}"),
    _fold("ReduceMax of columns, 4096 × 1024", "1024", "y = ReduceMax<keepdims=0>(x, a)", "int64[1] a = {0}"),
    Operator(
        "ArgMax of rows, 4096 × 1024", "float[4096,1024] x", "int64[4096,1] y", "y = ArgMax<axis=1>(x)",
        bound_by_memory=False,
    ),
    _fold("GlobalAveragePool, 64 × 256²", "1,64,1,1", "y = GlobalAveragePool(x)", source="1,64,256,256"),
    _fold("Softmax of rows, 4096 × 1024", "4096,1024", "y = Softmax<axis=1>(x)", bound_by_memory=False),
    _fold("LogSoftmax of rows, 4096 × 1024", "4096,1024", "y = LogSoftmax<axis=1>(x)", bound_by_memory=False),
    _fold(
        "Softmax of channels, 64 × 256²", "1,64,256,256", "y = Softmax<axis=1>(x)", source="1,64,256,256",
        bound_by_memory=False,
    ),
    Operator(
        "LayerNormalization, 4096 × 1024", "float[4096,1024] x, float[1024] g, float[1024] b", "float[4096,1024] y",
        "y = LayerNormalization<axis=1>(x, g, b)",
    ),
    Operator(
        "InstanceNormalization, 64 × 256²", "float[1,64,256,256] x, float[64] g, float[64] b", "float[1,64,256,256] y",
        "y = InstanceNormalization(x, g, b)",
    ),
    _fold("CumSum of rows, 4096 × 1024", "4096,1024", "y = CumSum(x, a)", "int64 a = {1}", bound_by_memory=False),
    _image("MaxPool, 2 × 2", 128, "y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)"),
    _image("AveragePool, 3 × 3", 256, "y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)", bound_by_memory=False),
    _fold("ReduceL2 of rows, 4096 × 1024", "4096", "y = ReduceL2<keepdims=0>(x, a)", "int64[1] a = {1}"),
)  # fmt: skip
