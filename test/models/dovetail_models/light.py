# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The light models of the ONNX package, with seeded random weights.

Their own weights are one constant for each tensor, so every class comes out equal and a wrong
answer would go unseen. The graphs are kept as they are, IR version 3 and weights listed among the
inputs included; only the values change, and ConstantOfShape nodes become initializers.
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NAMES = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)

_FOLDER = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
_BATCH_NORM_INPUTS = {1: "scale", 2: "shift", 3: "mean", 4: "variance"}


def light(name, seed=0):
    """The light model `name` with random weights; see NAMES."""
    path = _FOLDER / f"light_{name}.onnx"
    model = onnx.load(path)
    graph = model.graph
    _materialise_fills(graph)
    rng = np.random.default_rng(seed)
    roles = _weight_roles(graph)
    for tensor in graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or tensor.name not in roles:
            continue
        _set_values(tensor, _values(rng, *roles[tensor.name], tuple(tensor.dims)))
    _spread_classes(model, roles)
    onnx.checker.check_model(model)
    return model


def _materialise_fills(graph):
    """Replaces ConstantOfShape of an initializer by an initializer of that shape."""
    shapes = {t.name: t for t in graph.initializer}
    inputs = {i.name for i in graph.input}
    kept, gone = [], set()
    for node in graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            kept.append(node)
            continue
        shape = numpy_helper.to_array(shapes[node.input[0]]).tolist()
        name = node.output[0]
        # Without data: every one of them is a weight and gets its values from the caller.
        graph.initializer.add(name=name, dims=shape, data_type=TensorProto.FLOAT)
        if name not in inputs:
            graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        gone.add(node.input[0])
    del graph.node[:]
    graph.node.extend(kept)
    gone -= {name for node in kept for name in node.input}
    for values in (graph.initializer, graph.input):
        left = [v for v in values if v.name not in gone]
        del values[:]
        values.extend(left)


def _weight_roles(graph):
    """Maps each initializer to (role, the node that uses it), looking through reshapes."""
    users = {}
    for node in graph.node:
        for slot, name in enumerate(node.input):
            users.setdefault(name, []).append((node, slot))
    roles = {}
    for tensor in graph.initializer:
        for node, slot in users.get(tensor.name, ()):
            if node.op_type in ("Unsqueeze", "Reshape") and slot == 0:
                node, slot = users[node.output[0]][0]
            if node.op_type in ("Conv", "Gemm"):
                role = "weight" if slot == 1 else "shift"
            elif node.op_type == "BatchNormalization":
                role = _BATCH_NORM_INPUTS[slot]
                into_sum = any(n.op_type == "Sum" for n, _ in users.get(node.output[0], ()))
                if role == "scale" and into_sum:
                    role = "residual scale"
            elif node.op_type in ("Mul", "Add"):
                role = "scale" if node.op_type == "Mul" else "shift"
            else:
                continue
            roles[tensor.name] = (role, node)
    return roles


def _user(roles, tensor):
    return roles[tensor.name][1].output[0] if tensor.name in roles else None


def _set_values(tensor, values):
    tensor.ClearField("float_data")
    tensor.raw_data = values.astype("<f4", copy=False).tobytes()


def _values(rng, role, node, shape):
    if role == "weight":
        transposed = any(a.name == "transB" and a.i for a in node.attribute)
        fan_in = int(np.prod(shape[1:]))
        if node.op_type == "Gemm" and not transposed:
            fan_in = shape[0]
        values = rng.standard_normal(shape, dtype=np.float32)
        values *= np.float32((2 / fan_in) ** 0.5)
        return values
    if role in ("scale", "variance"):
        return rng.uniform(0.8, 1.25, shape).astype(np.float32)
    if role == "residual scale":
        return rng.uniform(0.3, 0.5, shape).astype(np.float32)
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(0.1)


def _spread_classes(model, roles, deviation=2.0):
    """Scales the last layer so that the classes' scores differ by about `deviation`.

    The scores are measured on one random image with ONNX Runtime.
    """
    from .inputs import random_inputs, run_onnxruntime

    graph = model.graph
    last = next(n for n in reversed(graph.node) if n.op_type in ("Gemm", "Conv"))
    outputs = list(graph.output)
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(last.output[0], TensorProto.FLOAT, None))
    scores = run_onnxruntime(model, random_inputs(model, seed=1), optimise=False)[last.output[0]]
    del graph.output[:]
    graph.output.extend(outputs)
    per_class = scores.reshape(1000, -1).mean(axis=1)
    factor = np.float32(deviation / per_class.std())
    for tensor in graph.initializer:
        if _user(roles, tensor) == last.output[0]:
            _set_values(tensor, numpy_helper.to_array(tensor) * factor)
