# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What runs on the device during replays, by PyTorch's profiler (CUPTI), or by nsight compute where that is found."""

import collections
import csv
import io
import json
import re
import time

from .joining import Event, join, of_the_program, read_trace, split_replays
from .probe import Checked, measure, torch_on_gpu

#: Seconds between replays, far more than any pause within one.
PAUSE = 0.01
REPLAYS = 3
#: Any variable makes `TimedCheck.ask` start another process.
FRESH = "GPU_CHECK_FRESH"
#: Replies of `trace` that say nothing about the program, and after how many of them the profiler is not asked again.
FAILURES, MOST_FAILURES = ("absent", "error", "late"), 2
#: Of the time of a part, so much is for a trace. The rest is for what is measured instead where it fails.
SHARE = 0.6
#: A trace that takes longer is a failure of the profiler. A smoke has less.
ENOUGH_SECONDS = 20


# In the process with PyTorch.


def load(package, request):
    """Loads PyTorch and begins to use the device. There are versions of CUPTI in which only the first session sees."""
    torch_on_gpu().cuda.synchronize()
    return {"status": "ok", "message": ""}


def profiled(torch, run, replays, folder):
    """The device's events of `replays` calls of `run`, in order of their start."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(replays):
            time.sleep(PAUSE)
            run()
        torch.cuda.synchronize()
    path = folder / "trace.json"
    found.export_chrome_trace(str(path))
    events = read_trace(json.loads(path.read_text()))
    path.unlink()
    return events


def as_text(events):
    """Events as lines for the log."""
    line = lambda e: f"{e.start:.3f}\t{e.duration:.3f}\t{e.stream}\t{e.kind}\t{e.graph}\t{e.grid}\t{e.block}\t{e.name}"
    return "\n".join(map(line, events)) + "\n"


def trace(package, request):
    """Events of one replay that took the median time, of a program whose results are right."""
    import dovetail

    torch = torch_on_gpu()
    try:
        return _trace(torch, package, request)
    except dovetail.DovetailError as error:
        return {"status": "error", "message": str(error), "code": error.code}


def _trace(torch, package, request):
    with Checked(package, request) as checked:
        found = {"start_s": checked.resident.start_s, "device_bytes": checked.resident.device_bytes}
        if checked.result["status"] != "ok":
            return checked.result | found
        events = profiled(torch, checked.resident.run, request["replays"], package.restored)
        if not has_kernels(events):
            # The first session of a process loads CUPTI, and may see nothing.
            events = profiled(torch, checked.resident.run, request["replays"], package.restored)
        times = measure(checked.resident.run, repetitions=request.get("repetitions", 10), warm_up=2)
        result = checked.finish()
        if result["status"] == "ok":
            result |= times
        result |= found
    replays = split_replays(events, request["replays"])
    spans = sorted(replays, key=lambda part: part[-1].end - part[0].start)
    chosen = spans[(len(spans) - 1) // 2] if spans else events
    alike = len({tuple(e.name for e in of_the_program(part)) for part in replays}) <= 1
    return result | {"events": [list(e) for e in chosen], "replays_alike": alike, "trace": as_text(events)}


# In the process of the check.


def has_kernels(events):
    return any(event.kind == "kernels" for event in events)


def ask_trace(check, entry, program, environment=None, **options):
    """(the reply of `trace`, without events; these). In a process of its own where older ones see nothing any more.

    There are versions of CUPTI that see nothing in any but the first session of a process, and some that crash.
    """
    if len(check.trace_failures) >= MOST_FAILURES:
        return {"status": "absent", "message": f"the profiler failed before: {check.trace_failures[-1]}"}, []
    for fresh in [check.fresh_traces] if check.fresh_traces or environment else [False, True]:
        variables = (environment or {}) | ({FRESH: "1"} if fresh else {})
        seconds = min(60, SHARE * check.clock.part_left())
        reply = check.ask("profiler.trace", seconds, variables, entry=entry, program=program, **options)
        events = events_of(reply)
        reply.pop("events", None)
        if reply["status"] != "ok" or has_kernels(events):
            check.fresh_traces |= fresh and reply["status"] == "ok"
            break
    # A program that fails is an error of the runtime, which has a code. At the end of a part anything is late.
    is_slow = reply["status"] == "late" and seconds >= ENOUGH_SECONDS
    if is_slow or (reply["status"] == "error" and "code" not in reply):
        check.trace_failures.append(reply["message"])
    return reply, events


def traced(check, entry, program, repetitions, **options):
    """(what `TimedCheck.measure` replies, events of one replay).

    Without PyTorch or a GPU, and where the profiler fails, there are no events. "profiler" then has the reason. Where
    each trace needs a process of its own, which takes seconds, only products of our own are traced.
    """
    reason = {}
    if check.on_gpu and (not check.fresh_traces or entry["group"] == "tile"):
        count = {"replays": check.iterations(REPLAYS), "repetitions": check.iterations(repetitions)}
        reply, events = ask_trace(check, entry, program, **count, **options)
        if reply["status"] not in FAILURES:
            return reply, of_the_program(events)
        reason = {"profiler": reply["message"]}
    options = {"warm_up": 5, **options}
    return check.measure(entry, program, repetitions=repetitions, seconds=30, **options) | reason, []


def events_of(reply):
    """The events of a reply of `trace`."""
    return [Event(*e[:5], tuple(e[5]), tuple(e[6]), e[7]) for e in reply.get("events", [])]


def joined_replay(check, entry, program, steps):
    """(what `join` finds, the reply of `trace`); without graphs where the profiler does not see nodes of graphs."""
    count = {"replays": check.iterations(REPLAYS)}
    reply, events = ask_trace(check, entry, program, **count)
    found = join(events, steps)
    nodes = sum(step.get("kernels", 0) for step in steps or ())
    seen = sum(event.kind == "kernels" for event in of_the_program(events))
    if reply["status"] == "ok" and (not seen or seen < nodes / 2):
        separate, events = ask_trace(check, entry, program, {"DOVETAIL_CUDA_SYNCHRONOUS": "1"}, **count)
        if separate["status"] == "ok":
            found, reply = join(events, steps), separate
            found["reason"] = "; ".join(filter(None, ("run without graphs", found["reason"])))
    if reply["status"] == "ok" and not reply["replays_alike"]:
        found["reason"] = "; ".join(filter(None, (found["reason"], "replays differ in their kernels")))
    return found, reply


NCU_TIME = "gpu__time_duration.sum"


def ncu(check, tool, entry, program, metrics):
    """(events of the last replay as nsight compute measures them, one by one; metrics of each; message).

    A metric that nsight compute does not know is left out of a second call.
    """
    code, output, said = _run_ncu(check, tool, entry, program, metrics)
    unknown = unknown_metrics(f"{said}\n{output}")
    known = [name for name in metrics if name not in unknown]
    if unknown and len(known) < len(metrics):
        code, output, said = _run_ncu(check, tool, entry, program, known)
    rows = read_ncu(output)
    if code != 0 or not rows:
        return [], [], f"ncu: exit code {code}: {(said or output)[-400:].strip()}"
    # A third of all: of three runs.
    rows = rows[len(rows) - len(rows) // 3 :]
    events, start = [], 0.0
    for row in rows:
        events.append(Event(row["name"], start, row["metrics"].get(NCU_TIME, 0.0), 0, grid=row["grid"]))
        start = events[-1].end
    return events, [row["metrics"] for row in rows], ""


def _run_ncu(check, tool, entry, program, metrics):
    path = check.package.path(program["file"])
    command = [tool, "--graph-profiling", "node", "--clock-control", "none", "--csv", "--page", "raw",
               "--metrics", ",".join([NCU_TIME, *metrics]), check.tool, "bench", path,
               "--iterations", "1", "--warmup", "2", *check.input_flags(entry, program)]  # fmt: skip
    code, output, said = check.processes.run(command, check.clock.part_left(), check.environment(1))
    check.report.add_log(f"ncu {entry['name']}", output)
    return code, output, said


def unknown_metrics(text):
    """Names of metrics that nsight compute says it does not find."""
    lines = re.findall(r"Failed to find metrics?:?([^\n]*)", text)
    return set(re.findall(r"\w+__[\w.]+\w", " ".join(lines)))


_MICROSECONDS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3, "s": 1e6}


def read_ncu(text):
    """[{"name", "grid", "metrics"}] of each kernel in the table of `ncu --csv --page raw`; times in microseconds."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        return []
    header, units, *rows = csv.reader(io.StringIO("\n".join(lines[first:])))
    found = []
    for row in rows:
        cells = dict(zip(header, row))
        metrics = {}
        for name, unit in zip(header, units):
            if "__" not in name or not re.fullmatch(r"[-\d.,eE+]+", cells.get(name, "")):
                continue
            metrics[name] = float(cells[name].replace(",", "")) * (_MICROSECONDS.get(unit, 1) if "time" in name else 1)
        grid = tuple(map(int, re.findall(r"\d+", cells.get("Grid Size", ""))))
        found.append({"name": cells.get("Kernel Name", ""), "grid": grid, "metrics": metrics})
    return found


def digest_cudnn(text):
    """Counts of what a log of cuDNN says: {"errors", "warnings", "engines": {number: count}, "functions", "first"}."""
    errors = re.findall(r"^E! .*", text, re.MULTILINE)
    warnings = re.findall(r"^W! .*", text, re.MULTILINE)
    engine = r"ENGINE_GLOBAL_INDEX[^\n]*?val=(\d+)|\bengine (?:index|id)?\W*(\d+)"
    engines = collections.Counter(a or b for a, b in re.findall(engine, text))
    functions = collections.Counter(re.findall(r"function (cudnn\w+)\(\)", text))
    return {
        "errors": len(errors), "warnings": len(warnings), "engines": dict(engines.most_common(20)),
        "functions": dict(functions.most_common(10)), "first": [line[:200] for line in (errors + warnings)[:5]],
    }  # fmt: skip
