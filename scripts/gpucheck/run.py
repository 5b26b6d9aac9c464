# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the parts of a check, and keeps what they find."""

import concurrent.futures
import json
import os
import pathlib
import platform
import queue
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
import traceback

from .package import Package
from .parts import PARTS
from .processes import Processes
from .report import Clock, Progress, Report
from .serving import RESTORED
from .worker import Worker

NO_DEVICE = 8
#: Processes that compare at the same time.
WORKERS = max(1, min(4, (os.cpu_count() or 1) // 2))
#: No program runs longer than this.
MOST_SECONDS = 120


class Interrupted(Exception):
    """Somebody, or a limit, ends the check."""


def cuda_folders():
    """Where Python packages with NVIDIA's libraries are installed, for DOVETAIL_CUDA_PATH."""
    packages = [*site.getsitepackages(), site.getusersitepackages(), *sys.path]
    found = [os.environ.get("DOVETAIL_CUDA_PATH", "")]
    for folder in dict.fromkeys(pathlib.Path(p).resolve() for p in packages if p):
        found += [str(f) for f in (folder, folder / "torch/lib") if (folder / "nvidia").is_dir() and f.is_dir()]
    return ":".join(filter(None, dict.fromkeys(found)))


class Check:
    """What the parts need: the package, the machine, the report and the clock."""

    def __init__(self, folder, package, report, clock):
        self.folder, self.package, self.report, self.clock = folder, package, report, clock
        self.manifest = package.manifest
        self.target = self.manifest["target"]
        self.devices = []
        self.processes = Processes()
        self._unfinished = 0
        self._workers = {}

    @property
    def tool(self):
        """The path of dovetail-run."""
        return self.package.runtime / "bin/dovetail-run"

    def visible(self, count):
        """CUDA_VISIBLE_DEVICES for the first `count` GPUs of those that this process may use."""
        given = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = given.split(",") if given else [str(i) for i in range(max(1, len(self.devices)))]
        return ",".join(names[:count])

    def environment(self, gpus=None, **more):
        """For programs of the package, on so many GPUs."""
        library = str(self.package.runtime / "lib")
        environment = dict(os.environ, DOVETAIL_LIBRARY_DIR=library)
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [library, os.environ.get("LD_LIBRARY_PATH")]))
        environment["DOVETAIL_CUDA_PATH"] = cuda_folders()
        environment[RESTORED] = str(self.package.restored)
        if gpus is not None:
            environment["CUDA_VISIBLE_DEVICES"] = self.visible(gpus)
        return environment | more

    def script(self, command):
        """Another process of this script."""
        return [sys.executable, str(self.folder / "gpu-check"), command]

    def workers(self, gpus):
        """Processes that run programs on so many GPUs; kept between parts."""
        if gpus not in self._workers:
            self._workers[gpus] = [
                self._worker(self.script("serve"), self.environment(gpus), f"worker-{gpus}-{i}.log")
                for i in range(WORKERS)
            ]
        return self._workers[gpus]

    def new_worker(self, prefix, log):
        """A process of its own, under a tool."""
        return Worker([*prefix, *self.script("serve")], self.environment(1), log, self.processes)

    def _worker(self, command, environment, log):
        return Worker(command, environment, self.package.restored / log, self.processes)

    def peer(self):
        """A process for PyTorch and ONNX Runtime: without the package's libraries, which they may have themselves."""
        environment = dict(os.environ, CUDA_VISIBLE_DEVICES=self.visible(1))
        environment[RESTORED] = str(self.package.restored)
        return self._worker(self.script("peer"), environment, "peer.log")

    def close_workers(self):
        for workers in self._workers.values():
            for worker in workers:
                worker.kill()
        self._workers.clear()

    def call(self, arguments, timeout=MOST_SECONDS, **environment):
        """Runs dovetail-run; returns (exit code, output, message). Code None: it took too long."""
        command = [self.tool, *arguments]
        try:
            code, output, said = self.processes.run(command, max(1, timeout), self.environment(**environment))
        except OSError as error:
            return 127, "", str(error)
        return code, output, said.strip().removeprefix("dovetail-run: error: ")

    def add(self, row):
        """Adds a row to the report. What is late since the part's time is over, is no error."""
        if row["status"] == "late":
            row["status"] = "unfinished" if self.clock.part_left() < 0.1 else "error"
        self._unfinished += row.get("left_out", row["status"] == "unfinished")
        self.report.add(row)

    def each(self, jobs, name, least=3, size=lambda job: 1):
        """`jobs` with progress, until the part's time is over; then says what was left out, by `size`."""
        progress = Progress(len(jobs))
        self._unfinished = 0
        for done, job in enumerate(jobs):
            if self.clock.part_left() < least:
                self._unfinished += sum(map(size, jobs[done:]))
                break
            progress.step(name(job))
            yield job
        progress.clear()
        self._tell_unfinished(sum(map(size, jobs)))

    def distribute(self, jobs, gpus, function, name, least=3):
        """Adds the row `function(worker, job)` of each job, several at a time: most of the time goes into starting."""
        idle = queue.SimpleQueue()
        for worker in self.workers(gpus):
            idle.put(worker)

        def work(job):
            if self.clock.part_left() < least:
                return None
            worker = idle.get()
            try:
                return function(worker, job)
            finally:
                idle.put(worker)

        progress = Progress(len(jobs))
        self._unfinished = 0
        pool = concurrent.futures.ThreadPoolExecutor(WORKERS)
        try:
            for job, row in zip(jobs, pool.map(work, jobs)):
                progress.step(name(job))
                if row is None:
                    self._unfinished += 1
                else:
                    self.add(row)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        progress.clear()
        self._tell_unfinished(len(jobs))

    def _tell_unfinished(self, total):
        if not total:
            self.report.say("incomplete", "the package has nothing for this part")
        if self._unfinished:
            # A job may have several rows.
            unfinished = min(self._unfinished, total)
            self.report.say("incomplete", f"time is over: {unfinished} of {total} were not finished")


def machine():
    """What the check runs on, for the report."""
    found = {"system": platform.platform(), "python": platform.python_version()}
    found["libc"] = " ".join(platform.libc_ver())
    if smi := shutil.which("nvidia-smi"):
        fields = "name,driver_version,memory.total,clocks.sm,clocks.max.sm,power.limit"
        query = [smi, f"--query-gpu={fields}", "--format=csv,noheader"]
        try:
            said = subprocess.run(query, capture_output=True, text=True, timeout=30).stdout
            found["nvidia-smi"] = said.strip().splitlines()
        except (OSError, subprocess.TimeoutExpired) as error:
            found["nvidia-smi"] = str(error)
    return found


def find_devices(check):
    """Fills in the devices; returns why there are none, as a sentence, or nothing."""
    code, output, message = check.call(["devices", "--target", check.target, "--json"])
    if code == 0:
        found = json.loads(output)
        check.devices = found["devices"]
        check.report.data["devices"] = found
        for device in check.devices:
            print(f"  {device.get('ordinal', 0)}: {device['name']}, {device['memory_bytes'] / 2**30:.0f} GiB")
        for name, version in found.get("libraries", {}).items():
            print(f"  {name} {version}")
        return ""
    if code == NO_DEVICE:
        return message
    return f"dovetail-run does not work here (it needs x86-64 Linux with glibc 2.36 or newer): {message}"


def _run_parts(check, chosen, clock):
    """Every chosen part, whatever becomes of those before it."""
    report = check.report
    weights = {name: part.weight for name, part in chosen.items()}
    for name, part in chosen.items():
        report.begin(name, part.title)
        clock.enter(weights[name], sum(weights.values()))
        del weights[name]
        start = time.monotonic()
        try:
            if check.target != "cuda" and part.needs_gpu:
                report.say("skipped", "it needs a GPU")
            elif clock.left() < 1:
                report.say("incomplete", "time is over: nothing of it was reached")
            else:
                part.run(check)
        except Interrupted:
            report.say("failed", "the check was ended from outside")
            raise
        except Exception as error:
            report.data["parts"][name]["trace"] = traceback.format_exc()
            report.say("failed", f"{type(error).__name__}: {error}")
        report.data["parts"][name]["seconds"] = time.monotonic() - start
    check.close_workers()


def _summarize(report):
    """Prints how each part ended; returns the exit code."""
    print("\n== Summary")
    good = True
    for name, part in report.data["parts"].items():
        exactness = name in PARTS and PARTS[name].exactness
        good &= part["status"] in ("ok", "skipped") or (part["status"] == "incomplete" and not exactness)
        note = f" ({part['note']})" if part["note"] else ""
        print(f"  {name:<12}{part['status']}{note}, {part.get('seconds', 0):.0f} s")
    print(f"  {report.path}: all of it")
    return 0 if good else 1


#: A terminal that is closed ends a check as a limit does.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def ignore_signals():
    """From now on, the check ends by itself: no signal may interrupt it while it writes its result."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def handle_signals():
    """Signals end the check in order. With `nohup` it outlives its terminal."""
    for number in _SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


def interrupt(number, frame):
    ignore_signals()
    raise Interrupted(signal.Signals(number).name)


def run(folder, arguments):
    """The command `run`; returns the exit code."""
    handle_signals()
    with tempfile.TemporaryDirectory(prefix="gpu-check-", ignore_cleanup_errors=True) as restored:
        package = Package(folder, restored)
        package.require(package.manifest["runtime"])
        heading = {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "arguments": vars(arguments)}
        for key in ("target", "archs", "dovetail", "packed"):
            heading[key] = package.manifest[key]
        report = Report(arguments.json, heading | {"machine": machine(), "devices": {}})
        clock = Clock(arguments.seconds)
        check = Check(folder, package, report, clock)
        try:
            report.begin("devices", "devices")
            if reason := find_devices(check):
                report.say("failed", reason, show=False)
                report.finish()
                print(f"gpu-check: error: {reason}", file=sys.stderr)
                return NO_DEVICE
            for device in check.devices:
                report.add({"name": device["name"], "status": "ok", **device})
            _run_parts(check, {name: PARTS[name] for name in PARTS if name in arguments.parts}, clock)
            report.finish()
        except Interrupted as error:
            print(f"gpu-check: error: ended by {error}", file=sys.stderr)
            check.close_workers()
            _summarize(report)
            return 1
        return _summarize(report)
