# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Good, odd and bad models, damaged files of all kinds, and command lines that name them."""

import os

import numpy as np
from harness.backend import call, tool
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def make_value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def make_model(nodes, inputs, outputs, initializers=(), opset=17, domains=()):
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    graph = helper.make_graph(nodes, "bad", inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = 8
    return model


def _conv(height=16):
    """The good model that most cases start from: input image (1, 3, height, 12), output result."""
    weight = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["image", "weight"], ["result"], name="stem", pads=[1] * 4)
    return make_model(
        [node],
        [make_value("image", [1, 3, height, 12])],
        [make_value("result", [1, 4, height, 12])],
        [numpy_helper.from_array(weight, "weight")],
    )


def _one_node(op, inputs=("x",), domain="", output_type=FLOAT, **attributes):
    node = helper.make_node(op, list(inputs), ["y"], name="culprit", domain=domain, **attributes)
    return make_model(
        [node], [make_value("x", [2, 3])], [make_value("y", None, output_type)], domains=[domain] if domain else ()
    )


def _cyclic():
    return make_model(
        [
            helper.make_node("Add", ["x", "b"], ["a"], name="first"),
            helper.make_node("Relu", ["a"], ["b"], name="second"),
        ],
        [make_value("x", [2])],
        [make_value("b", [2])],
    )


def _twice():
    nodes = [helper.make_node(op, ["x"], ["y"], name=op.lower()) for op in ("Relu", "Neg")]
    return make_model(nodes, [make_value("x", [2])], [make_value("y", [2])])


def _wrong_channels():
    model = _conv()
    model.graph.input[0].CopyFrom(make_value("image", [1, 5, 16, 12]))
    return model


def _short_initializer():
    model = _conv()
    tensor = model.graph.initializer[0]
    tensor.raw_data = tensor.raw_data[:100]
    return model


def _external(location, offset=0, length=4 * 4 * 27):
    model = _conv()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return model


def _many_unsupported():
    nodes = [
        helper.make_node("FancyOne", ["x"], ["a"], name="one", domain="acme"),
        helper.make_node("FancyTwo", ["a"], ["y"], name="two", domain="acme"),
    ]
    return make_model(nodes, [make_value("x", [2])], [make_value("y", [2])], domains=["acme"])


def _opset(version):
    model = _conv()
    model.opset_import[0].version = version
    return model


def _typed(dtype):
    node = helper.make_node("Identity", ["x"], ["y"], name="culprit")
    return make_model([node], [make_value("x", [2], dtype)], [make_value("y", [2], dtype)])


def _operator(op, shape, dtype=FLOAT, constants=(), opset=17, **attributes):
    """One operator on an input x and constants."""
    names = [f"constant{i}" for i in range(len(constants))]
    node = helper.make_node(op, ["x", *names], ["y"], name="culprit", **attributes)
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in zip(names, constants)]
    return make_model([node], [make_value("x", shape, dtype)], [make_value("y", None, dtype)], values, opset)


def _padded(pads, **attributes):
    return _operator("Pad", [4], constants=[np.array(pads, np.int64)], **attributes)


def _enlarged():
    """Keeps an aspect ratio that the sizes do not bound: 2^31 - 1 times 2^30 elements wide."""
    return make_model(
        [helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], name="culprit", keep_aspect_ratio_policy="not_smaller")],
        [make_value("x", [1, 2**30])],
        [make_value("y", None)],
        [numpy_helper.from_array(np.array([2**31 - 1, 1], np.int64), "sizes")],
        opset=19,
    )


_WEIGHT = np.ones((1, 1, 1, 1), np.float32)

MODELS = {
    "good": _conv,
    "dynamic": lambda: _conv("H"),
    "cyclic": _cyclic,
    "twice": _twice,
    "undefined": lambda: _one_node("Add", ("x", "nowhere")),
    "wrong-channels": _wrong_channels,
    "short-initializer": _short_initializer,
    "bad-axis": lambda: _one_node("Softmax", axis=7),
    "bad-perm": lambda: _one_node("Transpose", perm=[0, 0]),
    "bad-attribute-type": lambda: _one_node("Softmax", axis=[1, 2]),
    "missing-attribute": lambda: _one_node("DepthToSpace"),
    "too-few-inputs": lambda: _one_node("Add"),
    "unknown-op": lambda: _one_node("NoSuchOperator"),
    "custom-domain": lambda: _one_node("Fancy", domain="acme"),
    "many-unsupported": _many_unsupported,
    "no-opset": lambda: _opset(0),
    "future-opset": lambda: _opset(999),
    "complex": lambda: _typed(TensorProto.COMPLEX64),
    "strings": lambda: _typed(TensorProto.STRING),
    "pads-lowest": lambda: _padded([-(2**63), 0]),
    "pads-highest": lambda: _padded([2**63 - 1, 2**63 - 1]),
    "pads-long": lambda: _padded([2**30, 0], mode="edge"),
    "transposed-far": lambda: _operator("ConvTranspose", [1, 1, 2**34, 1], constants=[_WEIGHT], strides=[2**30, 1]),
    "transposed-same": lambda: _operator(
        "ConvTranspose", [1, 1, 2**34, 1], constants=[_WEIGHT], strides=[2**31 - 1, 1], auto_pad="SAME_UPPER"
    ),
    "stride-highest": lambda: _operator("Conv", [1, 1, 4, 4], constants=[_WEIGHT], strides=[2**63 - 1, 1]),
    "enlarged": _enlarged,
    "too-long": lambda: _operator("Relu", [2**42]),
    "rank-33": lambda: _operator("Relu", [1] * 33),
    "rank-1000": lambda: _operator("Transpose", [1] * 1000),
    "rank-20": lambda: _operator("Transpose", [2] * 20),
    "dilated-far": lambda: _operator(
        "Conv", [1, 1, 4, 4], constants=[np.ones((1, 1, 2, 2), np.float32)], dilations=[2**29] * 2, auto_pad="SAME_UPPER"
    ),
    "empty-reversed": lambda: _operator("Slice", [0, 3], constants=[np.array([v], np.int64) for v in (5, -9, 0, -1)]),
    "external-missing": lambda: _external("weights.bin"),
    "external-outside": lambda: _external("../weights.bin"),
    "external-absolute": lambda: _external("/etc/hostname"),
    "external-short": lambda: _external("small.bin"),
    "external-far": lambda: _external("large.bin", offset=2**40),
    "external-negative": lambda: _external("large.bin", offset=-8),
}


def compile_command(model="good", flags="", mesh="--mesh y=2", shard="--shard image=_,_,y,_"):
    return f"compile {{dir}}/{model}.onnx -o {{dir}}/out.dvt {mesh} {shard} {flags}"


def compile_unsharded(model):
    """Compiles a model whose inputs are not sharded."""
    return compile_command(model, shard="")


IMAGE = "--input image=@{dir}/image.npy"


def run_command(inputs=IMAGE, artifact="good", flags=""):
    return f"run {{dir}}/{artifact}.dvt {inputs} {flags}"


def write_files(root):
    """Writes all files that the cases name into a new folder, and returns it."""
    root.mkdir()
    for name, make in MODELS.items():
        (root / f"{name}.onnx").write_bytes(make().SerializeToString())
    good = (root / "good.onnx").read_bytes()
    garbage = np.random.default_rng(0).bytes(3000)
    (root / "empty.onnx").write_bytes(b"")
    (root / "garbage.onnx").write_bytes(garbage)
    (root / "truncated.onnx").write_bytes(good[: len(good) // 2])
    (root / "text.onnx").write_text("this is no model\n" * 20)
    (root / "small.bin").write_bytes(bytes(100))
    (root / "large.bin").write_bytes(bytes(4000))

    os.mkfifo(root / "pipe.npy")
    for name in ("loop.onnx", "loop.dvt", "loop.npy"):
        (root / name).symlink_to(name)

    image = np.zeros((1, 3, 16, 12), np.float32)
    np.save(root / "image.npy", image)
    np.save(root / "wide.npy", np.zeros((1, 3, 16, 13), np.float32))
    np.save(root / "flat.npy", np.zeros(576, np.float32))
    np.save(root / "doubles.npy", image.astype(np.float64))
    (root / "truncated.npy").write_bytes((root / "image.npy").read_bytes()[:-8])

    command = compile_command().format(dir=root).replace("out.dvt", "good.dvt")
    code, _, messages = call([tool("dovetail"), *command.split()])
    assert code == 0, messages
    artifact = (root / "good.dvt").read_bytes()
    (root / "artifact.onnx").write_bytes(artifact)
    flipped = bytearray(artifact)
    flipped[len(flipped) // 2] ^= 0x40
    (root / "empty.dvt").write_bytes(b"")
    (root / "garbage.dvt").write_bytes(garbage)
    (root / "truncated.dvt").write_bytes(artifact[: len(artifact) * 2 // 3])
    (root / "flipped.dvt").write_bytes(bytes(flipped))
    (root / "model.dvt").write_bytes(good)
    return root
