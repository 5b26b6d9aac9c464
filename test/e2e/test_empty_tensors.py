# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs without elements, and scalars, given by --shape, against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from harness.backend import USAGE, call, fastest_backend, tool
from harness.compare import differences
from harness.oracle import expected_outputs
from harness.partition import Partition
from onnx import TensorProto, helper, numpy_helper


def _weights(*shape):
    return np.random.default_rng(1).uniform(-0.5, 0.5, shape).astype(np.float32)


_PADDED = {"kernel_shape": [3, 3], "pads": [1] * 4}

#: The shape of x, the operator, its other operands, and its attributes. Means of nothing are left out: ONNX Runtime says 0,
#: NumPy and Dovetail NaN.
_CASES = [
    *((shape, op, operands, attributes)
      for shape in ([0, 3], [3, 0], [0, 0])
      for op, operands, attributes in (
          ("Relu", (), {}),
          ("Add", (np.float32(2),), {}),
          ("Cast", (), {"to": TensorProto.FLOAT16}),
          ("Softmax", (), {"axis": 0}),
          ("Softmax", (), {"axis": 1}),
          ("ReduceSum", ([0],), {}),
          ("ReduceSum", ([1],), {}),
          ("ReduceProd", (), {"axes": [0]}),
          ("ReduceMax", (), {"axes": [1]}),
          ("Transpose", (), {"perm": [1, 0]}),
          ("MatMul", (_weights(shape[1], 5),), {}),
          ("Gemm", (_weights(shape[1], 5), _weights(5)), {}),
          ("Concat", (_weights(shape[0], 4),), {"axis": 1}),
          ("Expand", ([2, *shape],), {}),
          ("Pad", ([1, 1, 1, 1],), {}),
          ("Slice", ([0], [2], [1]), {}),
          ("Tile", ([2, 3],), {}),
          ("Shape", (), {}),
      )),
    *((shape, op, operands, attributes)
      for shape in ([0, 4, 9, 7], [1, 4, 0, 7])
      for op, operands, attributes in (
          ("BatchNormalization", (_weights(4), _weights(4), _weights(4), _weights(4) ** 2), {}),
          ("InstanceNormalization", (_weights(4), _weights(4)), {}),
          ("Resize", (np.zeros(0, np.float32), np.float32([1, 1, 2, 2])), {"mode": "linear"}),
          ("DepthToSpace", (), {"blocksize": 2}),
          ("Flatten", (), {}),
          ("LRN", (), {"size": 3}),
      )),
    *(([0, 4, 9, 7], op, operands, attributes)
      for op, operands, attributes in (
          ("Conv", (_weights(6, 4, 3, 3), _weights(6)), _PADDED),
          ("ConvTranspose", (_weights(4, 6, 3, 3),), {"strides": [2, 2]}),
          ("MaxPool", (), _PADDED),
          ("AveragePool", (), _PADDED),
          ("GlobalAveragePool", (), {}),
      )),
]  # fmt: skip


def _model(shape, op, operands, attributes):
    operands = {f"c{i}": np.asarray(operand) for i, operand in enumerate(operands)}
    node = helper.make_node(op, ["x", *operands], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "empty",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [f"d{i}" for i in range(len(shape))])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(value, name) for name, value in operands.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _name(value):
    return "x".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _check(model, shape, expected):
    """Runs a model of input `x` whole, and with each dimension split over three ranks."""
    inputs = {"x": np.zeros(shape, np.float32)}
    flags = ["--shape", f"x={','.join(map(str, shape))}"]
    for dim in [None, *range(len(shape))]:
        partition = Partition({"y": 3})
        if dim is not None:
            partition.split("x", len(shape), dim, "y")
        for libraries in (True, False):
            actual = fastest_backend().compile_and_run(model, partition, inputs, ["y"], libraries, flags)
            found = differences(actual, expected)
            assert not found, f"{partition}, libraries {libraries}: {found}"


@pytest.mark.parametrize("shape, op, operands, attributes", _CASES, ids=_name)
def test_operator(backend, shape, op, operands, attributes):
    model = _model(shape, op, operands, attributes)
    _check(model, shape, expected_outputs(model, {"x": np.zeros(shape, np.float32)}))


def _windows(op, operands, attributes, expected):
    return pytest.param(op, operands, attributes, expected, id=op)


@pytest.mark.parametrize(
    "op, operands, attributes, expected",
    [
        _windows("Conv", (_weights(6, 4, 3, 3), _weights(6)), {"pads": [3, 1, 2, 1]}, _weights(6).reshape(1, 6, 1, 1)),
        _windows("Conv", (_weights(4, 1, 2, 3),), {"pads": [2, 1, 2, 1], "group": 4}, np.float32(0)),
        _windows(
            "AveragePool", (), {"kernel_shape": [3, 3], "pads": [2, 1, 2, 1], "count_include_pad": 1}, np.float32(0)
        ),
    ],
)
def test_pads_alone(backend, op, operands, attributes, expected):
    """Windows over nothing but padding: the result is not empty, and what sums of zeros are. ONNX Runtime refuses some."""
    model = _model([1, 4, 0, 7], op, operands, attributes)
    rows = attributes["pads"][0] + attributes["pads"][2] - (operands[0].shape[2] if operands else 3) + 1
    assert rows > 0
    channels = operands[0].shape[0] if operands else 4
    _check(model, [1, 4, 0, 7], {"y": np.broadcast_to(expected, (1, channels, rows, 7))})


@pytest.fixture(scope="module")
def joined():
    """An image, scaled, beside further channels of which there may be none, and a convolution of both."""
    channels = {"image": ["N", 3, "H", "W"], "extra": ["N", "K", "H", "W"], "scale": None}
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["image", "scale"], ["scaled"]),
            helper.make_node("Concat", ["scaled", "extra"], ["both"], axis=1),
            helper.make_node("Conv", ["both", "weights"], ["result"], pads=[1] * 4),
        ],
        "joined",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in channels.items()],
        [onnx.ValueInfoProto(name="result")],
        [numpy_helper.from_array(_weights(5, 3, 3, 3), "weights")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


_SHAPES = ["--dim", "N=1", "--shape", "image=1,3,17,6", "--shape", "extra=1,0,17,6", "--shape", "scale="]


@pytest.mark.parametrize("ranks", [1, 3])
def test_command_line(backend, joined, tmp_path, ranks):
    rng = np.random.default_rng(2)
    inputs = {
        "image": rng.normal(size=(1, 3, 17, 6)).astype(np.float32),
        "extra": np.zeros((1, 0, 17, 6), np.float32),
        "scale": np.array(1.5, np.float32),
    }
    path = tmp_path / "model.onnx"
    path.write_bytes(joined.SerializeToString())
    partition = Partition({"y": ranks}).split("image", 4, 2, "y").split("extra", 4, 2, "y")
    actual = backend.compile_and_run(path, partition, inputs, ["result"], extra=_SHAPES)
    assert not differences(actual, expected_outputs(joined, inputs))
    code, _, messages = call([tool("dovetail"), "verify", path, *partition.flags(), *_SHAPES])
    assert code == 0, messages


def test_python(joined):
    fastest_backend()  # Finds the package.
    import dovetail

    program = dovetail.compile(joined, shapes={"image": (1, 3, 4, 5), "extra": (1, 0, 4, 5), "scale": ()})
    assert [port.shape for port in program.inputs] == [(1, 3, 4, 5), (1, 0, 4, 5), ()]
    inputs = {port.name: np.ones(port.shape, np.float32) for port in program.inputs}
    assert not differences(program.run(inputs), expected_outputs(joined, inputs))
    with pytest.raises(dovetail.DovetailError, match="'-1' is not a whole number of at least 0") as error:
        dovetail.compile(joined, shapes={"image": (1, 3, -1, 5), "extra": (1, 0, 4, 5), "scale": ()})
    assert error.value.code == USAGE
