#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How four models would scale to 1 024 GPUs, by simulation: nothing is run.

Each model is planned (`dovetail plan`) for 8, 64, 256 and 1 024 GPUs of a cluster, once with the input as it
is (strong scaling) and once with one that grows with the GPUs (weak scaling). Large weights are in a file
that is not there. Prints the tables of docs/scaling.md; `--json` keeps the numbers. $DOVETAIL_BUILD_DIR names
the build; without it, it is build/release.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import sys
import tempfile
import time
import unittest.mock

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("test/models", "test")]

import dovetail_models.graph  # noqa: E402
from harness.backend import call, tool  # noqa: E402

RANKS = (8, 64, 256, 1024)
#: Elements from which on weights have no data.
LARGE = 1 << 18

# ----------------------------------------------------------------------------
# Models without their weights
# ----------------------------------------------------------------------------


@dataclasses.dataclass
class Shape:
    """Stands for a large array, of which the shape is all that matters."""

    shape: tuple

    def __getitem__(self, index):
        """With new axes in front, as in `array[None, None]`."""
        assert all(each is None for each in index)
        return Shape((1,) * len(index) + self.shape)


class ShapeGraph(dovetail_models.graph.Graph):
    """A graph whose large weights have shapes alone."""

    offset = 0

    def normal(self, shape, scale=1.0, mean=0.0):
        return Shape(tuple(shape)) if math.prod(shape) >= LARGE else super().normal(shape, scale, mean)

    def uniform(self, shape, low, high):
        return Shape(tuple(shape)) if math.prod(shape) >= LARGE else super().uniform(shape, low, high)

    def weight(self, array, stem="weight"):
        if not isinstance(array, Shape):
            return super().weight(array, stem)
        name, size = self.unique(stem), 4 * math.prod(array.shape)
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "weights.bin"), ("offset", str(self.offset)), ("length", str(size))):
            tensor.external_data.add(key=key, value=value)
        self.offset += size
        self.initializers.append(tensor)
        return name

    def build(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = dovetail_models.graph.IR_VERSION
        return model


class ShapeNumpy:
    """NumPy for builders, but for large arrays of one value and their triangles."""

    def __getattr__(self, name):
        return getattr(np, name)

    def full(self, shape, value):
        return Shape(tuple(shape)) if math.prod(shape) >= LARGE else np.full(shape, value)

    def triu(self, array, k):
        return array if isinstance(array, Shape) else np.triu(array, k)


def write_model(builder, sizes, path):
    """Builds with `builder` of module dovetail_models.`builder.module`, and writes the model."""
    module = sys.modules[builder.__module__]
    with (
        unittest.mock.patch.object(module, "Graph", ShapeGraph),
        unittest.mock.patch.object(module, "np", ShapeNumpy(), create=True),
    ):
        onnx.save(builder(**sizes), path)


# ----------------------------------------------------------------------------
# Cases
# ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Case:
    """`size` and `grown` give the parameters of the builder, as it is and grown with the ranks.

    `mesh` and `flags` say how it is split.
    """

    name: str
    builder: object
    what: str
    size: object
    grown: object
    grows: str
    mesh: object
    flags: tuple


def _grid(ranks, axes):
    """`ranks`, a power of two, as a product of one number for each axis, the first ones larger."""
    power = ranks.bit_length() - 1
    return {axis: 1 << ((power + len(axes) - 1 - i) // len(axes)) for i, axis in enumerate(axes)}


def _nodes(ranks):
    """Tokens are divided among nodes of 8, and what is left inside of them."""
    return {"t": 8} if ranks == 8 else {"s": ranks // 8, "t": 8}


def _tiles(ranks, **tile):
    """The extent of each dimension if every rank has such a tile: `height="y", ...`."""
    grid = _grid(ranks, [axis for axis, _ in tile.values()])
    return {name: grid[axis] * extent for name, (axis, extent) in tile.items()}


_UNET = dict(base=64, levels=5)
_VIT = dict(size=1024, heads=16, blocks=24, class_token=False)
_LLAMA = dict(layers=32, heads=32, groups=8, width=128, inner=11008, vocabulary=32000)

CASES = (
    Case(
        "unet",
        dovetail_models.unet2d,
        "U-Net, 64 to 1 024 channels, 4096 x 4096",
        lambda: dict(height=4096, width=4096, **_UNET),
        lambda ranks: dict(**_tiles(ranks, height=("y", 1024), width=("x", 2048)), **_UNET),
        "1024 x 2048 for each GPU",
        lambda ranks: _grid(ranks, "yx"),
        ("--shard", "image=_,_,y,x"),
    ),
    Case(
        "unet3d",
        dovetail_models.unet3d,
        "3-D U-Net, 32 to 128 channels, 512 x 512 x 512",
        lambda: dict(depth=512, height=512, width=512, base=32),
        lambda ranks: dict(
            **_tiles(ranks, depth=("z", 256), height=("y", 256), width=("x", 256)), base=32
        ),
        "256 x 256 x 256 for each GPU",
        lambda ranks: _grid(ranks, "zyx"),
        ("--shard", "volume=_,_,z,y,x"),
    ),
    Case(
        "vit",
        dovetail_models.vit,
        "ViT-L, 24 blocks of 1 024, 8 192 patches",
        lambda: dict(height=2048, width=1024, **_VIT),
        lambda ranks: dict(height=256 * ranks, width=1024, **_VIT),
        "1 024 patches for each GPU, each of which attends to all",
        _nodes,
        (),
    ),
    Case(
        "llama",
        dovetail_models.llama,
        "decoder of 7 billion weights, 32 layers of 4 096, 32 768 tokens",
        lambda: dict(length=32768, positions=32768, **_LLAMA),
        lambda ranks: dict(length=512 * ranks, positions=512 * ranks, **_LLAMA),
        "512 tokens for each GPU, each of which attends to all",
        _nodes,
        (),
    ),
)


def plan(case, sizes, ranks, arguments, folder):
    """What is predicted, as a record."""
    model, result = folder / "model.onnx", folder / "plan.json"
    write_model(case.builder, sizes, model)
    mesh = ",".join(f"{axis}={size}" for axis, size in case.mesh(ranks).items())
    command = [tool("dovetail"), "plan", model, "--target", "cuda", "--cluster", arguments.cluster]
    command += ["--math", "bf16", "--mesh", mesh, *case.flags, "--json", result]
    begin = time.monotonic()
    code, _, messages = call(command, timeout=arguments.timeout)
    took = time.monotonic() - begin
    # 6: what it takes of memory, and that this is too much, is predicted, too.
    if code not in (0, 6):
        raise RuntimeError(f"{case.name} on {ranks} GPUs: exit code {code}: {messages.strip()}")
    plan = json.loads(result.read_text())
    ranks_of_plan = plan["ranks"]
    return {
        "case": case.name,
        "ranks": ranks,
        "mesh": mesh,
        "seconds": plan["seconds"],
        "alone_seconds": plan["alone"]["seconds"],
        "alone_bytes": plan["alone"]["total_bytes"],
        "efficiency": plan["efficiency"],
        "busy": sum(rank["seconds"]["busy"] for rank in ranks_of_plan) / ranks / plan["seconds"],
        "link_bytes": {link["name"]: link["bytes"] / ranks for link in plan["links"]},
        "memory_bytes": max(rank["memory"]["total_bytes"] for rank in ranks_of_plan),
        "fits": all(rank["memory"]["fits"] for rank in ranks_of_plan),
        "planning_seconds": took,
    }


def _bytes(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            break
        count, unit = count / 1024, "TiB"
    return f"{count:.1f} {unit}" if unit != "B" else f"{count:.0f} B"


def _seconds(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.2f} ms"


def show(records):
    links = list(records[0]["link_bytes"])
    head = ["GPUs", "mesh", "time", "one GPU", "efficiency", "busy"]
    head += [f"{link}, each" for link in links] + ["memory", "planned in"]
    rows = [
        [
            str(r["ranks"]),
            r["mesh"],
            _seconds(r["seconds"]),
            _seconds(r["alone_seconds"]),
            f"{r['efficiency']:.0%}",
            f"{r['busy']:.0%}",
            *(_bytes(r["link_bytes"][link]) for link in links),
            _bytes(r["memory_bytes"]) + ("" if r["fits"] else ", does not fit"),
            f"{r['planning_seconds']:.1f} s",
        ]
        for r in records
    ]
    print("| " + " | ".join(head) + " |")
    print("|---|---|" + "---:|" * (len(head) - 2))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [case.name for case in CASES]
    parser.add_argument("cases", nargs="*", choices=[*names, []], help="of " + ", ".join(names) + "; all if none")
    parser.add_argument("--cluster", default="h100", help="as of `dovetail plan`")
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for each plan")
    parser.add_argument("--json", type=pathlib.Path, help="file for the numbers")
    arguments = parser.parse_args()
    everything = []
    for case in CASES:
        if arguments.cases and case.name not in arguments.cases:
            continue
        for kind, sizes in (("strong", lambda ranks, c=case: c.size()), ("weak", case.grown)):
            records = []
            for ranks in arguments.ranks:
                with tempfile.TemporaryDirectory() as folder:
                    records.append(plan(case, sizes(ranks), ranks, arguments, pathlib.Path(folder)))
                records[-1]["kind"] = kind
                took = records[-1]["planning_seconds"]
                print(f"{case.name}, {kind}, {ranks} GPUs: {took:.1f} s", file=sys.stderr, flush=True)
            what = case.what if kind == "strong" else case.grows
            print(f"\n{kind.capitalize()} scaling: {what}.\n")
            show(records)
            everything += records
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
