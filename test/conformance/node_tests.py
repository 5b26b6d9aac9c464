# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The node tests of the ONNX package: one operator each, with inputs and expected outputs."""

import dataclasses
import functools
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from harness.partition import Partition, uneven_sizes

FOLDER = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"

#: What the tests of the ONNX package ask for themselves.
RELATIVE_TOLERANCE = 1e-3
ABSOLUTE_TOLERANCE = 1e-7

#: Operands that decide shapes. The tests pass them as inputs; a compiler must know them.
_SHAPE_OPERANDS = {
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
    "ConstantOfShape": (0,),
    "CumSum": (1,),
    "Expand": (1,),
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
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}


class NotTensors(Exception):
    """The test passes sequences, optionals or maps."""


@dataclasses.dataclass
class NodeTest:
    name: str
    model: onnx.ModelProto
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
    """A test with the operands that decide shapes made constant. Raises NotTensors."""
    model = onnx.load(FOLDER / name / "model.onnx")
    data = FOLDER / name / "test_data_set_0"
    inputs = _values(model.graph.input, data, "input")
    expected = _values(model.graph.output, data, "output")
    for node in model.graph.node:
        for slot in _SHAPE_OPERANDS.get(node.op_type, ()):
            operand = node.input[slot] if slot < len(node.input) else ""
            if operand in inputs:
                _make_constant(model.graph, operand, inputs.pop(operand))
    return NodeTest(name, model, inputs, expected)


def _values(infos, folder, kind):
    values = {}
    for index, info in enumerate(infos):
        file = folder / f"{kind}_{index}.pb"
        if not info.type.HasField("tensor_type"):
            raise NotTensors(f"{kind} {info.name} is no tensor")
        if not file.exists():  # An optional input that is left out.
            continue
        values[info.name] = numpy_helper.to_array(TensorProto.FromString(file.read_bytes()))
    return values


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


def difference(actual, expected):
    """None, or how the outputs differ beyond the tolerance of the ONNX package."""
    for name, value in expected.items():
        found = actual.get(name)
        if found is None:
            return f"{name}: not produced"
        if found.dtype != value.dtype or found.shape != value.shape:
            return (
                f"{name}: {found.dtype}{list(found.shape)}, "
                f"expected {value.dtype}{list(value.shape)}"
            )
        if not np.issubdtype(value.dtype, np.inexact):
            close = bool((found == value).all())
        else:
            close = np.allclose(
                found, value, RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE, equal_nan=True
            )
        if not close:
            return f"{name}: {found.ravel()[:4]} ..., expected {value.ravel()[:4]} ..."
    return None


