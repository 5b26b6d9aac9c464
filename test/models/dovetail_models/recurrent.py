# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent networks, as PyTorch exports them, and recurrences as graphs of Loop and Scan."""

import numpy as np
from onnx import TensorProto, helper

from .graph import Graph


def _zeros(g, x, layers, hidden):
    """First states of zeros, for the batch that `x` (length, batch, ...) has."""
    batch = g.op("Gather", g.op("Shape", x), g.constant(1, np.int64), axis=0)
    shape = g.op("Concat", g.ints(layers), g.op("Unsqueeze", batch, g.ints(0)), g.ints(hidden), axis=0)
    return g.op("Expand", g.constant(0.0), shape)


def _layer(g, op, x, inputs, hidden, states, directions, **attributes):
    """A layer of (length, batch, inputs); `states` are its slices of the first states."""
    gates = {"LSTM": 4, "GRU": 3}[op]
    bound = hidden**-0.5
    weights = [
        g.weight(g.uniform(shape, -bound, bound))
        for shape in (
            (directions, gates * hidden, inputs),
            (directions, gates * hidden, hidden),
            (directions, 2 * gates * hidden),
        )
    ]
    if directions == 2:
        attributes["direction"] = "bidirectional"
    results = g.op(op, x, *weights, "", *states, outputs=len(states) + 1, hidden_size=hidden, **attributes)
    if directions == 1:
        return g.op("Squeeze", results[0], g.ints(1)), results[1:]
    swapped = g.op("Transpose", results[0], perm=[0, 2, 1, 3])
    return g.op("Reshape", swapped, g.ints(0, 0, -1)), results[1:]


def bilstm(length=40, batch=3, inputs=24, hidden=32, layers=2, classes=11, opset=17, seed=0):
    """Input `signal` (batch, length, inputs); outputs `scores` (batch, length, classes), `state` and `cell`, the last ones
    of all layers and directions (2 * layers, batch, hidden)."""
    g = Graph("bilstm", opset, seed)
    x = g.op("Transpose", g.input("signal", [batch, length, inputs]), perm=[1, 0, 2])
    first = _zeros(g, x, 2 * layers, hidden)
    last = []
    for layer in range(layers):
        part = g.op("Slice", first, g.ints(2 * layer), g.ints(2 * layer + 2), g.ints(0))
        x, states = _layer(g, "LSTM", x, inputs if layer == 0 else 2 * hidden, hidden, [part, part], 2)
        last.append(states)
    x = g.op("Transpose", x, perm=[1, 0, 2])
    g.output(g.linear(x, 2 * hidden, classes), "scores", 3)
    g.output(g.op("Concat", *(states[0] for states in last), axis=0), "state", 3)
    g.output(g.op("Concat", *(states[1] for states in last), axis=0), "cell", 3)
    return g.build()


def gru_encoder(length=30, batch=3, vocabulary=512, width=24, hidden=75, layers=2, opset=17, seed=0):
    """Input `ids` (batch, length); output `code` (batch, hidden), from the last state of the last layer."""
    g = Graph("gru-encoder", opset, seed)
    ids = g.input("ids", [batch, length], TensorProto.INT64)
    x = g.op("Gather", g.weight(g.normal((vocabulary, width))), ids)
    x = g.op("Transpose", x, perm=[1, 0, 2])
    first = _zeros(g, x, layers, hidden)
    for layer in range(layers):
        part = g.op("Slice", first, g.ints(layer), g.ints(layer + 1), g.ints(0))
        size = width if layer == 0 else hidden
        x, states = _layer(g, "GRU", x, size, hidden, [part], 1, linear_before_reset=1)
    code = g.linear(g.op("Squeeze", states[0], g.ints(0)), hidden, hidden)
    g.output(g.op("Tanh", code), "code", 2)
    return g.build()


def _value(name, dtype=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def loop_decoder(length=6, batch=3, size=32, memory=17, opset=17, seed=0):
    """Input `memory` (batch, memory, size), which each of `length` steps attends to; output `steps` (batch, length, size).

    A scripted loop: what all steps have in common is inside of it, and its result is a list.
    """
    g = Graph("loop-decoder", opset, seed)
    kept = g.input("memory", [batch, memory, size])
    state = g.op("ReduceMean", kept, axes=[1], keepdims=0)
    outer = g.nodes
    g.nodes = []
    row = g.op("Gather", g.weight(g.normal((length, size))), "step", axis=0)
    query = g.op("Unsqueeze", g.op("Add", g.linear("state_in", size, size), row), g.ints(1))
    keys = g.op("Transpose", g.linear(kept, size, size), perm=[0, 2, 1])
    scores = g.op("Softmax", g.op("MatMul", query, keys), axis=-1)
    seen = g.op("Squeeze", g.op("MatMul", scores, kept), g.ints(1))
    new = g.op("Tanh", g.op("Add", g.linear(seen, size, size), g.linear("state_in", size, size)), name="state_out")
    g.op("SequenceInsert", "list_in", new, name="list_out")
    g.op("Identity", "go_on_in", name="go_on_out")
    sequence = helper.make_tensor_sequence_value_info
    body = helper.make_graph(
        g.nodes,
        "body",
        [
            _value("step", TensorProto.INT64, []),
            _value("go_on_in", TensorProto.BOOL, []),
            _value("state_in", shape=[batch, size]),
            sequence("list_in", TensorProto.FLOAT, None),
        ],
        [
            _value("go_on_out", TensorProto.BOOL, []),
            _value("state_out", shape=[batch, size]),
            sequence("list_out", TensorProto.FLOAT, None),
        ],
    )
    # Constants of the body are nobody else's.
    g.nodes, g._constants = outer, {}
    empty = g.op("SequenceEmpty", dtype=TensorProto.FLOAT)
    count, go_on = g.constant(length, np.int64), g.constant(True, np.bool_)
    results = g.op("Loop", count, go_on, state, empty, outputs=2, body=body)
    g.output(g.op("ConcatFromSequence", results[1], axis=1, new_axis=1), "steps", 3)
    return g.build()


def scan_filter(length=20, batch=3, size=24, opset=17, seed=0):
    """Input `signal` (length, batch, size); outputs `states` (length, batch, size) of a recurrence that goes backward, and
    `energy` (batch), the last sum of their squares."""
    g = Graph("scan-filter", opset, seed)
    x = g.input("signal", [length, batch, size])
    zeros, none = g.weight(np.zeros((batch, size), np.float32)), g.weight(np.zeros((batch,), np.float32))
    outer = g.nodes
    g.nodes = []
    gate = g.op("Sigmoid", g.op("Add", g.linear("now", size, size), g.linear("state_in", size, size, bias=False)))
    kept = g.op("Mul", gate, "state_in")
    rest = g.op("Mul", g.op("Sub", g.constant(1.0), gate), g.op("Tanh", g.linear("now", size, size)))
    g.op("Add", kept, rest, name="state_out")
    square = g.op("ReduceMean", g.op("Mul", "state_out", "state_out"), axes=[1], keepdims=0)
    g.op("Add", "energy_in", square, name="energy_out")
    g.op("Identity", "state_out", name="state_now")
    body = helper.make_graph(
        g.nodes,
        "body",
        [_value("state_in", shape=[batch, size]), _value("energy_in", shape=[batch]), _value("now", shape=[batch, size])],
        [_value(name, shape=shape) for name, shape in
         (("state_out", [batch, size]), ("energy_out", [batch]), ("state_now", [batch, size]))],
    )
    g.nodes, g._constants = outer, {}
    results = g.op(
        "Scan", zeros, none, x, outputs=3, body=body, num_scan_inputs=1,
        scan_input_directions=[1], scan_output_directions=[1],
    )
    g.output(results[2], "states", 3)
    g.output(results[1], "energy", 1)
    return g.build()
