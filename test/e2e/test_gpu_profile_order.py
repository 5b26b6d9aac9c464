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


def _smoke(tmp_path, parts, target="cpu"):
    """(measurements, note) of a smoke."""
    check = TimedCheck(tmp_path, _Package(tmp_path, target), Journal(tmp_path / "result.json", {}), Clock(600))
    watchdog = processes.Watchdog(check.processes, time.monotonic() + 60)
    try:
        profile._smoke(check, {name: _Part(function) for name, function in parts.items()}, watchdog)
    finally:
        watchdog.stop()
        check.end_all()
    return check.report.data["measurements"], check.report.data["parts"]["smoke"]["note"]


def test_smoke_tries_all(tmp_path, monkeypatch):
    """Parts that take long leave time for later ones. Wrong results are wrong, although a part can run."""
    monkeypatch.setattr(profile, "SMOKE_SECONDS", 3)
    monkeypatch.setattr(profile, "LEAST_SMOKE_SECONDS", 0.5)
    row = lambda status: {"name": "unet", "variant": "f32", "status": status, "message": status}

    def slow(check):
        time.sleep(check.clock.part_left())
        check.add(row("late"))

    differs = lambda check: [check.add(row("ok")), check.add(row("differs"))]
    parts = {"A": slow, "B": slow, "E": slow, "C": differs, "D": lambda check: check.add(row("ok"))}
    found, note = _smoke(tmp_path, parts)
    assert note == ""
    statuses = {line["name"]: line["status"] for line in found}
    assert statuses == {"A": "unfinished", "B": "unfinished", "E": "unfinished", "C": "differs", "D": "ok"}
    assert found[3]["message"] == "unet f32: differs" and 1 <= found[0]["seconds"] < 2


def test_smoke_takes_what_starts_quickly(tmp_path):
    """Not the model that computes least: a library may take long to start it."""
    entry = lambda name, flops, **more: {"name": name, "group": "model", "work": {"flops": flops}, "programs": []} | more
    entries = [entry("resnet50", 1), entry("swin", 3, starts_quickly=True), entry("unet512", 2)]
    begun = []

    def part(check):
        for job in check.each([(entry, "f32") for entry in entries], lambda job: job[0]["name"]):
            begun.append(job[0]["name"])
        for job in check.each([entries[2], entries[0]], lambda entry: entry["name"]):
            begun.append(job["name"])
        check.add({"name": "", "status": "ok", "message": ""})

    _smoke(tmp_path, {"A": part})
    assert begun == ["swin", "resnet50"]


def test_note_of_a_part_without_more_time(tmp_path, monkeypatch):
    """What a part says of itself is not replaced where it cannot go on. Rows are no more than jobs."""
    check = TimedCheck(tmp_path, _Package(tmp_path, "cuda"), Journal(tmp_path / "result.json", {}), Clock(8))
    watchdog = processes.Watchdog(check.processes, time.monotonic() + 60)

    ends = iter((5, 2.5, 1))

    def late(check):
        for job in check.each(["one"], str):
            time.sleep(check.clock.left() - next(ends))
            for number in range(2):
                check.add({"name": f"{job} {number}", "status": "unfinished", "message": ""})

    monkeypatch.setattr(profile, "clocks", lambda check: None)
    try:
        profile._run_parts(check, {"G": _Part(late), "H": _Part(late)}, {}, watchdog)
    finally:
        watchdog.stop()
        check.end_all()
    assert next(ends, None) is None
    assert {part["note"] for part in check.report.data["parts"].values()} == {"time is over: 1 of 1 were not finished"}


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
    """Peers are not measured in the process that has loaded the profiler. Processes go on between parts."""
    check = TimedCheck(tmp_path, _Package(tmp_path, "cuda"), Journal(tmp_path / "result.json", {}), Clock(60))

    class Fake:
        ended, is_running = 0, True

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
    assert check.has_process("torch") and not check.has_process("jax")


def test_process_that_is_being_started(tmp_path, monkeypatch):
    """It gets one request at a time. The process of the profiler is started beforehand only where it is needed."""
    check = TimedCheck(tmp_path, _Package(tmp_path, "cuda"), Journal(tmp_path / "result.json", {}), Clock(60))
    asked = []

    def answer(request, seconds):
        asked.append(request["do"])
        time.sleep(0.3 if request["do"] in ("ceilings.versions", "profiler.load") else 0)
        asked.append(request["do"])
        return {"status": "ok", "message": ""}

    monkeypatch.setattr(check, "_worker", lambda *_: answer)
    check.warm_up("BC")
    check.ask("profiler.trace")
    assert asked[-2:] == ["profiler.trace"] * 2 and asked.count("profiler.load") == 2
    check.wait_for_warm_up()
    assert check.versions["status"] == "ok" and asked.count("ceilings.versions") == 2
    asked.clear()
    check.warm_up("CT")
    # It goes on loading where there is no time to wait.
    check.clock.limit(0.1)
    assert check.ask("timed_peers.start")["status"] == "late" and asked == ["ceilings.versions"]
    check.clock.limit(60)
    check.ask("timed_peers.start")
    assert asked == ["ceilings.versions"] * 2 + ["timed_peers.start"] * 2


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
    large = entry("large", "tile", 1) | {"work": {"flops": 1 << 37}}
    layer = entry("layer", "layer", 1, 2)
    layer["programs"][0] |= {"variant": "f32", "libraries": True}
    check.manifest["timed"] += [large, layer]
    seen.clear()
    sanitized.sanitized(check)
    tools = [(name, tool) for name in ("layer", "tile", "softmax", "large") for tool in ("memcheck", "racecheck")]
    assert [(row["name"], row["tool"]) for row in seen] == tools


def test_large_models(tmp_path, monkeypatch):
    """Each mode of what is quickly done comes first. Other processes go on, with the device's memory given back."""
    from gpucheck import large

    check = TimedCheck(tmp_path, _Package(tmp_path, "cuda"), Journal(tmp_path / "result.json", {}), Clock(600))
    names = ("unet-1024", "unet-2048", "unet-4096", "unet3d-128", "huge-convolution")
    check.manifest["timed"] = [
        {"name": name, "group": "large", "programs": [{"variant": v} for v in ("f32", "tf32", "f16")]} for name in names
    ]
    closed, asked, found = [], [], []
    monkeypatch.setattr(check, "close_probe", lambda *keys: closed.append(keys))
    monkeypatch.setattr(check, "has_process", lambda key: key == "torch")
    monkeypatch.setattr(check, "ask", lambda do, *_: asked.append(do))
    monkeypatch.setattr(check, "measure", lambda *_, **options: {"status": "ok", "message": "", "ms": 1.0})
    monkeypatch.setattr(check, "add", found.append)
    check.report.begin("C", "")
    large.large(check)
    order = ("unet3d-128", "unet-1024", "unet-2048", "huge-convolution", "unet-4096")
    wanted = [(name, variant) for name in order for variant in ("f32", "tf32", "f16")]
    assert [(row["name"], row["variant"]) for row in found] == wanted
    assert set(closed) == {("",)} and asked == ["timed_peers.release"]


def test_counters_of_products(tmp_path, monkeypatch):
    """A call of nsight compute for each, the largest product first."""
    from gpucheck import own_kernels

    check = TimedCheck(tmp_path, _Package(tmp_path, "cuda"), Journal(tmp_path / "result.json", {}), Clock(600))
    tile = lambda name, flops: ({"name": name, "work": {"flops": flops}}, {"variant": "f32"})
    asked, found = [], []

    def ncu(check, tool, entry, program, metrics):
        asked.append((entry["name"], len(metrics)))
        return [], [dict.fromkeys(metrics, 1.0)], ""

    monkeypatch.setattr(own_kernels, "ncu", ncu)
    monkeypatch.setattr(check, "find_tool", lambda name: name)
    monkeypatch.setattr(check, "add", found.append)
    own_kernels._metrics(check, [tile("small", 1), tile("large", 3), tile("medium", 2)])
    assert asked == [(name, len(own_kernels.METRICS)) for name in ("large", "medium", "small")]
    assert all(row["status"] == "ok" and len(row["ncu"][0]) == 1 + len(own_kernels.METRICS) for row in found)


def test_nccl_that_refuses(tmp_path, monkeypatch):
    """Its reason is its version, whether there is time or not. A smoke starts the ranks once."""
    from gpucheck import several_ranks

    check = TimedCheck(tmp_path, _Package(tmp_path, "cuda"), Journal(tmp_path / "result.json", {}), Clock(0))
    check.report.data["devices"] = {"libraries": {"NCCL": "2.28.9"}}
    check.report.begin("G", "")
    entry = {"name": "model", "sample_boxes": []}
    programs = [(entry, {"ranks": ranks, "variant": str(ranks)}) for ranks in (1, 2)]
    several_ranks._nccl(check, programs)
    found = check.report.data["measurements"]
    assert [row["status"] for row in found] == ["unfinished", "skipped"] and "2.28.9 refuses" in found[1]["message"]
    started = []
    launch = lambda check, program, command, *_: started.append(command) or ("", None)
    monkeypatch.setattr(several_ranks, "launch", launch)
    monkeypatch.setattr(several_ranks, "compare", lambda *_: {"status": "ok", "message": ""})
    monkeypatch.setattr(check, "input_flags", lambda *_: [])
    check.smoke = True
    assert several_ranks._replays(check, *programs[0], {})["status"] == "ok" and started == ["run"]


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
    assert not timed_peers.is_autotuned(check, entry, "f32")
    check.report.begin("T", "")
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
