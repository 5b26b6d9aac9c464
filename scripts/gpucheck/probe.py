# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs, compares and measures a timed program. The requests of the process that has PyTorch and Dovetail together."""

import importlib
import os
import statistics
import sys
import time

from . import inputs, loaded
from .evaluate import verdict


def measure(run, wait=lambda: None, repetitions=50, warm_up=10, seconds=3.0, least=5, end=float("inf")):
    """Milliseconds of runs, each from an idle device to an idle device: of `least` or more, for `seconds` or less.

    Once there is one, no run begins that would probably end after `end`, as time.monotonic() counts.
    """
    for _ in range(warm_up):
        run()
    wait()
    times, begin = [], time.perf_counter()
    while len(times) < repetitions and (len(times) < least or time.perf_counter() - begin < seconds):
        if times and time.monotonic() + max(times) > end:
            break
        start = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - start)
    return summary(times)


def summary(times):
    """What a line says of a list of seconds."""
    ms = [1000 * seconds for seconds in times]
    return {"ms": statistics.median(ms), "min_ms": min(ms), "repetitions": len(ms)}


class Absent(Exception):
    """A library that a measurement needs is not on this machine."""


def start(with_torch):
    """Before the first request: loads PyTorch, if it is wanted and installed, and then what the runtime needs."""
    try:
        if with_torch:
            import torch  # noqa: F401
    except ImportError as error:
        # Each request that needs it says so.
        print(f"PyTorch is not here: {error}", file=sys.stderr)
    loaded.remember("PyTorch")
    loaded.preload(os.environ["DOVETAIL_LIBRARY_DIR"])


def torch_on_gpu():
    """PyTorch, where it is installed and finds a GPU. Absent elsewhere."""
    try:
        import torch
    except ImportError as error:
        raise Absent(f"PyTorch is not here: {error}") from error
    if not torch.cuda.is_available():
        raise Absent(f"torch {torch.__version__} finds no GPU")
    return torch


def compare(package, entry, outputs, program):
    """The verdict about outputs of a timed program, at the places that the package has samples of."""
    is_strict = program.get("math", "f32") == "f32" and program.get("dtype", "f32") == "f32"
    expected = inputs.samples(package, entry)
    return verdict(inputs.taken(entry, outputs), expected, program["tolerance"], math="f32" if is_strict else "tf32")


class Checked:
    """A program with its inputs in place, whose first replay was compared."""

    def __init__(self, package, request):
        from dovetail._library import open_library

        from .device import Resident, driver

        self.package, self.entry, self.program = package, request["entry"], request["program"]
        target = request["target"]
        open_library("dovetail").dovetail_fill_memory(0xFF)
        if target == "cuda":
            driver().soil()
        self.values = inputs.generate(self.entry, self.program.get("dtype"))
        path = package.path(self.program["file"])
        self.resident = Resident(path, target, request.get("autotune", False), request.get("threads", 1))
        if request.get("forget"):
            package.forget(self.program["file"])
        try:
            # A device records the second run, and replays it from the third on.
            for prepare in (self.resident.soil_inputs, self.resident.put) * 2:
                prepare(self.values)
                self.resident.soil_outputs()
                self.resident.run()
            self.result = self._compared("first replay")
        except BaseException:
            self.resident.close()
            raise

    def check_again(self):
        """Compares another replay, before further measurements."""
        self.resident.soil_outputs()
        self.resident.run()
        self.result = self._compared("first replay")

    def _compared(self, when):
        result = compare(self.package, self.entry, self.resident.outputs(), self.program)
        if result["status"] != "ok":
            result["message"] = f"{when}: {result['message']}"
        return result

    def finish(self):
        """Compares one more replay, the last; returns the verdict of both."""
        if self.result["status"] != "ok":
            return self.result
        self.resident.soil_outputs()
        self.resident.run()
        last = self._compared("last replay")
        errors = [e for e in (self.result["error"], last["error"]) if e is not None]
        return last | {"error": max(errors, default=None)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.resident.close()


def run(package, request):
    """Time of one program: {"status", "ms", "min_ms", "error", "start_s", "device_bytes"}. A wrong one has no time."""
    import dovetail

    limits = {"repetitions": request.get("repetitions", 50), "seconds": request.get("seconds", 3.0)}
    limits |= {"warm_up": request.get("warm_up", 10), "least": min(request.get("least", 5), limits["repetitions"])}
    if "within" in request:
        # The last replay, which is compared, takes a part of the time, too.
        limits["end"] = time.monotonic() + 0.8 * request["within"]
    try:
        with Checked(package, request) as checked:
            times = measure(checked.resident.run, **limits) if checked.result["status"] == "ok" else {}
            found = {"start_s": checked.resident.start_s, "device_bytes": checked.resident.device_bytes}
            result = checked.finish()
    except dovetail.DovetailError as error:
        return {"status": "error", "message": str(error), "code": error.code}
    return result | found | (times if result["status"] == "ok" else {})


def answer(package, request):
    """`request["do"]` is "module.function" of this folder. A library that is not there makes the reply "absent"."""
    module, function = request["do"].split(".")
    try:
        return getattr(importlib.import_module(f"gpucheck.{module}"), function)(package, request)
    except Absent as error:
        return {"status": "absent", "message": str(error)}
