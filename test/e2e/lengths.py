# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model, its inputs and the comparison with ONNX Runtime, for tests of lengths that vary from run to run."""

import numpy as np
import onnx
import onnxruntime
from harness.cpus import cpu_up_to
from harness.partition import Partition, uneven_sizes

BOUND, WIDTH, ENTRIES = 11, 6, 12
LENGTHS = [4, 0, BOUND, 1, 7]
MESHES = [{"y": 1}, {"y": 2}, {"y": 3}, {"y": 4}, {"y": 2, "x": 2}]

#: What changes elements, moves them along with their positions, or sums up to them.
ELEMENTWISE = f"""
<ir_version: 9, opset_import: ["" : 18]>
elementwise (int64[2, seq] tokens, float[2, seq, {WIDTH}] shift, float[{ENTRIES}, {WIDTH}] table)
  => (float[2, seq, {WIDTH}] mixed, float[{WIDTH}, 2, seq] turned, int64[2, seq] running)
  <int64 one = {{1}}>
{{
  rows = Gather<axis = 0>(table, tokens)
  sum = Add(rows, shift)
  mixed = Relu(sum)
  turned = Transpose<perm = [2, 0, 1]>(rows)
  running = CumSum(tokens, one)
}}
"""


#: The same on nearly all machines.
CPU = cpu_up_to("x86-64-v3")


def parse(text):
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model)
    return model


def elementwise_inputs(rng, length):
    return {
        "tokens": rng.integers(-ENTRIES, ENTRIES, (2, length)),
        "shift": rng.standard_normal((2, length, WIDTH), np.float32),
        "table": rng.standard_normal((ENTRIES, WIDTH), np.float32),
    }


def split_flags(mesh, name, shape, dim):
    """`mesh` splits a dimension of an input, unevenly."""
    partition = Partition(mesh)
    if partition.ranks > 1:
        partition.split(name, len(shape), dim, "+".join(mesh), uneven_sizes(shape[dim], partition.ranks))
    return partition.flags()


def check_lengths(program, model, make_inputs, lengths=LENGTHS, rtol=0.0, atol=0.0):
    """One program, with lengths in an order in which longer runs leave behind what shorter ones must not read."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    rng = np.random.default_rng(7)
    for length in lengths:
        inputs = make_inputs(rng, length)
        actual = program.run(inputs)
        for name, expected in zip(names, session.run(names, inputs)):
            assert actual[name].shape == expected.shape and actual[name].dtype == expected.dtype, (name, length)
            np.testing.assert_allclose(actual[name], expected, rtol, atol, err_msg=f"{name} at length {length}")
