# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators with graphs, and sequences."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .draft import generates


def _value(name, dtype=TensorProto.FLOAT):
    """A value of a graph, whose shape inference finds."""
    return helper.make_tensor_value_info(name, dtype, None if dtype == TensorProto.FLOAT else [])


def _const(name, array):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(array), name))


def _graph(name, nodes, inputs, outputs):
    return helper.make_graph(nodes, name, inputs, [_value(o) if isinstance(o, str) else o for o in outputs])


@generates("If", weight=4)
def if_(d, op):
    """A condition that is known or not. The branch that is not taken may look up what is not there."""
    d.since(13)
    d.exact = True
    shape = d.shape(1, 3)
    taken = d.chance(0.5)
    x, y = d.input(d.values(shape)), d.input(d.values(shape))
    wrong = np.array([shape[0] + 3])
    good = d.rng.integers(-shape[0], shape[0], [1])
    rows = [d.input(good if branch == taken else wrong) for branch in (True, False)]
    condition = d.either(np.array(taken) if d.chance(0.5) else np.array([taken]), 0.3)

    def branch(number, first, second):
        sign = d.pick("Neg", "Abs", "Identity")
        nodes = [
            helper.make_node("Gather", [first, rows[number]], [f"row{number}"], axis=0),
            helper.make_node("Max", [second, f"row{number}"], [f"a{number}"]),
            helper.make_node(sign, [f"a{number}"], [f"b{number}"]),
        ]
        return _graph(f"branch{number}", nodes, [], [f"a{number}", f"b{number}"])

    d.node(op, condition, outputs=2, then_branch=branch(0, x, y), else_branch=branch(1, y, x))


def _condition(d, kind, trips):
    """Nodes that say whether a loop goes on, from the iteration `i` and the carried `sum`."""
    if kind == "passed":
        return [helper.make_node("Identity", ["on"], ["goes_on"])]
    if kind == "constant":
        return [_const("goes_on", np.array(True))]
    if kind == "counted":
        return [_const("last", np.array(trips)), helper.make_node("Less", ["i", "last"], ["goes_on"])]
    return [
        helper.make_node("ReduceMax", ["sum"], ["largest"], keepdims=0),
        _const("limit", np.array(d.integer(1, 20) + 0.5, np.float32)),
        helper.make_node("Less", ["largest", "limit"], ["goes_on"]),
    ]


@generates("Loop", weight=6)
def loop(d, op):
    """Sums along iterations, and what each of them adds."""
    d.since(13)
    d.exact = True  # Whole numbers.
    shape, trips = d.shape(1, 3), d.integer(0, 5)
    kind = d.pick("passed", "constant", "counted", "found")
    on = np.array(d.chance(0.9))
    x = d.input(d.values(shape, np.int32).astype(np.float32))
    steps = d.input(d.values([8, *shape], np.int32).astype(np.float32))
    nodes = [
        helper.make_node("Gather", [steps, "i"], ["step"], axis=0),
        helper.make_node(d.pick("Add", "Max"), ["step", x], ["term"]),
        helper.make_node("Add", ["sum_in", "term"], ["sum"]),
    ]
    carried = ["sum"]
    inputs = [_value("i", TensorProto.INT64), _value("on", TensorProto.BOOL), _value("sum_in")]
    grows = kind != "found" and d.chance(0.3)
    initial = [d.input(d.values(shape, np.int32).astype(np.float32))]
    if grows:
        nodes += [_const("axis", np.array([0])), helper.make_node("Unsqueeze", ["step", "axis"], ["row"])]
        nodes += [helper.make_node("Concat", ["rows_in", "row"], ["rows"], axis=0)]
        carried.append("rows")
        inputs.append(_value("rows_in"))
        initial.append(d.input(d.values([2, *shape], np.int32).astype(np.float32)))
    stacked = ["term"] if kind != "found" and d.chance(0.7) else []
    body = _graph(
        "body",
        [*nodes, *_condition(d, kind, trips // 2)],
        inputs,
        [_value("goes_on", TensorProto.BOOL), *carried, *stacked],
    )
    count = d.constant(np.array(trips) if d.chance(0.5) else np.array([trips]))
    if kind == "counted" and d.chance(0.3):
        count, trips = "", trips // 2 + 1
    if kind == "found":
        given = d.pick("", d.either(on, 0.3))
    else:
        given = d.pick("", d.constant(on))
    results = d.node(op, count, given, *initial, outputs=len(carried) + len(stacked), body=body)
    results = [results] if isinstance(results, str) else results
    # Shape inference does not know how many iterations there are.
    if kind == "counted":
        trips = min(trips, trips // 2 + 1) if count else trips
    done = trips if given == "" or on else 0
    d.declare(results[0], np.zeros(shape, np.float32))
    if grows:
        d.declare(results[1], np.zeros([2 + done, *shape], np.float32))
    if stacked:
        d.declare(results[-1], np.zeros([done, *shape], np.float32))


@generates("Scan", weight=6)
def scan(d, op):
    d.since(9)
    d.exact = True  # Whole numbers.
    shape, length = d.shape(1, 2, 5), d.integer(1, 6)
    states = d.integer(0, 1)
    scanned, axes = [], []
    for _ in range(d.integer(1, 2)):
        axis = d.integer(0, len(shape))
        scanned.append(d.input(d.values([*shape[:axis], length, *shape[axis:]], np.int32).astype(np.float32)))
        axes.append(axis - len(shape) - 1 if d.opset >= 11 and d.chance(0.3) else axis)
    nodes = [
        helper.make_node("Add", ["x0", "x1" if len(scanned) > 1 else "x0"], ["sum"]),
        helper.make_node("Sub", ["sum", "state_in" if states else "x0"], ["state"]),
        helper.make_node("Neg", ["state"], ["less"]),
        helper.make_node("Identity", ["state"], ["state_out"]),
    ]
    inputs = [*(["state_in"] if states else []), *(f"x{i}" for i in range(len(scanned)))]
    stacked = d.pick(["state"], ["less"], ["less", "state"])
    body = _graph("body", nodes, [_value(i) for i in inputs], [*(["state_out"] if states else []), *stacked])
    given = [d.input(d.values(shape, np.int32).astype(np.float32))] if states else []
    result_axes = [d.integer(0, len(shape)) for _ in stacked]
    d.node(
        op,
        *given,
        *scanned,
        outputs=states + len(stacked),
        body=body,
        num_scan_inputs=len(scanned),
        scan_input_axes=axes if any(axes) or d.chance(0.5) else None,
        scan_input_directions=d.pick(None, [d.integer(0, 1) for _ in scanned]),
        scan_output_axes=result_axes if any(result_axes) or d.chance(0.5) else None,
        scan_output_directions=d.pick(None, [d.integer(0, 1) for _ in stacked]),
    )


@generates("SequenceAt", weight=2)
def sequence_at(d, op):
    """Positions that are known, or of tensors of one shape."""
    d.since(11)
    d.exact = True
    shape, size = d.shape(1, 3), d.integer(1, 4)
    parts = d.node("SequenceConstruct", *(d.input(d.values(shape)) for _ in range(size)), final=False)
    position = np.array(d.integer(-size, size - 1))
    d.node(op, parts, d.either(position))


@generates("ConcatFromSequence", weight=5)
def concat_from_sequence(d, op):
    """Parts of a tensor, of which some are left out or come twice."""
    d.since(11)
    d.exact = True
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    extent = shape[axis]
    keepdims, split = None, []
    if d.chance(0.5):
        sizes = [d.integer(0, 3) for _ in range(d.integer(1, 3))]
        shape[axis] = extent = max(1, sum(sizes))
        sizes[-1] += extent - sum(sizes)
        split = [d.pick(d.ints(*sizes), d.constant(np.array(d.integer(1, extent))))]
    else:
        keepdims = d.pick(None, 0, 1)
    parts = d.node(
        "SplitToSequence", d.input(d.values(shape)), *split, axis=axis, keepdims=keepdims, final=False
    )
    if d.chance(0.5):
        first = d.node("SequenceAt", parts, d.constant(np.array(0)), final=False)
        position = [d.constant(np.array(d.pick(-1, 0)))] if d.chance(0.5) else []
        parts = d.node("SequenceInsert", parts, first, *position, final=False)
    elif d.chance(0.5):
        length = d.node("SequenceLength", parts)
        d.node("Neg", length)
    d.node(op, parts, axis=0 if keepdims == 0 else axis, new_axis=1 if keepdims == 0 else None)
