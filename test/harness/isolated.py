# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls a function in a worker process, so that a crash or a hang is the failure of one call."""

import concurrent.futures
import multiprocessing
import queue
import signal
import traceback


class Crash(Exception):
    """The worker died, or did not answer in time."""


class WorkerError(Exception):
    """The function raised an exception; the message is its traceback."""


def _serve(connection, function):
    while True:
        argument = connection.recv()
        try:
            connection.send((True, function(argument)))
        except Exception:
            connection.send((False, traceback.format_exc()))


class IsolatedFunction:
    """`function` must be importable by name. One call at a time; the worker lives on between calls."""

    def __init__(self, function, timeout=120):
        self.function = function
        self.timeout = timeout
        self.process = None

    def __call__(self, argument):
        if self.process is None:
            self._start()
        self.connection.send(argument)
        try:
            if not self.connection.poll(self.timeout):
                self.close()
                raise Crash(f"no answer within {self.timeout} s")
            succeeded, result = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            self.process = None
            raise Crash(_death(code)) from None
        if not succeeded:
            raise WorkerError(result)
        return result

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.function), daemon=True)
        self.process.start()
        theirs.close()

    def close(self):
        """Ends the worker. The next call starts another."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


class IsolatedPool:
    """Several workers of one function, called from as many threads.

    A call whose worker is lost, or that raises an exception, results in `lost(argument, message)`.
    """

    def __init__(self, function, lost, count=1, timeout=120):
        self._lost = lost
        self._idle = queue.Queue()
        for _ in range(count):
            self._idle.put(IsolatedFunction(function, timeout))
        self._threads = concurrent.futures.ThreadPoolExecutor(count)

    def __call__(self, argument):
        worker = self._idle.get()
        try:
            return worker(argument)
        except Crash as error:
            return self._lost(argument, f"the process was lost: {error}")
        except WorkerError as error:
            return self._lost(argument, str(error))
        finally:
            self._idle.put(worker)

    def map(self, arguments):
        """The results of calls at the same time, in order."""
        return self._threads.map(self, arguments)

    def close(self):
        self._threads.shutdown()
        while not self._idle.empty():
            self._idle.get().close()


def _death(code):
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exited with {code}"
