# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same model in another floating-point type."""

import numpy as np
import onnx
from onnx import helper, numpy_helper


def with_element_type(model, dtype):
    """A copy of `model`, whose floats are all f32, with those of the NumPy type `dtype` in their place.

    Weights are rounded. Operators keep their attributes, so those that name a type must not be in it.
    """
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def convert(tensor):
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor).astype(dtype)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))

    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.graph.value_info[:]
    for tensor in result.graph.initializer:
        convert(tensor)
    for node in result.graph.node:
        if node.op_type == "Cast":
            raise ValueError(f"{node.name} names a type")
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                convert(attribute.t)
    for value in [*result.graph.input, *result.graph.output]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = element_type
    return onnx.shape_inference.infer_shapes(result, strict_mode=True)
