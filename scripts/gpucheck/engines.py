# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part A: which kernels a replay runs, how long each takes, and which step and engine it belongs to."""

from .joining import join, shares
from .measurements import BenchError
from .profiler import FAILURES, digest_cudnn, joined_replay, ncu
from .rules import OWN
from .shares import share_of_ceiling

#: Variants of programs, in their order.
VARIANTS = ("f32", OWN)


def engines(check):
    found = [(entry, check.program(entry, v)) for v in VARIANTS for entry in check.entries("model")]
    jobs = [(entry, program) for entry, program in found if program]
    name = lambda job: f"{job[0]['name']} {job[1]['variant']}"
    for number, (entry, program) in enumerate(check.each(jobs, name, least=5)):
        row = {"name": entry["name"], "variant": program["variant"]}
        try:
            details = check.bench(entry, program, check.iterations(10))
            row |= _of_bench(details)
            check.add(row | _engines(check, entry, program, details))
        except BenchError as error:
            check.add(row | {"status": error.status, "message": str(error)})
        if number == 0 and check.on_gpu and not check.smoke:
            _log_of_cudnn(check, entry, program)


def _of_bench(details):
    """What `bench` says, whatever the profiler says."""
    return {"bench_ms": details["median_ms"], "start_s": details["start_ms"] / 1000,
            "implementations": details.get("implementations", []), "memory": details.get("memory")}  # fmt: skip


def _engines(check, entry, program, details):
    steps = details.get("steps_nodes")
    if not check.on_gpu:
        return _by_steps(check, entry, program, details, "the profiler needs a GPU")
    found, reply = joined_replay(check, entry, program, steps)
    if reply["status"] in FAILURES or (reply["status"] == "ok" and not found["us"]):
        reason = reply["message"] or found["reason"]
        tool = check.find_tool("ncu")
        if not tool or check.smoke:
            return _by_steps(check, entry, program, details, reason)
        events, _, message = ncu(check, tool, entry, program, [])
        if message:
            return _by_steps(check, entry, program, details, f"{reason}; {message}")
        # nsight compute sees kernels only.
        only_kernels = [step | {"copies": 0, "fills": 0} for step in steps or ()]
        found = join(events, only_kernels)
        found["reason"] = "; ".join(filter(None, ("kernels one by one, by nsight compute", reason, found["reason"])))
        reply = check.measure(entry, program, repetitions=10)
    result = {key: reply.get(key) for key in ("status", "message", "error")}
    if reply["status"] != "ok":
        return result
    return result | _row(check, entry, details, found)


def _by_steps(check, entry, program, details, reason):
    """Times of steps as the host sees them, each waited for: more than in a replay."""
    reply = check.measure(entry, program, repetitions=10)
    result = {key: reply.get(key) for key in ("status", "message", "error")}
    if reply["status"] != "ok":
        return result
    timed = check.bench(entry, program, check.iterations(5), ["--steps"])
    rows = [
        {"step": step["name"], "kind": step["kind"], "us": 1000 * step["least_together_ms"], "kernels": []}
        for step in timed.get("steps", [])
    ]
    total = sum(row["us"] for row in rows)
    found = {"status": "by steps", "reason": reason, "steps": rows, "us": total, "span_us": 1000 * reply["ms"]}
    return result | _row(check, entry, details, found)


def _row(check, entry, details, found):
    """The measurement: a table of steps with engines and percentages."""
    implementations = {item["step"]: item for item in details.get("implementations", [])}
    works = {}
    names = [row["step"] for row in found["steps"] if row["step"]]
    if entry.get("graph") and names and not check.smoke:
        works = check.ask("step_work.of_graph", 30, entry=entry, steps=names).get("works", {})
    steps = []
    for row in found["steps"]:
        own = implementations.get(row["step"], {})
        chosen = [c for c in own.get("candidates") or () if c.get("status") == "chosen"]
        engine = " ".join(str(c.get("engine", "")) for c in chosen) or None
        ms = row["us"] / 1000
        steps.append(
            row | {"us": round(row["us"], 3), "implementation": own.get("implementation"), "engine": engine,
                   "staged": own.get("staged"), "fused": own.get("fused"), "work": works.get(row["step"]),
                   "percent": share_of_ceiling(works.get(row["step"]), ms, check.ceilings)}
        )  # fmt: skip
    return {
        "ms": found["span_us"] / 1000, "device_ms": found["us"] / 1000, "joined": found["status"],
        "reason": found["reason"],
        "percent": share_of_ceiling(entry.get("work"), found["span_us"] / 1000, check.ceilings),
        "shares_us": {kind: round(us, 3) for kind, us in shares(found).items()}, "steps": steps,
    }  # fmt: skip


def _log_of_cudnn(check, entry, program):
    """Digests what cuDNN says of itself while a program starts; the log itself stays in the log of all."""
    file = check.package.restored / "cudnn.log"
    environment = {"CUDNN_LOGLEVEL_DBG": "2", "CUDNN_LOGDEST_DBG": str(file)}
    try:
        check.bench(entry, program, 1, **environment)
    except BenchError as error:
        check.add({"name": entry["name"], "variant": "log of cuDNN", "status": error.status, "message": str(error)})
        return
    text = file.read_text(errors="replace") if file.exists() else ""
    check.add(
        {"name": entry["name"], "variant": "log of cuDNN", "status": "ok" if text else "skipped",
         "message": "" if text else "cuDNN wrote no log", "digest": digest_cudnn(text)}
    )  # fmt: skip
