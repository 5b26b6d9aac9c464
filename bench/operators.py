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
    #: (input, low, high): what its elements are between, where what an input usually has does not do.
    ranges: tuple = ()
    #: Inputs that are part of the model.
    constants: tuple = ()
    opset: int = 20

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
            f'<ir_version: {9 if self.opset < 21 else 11}, opset_import: ["" : {self.opset}]>\n'
            f"operator ({self.inputs}) => ({self.output}){initializers} {{ {self.code} }}"
        )
        model = onnx.parser.parse_model(text)
        inputs = self.make_inputs(model)
        for name in self.constants:
            model.graph.initializer.append(onnx.numpy_helper.from_array(inputs[name], name))
        given = [info for info in model.graph.input if info.name not in self.constants]
        del model.graph.input[:]
        model.graph.input.extend(given)
        return model

    def make_inputs(self, model):
        """All inputs by name: floats as of a normal distribution, small positive integers, booleans; or `ranges`."""
        rng = np.random.default_rng(5)
        inputs = {info.name: _random(rng, *_type(info)) for info in model.graph.input}
        for name, low, high in self.ranges:
            if name not in inputs:
                continue
            value = inputs[name]
            draw = rng.integers if value.dtype.kind in "iu" else rng.uniform
            inputs[name] = draw(low, high, value.shape).astype(value.dtype)
        return inputs

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


def _lookup(label, inputs, output, code, initializers="", ranges=(), **others):
    """One whose data say where it reads or writes, or that computes more than it moves."""
    return Operator(label, inputs, output, code, initializers, bound_by_memory=False, ranges=ranges, **others)


def _product(label, lhs, rhs, output, code, initializers, **others):
    """One of integers of 8 bits, `lhs` of unsigned ones, with constant weights."""
    return Operator(
        label, f"uint8[{lhs}] x, {rhs} w", output, code, initializers, bound_by_memory=False, constants=("w",),
        ranges=(("x", 0, 256), ("w", 0, 256) if rhs.startswith("u") else ("w", -127, 128)), **others,
    )  # fmt: skip


def _quantised_conv(label, channels, results, extent, kernel, stride=1, group=1):
    """A quantised convolution of `channels` of `extent`² to `results` of them."""
    return _product(
        f"QLinearConv, {label}", f"1,{channels},{extent},{extent}", f"int8[{results},{channels // group},{kernel},{kernel}]",
        f"uint8[1,{results},{extent // stride},{extent // stride}] y",
        f"y = QLinearConv<pads=[{', '.join([str(kernel // 2)] * 4)}], strides=[{stride},{stride}], group={group}>"
        "(x, xs, xz, w, ws, wz, ys, yz)",
        "float xs = {0.02}, uint8 xz = {117}, float ws = {0.01}, int8 wz = {0}, float ys = {0.3}, uint8 yz = {121}",
    )  # fmt: skip


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
    # Scans and selections.
    _fold("CumSum of columns, 4096 × 1024", "4096,1024", "y = CumSum(x, a)", "int64 a = {0}", bound_by_memory=False),
    *(
        _lookup(
            f"TopK, {k} of 4096 × 1024", "float[4096,1024] x", f"float[4096,{k}] y", "y, j = TopK(x, k)",
            f"int64[1] k = {{{k}}}",
        )
        for k in (10, 512)
    ),
    _lookup(
        "OneHot, 65536 × 64", "int64[65536] i", "float[65536,64] y", "y = OneHot(i, d, v)",
        "int64 d = {64}, float[2] v = {0, 1}",
    ),
    _lookup("NonZero, 2048²", "bool[2048,2048] x", "int64[2,N] y", "y = NonZero(x)"),
    _lookup(
        "Compress of rows, 16384 × 256", "float[16384,256] x, bool[16384] c", "float[N,256] y",
        "y = Compress<axis=0>(x, c)",
    ),
    _lookup("Unique, 65536", "float[65536] x", "float[N] y", "y = Unique(x)", ranges=(("x", 0, 1),)),
    _lookup(
        "NonMaxSuppression, 2000 boxes", "float[1,2000,4] b, float[1,4,2000] s", "int64[N,3] y",
        "y = NonMaxSuppression<center_point_box=1>(b, s, k, t)", "int64 k = {100}, float t = {0.5}",
        ranges=(("b", 0, 1), ("s", 0, 1)),
    ),
    # Lookups and scatters.
    _lookup(
        "GatherND, 65536 of 512² × 16", "float[512,512,16] x, int64[65536,2] i", "float[65536,16] y",
        "y = GatherND(x, i)", ranges=(("i", 0, 512),),
    ),
    _lookup(
        "ScatterND, add, 65536 to 512² × 16", "float[512,512,16] x, int64[65536,2] i, float[65536,16] u",
        "float[512,512,16] y", 'y = ScatterND<reduction="add">(x, i, u)', ranges=(("i", 0, 512),),
    ),
    _lookup(
        "ScatterElements, add, 2048 × 1024", "float[2048,1024] x, int64[2048,1024] i, float[2048,1024] u",
        "float[2048,1024] y", 'y = ScatterElements<axis=0, reduction="add">(x, i, u)', ranges=(("i", 0, 2048),),
    ),
    _lookup(
        "GridSample, linear, 64 × 256²", "float[1,64,256,256] x, float[1,256,256,2] g", "float[1,64,256,256] y",
        'y = GridSample<mode="linear">(x, g)', ranges=(("g", -1, 1),),
    ),
    _lookup(
        "GridSample, cubic, 16 × 128²", "float[1,16,128,128] x, float[1,128,128,2] g", "float[1,16,128,128] y",
        'y = GridSample<mode="cubic", padding_mode="border">(x, g)', ranges=(("g", -1, 1),),
    ),
    _lookup(
        "DeformConv, 3 × 3, 64 to 64, 64²", "float[1,64,64,64] x, float[64,64,3,3] w, float[1,18,64,64] o",
        "float[1,64,64,64] y", "y = DeformConv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w, o)",
    ),
    _lookup(
        "RoiAlign, 256 of 64 × 64²", "float[1,64,64,64] x, float[256,4] r, int64[256] b", "float[256,64,7,7] y",
        "y = RoiAlign<output_height=7, output_width=7>(x, r, b)",
        ranges=(("r", (0, 0, 32, 32), (31, 31, 63, 63)), ("b", 0, 1)),
    ),
    _lookup(
        "MaxRoiPool, 256 of 64 × 64²", "float[1,64,64,64] x, float[256,5] r", "float[256,64,7,7] y",
        "y = MaxRoiPool<pooled_shape=[7,7]>(x, r)", ranges=(("r", (0, 0, 0, 32, 32), (0.1, 31, 31, 63, 63)),),
    ),
    _lookup(
        "MaxUnpool, 64 × 128² to 256²", "float[1,64,128,128] x, int64[1,64,128,128] i", "float[1,64,256,256] y",
        "y = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(x, i)", ranges=(("i", 0, 64 * 256 * 256),),
    ),
    _lookup(
        "Col2Im, 32 × 3² to 128²", "float[1,288,16384] x", "float[1,32,128,128] y",
        "y = Col2Im<pads=[1,1,1,1]>(x, s, k)", "int64[2] s = {128,128}, int64[2] k = {3,3}",
    ),
    _image(
        "Resize, linear with antialias, × 1/2", 128, 'y = Resize<mode="linear", antialias=1>(x, , s)',
        "float[4] s = {1,1,0.5,0.5}", bound_by_memory=False,
    ),
    _image(
        "Resize, cubic with antialias, × 1/2", 128, 'y = Resize<mode="cubic", antialias=1>(x, , s)',
        "float[4] s = {1,1,0.5,0.5}", bound_by_memory=False,
    ),
    # Spectra.
    *(
        _lookup(
            f"DFT of {length}, {rows} rows", f"float[{rows},{length},2] x", f"float[{rows},{length},2] y",
            "y = DFT(x, , a)", "int64 a = {1}",
        )
        for length, rows in ((64, 4096), (1024, 256), (1000, 256), (2187, 128), (1009, 64))
    ),
    _lookup(
        "STFT, 256 of 65536", "float[1,65536,1] x", "float[1,511,129,2] y", "y = STFT<onesided=1>(x, s, , n)",
        "int64 s = {128}, int64 n = {256}",
    ),
    # Products.
    _lookup(
        "Einsum, bij,bjk->bik, 16 × 256³", "float[16,256,256] a, float[16,256,256] b", "float[16,256,256] y",
        'y = Einsum<equation="bij,bjk->bik">(a, b)',
    ),
    _lookup("Einsum, ii->i, 2048²", "float[2048,2048] x", "float[2048] y", 'y = Einsum<equation="ii->i">(x)'),
    _lookup("Det, 1024 of 16²", "float[1024,16,16] x", "float[1024] y", "y = Det(x)"),
    Operator("Trilu, 2048²", "float[2048,2048] x", "float[2048,2048] y", "y = Trilu<upper=0>(x)"),
    _lookup(
        "RotaryEmbedding, 16 × 2048 × 64", "float[1,16,2048,64] x, float[2048,32] c, float[2048,32] s, int64[1,2048] p",
        "float[1,16,2048,64] y", "y = RotaryEmbedding(x, c, s, p)", opset=23,
    ),
    Operator(
        "RMSNormalization, 4096 × 1024", "float[4096,1024] x, float[1024] g", "float[4096,1024] y",
        "y = RMSNormalization<axis=1>(x, g)", opset=23,
    ),
    _image("LpPool, 2 × 2", 128, "y = LpPool<kernel_shape=[2,2], strides=[2,2]>(x)", bound_by_memory=False),
    # Integers of 8 bits.
    _product(
        "MatMulInteger, 1024³, u8 × i8", "1024,1024", "int8[1024,1024]", "int32[1024,1024] y",
        "y = MatMulInteger(x, w, xz)", "uint8 xz = {117}",
    ),
    _product(
        "MatMulInteger, 1024³, u8 × u8", "1024,1024", "uint8[1024,1024]", "int32[1024,1024] y",
        "y = MatMulInteger(x, w, xz, wz)", "uint8 xz = {117}, uint8 wz = {121}",
    ),
    _product(
        "MatMulInteger, 1 × 1024², u8 × i8", "1,1024", "int8[1024,1024]", "int32[1,1024] y",
        "y = MatMulInteger(x, w, xz)", "uint8 xz = {117}",
    ),
    _quantised_conv("3 × 3, 64 to 64, 112²", 64, 64, 112, 3),
    _quantised_conv("7 × 7, stride 2, 3 to 64, 224²", 3, 64, 224, 7, stride=2),
    _quantised_conv("1 × 1, 256 to 64, 56²", 256, 64, 56, 1),
    _quantised_conv("1 × 1, 64 to 256, 56²", 64, 256, 56, 1),
    _quantised_conv("3 × 3, depthwise, 128, 56²", 128, 128, 56, 3, group=128),
    # Recurrences.
    *(
        _lookup(
            f"{name}, 100 steps of {batch} × 256", f"float[100,{batch},256] x, float[1,{gates * 256},256] w, "
            f"float[1,{gates * 256},256] r", f"float[100,1,{batch},256] y", f"y = {name}<hidden_size=256>(x, w, r)",
            ranges=(("w", -0.06, 0.06), ("r", -0.06, 0.06)), constants=("w", "r"),
        )
        for name, gates, batch in (("LSTM", 4, 1), ("LSTM", 4, 16), ("GRU", 3, 1), ("GRU", 3, 16))
    ),
)  # fmt: skip
