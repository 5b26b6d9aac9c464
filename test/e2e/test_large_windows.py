# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations beyond what libraries have: generated kernels do them."""

import numpy as np
from harness.backend import fastest_backend
from harness.partition import Partition
from onnx import TensorProto, helper


def _model(op, shapes, **attributes):
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(
        [helper.make_node(op, list(shapes), ["y"], **attributes)],
        "large",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _check(model, inputs, expected, dim):
    for split in (None, dim):
        partition = Partition({"y": 2})
        if split is not None:
            partition.split("x", inputs["x"].ndim, split, "y")
        actual = fastest_backend().compile_and_run(model, partition, inputs, ["y"])["y"]
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_products_of_many_dimensions(backend):
    rng = np.random.default_rng(0)
    inputs = {
        "x": rng.standard_normal((3, *[1] * 10, 5, 4), dtype=np.float32),
        "w": rng.standard_normal((4, 6), dtype=np.float32),
    }
    model = _model("MatMul", {name: value.shape for name, value in inputs.items()})
    _check(model, inputs, np.matmul(inputs["x"], inputs["w"]), 0)


def test_windows_of_enormous_padding(backend):
    """Of each window one corner is in the image, and all else in the padding."""
    rng = np.random.default_rng(0)
    inputs = {
        "x": rng.standard_normal((1, 1, 3, 3, 3), dtype=np.float32),
        "w": rng.standard_normal((1, 1, 2, 2, 2), dtype=np.float32),
    }
    step = 200000
    model = _model(
        "Conv",
        {name: value.shape for name, value in inputs.items()},
        strides=[step] * 3,
        dilations=[step] * 3,
        pads=[step] * 6,
    )
    # Window 0 begins at -step and window 1 at 0: tap 1 - o of window o reads element 0, the other tap padding.
    expected = inputs["x"][0, 0, 0, 0, 0] * inputs["w"][0, 0, ::-1, ::-1, ::-1]
    _check(model, inputs, expected[None, None], 2)
