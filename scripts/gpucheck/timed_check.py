# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the timed parts need of a package and a machine."""

import json
import os
import threading

import numpy as np

from . import inputs
from .exactness import find_tool
from .measurements import BenchError
from .run import Check
from .serving import WITH_TORCH

#: The profiler stays loaded, and JAX takes memory when it needs it.
FOR_PEERS = {"TEARDOWN_CUPTI": "0", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
#: Of loading PyTorch for the first time.
WARM_UP_SECONDS = 45
#: The parts that see the device's own times by a profiler.
PROFILED = frozenset("ABDFG")


def _size(job):
    """How much there is to do for a job, whose entry is the job or the first of its things.

    A program that starts quickly comes first: a library takes seconds to compile its engines for ResNet-50.
    """
    entry = job[0] if isinstance(job, tuple) else job
    entry = entry if isinstance(entry, dict) else {}
    return not entry.get("starts_quickly", False), entry.get("work", {}).get("flops", 0)


class TimedCheck(Check):
    """What the timed parts need: entries of the package, the process that measures, and `bench`."""

    def __init__(self, folder, package, report, clock):
        super().__init__(folder, package, report, clock)
        self.on_gpu = self.target == "cuda"
        self.smoke = False
        self.damage = ""
        self.ceilings = {}
        #: Whether each trace of the profiler needs a process of its own, and how it failed.
        self.fresh_traces, self.trace_failures = False, []
        #: What `ceilings.versions` replied while the package was read.
        self.versions = {}
        #: Parts that had too little time, and how many of their jobs have an end.
        self.unfinished, self.ended_jobs = set(), 0
        #: Whether parts go on that had too little time.
        self.again = False
        #: {(part, names of jobs): {index: whether the job has an end}}; a job that never began is not there.
        self._jobs, self._before = {}, 0
        #: Threads that start processes, by the process that they ask.
        self._warming = {}
        self._probes = {}
        self._saved = {}

    def entries(self, *groups):
        return [entry for entry in self.manifest.get("timed", []) if entry["group"] in groups]

    def program(self, entry, variant):
        """The entry's program of this variant, or None."""
        return next((p for p in entry["programs"] if p["variant"] == variant), None)

    def iterations(self, count):
        return 1 if self.smoke else count

    def each(self, jobs, name, least=3, size=lambda job: 1):
        """As `Check.each`. A smoke takes the smallest job only. Programs for CPUs are small and need less time.

        A part with little time begins jobs all the same. One that goes on is given what has no end yet.
        """
        if self.smoke:
            yield from super().each(sorted(jobs, key=_size)[:1], name, 0.5, size)
            return
        ended, pairs = self._left(jobs, name)
        least = min(least, max(0.5, self.clock.share / 4)) if self.on_gpu else 0.5
        for index, job in super().each(pairs, lambda pair: name(pair[1]), least, lambda pair: size(pair[1])):
            ended[index], before = False, self._unfinished
            yield job
            ended[index] = self._unfinished == before
            self.ended_jobs += ended[index]

    def distribute(self, jobs, gpus, function, name, least=3):
        """As `Check.distribute`, of the jobs that have no end yet."""
        if self.smoke:
            super().distribute(jobs, gpus, function, name, least)
            return
        ended, pairs = self._left(jobs, name)

        def work(worker, pair):
            index, job = pair
            ended[index] = False
            row = function(worker, job)
            ended[index] = row["status"] != "late"
            return row

        super().distribute(pairs, gpus, work, lambda pair: name(pair[1]), least if self.on_gpu else 0.5)
        self.ended_jobs += sum(ended.get(index, False) for index, _ in pairs)

    def _left(self, jobs, name):
        """({index: whether the job has an end}, [(index, job)] without an end): first those that never began."""
        ended = self._jobs.setdefault((self.report.part, *map(name, jobs)), {})
        pairs = [(index, job) for index, job in enumerate(jobs) if not ended.get(index)]
        self._before = len(jobs) - len(pairs)
        return ended, sorted(pairs, key=lambda pair: pair[0] in ended)

    def _tell_unfinished(self, total):
        if self._unfinished and not self.smoke:
            self.unfinished.add(self.report.part)
        super()._tell_unfinished(total + (0 if self.smoke else self._before))

    def _tell_damage(self, row):
        """The reason of the part is the damage, not what follows from it."""
        row["message"] = row["message"].partition("DamagedPackage: ")[2]
        if not self.damage:
            self.damage = row["message"]
            self.report.say("failed", self.damage)

    def add(self, row):
        if self.again and not self.report.replaces(row):
            return
        if "DamagedPackage: " in row.get("message", ""):
            self._tell_damage(row)
        if row["status"] == "absent":
            row["status"] = "skipped"
        if "killed by signal 9" in row.get("message", "") and self.clock.part_left() < 0.1:
            # The watchdog did that.
            row["status"] = "late"
        super().add(row)

    def ask(self, do, seconds=60, environment=None, **request):
        """The reply of a process that measures; it is started again after an error.

        Programs alone run in a process without PyTorch, which takes seconds to start. The profiler slows down all that
        runs after it, and has a process of its own. With an `environment` of its own the process is another one, which
        ends with the reply.
        """
        key = {"probe.run": "", "profiler.trace": "profiler", "profiler.load": "profiler"}.get(do, "torch")
        if not environment and not self._is_loaded(key, seconds):
            return {"status": "late", "message": f"the process is still being loaded after {seconds:.0f} s"}
        with_torch = "1" if key else ""
        if environment or key not in self._probes:
            variables = FOR_PEERS | {WITH_TORCH: with_torch} | (environment or {})
            # PyTorch gets its libraries from where it always does.
            variables["LD_LIBRARY_PATH"] = os.environ.get("LD_LIBRARY_PATH", "")
            log = f"probe-{key}.log" if key else "probe.log"
            probe = self._worker(self.script("probe"), self.environment(1, **variables), log)
            if not environment:
                self._probes[key] = probe
        else:
            probe = self._probes[key]
        reply = probe(request | {"do": do, "target": self.target}, min(seconds, self.clock.part_left()))
        if environment or reply["status"] in ("error", "late"):
            # A device may be of no use to a process after an error.
            probe.kill()
        if trace := reply.pop("trace", None):
            self.report.add_log(f"{do} {request.get('entry', {}).get('name', '')}", trace)
        return reply

    def has_process(self, key):
        """Whether the process of `close_probe` runs, and need not be started."""
        return key in self._probes and self._probes[key].is_running

    def close_probe(self, *keys):
        """The next measurement has a process of its own: nothing of an earlier one is on the device.

        `keys` are "" for programs alone, "torch" and "profiler"; without any, all processes end.
        """
        for key, probe in self._probes.items():
            if not keys or key in keys:
                probe.kill()

    def warm_up(self, parts, seconds=WARM_UP_SECONDS):
        """Begins to load PyTorch, which takes seconds of reading from the disk, and to ask for versions.

        So does the process for the profiler, where one of `parts` uses it.
        """

        def ask_versions():
            self.versions = self.ask("ceilings.versions", seconds)

        threads = {"torch": ask_versions}
        if set(parts) & PROFILED:
            threads["profiler"] = lambda: self.ask("profiler.load", seconds)
        if self.on_gpu:
            self._warming = {key: threading.Thread(target=ask, daemon=True) for key, ask in threads.items()}
            for thread in self._warming.values():
                thread.start()

    def _is_loaded(self, key, seconds):
        """Waits until `warm_up` does not ask the process any more, which answers one request at a time."""
        thread = self._warming.get(key)
        if not thread or thread is threading.current_thread():
            return True
        thread.join(min(seconds, self.clock.part_left()))
        return not thread.is_alive()

    def wait_for_warm_up(self, seconds=WARM_UP_SECONDS + 5):
        if thread := self._warming.get("torch"):
            thread.join(seconds)

    def measure(self, entry, program, autotune=False, repetitions=50, seconds=60, **options):
        """Time of a program whose results are right: what `probe.run` replies."""
        options = {"warm_up": 10, **options}
        if self.smoke:
            options |= {"warm_up": 0}
        return self.ask(
            "probe.run", seconds, entry=entry, program=program, autotune=autotune and self.on_gpu,
            repetitions=self.iterations(repetitions), **options,
        )  # fmt: skip

    def input_flags(self, entry, program):
        """Flags of dovetail-run for the entry's inputs, which are saved once."""
        key = entry["name"], program.get("dtype")
        if key not in self._saved:
            self._saved[key] = flags = []
            for index, (name, value) in enumerate(inputs.generate(entry, program.get("dtype")).items()):
                file = self.package.restored / f"{key[0]}-{key[1]}-{index}.npy"
                np.save(file, value)
                flags += ["--input", f"{name}=@{file}"]
        return self._saved[key]

    def bench(self, entry, program, iterations, flags=(), **environment):
        """What `dovetail-run bench --json` says. BenchError with the status of a row and a message."""
        path = self.package.path(program["file"])
        command = ["bench", path, "--json", "--iterations", iterations, "--warmup", max(2, iterations // 5), *flags]
        command += self.input_flags(entry, program)
        code, output, message = self.call(command, self.clock.part_left(), gpus=1, **environment)
        if code != 0:
            raise BenchError("late" if code is None else "error", message or f"exit code {code}")
        return json.loads(output)

    def find_tool(self, name):
        """The path of a tool of CUDA, or None."""
        return find_tool(name)

    def end_all(self):
        self.processes.kill_all()
        # They have an answer now.
        for thread in self._warming.values():
            thread.join(5)
        self.close_probe()
        self.close_workers()
        self.processes.kill_all()
