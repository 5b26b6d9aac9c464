# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that a check starts, each with a process group of its own and a limit of time."""

import contextlib
import os
import signal
import subprocess
import threading
import time


def kill_group(process):
    """Ends a process that was started with a session of its own, and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


#: Seconds in which a process ends that was killed. One that waits for a device in the kernel may never end.
PATIENCE = 5


def wait_for(process):
    """The exit code of a process that was killed, or None if it does not end within PATIENCE seconds."""
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return None


class Processes:
    """Knows the processes that run, so that another thread can end them all."""

    def __init__(self):
        self._running = set()
        self._lock = threading.Lock()

    def start(self, command, **options):
        """subprocess.Popen of `command`, in a process group of its own."""
        process = subprocess.Popen([str(part) for part in command], start_new_session=True, **options)
        with self._lock:
            self._running = {p for p in self._running if p.returncode is None} | {process}
        return process

    def run(self, command, timeout, environment=None, folder=None):
        """(exit code, output, what it said on standard error). Code None: no end within `timeout` seconds."""
        process = self.start(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
            cwd=folder, text=True, errors="replace",
        )  # fmt: skip
        try:
            output, said = process.communicate(timeout=max(0.1, timeout))
            return process.returncode, output, said
        except subprocess.TimeoutExpired:
            return None, "", f"no end within {timeout:.0f} s"
        finally:
            kill_group(process)
            wait_for(process)
            for stream in (process.stdout, process.stderr):
                stream.close()

    def kill_all(self):
        """Ends all processes. The threads that wait for them go on."""
        with self._lock:
            running = list(self._running)
        for process in running:
            # A process that was waited for has given its number back.
            if process.returncode is None:
                kill_group(process)


class Watchdog:
    """Ends all processes when a deadline has passed, whatever the main thread waits for."""

    #: Seconds after a deadline, in which the owner of a process may end it in order.
    GRACE = 3

    def __init__(self, processes, end):
        """`end` is when the check must be over, as time.monotonic() counts."""
        self._processes, self._end, self._deadline = processes, end, end
        self.fired = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def watch(self, deadline):
        """Sets the deadline of what runs now."""
        self._deadline = min(deadline + self.GRACE, self._end)

    def stop(self):
        self._over.set()
        self._thread.join()

    def _watch(self):
        while not self._over.wait(0.2):
            if time.monotonic() > self._deadline:
                self.fired += 1
                self._processes.kill_all()
