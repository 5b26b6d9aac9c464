# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expected values of timed programs, in some boxes of their outputs.

Each function returns a list of (output, starts of its box, values). ONNX Runtime computes the values, or NumPy in f64.
An image that is too large for this machine is computed in crops. A pixel of a crop is the same as in the whole image if
it lies farther from the border of the crop than the model reaches.
"""

import itertools
import math

import numpy as np
import onnx
from dovetail_models import onnxruntime_session

from . import inputs

#: About so many elements of an output are compared.
_ELEMENTS = 8192
#: Boxes that are taken from an output, besides those at its corners.
_INNER = 4
#: Elements of a box along its last dimension, at most.
_LONGEST = 32


def with_exact_norms(model):
    """The model with InstanceNormalization in f64. In f32 ONNX Runtime's statistics of 16 million elements are off by
    so much that results of a 3-D U-Net are off by 4e-4."""
    if all(node.op_type != "InstanceNormalization" for node in model.graph.node):
        return model
    inferred = onnx.shape_inference.infer_shapes(model).graph
    ranks = {info.name: len(info.type.tensor_type.shape.dim) for info in (*inferred.input, *inferred.value_info)}
    exact, nodes = onnx.ModelProto(), []
    exact.CopyFrom(model)
    for number, node in enumerate(model.graph.node):
        if node.op_type != "InstanceNormalization":
            nodes.append(node)
            continue
        axes = list(range(2, ranks[node.input[0]]))
        (epsilon,) = [a.f for a in node.attribute if a.name == "epsilon"] or [1e-5]
        names = itertools.count()

        def add(op, *operands, **attributes):
            name = f"exact{number}_{next(names)}"
            nodes.append(onnx.helper.make_node(op, operands, [name], **attributes))
            return name

        def constant(array):
            return add("Constant", value=onnx.numpy_helper.from_array(array))

        def per_channel(name):
            wide = add("Cast", name, to=onnx.TensorProto.DOUBLE)
            return add("Unsqueeze", wide, constant(np.array([0, *axes], np.int64)))

        x = add("Cast", node.input[0], to=onnx.TensorProto.DOUBLE)
        centered = add("Sub", x, add("ReduceMean", x, axes=axes))
        variance = add("ReduceMean", add("Mul", centered, centered), axes=axes)
        deviation = add("Sqrt", add("Add", variance, constant(np.array(epsilon))))
        factor = add("Div", per_channel(node.input[1]), deviation)
        result = add("Add", add("Mul", centered, factor), per_channel(node.input[2]))
        nodes.append(onnx.helper.make_node("Cast", [result], node.output, to=onnx.TensorProto.FLOAT))
    del exact.graph.node[:]
    exact.graph.node.extend(nodes)
    return exact


def run(model, values):
    """All outputs by name, by ONNX Runtime."""
    session = onnxruntime_session(with_exact_norms(model))
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, values)))


def _places(shape, sizes, seed):
    """Where boxes of `sizes` begin: at the corners of an array, and somewhere in it."""
    most = [extent - size for extent, size in zip(shape, sizes)]
    corners = list(itertools.product(*[sorted({0, m}) for m in most]))
    rng = np.random.RandomState(seed)
    inner = [tuple(int(rng.randint(0, m + 1)) for m in most) for _ in range(_INNER)]
    # Eight corners at most, the first and the last among them.
    corners = [corners[round(i)] for i in np.linspace(0, len(corners) - 1, min(8, len(corners)))]
    return list(dict.fromkeys([*corners, *inner]))


def _sizes(shape):
    """The sizes of a box, so that all boxes of an output have about `_ELEMENTS` elements."""
    each, sizes = max(1, _ELEMENTS // (8 + _INNER)), []
    for extent in reversed(shape):
        sizes.insert(0, min(extent, _LONGEST, each))
        each = max(1, each // sizes[0])
    return sizes


def whole(model, values):
    """Small outputs as they are, and boxes of larger ones, of a model that this machine can run."""
    found = []
    for seed, (name, output) in enumerate(run(model, values).items()):
        if output.size <= _ELEMENTS:
            found.append((name, (0,) * output.ndim, output))
            continue
        sizes = _sizes(output.shape)
        for starts in _places(output.shape, sizes, seed):
            box = tuple(slice(s, s + n) for s, n in zip(starts, sizes))
            found.append((name, starts, output[box]))
    return found


def in_crops(build, items, extents, rows=16, columns=32, margin=64, align=8, stride=1):
    """Boxes of a model of images. `build(height, width)` makes the model; `items` are its inputs, as in the manifest.

    `extents` are (height, width) of the image. No element depends on pixels more than `margin` away. Crops begin at
    multiples of `align` pixels. An output has an element for `stride` pixels in each dimension.
    """
    sizes = (rows, columns)
    models, found = {}, []
    for starts in _places([extent // stride for extent in extents], sizes, seed=0):
        ranges = []
        for start, size, extent in zip(starts, sizes, extents):
            low = max(0, start * stride - margin) // align * align
            high = min(extent, -(-((start + size) * stride + margin) // align) * align)
            ranges.append((low, high))
        shape = tuple(high - low for low, high in ranges)
        if shape not in models:
            models[shape] = build(*shape)
        for name, output in run(models[shape], {i["name"]: _crop(i, ranges) for i in items}).items():
            begins = [start - low // stride for start, (low, _) in zip(starts, ranges)]
            inner = [slice(begin, begin + size) for begin, size in zip(begins, sizes)]
            found.append((name, (0, 0, *starts), output[:, :, *inner]))
    return found


def _crop(item, ranges):
    """The part of an image, or of a row or a column that stands for one."""
    batch, channels, *extents = item["shape"]
    parts = [(0, 1) if extent == 1 else part for extent, part in zip(extents, ranges)]
    starts, sizes = [low for low, _ in parts], [high - low for low, high in parts]
    return inputs.crop(item, [0, 0, *starts], [batch, channels, *sizes])


def attention(items, scale, rows=4):
    """Rows of softmax(scale * q k^T) v, in the first, a middle and the last head."""
    _, heads, tokens, size = items[0]["shape"]
    found = []
    for head, start in zip(sorted({0, heads // 2, heads - 1}), (0, tokens // 2, tokens - rows)):
        part = lambda item, first, count: inputs.crop(item, [0, head, first, 0], [1, 1, count, size])[0, 0]
        q, k, v = part(items[0], start, rows).astype(float), part(items[1], 0, tokens), part(items[2], 0, tokens)
        scores = scale * (q @ k.T)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        values = (weights / weights.sum(axis=1, keepdims=True)) @ v
        found.append(("y", (0, head, start, 0), values[None, None].astype(np.float32)))
    return found


def product(items, size=32):
    """Boxes of the product of two matrices."""
    (rows, terms), (_, columns) = (item["shape"] for item in items)
    sizes = (min(size, rows), min(size, columns))
    found = []
    for row, column in _places((rows, columns), sizes, seed=0):
        a = inputs.crop(items[0], [row, 0], [sizes[0], terms]).astype(float)
        b = inputs.crop(items[1], [0, column], [terms, sizes[1]]).astype(float)
        found.append(("y", (row, column), (a @ b).astype(np.float32)))
    return found


def tells(found):
    """Why these values would not tell errors, or nothing. The values of an output must be numbers that differ."""
    for name in dict.fromkeys(name for name, _, _ in found):
        values = np.concatenate([values.reshape(-1) for output, _, values in found if output == name])
        if not np.isfinite(values).all() or not math.isfinite(float(values.std())):
            return f"{name} is not finite"
        if values.std() <= 1e-2 * np.abs(values).max():
            return f"{name} is nearly constant"
    return ""
