# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The node tests of the ONNX package: one operator each, with inputs and expected outputs."""

import dataclasses
import functools
import pathlib
import re

import numpy as np
import onnx
import tensors
from onnx import numpy_helper

from harness.compare import from_bits
from harness.oracle import expected_outputs
from harness.partition import Partition, uneven_sizes

FOLDER = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"

#: What the tests of the ONNX package ask for themselves.
RELATIVE_TOLERANCE = 1e-3
ABSOLUTE_TOLERANCE = 1e-7

#: Operands that decide shapes, or what is computed. The tests pass them as inputs; a compiler must know them.
_COMPILE_TIME_OPERANDS = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Dropout": (1, 2),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "If": (0,),
    "Loop": (0, 1),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "MaxUnpool": (2,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "ReduceL1": (1,),
    "ReduceL2": (1,),
    "ReduceLogSum": (1,),
    "ReduceLogSumExp": (1,),
    "ReduceMax": (1,),
    "ReduceMean": (1,),
    "ReduceMin": (1,),
    "ReduceProd": (1,),
    "ReduceSum": (1,),
    "ReduceSumSquare": (1,),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "SequenceErase": (1,),
    "SequenceInsert": (2,),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}


#: Tests whose data contradict the words of the standard, which ONNX Runtime follows. There it says what is expected.
_CONTRADICTORY = {
    # The length of the resized tensor is not that of the operand times the scale, which has a fraction here.
    "test_resize_downsample_scales_cubic_align_corners",
    "test_resize_downsample_scales_linear_align_corners",
}


@dataclasses.dataclass
class NodeTest:
    name: str
    model: onnx.ModelProto
    #: Both are empty if the test passes maps.
    inputs: dict
    expected: dict

    @property
    def ops(self):
        return sorted({node.op_type for node in self.model.graph.node})


def names():
    """The names of all node tests."""
    return sorted(p.name for p in FOLDER.iterdir() if (p / "model.onnx").exists())


@functools.lru_cache(maxsize=8)
def load(name):
    """A test with the operands that must be known to a compiler made constant."""
    model = onnx.load(FOLDER / name / "model.onnx")
    if any(_is_map(i.type) for i in (*model.graph.input, *model.graph.output)):
        return NodeTest(name, model, {}, {})
    data = FOLDER / name / "test_data_set_0"
    inputs = _values(model.graph.input, data, "input")
    expected = _values(model.graph.output, data, "output")
    inputs, expected = tensors.replace_inputs(model.graph, inputs), tensors.replace_outputs(model.graph, expected)
    for operand in _compile_time_inputs(name, model):
        if operand in inputs:
            _make_constant(model.graph, operand, inputs.pop(operand))
    if name in _CONTRADICTORY:
        expected = expected_outputs(model, inputs)
    return NodeTest(name, model, inputs, expected)


def _compile_time_inputs(name, model):
    """Inputs with such operands. A test of a function's body has the inputs of the test of the operator."""
    operator = FOLDER / re.sub("_expanded.*", "", name) / "model.onnx"
    nodes = onnx.load(operator).graph.node if operator.exists() else model.graph.node
    return [
        node.input[slot]
        for node in nodes
        for slot in _COMPILE_TIME_OPERANDS.get(node.op_type, ())
        if slot < len(node.input)
    ]


def _values(infos, folder, kind):
    values = {}
    for index, info in enumerate(infos):
        file = folder / f"{kind}_{index}.pb"
        if not file.exists():  # An optional input that is left out.
            continue
        values[info.name] = tensors.read(info.type, file.read_bytes())
    return values


def _is_map(type_proto):
    if type_proto.HasField("sequence_type"):
        return _is_map(type_proto.sequence_type.elem_type)
    return type_proto.HasField("map_type")


def _make_constant(graph, name, value):
    graph.initializer.append(numpy_helper.from_array(value, name))
    kept = [i for i in graph.input if i.name != name]
    del graph.input[:]
    graph.input.extend(kept)


def partitions(test):
    """The whole model, and for each dimension all inputs that have it split unevenly over 3 ranks.

    The shards of one input grow and those of the next shrink, so that operands do not line up.
    """
    result = {"whole": Partition({"y": 1})}
    for dim in range(max((v.ndim for v in test.inputs.values()), default=0)):
        partition = Partition({"y": 3})
        for index, (name, value) in enumerate(test.inputs.items()):
            if dim < value.ndim and value.shape[dim] > 1:
                sizes = uneven_sizes(value.shape[dim], 3)
                partition.split(name, value.ndim, dim, "y", sizes[:: -1 if index % 2 else 1])
        if partition.shards:
            result[f"dimension {dim}"] = partition
    return result


def static_shapes(test):
    """Flags that fix the dimensions that the model leaves open."""
    flags = []
    for info in test.model.graph.input:
        value = test.inputs.get(info.name)
        dims = info.type.tensor_type.shape.dim
        if value is not None and any(not d.HasField("dim_value") for d in dims):
            flags += ["--shape", f"{info.name}={','.join(map(str, value.shape))}"]
    return flags


#: Results of these are sums of terms as large as the largest result, each of which rounds to 24 bits: where terms
#: cancel, whoever adds them, that rounding is left, of the expected values too.
_TRANSFORMS = ("test_dft", "test_stft")


def _absolute_tolerance(test, value):
    if not test.name.startswith(_TRANSFORMS) or not value.size:
        return ABSOLUTE_TOLERANCE
    return max(ABSOLUTE_TOLERANCE, 2.0**-23 * float(np.abs(value).max()))


def difference(test, actual):
    """None, or how the outputs differ from those of `test` beyond the tolerance of the ONNX package."""
    for name, value in test.expected.items():
        found = actual.get(name)
        if found is None:
            return f"{name}: not produced"
        found = from_bits(found, value.dtype)
        if found.dtype != value.dtype or found.shape != value.shape:
            return (
                f"{name}: {found.dtype}{list(found.shape)}, "
                f"expected {value.dtype}{list(value.shape)}"
            )
        if np.issubdtype(value.dtype, np.inexact):
            close = np.allclose(
                found, value, RELATIVE_TOLERANCE, _absolute_tolerance(test, value), equal_nan=True
            )
        else:
            close = found.tobytes() == value.tobytes()
        if not close:
            return f"{name}: {found.ravel()[:4]} ..., expected {value.ravel()[:4]} ..."
    return None
