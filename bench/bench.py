#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures Dovetail and ONNX Runtime side by side, and prints tables.

In each round all that is compared runs in turns, so that what else the machine does hits all; a round
gives the median of some repetitions after a warm-up. Ratios are those of medians over the rounds, with
the interval that 95 % of resampled rounds give.
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
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("test/models", "test", "scripts", "python")]

import dovetail  # noqa: E402
from dovetail_models import onnxruntime_session, run_exactly, run_rounding_each  # noqa: E402
from gpucheck.report import table  # noqa: E402
from harness.compare import relative_distance  # noqa: E402
import peer  # noqa: E402
from operators import OPERATORS  # noqa: E402
from packed import PRODUCTS  # noqa: E402
from workloads import RESNET18, WORKLOADS  # noqa: E402


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

    def __init__(self, options, folder):
        self.dovetail = options.build / "bin" / "dovetail"
        self.folder = folder
        self.rounds = options.rounds
        self.seconds = options.seconds
        chosen = options.model or options.operator or options.packed
        self.workloads = [w for w in WORKLOADS if not chosen or w.model in (options.model or ())]
        self.operators = [
            o for o in OPERATORS if not chosen or any(part in o.label for part in options.operator or ())
        ]
        self.products = PRODUCTS if options.packed or not chosen else ()
        self._compiled = {}

    def model(self, workload):
        """The model's file; written once, with its inputs beside it."""
        path = self.folder / f"{workload.stem}.onnx"
        if not path.exists():
            model = workload.build()
            path.write_bytes(model.SerializeToString())
            np.savez(path.with_suffix(".npz"), **workload.make_inputs(model))
        return path

    def inputs(self, workload):
        with np.load(self.model(workload).with_suffix(".npz")) as file:
            return dict(file)

    def compile(self, workload, ranks=1, flags=()):
        """Compiles for `ranks`, with nothing requested but `flags`; returns (artifact, seconds, peak memory in bytes)."""
        key = workload, ranks, tuple(flags)
        if key not in self._compiled:
            self._compiled[key] = self._compile(*key)
        return self._compiled[key]

    def _compile(self, workload, ranks, flags):
        artifact = self.folder / f"{workload.stem}-{ranks}-{len(self._compiled)}.dvt"
        command = [self.dovetail, "compile", self.model(workload), "-o", artifact]
        command += ["--mesh", f"y={ranks}", *workload.flags(), *flags]
        # A process inherits the peak of the one that starts it, so a small one does, and tells.
        command = [sys.executable, "-c", _MEASURE, *map(str, command)]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if result.returncode:
            sys.exit(f"bench: error: cannot compile {workload.label}; see above")
        seconds, kilobytes = result.stdout.split()[-2:]
        return artifact, float(seconds), int(kilobytes) * 1024

    def runner(self, workload, ranks=1, threads=1):
        """A function that gives the median seconds of a number of runs, by `threads` in all."""
        artifact, _, _ = self.compile(workload, ranks)
        inputs = self.model(workload).with_suffix(".npz")

        def run(repetitions):
            command = [self.dovetail, "bench", artifact, "--json", "--threads", threads, "--input", f"@{inputs}"]
            command += ["--warmup", min(3, repetitions), "--iterations", repetitions]
            result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True)
            if result.returncode:
                sys.exit(f"bench: error: cannot run {workload.label}; see above")
            return json.loads(result.stdout)["median_ms"] / 1000

        return run

    def outputs(self, workload, inputs):
        """The outputs by name, as f32."""
        program = dovetail.Program.load(self.compile(workload)[0])
        results = program.run(inputs)
        return {port.name: results[port.name].view(port.dtype).astype(np.float32) for port in program.outputs}

    def memory(self, workload):
        """What the session of a rank takes, as `inspect` has it."""
        command = [self.dovetail, "inspect", "--json", self.compile(workload)[0]]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)["ranks"][0]

    def onnxruntime(self, workload, threads=1, settings=()):
        """The same by ONNX Runtime with all that it optimises; its threads spin, as they do by default.

        As for our programs, inputs are handed over before each run and outputs taken behind it, neither of which is
        measured: so caches have the same to begin with.
        """
        session = onnxruntime_session(self.model(workload), threads=threads, settings=settings)
        binding = session.io_binding()
        given = self.inputs(workload)
        bound = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value) for name, value in given.items()}
        for name, value in bound.items():
            binding.bind_ortvalue_input(name, value)
        for output in session.get_outputs():
            binding.bind_output(output.name)

        def once():
            for name, value in bound.items():
                value.update_inplace(given[name])
            start = time.perf_counter()
            session.run_with_iobinding(binding)
            taken = time.perf_counter() - start
            binding.copy_outputs_to_cpu()
            return taken

        def run(repetitions):
            for _ in range(min(3, repetitions)):
                once()
            return statistics.median(once() for _ in range(repetitions))

        return run

    def alternate(self, *measures):
        """The medians of each of `measures` in each round (measure, round), which take turns."""
        once = max(measure(1) for measure in measures)
        repetitions = max(3, min(100, round(self.seconds / once)))
        times = np.zeros((len(measures), self.rounds))
        for number in range(self.rounds):
            for index, measure in enumerate(measures):
                times[index, number] = measure(repetitions)
        return times


def _ratio(first, second):
    """The ratio of two medians over rounds, with its interval of 95 % by resampling rounds: `0.92 (0.90–0.93)`."""
    picks = np.random.default_rng(0).integers(0, len(first), (2000, len(first)))
    ratios = np.median(first[picks], axis=1) / np.median(second[picks], axis=1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return np.median(first) / np.median(second), f"{np.median(first) / np.median(second):.2f} ({low:.2f}–{high:.2f})"


def _mean(ratios):
    return f"{statistics.geometric_mean(ratios):.2f}"


def against_onnxruntime(bench):
    """One thread, two threads of a rank, and two ranks, all of them in turns with ONNX Runtime."""
    one, two, ranks = [], [], []
    means = {name: [] for name in ("one", "two", "gain", "ranks", "speed-up")}
    for workload in bench.workloads:
        print(f"  {workload.label} ...", file=sys.stderr, flush=True)
        times = bench.alternate(
            bench.runner(workload),
            bench.runner(workload, threads=2),
            bench.runner(workload, ranks=2, threads=2),
            bench.onnxruntime(workload),
            bench.onnxruntime(workload, threads=2),
        )
        single, double, split, theirs, theirs_double = times
        ratios = {
            "one": _ratio(single, theirs),
            "two": _ratio(double, theirs_double),
            "gain": _ratio(single, double),
            "ranks": _ratio(split, theirs_double),
            "speed-up": _ratio(single, split),
        }
        for name, (ratio, _) in ratios.items():
            means[name].append(ratio)
        text = {name: interval for name, (_, interval) in ratios.items()}
        ms = [_ms(np.median(row)) for row in times]
        one.append([workload.label, ms[0], ms[3], text["one"]])
        two.append([workload.label, ms[1], text["gain"], ms[4], text["two"]])
        ranks.append([workload.label, ms[2], text["speed-up"], text["ranks"]])
    one.append(["geometric mean", "", "", _mean(means["one"])])
    two.append(["geometric mean", "", _mean(means["gain"]), "", _mean(means["two"])])
    ranks.append(["geometric mean", "", _mean(means["speed-up"]), _mean(means["ranks"])])
    return [
        ("One rank of one thread, and ONNX Runtime with one",
         ["model", "Dovetail, ms", "ONNX Runtime, ms", "ratio (95 %)"], one),
        ("One rank of two threads, and ONNX Runtime with two",
         ["model", "Dovetail, ms", "times as fast as one thread", "ONNX Runtime, ms", "ratio (95 %)"], two),
        ("Two ranks of one thread, split by the compiler, and ONNX Runtime with two threads",
         ["model", "Dovetail, ms", "times as fast as one rank", "ratio (95 %)"], ranks),
    ]  # fmt: skip


def copies(count):
    """A function that gives the median seconds of a memcpy that reads and writes `count` bytes in all."""
    source = np.ones(int(count) // 2, np.uint8)
    target = np.zeros_like(source)

    def run(repetitions):
        times = []
        for _ in range(repetitions + min(3, repetitions)):
            start = time.perf_counter()
            np.copyto(target, source)
            times.append(time.perf_counter() - start)
        return statistics.median(times[-repetitions:])

    return run


def operators(bench):
    """Single operators on one thread, in turns with ONNX Runtime and with a memcpy of the bytes that must move."""
    rows, ratios = [], []
    for operator in bench.operators:
        print(f"  {operator.label} ...", file=sys.stderr, flush=True)
        model = operator.build()
        ours, theirs, copy = bench.alternate(
            bench.runner(operator), bench.onnxruntime(operator), copies(operator.count_bytes(model))
        )
        ratio, text = _ratio(ours, theirs)
        ratios.append(ratio)
        times = [f"{1000 * np.median(row):.2f}" for row in (ours, theirs, copy)]
        to_copy = f"{np.median(ours) / np.median(copy):.2f}" if operator.bound_by_memory else "–"
        rows.append([operator.label, *times, text, to_copy])
    if rows:
        rows.append(["geometric mean", "", "", "", _mean(ratios), ""])
    header = [
        "operator", "Dovetail, ms", "ONNX Runtime, ms", "memcpy, ms", "to ONNX Runtime (95 %)", "to memcpy",
    ]  # fmt: skip
    return [("Single operators, one thread", header, rows)]


#: So that ONNX Runtime multiplies in f32, as we do; else it rounds inputs to 8 bits.
_F32 = (("session.qdq_matmulnbits_accuracy_level", "1"),)


def packed_products(bench):
    """Products with weights of few bits, on one thread and on two, in turns with ONNX Runtime in f32 and as it is."""
    rows = []
    for product in bench.products:
        print(f"  {product.label} ...", file=sys.stderr, flush=True)
        cells = []
        for threads in (1, 2):
            times = bench.alternate(
                bench.runner(product, threads=threads),
                bench.onnxruntime(product, threads, _F32),
                bench.onnxruntime(product, threads),
            )
            cells += [f"{1000 * np.median(row):.2f}" for row in times] + [_ratio(times[0], times[1])[1]]
        memory = bench.memory(product)
        kept = memory["weights_bytes"] + memory["prologue_bytes"] + memory["packed_bytes"]
        rows.append([product.label, *cells, f"{kept / 1e6:.1f}", f"{memory['total_bytes'] / 1e6:.1f}"])
    header = ["product"]
    for threads in ("one thread", "two threads"):
        header += [f"{threads}, ms", "ONNX Runtime in f32, ms", "with inputs in 8 bits, ms", "to f32 (95 %)"]
    return [("Products with weights of few bits", [*header, "weights kept, MB", "in all, MB"], rows)]


def halves(bench):
    """ResNet-18 in types of 16 bits: time, and distance from f64."""
    import ml_dtypes  # noqa: F401: registers bfloat16 with NumPy

    workload = RESNET18
    exact_model = workload.build()
    rows, single = [], None
    for dtype in ("float32", "float16", "bfloat16"):
        print(f"  {workload.label} in {dtype} ...", file=sys.stderr, flush=True)
        typed = dataclasses.replace(workload, dtype=dtype)
        measures = [bench.runner(typed)]
        if dtype != "bfloat16":  # ONNX Runtime has no convolution of it on CPUs.
            measures.append(bench.onnxruntime(typed))
        times = np.median(bench.alternate(*measures), axis=1)
        single = single or times[0]
        rounded = typed.make_inputs(exact_model)
        inputs = {name: value.astype(np.float32) for name, value in rounded.items()}
        exact = run_exactly(exact_model, inputs, dtype)["logits"]
        errors = [bench.outputs(typed, rounded)["logits"]]
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
    return [(f"{workload.label} in 16 bits, one thread", header, rows)]


def compiling(bench):
    rows = []
    for workload in bench.workloads:
        artifact, seconds, peak = bench.compile(workload)
        size = artifact.stat().st_size
        rows.append([workload.label, f"{seconds:.1f}", f"{peak / 1e6:.0f}", f"{size / 1e6:.1f}"])
    header = ["model", "seconds", "peak memory, MB", "artifact, MB"]
    return [("dovetail compile, one rank", header, rows)]


def runtime_costs(bench):
    """Steps against the library calls in them, and exchanges against copies of their bytes between cores."""
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
        pair = medians[f"haloExchanges/{size}"], medians[f"remoteCopies/{size}"]
        rows.append([f"halo, {label} for each rank", "exchange, copy from the other core's cache"] + _microseconds(*pair))
    header = ["work", "measured", "first, µs", "second, µs", "difference, µs", "ratio"]
    return [("What the runtime adds to the work", header, rows)]


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
#: So does what is between these two.
OTHERS = "<!-- By hand: other machines. -->", "<!-- Measured from here on. -->"


def summarize(tables):
    """Of each comparison with ONNX Runtime: the mean and the median of ratios, what two cores gain, the three slowest."""
    rows = []
    for title, header, cells in tables:
        ratio = next((i for i, name in enumerate(header) if name in ("ratio (95 %)", "to ONNX Runtime (95 %)")), None)
        if ratio is None or not cells or cells[-1][0] != "geometric mean":
            continue
        gain = next((cells[-1][i] for i, name in enumerate(header) if name.startswith("times as fast")), "–")
        ratios = sorted(((float(row[ratio].split()[0]), row[0]) for row in cells[:-1]), reverse=True)
        median = f"{statistics.median(value for value, _ in ratios):.2f}"
        slowest = "; ".join(f"{name} {value:.2f}" for value, name in ratios[:3])
        rows.append([title, cells[-1][ratio], median, gain, slowest])
    header = ["comparison", "mean ratio", "median ratio", "times as fast as one", "slowest against ONNX Runtime"]
    return markdown_table("How fast it is today", header, rows)


def document(tables, bench, before=""):
    """docs/performance.md; `before`: what it was."""
    _, mark, kept = before.partition(KEPT)
    others = before.partition(OTHERS[0])[2].partition(OTHERS[1])[0]
    return "\n".join(
        [
            "# Performance",
            "",
            "For people who want to know how fast Dovetail is, and where it is slow. A ratio is the time of",
            "Dovetail, divided by that of the other program. Below 1 Dovetail is faster.",
            "",
            summarize(tables),
            OTHERS[0] + others + OTHERS[1],
            "",
            "Measured by `make bench`, which measures again and prints these tables; with",
            "`scripts/bench build/release --write docs/performance.md` it writes this page.",
            "",
            f"Machine: {machine()}. f32. Medians of {bench.rounds} rounds, in which all that",
            "is compared runs in turns; in parentheses the interval that 95 % of resampled rounds give.",
            "",
            *(markdown_table(*table) for table in tables),
        ]
    ) + (mark and "\n" + mark + kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=15, help="(default: 15)")
    parser.add_argument("--seconds", type=float, default=0.2, help="of each measurement in a round (default: 0.2)")
    parser.add_argument("--model", action="append", metavar="NAME", help="only this one, or these if repeated")
    parser.add_argument("--operator", action="append", metavar="TEXT", help="only operators with it in their label")
    parser.add_argument("--packed", action="store_true", help="only products with weights of few bits, and what is named")
    parser.add_argument("--write", type=pathlib.Path, help="also writes the tables as Markdown")
    parser.add_argument("--avx2", action="store_true", help="hide AVX-512 and AMX from all programs")
    arguments = parser.parse_args()
    if arguments.avx2 and "LD_PRELOAD" not in os.environ:
        if not peer.can_mask():
            parser.error("this CPU cannot hide from a program what it has (cpuid_fault)")
        # This process has asked the CPU already: another one takes its place.
        with tempfile.TemporaryDirectory(prefix="dovetail-mask-") as folder:
            environment = dict(os.environ)
            peer.mask(environment, folder)
            sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        print(f"{machine()}\n")
        # A model that is missing ends it now, and not when others have been measured for minutes.
        for workload in bench.workloads:
            bench.model(workload)
        tables = []
        measures = [against_onnxruntime] * bool(bench.workloads) + [operators] * bool(bench.operators)
        measures += [packed_products] * bool(bench.products)
        if not arguments.model and not arguments.operator and not arguments.packed:
            measures += [halves, runtime_costs]
        measures += [compiling] * bool(bench.workloads)
        for measure in measures:
            for title, header, rows in measure(bench):
                print(f"{title}\n\n{table(header, rows)}\n", flush=True)
                tables.append((title, header, rows))
        if arguments.write:
            before = arguments.write.read_text() if arguments.write.exists() else ""
            arguments.write.write_text(document(tables, bench, before))


if __name__ == "__main__":
    main()
