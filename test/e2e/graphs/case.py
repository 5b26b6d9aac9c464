# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A random graph with its inputs, a partition, and what it must compute."""

import dataclasses

import numpy as np
import onnx
from onnx import helper, numpy_helper

from harness.compare import differences
from harness.oracle import InvalidModel, expected_outputs
from harness.partition import Partition, split_randomly

from . import MOTIFS, Sketch, windows

#: What outputs may differ by: of their largest magnitude, or at least.
TOLERANCE = 1e-4
ABSOLUTE_TOLERANCE = 1e-6

#: Inputs and weights are changed by this much of themselves, to find outputs that have no certain value: those that
#: change by more than `_CONDITION` times as much are not compared.
_PERTURBATION = 1e-6
_CONDITION = 30
#: Nor are those compared that are wrong once every operation's results are so many units in the last place off:
#: deviations of numbers that are equal, for example, are zero for whatever inputs, and then divided by almost zero.
_ROUNDING = 4

_MESHES = ({"y": 1}, {"y": 2}, {"y": 3}, {"y": 4}, {"y": 2, "x": 2}, {"y": 2, "x": 3})
_MESH_WEIGHTS = (0.04, 0.16, 0.2, 0.2, 0.2, 0.2)
_OPSETS = (18, 19, 20, 21, 22, 23)

#: The largest extents of inputs by rank, and the largest number of elements of any tensor.
_EXTENTS = (0, 60, 30, 20, 17, 9, 4)
_LARGE_EXTENTS = (0, 4000, 300, 90, 60, 20, 7)
_SIZE = 40_000
_LARGE_SIZE = 600_000


@dataclasses.dataclass
class GraphCase:
    """What runs, and what comes out; outputs without a certain value are not in `expected`."""

    seed: int
    model: onnx.ModelProto
    inputs: dict
    expected: dict
    partition: Partition
    libraries: bool

    def __str__(self):
        ops = " ".join(node.op_type for node in self.model.graph.node)
        shapes = ", ".join(f"{n}:{v.dtype}{list(v.shape)}" for n, v in self.inputs.items())
        libraries = "" if self.libraries else " --no-libraries"
        return f"seed {self.seed}: {ops}; {shapes}; {self.partition}{libraries}"


def random_graph(seed, large=False, images=False):
    """The case of `seed`; None if ONNX Runtime does not take the graph.

    With `images`, most operations read windows one behind the other, and what is split are images and volumes.
    """
    rng = np.random.default_rng([seed, 2 if images else 1 if large else 0])
    s = Sketch(rng, int(rng.choice(_OPSETS)), _LARGE_SIZE if large else _SIZE)
    if images:
        _add_images(s)
    else:
        _add_inputs(s, _LARGE_EXTENTS if large else _EXTENTS)
    _add_motifs(s, images)
    outputs = _choose_outputs(s)
    partition = _choose_partition(s, outputs, first=2 if images else 0)
    libraries = s.chance(0.6)
    model = s.model(outputs)
    try:
        expected = expected_outputs(model, s.inputs)
        perturbed = expected_outputs(*_perturb(s, model))
        rounded = expected_outputs(*_round(s, model))
    except InvalidModel:  # It took each node alone, but does not take the graph.
        return None
    certain = {
        name: value
        for name, value in expected.items()
        if not differences(perturbed, {name: value}, _CONDITION * _PERTURBATION)
        and not differences(rounded, {name: value}, TOLERANCE, ABSOLUTE_TOLERANCE)
    }
    return GraphCase(seed, model, s.inputs, certain, partition, libraries)


def _add_inputs(s, extents):
    dtype = np.float64 if s.chance(0.06) else np.float32
    for number in range(s.pick(1, 1, 2, 2, 3)):
        if s.inputs and s.chance(0.4):
            shape = s.pick(*(v.shape for v in s.inputs.values()))
        else:
            rank = s.pick(0, 1, 2, 3, 3, 4, 4, 4, 4, 5, 6)
            shape = [s.integer(1, extents[rank]) for _ in range(rank)]
            if rank > 2:  # Few images of few channels.
                shape[0] = s.pick(1, 1, 2, 3)
                shape[1] = min(shape[1], s.pick(2, 4, 6, 8))
            if rank and s.chance(0.01):
                shape[s.integer(0, rank - 1)] = 0
        if number and s.chance(0.12):
            s.input(s.rng.integers(-9, 10, shape).astype(s.pick(np.int64, np.int32)))
        else:
            s.input(s.rng.uniform(-2, 2, shape).astype(dtype))


def _add_images(s):
    """One or two of few channels."""
    for _ in range(s.pick(1, 1, 2)):
        spatial = s.pick([60], [40, 12], [25, 24], [13, 30], [14, 9, 9])
        s.input(s.rng.uniform(-2, 2, [1, s.integer(1, 4), *(s.integer(n // 2, n) for n in spatial)]).astype(np.float32))


def _add_motifs(s, images):
    functions = [function for _, function in MOTIFS.values()]
    weights = np.array([weight for weight, _ in MOTIFS.values()], float)
    if images:
        weights *= [1 if function.__module__ == windows.__name__ else 0.05 for function in functions]
    wanted = s.integer(3, 13)
    # Some inputs, such as a single scalar, suit few motifs.
    for _ in range(200):
        if len(s.nodes) >= wanted:
            break
        s.attempt(functions[s.rng.choice(len(functions), p=weights / weights.sum())])


def _choose_outputs(s):
    """All that nothing reads, and now and then what something does."""
    read = {name for node in s.nodes for name in node.input}
    made = [name for node in s.nodes for name in node.output]
    return [name for name in made if name not in read or s.chance(0.08)]


def _choose_partition(s, outputs, first):
    """What has spatial dimensions, if `first` is that of the first one, is split along these alone."""
    partition = Partition(dict(_MESHES[s.rng.choice(len(_MESHES), p=_MESH_WEIGHTS)]))
    made = [name for node in s.nodes for name in node.output]
    for name in [*s.inputs, *made]:
        probability = 0.8 if name in s.inputs else 0.15 if name in outputs else 0.01 if first else 0.04
        if s.values[name].ndim > first and s.chance(probability):
            split_randomly(s.rng, partition, name, s.values[name].shape, first)
    return partition


def _perturb(s, model):
    """The model and the inputs with other last bits."""

    def change(value):
        if value.dtype.kind != "f":
            return value
        factors = 1 + _PERTURBATION * s.rng.choice([-1, 1], value.shape)
        return np.asarray(value * factors, value.dtype)

    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for tensor in changed.graph.initializer:
        # The numbers in an activation, or the scales of a resize, are what they are.
        if tensor.name in s.drawn:
            tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), tensor.name))
    return changed, {name: change(value) for name, value in s.inputs.items()}


def _round(s, model):
    """The model, with what each operation computes a little off, and the inputs that say how."""
    rounded = onnx.ModelProto()
    rounded.CopyFrom(model)
    graph, inputs = rounded.graph, dict(s.inputs)
    del graph.node[:]
    for node in model.graph.node:
        computed = graph.node.add()
        computed.CopyFrom(node)
        for index, name in enumerate(node.output):
            if name not in s.values or name in s.exact:
                continue
            value = s.values[name]
            errors = s.rng.choice([-1, 1], value.shape) * _ROUNDING * np.finfo(value.dtype).eps
            inputs[f"{name}.factors"] = np.asarray(1 + errors, value.dtype)
            computed.output[index] = f"{name}.computed"
            graph.node.append(helper.make_node("Mul", [f"{name}.computed", f"{name}.factors"], [name]))
            # Without a shape: that which ONNX Runtime expects of some pools is not that which they give.
            dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
            graph.input.append(helper.make_tensor_value_info(f"{name}.factors", dtype, None))
    return rounded, inputs
