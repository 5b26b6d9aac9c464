# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts that compare: models, operators, NCCL, and the operators under compute-sanitizer."""

import json
import os
import re
import shutil
import socket
import subprocess
import time

import numpy as np

from .evaluate import verdict
from .processes import kill_group, wait_for
from .report import number, table
from .run import MOST_SECONDS

#: Programs under compute-sanitizer are slow; those of one process, after which its findings are read.
BATCH = 25


def _evaluate(check, worker, program, arrays, tolerance, floor):
    request = {"program": program["file"], "arrays": arrays, "tolerance": tolerance, "floor": floor}
    request["math"] = program.get("math", "f32")
    result = worker(request, min(MOST_SECONDS, check.clock.part_left()))
    check.package.forget(program["file"])
    if result["status"] == "error":
        # A device may be of no use to a process after an error.
        worker.kill()
    return result


def _worth(program):
    """The most telling programs first: uneven cuts with libraries in f32."""
    return (program["style"] != "uneven", not program["libraries"], program["math"] != "f32", program["ranks"])


def _check_models(check, gpus, wanted):
    jobs = [(m, p) for m in check.manifest["models"] for p in m["programs"] if wanted(p)]
    jobs.sort(key=lambda job: _worth(job[1]))

    def row(worker, job):
        model, program = job
        result = _evaluate(check, worker, program, model["arrays"], program["tolerance"], 0.0)
        described = {key: program[key] for key in ("variant", "ranks", "libraries", "math", "style", "tolerance")}
        return {"name": model["name"], "gpus": gpus, **described, **result}

    check.distribute(jobs, gpus, row, lambda job: f"{job[0]['name']} {job[1]['variant']}")
    _print_models(check.report.rows)


def _print_models(rows):
    """A table for each kind of program: models against ranks, with the largest error."""
    kinds = {
        "with libraries, f32": lambda r: r["libraries"] and r["math"] == "f32",
        "without libraries, f32": lambda r: not r["libraries"],
        "with libraries, TF32": lambda r: r["math"] == "tf32",
    }
    for title, belongs in kinds.items():
        chosen = [row for row in rows if belongs(row)]
        if not chosen:
            continue
        variants = list(dict.fromkeys(row["variant"] for row in chosen))
        told = lambda r: number(r["error"], 2) if r["status"] == "ok" else r["status"]
        cells = {(r["name"], r["variant"]): told(r) for r in chosen}
        names = list(dict.fromkeys(row["name"] for row in chosen))
        by_norm = chosen[0]["math"] == "tf32"
        what = "norm of the error over that of the output" if by_norm else "largest error over the largest value"
        print(f"  {title}: {what}; the limit is {chosen[0]['tolerance']:g}")
        print(table(["model", *variants], [[n, *(cells.get((n, v), "-") for v in variants)] for n in names]))


def models(check):
    _check_models(check, 1, lambda program: True)


def several_gpus(check):
    if len(check.devices) < 2:
        check.report.say("skipped", "there is one GPU")
        return
    _check_models(check, len(check.devices), lambda program: program["ranks"] > 1 and program["libraries"])


def evaluate_case(check, worker, case):
    """The verdict about a single operator."""
    result = _evaluate(check, worker, {"file": case["program"]}, case["arrays"], case["tolerance"], case["floor"])
    check.package.forget(case["arrays"])
    return result


def operators(check):
    cases = check.manifest["operators"]

    def row(worker, case):
        described = {"name": case["name"], "variant": case["case"], "ranks": case["ranks"]}
        return described | evaluate_case(check, worker, case)

    check.distribute(cases, 1, row, lambda case: case["name"])
    _print_counts(check.report.rows, len(cases))


def _print_counts(rows, total):
    counts = [sum(row["status"] == status for row in rows) for status in ("ok", "differs", "error")]
    print(table(["cases", "run", "right", "differ", "end with an error"], [[total, len(rows), *counts]]))


# NCCL: a process for each rank.


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_ranks(check, program, command, flags, folder, environment=None):
    """Starts `dovetail-run COMMAND` with a process for each rank; returns (processes, their logs).

    `environment` has more variables for the processes.
    """
    file, port = check.package.path(program["file"]), _free_port()
    processes, logs = [], []
    world = program["ranks"]
    for rank in range(world):
        place = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world}
        place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        variables = check.environment(world, **{k: str(v) for k, v in place.items()}, **(environment or {}))
        line = [check.tool, command, file, "--comm", "nccl", *flags]
        logs.append(open(folder / f"log{rank}", "w+"))
        with open(folder / f"output{rank}", "w") as output:
            processes.append(
                check.processes.start(line, stdin=subprocess.DEVNULL, stdout=output, stderr=logs[-1], env=variables)
            )
    return processes, logs


def end_ranks(processes):
    for process in processes:
        kill_group(process)
        wait_for(process)


def launch(check, program, command, flags, folder, environment=None):
    """Runs `dovetail-run COMMAND` with a process for each rank; returns (what rank 0 prints, a row if it failed)."""
    processes, logs = start_ranks(check, program, command, flags, folder, environment)
    deadline = time.monotonic() + min(MOST_SECONDS, check.clock.part_left())
    try:
        codes = [process.wait(max(0.1, deadline - time.monotonic())) for process in processes]
    except subprocess.TimeoutExpired:
        failed = any(process.poll() for process in processes)
        return "", {"status": "error" if failed else "late", "message": f"no end in time: {said(logs)}"}
    finally:
        end_ranks(processes)
    failure = {"status": "error", "message": f"exit codes {codes}: {said(logs)}"} if any(codes) else {}
    return (folder / "output0").read_text(), failure


def said(logs):
    """The end of each rank's log."""
    texts = []
    for rank, log in enumerate(logs):
        log.seek(0)
        texts.append(f"rank {rank}: {log.read()[-600:].strip()}")
    return "; ".join(texts)


def _run_processes(check, model, program, folder):
    """Compares a first run, and a replay after runs on NaN, the second of which is recorded; measures more replays."""
    inputs, expected = check.package.arrays(model["arrays"])
    flags = []
    for index, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"input{index}.npy", value)
        flags += ["--input", f"{name}=@{folder / f'input{index}.npy'}"]
    files = {name: folder / f"output{index}.npy" for index, name in enumerate(expected)}
    outputs = [part for name, file in files.items() for part in ("--output", f"{name}={file}")]
    for run, warmup in (("first run", 0), ("replay", 2)):
        _, failure = launch(check, program, "run", [*flags, *outputs, "--warmup", warmup], folder)
        if failure:
            return failure | {"message": f"{run}: {failure['message']}"}
        result = verdict({name: np.load(file) for name, file in files.items()}, expected, program["tolerance"])
        if result["status"] != "ok":
            return result | {"message": f"{run}: {result['message']}"}
    printed, failure = launch(check, program, "bench", [*flags, "--json"], folder)
    if failure:
        return result | failure | {"message": f"bench: {failure['message']}"}
    return result | json.loads(printed)


def nccl(check):
    """Ranks up to the number of GPUs; NCCL refuses two ranks on one."""
    most = len(check.devices)
    wanted = lambda p: p["ranks"] <= most and (p["style"], p["math"], p["libraries"]) == ("uneven", "f32", True)
    jobs = [(m, p) for m in check.manifest["models"] for p in m["programs"] if wanted(p)]
    # The large models after the small: their start-up takes longer.
    jobs.sort(key=lambda job: (-job[1]["ranks"], job[0]["timed"]))
    for model, program in check.each(jobs, lambda job: f"{job[0]['name']} {job[1]['variant']}"):
        folder = check.package.restored / "nccl"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        start = time.monotonic()
        result = _run_processes(check, model, program, folder)
        check.package.forget(program["file"])
        result["seconds"] = time.monotonic() - start
        check.add({"name": model["name"], "variant": program["variant"], "ranks": program["ranks"], **result})
    rows = [
        [r["name"], r["ranks"], r["status"], number(r.get("error"), 2), number(r.get("median_ms"))]
        for r in check.report.rows
    ]
    print(table(["model", "ranks", "result", "error", "ms"], rows) if rows else "")


# compute-sanitizer.


#: Where tools of CUDA are, below its folder.
_PLACES = ("bin", "compute-sanitizer", "nsight-compute")


def find_tool(name):
    """The path of a tool of CUDA, such as compute-sanitizer and ncu, or None."""
    for folder in filter(None, (os.environ.get("CUDA_HOME"), "/usr/local/cuda")):
        for place in _PLACES:
            path = os.path.join(folder, place, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    return shutil.which(name)


def sanitizers(check):
    program = find_tool("compute-sanitizer")
    if not program:
        check.report.say("skipped", "compute-sanitizer is not on this machine")
        return
    # The libraries' kernels are not ours to check.
    cases = [case for case in check.manifest["operators"] if not case["libraries"]]
    batches = [(tool, cases[i : i + BATCH]) for i in range(0, len(cases), BATCH) for tool in ("memcheck", "racecheck")]
    name, size = lambda b: f"{b[0]}, from {b[1][0]['name']}", lambda b: len(b[1])
    for tool, batch in check.each(batches, name, least=20, size=size):
        check.add(_sanitize(check, program, tool, batch))
    rows = []
    for tool in ("memcheck", "racecheck"):
        own = [row for row in check.report.rows if row["tool"] == tool]
        if own:
            findings = sum(row["findings"] or 0 for row in own)
            rows.append([tool, sum(row["cases"] for row in own), len(cases), findings])
    print(table(["tool", "cases run", "of", "findings"], rows))


def findings_in(text):
    """How many findings a log of compute-sanitizer has, or None where its summary is missing."""
    summaries = re.findall(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: )(\d+)", text)
    return sum(map(int, summaries)) if summaries else None


def _sanitize(check, program, tool, batch):
    """Runs cases in one process under a tool, until the part's time is over; a row of the report."""
    log = check.package.restored / f"{tool}.log"
    log.unlink(missing_ok=True)
    prefix = [program, "--tool", tool, "--error-exitcode", "86", "--log-file", str(log)]
    worker = check.new_worker(prefix, check.package.restored / "sanitized.log")
    done, message, late = 0, "", False
    for case in batch:
        if check.clock.part_left() < 10 and done:
            break
        request = {"program": case["program"], "arrays": case["arrays"], "tolerance": case["tolerance"]}
        request |= {"floor": case["floor"], "math": "f32"}
        reply = worker(request, min(MOST_SECONDS, check.clock.part_left()))
        done += 1
        if reply["status"] != "ok":
            message, late = f"{case['name']}: {reply['message']}", reply["status"] == "late"
            break
    code = worker.close(max(1, check.clock.part_left()))
    if code is None and not message:
        message, late = f"{tool} did not end in time", True
    text = log.read_text(errors="replace") if log.exists() else ""
    findings = findings_in(text)
    # All but the heading is a finding or the summary.
    told = [line for line in text.splitlines() if line.strip("= ") not in ("", "COMPUTE-SANITIZER")]
    if code == 0 and findings == 0 and not message:
        status = "ok"
    else:
        status = "late" if late and not told else "error"
        message = message or f"exit code {code}; {tool} says: {text[-1500:].strip()}"
    # The findings of a process that was ended are not known.
    cases = 0 if status == "late" else done
    left_out = 0 if status == "error" else len(batch) - cases
    first, last = batch[0]["name"], batch[done - 1]["name"]
    return {"name": tool, "tool": tool, "variant": f"{first} to {last}", "cases": cases, "left_out": left_out,
            "findings": findings, "status": status, "message": message,
            "log": "" if status == "ok" else text[:20000]}  # fmt: skip
