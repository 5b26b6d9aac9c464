# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part F: kernels of our own and products without a library, with the time that the device itself takes for them."""

from .joining import by_name, overlap
from .profiler import NCU_TIME, ncu, traced
from .shares import ceiling_kind, share_of_ceiling, work_of

#: Whether tensor cores and local memory are used, and how much of the card is busy.
METRICS = (
    "sm__inst_executed_pipe_tensor.sum",
    "smsp__inst_executed_op_local_ld.sum",
    "smsp__inst_executed_op_local_st.sum",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
)


def rates(work, us, ceilings, kind):
    """Bytes and operations per second of a time in microseconds, and the share of the ceiling."""
    if not us or not work:
        return {}
    return {
        "gb_per_s": work.get("bytes", 0) / us / 1e3, "tflop_per_s": work.get("flops", 0) / us / 1e6,
        "percent": share_of_ceiling(work, us / 1000, ceilings, kind),
    }  # fmt: skip


def kernels(check):
    jobs = [(e, program) for group in ("tile", "kernel") for e in check.entries(group) for program in e["programs"]]
    for entry, program in check.each(jobs, lambda job: f"{job[0]['name']} {job[1]['variant']}"):
        reply, events = traced(check, entry, program, 30)
        row = {"name": entry["name"], "variant": program["variant"], **reply}
        if reply["status"] == "ok":
            row |= _device_time(events)
            us = row.get("device_us") or 1000 * reply["ms"]
            row |= rates(work_of(entry, program), us, check.ceilings, ceiling_kind(program))
        check.add(row)
    _metrics(check)


def _device_time(events):
    """Microseconds of all kernels and copies of a replay, and their names."""
    if not events:
        return {}
    first, last = min(e.start for e in events), max(e.end for e in events)
    us = last - first if overlap(events) else sum(e.duration for e in events)
    return {"device_us": us, "kernels": [row["kernels"][0] for row in by_name(events)]}


def _metrics(check):
    """Counters of nsight compute for the tiles, where it is found."""
    jobs = [(entry, program) for entry in check.entries("tile") for program in entry["programs"]]
    tool = check.find_tool("ncu")
    if check.smoke or not check.on_gpu or not jobs:
        return
    if not tool:
        check.add({"name": "ncu", "variant": "tiles", "status": "skipped", "message": "nsight compute is not here"})
        return
    for entry, program in check.each(jobs, lambda job: f"ncu: {job[0]['name']}", least=5):
        _, metrics, message = ncu(check, tool, entry, program, METRICS)
        row = {"name": entry["name"], "variant": f"{program['variant']}: ncu", "message": message}
        kernels = [{name: found.get(name) for name in (NCU_TIME, *METRICS)} for found in metrics]
        # Counters may be forbidden to users, which is no fault of the programs.
        check.add(row | {"status": "skipped" if message else "ok", "ncu": kernels})
