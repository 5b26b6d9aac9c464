#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the time of a run follows its extents, where these vary (`compile --bound`).

A U-Net of three levels (16, 32 and 64 channels, two convolutions of 3 x 3 a block, transposed convolutions) is compiled
once for images of up to --bound squared, and runs with smaller ones. For comparison it is compiled for each size alone
(`--dim`). Figures are the least of --iterations runs (`dovetail bench`), in ms, in --rounds turns. $DOVETAIL_BUILD_DIR
names the build.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("test", "scripts")]

from gpucheck.report import table  # noqa: E402
from harness.backend import call, tool  # noqa: E402

CHANNELS = (16, 32, 64)


def unet():
    """With an open height and width."""
    rng, nodes, constants = np.random.default_rng(5), [], []

    def weights(*shape):
        values = rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)
        constants.append(numpy_helper.from_array(values, f"c{len(constants)}"))
        return constants[-1].name

    def add(op, *inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"t{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def block(value, inputs, outputs):
        for channels in (inputs, outputs):
            product = add("Conv", value, weights(outputs, channels, 3, 3), weights(outputs), pads=[1] * 4)
            value = add("Relu", product)
        return value

    skips = [block("x", 3, CHANNELS[0])]
    for inputs, outputs in zip(CHANNELS, CHANNELS[1:]):
        pooled = add("MaxPool", skips[-1], kernel_shape=[2, 2], strides=[2, 2])
        skips.append(block(pooled, inputs, outputs))
    value = skips.pop()
    for inputs, outputs in zip(CHANNELS[:0:-1], CHANNELS[-2::-1]):
        value = add("ConvTranspose", value, weights(inputs, inputs, 2, 2), strides=[2, 2])
        value = block(add("Concat", value, skips.pop(), axis=1), inputs + outputs, outputs)
    nodes.append(helper.make_node("Conv", [value, weights(1, CHANNELS[0], 1, 1)], ["y"]))
    ports = [("x", [1, 3, "h", "w"]), ("y", [1, 1, None, None])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ports]
    graph = helper.make_graph(nodes, "unet", values[:1], values[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def _succeed(*command):
    code, output, messages = call(command)
    if code != 0:
        sys.exit(messages)
    return output


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bound", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    bound = options.bound
    sizes = [(n, n) for n in (bound // 8, bound // 4, bound // 2, bound * 3 // 4, bound)] + [(bound, bound // 8)]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        onnx.save(unet(), folder / "unet.onnx")
        compile_to = [tool("dovetail"), "compile", folder / "unet.onnx", "--quiet", "-o"]
        bounds = [flag for name in "hw" for flag in ("--bound", f"{name}={bound}")]
        _succeed(*compile_to, folder / "bound.dvt", *bounds)
        times = {}
        for height, width in sizes:
            np.save(folder / f"{height}x{width}.npy", np.random.default_rng(1).random((1, 3, height, width), np.float32))
            fixed = ["--dim", f"h={height}", "--dim", f"w={width}"]
            _succeed(*compile_to, folder / f"{height}x{width}.dvt", *fixed)
        for _ in range(options.rounds):
            for height, width in sizes:
                name = f"{height}x{width}"
                for program in ("bound", name):
                    bench = [tool("dovetail"), "bench", folder / f"{program}.dvt", "--json"]
                    given = ["--input", f"x={folder}/{name}.npy", "--threads", options.threads]
                    given += ["--iterations", options.iterations]
                    least = json.loads(_succeed(*bench, *given))["min_ms"]
                    key = (name, program == "bound")
                    times[key] = min(times.get(key, least), least)
    whole = times[f"{bound}x{bound}", True]
    rows = [["image", "share of the bound", "bound, ms", "share of its time", "compiled for the size alone, ms"]]
    for height, width in sizes:
        name = f"{height}x{width}"
        own, fixed = times[name, True], times[name, False]
        rows.append([name, f"{height * width / bound**2:.3f}", f"{own:.2f}", f"{own / whole:.3f}", f"{fixed:.2f}"])
    print(table(rows[0], rows[1:]))


if __name__ == "__main__":
    main()
