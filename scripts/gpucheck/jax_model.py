# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a graph of ONNX nodes in JAX: the operators of the convolutional models, as `jax.lax` has them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

#: Of products of f32: with factors as they are, or of 10 bits.
PRECISIONS = {"f32": "highest", "tf32": "tensorfloat32"}


class Unsupported(Exception):
    """A node that is not translated."""


def _is_known(values):
    return all(v is None or isinstance(v, (np.ndarray, np.generic)) for v in values)


def _numpy(values):
    """NumPy for what is known before a run, such as shapes, else JAX."""
    return np if _is_known(values) else jnp


def _pairs(attributes, rank):
    if attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise Unsupported(f"auto_pad {attributes['auto_pad']}")
    pads = attributes.get("pads", [0] * 2 * rank)
    return list(zip(pads[:rank], pads[rank:]))


def _shift(rank, bias):
    return bias.reshape([1, -1] + [1] * rank)


def _conv(a, x, weight, bias=None):
    rank = x.ndim - 2
    ones = [1] * rank
    result = lax.conv_general_dilated(
        x, weight, a.get("strides", ones), _pairs(a, rank), rhs_dilation=a.get("dilations", ones),
        feature_group_count=a.get("group", 1),
    )  # fmt: skip
    return result if bias is None else result + _shift(rank, bias)


def _conv_transpose(a, x, weight, bias=None):
    rank = x.ndim - 2
    ones = [1] * rank
    if a.get("group", 1) != 1 or "output_shape" in a or a.get("dilations", ones) != ones:
        raise Unsupported("ConvTranspose with groups, dilations or an output shape")
    more = a.get("output_padding", [0] * rank)
    taps = weight.shape[2:]
    pads = [(k - 1 - low, k - 1 - high + m) for k, (low, high), m in zip(taps, _pairs(a, rank), more)]
    flipped = jnp.flip(weight, range(2, weight.ndim)).swapaxes(0, 1)
    result = lax.conv_general_dilated(x, flipped, ones, pads, lhs_dilation=a.get("strides", ones))
    return result if bias is None else result + _shift(rank, bias)


def _batch_norm(a, x, scale, shift, mean, variance):
    rank = x.ndim - 2
    factor = scale / jnp.sqrt(variance + a.get("epsilon", 1e-5))
    return x * _shift(rank, factor) + _shift(rank, shift - mean * factor)


def _max_pool(a, x):
    rank = x.ndim - 2
    if a.get("ceil_mode", 0):
        raise Unsupported("MaxPool with ceil_mode")
    window, strides = (1, 1, *a["kernel_shape"]), (1, 1, *a.get("strides", [1] * rank))
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, [(0, 0), (0, 0), *_pairs(a, rank)])


def _gemm(a, x, y, z=None):
    if a.get("alpha", 1.0) != 1 or a.get("beta", 1.0) != 1:
        raise Unsupported("Gemm with factors")
    result = (x.T if a.get("transA", 0) else x) @ (y.T if a.get("transB", 0) else y)
    return result if z is None else result + z


def _reshape(a, x, shape):
    kept = [x.shape[i] if v == 0 else int(v) for i, v in enumerate(shape)]
    return x.reshape(kept)


def _unsqueeze(a, x, axes=None):
    return _numpy([x]).expand_dims(x, tuple(map(int, a["axes"] if axes is None else axes)))


def _slice(a, x, starts, ends, axes=None, steps=None):
    index = [slice(None)] * x.ndim
    axes = range(len(starts)) if axes is None else axes
    for i, axis in enumerate(axes):
        index[int(axis)] = slice(int(starts[i]), int(ends[i]), 1 if steps is None else int(steps[i]))
    return x[tuple(index)]


def _pad(a, x, pads, value=None):
    if a.get("mode", "constant") != "constant":
        raise Unsupported(f"Pad with mode {a['mode']}")
    rank = x.ndim
    widths = [(int(pads[i]), int(pads[rank + i])) for i in range(rank)]
    constant = 0.0 if value is None else float(value)
    if any(low < 0 or high < 0 for low, high in widths):
        return lax.pad(x, jnp.asarray(constant, x.dtype), [(low, high, 0) for low, high in widths])
    return _numpy([x]).pad(x, widths, constant_values=constant)


def _divide(a, x, y):
    module = _numpy([x, y])
    if module.issubdtype(x.dtype, np.integer):
        return (np.sign(x) * np.sign(y) * (abs(x) // abs(y))).astype(x.dtype)
    return x / y


_HANDLERS = {
    "Add": lambda a, x, y: x + y, "BatchNormalization": _batch_norm,
    "Concat": lambda a, *values: _numpy(values).concatenate(values, axis=a["axis"]), "Conv": _conv,
    "ConvTranspose": _conv_transpose, "Div": _divide,
    "Flatten": lambda a, x: x.reshape(int(np.prod(x.shape[: a.get("axis", 1)])), -1),
    "Gather": lambda a, x, i: _numpy([x, i]).take(x, i, axis=a.get("axis", 0)), "Gemm": _gemm,
    "GlobalAveragePool": lambda a, x: x.mean(axis=tuple(range(2, x.ndim)), keepdims=True),
    "Identity": lambda a, x: x, "MatMul": lambda a, x, y: x @ y, "MaxPool": _max_pool, "Mul": lambda a, x, y: x * y,
    "Pad": _pad, "Relu": lambda a, x: jnp.maximum(x, 0), "Reshape": _reshape,
    "Shape": lambda a, x: np.asarray(x.shape, np.int64), "Sigmoid": lambda a, x: jax.nn.sigmoid(x), "Slice": _slice,
    "Softmax": lambda a, x: jax.nn.softmax(x, a.get("axis", -1)), "Sub": lambda a, x, y: x - y,
    "Transpose": lambda a, x: x.transpose(a["perm"]), "Unsqueeze": _unsqueeze,
}  # fmt: skip


def function(graph, constants, inputs):
    """(function of weights and inputs, weights by name). `inputs` are example arrays by name."""
    for node in graph["nodes"]:
        if node["op"] not in _HANDLERS:
            raise Unsupported(f"the operator {node['op']}")
    weights = {name: array for name, array in constants.items() if array.dtype.kind == "f" and array.size > 1}
    known = {name: array for name, array in constants.items() if name not in weights}

    def run(weights, *values):
        found = {"": None, **known, **weights, **dict(zip(inputs, values))}
        for node in graph["nodes"]:
            operands = [found[name] for name in node["inputs"]]
            found[node["outputs"][0]] = _HANDLERS[node["op"]](node["attributes"], *operands)
        return tuple(found[name] for name in graph["outputs"])

    return run, weights


def runner(graph, constants, inputs, math):
    """(function that runs once, function that waits, function that gives the outputs, version)."""
    run, weights = function(graph, constants, inputs)
    compiled = jax.jit(run)
    placed = jax.device_put(weights)
    given = [jax.device_put(value) for value in inputs.values()]
    last = []

    def once():
        with jax.default_matmul_precision(PRECISIONS[math]):
            last[:] = [compiled(placed, *given)]

    def outputs():
        once()
        return {name: np.asarray(value) for name, value in zip(graph["outputs"], last[0])}

    return once, lambda: jax.block_until_ready(last), outputs, f"JAX {jax.__version__} on {jax.default_backend()}"
