# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part G: several ranks on one GPU, whether exchanges overlap, halos by size, and NCCL up to its abort."""

import json
import re
import shutil
import signal
import subprocess
import time

import numpy as np

from .exactness import end_ranks, launch, said, start_ranks
from .joining import without_transfers
from .probe import compare
from .processes import kill_group
from .profiler import traced

#: Replays of recorded exchanges, and seconds in which an abort has to end.
REPLAYS, ABORT_SECONDS = 100, 20
#: The first version of NCCL that lets several ranks share a GPU, and the variable that asks for it.
SHARED_VERSION, SHARED = (2, 30), {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
#: Runs before a recorded one is replayed, and more steps than are run until somebody looks.
REPLAYED_FROM, MANY_STEPS = 2, 1000
#: How a process exits whose run another one's end has ended.
LOST = 8


def overlapped(events):
    """Microseconds of copies, and of these the ones in which a kernel of a program runs on another stream.

    The kernel may be of any rank: a stream does not tell whose it is.
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
    """The model on 1, 2 and 4 ranks, then NCCL, and then halos and other single exchanges."""
    programs = [(e, p) for e in check.entries("rank") for p in e["programs"]]
    models = [job for job in programs if is_model(job[0])]
    exchanges = [job for job in programs if not is_model(job[0])]
    name = lambda job: f"{job[0]['name']} {job[1]['variant']}" if job else "NCCL"
    for job in check.each([*models, *([] if check.smoke else [None]), *exchanges], name):
        if job:
            check.add(_on_ranks(check, *job))
        elif check.on_gpu:
            _nccl(check, models)
        else:
            check.add({"name": "NCCL", "status": "skipped", "message": "it needs a GPU"})
    if check.smoke and check.on_gpu:
        _nccl(check, models)


def is_model(entry):
    """Whether an entry is the model, which has a program of one rank, too."""
    return any(program["ranks"] == 1 for program in entry["programs"])


def _on_ranks(check, entry, program):
    """The row of a program on its ranks, which are threads of one process."""
    reply, events = traced(check, entry, program, 30, threads=program["ranks"])
    row = {"name": entry["name"], "variant": program["variant"], "ranks": program["ranks"], **reply}
    if "halo_bytes" in entry:
        row["halo_bytes"] = entry["halo_bytes"]
    events = without_transfers(events)
    if events and program["ranks"] > 1:
        row |= {"overlap": overlapped(events), "streams": len({e.stream for e in events})}
    return row


def nccl_version(text):
    """(2, 30, 4) of "2.30.4", or None."""
    numbers = re.findall(r"\d+", text or "")
    return tuple(map(int, numbers[:3])) if numbers else None


def _nccl(check, programs):
    """Records and replays with a process for each rank, and ends with a live graph. `programs` are those of a model."""
    libraries = check.report.data.get("devices", {}).get("libraries", {})
    version = nccl_version(next((v for name, v in libraries.items() if "nccl" in name.lower()), None))
    several = bool(version and version[:2] >= SHARED_VERSION)
    for world in (1, 2):
        name = {"name": "NCCL", "variant": f"{world} rank{'s' if world > 1 else ''}"}
        found = next(((e, p) for e, p in programs if p["ranks"] == world), None)
        if not found:
            check.add(name | {"status": "skipped", "message": f"the package has no program for {world}"})
        elif world > 1 and not several:
            shown = ".".join(map(str, version)) if version else "none"
            check.add(name | {"status": "skipped", "message": f"NCCL {shown} refuses two ranks on one GPU"})
        elif check.clock.part_left() < (1 if check.smoke else 3):
            check.add(name | {"status": "unfinished", "message": "time is over"})
        else:
            environment = SHARED if world > 1 else {}
            replayed = _replays(check, *found, environment)
            check.add(name | replayed)
            if replayed["status"] == "ok" and not check.smoke:
                abort = _abort(check, *found, environment)
                check.add(name | {"variant": f"{name['variant']}: abort", **abort})


def _folder(check):
    folder = check.package.restored / "nccl"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _replays(check, entry, program, environment):
    """Records the work of a run, compares a replay, and measures more. The processes end: no graph outlives NCCL."""
    given, folder, start = check.input_flags(entry, program), _folder(check), time.monotonic()
    files = _outputs(entry, folder, "{name}.npy")
    flags = [*given, *_output_flags(files), "--warmup", REPLAYED_FROM]
    _, failure = launch(check, program, "run", flags, folder, environment)
    if failure:
        return failure | {"message": f"replay: {failure['message']}"}
    result = compare(check.package, entry, {name: np.load(file) for name, file in files.items()}, program)
    if result["status"] != "ok":
        return result | {"message": f"replay: {result['message']}"}
    if check.smoke:
        # Another start takes seconds.
        return result
    flags = ["--iterations", check.iterations(REPLAYS), "--warmup", "3", "--json", *given]
    printed, failure = launch(check, program, "bench", flags, folder, environment)
    if failure:
        return result | failure
    return result | {"ms": json.loads(printed)["median_ms"], "seconds": time.monotonic() - start}


def _outputs(entry, folder, pattern):
    """{output: its file} of an entry."""
    names = dict.fromkeys(box["output"] for box in entry["sample_boxes"])
    return {name: folder / pattern.replace("{name}", f"output-{index}") for index, name in enumerate(names)}


def _output_flags(files):
    return [part for name, file in files.items() for part in ("--output", f"{name}={file}")]


def _input_of_steps(check, entry, program, folder):
    """Flags for MANY_STEPS steps: the first input has a file for each, which is always the same."""
    flags = list(check.input_flags(entry, program))
    name, _, file = flags[1].partition("=@")
    steps = folder / "steps"
    steps.mkdir()
    for step in range(MANY_STEPS):
        (steps / f"{step:05}.npy").symlink_to(file)
    flags[1] = f"{name}={steps}/*.npy"
    return flags


def _abort(check, entry, program, environment):
    """Ends the last rank while graphs are replayed. Of several, rank 0 has to end, and to say so.

    One rank alone gets SIGTERM. Its process has to end although the driver and NCCL hold a graph.
    """
    folder = _folder(check)
    # A file for each step: the one of a later step shows that graphs are replayed.
    files = _outputs(entry, folder, "{name}-{step}.npy")
    first = next(iter(files.values())).name.replace("{step}", "*")
    is_replayed = lambda: len(list(folder.glob(first))) > REPLAYED_FROM + 1
    flags = [*_input_of_steps(check, entry, program, folder), *_output_flags(files)]
    processes, logs = start_ranks(check, program, "run", flags, folder, environment)
    try:
        while not is_replayed():
            if any(process.poll() is not None for process in processes):
                return {"status": "error", "message": f"a rank ended too early: {said(logs)}"}
            if check.clock.part_left() < 1:
                return {"status": "unfinished", "message": f"no graph was replayed in time: {said(logs)}"}
            time.sleep(0.02)
        start, limit = time.monotonic(), min(ABORT_SECONDS, check.clock.part_left())
        if len(processes) > 1:
            kill_group(processes[-1])
        else:
            processes[0].terminate()
        code = processes[0].wait(limit)
    except subprocess.TimeoutExpired:
        status = "error" if limit >= ABORT_SECONDS else "unfinished"
        return {"status": status, "message": f"rank 0 does not end: {said(logs)}", "seconds": limit}
    finally:
        end_ranks(processes)
    found = {"seconds": time.monotonic() - start, "message": f"rank 0 exits with {code}: {said(logs[:1])}"[:300]}
    expected = LOST if len(processes) > 1 else -signal.SIGTERM
    return found | {"status": "ok" if code == expected else "error"}
