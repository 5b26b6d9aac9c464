# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part G: several ranks on one GPU, whether exchanges overlap, halos by size, and NCCL up to its abort."""

import json
import re
import shutil
import subprocess
import time

from .exactness import end_ranks, launch, said, start_ranks
from .processes import kill_group
from .profiler import traced

#: Replays of recorded exchanges, and seconds in which an abort has to end.
REPLAYS, ABORT_SECONDS = 100, 20
#: The first version of NCCL that lets several ranks share a GPU, and the variable that asks for it.
SHARED_VERSION, SHARED = (2, 30), {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
#: How a process exits whose run another one's end has ended.
LOST = 8


def overlapped(events):
    """Microseconds of copies, and of these the ones in which a kernel of a program runs on another stream.

    A copy is a transfer on the device, or one of our kernels or NCCL's that moves boxes.
    """
    is_copy = lambda e: e.kind == "copies" or re.search(r"dovetail_(copy|combine)_boxes|nccl", e.name, re.IGNORECASE)
    copies = [e for e in events if is_copy(e)]
    work = [e for e in events if not is_copy(e) and e.kind == "kernels"]
    covered = 0.0
    for copy in copies:
        pieces = sorted((max(w.start, copy.start), min(w.end, copy.end)) for w in work if w.stream != copy.stream)
        at = copy.start
        for begin, end in pieces:
            covered += max(0.0, end - max(at, begin))
            at = max(at, end)
    return {"copies_us": sum(e.duration for e in copies), "overlapped_us": covered, "copies": len(copies)}


def ranks(check):
    programs = [(e, p) for e in check.entries("rank") for p in e["programs"]]
    # Halos, which are small, behind the model.
    programs.sort(key=lambda job: "halo_bytes" in job[0])
    for entry, program in check.each(programs, lambda job: f"{job[0]['name']} {job[1]['variant']}"):
        reply, events = traced(check, entry, program, 30, threads=program["ranks"])
        row = {"name": entry["name"], "variant": program["variant"], "ranks": program["ranks"], **reply}
        if "halo_bytes" in entry:
            row["halo_bytes"] = entry["halo_bytes"]
        if events and program["ranks"] > 1:
            row |= {"overlap": overlapped(events), "streams": len({e.stream for e in events})}
        check.add(row)
    if check.on_gpu:
        _nccl(check)
    elif not check.smoke:
        check.add({"name": "NCCL", "status": "skipped", "message": "it needs a GPU"})


def nccl_version(text):
    """(2, 30, 4) of "2.30.4", or None."""
    numbers = re.findall(r"\d+", text or "")
    return tuple(map(int, numbers[:3])) if numbers else None


def _nccl(check):
    """Records and replays with a process for each rank, and aborts with a live graph."""
    libraries = check.report.data.get("devices", {}).get("libraries", {})
    version = nccl_version(next((v for name, v in libraries.items() if "nccl" in name.lower()), None))
    candidates = [(e, p) for e in check.entries("rank") for p in e["programs"] if "halo_bytes" not in e]
    several = bool(version and version[:2] >= SHARED_VERSION)
    for world in (1, 2):
        name = {"name": "NCCL", "variant": f"{world} rank{'s' if world > 1 else ''}"}
        found = next(((e, p) for e, p in candidates if p["ranks"] == world), None)
        if check.clock.part_left() < 3:
            check.add(name | {"status": "unfinished", "message": "time is over"})
        elif not found:
            check.add(name | {"status": "skipped", "message": f"the package has no program for {world}"})
        elif world > 1 and not several:
            shown = ".".join(map(str, version)) if version else "none"
            check.add(name | {"status": "skipped", "message": f"NCCL {shown} refuses two ranks on one GPU"})
        else:
            environment = SHARED if world > 1 else {}
            replayed = _replays(check, *found, environment)
            check.add(name | replayed)
            if world == 1 and not check.smoke:
                reason = "one rank has nobody to lose; its end with a graph is part of its replays"
                check.add({"name": "NCCL", "variant": "1 rank: abort", "status": "skipped", "message": reason})
            if world > 1 and replayed["status"] == "ok" and not check.smoke:
                abort = _abort(check, *found, environment, replayed["seconds"] + 1)
                check.add({"name": "NCCL", "variant": f"{world} ranks: abort", **abort})


def _folder(check):
    folder = check.package.restored / "nccl"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _replays(check, entry, program, environment):
    """Records the work of a run and replays it. That the processes end shows that communicators outlive no graph."""
    flags = ["--iterations", check.iterations(REPLAYS), "--warmup", "3", "--json", *check.input_flags(entry, program)]
    start = time.monotonic()
    printed, failure = launch(check, program, "bench", flags, _folder(check), environment)
    if failure:
        return failure
    return {"status": "ok", "message": "", "ms": json.loads(printed)["median_ms"], "seconds": time.monotonic() - start}


def _abort(check, entry, program, environment, settle):
    """Loses rank 1 while graphs are replayed, `settle` seconds after the start. Rank 0 has to end, and to say so."""
    flags = ["--iterations", "1000000", "--warmup", "3", *check.input_flags(entry, program)]
    processes, logs = start_ranks(check, program, "bench", flags, _folder(check), environment)
    limit = min(ABORT_SECONDS, check.clock.part_left() - settle)
    try:
        time.sleep(settle)
        if any(process.poll() is not None for process in processes):
            return {"status": "error", "message": f"a rank ended too early: {said(logs)}"}
        start = time.monotonic()
        kill_group(processes[1])
        code = processes[0].wait(max(0.1, limit))
    except subprocess.TimeoutExpired:
        status = "error" if limit >= ABORT_SECONDS else "unfinished"
        return {"status": status, "message": f"rank 0 does not end: {said(logs)}", "seconds": limit}
    finally:
        end_ranks(processes)
    found = {"seconds": time.monotonic() - start, "message": f"rank 0 exits with {code}: {said(logs[:1])}"[:300]}
    return found | {"status": "ok" if code == LOST else "error"}
