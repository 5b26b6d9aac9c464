#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the time to compile grows with the number of operations, by phase and by pass.

A seeded generator makes graphs of 500 to 8 000 ONNX nodes, constants not counted. Tensors are small, so that
only the size of the graph matters. There are four kinds:

  residual     blocks of two convolutions with batch normalisations and a residual sum
  windows      attention in windows, which every other block shifts (the blocks of the test model `swin`)
  transformer  blocks of attention and of a perceptron (layer normalisations spelt out)
  joint        forward, backward and Adam's update of a residual network with attention: weights and
               moments are inputs, and their next values outputs

Each graph is compiled for one rank and for four (`--ranks`), which split the batch, or rows of images. The
figures are processor seconds of phases and passes, the least of `--rounds` runs, and the growth where the size
doubles, on average over the last two doublings. Passes that take at least `--least` seconds at the largest size
and grow by more than `--limit` are listed, and the exit code is 1. Verification after a pass counts to the
pass; "machine code" and "other" are what a phase does outside of its passes.

`--models` compiles each test model instead and prints the slowest ones. $DOVETAIL_BUILD_DIR names the build;
without it, it is build/release.

Examples:
  bench/compile_time.py --rounds 3 --json after.json --against before.json
  bench/compile_time.py --kind windows --ranks 1 --sizes 500,1000,2000
  bench/compile_time.py --models --rounds 1
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("test/models", "test", "scripts")]

import dovetail_models  # noqa: E402
from dovetail_models.graph import IR_VERSION, Graph  # noqa: E402
from dovetail_models.swin import swin_block  # noqa: E402
from dovetail_models.transformer import gelu, heads_by_split, layer_norm  # noqa: E402
from gpucheck.report import Progress, table  # noqa: E402
from harness.backend import tool  # noqa: E402

SIZES = (500, 1000, 2000, 4000, 8000)

# ----------------------------------------------------------------------------
# Graphs
# ----------------------------------------------------------------------------


class LargeGraph(Graph):
    """A graph of many nodes. Building it does not infer shapes, which takes longer than to compile it."""

    def size(self):
        return sum(node.op_type != "Constant" for node in self.nodes)

    def build(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model)
        return model


def residual(size, seed):
    """Input `x` (1, 4, 16, 8)."""
    g = LargeGraph("residual", seed=seed)
    x = g.input("x", [1, 4, 16, 8])
    while g.size() < size:
        y = g.op("Relu", g.batch_norm(g.conv(x, 4, 4, (3, 3), bias=False), 4))
        y = g.batch_norm(g.conv(y, 4, 4, (3, 3), bias=False), 4, gain=0.3)
        x = g.op("Relu", g.op("Add", x, y))
    g.output(x, "y", 4)
    return g.build()


def windows(size, seed):
    """Input `x` (4, 64, 8): four images of 8 x 8."""
    g = LargeGraph("windows", seed=seed)
    x = g.input("x", [4, 64, 8])
    block = 0
    while g.size() < size:
        shift = 2 if block % 2 else 0
        x = swin_block(g, x, 8, 8, 8, heads=2, window=4, shift=shift, is_folded=True)
        block += 1
    g.output(x, "y", 3)
    return g.build()


def transformer(size, seed):
    """Input `x` (4, 16, 8)."""
    g = LargeGraph("transformer", seed=seed)
    x = g.input("x", [4, 16, 8])
    while g.size() < size:
        y = g.linear(layer_norm(g, x, 8, spelt_out=True), 8, 24)
        query, key, value = heads_by_split(g, y, 2)
        scores = g.op("Mul", g.op("MatMul", query, key), g.constant(0.5))
        mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
        mixed = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), g.ints(0, 0, 8))
        x = g.op("Add", x, g.linear(mixed, 8, 8))
        y = g.linear(layer_norm(g, x, 8, spelt_out=True), 8, 16)
        x = g.op("Add", x, g.linear(gelu(g, y), 16, 8))
    g.output(x, "y", 3)
    return g.build()


class Tape:
    """Operations of a forward pass on tensors (batch, rows, columns), which know what their gradients are."""

    def __init__(self, graph):
        self.graph = graph
        self.backward = []
        self.gradients = {}
        self.weights = []

    def weight(self, shape):
        name = self.graph.input(self.graph.unique("weight"), shape)
        self.weights.append((name, shape))
        return name

    def give(self, value, gradient):
        """One more user of `value` has this gradient of it."""
        known = self.gradients.get(value)
        self.gradients[value] = gradient if known is None else self.graph.op("Add", known, gradient)

    def _then(self, result, differentiate):
        self.backward.append((result, differentiate))
        return result

    def _transposed(self, x):
        return self.graph.op("Transpose", x, perm=[0, 2, 1])

    def project(self, x, columns, results):
        """`x` times a weight."""
        g, weight = self.graph, self.weight([columns, results])

        def differentiate(gradient):
            self.give(x, g.op("MatMul", gradient, g.op("Transpose", weight, perm=[1, 0])))
            # The batch and the rows are summed over: one product of matrices.
            rows = [g.op("Reshape", value, g.ints(-1, n)) for value, n in ((x, columns), (gradient, results))]
            self.give(weight, g.op("MatMul", g.op("Transpose", rows[0], perm=[1, 0]), rows[1]))

        return self._then(g.op("MatMul", x, weight), differentiate)

    def product(self, a, b, transposed=False):
        """A product of each of the batch, of the second factor transposed if so."""
        g = self.graph

        def differentiate(gradient):
            self.give(a, g.op("MatMul", gradient, b if transposed else self._transposed(b)))
            pair = (self._transposed(gradient), a) if transposed else (self._transposed(a), gradient)
            self.give(b, g.op("MatMul", *pair))

        return self._then(g.op("MatMul", a, self._transposed(b) if transposed else b), differentiate)

    def softmax(self, x):
        g = self.graph
        result = g.op("Softmax", x, axis=-1)

        def differentiate(gradient):
            weighted = g.op("Mul", gradient, result)
            total = g.op("ReduceSum", weighted, g.ints(-1), keepdims=1)
            self.give(x, g.op("Sub", weighted, g.op("Mul", result, total)))

        return self._then(result, differentiate)

    def tanh(self, x):
        g = self.graph
        result = g.op("Tanh", x)

        def differentiate(gradient):
            slope = g.op("Sub", g.constant(1.0), g.op("Mul", result, result))
            self.give(x, g.op("Mul", gradient, slope))

        return self._then(result, differentiate)

    def add(self, a, b):
        def differentiate(gradient):
            self.give(a, gradient)
            self.give(b, gradient)

        return self._then(self.graph.op("Add", a, b), differentiate)

    def normalise(self, x, columns):
        """Divided by the root of the mean square of its columns, and scaled."""
        g, scale = self.graph, self.weight([columns])
        mean = g.op("ReduceMean", g.op("Mul", x, x), axes=[-1], keepdims=1)
        inverse = g.op("Reciprocal", g.op("Sqrt", g.op("Add", mean, g.constant(1e-5))))
        unit = g.op("Mul", x, inverse)

        def differentiate(gradient):
            self.give(scale, g.op("ReduceSum", g.op("Mul", gradient, unit), g.ints(0, 1), keepdims=0))
            scaled = g.op("Mul", gradient, scale)
            along = g.op("ReduceMean", g.op("Mul", scaled, unit), axes=[-1], keepdims=1)
            self.give(x, g.op("Mul", inverse, g.op("Sub", scaled, g.op("Mul", unit, along))))

        return self._then(g.op("Mul", unit, scale), differentiate)

    def finish(self, result, gradient):
        """The backward pass, from the gradient of `result`, and Adam's update of the weights."""
        g = self.graph
        self.give(result, gradient)
        for value, differentiate in reversed(self.backward):
            differentiate(self.gradients[value])
        for weight, shape in self.weights:
            self._update(weight, shape)

    def _update(self, weight, shape):
        g, gradient = self.graph, self.gradients[weight]
        moments = []
        for order, decay in ((1, 0.9), (2, 0.999)):
            old = g.input(f"{weight}.moment{order}", shape)
            power = gradient if order == 1 else g.op("Mul", gradient, gradient)
            kept, new = g.op("Mul", old, g.constant(decay)), g.op("Mul", power, g.constant(1 - decay))
            moments.append(g.op("Add", kept, new))
            g.output(moments[-1], f"{old}.next", len(shape))
        size = g.op("Add", g.op("Sqrt", moments[1]), g.constant(1e-8))
        step = g.op("Mul", g.op("Div", moments[0], size), g.constant(0.001))
        g.output(g.op("Sub", weight, step), f"{weight}.next", len(shape))


#: Nodes of a block of `joint`, forward, backward and update.
_JOINT_BLOCK = 217


def joint(size, seed):
    """Inputs `x` and `target` (4, 16, 8), weights and moments; outputs are the loss and the next ones of these."""
    g = LargeGraph("joint", seed=seed)
    x, target = (g.input(name, [4, 16, 8]) for name in ("x", "target"))
    tape = Tape(g)
    for _ in range(-(-size // _JOINT_BLOCK)):
        y = tape.normalise(x, 8)
        query, key, value = (tape.project(y, 8, 8) for _ in range(3))
        scores = tape.softmax(tape.product(query, key, transposed=True))
        x = tape.add(x, tape.project(tape.product(scores, value), 8, 8))
        y = tape.normalise(x, 8)
        x = tape.add(x, tape.project(tape.tanh(tape.project(y, 8, 16)), 16, 8))
    error = g.op("Sub", x, target)
    g.output(g.op("ReduceMean", g.op("Mul", error, error), keepdims=0), "loss", 0)
    tape.finish(x, g.op("Mul", error, g.constant(2 / (4 * 16 * 8))))
    return g.build()


#: Each kind, and what four ranks split.
KINDS = {
    "residual": (residual, ["x=_,_,a,_"]),
    "windows": (windows, ["x=a,_,_"]),
    "transformer": (transformer, ["x=a,_,_"]),
    "joint": (joint, ["x=a,_,_", "target=a,_,_"]),
}

# ----------------------------------------------------------------------------
# Measuring
# ----------------------------------------------------------------------------


def compile_model(model, arguments, limit):
    """Processor and wall seconds of each phase and pass, by (phase, pass); the pass of a phase is "".

    None if it takes longer than `limit` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="dovetail-compile-") as folder:
        path, report = pathlib.Path(folder) / "model.onnx", pathlib.Path(folder) / "report.json"
        path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        command = [tool("dovetail"), "compile", path, "-o", f"{folder}/model.dvt", "--report", report, *arguments]
        try:
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode:
            sys.exit(f"compile_time: error: {' '.join(map(str, command))}: {done.stderr}")
        phases = json.loads(report.read_text())["phases"]
    times = {}
    for phase in phases:
        name, passes = phase["name"], phase["passes"]
        times[name, ""] = (phase["processor_seconds"], phase["seconds"])
        for each in passes:
            times[name, each["name"]] = (each["processor_seconds"],) * 2
        rest = phase["processor_seconds"] - sum(each["processor_seconds"] for each in passes)
        if passes:
            times[name, "machine code" if name == "codegen" else "other"] = (max(rest, 0),) * 2
    times["total", ""] = tuple(sum(times[phase["name"], ""][i] for phase in phases) for i in range(2))
    return times


def least(runs):
    """Of several runs of one compilation, the least of each figure."""
    return {key: tuple(min(run[key][i] for run in runs) for i in range(2)) for key in runs[0]}


def flags(kind, ranks):
    """Of `dovetail compile` for a graph of this kind."""
    shards = KINDS[kind][1] if ranks > 1 else []
    mesh = ["--mesh", f"a={ranks}"] if ranks > 1 else []
    return ["--cpu", "x86-64-v3", *mesh, *(part for shard in shards for part in ("--shard", shard))]


def measure(kind, ranks, options, progress):
    """Processor seconds by size, and in there by (phase, pass). Sizes after one over the limit are left out."""
    builder, result = KINDS[kind][0], {}
    for size in options.sizes:
        model = builder(size, options.seed).SerializeToString()
        runs = []
        for _ in range(options.rounds):
            runs.append(compile_model(model, flags(kind, ranks), options.seconds))
            if not runs[-1]:
                print(f"compile_time: {kind} of {size} takes over {options.seconds} s", file=sys.stderr)
                return result
        result[size] = {key: figures[0] for key, figures in least(runs).items()}
        progress.step(f"{kind} of {size} on {ranks}")
    return result


def _growth(figures, key):
    """By what the time is multiplied where the size doubles, on average over the last two doublings."""
    sizes = sorted(figures)
    first, last = sizes[max(len(sizes) - 3, 0)], sizes[-1]
    if first == last:
        return 0
    return (figures[last][key] / max(figures[first].get(key, 0), 1e-3)) ** (1 / np.log2(last / first))


def judge(figures, options):
    """Phases and passes that grow too fast, and by how much; what takes less than `--least` says nothing."""
    last = figures[max(figures)]
    growths = {key: _growth(figures, key) for key, seconds in last.items() if seconds >= options.least}
    return [(key, growth) for key, growth in growths.items() if growth > options.limit]


def _rows(figures, before, options):
    sizes, rows = sorted(figures), []
    last = figures[sizes[-1]]
    for key, seconds in last.items():
        phase, name = key
        if name and seconds < options.least:
            continue
        row = [f"  {name}" if name else phase, *(f"{figures[size].get(key, 0):.3f}" for size in sizes)]
        row.append(f"{_growth(figures, key):.2f}")
        if before:
            then = max(before, key=int)
            row.append(f"{before[then].get('/'.join(key), 0):.3f} ({then})")
        rows.append(row)
    return rows


def _named(figures):
    """As JSON keeps it."""
    return {str(size): {"/".join(key): value for key, value in times.items()} for size, times in figures.items()}


def report_growth(options):
    """Prints a table of each kind; whether all passes grow slowly enough."""
    cases = [(kind, ranks) for kind in options.kind or KINDS for ranks in options.ranks]
    before = json.loads(pathlib.Path(options.against).read_text()) if options.against else {}
    progress, kept, bad = Progress(len(cases) * len(options.sizes)), {}, []
    for kind, ranks in cases:
        figures = measure(kind, ranks, options, progress)
        if not figures:
            continue
        progress.clear()
        name = f"{kind} on {ranks}"
        kept[name] = _named(figures)
        head = [name, *map(str, sorted(figures)), "growth"] + ["before"] * (name in before)
        print(table(head, _rows(figures, before.get(name), options)) + "\n", flush=True)
        bad += [(name, *entry) for entry in judge(figures, options)]
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(kept, indent=1) + "\n")
    for name, (phase, each), growth in bad:
        print(f"{name}: {phase} {each} grows by {growth:.2f} where the graph doubles")
    return not bad


def report_models(options):
    """Prints the test models that take longest, in seconds."""
    progress, rows = Progress(len(dovetail_models.BUILDERS)), []
    for name in dovetail_models.BUILDERS:
        try:
            model = dovetail_models.build(name).SerializeToString()
        except FileNotFoundError as error:
            print(f"compile_time: {name} is left out: {error}", file=sys.stderr)
            continue
        extents = {"ppocr-det": "1,3,736,1280", "ppocr-cls": "1,3,48,192"}.get(name)
        shapes = ["--shape", f"x={extents}"] if extents else []
        runs = [compile_model(model, shapes, options.seconds) for _ in range(options.rounds)]
        progress.step(name)
        if not all(runs):
            rows.append((options.seconds, [name, "", f"> {options.seconds}"]))
            continue
        times = least(runs)
        processor, wall = times["total", ""]
        passes = {key: seconds for key, (seconds, _) in times.items() if key[1]}
        slowest = max(passes, key=passes.get)
        phases = [f"{times[phase, ''][0]:.2f}" for phase in ("import", "simplify", "legalize", "propagate", "partition", "lower")]
        phases += [f"{times[phase, ''][0]:.2f}" for phase in ("codegen", "emit")]
        row = [name, f"{processor:.2f}", f"{wall:.2f}", *phases, f"{slowest[1]} {passes[slowest]:.2f}"]
        rows.append((processor, row))
    progress.clear()
    rows.sort(key=lambda row: -row[0])
    head = ["model", "processor s", "wall s", "import", "simplify", "legalize", "propagate", "partition", "lower"]
    print(table([*head, "codegen", "emit", "slowest pass"], [row for _, row in rows[: options.count]]))
    return True


def _numbers(text):
    return sorted(int(part) for part in text.split(","))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kind", action="append", choices=KINDS, help="only graphs of this kind, or of these if repeated")
    add("--sizes", type=_numbers, default=SIZES, metavar="N,N", help="numbers of nodes (default: 500 to 8000)")
    add("--ranks", type=_numbers, default=[1, 4], metavar="N,N", help="ranks (default: 1,4)")
    add("--rounds", type=int, default=1, metavar="N", help="runs of each compilation (default: %(default)s)")
    add("--seed", type=int, default=0, metavar="N", help="seed of the weights (default: %(default)s)")
    add("--seconds", type=float, default=120, metavar="S", help="limit of one compilation (default: %(default)s)")
    add("--least", type=float, default=0.1, metavar="S", help="shorter times say nothing (default: %(default)s)")
    add("--limit", type=float, default=2.2, metavar="X", help="most that times may grow (default: %(default)s)")
    add("--json", metavar="FILE", help="write the figures")
    add("--against", metavar="FILE", help="show those of --json from before besides")
    add("--models", action="store_true", help="compile the test models instead")
    add("--count", type=int, default=12, metavar="N", help="models to print, the slowest first (default: %(default)s)")
    options = parser.parse_args()
    if not tool("dovetail"):
        parser.error("there is no compiler: run `make build`, or set DOVETAIL_BUILD_DIR")
    sys.exit(0 if (report_models(options) if options.models else report_growth(options)) else 1)


if __name__ == "__main__":
    main()
