#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares random convolutions and matrix products with ONNX Runtime, one thread each.

Every case is a model of one node. The weights of a convolution are constant. Dovetail compiles the case for an
instruction set; DNNL_MAX_CPU_ISA and DOVETAIL_MAX_CPU limit oneDNN and the runtime's own kernels to the same set.
Beside code for x86-64-v3, ONNX Runtime is limited to AVX2 where the CPU can hide from it what else there is
(cpu_mask.c); elsewhere it uses what the machine has, and the tables say so.
Both programs take turns. A ratio is the median of Dovetail's times over that of ONNX Runtime's: below 1,
Dovetail is faster.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("bench", "test/models", "test", "scripts", "python")]

import peer  # noqa: E402
from gpucheck.report import table  # noqa: E402

#: What each `--cpu` means to oneDNN.
CPUS = {"x86-64-v3": "AVX2", "x86-64-v4": "AVX512_CORE"}

#: Multiplications of a case, between which it takes about 20 µs and 50 ms.
LEAST, MOST = 1e6, 1.2e9

EXAMPLES = """
examples:
  sweep.py                                   400 convolutions and 100 products, both instruction sets
  sweep.py --cpu x86-64-v3 --count 50        a tenth of them
  sweep.py --kinds causal,grouped --count 40 some kinds
  sweep.py --only conv-17 --seed 1           one case once more
  sweep.py --json sweep.json                 all figures, for other tools
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """One node. `label` says all that distinguishes it."""

    name: str
    kind: str
    label: str
    operator: str
    shape: tuple
    weights: tuple
    attributes: dict
    #: Multiplications.
    work: float
    #: Of products: whether the second factor is an input instead of a constant.
    varies: bool = False
    #: The shape of the result, if a tensor of it is added, as behind residual branches.
    added: tuple = ()

    def model(self):
        rng = np.random.default_rng(len(self.label))
        values = (rng.standard_normal(self.weights) / math.sqrt(np.prod(self.weights[1:]))).astype(np.float32)
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)]
        constants = []
        if self.varies:
            inputs.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, self.weights))
        else:
            constants.append(numpy_helper.from_array(values, "w"))
        nodes = [helper.make_node(self.operator, ["x", "w"], ["sum" if self.added else "y"], **self.attributes)]
        if self.added:
            inputs.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, self.added))
            nodes.append(helper.make_node("Add", ["sum", "r"], ["y"]))
        graph = helper.make_graph(
            nodes, "case", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

    def inputs(self):
        rng = np.random.default_rng(7)
        shapes = {"x": self.shape, **({"w": self.weights} if self.varies else {}), **({"r": self.added} if self.added else {})}
        return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _between(rng, low, high):
    """An integer whose logarithm is evenly distributed."""
    return int(round(math.exp(rng.uniform(math.log(low), math.log(high)))))


#: What the cases are examples of, and how many of each there are for 20 convolutions.
KINDS = {
    "plain": 3, "even": 2, "dilated": 2, "aspp": 2, "causal": 3, "grouped": 2, "depthwise": 2, "strided": 1,
    "transposed": 3,
}  # fmt: skip


def _convolution(rng, name, kind):
    """A random convolution of `kind`, and the shape of its result; None if it is too small or too large."""
    rank = {"causal": 1, "aspp": 2}.get(kind, int(rng.choice([1, 2, 2, 3])))
    taps = [int(rng.choice([2, 4, 6] if kind == "even" else [1, 2, 3, 3, 3, 4, 5, 7])) for _ in range(rank)]
    if rng.random() < 0.6 or kind == "aspp":
        taps = [taps[0]] * rank
    if kind in ("causal", "aspp", "dilated"):
        taps = [max(t, 2) if kind != "aspp" else 3 for t in taps]
    if rank == 3:
        taps = [min(t, 4) for t in taps]
    dilation = 1
    if kind in ("causal", "dilated", "aspp") or (kind in ("grouped", "depthwise", "transposed") and rng.random() < 0.2):
        most = {"causal": 64, "aspp": 24, "transposed": 3}.get(kind, 64 if rank == 1 else 8)
        dilation = _between(rng, 1 if kind == "causal" else 2, most)
    stride = int(rng.choice([2, 2, 3])) if kind == "strided" or (kind == "transposed" and rng.random() < 0.8) else 1
    if kind in ("grouped", "depthwise", "even") and rng.random() < 0.2:
        stride = 2
    groups = 1
    inputs, outputs = _between(rng, 3, 512), _between(rng, 3, 512)
    if kind == "plain" and rng.random() < 0.25:
        inputs = int(rng.choice([1, 3, 4]))
    if kind == "grouped" or (kind == "transposed" and rng.random() < 0.15):
        groups = int(rng.choice([2, 3, 4, 8, 16, 32]))
        inputs, outputs = (groups * max(1, round(c / groups)) for c in (inputs, outputs))
        if rng.random() < 0.5:
            outputs = inputs
    if kind == "depthwise":
        groups = outputs = inputs = max(inputs, 8)
        if rng.random() < 0.1:
            outputs *= 2
    spans = [(t - 1) * dilation + 1 for t in taps]
    if kind == "causal":
        pads = [spans[0] - 1, 0]
    elif kind == "aspp":
        pads = [dilation] * 4
    elif kind == "transposed":
        pads = [int(rng.integers(0, max(1, (s + 1) // 2))) for s in spans] * 2
    else:
        form = rng.choice(["none", "same", "same", "reach"])
        low = [0 if form == "none" else (s - 1) // 2 if form == "same" else int(rng.integers(0, s)) for s in spans]
        pads = low + [0 if form == "none" else s - 1 - p for s, p in zip(spans, low)]
    largest = {1: 8192, 2: 256, 3: 40}[rank]
    extent = _between(rng, 4, largest)
    extents = [max(1, round(extent * rng.uniform(0.8, 1.25))) for _ in range(rank)]
    if kind == "aspp":
        extents = [_between(rng, 14, 65)] * 2
    batch = int(rng.choice([1, 1, 1, 4]))
    if kind == "transposed":
        results = [(n - 1) * stride + s - pads[i] - pads[i + rank] for i, (n, s) in enumerate(zip(extents, spans))]
        positions = extents
    else:
        results = [(n + pads[i] + pads[i + rank] - s) // stride + 1 for i, (n, s) in enumerate(zip(extents, spans))]
        positions = results
    if min(results) < 1:
        return None
    work = batch * np.prod(positions, dtype=float) * np.prod(taps) * inputs * outputs / groups
    if not LEAST <= work <= MOST:
        return None
    elements = batch * max(np.prod(extents, dtype=float) * inputs, np.prod(results, dtype=float) * outputs)
    if elements > 8e6:
        return None
    times = "×".join
    label = f"{times(map(str, taps))}, {inputs} to {outputs}, {times(map(str, extents))}"
    label += f", {groups} groups" if groups > 1 else ""
    label += f", stride {stride}" if stride > 1 else ""
    label += f", dilation {dilation}" if dilation > 1 else ""
    label += f", pads {'/'.join(map(str, pads))}" if any(pads) else ""
    label += f", batch {batch}" if batch > 1 else ""
    attributes = {"pads": pads, "strides": [stride] * rank, "dilations": [dilation] * rank, "group": groups}
    weights = (inputs, outputs // groups) if kind == "transposed" else (outputs, inputs // groups)
    operator = "ConvTranspose" if kind == "transposed" else "Conv"
    case = Case(name, kind, label, operator, (batch, inputs, *extents), (*weights, *taps), attributes, work)
    return case, (batch, outputs, *results)


def _product(rng, name):
    """A random product, and the shape of its result; None if it is too small or too large."""
    rows = 1 if rng.random() < 0.2 else _between(rng, 2, 1024)
    depth, columns = _between(rng, 8, 4096), _between(rng, 8, 4096)
    batch = _between(rng, 2, 32) if rng.random() < 0.25 else 1
    work = float(batch) * rows * depth * columns
    if not LEAST <= work <= MOST or batch * max(rows * depth, depth * columns, rows * columns) > 8e6:
        return None
    varies = batch > 1 or rng.random() < 0.3
    label = f"{rows}×{depth} by {depth}×{columns}" + (f", batch {batch}" if batch > 1 else "")
    label += ", both inputs" if varies else ""
    if batch > 1:
        case = Case(name, "product", label, "MatMul", (batch, rows, depth), (batch, depth, columns), {}, work, varies)
        return case, (batch, rows, columns)
    transposes = [int(rng.random() < 0.25), int(rng.random() < 0.4)]
    label += {(1, 0): ", first transposed", (0, 1): ", second transposed", (1, 1): ", both transposed"}.get(
        tuple(transposes), ""
    )
    first = (depth, rows) if transposes[0] else (rows, depth)
    second = (columns, depth) if transposes[1] else (depth, columns)
    attributes = {"transA": transposes[0], "transB": transposes[1]}
    return Case(name, "product", label, "Gemm", first, second, attributes, work, varies), (rows, columns)


def make_cases(seed, count, kinds=None):
    """`count` cases, four convolutions for each product; the same for the same seed, whatever `kinds` leaves out."""
    cycle = [kind for kind, number in KINDS.items() for _ in range(number)]
    cycle = [cycle[i * 7 % len(cycle)] for i in range(len(cycle))]
    cases, numbers = [], [0, 0]
    for index in range(count):
        is_product = index % 5 == 4
        number = numbers[is_product]
        numbers[is_product] += 1
        kind = "product" if is_product else cycle[number % len(cycle)]
        rng = np.random.default_rng([seed, is_product, number])
        drawn, name = None, f"{'product' if is_product else 'conv'}-{number}"
        while drawn is None:
            drawn = _product(rng, name) if is_product else _convolution(rng, name, kind)
        case, shape = drawn
        if rng.random() < 0.25:
            case = dataclasses.replace(case, label=f"{case.label}, plus a tensor", added=shape)
        if not kinds or case.kind in kinds:
            cases.append(case)
    return cases


class Sweep:
    def __init__(self, options, folder, cpus):
        self.dovetail = options.build / "bin" / "dovetail"
        self.folder = folder
        self.rounds = options.rounds
        self.peers = {cpu: peer.Peer(masked=is_masked(cpu)) for cpu in cpus}

    def measure(self, case):
        """{cpu: (ONNX Runtime's milliseconds, ours, implementations)}"""
        path = self.folder / "case.onnx"
        inputs = path.with_suffix(".npz")
        onnx.save(case.model(), path)
        np.savez(inputs, **case.inputs())
        results = {}
        for cpu, other in self.peers.items():
            artifact = self.compile(path, cpu)
            other.load(path, inputs)
            repetitions = int(max(3, min(60, 60 / max(other.time(1), 0.01))))
            own, theirs = [], []
            for _ in range(self.rounds):
                theirs.append(other.time(repetitions))
                found = self.run(artifact, cpu, inputs, repetitions)
                own.append(found["median_ms"])
            results[cpu] = statistics.median(theirs), statistics.median(own), implementations(found)
        return results

    def compile(self, path, cpu):
        artifact = self.folder / f"{cpu}.dvt"
        subprocess.run([self.dovetail, "compile", path, "-o", artifact, "--mesh", "y=1", "--cpu", cpu], check=True)
        return artifact

    def run(self, artifact, cpu, inputs, repetitions):
        command = [self.dovetail, "bench", artifact, "--json", "--threads", "1", "--input", f"@{inputs}"]
        command += ["--warmup", "2", "--iterations", str(repetitions)]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment(cpu))
        return json.loads(result.stdout)


def implementations(report):
    """What computes products and convolutions, of a report of `dovetail bench --json`."""
    names = [step["implementation"] for step in report["implementations"]]
    return list(dict.fromkeys(names)) or ["generated kernel"]


def environment(cpu):
    """That in which programs for `cpu`, one of CPUS or "native", use no more than it has."""
    limits = {"DNNL_MAX_CPU_ISA": CPUS[cpu], "DOVETAIL_MAX_CPU": cpu} if cpu in CPUS else {}
    return {**os.environ, **limits}


def is_masked(cpu):
    """Whether ONNX Runtime is limited as programs for `cpu` are."""
    return cpu == "x86-64-v3" and peer.can_mask()


def show(title, header, rows):
    print(f"\n{title}\n\n{table(header, rows)}")


def report(results, cpus):
    """`results` are pairs of a case and what `measure` has."""
    for cpu in cpus:
        limit = "" if cpu == "x86-64-v4" else ", ONNX Runtime limited to AVX2" if is_masked(cpu) else ", ONNX Runtime not limited"
        ratios = {case.name: own[cpu][1] / own[cpu][0] for case, own in results}
        rows = sorted(results, key=lambda result: -ratios[result[0].name])
        show(
            f"{cpu}{limit}: the ten worst",
            ["case", "kind", "form", "ratio", "Dovetail, ms", "ONNX Runtime, ms", "GFLOP/s", "implementation"],
            [
                [case.name, case.kind, case.label, f"{ratios[case.name]:.2f}", f"{own[cpu][1]:.3f}", f"{own[cpu][0]:.3f}",
                 f"{2e-6 * case.work / own[cpu][1]:.1f}", " ".join(own[cpu][2])]
                for case, own in rows[:10]
            ],
        )  # fmt: skip
        summary = []
        for kind in [*KINDS, "product", "all"]:
            chosen = [ratios[case.name] for case, _ in results if kind in (case.kind, "all")]
            if chosen:
                mean = statistics.geometric_mean(chosen)
                over = sum(ratio > 1.5 for ratio in chosen)
                summary.append([kind, str(len(chosen)), f"{mean:.2f}", f"{max(chosen):.2f}", str(over)])
        show(f"{cpu}: ratios by kind", ["kind", "cases", "geometric mean", "worst", "above 1.5"], summary)
        used = {}
        for case, own in results:
            for name in own[cpu][2]:
                used.setdefault(name, []).append(ratios[case.name])
        show(
            f"{cpu}: ratios by implementation",
            ["implementation", "cases", "geometric mean", "worst"],
            [[name, str(len(r)), f"{statistics.geometric_mean(r):.2f}", f"{max(r):.2f}"] for name, r in sorted(used.items())],
        )


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500, help="number of cases, a fifth of them products (default 500)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random cases (default 1)")
    parser.add_argument("--cpu", choices=["all", *CPUS], default="all", help="instruction set to compile for (default all)")
    parser.add_argument("--kinds", type=lambda text: text.split(","), help=f"some of {', '.join(KINDS)}, product")
    parser.add_argument("--only", action="append", help="name of a case, such as conv-17; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="turns that the two programs take (default 3)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="build folder")
    parser.add_argument("--json", type=pathlib.Path, help="file for all figures")
    parser.add_argument("--list", action="store_true", help="print the cases and measure nothing")
    return parser.parse_args()


def main():
    options = parse()
    cpus = list(CPUS) if options.cpu == "all" else [options.cpu]
    cases = make_cases(options.seed, options.count, options.kinds)
    if options.only:
        cases = [case for case in cases if case.name in options.only]
    if options.list:
        for case in cases:
            print(f"{case.name}  {case.kind}  {case.label}  {case.work / 1e6:.0f} M")
        return
    results = []
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(options, pathlib.Path(folder), cpus)
        for case in cases:
            own = sweep.measure(case)
            results.append((case, own))
            ratios = "  ".join(f"{cpu} {ms / theirs:.2f} {' '.join(names)}" for cpu, (theirs, ms, names) in own.items())
            print(f"{case.name}  {case.kind}  {case.label}:  {ratios}", file=sys.stderr, flush=True)
        for other in sweep.peers.values():
            other.close()
    report(results, cpus)
    if options.json:
        rows = [
            {"name": case.name, "kind": case.kind, "label": case.label, "work": case.work,
             **{cpu: {"onnxruntime_ms": theirs, "ms": ms, "implementations": names} for cpu, (theirs, ms, names) in own.items()}}
            for case, own in results
        ]  # fmt: skip
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
