#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs random single operators, partitioned at random, against ONNX Runtime.

    random_ops.py --count 10000               new cases, from a random first seed
    random_ops.py --seed 4711 --count 1       one case again
    random_ops.py --op Conv --count 500       one operator
    random_ops.py --fixed                     the fixed cases
    random_ops.py --cpu x86-64-v3             code generated for another CPU than the host's
    DOVETAIL_MAX_CPU=x86-64-v3 random_ops.py  as on an older CPU: kernels of the runtime, too
    random_ops.py --oracle-only               checks the generators themselves: no compiler needed
"""

import argparse
import collections
import dataclasses
import pathlib
import secrets
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / p) for p in ("", "models", "e2e")]

from cases import ABSOLUTE_TOLERANCE, fixed_cases, random_case, subject  # noqa: E402
from harness import backend as backends  # noqa: E402
from harness.compare import differences, round_ties_alike  # noqa: E402
from harness.isolated import IsolatedPool  # noqa: E402
from harness.oracle import run_reference  # noqa: E402

PASSED, FAILED, UNSUPPORTED = "passed", "FAILED", "unsupported"


@dataclasses.dataclass
class Request:
    """Which case to run: a seed (with an operator), or the name of a fixed case; and which CPUs to generate code for."""

    seed: int | None = None
    op: str | None = None
    fixed: str | None = None
    target: str = "cpu"
    cpus: tuple = ("native",)
    oracle_only: bool = False
    keep: str | None = None

    def case(self):
        return fixed_cases()[self.fixed] if self.fixed else random_case(self.seed, self.op)


@dataclasses.dataclass
class Outcome:
    status: str
    op: str
    case: str
    message: str = ""


def evaluate(request):
    """Makes the case, runs it on the oracle and on the backend, and compares. Runs in a worker."""
    case = request.case()
    expected = case.expected()
    if request.oracle_only:
        outcome = _compare_oracles(case, expected)
    else:
        outcome = _compare_backends(case, expected, request)
    if outcome.status == FAILED and request.keep:
        folder = pathlib.Path(request.keep) / case.name.replace(" ", "-")
        backends.keep(folder, case.model, case.inputs, expected, case.partition)
    return outcome


def _compare_backends(case, expected, request):
    for cpu in request.cpus:
        flags = ["--target", request.target, "--cpu", cpu]
        outcome = _compare_backend(case, expected, request.target, flags)
        if outcome.status != PASSED:
            return dataclasses.replace(outcome, case=f"{outcome.case} --cpu {cpu}")
    return outcome


def _compare_backend(case, expected, target, flags):
    op = subject(case.model.graph.node).op_type
    backend = backends.fastest_backend() if target == "cpu" else backends.replaying_backend()
    if backend is None:
        raise RuntimeError(f"no compiler in {backends.build_dir()}: run `make build`")
    # Libraries are those of real devices.
    libraries = case.libraries and target == "cpu"
    try:
        actual = backend.compile_and_run(
            case.model, case.partition, case.inputs, list(expected), libraries, flags
        )
    except backends.BackendError as error:
        unsupported = error.phase == "compile" and error.code == backends.UNSUPPORTED
        return Outcome(UNSUPPORTED if unsupported else FAILED, op, str(case), str(error))
    expected = {n: round_ties_alike(v, actual.get(n), case.unrounded.get(n)) for n, v in expected.items()}
    found = differences(actual, expected, case.tolerance, ABSOLUTE_TOLERANCE)
    return Outcome(FAILED if found else PASSED, op, str(case), found or "")


def _compare_oracles(case, expected):
    op = subject(case.model.graph.node).op_type
    try:
        actual = run_reference(case.model, case.inputs)
        found = differences(actual, expected, case.tolerance, ABSOLUTE_TOLERANCE)
    except Exception as error:  # The reference evaluator has gaps of its own.
        found = f"reference: {type(error).__name__}: {error}"
    return Outcome(FAILED if found else PASSED, op, str(case), found or "")


def _lost(request, message):
    return Outcome(FAILED, request.fixed or request.op or "?", str(request), message)


def workers(count):
    """Evaluates requests in worker processes; a crash is the failure of one request."""
    return IsolatedPool(evaluate, _lost, count)


def _arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="the first seed (default: random)")
    parser.add_argument("--count", type=int, default=500, help="how many seeds (default: 500)")
    parser.add_argument("--op", help="only this operator")
    parser.add_argument("--target", default="cpu", help="cpu, or emulated: blocks of threads, as on a GPU")
    parser.add_argument("--cpu", default="native", help="what to generate code for, as the compiler takes it")
    parser.add_argument("--fixed", action="store_true", help="the fixed cases instead")
    parser.add_argument("--keep", metavar="DIR", help="writes the files of failing cases there")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--list", action="store_true", help="only print the cases")
    parser.add_argument(
        "--oracle-only", action="store_true", help="ONNX Runtime against the ONNX reference"
    )
    return parser.parse_args()


def _requests(arguments):
    common = dict(target=arguments.target, cpus=(arguments.cpu,), oracle_only=arguments.oracle_only, keep=arguments.keep)
    if arguments.fixed:
        return [Request(fixed=name, **common) for name in fixed_cases()]
    first = secrets.randbelow(10**9) if arguments.seed is None else arguments.seed
    print(f"seeds {first} to {first + arguments.count - 1}")
    return [
        Request(seed=seed, op=arguments.op, **common)
        for seed in range(first, first + arguments.count)
    ]


def main():
    arguments = _arguments()
    requests = _requests(arguments)
    if arguments.list:
        for request in requests:
            print(request.case())
        return 0
    counts = collections.Counter()
    unsupported = collections.Counter()
    start = time.monotonic()
    pool = workers(arguments.workers)
    for done, outcome in enumerate(pool.map(requests), 1):
        counts[outcome.status] += 1
        if outcome.status == UNSUPPORTED:
            unsupported[outcome.op] += 1
        if outcome.status != PASSED:
            print(f"{outcome.status}: {outcome.case}\n    {outcome.message}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{done}/{len(requests)}", end="", file=sys.stderr, flush=True)
    pool.close()
    if unsupported:
        print("unsupported:", ", ".join(f"{op} ({n})" for op, n in sorted(unsupported.items())))
    print(
        f"{counts[PASSED]} passed, {counts[FAILED]} failed, {counts[UNSUPPORTED]} unsupported "
        f"({time.monotonic() - start:.0f} s)"
    )
    return 0 if counts[PASSED] == len(requests) else 1


if __name__ == "__main__":
    sys.exit(main())
