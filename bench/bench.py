#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures Dovetail and ONNX Runtime side by side, and prints tables.

Both get one thread a rank. Repetitions alternate between the two, in rounds, so that what else the
machine does hits both; times are medians of all repetitions after the warm-up.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("test/models", "test", "scripts", "python")]

import dovetail  # noqa: E402
import dovetail_models  # noqa: E402
from dovetail_models import onnxruntime_session, page, run_exactly, run_rounding_each, with_element_type  # noqa: E402
from gpucheck.report import table  # noqa: E402
from harness.compare import relative_distance  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Workload:
    """A model at the size at which it is measured, on one rank."""

    label: str
    model: str
    input: str
    shape: tuple
    sizes: tuple = ()
    #: Whether the size is stated to the compiler: the model leaves it open.
    open: bool = False
    #: The NumPy type of inputs, weights and outputs.
    dtype: str = "float32"

    @property
    def stem(self):
        """Of its files."""
        return self.model if self.dtype == "float32" else f"{self.model}-{self.dtype}"

    def make_input(self):
        if self.model == "ppocr-det":
            return page.detection_input(page.text_page(*self.shape[2:]))
        return np.random.default_rng(3).standard_normal(self.shape, dtype=np.float32).astype(self.dtype)

    def flags(self):
        return ["--shape", f"{self.input}={','.join(map(str, self.shape))}"] if self.open else []


_512 = (("height", 512), ("width", 512))
_VIT_TINY = (
    ("height", 224), ("width", 224), ("size", 192), ("heads", 3), ("blocks", 12), ("classes", 1000),
)  # fmt: skip
RESNET = Workload("ResNet-50", "resnet50", "image", (1, 3, 224, 224))
UNET = Workload(
    "U-Net, transposed convolutions", "unet2d-transposed", "image", (1, 3, 512, 512), _512
)
WORKLOADS = (
    RESNET,
    UNET,
    Workload("U-Net, bilinear", "unet2d-bilinear", "image", (1, 3, 512, 512), _512),
    Workload(
        "3-D U-Net", "unet3d", "volume", (1, 2, 64, 64, 64),
        (("depth", 64), ("height", 64), ("width", 64)),
    ),
    Workload("PP-OCRv4 detection", "ppocr-det", "x", (1, 3, 736, 1280), open=True),
    Workload("ViT-Tiny", "vit", "image", (1, 3, 224, 224), _VIT_TINY),
)  # fmt: skip


#: Runs its arguments; prints the seconds that they took and their peak memory in KiB.
_MEASURE = """
import resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[1:]).returncode
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


class Bench:
    """Runs the tools of a build in a folder of its own."""

    def __init__(self, build, folder, repetitions, rounds):
        self.dovetail = build / "bin" / "dovetail"
        self.folder = folder
        self.repetitions = repetitions
        self.rounds = rounds
        self._compiled = {}

    def model(self, workload):
        """The model's file; written once."""
        path = self.folder / f"{workload.stem}.onnx"
        if not path.exists():
            model = dovetail_models.build(workload.model, **dict(workload.sizes))
            if workload.dtype != "float32":
                model = with_element_type(model, workload.dtype)
            path.write_bytes(model.SerializeToString())
        return path

    def compile(self, workload, ranks=1):
        """Compiles for `ranks` bands of rows; returns (artifact, seconds, peak memory in bytes)."""
        if (workload, ranks) not in self._compiled:
            self._compiled[workload, ranks] = self._compile(workload, ranks)
        return self._compiled[workload, ranks]

    def _compile(self, workload, ranks):
        artifact = self.folder / f"{workload.stem}-{ranks}.dvt"
        command = [self.dovetail, "compile", self.model(workload), "-o", artifact]
        command += ["--mesh", f"y={ranks}", *workload.flags()]
        if ranks > 1:
            spec = ["_"] * len(workload.shape)
            spec[2] = "y"
            command += ["--shard", f"{workload.input}={','.join(spec)}"]
        # A process inherits the peak of the one that starts it, so a small one does, and tells.
        command = [sys.executable, "-c", _MEASURE, *map(str, command)]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if result.returncode:
            sys.exit(f"bench: error: cannot compile {workload.label}; see above")
        seconds, kilobytes = result.stdout.split()[-2:]
        return artifact, float(seconds), int(kilobytes) * 1024

    def run(self, artifact, workload, ranks=1):
        """Seconds of each repetition, one thread a rank."""
        command = [self.dovetail, "bench", artifact, "--json", "--threads", ranks]
        command += ["--iterations", self.repetitions]
        if workload.model == "ppocr-det":
            file = self.folder / "input.npy"
            np.save(file, workload.make_input())
            command += ["--input", f"{workload.input}=@{file}"]
        result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True)
        if result.returncode:
            sys.exit(f"bench: error: cannot run {workload.label}; see above")
        return [json.loads(result.stdout)["median_ms"] / 1000]

    def outputs(self, artifact, workload):
        """The outputs by name, as f32."""
        program = dovetail.Program.load(artifact)
        results = program.run({workload.input: workload.make_input()})
        return {port.name: results[port.name].view(port.dtype).astype(np.float32) for port in program.outputs}

    def onnxruntime(self, workload):
        """A function that gives the seconds of each repetition."""
        session = onnxruntime_session(self.model(workload), threads=1)
        inputs = {workload.input: workload.make_input()}
        session.run(None, inputs)

        def repeat():
            times = []
            for _ in range(self.repetitions):
                start = time.perf_counter()
                session.run(None, inputs)
                times.append(time.perf_counter() - start)
            return times

        return repeat

    def alternate(self, *measures):
        """Median of each of `measures`, called in turn."""
        times = [[] for _ in measures]
        for _ in range(self.rounds):
            for measured, measure in zip(times, measures):
                measured += measure()
        return [statistics.median(t) for t in times]


def against_onnxruntime(bench):
    rows = []
    for workload in WORKLOADS:
        print(f"  {workload.label} ...", file=sys.stderr, flush=True)
        artifact, _, _ = bench.compile(workload)
        ours, theirs = bench.alternate(
            lambda a=artifact, w=workload: bench.run(a, w), bench.onnxruntime(workload)
        )
        size = " × ".join(map(str, workload.shape))
        rows.append([workload.label, size, _ms(ours), _ms(theirs), f"{ours / theirs:.2f}"])
    header = ["model", "input", "Dovetail, ms", "ONNX Runtime, ms", "ratio"]
    return "One rank, one thread, against ONNX Runtime", header, rows


def halves(bench):
    """ResNet-18 in types of 16 bits: time, and distance from f64."""
    import ml_dtypes  # noqa: F401: registers bfloat16 with NumPy

    workload = Workload("ResNet-18", "resnet18", "image", (1, 3, 224, 224))
    exact_model = dovetail_models.build(workload.model)
    rows, single = [], None
    for dtype in ("float32", "float16", "bfloat16"):
        print(f"  {workload.label} in {dtype} ...", file=sys.stderr, flush=True)
        typed = dataclasses.replace(workload, dtype=dtype)
        artifact, _, _ = bench.compile(typed)
        measures = [lambda a=artifact, w=typed: bench.run(a, w)]
        if dtype != "bfloat16":  # ONNX Runtime has no convolution of it on CPUs.
            measures.append(bench.onnxruntime(typed))
        times = bench.alternate(*measures)
        single = single or times[0]
        inputs = {typed.input: typed.make_input().astype(np.float32)}
        exact = run_exactly(exact_model, inputs, dtype)["logits"]
        errors = [bench.outputs(artifact, typed)["logits"]]
        if dtype != "float32":
            errors.append(run_rounding_each(exact_model, inputs, dtype)["logits"])
        cells = [f"{relative_distance(e, exact):.1e}" for e in errors]
        rows.append(
            [dtype, _ms(times[0]), f"{times[0] / single:.2f}", _ms(times[1]) if len(times) > 1 else "–"]
            + cells
            + ["–"] * (2 - len(cells))
        )
    header = [
        "type", "Dovetail, ms", "to its f32", "ONNX Runtime, ms", "error against f64",
        "with a rounding after each operator",
    ]  # fmt: skip
    return f"{workload.label}, {' × '.join(map(str, workload.shape))}, in 16 bits, one thread", header, rows


def scaling(bench):
    print("  scaling ...", file=sys.stderr, flush=True)
    one, two = (bench.compile(UNET, ranks)[0] for ranks in (1, 2))
    single, double = bench.alternate(
        lambda: bench.run(one, UNET, 1), lambda: bench.run(two, UNET, 2)
    )
    size = " × ".join(map(str, UNET.shape))
    rows = [[UNET.label, size, _ms(single), _ms(double), f"{single / double:.2f}"]]
    header = ["model", "input", "1 rank, ms", "2 ranks, ms", "speed-up"]
    return "Two ranks of one thread against one", header, rows


def compiling(bench):
    rows = []
    for workload in WORKLOADS:
        artifact, seconds, peak = bench.compile(workload)
        size = artifact.stat().st_size
        rows.append([workload.label, f"{seconds:.1f}", f"{peak / 1e6:.0f}", f"{size / 1e6:.1f}"])
    header = ["model", "seconds", "peak memory, MB", "artifact, MB"]
    return "dovetail compile, one rank", header, rows


def runtime_costs(bench):
    """Steps against the library calls in them, and exchanges against copies of their bytes."""
    print("  runtime ...", file=sys.stderr, flush=True)
    # Only one thread makes library calls, as in a rank.
    result = subprocess.run(
        [bench.dovetail.with_name("runtime-bench"), "--benchmark_format=json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    if result.returncode:
        sys.exit("bench: error: runtime-bench failed; run it by hand to see why")
    medians = {
        entry["run_name"].split("/iterations")[0]: entry["real_time"] / 1000
        for entry in json.loads(result.stdout)["benchmarks"]
        if entry["aggregate_name"] == "median"
    }
    step, call = medians["convolutionSteps"], medians["convolutionCalls"]
    rows = [["1 × 1 convolution, 16 × 8 × 8", "step, library call"] + _microseconds(step, call)]
    for size, label in ((1 << 16, "64 KiB"), (1 << 20, "1 MiB"), (1 << 23, "8 MiB")):
        pair = medians[f"haloExchanges/{size}"], medians[f"copies/{size}"]
        rows.append([f"halo, {label} for each rank", "exchange, memcpy"] + _microseconds(*pair))
    header = ["work", "measured", "first, µs", "second, µs", "difference, µs", "ratio"]
    return "What the runtime adds to the work", header, rows


def _microseconds(first, second):
    return [f"{first:.2f}", f"{second:.2f}", f"{first - second:.2f}", f"{first / second:.2f}"]


def _ms(seconds):
    return f"{1000 * seconds:.1f}"


def markdown_table(title, header, rows):
    lines = [f"## {title}", "", "| " + " | ".join(header) + " |"]
    lines.append("|---|" + "---:|" * (len(header) - 1))
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def machine():
    """What the numbers were measured on."""
    import onnxruntime

    model = platform.processor() or platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores; ONNX Runtime {onnxruntime.__version__}"


#: What follows it on the page is not measured here, and stays.
KEPT = "<!-- From here on the page is written by hand. -->"


def document(tables, bench, before=""):
    """docs/performance.md; `before`: what it was."""
    _, mark, kept = before.partition(KEPT)
    return "\n".join(
        [
            "# Performance",
            "",
            "Measured by `make bench`, which measures again and prints these tables; with",
            "`scripts/bench build/release --write docs/performance.md` it writes this page.",
            "",
            f"Machine: {machine()}. f32; one thread a rank. Medians of {bench.rounds} rounds of",
            f"{bench.repetitions} repetitions after a warm-up; the rounds of the two sides alternate.",
            "",
            *(markdown_table(*table) for table in tables),
        ]
    ) + (mark and "\n" + mark + kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--repetitions", type=int, default=5, help="in each round (default: 5)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: 5)")
    parser.add_argument("--write", type=pathlib.Path, help="also writes the tables as Markdown")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as folder:
        bench = Bench(
            arguments.build, pathlib.Path(folder), arguments.repetitions, arguments.rounds
        )
        print(f"{machine()}\n")
        tables = []
        for measure in (against_onnxruntime, halves, scaling, runtime_costs, compiling):
            tables.append(measure(bench))
            title, header, rows = tables[-1]
            print(f"{title}\n\n{table(header, rows)}\n", flush=True)
        if arguments.write:
            before = arguments.write.read_text() if arguments.write.exists() else ""
            arguments.write.write_text(document(tables, bench, before))


if __name__ == "__main__":
    main()
