#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures how long a program takes to start, and how much memory its process needs, beside ONNX Runtime.

Each measurement is a process of its own, which loads the model and runs it once. Time goes from the file (in the
system's cache) to the end of the first run, with the library loaded before. Memory is the peak of what the process has
in memory, less what it had with the library loaded and no model: `--kind` says which pages count.
The two sides alternate, in rounds; printed are medians, and the least time.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("bench", "test/models", "test", "scripts", "python")]

_PROBE = """
import json, os, pathlib, sys, time
import numpy as np

side, path, threads, runs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

def memory(name):
    for line in open("/proc/self/status"):
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status lacks {name}")

if side == "dovetail":
    sys.path.append(sys.argv[5])
    import dovetail
    from dovetail import _program
    _program._runtime()
    def load():
        program = dovetail.Program.load(path)
        inputs = {p.name: np.zeros(p.shape, p.numpy_dtype) for p in program.inputs}
        return lambda: program.run(inputs, threads=threads)
else:
    import onnxruntime
    def load():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        types = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}
        inputs = {i.name: np.zeros(i.shape, types[i.type]) for i in session.get_inputs()}
        return lambda: session.run(None, inputs)

idle = memory("VmHWM")
begin = time.perf_counter()
run = load()
loaded = time.perf_counter()
run()
first = time.perf_counter()
again = []
for _ in range(runs):
    start = time.perf_counter()
    run()
    again.append(time.perf_counter() - start)
print(json.dumps({
    "load": loaded - begin, "start": first - begin, "run": min(again, default=0),
    "peak": memory("VmHWM") - idle, "end": memory("VmRSS") - idle, "private": memory("RssAnon"),
}))
"""


def probe(side, path, threads, runs=3):
    """What one process says of itself: seconds, and bytes."""
    command = [sys.executable, "-c", _PROBE, side, path, threads, runs, ROOT / "python"]
    result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"start: error: {side} cannot run {path}; see above")
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--threads", type=int, default=2, help="of either side (default: 2)")
    parser.add_argument("--rounds", type=int, default=7, help="(default: 7)")
    parser.add_argument("--models", help="words in labels, separated by commas (default: all)")
    parser.add_argument("--ranks", type=int, default=1, help="as the compiler splits the model (default: 1)")
    parser.add_argument("--flags", default="", help="more options of `dovetail compile`")
    arguments = parser.parse_args()
    os.environ["DOVETAIL_LIBRARY_DIR"] = str(arguments.build.resolve() / "lib")

    # After the path is set; their imports are of no concern to the processes that are measured.
    from bench import Bench, machine
    from gpucheck.report import table
    from workloads import WORKLOADS, Workload

    sizes = (("height", 512), ("width", 512), ("base", 32))
    wide = Workload("U-Net, 32 channels", "unet2d-transposed", sizes, file="wide")
    words = arguments.models.split(",") if arguments.models else [""]
    print(f"{machine()}; {arguments.threads} threads; {arguments.rounds} rounds, medians (least)\n")
    rows = []
    with tempfile.TemporaryDirectory(prefix="dovetail-start-") as folder:
        options = argparse.Namespace(build=arguments.build, rounds=1, seconds=0, model=None, operator=None)
        bench = Bench(options, pathlib.Path(folder))
        for workload in (*WORKLOADS, wide):
            if workload.shape or not any(word in workload.label for word in words):
                continue
            artifact, _, _ = bench.compile(workload, arguments.ranks, arguments.flags.split())
            sides = (("dovetail", artifact), ("onnxruntime", bench.model(workload)))
            found = {side: [] for side, _ in sides}
            for side, path in sides:  # Puts the files into the system's cache.
                probe(side, path, arguments.threads, 0)
            for _ in range(arguments.rounds):
                for side, path in sides:
                    found[side].append(probe(side, path, arguments.threads))
            row = [workload.label]
            for key, scale in (("load", 1e3), ("start", 1e3), ("run", 1e3), ("peak", 1e-6), ("end", 1e-6)):
                ours, theirs = ([f[key] * scale for f in found[side]] for side, _ in sides)
                medians = statistics.median(ours), statistics.median(theirs)
                row.append(f"{medians[0]:.1f} ({min(ours):.1f}) / {medians[1]:.1f} ({min(theirs):.1f})")
                if key == "peak":
                    row.append(f"{medians[0] / medians[1]:.2f}")
            rows.append(row)
            print("  ".join(row), file=sys.stderr, flush=True)
    header = ["model", "load, ms", "first run ended, ms", "run, ms", "peak, MB", "ratio", "afterwards, MB"]
    print(table(header, rows))


if __name__ == "__main__":
    main()
