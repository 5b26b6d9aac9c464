# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model gives in f64, and what it gives when each operator rounds its result to a narrow type."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .convert import with_element_type
from .inputs import run_onnxruntime


def rounded_weights(model, dtype):
    """The f32 model `model` with weights that the NumPy type `dtype` has."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for tensor in result.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor).astype(dtype).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return result


def run_exactly(model, inputs, dtype):
    """The outputs, in f64, of the f32 model `model` with weights rounded to `dtype`."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(with_element_type(rounded_weights(model, dtype), np.float64))
    wide = {n: v.astype(np.float64) for n, v in inputs.items()}
    return dict(zip(evaluator.output_names, evaluator.run(None, wide)))


def run_rounding_each(model, inputs, dtype):
    """The same when each operator computes in f32 and rounds its result to `dtype`."""
    result = rounded_weights(model, dtype)
    narrow = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = []
    for node in result.graph.node:
        exact = [f"{name}/exact" for name in node.output]
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.output[:] = exact
        nodes.append(copy)
        for name, value in zip(node.output, exact):
            nodes.append(helper.make_node("Cast", [value], [f"{name}/narrow"], to=narrow))
            nodes.append(helper.make_node("Cast", [f"{name}/narrow"], [name], to=TensorProto.FLOAT))
    del result.graph.node[:], result.graph.value_info[:]
    result.graph.node.extend(nodes)
    return run_onnxruntime(result, inputs, optimise=False)
