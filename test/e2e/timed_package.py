# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small package of the profile ten-minutes, whose programs call libraries only: they run on the imitations, too."""

import functools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from harness.backend import ROOT
from onnx import TensorProto, helper, numpy_helper

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]


def _weights(*shape):
    return (np.random.RandomState(1).randint(-64, 64, shape) / 64 / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def _model(name, nodes, inputs, output, constants):
    value = lambda n, shape: helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
    weights = [numpy_helper.from_array(array, n) for n, array in constants.items()]
    graph = helper.make_graph(nodes, name, [value(n, shape) for n, shape in inputs.items()], [value(*output)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def product(rows=16, terms=32, columns=24):
    """y = x w, one call of a library."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    return _model("product", [node], {"x": [rows, terms]}, ("y", [rows, columns]), {"w": _weights(terms, columns)})


def convolutions(extent=4, channels=8):
    """Two convolutions, the first of which ends with what a library may do in the same call."""
    conv = functools.partial(helper.make_node, "Conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    nodes = [
        conv(["image", "w0"], ["c0"], name="conv0"),
        helper.make_node("Relu", ["c0"], ["r0"], name="relu0"),
        conv(["r0", "w1"], ["y"], name="conv1"),
    ]
    shape = [1, channels, extent, extent]
    weights = {name: _weights(channels, channels, 3, 3) for name in ("w0", "w1")}
    return _model("convolutions", nodes, {"image": shape}, ("y", shape), weights)


def pack(folder, target, operators=2):
    """Writes the package."""
    from gpucheck import expected, inputs, timed_contents, timed_pack
    from gpucheck.pack import copy_runtime, heading
    from gpucheck.timed_contents import F32, F32_OWN, TF32, Timed, Way

    whole = lambda model, items: expected.whole(model, inputs.generate({"inputs": items}))
    modes = (F32, TF32) if target == "cuda" else (F32,)
    # The imitation of the driver runs no kernel.
    own = () if target == "cuda" else (F32_OWN,)
    across = (Way(), Way(ranks=2))
    entries = [
        Timed("resnet50", "model", "convolutions", convolutions, (*modes, *own), whole, is_peer=True),
        Timed("unet512", "model", "larger convolutions", lambda: convolutions(6), modes, whole, is_peer=True),
        Timed("swin", "model", "a product", product, modes, whole, is_peer=True),
        Timed("unet-1024", "large", "large convolutions", lambda: convolutions(9), modes, whole),
        Timed("layer", "layer", "a layer", lambda: convolutions(3), (F32,), whole),
        Timed("softmax", "kernel", "in place of a kernel", product, (F32,), whole),
        Timed("tile-small", "tile", "in place of a tile", product, (F32,), whole),
        Timed("unet512-ranks", "rank", "on ranks", lambda: convolutions(6), across, whole, {"image": "_,_,y,_"}),
    ]
    if target == "cpu":
        entries += [t for t in timed_contents.timed("cpu") if t.name in ("attention-4k", "halo-64k")]
    folder = pathlib.Path(folder)
    runtime = copy_runtime(folder, target)
    with tempfile.TemporaryDirectory() as work:
        archs = ["sm_90"] if target == "cuda" else []
        packer = timed_pack.TimedPacker(folder, pathlib.Path(work), target, archs, lambda text: None)
        for entry in entries:
            packer.add_timed(entry)
        if operators:
            packer.add_operators(operators, timed_contents.operator_cases())
        packer.writer.close(packer.manifest | heading("ten-minutes", target, archs, runtime))
    return folder


#: Nothing of the build, and no GPU if there is one.
CLEAN = {"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}


def command(package, *arguments):
    return [sys.executable, str(package / "gpu-check"), "run", "--profile", "ten-minutes", *map(str, arguments)]


def run(package, folder, *arguments, limit=120, **environment):
    """(the finished process, the result) of a run in `folder`."""
    process = subprocess.run(
        command(package, *arguments),
        capture_output=True,
        text=True,
        timeout=limit,
        cwd=folder,
        env=CLEAN | environment,
    )
    result = folder / "ten-minutes.json"
    return process, json.loads(result.read_text()) if result.exists() else None


def lines_of(result, part, **wanted):
    found = [line for line in result["measurements"] if line["part"] == part]
    return [line for line in found if all(line.get(key) == value for key, value in wanted.items())]


def statuses(result):
    return {name: part["status"] for name, part in result["parts"].items()}
