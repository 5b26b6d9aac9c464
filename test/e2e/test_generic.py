# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that carry their definitions: all operations of models as such, and some that have no class."""

import pathlib

import numpy as np
import pytest
from harness.backend import call, tool
from harness.compare import differences
from harness.partition import Partition
from subjects import SMALL_SUBJECTS, SUBJECTS

GRAPHS = pathlib.Path(__file__).parent / "generics"

#: Convolutions, pools and resizing; norms, softmax and products; a recurrence beside other operations; lookups; scans.
MODELS = ("small-unet2d-bilinear", "small-vit", "bilstm", "dgcnn", "scan-filter", "small-ppocr-cls")
MESHES = ({"y": 1}, {"y": 3}, {"y": 2, "x": 2})


def _name(value):
    if isinstance(value, dict):
        return "x".join(map(str, value.values()))
    return str(value)


def _cases():
    for name in MODELS:
        for mesh in MESHES:
            quick = name == "small-vit" and mesh == {"y": 3}
            yield pytest.param(name, mesh, marks=pytest.mark.quick if quick else ())


@pytest.mark.parametrize("name, mesh", list(_cases()), ids=_name)
def test_generalized_models_compute_the_same_bits(backend, name, mesh):
    subject = next(s for s in SUBJECTS + SMALL_SUBJECTS if s.name == name)
    case = subject.prepared()
    partition = subject.partition(mesh, "uneven")
    outputs = list(case.expected)
    plain = backend.compile_and_run(case.path, partition, case.inputs, outputs, False, subject.flags())
    generic = backend.compile_and_run(
        case.path, partition, case.inputs, outputs, False, (*subject.flags(), "--generalize")
    )
    assert not differences(generic, plain, tolerance=0)


#: Operations that `dovetail-specialize` knows.
SPECIAL = "conv,conv_transpose,matmul,pool,transpose,slice,broadcast,reshape,pad,concat"


@pytest.mark.parametrize("name", ["small-ppocr-cls", "small-unet2d-transposed", "light-shufflenet", "gpt"])
def test_specialized_models_have_the_same_plan(name, tmp_path):
    """Operations become generics and come back. Pads that no window reads may be lost on the way."""
    subject = next(s for s in SUBJECTS + SMALL_SUBJECTS if s.name == name)
    graph, other = tmp_path / "graph.mlir", tmp_path / "other.mlir"
    path = subject.prepared().path

    def run(*command):
        code, _, messages = call(command)
        assert code == 0, messages

    def lower(file):
        plan = file.with_suffix(".lower.mlir")
        run(tool("dovetail"), "compile", "--quiet", file, "--mesh", "y=3", "--compile-to", "lower", "-o", plan)
        return [line for line in plan.read_text().splitlines() if not line.startswith("#loc")]

    run(tool("dovetail"), "compile", path, *subject.flags(), "--mesh", "y=1", "--compile-to", "simplify", "-o", graph)
    run(tool("dovetail-opt"), graph, f"--dovetail-generalize=only={SPECIAL}", "--dovetail-specialize", "-o", other)
    assert "dovetail.generic" not in other.read_text()
    assert lower(graph) == lower(other)


def _points(random):
    points, cloud = (random.standard_normal((n, 3), np.float32) for n in (23, 101))
    squares = ((points[:, None] - cloud[None]) ** 2).sum(2)
    return (
        {"points": points, "cloud": cloud},
        {"distance": np.sqrt(squares.max(1)), "farthest": squares.argmax(1)},
    )


def _field(random):
    x, w = random.standard_normal((37, 29), np.float32), random.standard_normal((3, 3), np.float32)
    padded = np.pad(x, 1, mode="edge").astype(np.float64)
    y = sum(padded[i : i + 37, j : j + 29] * w[i, j] for i in range(3) for j in range(3))
    return {"x": x, "w": w}, {"y": y.astype(np.float32)}


def _series(random):
    x = random.standard_normal((64, 5), np.float32)
    x[random.random((64, 5)) < 0.2] = np.nan
    return {"x": x}, {"y": 2 * np.fmax.accumulate(np.where(np.isnan(x), -np.inf, x), 0).astype(np.float32)}


def _cells(random):
    x, v = random.standard_normal((50, 4), np.float32), random.standard_normal((31, 4), np.float32)
    i = random.integers(-50, 50, 31)
    y = x.astype(np.float64)
    np.add.at(y, i, v)
    return {"x": x, "v": v, "i": i}, {"y": y.astype(np.float32)}


#: For each graph its data, and how three uneven ranks divide it: by points that are gone through, too.
CASES = {
    "stencil-rows": ("stencil", _field, {"x": ["r", "_"], "y": ["r", "_"]}, {("x", 0): [5, 20, 12], ("y", 0): [5, 20, 12]}),
    "stencil-columns": ("stencil", _field, {"x": ["_", "r"], "y": ["_", "r"]}, {("x", 1): [1, 20, 8], ("y", 1): [1, 20, 8]}),
    "farthest-points": ("farthest", _points, {"points": ["r", "_"], "distance": ["r"]}, {("points", 0): [4, 0, 19]}),
    "farthest-cloud": ("farthest", _points, {"cloud": ["r", "_"]}, {("cloud", 0): [10, 60, 31]}),
    "peaks-time": ("peaks", _series, {"x": ["r", "_"], "y": ["r", "_"]}, {("x", 0): [10, 3, 51], ("y", 0): [10, 3, 51]}),
    "splat-cells": ("splat", _cells, {"x": ["r", "_"], "y": ["r", "_"]}, {("x", 0): [30, 7, 13], ("y", 0): [30, 7, 13]}),
}


@pytest.mark.quick
@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("name", CASES)
def test_graphs_of_generics(backend, name, target):
    graph, make, shards, sizes = CASES[name]
    inputs, expected = make(np.random.default_rng(7))
    partition = Partition({"r": 3}, shards, sizes)
    extra = ("--target", target)
    actual = backend.compile_and_run(GRAPHS / f"{graph}.mlir", partition, inputs, list(expected), True, extra)
    assert not differences(actual, expected, tolerance=1e-6)


def test_the_cloud_is_divided(tmp_path):
    """Ranks fold their points of the cloud, and the operation itself combines what they have found."""
    partition = Partition({"r": 3}, {"cloud": ["r", "_"]}, {("cloud", 0): [10, 60, 31]})
    command = [tool("dovetail"), "compile", GRAPHS / "farthest.mlir", *partition.flags(), "--compile-to", "propagate"]
    code, text, messages = call(command)
    assert code == 0, messages
    assert "other = 101 part(none) of other_part at [0, 10, 70, 101]" in text
    assert "part0 = 3 whole(none)" in text


def test_graph_that_is_none(tmp_path):
    path = tmp_path / "graph.mlir"
    path.write_text("func.func private @main(tensor<4xf32>)")
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", tmp_path / "graph.dvt"])
    assert code == 4 and "a graph is a module of one function, @main" in messages
    path.write_text("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %y : tensor<4xf32> }")
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", tmp_path / "graph.dvt"])
    assert code == 4 and "use of undeclared SSA value" in messages
    code, _, messages = call([tool("dovetail"), "compile", tmp_path / "no.mlir", "-o", tmp_path / "graph.dvt"])
    assert code == 3 and "no.mlir" in messages
