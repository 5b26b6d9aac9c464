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
from gpucheck.journal import encode  # noqa: E402
from gpucheck.report import table  # noqa: E402
from harness.compare import relative_distance  # noqa: E402
import page  # noqa: E402
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
        command = [self.dovetail, "compile", self.model(workload), "-o", artifact, "--quiet"]
        command += ["--mesh", f"y={ranks}", *workload.flags(), *flags]
        # A process inherits the peak of the one that starts it, so a small one does, and tells.
        command = [sys.executable, "-c", _MEASURE, *map(str, command)]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if result.returncode:
            sys.exit(f"bench: error: cannot compile {workload.label}; see above")
        seconds, kilobytes = result.stdout.split()[-2:]
        return artifact, float(seconds), int(kilobytes) * 1024

    def describe_version(self):
        printed = subprocess.run([self.dovetail, "--version", "--json"], stdout=subprocess.PIPE, text=True, check=True)
        version = json.loads(printed.stdout)
        return f"dovetail {version['version']} {version['commit']}"

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
    """The ratio of two medians over rounds, and the interval that 95 % of resampled rounds give."""
    picks = np.random.default_rng(0).integers(0, len(first), (2000, len(first)))
    ratios = np.median(first[picks], axis=1) / np.median(second[picks], axis=1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return [float(np.median(first) / np.median(second)), float(low), float(high)]


def _entry(part, name, variant="", **figures):
    """A measurement, as bench/results/README.md describes them."""
    return {"part": part, "name": name, "variant": variant, "status": "ok", **figures}


def _ms(times):
    return 1000 * float(np.median(times))


def against_onnxruntime(bench):
    """One thread, two threads of a rank, and two ranks, all of them in turns with ONNX Runtime."""
    entries = []
    for workload in bench.workloads:
        print(f"  {workload.label} ...", file=sys.stderr, flush=True)
        single, double, split, theirs, theirs_double = bench.alternate(
            bench.runner(workload),
            bench.runner(workload, threads=2),
            bench.runner(workload, ranks=2, threads=2),
            bench.onnxruntime(workload),
            bench.onnxruntime(workload, threads=2),
        )
        for part, ours, peer in (
            ("one thread", single, theirs),
            ("two threads", double, theirs_double),
            ("two ranks", split, theirs_double),
        ):
            gain = {} if ours is single else {"gain": _ratio(single, ours)}
            figures = {"ms": _ms(ours), "peer_ms": _ms(peer), "ratio": _ratio(ours, peer), **gain}
            entries.append(_entry(part, workload.label, **figures))
    return entries


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
    entries = []
    for operator in bench.operators:
        print(f"  {operator.label} ...", file=sys.stderr, flush=True)
        model = operator.build()
        ours, theirs, copy = bench.alternate(
            bench.runner(operator), bench.onnxruntime(operator), copies(operator.count_bytes(model))
        )
        to_copy = _ms(ours) / _ms(copy) if operator.bound_by_memory else None
        figures = {"ms": _ms(ours), "peer_ms": _ms(theirs), "copy_ms": _ms(copy)}
        entries.append(_entry("operators", operator.label, ratio=_ratio(ours, theirs), to_copy=to_copy, **figures))
    return entries


#: So that ONNX Runtime multiplies in f32, as we do; else it rounds inputs to 8 bits.
_F32 = (("session.qdq_matmulnbits_accuracy_level", "1"),)


def packed_products(bench):
    """Products with weights of few bits, on one thread and on two, in turns with ONNX Runtime in f32 and as it is."""
    entries = []
    for product in bench.products:
        print(f"  {product.label} ...", file=sys.stderr, flush=True)
        measured = []
        for threads in (1, 2):
            ours, in_f32, theirs = bench.alternate(
                bench.runner(product, threads=threads),
                bench.onnxruntime(product, threads, _F32),
                bench.onnxruntime(product, threads),
            )
            figures = {"ms": _ms(ours), "peer_f32_ms": _ms(in_f32), "peer_ms": _ms(theirs)}
            measured.append({**figures, "ratio": _ratio(ours, in_f32)})
        memory = bench.memory(product)
        kept = memory["weights_bytes"] + memory["prologue_bytes"] + memory["packed_bytes"]
        sizes = {"kept_mb": kept / 1e6, "total_mb": memory["total_bytes"] / 1e6}
        entries.append(_entry("packed", product.label, threads=measured, **sizes))
    return entries


def halves(bench):
    """ResNet-18 in types of 16 bits: time, and distance from f64."""
    import ml_dtypes  # noqa: F401: registers bfloat16 with NumPy

    workload = RESNET18
    exact_model = workload.build()
    entries, single = [], None
    for dtype in ("float32", "float16", "bfloat16"):
        print(f"  {workload.label} in {dtype} ...", file=sys.stderr, flush=True)
        typed = dataclasses.replace(workload, dtype=dtype)
        measures = [bench.runner(typed)]
        if dtype != "bfloat16":  # ONNX Runtime has no convolution of it on CPUs.
            measures.append(bench.onnxruntime(typed))
        ms = [_ms(times) for times in bench.alternate(*measures)]
        single = single or ms[0]
        rounded = typed.make_inputs(exact_model)
        inputs = {name: value.astype(np.float32) for name, value in rounded.items()}
        exact = run_exactly(exact_model, inputs, dtype)["logits"]
        error = relative_distance(bench.outputs(typed, rounded)["logits"], exact)
        rounding = None
        if dtype != "float32":
            rounding = float(relative_distance(run_rounding_each(exact_model, inputs, dtype)["logits"], exact))
        figures = {"ms": ms[0], "to_f32": ms[0] / single, "peer_ms": ms[1] if len(ms) > 1 else None}
        entries.append(_entry("16 bits", dtype, error=float(error), rounding_error=rounding, **figures))
    return entries


def compiling(bench):
    entries = []
    for workload in bench.workloads:
        artifact, seconds, peak = bench.compile(workload)
        sizes = {"peak_mb": peak / 1e6, "artifact_mb": artifact.stat().st_size / 1e6}
        entries.append(_entry("compile", workload.label, seconds=seconds, **sizes))
    return entries


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
    works = [("1 × 1 convolution, 16 × 8 × 8", "step, library call", step, call)]
    for size, label in ((1 << 16, "64 KiB"), (1 << 20, "1 MiB"), (1 << 23, "8 MiB")):
        pair = medians[f"haloExchanges/{size}"], medians[f"remoteCopies/{size}"]
        works.append((f"halo, {label} for each rank", "exchange, copy from the other core's cache", *pair))
    return [_entry("runtime", name, what, first_us=a, second_us=b) for name, what, a, b in works]


def _now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=15, help="(default: 15)")
    parser.add_argument("--seconds", type=float, default=0.2, help="of each measurement in a round (default: 0.2)")
    parser.add_argument("--model", action="append", metavar="NAME", help="only this one, or these if repeated")
    parser.add_argument("--operator", action="append", metavar="TEXT", help="only operators with it in their label")
    parser.add_argument("--packed", action="store_true", help="only products with weights of few bits, and what is named")
    parser.add_argument("--save", type=pathlib.Path, metavar="FILE.json", help="also writes what was measured")
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
        measurements = []
        measures = [against_onnxruntime] * bool(bench.workloads) + [operators] * bool(bench.operators)
        measures += [packed_products] * bool(bench.products)
        if not arguments.model and not arguments.operator and not arguments.packed:
            measures += [halves, runtime_costs]
        measures += [compiling] * bool(bench.workloads)
        results = {
            "schema": "dovetail-measurements-1",
            "started": _now(),
            "arguments": {"rounds": arguments.rounds, "seconds": arguments.seconds, "avx2": arguments.avx2},
            "dovetail": bench.describe_version(),
            "machine": {"system": platform.platform(), "description": machine()},
        }
        for measure in measures:
            found = measure(bench)
            for title, header, rows in page.tables(found):
                print(f"{title}\n\n{table(header, rows)}\n", flush=True)
            measurements += found
        if arguments.save:
            results |= {"ended": _now(), "complete": True, "measurements": measurements}
            arguments.save.write_bytes(encode(results))


if __name__ == "__main__":
    main()
