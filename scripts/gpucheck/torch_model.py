# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds a PyTorch module from a model's nodes, for the operators of the models that are measured.

What depends on constants and shapes alone is computed once, so that a run does what hand-written PyTorch would do.
"""

import numpy as np
import torch
import torch.nn.functional as F


class Unsupported(Exception):
    """The model has what this module does not translate."""


class _Value:
    """A value while the module is built: what it is for the example inputs, and the node of the graph that computes it
    (none for constants)."""

    def __init__(self, example, node=None):
        self.example, self.node = example, node

    def ints(self):
        if self.node is not None:
            raise Unsupported("a shape that depends on the input's values")
        return [int(v) for v in self.example.reshape(-1).tolist()]

    def item(self):
        return self.example.item()

    @property
    def rank(self):
        return self.example.dim()


class _Builder:
    def __init__(self, device):
        self.device = device
        self.graph = torch.fx.Graph()
        self.root = torch.nn.Module()
        self._count = 0

    def constant(self, array):
        return _Value(torch.from_numpy(np.array(array)))

    def _node(self, value):
        """The graph's node for a value; constants become buffers."""
        if value.node is None:
            name = f"constant{self._count}"
            self._count += 1
            self.root.register_buffer(name, value.example.to(self.device))
            value.node = self.graph.get_attr(name)
            value.example = value.example.to(self.device)
        return value.node

    def call(self, function, *arguments, **options):
        """`function` of values, lists of values and other things; computed at once if no value depends on the input."""
        flat = [v for a in arguments for v in (a if isinstance(a, list) else [a]) if isinstance(v, _Value)]
        live = any(v.node is not None for v in flat)

        def mapped(convert):
            one = lambda a: convert(a) if isinstance(a, _Value) else a
            return [[one(v) for v in a] if isinstance(a, list) else one(a) for a in arguments]

        nodes = mapped(self._node) if live else None
        with torch.no_grad():
            example = function(*mapped(lambda v: v.example), **options)
        return _Value(example, self.graph.call_function(function, tuple(nodes), options) if live else None)


def _pads(attributes, rank):
    """(symmetric padding, or None; torch's list for F.pad)."""
    if attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise Unsupported(f"auto_pad {attributes['auto_pad']}")
    pads = attributes.get("pads", [0] * 2 * rank)
    begins, ends = pads[:rank], pads[rank:]
    listed = [p for pair in reversed(list(zip(begins, ends))) for p in pair]
    return (begins if begins == ends else None), listed


def _conv(b, a, x, weight, bias=None):
    rank = x.rank - 2
    padding, listed = _pads(a, rank)
    if padding is None:
        x, padding = b.call(F.pad, x, listed), [0] * rank
    function = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    ones = [1] * rank
    return b.call(
        function, x, weight, bias, stride=a.get("strides", ones), padding=padding, dilation=a.get("dilations", ones),
        groups=a.get("group", 1),
    )  # fmt: skip


def _conv_transpose(b, a, x, weight, bias=None):
    rank = x.rank - 2
    padding, _ = _pads(a, rank)
    if padding is None or "output_shape" in a:
        raise Unsupported("a transposed convolution with uneven padding")
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    ones = [1] * rank
    return b.call(
        function, x, weight, bias, stride=a.get("strides", ones), padding=padding,
        output_padding=a.get("output_padding", [0] * rank), groups=a.get("group", 1), dilation=a.get("dilations", ones),
    )  # fmt: skip


def _batch_norm(b, a, x, scale, shift, mean, variance):
    return b.call(F.batch_norm, x, mean, variance, scale, shift, training=False, eps=a.get("epsilon", 1e-5))


def _max_pool(b, a, x):
    rank = x.rank - 2
    padding, _ = _pads(a, rank)
    if padding is None or a.get("ceil_mode", 0):
        raise Unsupported("a pooling with uneven padding or ceil_mode")
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    return b.call(function, x, a["kernel_shape"], stride=a.get("strides", [1] * rank), padding=padding)


def _gemm(b, a, x, y, z=None):
    if a.get("alpha", 1.0) != 1 or a.get("beta", 1.0) != 1 or a.get("transA", 0):
        raise Unsupported("Gemm with factors or a transposed first operand")
    weight = y if a.get("transB", 0) else b.call(torch.transpose, y, 0, 1)
    return b.call(F.linear, x, weight, z)


def _divide(b, a, x, y):
    whole = not x.example.is_floating_point()
    return b.call(torch.div, x, y, rounding_mode="trunc") if whole else b.call(torch.div, x, y)


def _reshape(b, a, x, shape):
    kept = [x.example.shape[i] if v == 0 and not a.get("allowzero", 0) else v for i, v in enumerate(shape.ints())]
    return b.call(torch.reshape, x, kept)


def _shape(b, a, x):
    return _Value(torch.tensor(x.example.shape, dtype=torch.int64))


def _gather(b, a, x, indices):
    if indices.rank == 0:
        return b.call(torch.select, x, a.get("axis", 0), int(indices.item()))
    if indices.rank == 1:
        return b.call(torch.index_select, x, a.get("axis", 0), indices)
    raise Unsupported("Gather with indices of several dimensions")


def _slice(b, a, x, starts, ends, axes=None, steps=None):
    axes = axes.ints() if axes else range(len(starts.ints()))
    steps = steps.ints() if steps else [1] * len(starts.ints())
    for start, end, axis, step in zip(starts.ints(), ends.ints(), axes, steps):
        # Python clamps as ONNX does.
        positions = list(range(x.example.shape[axis]))[start:end:step]
        if step > 0:
            last = positions[-1] + 1 if positions else 0
            first = positions[0] if positions else 0
            x = b.call(torch.ops.aten.slice.Tensor, x, axis, first, last, step)
        else:
            x = b.call(torch.index_select, x, axis, _Value(torch.tensor(positions)))
    return x


def _concat(b, a, *values):
    return b.call(torch.cat, list(values), dim=a["axis"])


def _unsqueeze(b, a, x, axes=None):
    axes = axes.ints() if axes else a["axes"]
    rank = x.rank + len(axes)
    for axis in sorted(v % rank for v in axes):
        x = b.call(torch.unsqueeze, x, axis)
    return x


def _split(b, a, x, sizes=None):
    axis = a.get("axis", 0)
    extent, count = x.example.shape[axis], a["outputs"]
    size = -(-extent // count)
    parts = sizes.ints() if sizes else a.get("split", [min(size, extent - size * i) for i in range(count)])
    bounds = np.concatenate([[0], np.cumsum(parts)]).tolist()
    return [b.call(torch.narrow, x, axis, low, high - low) for low, high in zip(bounds, bounds[1:])]


def _pad(b, a, x, pads, value=None):
    if a.get("mode", "constant") != "constant":
        raise Unsupported(f"Pad with mode {a['mode']}")
    _, listed = _pads({"pads": pads.ints()}, x.rank)
    return b.call(F.pad, x, listed, value=float(value.item()) if value else 0.0) if any(listed) else x


def _resize(b, a, x, roi=None, scales=None, sizes=None):
    rank = x.rank - 2
    if sizes is not None:
        target = sizes.ints()
    else:
        target = [int(n * s) for n, s in zip(x.example.shape, scales.example.tolist())]
    if list(x.example.shape[:2]) != target[:2]:
        raise Unsupported("Resize of batch or channels")
    mode, coordinates = a.get("mode", "nearest"), a.get("coordinate_transformation_mode", "half_pixel")
    if mode == "nearest" and coordinates == "asymmetric" and a.get("nearest_mode") == "floor":
        return b.call(F.interpolate, x, size=target[2:], mode="nearest")
    if mode == "linear" and coordinates in ("half_pixel", "pytorch_half_pixel"):
        linear = ("linear", "bilinear", "trilinear")[rank - 1]
        return b.call(F.interpolate, x, size=target[2:], mode=linear, align_corners=False)
    raise Unsupported(f"Resize {mode}, {coordinates}")


def _mean(b, a, x, axes=None):
    axes = axes.ints() if axes else a["axes"]
    return b.call(torch.mean, x, dim=axes, keepdim=bool(a.get("keepdims", 1)))


def _global_mean(b, a, x):
    return b.call(torch.mean, x, dim=list(range(2, x.rank)), keepdim=True)


def _clip(b, a, x, low=None, high=None):
    low = low.item() if low else a.get("min")
    high = high.item() if high else a.get("max")
    return b.call(torch.clamp, x, min=low, max=high)


def _hard_sigmoid(b, a, x):
    scaled = b.call(torch.add, b.call(torch.mul, x, a.get("alpha", 0.2)), a.get("beta", 0.5))
    return b.call(torch.clamp, scaled, min=0.0, max=1.0)


def _flatten(b, a, x):
    axis = a.get("axis", 1)
    return b.call(torch.reshape, x, [int(np.prod(x.example.shape[:axis])), -1])


def _layer_norm(b, a, x, scale, shift=None):
    axis = a.get("axis", -1) % x.rank
    return b.call(F.layer_norm, x, list(x.example.shape[axis:]), scale, shift, eps=a.get("epsilon", 1e-5))


def _instance_norm(b, a, x, scale, shift):
    # With the statistics of the input.
    return b.call(torch.instance_norm, x, scale, shift, None, None, True, 0.0, a.get("epsilon", 1e-5), True)


def _elementwise(function):
    return lambda b, a, *values: b.call(function, *values)


_HANDLERS = {
    "Add": _elementwise(torch.add), "BatchNormalization": _batch_norm, "Clip": _clip, "Concat": _concat,
    "Conv": _conv, "ConvTranspose": _conv_transpose, "Div": _divide, "Erf": _elementwise(torch.erf),
    "Expand": lambda b, a, x, shape: b.call(torch.broadcast_to, x, shape.ints()), "Flatten": _flatten,
    "Gather": _gather, "Gemm": _gemm, "GlobalAveragePool": _global_mean, "HardSigmoid": _hard_sigmoid,
    "Identity": lambda b, a, x: x, "InstanceNormalization": _instance_norm, "LayerNormalization": _layer_norm,
    "LeakyRelu": lambda b, a, x: b.call(F.leaky_relu, x, a.get("alpha", 0.01)), "MatMul": _elementwise(torch.matmul),
    "MaxPool": _max_pool, "Mul": _elementwise(torch.mul), "Pad": _pad, "Pow": _elementwise(torch.pow),
    "ReduceMean": _mean, "Relu": _elementwise(F.relu), "Reshape": _reshape, "Resize": _resize, "Shape": _shape,
    "Sigmoid": _elementwise(torch.sigmoid), "Slice": _slice,
    "Softmax": lambda b, a, x: b.call(torch.softmax, x, a.get("axis", -1)), "Split": _split,
    "Sqrt": _elementwise(torch.sqrt), "Sub": _elementwise(torch.sub),
    "Transpose": lambda b, a, x: b.call(torch.permute, x, a["perm"]), "Unsqueeze": _unsqueeze,
}  # fmt: skip


def build(graph, constants, inputs, device, shapes=None):
    """(module, names of its outputs). `graph` is what `pack` wrote; `inputs` are example arrays.

    `shapes`, a dict, gets the shape of each value by name.
    """
    builder = _Builder(device)
    values = {"": None} | {name: builder.constant(array) for name, array in constants.items()}
    for index, (name, array) in enumerate(inputs.items()):
        values[name] = _Value(torch.from_numpy(array).to(device), builder.graph.placeholder(f"input{index}"))
    for node in graph["nodes"]:
        if node["op"] not in _HANDLERS:
            raise Unsupported(f"the operator {node['op']}")
        operands = [values[name] for name in node["inputs"]]
        results = _HANDLERS[node["op"]](builder, node["attributes"] | {"outputs": len(node["outputs"])}, *operands)
        for name, result in zip(node["outputs"], results if isinstance(results, list) else [results]):
            values[name] = result
    if shapes is not None:
        shapes |= {name: tuple(value.example.shape) for name, value in values.items() if value is not None}
    builder.graph.output(tuple(builder._node(values[name]) for name in graph["outputs"]))
    return torch.fx.GraphModule(builder.root, builder.graph).eval(), graph["outputs"]


def channels_last(module, inputs):
    """Weights and inputs with channels innermost in memory; returns the inputs."""

    def converted(tensor):
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        return tensor.contiguous(memory_format=formats[tensor.dim()]) if tensor.dim() in formats else tensor

    for name, buffer in list(module.named_buffers()):
        setattr(module, name, converted(buffer))
    return [converted(value) for value in inputs]
