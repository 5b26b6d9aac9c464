# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts that measure: against PyTorch and ONNX Runtime, several ranks against one, and exchanges."""

import json
import statistics

import numpy as np

from .report import number, table
from .run import MOST_SECONDS

ITERATIONS = 50
#: Enough for what is compiled when it first runs.
PEER_SECONDS = 180

#: The ways that cost little before those that compile.
_QUICK = ("eager", "channels-last", "CUDA graph", "ONNX Runtime")
_SLOW = ("compile", "compile, CUDA graph")
#: Our programs with the libraries' algorithms measured, as PyTorch does here. No peer.
_AUTOTUNED = "autotuned"


class BenchError(Exception):
    """A program could not be measured: the status of a row, and why."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def _bench(check, program, model, gpus=1, iterations=ITERATIONS, flags=()):
    """What `dovetail-run bench --json` says of a program, with the model's inputs (random ones without a model)."""
    for index, (name, value) in enumerate(check.package.arrays(model["arrays"])[0].items() if model else ()):
        file = check.package.restored / f"bench{index}.npy"
        np.save(file, value)
        flags = [*flags, "--input", f"{name}=@{file}"]
    command = ["bench", check.package.path(program["file"]), "--json", *flags]
    command += ["--iterations", iterations, "--warmup", iterations // 5]
    code, output, message = check.call(command, min(MOST_SECONDS, check.clock.part_left()), gpus=gpus)
    check.package.forget(program["file"])
    if code != 0:
        raise BenchError("late" if code is None else "error", message)
    return json.loads(output)


def _timed(check):
    return [model for model in check.manifest["models"] if model["timed"]]


def _program(model, ranks=1, math="f32", style="uneven"):
    """The model's program with libraries that is meant, or None if the package has none."""
    wanted = (ranks, math, style, True)
    found = (p for p in model["programs"] if (p["ranks"], p["math"], p["style"], p["libraries"]) == wanted)
    return next(found, None)


def peers(check):
    """Dovetail is measured before and after each peer: what else the device does hits both."""
    worker, absent = check.peer(), {}
    on_gpu = check.target == "cuda"
    jobs = [
        (model, math, how)
        for hows in (_QUICK, (_AUTOTUNED,), _SLOW)
        for model in _timed(check)
        for math in ("f32", "tf32")
        for how in hows
        if _program(model, math=math) and (on_gpu or ("CUDA" not in how and how != _AUTOTUNED))
    ]
    ours = {}
    try:
        for model, math, how in check.each(jobs, lambda job: f"{job[0]['name']}, {job[1]}, {job[2]}", least=10):
            library = "onnxruntime" if how == "ONNX Runtime" else "torch"
            if how == _AUTOTUNED:
                _measure(check, model, math, how, ["--autotune"])
            elif library not in absent:
                _compare(check, worker, model, math, how, ours, absent)
    finally:
        worker.kill()
    for library, reason in absent.items():
        check.report.say("incomplete", f"{library} is not measured: {reason}")
    for model in _timed(check):
        for math in ("f32", "tf32"):
            # Without a peer, nothing was alternated with.
            if _program(model, math=math) and (model["name"], math) not in ours and check.clock.part_left() > 5:
                if result := _measure(check, model, math, "Dovetail"):
                    ours[model["name"], math] = [result["median_ms"]]
    _print_peers(check, ours)


def _compare(check, worker, model, math, how, ours, absent):
    """Adds a row for a peer, and our times around it to `ours`."""
    program = _program(model, math=math)
    times = ours.setdefault((model["name"], math), [])

    def measure():
        result = _bench(check, program, model)
        times.append(result["median_ms"])
        return result["median_ms"]

    request = {key: model[key] for key in ("arrays", "onnx", "graph", "constants")}
    request |= {"device": check.target, "how": how, "math": math}
    row = {"name": model["name"], "variant": f"{how}, {math}", "how": how, "math": math}
    try:
        before = measure()
        reply = worker(request, min(PEER_SECONDS, check.clock.part_left()))
        if reply["status"] == "absent":
            absent["onnxruntime" if how == "ONNX Runtime" else "torch"] = reply["message"]
            return
        # A peer that fails, or that computes something else, says nothing about our programs.
        if reply["status"] != "ok":
            reply |= {"status": "peer failed"}
        after = measure()
        reply["ours_ms"] = statistics.median([before, after])
    except BenchError as error:
        reply = {"status": error.status, "message": str(error)}
    check.add(row | reply)


def _measure(check, model, math, how, flags=()):
    """Adds a row of our own time; returns it if all went well."""
    row = {"name": model["name"], "variant": f"{how}, {math}", "how": how, "math": math}
    try:
        row |= {"status": "ok", **_bench(check, _program(model, math=math), model, flags=flags)}
    except BenchError as error:
        row |= {"status": error.status, "message": str(error)}
    check.add(row)
    return row if row["status"] == "ok" else None


def _print_peers(check, ours):
    for math in ("f32", "tf32"):
        rows = [r for r in check.report.rows if r["math"] == math and r["status"] == "ok" and r["how"] != "Dovetail"]
        cells = {(r["name"], r["how"]): r["median_ms"] for r in rows}
        hows = [how for how in (_AUTOTUNED, *_QUICK, *_SLOW) if any(r["how"] == how for r in rows)]
        lines = []
        for model in _timed(check):
            times = ours.get((model["name"], math))
            if not times:
                continue
            mine = statistics.median(times)
            others = [cells.get((model["name"], how)) for how in hows]
            best = min((o for o, how in zip(others, hows) if o and how != _AUTOTUNED), default=None)
            ratio = mine / best if best else None
            check.report.data["parts"]["peers"].setdefault("ratios", []).append(
                {"name": model["name"], "math": math, "ours_ms": mine, "best_peer_ms": best, "ratio": ratio}
            )
            lines.append([model["name"], number(mine), *map(number, others), number(ratio)])
        if lines:
            print(f"  {math}: milliseconds, medians; the ratio is to the best of the others")
            print(table(["model", "Dovetail", *hows, "ratio"], lines))


def ranks(check):
    """Balanced cuts on one GPU, and on all."""
    jobs = [
        (model, count, gpus)
        for model in _timed(check)
        for gpus in (1, len(check.devices))
        for count in (1, 2, 4)
        if gpus == 1 or 1 < count <= gpus
    ]
    jobs = list(dict.fromkeys((m["name"], c, g) for m, c, g in jobs))
    by_name = {model["name"]: model for model in _timed(check)}
    for name, count, gpus in check.each(jobs, lambda job: f"{job[0]} on {job[1]} ranks", least=5):
        model = by_name[name]
        program = _program(model, count, style="uneven" if count == 1 else "balanced")
        row = {"name": name, "variant": f"{count} ranks, {gpus} GPUs", "ranks": count, "gpus": gpus}
        try:
            result = _bench(check, program, model, gpus)
            check.add(row | {"status": "ok", **result})
        except BenchError as error:
            check.add(row | {"status": error.status, "message": str(error)})
    _print_ranks(check.report.rows)


def _print_ranks(rows):
    times = {(r["name"], r["ranks"], r["gpus"]): r for r in rows if r["status"] == "ok"}
    columns = list(dict.fromkeys((r["ranks"], r["gpus"]) for r in rows))
    header = ["model", *(f"{ranks} on {gpus} GPU, ms" for ranks, gpus in columns)]
    header += [f"{ranks} on {gpus} against 1" for ranks, gpus in columns if ranks > 1] + ["host work, µs"]
    lines = []
    for name in dict.fromkeys(r["name"] for r in rows):
        found = [times.get((name, *column), {}).get("median_ms") for column in columns]
        one = times.get((name, 1, 1), {})
        ratios = [
            f / one["median_ms"] if f and one else None for f, (ranks, _) in zip(found, columns) if ranks > 1
        ]
        lines.append([name, *map(number, found), *map(number, ratios), number(1000 * one["issue_ms"] if one else None)])
    if lines:
        print("  host work: of one rank, until all that a run does is issued (a replayed step list)")
        print(table(header, lines))


def exchanges(check):
    """Bytes per second while an exchange goes on: from the last rank's begin to the last one's end.

    Before that, ranks wait for others, whose inputs still come from the host, by the same link. What others send each
    other meanwhile is counted, though: the rate is one at most.
    """
    jobs = [(e, gpus) for e in check.manifest["exchanges"] for gpus in sorted({1, len(check.devices)})]
    for exchange, gpus in check.each(jobs, lambda job: f"{job[0]['name']}, {job[0]['ranks']} ranks"):
        name = f"{exchange['name']}, {exchange['ranks']} ranks"
        row = {"name": name, "variant": f"{gpus} GPUs", "ranks": exchange["ranks"], "gpus": gpus}
        trace = check.package.restored / "trace.json"
        try:
            _bench(check, exchange, None, gpus, 5, ["--trace", trace])
            events = [e for e in json.loads(trace.read_text())["traceEvents"] if "received bytes" in e.get("args", {})]
            moved = sum(e["args"]["received bytes"] for e in events)
            seconds = sum(_spans(events)) / 1e6
            rate = moved / seconds / 1e9 if seconds else None
            check.add(row | {"status": "ok", "bytes": moved, "seconds": seconds, "gigabytes_per_second": rate})
        except BenchError as error:
            check.add(row | {"status": error.status, "message": str(error)})
    lines = [
        [r["name"], r["gpus"], number(r["bytes"] / 1e6), number(1e6 * r["seconds"]), number(r["gigabytes_per_second"])]
        for r in check.report.rows
        if r["status"] == "ok"
    ]
    print(table(["exchange", "GPUs", "received, MB", "µs", "GB/s"], lines))


def _spans(events):
    """Microseconds of each exchange, over all ranks."""
    for step in {e["args"]["step"] for e in events}:
        own = [e for e in events if e["args"]["step"] == step]
        yield max(e["ts"] + e["dur"] for e in own) - max(e["ts"] for e in own)
