# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of elements that TopK chooses: of all types, equal ones, zeros of both signs, and NaN; against Python's sort."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

#: Elements of each type that are easily put in a wrong order.
EXTREMES = {
    np.float16: [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 6e-8, -6e-8, 1, -1, 65504],
    np.float32: [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 1, -1, 3.4e38, -3.4e38],
    np.float64: [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1, -1, 1e300],
    np.int8: [-128, 127, 0, -1, 1],
    np.uint8: [255, 128, 127, 0, 1],
    np.int16: [-(2**15), 2**15 - 1, 0, -1, 1],
    np.uint16: [2**16 - 1, 2**15, 0, 1],
    np.int32: [-(2**31), 2**31 - 1, 0, -1, 1],
    np.uint32: [2**32 - 1, 2**31, 2**31 - 1, 0, 1],
    np.int64: [-(2**63), 2**63 - 1, 2**32, -(2**32), 0, -1, 1],
    np.uint64: [2**64 - 1, 2**63, 2**63 - 1, 0, 1],
}
ROWS = 3


def _model(dtype, extent, k, largest):
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("TopK", ["x", "k"], ["values", "indices"], axis=1, largest=largest)
    graph = helper.make_graph(
        [node],
        "order",
        [helper.make_tensor_value_info("x", element, [ROWS, extent])],
        [
            helper.make_tensor_value_info("values", element, [ROWS, k]),
            helper.make_tensor_value_info("indices", TensorProto.INT64, [ROWS, k]),
        ],
        [helper.make_tensor("k", TensorProto.INT64, [1], [k])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)


def _order(row, largest):
    """Positions as ONNX has them: the first of equal ones first, and NaN larger than all numbers."""
    ranks = [(1, 0) if value != value else (0, value) for value in row.tolist()]
    return sorted(range(len(row)), key=lambda at: ranks[at], reverse=bool(largest))


@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("dtype", EXTREMES, ids=lambda dtype: dtype.__name__)
def test_order(dovetail, dtype, target):
    """Extents about the number of elements that are compared at once, and all of few ranks: rows are cut unevenly."""
    rng = np.random.default_rng(7)
    for extent, k in ((5, 5), (40, 3), (40, 24), (100, 60)):
        x = rng.choice(np.array(EXTREMES[dtype], dtype), (ROWS, extent))
        for largest in (0, 1):
            flags = ["--mesh", "y=2", "--shard", "x=y,_", "--sizes", "x:0=2,1", "--target", target]
            program = dovetail.compile(_model(dtype, extent, k, largest), libraries=False, options=flags)
            actual = program.run({"x": x})
            expected = np.array([_order(row, largest)[:k] for row in x])
            np.testing.assert_array_equal(actual["indices"], expected)
            # The bits, as zeros have signs.
            values = np.take_along_axis(x, expected, 1)
            np.testing.assert_array_equal(np.signbit(actual["values"]), np.signbit(values))
            np.testing.assert_array_equal(actual["values"], values)
