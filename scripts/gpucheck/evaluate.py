# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program in this process and compares what comes out. The requests of a worker."""

import time

import numpy as np


def _soiled(value):
    return np.full_like(value, np.nan) if value.dtype.kind == "f" else np.flip(value)


def verdict(actual, expected, tolerance, floor=0.0, math="f32"):
    """What a row of a table says about one run.

    With f32 no element may be off by more than `tolerance` of the largest value, as in the test suite. TF32 rounds
    factors, which moves single elements where a model is steep: there `tolerance` is for the whole of an output,
    the norm of what differs over the norm of what is expected.
    """
    from harness.compare import differences, largest_relative_difference, relative_distance

    if not expected:
        return {"status": "error", "message": "the package expects no outputs: nothing is compared", "error": None}
    measure = largest_relative_difference if math == "f32" else relative_distance
    comparable = lambda n, v: n in actual and actual[n].shape == v.shape and v.dtype.kind == "f"
    errors = {name: measure(actual[name], value) for name, value in expected.items() if comparable(name, value)}
    found = differences(actual, expected, tolerance if math == "f32" else np.inf, floor)
    for name, error in errors.items():
        if not found and math != "f32" and error > tolerance:
            found = f"{name}: off by {error:.3g} of its norm, limit {tolerance:.3g}"
    # NaN is no JSON.
    error = max((e for e in errors.values() if np.isfinite(e)), default=None)
    return {"status": "differs" if found else "ok", "message": found or "", "error": error}


def evaluate(package, request):
    """Runs `request["program"]` three times: devices record work in the second run, and replay it in the third.

    Before the last, inputs of NaN leave NaN in all memory: the results must not depend on what was there.
    """
    import dovetail

    inputs, expected = package.arrays(request["arrays"])
    start = time.monotonic()
    try:
        program = dovetail.Program.load(package.path(request["program"]))
        soiled = {name: _soiled(value) for name, value in inputs.items()}
        for run, values in (("first run", inputs), ("second run", inputs), (None, soiled), ("replay", inputs)):
            actual = program.run(values, request.get("threads", 1))
            if run is None:
                continue
            result = verdict(actual, expected, request["tolerance"], request["floor"], request["math"])
            if result["status"] != "ok":
                result["message"] = f"{run}: {result['message']}"
                break
    except dovetail.DovetailError as error:
        result = {"status": "error", "message": str(error), "code": error.code}
    return result | {"seconds": time.monotonic() - start}
