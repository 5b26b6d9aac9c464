# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products and reductions."""

import numpy as np

from .draft import generates


@generates("MatMul", weight=10)
def matmul(d, op):
    opset = d.since(7)
    m, k, n = (d.integer(1, d.pick(5, 17, 40)) for _ in range(3))
    batch = [d.integer(1, 4) for _ in range(d.pick(0, 0, 1, 2))]

    def lead(shape):
        shape = [1 if d.chance(0.2) else b for b in shape]
        return shape[d.integer(0, len(shape)) if d.chance(0.3) else 0 :]

    a, b = [*lead(batch), m, k], [*lead(batch), k, n]
    if d.chance(0.1):
        a = [k]
    elif d.chance(0.1):
        b = [k]
    dtype = d.pick(np.int32, np.int64) if opset >= 9 and d.chance(0.1) else np.float32
    operands = [d.input(d.values(a, dtype)), d.either(d.values(b, dtype), 0.5)]
    if d.chance(0.1):  # The constant on the left.
        d.inputs.clear()
        d.constants.clear()
        operands = [d.constant(d.values(a, dtype)), d.input(d.values(b, dtype))]
    d.node(op, *operands)


@generates("Gemm", weight=7)
def gemm(d, op):
    opset = d.since(7)
    m, k, n = (d.integer(1, d.pick(5, 17, 40)) for _ in range(3))
    trans_a, trans_b = d.pick(None, 0, 1), d.pick(None, 0, 1)
    inputs = [
        d.input(d.values((k, m) if trans_a else (m, k))),
        d.either(d.values((n, k) if trans_b else (k, n)), 0.6),
    ]
    if opset < 11 or d.chance(0.7):
        bias = d.pick((n,), (n,), (1, n), (m, 1), (m, n), (1,), ())
        inputs.append(d.either(d.values(bias), 0.6))
    d.node(
        op,
        *inputs,
        alpha=d.pick(None, 0.5, -1.25),
        beta=d.pick(None, 0.5, 0.0, 2.0),
        transA=trans_a,
        transB=trans_b,
    )


@generates("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", weight=5)
def reduction(d, op):
    opset = d.since(7)
    axes_are_input = opset >= (13 if op == "ReduceSum" else 18)
    dtype = d.pick(np.int32, np.int64) if op != "ReduceMean" and d.chance(0.2) else np.float32
    d.exact = op in ("ReduceMax", "ReduceMin")
    shape = d.shape(1, 5)
    x = d.input(d.values(shape, dtype))
    axes = d.rng.permutation(len(shape))[: d.integer(1, len(shape))].tolist()
    if opset >= 11:
        axes = [a - len(shape) if d.chance(0.3) else a for a in axes]
    if d.chance(0.15):
        axes = None
    attributes = {"keepdims": d.pick(None, 0, 1)}
    inputs = [x]
    if not axes_are_input:
        attributes["axes"] = axes
    else:
        attributes["noop_with_empty_axes"] = d.pick(None, 0, 1)
        if axes is not None:
            inputs.append(d.ints(*axes))
        elif d.chance(0.5):
            inputs.append(d.ints())
    d.node(op, *inputs, **attributes)
