# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Metadata of nodes as `torch.onnx.export(dynamo=True)` writes them, and a small model with them.

PyTorch's `torch/onnx/_internal/exporter/_core.py` says how: `namespace` joins the modules around a node and the node by
"/", each as "name: class"; `name_scopes` and `class_hierarchy` are the `repr` of lists of these; `stack_trace` is a
Python traceback of the forward methods, the innermost one last.

Usage: source_names.py FILE.onnx [CHANNELS] writes the model, whose image has so many channels; 3 fit the weights.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

#: Where PyTorch's own modules lie.
SITE = "/home/ann/env/lib/python3.11/site-packages"


def trace(*frames):
    """A traceback with (file, line, text) of each frame, as PyTorch stores it."""
    return "".join(f'  File "{file}", line {line}, in forward\n    {text}\n' for file, line, text in frames).lstrip()


def annotate(node, modules, name, target, frames=()):
    """Adds the metadata of an operator: `modules` are (path, class) from the model on."""
    parts = [*modules, (name, target)]
    values = {
        "namespace": "/".join(f"{path}: {kind}" for path, kind in parts),
        "pkg.torch.onnx.class_hierarchy": repr([kind for _, kind in parts]),
        "pkg.torch.onnx.fx_node": f"%{name} : [num_users=1] = call_function[target=torch.ops.{target}]()",
        "pkg.torch.onnx.name_scopes": repr([path for path, _ in parts]),
        "pkg.torch.onnx.stack_trace": trace(*frames),
    }
    for key, value in values.items():
        node.metadata_props.add(key=key, value=value)


def set_metadata(node, **values):
    """Replaces the metadata of a node; '__' stands for '.' in keys."""
    del node.metadata_props[:]
    for key, value in values.items():
        node.metadata_props.add(key=key.replace("__", "."), value=value)


def named_model(annotated=True, channels=3):
    """A model of `/home/ann/net.py`:

    class Net(torch.nn.Module):
        def __init__(self):
            self.body = torch.nn.Sequential(Conv2d(3, 8, 3, padding=1), ReLU(), Conv2d(8, 8, 3, padding=1))
        def forward(self, image):
            features = self.body(image)      # line 8
            return features + features.mean(dim=1, keepdim=True)     # line 9
    """
    random = np.random.default_rng(0)
    weights = [random.normal(size=shape).astype(np.float32) for shape in ((8, 3, 3, 3), (8, 8, 3, 3))]
    nodes = [
        helper.make_node("Conv", ["image", "w0"], ["conv2d"], name="node_conv2d", pads=[1] * 4),
        helper.make_node("Relu", ["conv2d"], ["relu"], name="node_relu"),
        helper.make_node("Conv", ["relu", "w1"], ["conv2d_1"], name="node_conv2d_1", pads=[1] * 4),
        helper.make_node("ReduceMean", ["conv2d_1"], ["mean"], name="node_mean", axes=[1]),
        helper.make_node("Add", ["conv2d_1", "mean"], ["add"], name="node_add"),
    ]
    if annotated:
        net, body = ("", "net.Net"), ("body", "torch.nn.modules.container.Sequential")
        call = ("/home/ann/net.py", 8, "features = self.body(image)")
        container = (f"{SITE}/torch/nn/modules/container.py", 250, "input = module(input)")
        layers = (
            ("body.0", "torch.nn.modules.conv.Conv2d", "conv2d", "aten.conv2d.default"),
            ("body.1", "torch.nn.modules.activation.ReLU", "relu", "aten.relu.default"),
            ("body.2", "torch.nn.modules.conv.Conv2d", "conv2d_1", "aten.conv2d.default"),
        )
        for node, (path, kind, name, target) in zip(nodes, layers):
            inner = (
                f"{SITE}/torch/nn/modules/conv.py",
                548,
                "return self._conv_forward(input, self.weight, self.bias)",
            )
            annotate(node, [net, body, (path, kind)], name, target, [call, container, inner])
        last = ("/home/ann/net.py", 9, "return features + features.mean(dim=1, keepdim=True)")
        annotate(nodes[3], [net], "mean", "aten.mean.dim", [last])
        annotate(nodes[4], [net], "add", "aten.add.Tensor", [last])
    graph = helper.make_graph(
        nodes,
        "main_graph",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, channels, 16, 12])],
        [helper.make_tensor_value_info("add", TensorProto.FLOAT, [1, 8, 16, 12])],
        [numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(weights)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="pytorch")
    model.ir_version = 10
    return model


if __name__ == "__main__":
    onnx.save(named_model(channels=int(sys.argv[2]) if len(sys.argv) > 2 else 3), sys.argv[1])
