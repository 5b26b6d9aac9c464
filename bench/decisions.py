#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler decides for models that are split as users would: exchanges, their bytes, memory.

Each model is compiled for 2, 3, 4 and 2 x 2 ranks. Of images and volumes the first spatial dimension is
split, on 2 x 2 ranks the first two; of token ids the length, on 2 x 2 ranks over both axes. How all else
is split the compiler chooses. `--write` keeps the records, one a line, and `--against` compares with
records that were kept: figures are then those of now, with the ratio to what they were in parentheses.
Ranks' memory is that of values, without weights and messages.

`--uniform` compares predicted times with those of the best uniform choice: one dimension of an input is
split, over all axes, and everything follows (the compiler's `--follow-inputs`, which is for this
comparison and not part of its help). Each operation takes, in the order of the program, that of its
options with which what it reads moves fewest bytes, given what those before it took; of options that
move as much either that which splits least (what the split of the input does not reach stays whole), or
that which takes least time (it is divided as well as that moves nothing). The best uniform choice is the
fastest over all dimensions of all inputs that have as many elements as there are ranks, and both rules.
Compared are what the compiler decides with the same dimension requested, and from the mesh alone.
$DOVETAIL_BUILD_DIR names the build; without it, it is build/release.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("test/models", "test", "scripts")]

import dovetail_models  # noqa: E402
from dovetail_models import random_inputs, token_inputs  # noqa: E402
from gpucheck.report import Progress, table  # noqa: E402
from harness.backend import call, tool  # noqa: E402

MESHES = {"2": {"a": 2}, "3": {"a": 3}, "4": {"a": 4}, "2x2": {"a": 2, "b": 2}}
#: Where times are measured.
TIMED = "2"


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, and how its input is split."""

    model: str
    input: str
    shape: tuple
    sizes: tuple = ()
    #: Whether the shape is stated to the compiler: the model leaves it open.
    open: bool = False

    def flags(self, mesh, *flags):
        """The arguments of `dovetail compile` for this model on a mesh (axis: size), and others."""
        mesh = ",".join(f"{axis}={size}" for axis, size in mesh.items())
        shape = ["--shape", f"{self.input}={_listed(self.shape)}"] if self.open else []
        return ["--mesh", mesh, *flags, *shape]

    def request(self, mesh):
        """The same with what the user wants."""
        spec = ["_"] * len(self.shape)
        if self.input == "ids":
            spec[1] = "+".join(mesh)
        else:
            spec[2 : 2 + len(mesh)] = mesh
        return self.flags(mesh, "--shard", f"{self.input}={','.join(spec)}")

    def inputs(self, model):
        """Random inputs: times do not depend on them, but ids must be in range."""
        if self.input == "ids":
            return token_inputs(*self.shape, mask=self.model == "bert")
        return random_inputs(model, seed=3, shapes={self.input: self.shape})


_224 = (("height", 224), ("width", 224))
_512 = (("height", 512), ("width", 512))
_VIT_TINY = (*_224, ("size", 192), ("heads", 3), ("blocks", 12), ("classes", 1000))
CASES = (
    Case("vit", "image", (1, 3, 224, 224), _VIT_TINY),
    Case("gpt", "ids", (1, 100)),
    Case("bert", "ids", (1, 100)),
    Case("llama", "ids", (1, 211)),
    Case("swin", "image", (1, 3, 224, 224), (*_224, ("window", 7))),
    Case("convnext", "image", (1, 3, 224, 224), _224),
    Case("unet2d-transposed", "image", (1, 3, 512, 512), _512),
    Case("unet2d-bilinear", "image", (1, 3, 512, 512), _512),
    Case(
        "unet3d", "volume", (1, 2, 64, 64, 64), (("depth", 64), ("height", 64), ("width", 64))
    ),
    Case("resnet50", "image", (1, 3, 224, 224)),
    Case("ppocr-det", "x", (1, 3, 736, 1280), open=True),
)  # fmt: skip


def _listed(values):
    return ",".join(map(str, values))


def _output(*command):
    code, text, messages = call(command)
    if code:
        sys.exit(f"decisions: error: {' '.join(map(str, command))} exits with {code}: {messages}")
    return text


def _measure(case, model, artifact, ranks, folder):
    """The median time of a run in milliseconds, one thread a rank."""
    arrays = folder / "inputs.npz"
    np.savez(arrays, **case.inputs(model))
    command = [tool("dovetail"), "bench", artifact, "--json", "--threads", ranks]
    return json.loads(_output(*command, "--input", f"@{arrays}"))["median_ms"]


def record(case, model, mesh, folder, options, measure):
    """What the compiler decides for `model`, which is that of `case`, on the mesh of this name.

    `options` of it are `cpu`, which plans are for, and `objective`, which may be None.
    """
    path, artifact = folder / "model.onnx", folder / "model.dvt"
    path.write_bytes(model.SerializeToString())
    request = case.request(MESHES[mesh])
    compiled = [tool("dovetail"), "compile", path, "-o", artifact, *request]
    compiled += ["--objective", options.objective] if options.objective else []
    _output(*compiled, "--cpu", options.cpu)
    plan = json.loads(_output(tool("dovetail"), "inspect", "--json", artifact))
    result = {
        "model": case.model,
        "mesh": mesh,
        "input": f"{case.input}[{_listed(case.shape)}]",
        "request": " ".join(request),
        "exchanges": len(plan["exchanges"]),
        "bytes": sum(exchange["bytes"] for exchange in plan["exchanges"]),
        "most_received": max(rank["received_bytes"] for rank in plan["ranks"]),
        "arena": [rank["values_bytes"] for rank in plan["ranks"]],
    }
    if measure and mesh == TIMED:
        _output(*compiled)
        result["median_ms"] = _measure(case, model, artifact, len(plan["ranks"]), folder)
    return result


def _inputs(case, model):
    """Name and shape of each input of the model."""
    if case.open:
        return [(case.input, case.shape)]
    weights = {tensor.name for tensor in model.graph.initializer}
    return [
        (value.name, tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim))
        for value in model.graph.input
        if value.name not in weights
    ]


def _seconds(case, mesh, folder, cpu, *flags):
    """The predicted time of the model in `folder`, or None if it cannot be split so."""
    command = [tool("dovetail"), "plan", folder / "model.onnx", "--json", folder / "plan.json"]
    code, _, _ = call([*command, *case.flags(mesh, "--cpu", cpu, *flags)])
    return None if code else json.loads((folder / "plan.json").read_text())["seconds"]


def uniform(case, model, mesh, folder, cpu):
    """The best uniform choice on the mesh of this name: what is requested, and its predicted seconds.

    Beside them those of what the compiler decides with that request and from the mesh alone.
    """
    axes = MESHES[mesh]
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    best = None
    for name, shape in _inputs(case, model):
        for dim, extent in enumerate(shape):
            if extent < np.prod(list(axes.values())):
                continue
            spec = ["_"] * len(shape)
            spec[dim] = "+".join(axes)
            request = ["--shard", f"{name}={','.join(spec)}"]
            for rule in ("inputs", "evenly"):
                follow = ["--objective", "bytes", "--follow-inputs", rule]
                seconds = _seconds(case, axes, folder, cpu, *request, *follow)
                if seconds is not None and (best is None or seconds < best[0]):
                    best = seconds, request
    seconds, request = best
    return {
        "model": case.model,
        "mesh": mesh,
        "request": request[1],
        "uniform": seconds,
        "same": _seconds(case, axes, folder, cpu, *request),
        "alone": _seconds(case, axes, folder, cpu),
    }


def uniform_table(rows):
    """Predicted times; those of the compiler with their ratio to the best uniform choice."""
    head = ["model", "mesh", "best uniform choice", "ms", "decided, same request", "decided, mesh alone"]
    cells = []
    for row in rows:
        decided = (f"{1e3 * row[key]:.3f}{_ratio(row[key], row['uniform'])}" for key in ("same", "alone"))
        cells.append([row["model"], row["mesh"], row["request"], f"{1e3 * row['uniform']:.3f}", *decided])
    return table(head, cells)


def records(cases, options, measure):
    """One for each case and mesh; a trained model whose file is missing is left out, and named."""
    return _for_all(cases, lambda *each: record(*each, options, measure))


def _for_all(cases, make):
    """What `make` gives for each case, its model, each mesh, and a folder to work in."""
    progress = Progress(len(cases) * len(MESHES))
    result = []
    for case in cases:
        try:
            model = dovetail_models.build(case.model, **dict(case.sizes))
        except FileNotFoundError as error:
            print(f"decisions: {case.model} is left out: {error}", file=sys.stderr)
            continue
        for mesh in MESHES:
            with tempfile.TemporaryDirectory(prefix="dovetail-decisions-") as folder:
                result.append(make(case, model, mesh, pathlib.Path(folder)))
            progress.step(f"{case.model} on {mesh}")
    progress.clear()
    return result


def _key(row):
    """What two records must have in common to be compared."""
    return tuple(row[name] for name in ("model", "mesh", "input", "request"))


def _figures(row):
    """Name, value, and how it is written."""
    yield "exchanges", row["exchanges"], "{:.0f}"
    yield "moved, MB", row["bytes"] / 1e6, "{:.3f}"
    yield "most received by a rank, MB", row["most_received"] / 1e6, "{:.3f}"
    yield "arena of a rank at most, MB", max(row["arena"]) / 1e6, "{:.2f}"
    if "median_ms" in row:
        yield "ms", row["median_ms"], "{:.2f}"


def _ratio(now, then):
    if now == then:
        return " (=)"
    return f" ({now / then:.3f})" if then else " (was 0)"


def tabulated(rows, known=()):
    """A table of records; beside each figure its ratio to that of the record among `known`."""
    known = {_key(row): {name: value for name, value, _ in _figures(row)} for row in known}
    names = list(dict.fromkeys(name for row in rows for name, _, _ in _figures(row)))
    cells = []
    for row in rows:
        then = known.get(_key(row), {})
        line = {
            name: form.format(value) + (_ratio(value, then[name]) if name in then else "")
            for name, value, form in _figures(row)
        }
        cells.append([row["model"], row["mesh"], *(line.get(name, "") for name in names)])
    return table(["model", "mesh", *names], cells)


def written(rows):
    """JSON with one record a line, so that differences are read easily."""
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model",
        action="append",
        choices=[case.model for case in CASES],
        metavar="NAME",
        help="only this one, or these if repeated; of " + ", ".join(case.model for case in CASES),
    )
    parser.add_argument(
        "--cpu",
        default="x86-64-v3",
        metavar="NAME",
        help="what plans are for, so that machines agree; times are the host's (default: %(default)s)",
    )
    parser.add_argument(
        "--objective", metavar="NAME", help="of the compiler's: decides for each model as a whole"
    )
    parser.add_argument(
        "--measure", action="store_true", help="also the median time of a run on 2 ranks, one thread each"
    )
    parser.add_argument(
        "--uniform", action="store_true", help="instead, predicted times against the best uniform choice"
    )
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE.json", help="keeps the records")
    parser.add_argument(
        "--against", type=pathlib.Path, metavar="FILE.json", help="compares with records kept"
    )
    arguments = parser.parse_args()
    if not tool("dovetail"):
        parser.error("there is no compiler: run `make build`, or set DOVETAIL_BUILD_DIR")
    known = json.loads(arguments.against.read_text()) if arguments.against else []
    cases = [case for case in CASES if not arguments.model or case.model in arguments.model]
    if arguments.uniform:
        rows = _for_all(cases, lambda *each: uniform(*each, arguments.cpu))
        print(uniform_table(rows))
        if arguments.write:
            arguments.write.write_text(written(rows))
        return
    rows = records(cases, arguments, arguments.measure)
    print(tabulated(rows, known))
    if known:
        unknown = {_key(row) for row in rows} - {_key(row) for row in known}
        for model, mesh, *_ in sorted(unknown):
            print(f"  no record of {model} on {mesh}, so requested, in {arguments.against}")
    if arguments.write:
        arguments.write.write_text(written(rows))


if __name__ == "__main__":
    main()
