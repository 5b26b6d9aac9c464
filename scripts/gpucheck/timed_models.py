# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of the profile ten-minutes, their weights, and what they compute at least."""

import functools
import math
import tempfile

import numpy as np
import onnx
from dovetail_models.graph import Graph
from onnx import TensorProto, helper, numpy_helper

from .package import LEAST_BYTES
from .step_work import work_of_node

#: Elements of the block that weights repeat. A prime number: filters and channels are often a multiple of 16 elements
#: apart, and must differ. A block of f32 has 12 bytes less than 64 KiB.
BLOCK = 16381
#: Steps of the scale of weights in an octave.
_STEPS = 2
#: Of these scales, as exponents: weights of 2 to 65 536 terms.
_EXPONENTS = range(-9 * _STEPS, 3)
_SEED = 41


@functools.cache
def _normal():
    """As many random numbers as a block has, with the deviation of He's weights of 576 terms times a power of two."""
    values = np.random.RandomState(_SEED).standard_normal(BLOCK)
    return values * (2 / 576) ** 0.5 * 16


@functools.cache
def block(exponent, dtype):
    """The block that weights of a scale repeat."""
    return (_normal() * 2.0 ** (exponent / _STEPS)).astype(np.float32).astype(dtype)


def blocks():
    """The bytes of all blocks."""
    return [block(exponent, dtype).tobytes() for dtype in (np.float32, np.float16) for exponent in _EXPONENTS]


def with_tiled_weights(model):
    """Gives the large weights of a synthetic model values that repeat a block, with about the deviation that they had.

    Each tensor begins elsewhere in its block: no two of them are equal, so a compiler cannot make one of them.
    """
    begin = 0
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.nbytes < LEAST_BYTES or values.ndim < 2 or not values.std():
            continue
        exponent = round(math.log2(values.std() / _normal().std()) * _STEPS)
        repeated = block(min(max(exponent, _EXPONENTS[0]), _EXPONENTS[-1]), np.float32)
        begin = (begin + 1021) % len(repeated)
        tensor.ClearField("float_data")
        tensor.raw_data = np.resize(np.roll(repeated, -begin), values.size).astype("<f4").tobytes()
    return model


# Single steps, at sizes that are larger than a device's caches.


def convolution(extent, filters, kernel, group=1):
    """A convolution of an image `x`, padded, of as many channels as it has filters."""
    g = Graph("convolution")
    x = g.input("x", [1, filters, extent, extent])
    g.output(g.conv(x, filters, filters, (kernel, kernel), group=group), "y", 4)
    return g.build()


def post_operations(extent, channels):
    """Two convolutions of a pixel. Behind the second: bias, the first as a residual, HardSwish, which cuDNN lacks."""
    g = Graph("post-operations")
    x = g.conv(g.input("x", [1, channels, extent, extent]), channels, channels, (1, 1))
    g.output(g.op("HardSwish", g.op("Add", g.conv(x, channels, channels, (1, 1)), x)), "y", 4)
    return g.build()


def uneven_pads(extent, channels):
    """A convolution that is padded on one side: the runtime copies its input, as cuDNN pads both alike."""
    g = Graph("uneven-pads")
    x = g.input("x", [1, channels, extent, extent])
    g.output(g.conv(x, channels, channels, (1, 1), stride=2, pad=[0, 0, 2, 2]), "y", 4)
    return g.build()


def huge_convolution(channels, filters, height, width, pool):
    """A convolution of the products of a column `a` and a row `b`. Maxima of windows make the output small.

    The device makes the image: to copy one from the host would take seconds.
    """
    g = Graph("huge-convolution")
    a, b = g.input("a", [1, channels, height, 1]), g.input("b", [1, channels, 1, width])
    y = g.conv(g.op("Mul", a, b), channels, filters, (3, 3))
    g.output(g.op("MaxPool", y, kernel_shape=[pool, pool], strides=[pool, pool]), "y", 4)
    return g.build()


def attention(heads, tokens, size, scale):
    """Softmax(scale * q k^T) v, each of (1, heads, tokens, size)."""
    g = Graph("attention")
    q, k, v = (g.input(name, [1, heads, tokens, size]) for name in "qkv")
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.constant(scale))
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), "y", 4)
    return g.build()


def product(rows, terms, columns):
    g = Graph("product")
    a, b = g.input("a", [rows, terms]), g.input("b", [terms, columns])
    g.output(g.op("MatMul", a, b), "y", 2)
    return g.build()


def movement(extent, channels):
    """The image beside a shifted part of it, with zeros at its border: one kernel of ours."""
    g = Graph("movement")
    x = g.input("x", [1, channels, extent, extent])
    inner = g.op("Slice", x, g.ints(1, 3), g.ints(extent - 1, extent - 3), g.ints(2, 3))
    outer = g.op("Pad", inner, g.ints(0, 0, 2, 0, 0, 0, 0, 6))
    g.output(g.op("Concat", x, outer, axis=1), "y", 4)
    return g.build()


def transpose(rows, columns):
    g = Graph("transpose")
    g.output(g.op("Transpose", g.input("x", [rows, columns]), perm=[1, 0]), "y", 2)
    return g.build()


def softmax(rows, columns):
    g = Graph("softmax")
    g.output(g.op("Softmax", g.input("x", [rows, columns]), axis=-1), "y", 2)
    return g.build()


def layer_norm(rows, columns):
    g = Graph("layer-norm")
    scale, shift = g.weight(g.uniform((columns,), 0.5, 1.5)), g.weight(g.normal((columns,), 0.2))
    g.output(g.op("LayerNormalization", g.input("x", [rows, columns]), scale, shift, axis=-1), "y", 2)
    return g.build()


def transform(batch, extent):
    """The Fourier transform of complex images."""
    g = Graph("transform")
    x = g.input("x", [batch, extent, extent, 2])
    g.output(g.op("DFT", g.op("DFT", x, axis=2), axis=1), "y", 4)
    return g.build()


def halo(width, channels, height):
    """Maxima of three rows: ranks that share the rows exchange one row of each neighbour."""
    g = Graph("halo")
    x = g.input("x", [1, channels, height, width])
    g.output(g.op("MaxPool", x, kernel_shape=[3, 1], strides=[1, 1], pads=[1, 0, 1, 0]), "y", 4)
    return g.build()


def negation(extent):
    """Nothing to do but for exchanges, where its input and output are split along other dimensions."""
    g = Graph("negation")
    g.output(g.op("Neg", g.input("x", [extent, extent])), "y", 2)
    return g.build()


# What a model does at least.


def _folded(model):
    """The model as ONNX Runtime simplifies it: exporters compute shapes by nodes, which shape inference does not."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        options.optimized_model_filepath = f"{folder}/model.onnx"
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def _shapes(model):
    """Shapes of values by name, where they are known."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    infos = [*inferred.input, *inferred.value_info, *inferred.output]
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in infos}
    return shapes | {t.name: list(t.dims) for t in model.graph.initializer}


def _known(shapes, name):
    shape = shapes.get(name)
    if not shape or not all(shape):
        raise ValueError(f"the shape of {name} is not known, so nor is what the model computes")
    return shape


def work(model):
    """The work of a model with elements of its type, as a dictionary.

    "flops": of products and transforms; a multiplication and an addition are 2. "bytes": of inputs, weights, outputs.
    "layer_bytes": of operands and results of all products, convolutions and transforms.
    """
    model = _folded(model)
    shapes = _shapes(model)
    width = helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type).itemsize
    flops, moved = 0, 0
    for node in model.graph.node:
        if node.op_type not in ("Conv", "ConvTranspose", "MatMul", "Gemm", "DFT"):
            continue
        first, result = _known(shapes, node.input[0]), _known(shapes, node.output[0])
        if node.op_type == "DFT":
            (axis,) = (a.i for a in node.attribute if a.name == "axis")
            flops += int(5 * math.prod(result[:-1]) * math.log2(result[axis]))
            moved += width * (math.prod(first) + math.prod(result))
            continue
        described = {"op": node.op_type, "inputs": node.input, "outputs": node.output,
                     "attributes": {a.name: a.i for a in node.attribute}}  # fmt: skip
        known = {name: _known(shapes, name) for name in (*node.input[:2], node.output[0])}
        found = work_of_node(described, known, width)
        flops += found["flops"]
        moved += found["bytes"]
    graph = model.graph
    weights = sum(math.prod(t.dims) for t in graph.initializer if t.data_type != TensorProto.INT64)
    ends = sum(math.prod(_known(shapes, i.name)) for i in [*graph.input, *graph.output])
    return {"flops": flops, "bytes": width * (weights + ends), "layer_bytes": moved}
