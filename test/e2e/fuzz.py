#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damages models, their text and weights, arrays and command lines at random: no damage may crash or hang a tool.

    fuzz.py --count 5000              new attacks, from a random first seed
    fuzz.py --seed 4711 --count 1     one attack again; --keep DIR writes its files
    fuzz.py --kind model              one kind of attack

Works best on a build with sanitizers: DOVETAIL_BUILD_DIR=build/asan.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / p) for p in ("", "models", "e2e")]

import attacks  # noqa: E402
from harness import backend as backends  # noqa: E402

#: What an attack may end in. Success is one of them: damage may leave a file good.
CODES = {
    "compile": {0, 2, 3, 4, 5, 6},
    "run": {0, 2, 3, 6},
}
#: What no output may hold, whatever the exit code.
ALARM = re.compile(r"Sanitizer|runtime error:|Assertion|LLVM ERROR|UNREACHABLE|terminate called|Stack dump|internal error")
TIMEOUT = 120


@dataclasses.dataclass
class Outcome:
    """`problem` is empty if the tools did as they should."""

    seed: int
    kind: str
    code: int
    problem: str
    command: str
    messages: str


def judge(command, code, messages):
    """What is wrong about how a command ended, or an empty text."""
    if ALARM.search(messages):
        return "alarm"
    if code not in CODES[command]:
        return f"exit code {code}"
    if code and "error: " not in messages:
        return f"exit code {code} without a message"
    return ""


def run_attack(seed, kind=None, keep=None):
    """Carries out one attack in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="dovetail-fuzz-") as name:
        attack = attacks.make(seed, kind, pathlib.Path(name))
        code, messages, problem = 0, "", ""
        for command in attack.commands:
            try:
                tool = backends.tool("dovetail-run" if command[0] == "run" else "dovetail")
                code, _, messages = backends.call([tool, *command], TIMEOUT, cwd=name)
                problem = judge(command[0], code, messages)
            except subprocess.TimeoutExpired:
                code, messages, problem = -1, "", f"no end after {TIMEOUT} s"
            if problem or code:
                break
        if problem and keep:
            folder = pathlib.Path(keep) / f"{attack.kind}-{seed}"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(name, folder, symlinks=True)
            (folder / "messages").write_text(f"{' '.join(map(repr, command))}\n{problem}\n{messages}")
        return Outcome(seed, attack.kind, code, problem, " ".join(command), messages)


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="the first seed (default: random)")
    parser.add_argument("--count", type=int, default=1000, help="how many seeds (default: 1000)")
    parser.add_argument("--kind", choices=sorted(attacks.KINDS), help="only this kind of attack")
    parser.add_argument("--keep", metavar="DIR", help="writes the files of attacks that succeed there")
    parser.add_argument("--workers", type=int, default=2, help="attacks at a time (default: 2)")
    return parser.parse_args()


def main():
    arguments = _arguments()
    first = secrets.randbelow(10**9) if arguments.seed is None else arguments.seed
    print(f"seeds {first} to {first + arguments.count - 1}", flush=True)
    start, codes, problems = time.monotonic(), collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
        seeds = range(first, first + arguments.count)
        for outcome in pool.map(lambda seed: run_attack(seed, arguments.kind, arguments.keep), seeds):
            codes[outcome.kind, outcome.code] += 1
            if outcome.problem:
                problems += 1
                text = "\n    ".join(outcome.messages.splitlines()[:12])
                print(f"seed {outcome.seed}, {outcome.kind}: {outcome.problem}: {outcome.command}\n    {text}", flush=True)
    for (kind, code), count in sorted(codes.items()):
        print(f"{kind}: exit code {code}: {count}")
    print(f"{arguments.count} attacks, {problems} problems ({time.monotonic() - start:.0f} s)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
