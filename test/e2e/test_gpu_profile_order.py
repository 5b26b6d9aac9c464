# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of measurements in `gpu-check run --profile ten-minutes`, and processes that end. Needs no build."""

import os
import signal
import sys
import time

from harness.backend import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from gpucheck import processes, profile  # noqa: E402
from gpucheck.journal import Journal  # noqa: E402
from gpucheck.report import Clock  # noqa: E402
from gpucheck.timed_check import TimedCheck  # noqa: E402
from gpucheck.worker import Worker  # noqa: E402


#: Answers with its number of process.
ANSWERS = "import json, os, sys\nfor line in sys.stdin: print(json.dumps({'process': os.getpid()}), flush=True)"


def test_process_that_was_ended(tmp_path):
    """A request after a process was ended by somebody else gets an answer, from a new one."""
    running = processes.Processes()
    worker = Worker([sys.executable, "-c", ANSWERS], dict(os.environ), tmp_path / "log", running)
    first = worker({}, 30)["process"]
    assert worker({}, 30)["process"] == first
    running.kill_all()
    while worker._process.poll() is None:
        time.sleep(0.01)
    assert worker({}, 30)["process"] != first
    worker.kill()


class _Package:
    """As much of a package as a check needs that runs no program."""

    def __init__(self, folder, target="cpu"):
        self.folder = self.restored = self.runtime = folder
        self.manifest = {"target": target, "operators": [], "timed": []}


class _Part:
    """A part that does `function`."""

    title, weight, needs_gpu = "", 1, False

    def __init__(self, function):
        self.run = function


def test_smoke_that_hangs(tmp_path, monkeypatch):
    """The watchdog ends what a part of the smoke waits for. Others have their own time, and new processes."""
    monkeypatch.setattr(profile, "SMOKE_PART_SECONDS", 2)
    monkeypatch.setattr(processes.Watchdog, "GRACE", 0)
    check = TimedCheck(tmp_path, _Package(tmp_path), Journal(tmp_path / "result.json", {}), Clock(60))
    watchdog = processes.Watchdog(check.processes, time.monotonic() + 60)
    kept = Worker([sys.executable, "-c", ANSWERS], dict(os.environ), tmp_path / "log", check.processes)

    ended = []

    def hang(check):
        kept({}, 30)
        ended.append(check.processes.run(["sleep", "1000.5"], 60)[0])
        check.add({"name": "hang", "status": "late", "message": ""})

    def answer(check):
        # An answer takes longer than the deadline of the part before.
        time.sleep(0.1)
        assert kept({}, 30)["process"] > 0
        check.add({"name": "answer", "status": "ok", "message": ""})

    monkeypatch.setattr(check, "_probes", {"": kept})
    try:
        failed = profile._smoke(check, {"A": _Part(hang), "B": _Part(answer)}, watchdog)
        assert failed == {} and watchdog.fired == 0 and ended == [-signal.SIGKILL]
        # The time between parts has a deadline of its own.
        assert watchdog._deadline > time.monotonic() + 5
        rows = check.report.data["measurements"]
        assert [row["status"] for row in rows] == ["unfinished", "ok"], rows
    finally:
        watchdog.stop()
        check.end_all()


def test_time_that_is_left(tmp_path, monkeypatch):
    """A part with too short a share goes on once the others have ended early, with what has no end yet."""
    check = TimedCheck(tmp_path, _Package(tmp_path, "cuda"), Journal(tmp_path / "result.json", {}), Clock(8))
    watchdog = processes.Watchdog(check.processes, time.monotonic() + 60)
    begun, fake = [], _Part(None)

    def slow(check):
        for job in check.each(["one", "two", "three"], str, least=5):
            begun.append(job)
            time.sleep(min(0.4, check.clock.part_left()))
            status = "ok" if check.clock.part_left() > 0 else "late"
            check.add({"name": job, "status": status, "message": ""})

    monkeypatch.setattr(profile, "clocks", lambda check: None)
    monkeypatch.setattr(profile, "BETWEEN_SECONDS", 1)
    fake.weight = 7
    fake.run = lambda check: check.add({"name": "quick", "status": "ok", "message": ""})
    try:
        profile._run_parts(check, {"A": _Part(slow), "B": fake}, {}, watchdog)
    finally:
        watchdog.stop()
        check.end_all()
    # The share is 1 s: the third job is cut, or does not begin, and has its end later.
    assert begun[:2] == ["one", "two"] and begun[-1] == "three" and begun.count("one") == 1
    rows = {(row["part"], row["name"]): row["status"] for row in check.report.data["measurements"]}
    assert rows == {("A", "one"): "ok", ("A", "two"): "ok", ("A", "three"): "ok", ("B", "quick"): "ok"}
    assert len(rows) == len(check.report.data["measurements"])
    assert check.report.data["parts"]["A"]["status"] == "ok" and check.report.data["parts"]["A"]["note"] == ""


def test_processes_by_need(tmp_path, monkeypatch):
    """Peers are not measured in the process that has loaded the profiler, which ends after its part."""
    check = TimedCheck(tmp_path, _Package(tmp_path, "cuda"), Journal(tmp_path / "result.json", {}), Clock(60))

    class Fake:
        ended = 0

        def __call__(self, request, seconds):
            return {"status": "ok", "message": ""}

        def kill(self):
            self.ended += 1

    monkeypatch.setattr(check, "_worker", lambda *_: Fake())
    for do in ("profiler.trace", "timed_peers.cell", "probe.run", "timed_peers.start"):
        check.ask(do)
    assert len(check._probes) == 3
    check.close_probe("profiler")
    assert {key: probe.ended for key, probe in check._probes.items()} == {"profiler": 1, "torch": 0, "": 0}
    check.close_probe()
    assert {key: probe.ended for key, probe in check._probes.items()} == {"profiler": 2, "torch": 1, "": 1}


def test_time_that_runs_out():
    """A measurement replies with the runs that it had time for: one at least."""
    from gpucheck.probe import measure

    run = lambda: time.sleep(0.05)
    assert measure(run, repetitions=5, warm_up=0, end=time.monotonic())["repetitions"] == 1
    assert measure(run, repetitions=3, warm_up=0, end=time.monotonic() + 60)["repetitions"] == 3


def test_order_within_parts(tmp_path, monkeypatch):
    """The most telling things come first where time runs out."""
    from gpucheck import own_kernels, sanitized, several_ranks

    def entry(name, group, *ranks):
        programs = [{"variant": f"r{r}", "ranks": r, "file": "f", "libraries": False} for r in ranks]
        return {"name": name, "group": group, "programs": programs}

    check = TimedCheck(tmp_path, _Package(tmp_path, "cuda"), Journal(tmp_path / "result.json", {}), Clock(600))
    check.manifest["timed"] = [
        entry("softmax", "kernel", 1), entry("tile", "tile", 1), entry("halo", "rank", 2), entry("model", "rank", 1, 2)
    ]  # fmt: skip
    seen = []
    row = lambda check, entry, program: {"name": entry["name"], "status": "ok"}
    monkeypatch.setattr(own_kernels, "_kernel", row)
    monkeypatch.setattr(several_ranks, "_on_ranks", row)
    monkeypatch.setattr(own_kernels, "_metrics", lambda check, tiles: seen.append({"name": "ncu"}))
    monkeypatch.setattr(several_ranks, "_nccl", lambda check, programs: seen.append({"name": "NCCL"}))
    monkeypatch.setattr(sanitized, "_operators", lambda check: None)
    monkeypatch.setattr(sanitized, "_sanitize", lambda *_: {"status": "ok"})
    monkeypatch.setattr(check, "find_tool", lambda name: name)
    monkeypatch.setattr(check, "add", seen.append)
    check.report.begin("F", "")
    own_kernels.kernels(check)
    assert [row["name"] for row in seen] == ["tile", "ncu", "softmax"]
    seen.clear()
    several_ranks.ranks(check)
    assert [row["name"] for row in seen] == ["model", "model", "NCCL", "halo"]
    seen.clear()
    sanitized.sanitized(check)
    tools = [(name, tool) for name in ("tile", "softmax") for tool in ("memcheck", "racecheck")]
    assert [(row["name"], row["tool"]) for row in seen] == tools


def test_cells_that_are_late(tmp_path, monkeypatch):
    """A cell without an answer is unfinished. After a start without one, algorithms are not measured any more."""
    from gpucheck import timed_peers

    entry = {"name": "resnet50", "group": "model", "graph": "g", "programs": [{"variant": v} for v in ("f32", "tf32")]}
    check = TimedCheck(tmp_path, _Package(tmp_path, "cuda"), Journal(tmp_path / "result.json", {}), Clock(600))
    check.manifest["timed"] = [entry]
    asked, late = [], {"status": "late", "message": "no answer"}
    replies = {
        ("start", "f32", True): [dict(late)],
        ("start", "f32", False): [{"status": "ok"}] * 9,
        ("cell", "f32", False): [dict(late)] + [{"status": "ok", "message": "", "ms": 1.0}] * 9,
    }

    def ask(do, seconds, **request):
        key = do.partition(".")[2], request["program"]["variant"], request["autotune"]
        asked.append((*key, seconds))
        return replies[key].pop(0)

    monkeypatch.setattr(check, "ask", ask)
    check.report.begin("B", "")
    # Algorithms of TF32 take too long, or fail: it is started without.
    check.report.add({"name": "resnet50", "variant": "f32 autotuned", "status": "ok", "start_s": 4.0, "message": ""})
    check.report.add({"name": "resnet50", "variant": "tf32 autotuned", "status": "ok", "start_s": 40.0, "message": ""})
    assert timed_peers.is_autotuned(check, entry, "f32") and not timed_peers.is_autotuned(check, entry, "tf32")
    monkeypatch.setattr(timed_peers, "CELLS", [c for c in timed_peers.CELLS if c[2] == "f32"])
    check.report.begin("E", "")
    timed_peers.peers(check)
    rows = [m for m in check.report.data["measurements"] if m["part"] == "E"]
    assert [(row["status"], row["autotuned"]) for row in rows] == [
        ("unfinished", True), ("unfinished", False), ("ok", False)
    ]  # fmt: skip
    assert asked[0] == ("start", "f32", True, 45) and asked[2] == ("cell", "f32", False, 45)
    check.smoke = True
    assert not timed_peers.is_autotuned(check, entry, "f32")
