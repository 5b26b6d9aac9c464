# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small program for ranks that mpirun starts, of a pooling window, and its results."""

import numpy as np
import onnx
from harness.backend import SubprocessBackend
from harness.partition import Partition


def succeed(line):
    code, output, messages = line
    assert code == 0, (output, messages)
    return messages


def save_pool(path, columns):
    """A pooling window over 9 rows."""
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
        "pool",
        [value("x", onnx.TensorProto.FLOAT, [1, 2, 9, columns])],
        [value("y", onnx.TensorProto.FLOAT, [1, 2, 9, columns])],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


def compile_pool(folder):
    """Compiles the window for 1, 2 and 3 ranks, and for 2 with other cuts, into a folder, and returns it."""
    save_pool(folder / "pool.onnx", 7)
    for name, sizes in (("2", [4, 5]), ("2-other", [5, 4]), ("3", [3, 3, 3]), ("1", [9])):
        partition = Partition({"y": len(sizes)}).split("x", 4, 2, "y", sizes)
        SubprocessBackend().compile(folder / "pool.onnx", folder / f"pool{name}.dvt", partition)
    return folder


RANDOM = ("--input", "x=random:3")


def pooled(x):
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    shifted = [padded[:, :, v : v + x.shape[2], u : u + x.shape[3]] for v in range(3) for u in range(3)]
    return np.max(shifted, axis=0)
