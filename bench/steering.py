#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How closely plans follow sizes that are requested at random, and what that is predicted to take.

Each model is split along one spatial dimension of its input, or along its length, on 2, 3 and 4 ranks, with
sizes drawn at random. Half of the draws are close to even, as of ranks that have a little more room; the
other half are anything. Some requests are for the output, where that has the dimension, too.
Compared are bytes that ranks receive and predicted times, of the default and of `--follow 0`.

A step *follows* if its result is split as the request says: its largest piece has the share that the
request gives to that rank, but for a few elements, or contains it. Steps that take less than 1 % of all do not count. Where
one does not follow, the compiler has to say so: `silent` counts those of plans without a word, which is
to be 0. `--measure` also measures both plans, on 2 ranks, one thread each, in turns.
$DOVETAIL_BUILD_DIR names the build; without it, it is build/release.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("test/models", "test", "scripts", "bench")]

import decisions  # noqa: E402
import dovetail_models  # noqa: E402
from decisions import Case  # noqa: E402
from gpucheck.report import Progress, table  # noqa: E402
from harness.backend import call, tool  # noqa: E402

_NAMES = ("unet2d-transposed", "unet2d-bilinear", "unet3d", "resnet50", "ppocr-det", "vit", "llama")
_ODD = (("height", 336), ("width", 208))
CASES = (
    *(case for case in decisions.CASES if case.model in _NAMES),
    Case("unet2d-bilinear", "image", (1, 3, 336, 208), _ODD),
)
#: Beside halos and what is cut off by strides, elements that a piece may have more or less than its share.
SLACK = 3
#: The share of all time that a step takes at least to count.
HEAVY = 0.01
_SPLIT = re.compile(r"a:(?P<pieces>\d+(?:\+\d+)*|(?:\[\d+, \d+\))+)")


def draw(rng, extent, ranks):
    """Random sizes; of every other draw those that are close to even."""
    if rng.random() < 0.5:
        shares = 1 + rng.uniform(-0.08, 0.08, ranks)
    else:
        shares = rng.uniform(0, 1, ranks)
    cuts = np.round(np.cumsum(shares)[:-1] / np.sum(shares) * extent).astype(int)
    return np.diff([0, *cuts, extent]).tolist()


def _run(*command):
    code, text, messages = call(command)
    if code:
        sys.exit(f"steering: error: {' '.join(map(str, command))} exits with {code}: {messages}")
    return text, messages


def plan(folder, flags):
    """What is predicted of the model in `folder`, how its steps are split, and what the compiler says."""
    path, artifact = folder / "model.onnx", folder / "model.dvt"
    _run(tool("dovetail"), "plan", path, "--json", folder / "plan.json", *flags)
    predicted = json.loads((folder / "plan.json").read_text())
    _, messages = _run(tool("dovetail"), "compile", path, "-o", artifact, "--remarks", *flags)
    inspected = json.loads(_run(tool("dovetail"), "inspect", "--json", artifact)[0])
    return predicted, inspected, messages


def _follows(split, cuts):
    """Whether all that a rank is to have by `cuts`, which are shares, is in its piece, and little else."""
    match = _SPLIT.search(split)
    if not match:
        return False
    if match["pieces"].startswith("["):
        pieces = [tuple(map(int, piece)) for piece in re.findall(r"\[(\d+), (\d+)\)", match["pieces"])]
    else:
        ends = np.cumsum([0, *map(int, match["pieces"].split("+"))])
        pieces = list(zip(ends, ends[1:]))
    extent = pieces[-1][1]
    # Halos of several layers are computed at once where pieces overlap.
    slack = SLACK + (0.02 if "+" in match["pieces"] else 0.06) * extent
    wanted = zip(cuts[:-1] * extent, cuts[1:] * extent)
    return all(max(abs(lo - begin), abs(hi - end)) <= slack
               for (lo, hi), (begin, end) in zip(pieces, wanted))  # fmt: skip


def strays(predicted, inspected, sizes):
    """Names of steps above the limit that are not split as requested."""
    seconds = [step.get("seconds", 0) if "works" in step else 0 for step in predicted["steps"]]
    cuts = np.cumsum([0, *sizes]) / sum(sizes)
    found = []
    for step, own in zip(inspected["steps"], seconds):
        if own < HEAVY * sum(seconds) or not step["writes"]:
            continue
        if not _follows(step["writes"][0]["sharding"], cuts):
            found.append(step["name"])
    return found


def measure(case, model, folder, flags, rounds):
    """Median milliseconds of the default and of `--follow 0`, measured in turns."""
    np.savez(folder / "inputs.npz", **case.inputs(model))
    times = {"10": [], "0": []}
    for follow in times:
        artifact = folder / f"{follow}.dvt"
        _run(tool("dovetail"), "compile", folder / "model.onnx", "-o", artifact, *flags, "--follow", follow)
    for _ in range(rounds):
        for follow, own in times.items():
            command = ["bench", folder / f"{follow}.dvt", "--json", "--threads", 2, "--iterations", 10]
            text, _ = _run(tool("dovetail"), *command, "--input", f"@{folder / 'inputs.npz'}")
            own.append(json.loads(text)["median_ms"])
    return {follow: statistics.median(own) for follow, own in times.items()}


def record(case, ranks, rng, folder, options, model):
    """One random request, with the default and with `--follow 0`."""
    dim = 1 if case.input == "ids" else 2 + int(rng.integers(len(case.shape) - 2))
    sizes = draw(rng, case.shape[dim], ranks)
    name, rank = case.input, len(case.shape)
    output = model.graph.output[0]
    extents = [extent.dim_value for extent in output.type.tensor_type.shape.dim]
    if rng.random() < 0.3 and extents[dim : dim + 1] == [case.shape[dim]]:
        name, rank = output.name, len(extents)
    spec = ["_"] * rank
    spec[dim] = "a"
    flags = case.flags({"a": ranks}, "--shard", f"{name}={','.join(spec)}")
    flags += ["--sizes", f"{name}:{dim}={','.join(map(str, sizes))}", "--cpu", options.cpu]
    predicted, inspected, messages = plan(folder, flags)
    free, freely, _ = plan(folder, [*flags, "--follow", "0"])
    stray = strays(predicted, inspected, sizes)
    said = "the requested split" in messages or "cannot follow --shard" in messages
    row = {
        "model": case.model,
        "shape": "x".join(map(str, case.shape)),
        "ranks": ranks,
        "request": f"{name}:{dim}={'+'.join(map(str, sizes))}",
        "ms": [1e3 * free["seconds"], 1e3 * predicted["seconds"]],
        "bytes": [sum(e["bytes"] for e in one["exchanges"]) for one in (freely, inspected)],
        "stray": stray,
        "said": said,
        "silent": [] if said else stray,
    }
    if options.measure and ranks == 2:
        row["measured"] = measure(case, model, folder, flags, options.measure)
    return row


def tabulated(rows):
    head = ["model", "ranks", "request", "ms free", "ms", "MiB free", "MiB", "left", "silent"]
    head += ["measured free", "measured"]
    cells = []
    for row in rows:
        measured = row.get("measured")
        cells.append([
            f"{row['model']} {row['shape']}", str(row["ranks"]), row["request"],
            *(f"{value:.2f}" for value in row["ms"]), *(f"{value / 2**20:.2f}" for value in row["bytes"]),
            "said" if row["said"] else "", str(len(row["silent"])),
            *((f"{measured[key]:.2f}" for key in ("0", "10")) if measured else ("", "")),
        ])  # fmt: skip
    return table(head, cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", metavar="NAME", help="only this one, or these if repeated")
    parser.add_argument("--ranks", type=int, action="append", metavar="N", help="on so many (default: 2, 3 and 4)")
    parser.add_argument("--draws", type=int, default=2, metavar="N", help="requests of each (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the requests (default: %(default)s)")
    parser.add_argument("--cpu", default="x86-64-v3", metavar="NAME", help="for plans (default: %(default)s)")
    parser.add_argument("--measure", type=int, default=0, metavar="ROUNDS", help="measures on 2 ranks")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE.json", help="keeps the records")
    options = parser.parse_args()
    cases = [case for case in CASES if not options.model or case.model in options.model]
    ranks = options.ranks or [2, 3, 4]
    rows, progress = [], Progress(len(cases) * len(ranks) * options.draws)
    for number, case in enumerate(cases):
        try:
            model = dovetail_models.build(case.model, **dict(case.sizes))
        except FileNotFoundError as error:
            print(f"steering: {case.model} is left out: {error}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="dovetail-steering-") as folder:
            folder = pathlib.Path(folder)
            (folder / "model.onnx").write_bytes(model.SerializeToString())
            for many in ranks:
                rng = np.random.default_rng([options.seed, number, many])
                for _ in range(options.draws):
                    rows.append(record(case, many, rng, folder, options, model))
                    progress.step(f"{case.model} on {many}")
    progress.clear()
    print(tabulated(rows))
    for row in rows:
        if row["silent"]:
            print(f"  not said: {row['model']} on {row['ranks']}, {row['request']}: {', '.join(row['silent'])}")
    if options.write:
        options.write.write_text(decisions.written(rows))
    return 1 if any(row["silent"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
