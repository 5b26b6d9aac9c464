#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the time to compile and to plan grows with the number of ranks.

Each model of bench/decisions.py is compiled (`dovetail compile`) and planned (`dovetail plan`) for 4, 64, 256
and 1 024 ranks on one axis of a mesh, and for as many on two. Nothing is requested but that images of
convolutional networks are split, so that halos are exchanged. Each figure is the least of `--rounds` runs of the
whole program, start and files included, in seconds of processor time, which other work on the machine hardly
changes. $DOVETAIL_BUILD_DIR names the build; without it, it is
build/release.
"""

import argparse
import math
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("test/models", "test", "scripts", "bench")]

import decisions  # noqa: E402
import dovetail_models  # noqa: E402
from gpucheck.report import Progress, table  # noqa: E402
from harness.backend import tool  # noqa: E402

RANKS = (4, 64, 256, 1024)
#: Their inputs are split; of all others the compiler decides.
SPLIT = ("unet2d-transposed", "unet2d-bilinear", "unet3d")


def _request(case, ranks, two):
    side = math.isqrt(ranks)
    mesh = {"a": side, "b": side} if two else {"a": ranks}
    return case.request(mesh) if case.model in SPLIT else case.flags(mesh)


def _processor_seconds():
    """Of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _seconds(command, rounds):
    times = []
    for _ in range(rounds):
        begin = _processor_seconds()
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        times.append(_processor_seconds() - begin)
        if done.returncode:
            sys.exit(f"ranks: error: {' '.join(map(str, command))}: {done.stderr}")
    return min(times)


def measure(case, model, options, progress):
    """A row of the table for each command and number of axes."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="dovetail-ranks-") as folder:
        path = pathlib.Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        outputs = {"compile": ["-o", f"{folder}/model.dvt"], "plan": ["--json", f"{folder}/plan.json"]}
        for command, output in outputs.items():
            for two in (False, True):
                times = []
                for ranks in RANKS:
                    flags = [path, *_request(case, ranks, two), *output, "--cpu", "x86-64-v3"]
                    times.append(_seconds([tool("dovetail"), command, *flags], options.rounds))
                    progress.step(f"{command} {case.model} on {ranks}")
                figures = [f"{seconds:.2f}" for seconds in times]
                rows.append([case.model, command, "2" if two else "1", *figures, f"{times[-1] / times[0]:.2f}"])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", metavar="NAME", help="only this one, or these if repeated")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each (default: %(default)s)")
    options = parser.parse_args()
    if not tool("dovetail"):
        parser.error("there is no compiler: run `make build`, or set DOVETAIL_BUILD_DIR")
    cases = [case for case in decisions.CASES if not options.model or case.model in options.model]
    progress = Progress(len(cases) * len(RANKS) * 4)
    rows = []
    for case in cases:
        try:
            model = dovetail_models.build(case.model, **dict(case.sizes))
        except FileNotFoundError as error:
            print(f"ranks: {case.model} is left out: {error}", file=sys.stderr)
            continue
        rows += measure(case, model, options, progress)
    progress.clear()
    print(table(["model", "command", "axes", *map(str, RANKS), "1024 / 4"], rows))


if __name__ == "__main__":
    main()
