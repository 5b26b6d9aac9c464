# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Node tests of sequences and optional values with tensors in their place.

Programs have tensors alone: sequences and optional values are what a model makes of them. So a test's model gets nodes
that make what was an input, and nodes that take apart what was an output.
"""

import numpy as np
from onnx import OptionalProto, SequenceProto, TensorProto, helper, numpy_helper


def read(type_proto, data):
    """The value in a file: an array, a list of arrays, or None for an empty optional value."""
    if type_proto.HasField("optional_type"):
        return numpy_helper.to_optional(OptionalProto.FromString(data))
    if type_proto.HasField("sequence_type"):
        return numpy_helper.to_list(SequenceProto.FromString(data))
    return numpy_helper.to_array(TensorProto.FromString(data))


def _element_type(type_proto):
    return type_proto.optional_type.elem_type if type_proto.HasField("optional_type") else type_proto


def _info(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def replace_inputs(graph, values):
    """Makes inputs of `graph` tensors; returns these with their values."""
    infos, nodes, result = [], [], {}

    def tensor(name, array):
        infos.append(_info(name, array))
        result[name] = array
        return name

    for info in graph.input:
        if info.type.HasField("tensor_type"):
            infos.append(info)
            if info.name in values:
                result[info.name] = values[info.name]
            continue
        value, kind = values.get(info.name), _element_type(info.type)
        is_optional = info.type.HasField("optional_type")
        inner = f"{info.name}_value" if is_optional else info.name
        if value is None:
            nodes.append(helper.make_node("Optional", [], [info.name], type=kind))
            continue
        if isinstance(value, list):
            elements = [tensor(f"{info.name}_{i}", array) for i, array in enumerate(value)]
            dtype = kind.sequence_type.elem_type.tensor_type.elem_type
            make = ("SequenceConstruct", {}) if elements else ("SequenceEmpty", {"dtype": dtype})
            nodes.append(helper.make_node(make[0], elements, [inner], **make[1]))
        else:
            tensor(inner, value)
        if is_optional:
            nodes.append(helper.make_node("Optional", [inner], [info.name]))
    kept = [*nodes, *graph.node]
    del graph.input[:], graph.node[:]
    graph.input.extend(infos)
    graph.node.extend(kept)
    return result


def replace_outputs(graph, values):
    """Makes outputs of `graph` tensors; returns the expected ones."""
    infos, result = [], {}

    def output(name, array, *node):
        graph.node.append(helper.make_node(*node[:2], [name]))
        infos.append(_info(name, array))
        result[name] = array

    for info in graph.output:
        value, name = values.get(info.name), info.name
        if info.type.HasField("tensor_type"):
            infos.append(info)
            if info.name in values:
                result[info.name] = value
            continue
        if info.type.HasField("optional_type"):
            output(f"{name}_has", np.array(value is not None), "OptionalHasElement", [name])
            if value is None:
                continue
            graph.node.append(helper.make_node("OptionalGetElement", [name], [f"{name}_value"]))
            name = f"{name}_value"
        if not isinstance(value, list):
            output(f"{name}_tensor", value, "Identity", [name])
            continue
        output(f"{name}_length", np.array(len(value)), "SequenceLength", [name])
        for number, array in enumerate(value):
            position = f"{name}_position_{number}"
            graph.initializer.append(numpy_helper.from_array(np.array(number), position))
            output(f"{name}_{number}", array, "SequenceAt", [name, position])
    del graph.output[:]
    graph.output.extend(infos)
    return result
