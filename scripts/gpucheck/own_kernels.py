# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part F: kernels of our own and products without a library, with the time that the device itself takes for them."""

from .joining import by_name, overlap, without_transfers
from .profiler import NCU_TIME, ncu, traced
from .shares import ceiling_kind, share_of_ceiling, work_of

#: Whether local memory and tensor cores are used, and how much of the card is busy. A call of nsight compute, which
#: takes seconds whatever it measures, leaves out those that a card does not have.
METRICS = (
    "smsp__inst_executed_op_local_ld.sum",
    "smsp__inst_executed_op_local_st.sum",
    "sm__inst_executed_pipe_tensor.sum",
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
    """Products of our own with their counters first, then the other kernels."""
    tiles, others = (
        [(entry, program) for entry in check.entries(group) for program in entry["programs"]]
        for group in ("tile", "kernel")
    )
    jobs = [*tiles, *([None] if tiles and not check.smoke and check.on_gpu else []), *others]
    name = lambda job: f"{job[0]['name']} {job[1]['variant']}" if job else "nsight compute"
    for job in check.each(jobs, name):
        if job is None:
            _metrics(check, tiles)
        else:
            check.add(_kernel(check, *job))


def _kernel(check, entry, program):
    """The row of one program."""
    reply, events = traced(check, entry, program, 30)
    row = {"name": entry["name"], "variant": program["variant"], **reply}
    if reply["status"] != "ok":
        return row
    tool = check.find_tool("ncu")
    if row.get("profiler") and tool and not check.smoke:
        events, _, message = ncu(check, tool, entry, program, [])
        row["profiler"] += f"; {message or 'times are those of nsight compute'}"
    row |= device_time(events)
    us = row.get("device_us") or 1000 * reply["ms"]
    return row | rates(work_of(entry, program), us, check.ceilings, ceiling_kind(program))


def device_time(events):
    """Microseconds of all kernels and copies of a replay, and their names, without copies of inputs and outputs."""
    events = without_transfers(events)
    if not events:
        return {}
    first, last = min(e.start for e in events), max(e.end for e in events)
    us = last - first if overlap(events) else sum(e.duration for e in events)
    return {"device_us": us, "kernels": [row["kernels"][0] for row in by_name(events)]}


#: Seconds in which nsight compute measures a product, and its share of what is left of the part.
_LEAST_SECONDS, _SHARE = 5, 0.5


def _metrics(check, tiles):
    """Counters of nsight compute for the products of our own, where it is found."""
    tool = check.find_tool("ncu")
    if not tool:
        check.add({"name": "ncu", "variant": "tiles", "status": "skipped", "message": "nsight compute is not here"})
        return
    end = (1 - _SHARE) * check.clock.part_left()
    # The largest tells most.
    for entry, program in sorted(tiles, key=lambda tile: -tile[0].get("work", {}).get("flops", 0)):
        row = {"name": entry["name"], "variant": f"{program['variant']}: ncu"}
        if check.clock.part_left() < max(_LEAST_SECONDS, end):
            check.add(row | {"status": "unfinished", "message": "the time for nsight compute is over"})
            continue
        _, metrics, message = ncu(check, tool, entry, program, METRICS)
        kernels = [{name: values.get(name) for name in (NCU_TIME, *METRICS)} for values in metrics]
        # Counters may be forbidden to users, which is no fault of the programs.
        check.add(row | {"status": "ok" if kernels else "skipped", "message": message, "ncu": kernels})
