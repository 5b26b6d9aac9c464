# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products whose weights are stored in few bits and dequantised by the model: time, and what sessions keep."""

import dataclasses
import re

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass(frozen=True)
class PackedProduct:
    """`rows` of 4 096 times 4 096² weights, with a scale for each block of 32 or as many terms."""

    rows: int
    dtype: str = "int4"
    block: int = 32
    extent: int = 4096

    @property
    def label(self):
        return f"{self.rows} × {self.extent}², {self.dtype}, blocks of {self.block}"

    @property
    def stem(self):
        """Of its files."""
        return "packed-" + re.sub(r"[^a-z0-9]+", "-", self.label.lower()).strip("-")

    def flags(self):
        """Of `dovetail compile`."""
        return []

    def build(self):
        """The model."""
        rng = np.random.default_rng(7)
        dtype = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        limit = 128 if dtype.kind == "i" else 8
        weights = rng.integers(-limit, limit, (self.extent, self.extent)).astype(dtype)
        scales = rng.uniform(0.01, 0.02, (-(-self.extent // self.block), self.extent)).astype(np.float32)
        nodes = [
            helper.make_node("DequantizeLinear", ["w", "s"], ["wide"], axis=0, block_size=self.block),
            helper.make_node("MatMul", ["x", "wide"], ["y"]),
        ]
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (self.rows, self.extent)) for name in "xy"]
        constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(scales, "s")]
        graph = helper.make_graph(nodes, "packed", ports[:1], ports[1:], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

    def make_inputs(self, model):
        """All inputs by name."""
        return {"x": np.random.default_rng(8).standard_normal((self.rows, self.extent), np.float32)}


PRODUCTS = tuple(PackedProduct(rows) for rows in (1, 4, 16, 64, 512)) + (
    PackedProduct(1, block=128),
    PackedProduct(1, "int8"),
    PackedProduct(16, "int8"),
)
