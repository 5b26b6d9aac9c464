# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A name in a request stands for the tensor of the model: with its number of dimensions and its extents.

Rewritten graphs compute many values that the model does not have. The compiler is asked to split each tensor of a model,
with an entry too many for each: its errors say which shapes it takes them to have. ONNX's shape inference is the oracle.
"""

import re

import onnx
import pytest
from graphs.case import random_graph
from harness.backend import USAGE, call, tool
from harness.extent import one_of
from subjects import SMALL_SUBJECTS, SUBJECTS

_SHAPE = re.compile(r"--shard gives \d+ entries for tensor '(.*)', which has (\d+) dimensions \[(.*)\]; give one")
_GONE = re.compile(r"--shard names tensor '(.*)', which (?:the model does not have, or loses|is a constant)")


def _computed_shapes(model, inputs):
    """What nodes compute, by name, where the shape is known for inputs of these shapes."""
    for port in model.graph.input:
        for dim, extent in zip(port.type.tensor_type.shape.dim, inputs.get(port.name, ())):
            dim.dim_value = extent
    # What the exporter wrote may leave dimensions open.
    del model.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    computed = {name for node in inferred.graph.node for name in node.output}
    shapes = {}
    for value in (*inferred.graph.value_info, *inferred.graph.output):
        dims = value.type.tensor_type.shape.dim
        if value.name in computed and value.type.tensor_type.HasField("shape") and all(d.dim_value > 0 for d in dims):
            shapes[value.name] = [d.dim_value for d in dims]
    return shapes


def _said_shapes(tmp_path, path, shapes, flags):
    """The shapes that the compiler says, and the names that it does not know any more."""
    if not shapes:
        return {}, set()
    requests = [f"{name}={','.join('_' * (len(shape) + 1))}" for name, shape in shapes.items()]
    options = [part for request in requests for part in ("--shard", request)]
    command = [tool("dovetail"), "compile", path, "-o", tmp_path / "none.dvt", "--mesh", "y=2", *flags, *options]
    code, _, messages = call(command)
    assert code == USAGE, messages
    said, gone = {}, set()
    for line in messages.splitlines():
        if match := _SHAPE.search(line):
            said[match[1]] = [int(extent) for extent in match[3].split(", ")] if match[3] else []
            assert len(said[match[1]]) == int(match[2]), line
        elif match := _GONE.search(line):
            gone.add(match[1])
        else:
            pytest.fail(line)
    assert said.keys() | gone == shapes.keys()
    return said, gone


def _compare(tmp_path, path, inputs, flags=()):
    shapes = _computed_shapes(onnx.load(path), {name: value.shape for name, value in inputs.items()})
    said, gone = _said_shapes(tmp_path, path, shapes, flags)
    wrong = {name: (shape, shapes[name]) for name, shape in said.items() if shape != shapes[name]}
    assert not wrong, f"said, and of the model: {wrong}"
    return said, gone


@one_of(2)
@pytest.mark.parametrize("subject", SUBJECTS + SMALL_SUBJECTS, ids=lambda subject: subject.name)
def test_models(tmp_path, subject):
    case = subject.prepared()
    said, gone = _compare(tmp_path, case.path, case.inputs, subject.flags())
    # Those of scalings, shapes and what is merged; few are of loops.
    assert len(gone) < 5 or len(said) >= 0.2 * (len(said) + len(gone)), f"most names are gone: {sorted(gone)}"


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_graphs(tmp_path, first):
    known = lost = 0
    for case in filter(None, map(random_graph, range(first, first + 10))):
        path = tmp_path / "model.onnx"
        onnx.save(case.model, path)
        said, gone = _compare(tmp_path, path, case.inputs)
        known += len(said)
        lost += len(gone)
    assert known >= lost, f"{lost} of {known + lost} names are gone"
