#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the node tests of the ONNX package, whole and with every dimension split unevenly.

    run.py                     all of them; prints what fails and counts what is unsupported
    run.py test_conv test_add  those whose name contains one of the words
    run.py --update            and writes unsupported.txt anew

A test is unsupported if the compiler exits with code 5 and its message names the operator.
unsupported.txt lists those, with the reason; a test that is listed and passes is a failure too, so
that the list stays true.
"""

import argparse
import collections
import dataclasses
import pathlib
import sys
import time

_TEST = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TEST / p) for p in ("", "models", "e2e", "conformance")]

import node_tests  # noqa: E402
from harness import backend as backends  # noqa: E402
from harness.isolated import Crash, IsolatedFunction, WorkerError  # noqa: E402

UNSUPPORTED_LIST = pathlib.Path(__file__).with_name("unsupported.txt")
PASSED, FAILED, UNSUPPORTED = "passed", "FAILED", "unsupported"


@dataclasses.dataclass
class Outcome:
    name: str
    status: str
    message: str = ""
    partitions: int = 0


def evaluate(name):
    """Runs one test on every partition; stops at the first failure. Runs in a worker."""
    try:
        test = node_tests.load(name)
    except node_tests.NotTensors as reason:
        return Outcome(name, UNSUPPORTED, str(reason))
    backend = backends.default_backend()
    if backend is None:
        raise RuntimeError(f"no compiler in {backends.build_dir()}: run `make build`")
    partitions = node_tests.partitions(test)
    for label, partition in partitions.items():
        try:
            actual = backend.compile_and_run(
                test.model,
                partition,
                test.inputs,
                list(test.expected),
                extra=node_tests.static_shapes(test),
            )
        except backends.BackendError as error:
            if label == "whole" and _is_unsupported(error, test):
                return Outcome(name, UNSUPPORTED, _reason(error))
            return Outcome(name, FAILED, f"{label}: {error}")
        found = node_tests.difference(actual, test.expected)
        if found:
            return Outcome(name, FAILED, f"{label} ({partition}): {found}")
    return Outcome(name, PASSED, partitions=len(partitions))


def _is_unsupported(error, test):
    """Exit code 5 with a message that names an operator, or the tensor whose type is the reason."""
    if error.phase != "compile" or error.code != backends.UNSUPPORTED:
        return False
    graph = test.model.graph
    things = [*test.ops, *(i.name for i in graph.input), *(o.name for o in graph.output)]
    return any(thing in error.message for thing in things)


def _reason(error):
    lines = [line for line in error.message.splitlines() if "error" in line] or [error.message]
    return lines[0].split("error: ", 1)[-1].strip()


class Runner:
    """Evaluates tests one at a time in a worker process."""

    def __init__(self):
        self._evaluate = IsolatedFunction(evaluate, timeout=600)

    def __call__(self, name):
        try:
            return self._evaluate(name)
        except (Crash, WorkerError) as error:
            return Outcome(name, FAILED, str(error))

    def close(self):
        self._evaluate.close()


def known_unsupported():
    """Names in unsupported.txt."""
    if not UNSUPPORTED_LIST.exists():
        return set()
    lines = UNSUPPORTED_LIST.read_text().splitlines()
    return {line.split()[0] for line in lines if line and not line.startswith("#")}


def _write_list(outcomes):
    unsupported = [o for o in outcomes if o.status == UNSUPPORTED]
    width = max((len(o.name) for o in unsupported), default=0)
    lines = [
        f"# {len(unsupported)} of {len(outcomes)} node tests of the ONNX package are unsupported.",
        "# Written by run.py --update: the test, then the compiler's reason.",
        *(f"{o.name:<{width}}  {o.message}" for o in unsupported),
    ]
    UNSUPPORTED_LIST.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only tests whose name contains one of these")
    parser.add_argument("--update", action="store_true", help="writes unsupported.txt anew")
    arguments = parser.parse_args()
    if arguments.update and arguments.words:
        parser.error("--update needs all tests")
    names = node_tests.names()
    if arguments.words:
        names = [n for n in names if any(word in n for word in arguments.words)]
    outcomes, start, run = [], time.monotonic(), Runner()
    for name in names:
        outcome = run(name)
        outcomes.append(outcome)
        if outcome.status == FAILED or (outcome.status == UNSUPPORTED and arguments.words):
            print(f"{outcome.status}: {name}: {outcome.message}", flush=True)
    run.close()
    if arguments.update:
        _write_list(outcomes)
    counts = collections.Counter(o.status for o in outcomes)
    print(
        f"{counts[PASSED]} passed with {sum(o.partitions for o in outcomes)} partitions, "
        f"{counts[FAILED]} failed, {counts[UNSUPPORTED]} unsupported of {len(names)} "
        f"({time.monotonic() - start:.0f} s)"
    )
    return 1 if counts[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
