#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How well `dovetail plan` predicts what programs take on this machine.

Each model is compiled for 1, 2 and 4 ranks in several ways: its input split along each spatial
dimension, or token ids along the length, with all else decided by time or by bytes, and with nothing
requested. What `dovetail plan --cluster` predicts of each program is compared with what it takes,
one thread a rank. Programs of a model run in rounds, in turns, so that what else the machine does hits
all of them; of each program it is the least of the rounds' medians that counts. Where the machine does much
else, no run of several ranks is undisturbed: `--composed` takes the least time of each step instead, and adds
up those of the slowest rank. Without `--cluster` the machine is calibrated first.

A prediction that is twice, or half, of what was measured is 100 % off. Pairs are alternatives of one model
that differ by more than 30 %: for how many is the faster one predicted to be that? `--steps` also prints
what kinds of steps took, in all programs, and were predicted to. $DOVETAIL_BUILD_DIR names the build;
without it, it is build/release.
"""

import argparse
import collections
import dataclasses
import itertools
import json
import os
import pathlib
import statistics
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("bench", "test/models", "test", "scripts")]

import dovetail_models  # noqa: E402
from decisions import CASES, Case  # noqa: E402
from gpucheck.report import Progress, table  # noqa: E402
from harness.backend import call, tool  # noqa: E402

#: Models of which nothing is decided elsewhere.
MORE_CASES = (
    Case("resnet18", "image", (1, 3, 224, 224)),
    Case("light-squeezenet", "data_0", (1, 3, 224, 224)),
    Case("light-shufflenet", "gpu_0/data_0", (1, 3, 224, 224)),
    Case("light-densenet121", "data_0", (1, 3, 224, 224)),
    Case("light-inception_v1", "data_0", (1, 3, 224, 224)),
    Case("light-bvlc_alexnet", "data_0", (1, 3, 224, 224)),
)
#: Alternatives that differ by more are to be told apart.
CLEAR = 1.3


@dataclasses.dataclass
class Program:
    """An alternative: how a model is compiled, and what that takes."""

    model: str
    ranks: int
    name: str
    options: list
    artifact: pathlib.Path = None
    predicted: float = 0
    #: Seconds of each round.
    rounds: list = dataclasses.field(default_factory=list)
    #: The least seconds of each step: of the rank that takes longest, of exchanges of all ranks together.
    steps: list = dataclasses.field(default_factory=list)
    predicted_steps: list = dataclasses.field(default_factory=list)

    #: Seconds that count.
    measured: float = 0

    @property
    def error(self):
        if not self.predicted > 0:
            return float("inf")
        return max(self.predicted / self.measured, self.measured / self.predicted) - 1


def _listed(values):
    return ",".join(map(str, values))


def alternatives(case, ranks):
    """(name, arguments of `dovetail compile`) for each way to split the model."""
    fixed = ["--shape", f"{case.input}={_listed(case.shape)}"] if case.open else []
    if ranks == 1:
        yield "whole", fixed
        return
    mesh = ["--mesh", f"a={ranks}"]
    first = 1 if case.input == "ids" else 2
    for dim in range(first, len(case.shape)):
        spec = ["_"] * len(case.shape)
        spec[dim] = "a"
        shard = [*fixed, *mesh, "--shard", f"{case.input}={_listed(spec)}"]
        yield f"dim {dim}", shard
        if dim == first:
            yield f"dim {dim}, bytes", [*shard, "--objective", "bytes"]
    yield "bytes", [*fixed, *mesh, "--objective", "bytes"]
    if ranks == 4 and len(case.shape) > 2:
        spec = ["_"] * len(case.shape)
        spec[2:4] = "a", "b"
        yield "2 x 2", [*fixed, "--mesh", "a=2,b=2", "--shard", f"{case.input}={_listed(spec)}"]


def compile_all(case, model, folder, options):
    """The programs of a case, with what is predicted of them."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    programs = []
    for ranks in options.ranks:
        for name, arguments in alternatives(case, ranks):
            artifact, plan = folder / f"{len(programs)}.dvt", folder / "plan.json"
            code, _, messages = call([tool("dovetail"), "compile", path, "-o", artifact, *arguments])
            if code == 0:
                command = [tool("dovetail"), "plan", path, *arguments, "--json", plan]
                code, _, messages = call([*command, "--cluster", options.cluster])
            if code:
                print(f"predictions: {case.model}, {ranks} ranks, {name}: {messages}", file=sys.stderr)
                continue
            predicted = json.loads(plan.read_text())
            programs.append(
                Program(case.model, ranks, name, arguments, artifact, predicted["seconds"],
                        predicted_steps=predicted["steps"])
            )  # fmt: skip
    return programs


def measure(program, inputs, options):
    """One round of a program."""
    command = [tool("dovetail"), "bench", program.artifact, "--json", "--threads", program.ranks]
    iterations = max(5, min(200, int(options.seconds / max(program.predicted, 1e-4))))
    command += ["--input", f"@{inputs}", "--iterations", iterations]
    command += ["--steps"] if options.steps or options.composed else []
    code, text, messages = call(command)
    if code:
        sys.exit(f"predictions: error: {program.model}, {program.name}: {messages}")
    result = json.loads(text)
    program.rounds.append(result["median_ms"] / 1000)
    # Waits are for what is still under way.
    steps = [
        1e-3 * (step["least_together_ms"] if step["kind"] in ("exchange", "wait") else max(step["least_ms"]))
        for step in result.get("steps", [])
    ]
    program.steps = list(map(min, program.steps, steps)) if program.steps else steps
    program.measured = sum(program.steps) if options.composed else min(program.rounds)


def pairs(programs):
    """(alternatives, whether the faster one is predicted to be that) where measured times differ clearly."""
    groups = collections.defaultdict(list)
    for program in programs:
        groups[program.model].append(program)
    for group in groups.values():
        for a, b in itertools.combinations(group, 2):
            if max(a.measured / b.measured, b.measured / a.measured) > CLEAR:
                yield a, b, (a.measured < b.measured) == (a.predicted < b.predicted)


def _percent(value):
    return f"{100 * value:.0f} %"


def summary(programs):
    """Lines about all programs, by the number of ranks, and about pairs."""
    rows = []
    for ranks in (*sorted({program.ranks for program in programs}), None):
        chosen = [program for program in programs if ranks in (None, program.ranks)]
        errors = [program.error for program in chosen]
        clear = list(pairs(chosen))
        right = [is_right for *_, is_right in clear]
        rows.append([
            "all" if ranks is None else str(ranks), str(len(chosen)), _percent(statistics.median(errors)),
            _percent(max(errors)), str(len(clear)), _percent(sum(right) / len(right)) if right else "–",
        ])  # fmt: skip
    return table(
        ["ranks", "programs", "median error", "largest error", "clear pairs", "in the right order"], rows
    )


def tabulated(programs):
    """A table with a row for each program."""
    rows = [
        [
            program.model, str(program.ranks), program.name, f"{program.predicted * 1e3:.2f}",
            f"{program.measured * 1e3:.2f}", f"{program.predicted / program.measured:.2f}",
        ]
        for program in programs
    ]  # fmt: skip
    return table(["model", "ranks", "split", "predicted, ms", "measured, ms", "ratio"], rows)


def tabulated_steps(programs):
    """A table of kinds of steps: what they took, and how far the predictions of single ones are off."""
    kinds = collections.defaultdict(list)
    for program in programs:
        for predicted, seconds in zip(program.predicted_steps, program.steps):
            if predicted["kind"] not in ("exchange", "wait"):
                kinds[predicted["kind"]].append((predicted["seconds"], seconds))
    rows = []
    for kind, steps in sorted(kinds.items()):
        predicted, measured = (sum(column) for column in zip(*steps))
        # Of steps that matter: half of the time is in those that take longer.
        errors = sorted((max(p / s, s / p) - 1, s) for p, s in steps if s > 0 and p > 0)
        half = np.searchsorted(np.cumsum([s for _, s in errors]), sum(s for _, s in errors) / 2)
        rows.append([
            kind, str(len(steps)), f"{measured * 1e3:.1f}", f"{predicted / measured:.2f}",
            _percent(errors[half][0]),
        ])  # fmt: skip
    return table(["kind", "steps", "measured, ms", "predicted / measured", "half of the time within"], rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cases = {case.model: case for case in (*CASES, *MORE_CASES)}
    parser.add_argument(
        "--model", action="append", choices=list(cases), metavar="NAME",
        help="only this one, or these if repeated; of " + ", ".join(cases),
    )  # fmt: skip
    parser.add_argument("--cluster", metavar="FILE|NAME", help="what predictions are for")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4], metavar="N")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--seconds", type=float, default=0.3, metavar="S",
        help="of a program in a round, about; at least 5 runs (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--composed", action="store_true", help="the steps' least times count")
    parser.add_argument("--steps", action="store_true", help="compare kinds of steps, too")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE.json", help="keeps the figures")
    options = parser.parse_args()
    if not tool("dovetail"):
        parser.error("there is no compiler: run `make build`, or set DOVETAIL_BUILD_DIR")
    programs = []
    with tempfile.TemporaryDirectory(prefix="dovetail-predictions-") as folder:
        folder = pathlib.Path(folder)
        if not options.cluster:
            options.cluster = folder / "cluster.json"
            code, text, messages = call([tool("dovetail"), "calibrate", "-o", options.cluster])
            if code:
                sys.exit(f"predictions: error: {messages}")
            print(text)
        chosen = [cases[name] for name in options.model] if options.model else list(cases.values())
        progress = Progress(len(chosen))
        for case in chosen:
            try:
                model = dovetail_models.build(case.model, **dict(case.sizes))
            except FileNotFoundError as error:
                print(f"predictions: {case.model} is left out: {error}", file=sys.stderr)
                continue
            inputs = folder / "inputs.npz"
            np.savez(inputs, **case.inputs(model))
            own = compile_all(case, model, folder, options)
            for _ in range(options.rounds):
                for program in own:
                    measure(program, inputs, options)
            programs += own
            for program in own:
                os.remove(program.artifact)
            progress.step(case.model)
        progress.clear()
    print(tabulated(programs))
    print(summary(programs))
    if options.steps:
        print(tabulated_steps(programs))
    if options.write:
        rows = [
            {"model": p.model, "ranks": p.ranks, "split": p.name, "predicted": p.predicted,
             "measured": p.measured, "rounds": p.rounds}
            for p in programs
        ]  # fmt: skip
        options.write.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


if __name__ == "__main__":
    main()
