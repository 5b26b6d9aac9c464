#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the node tests of the ONNX package, whole and with a dimension split unevenly, one in turn, or with DOVETAIL_ALL=1
each of them.

    run.py                     all of them; prints what fails and counts what is unsupported
    run.py test_conv test_add  those whose name contains one of the words
    run.py --update            and writes unsupported.txt anew
    run.py --target emulated   with kernels for devices, on the emulated device

A test is unsupported if the compiler exits with code 5 and its message says which operator, tensor or model it does not
take, and why. unsupported.txt lists those, with the reason. It is a failure too if a test that is listed passes, or if
one is refused that is not listed or for another reason, so that the list stays true.
"""

import argparse
import collections
import dataclasses
import os
import pathlib
import re
import sys
import time
import zlib

_TEST = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TEST / p) for p in ("", "models", "e2e", "conformance")]

import node_tests  # noqa: E402
from harness import backend as backends  # noqa: E402
from harness.cpus import cpu_in_turn  # noqa: E402
from harness.extent import some  # noqa: E402
from harness.isolated import IsolatedPool  # noqa: E402

UNSUPPORTED_LIST = pathlib.Path(__file__).with_name("unsupported.txt")
PASSED, FAILED, UNSUPPORTED = "passed", "FAILED", "unsupported"


@dataclasses.dataclass
class Outcome:
    name: str
    status: str
    message: str = ""
    partitions: int = 0


def evaluate(request):
    """Runs one test, (name, target), on every partition; stops at the first failure. Runs in a worker.

    For target cpu, partitions take turns at the CPUs that the host can stand for, beginning with another one in each test.
    """
    name, target = request
    test = node_tests.load(name)
    backend = backends.fastest_backend()
    if backend is None:
        raise RuntimeError(f"no compiler in {backends.build_dir()}: run `make build`")
    first = zlib.crc32(name.encode())
    whole, *split = node_tests.partitions(test).items()
    partitions = dict([whole, *some(split, first, 1)])
    for number, (label, partition) in enumerate(partitions.items()):
        cpu = cpu_in_turn(first + number) if target == "cpu" else "native"
        try:
            actual = backend.compile_and_run(
                test.model,
                partition,
                test.inputs,
                list(test.expected),
                libraries=target == "cpu",
                extra=[*node_tests.static_shapes(test), "--target", target, "--cpu", cpu],
            )
        except backends.BackendError as error:
            refused = error.phase == "compile" and error.code == backends.UNSUPPORTED
            reason = unsupported_reason(error.message) if refused and label == "whole" else None
            if reason:
                return Outcome(name, UNSUPPORTED, reason)
            return Outcome(name, FAILED, f"{label}, --cpu {cpu}: {error}")
        if not test.expected:
            return Outcome(name, FAILED, "compiles, though its values are not tensors")
        found = node_tests.difference(test, actual)
        if found:
            return Outcome(name, FAILED, f"{label} ({partition} --cpu {cpu}): {found}")
    return Outcome(name, PASSED, partitions=len(partitions))


#: How the compiler lists what it cannot import; see test/Import/unsupported.onnxtxt.
_NODE = re.compile(r"(?:node|nodes, the first) '.*?': (\w+) of domain '([\w.]+)', opset \d+, on \(.*\): (.*)")
_OTHER = re.compile(r"(input|initializer|model)(?:s, the first)? '[^']*':? (.*)")


def unsupported_reason(message):
    """What a refusal says for each operator, tensor or model, without names; None if it names none."""
    reasons = set()
    for line in message.splitlines():
        if match := _NODE.search(line):
            domain = "" if match[2] == "ai.onnx" else f"{match[2]}."
            reasons.add(f"{domain}{match[1]}: {match[3]}")
        elif match := _OTHER.search(line):
            reasons.add(f"{match[1]} {match[2]}")
    return "; ".join(sorted(reasons)) or None


def workers(count):
    """Evaluates tests in worker processes; a crash is the failure of one test."""
    return IsolatedPool(evaluate, lambda request, message: Outcome(request[0], FAILED, message), count)


def known_unsupported():
    """The tests in unsupported.txt, and the reason for each."""
    reasons, reason = {}, ""
    for line in UNSUPPORTED_LIST.read_text().splitlines() if UNSUPPORTED_LIST.exists() else ():
        if line.startswith("#"):
            reason = line[1:].strip()
        elif line:
            reasons[line] = reason
    return reasons


def judge(outcome, known):
    """The outcome, or a failure if it is not what the list `known` says."""
    reason = known.get(outcome.name)
    if outcome.status == PASSED and reason:
        return dataclasses.replace(outcome, status=FAILED, message="passes, though unsupported.txt lists it")
    if outcome.status == UNSUPPORTED and outcome.message != reason:
        message = f"{outcome.message}: unsupported.txt " + (f"says '{reason}'" if reason else "does not list it")
        return dataclasses.replace(outcome, status=FAILED, message=message)
    return outcome


def _write_list(outcomes):
    """One group of tests for each reason."""
    groups = collections.defaultdict(list)
    for outcome in outcomes:
        if outcome.status == UNSUPPORTED:
            groups[outcome.message].append(outcome.name)
    count = sum(map(len, groups.values()))
    lines = [
        f"# {count} of the {len(outcomes)} node tests of the ONNX package are not supported, for these reasons.",
        "# Written by run.py --update.",
    ]
    for reason, names in sorted(groups.items()):
        lines += ["", f"# {reason}", *sorted(names)]
    UNSUPPORTED_LIST.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only tests whose name contains one of these")
    parser.add_argument("--update", action="store_true", help="writes unsupported.txt anew")
    parser.add_argument("--target", default="cpu", help="what to compile for: cpu (default), emulated")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (default: one for each CPU)")
    arguments = parser.parse_args()
    if arguments.update and (arguments.words or arguments.target != "cpu"):
        parser.error("--update needs all tests, on target cpu")
    names = node_tests.names()
    if arguments.words:
        names = [n for n in names if any(word in n for word in arguments.words)]
    outcomes, start, pool = [], time.monotonic(), workers(arguments.workers)
    known = known_unsupported()
    for done, outcome in enumerate(pool.map([(name, arguments.target) for name in names]), 1):
        if sys.stderr.isatty():
            print(f"\r{done}/{len(names)}", end="", file=sys.stderr, flush=True)
        outcome = outcome if arguments.update else judge(outcome, known)
        outcomes.append(outcome)
        if outcome.status == FAILED or (outcome.status == UNSUPPORTED and arguments.words):
            print(f"{outcome.status}: {outcome.name}: {outcome.message}", flush=True)
    pool.close()
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
