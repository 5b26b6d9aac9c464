# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A mixture of experts: each token goes to two of several small networks, which have room for some each."""

import numpy as np
from onnx import numpy_helper

from .graph import Graph
from .transformer import gelu, layer_norm


def _per_expert(g, x, experts, cin, cout):
    weight = g.weight(g.normal((experts, cin, cout), cin**-0.5))
    return g.op("Add", g.op("MatMul", x, weight), g.weight(g.normal((experts, 1, cout), 0.1), "bias"))


def _layer(g, x, tokens, size, inner, experts, chosen, capacity):
    """Of (tokens, size): experts that are full leave out later tokens."""
    gates = g.op("Softmax", g.linear(x, size, experts, gain=3.0), axis=-1)
    gates, expert = g.op("TopK", gates, g.ints(chosen), outputs=2, axis=-1)
    gates = g.op("Div", gates, g.op("ReduceSum", gates, g.ints(-1), keepdims=1))
    expert = g.op("Reshape", expert, g.ints(-1))
    # How many came to the expert before.
    sent = g.op("OneHot", expert, g.constant(experts, np.int64), g.constant([0, 1], np.int64), axis=-1)
    number = g.op("Mul", g.op("CumSum", sent, g.constant(0, np.int64)), sent)
    number = g.op("Sub", g.op("ReduceSum", number, g.ints(-1), keepdims=0), g.constant(1, np.int64))
    fits = g.op("Less", number, g.constant(capacity, np.int64))
    # The last place is for those that are left out.
    place = g.op("Where", fits, number, g.constant(capacity, np.int64))
    index = g.op("Concat", *(g.op("Unsqueeze", i, g.ints(1)) for i in (expert, place)), axis=1)
    copies = g.op("Expand", g.op("Unsqueeze", x, g.ints(1)), g.ints(tokens, chosen, size))
    copies = g.op("Reshape", copies, g.ints(-1, size))
    room = g.op(
        "ConstantOfShape",
        g.ints(experts, capacity + 1, size),
        value=numpy_helper.from_array(np.zeros(1, np.float32)),
    )
    y = g.op("ScatterND", room, index, copies)
    y = _per_expert(g, gelu(g, _per_expert(g, y, experts, size, inner)), experts, inner, size)
    y = g.op("GatherND", y, index)
    gates = g.op("Mul", g.op("Reshape", gates, g.ints(-1)), g.op("Cast", fits, to=1))
    y = g.op("Mul", y, g.op("Unsqueeze", gates, g.ints(1)))
    return g.op("ReduceSum", g.op("Reshape", y, g.ints(tokens, chosen, size)), g.ints(1), keepdims=0)


def experts(batch=2, length=37, size=32, inner=64, experts=6, chosen=2, capacity=24, layers=2, opset=18, seed=0):
    """Input `tokens` (batch, length, size). Output `features` of the same shape."""
    g = Graph("experts", opset, seed)
    tokens = batch * length
    x = g.op("Reshape", g.input("tokens", [batch, length, size]), g.ints(-1, size))
    for _ in range(layers):
        y = layer_norm(g, x, size, False)
        x = g.op("Add", x, _layer(g, y, tokens, size, inner, experts, chosen, capacity))
    x = layer_norm(g, x, size, False)
    g.output(g.op("Reshape", x, g.ints(batch, length, size)), "features", 3)
    return g.build()
