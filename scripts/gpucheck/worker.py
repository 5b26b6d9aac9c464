# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that answers requests, one JSON text a line, so that a crash or a hang is the failure of one request."""

import json
import os
import select
import subprocess
import sys
import time
import traceback

from .processes import PATIENCE, kill_group, wait_for


def serve(answer):
    """Answers the requests on standard input until it ends. What else is printed goes to standard error."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:
            reply = {"status": "error", "message": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        replies.write(json.dumps(reply) + "\n")


class Worker:
    """Starts `command` when it is needed, as one of `processes`, and again after it was lost."""

    def __init__(self, command, environment, log, processes):
        self._command, self._environment, self._log = command, environment, log
        self._processes = processes
        self._process = None
        self._pending = b""

    def __call__(self, request, timeout):
        """The reply; {"status": "error"} when the process died, "late" without an answer within `timeout` seconds."""
        if not self.is_running:
            # A watchdog may have ended it between two requests.
            self._process = None
            self._start()
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._read_line(time.monotonic() + timeout)
        except BrokenPipeError:
            line = b""
        if line is None:
            self.kill()
            return {"status": "late", "message": f"no answer within {timeout:.0f} s"}
        if not line:
            return {"status": "error", "message": self._death()}
        return json.loads(line)

    @property
    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def _start(self):
        with open(self._log, "ab") as log:
            self._process = self._processes.start(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=self._environment
            )
        self._pending = b""

    def _read_line(self, deadline):
        """A line; nothing at the end of the process, None when time is over."""
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return None
            data = os.read(descriptor, 1 << 16)
            if not data:
                return b""
            self._pending += data
        line, self._pending = self._pending.split(b"\n", 1)
        return line

    def _death(self):
        process, self._process = self._process, None
        code = wait_for(process)
        if code is None:
            return f"the process has closed its output and does not end within {PATIENCE} s"
        with open(self._log, "rb") as log:
            said = log.read()[-2000:].decode(errors="replace").strip()
        how = f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
        return f"the process {how}: {said}"

    def close(self, timeout=60):
        """Ends the process in order; returns its exit code, None when it was not running or had to be killed."""
        if self._process is None:
            return None
        self._process.stdin.close()
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        finally:
            self._process = None

    def kill(self):
        if self._process is not None:
            # A tool starts the program as a process of its own.
            kill_group(self._process)
            wait_for(self._process)
            self._process = None
