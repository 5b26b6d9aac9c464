# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPUs that tests generate code for, and what a test needs to run: machines differ in what they make of the same code.

A test that runs code for a CPU says so by `needs_cpu`, or takes its parameters from `cpu_parameters`. pytest skips it where
the CPU is not at hand. DOVETAIL_MAX_CPU limits tests as it limits the programs that they run.
"""

import functools
import os
import pathlib

import pytest

from harness.backend import build_dir
from harness.sanitizers import sanitizers

#: What each level adds, as Linux names it.
LEVELS = {
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"},
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
#: What DOVETAIL_MAX_CPU=x86-64-v4 excludes of what generated code or libraries use.
BEYOND_LEVELS = {"avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "avx_vnni"}

#: Linked for on every machine, run on none: the oldest supported; AVX2 without AVX-512; AVX-512 alone, with bf16, with
#: f16 and matrices, in Intel's and AMD's way.
LINKED_CPUS = ("x86-64-v2", "haswell", "skylake-avx512", "sapphirerapids", "znver4", "znver5")


@functools.cache
def _flags():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split())
    return set()


def limit():
    """The level that DOVETAIL_MAX_CPU names, or None."""
    value = os.environ.get("DOVETAIL_MAX_CPU") or None
    assert value is None or value in LEVELS, f"DOVETAIL_MAX_CPU={value}: there are {', '.join(LEVELS)}"
    return value


def _levels():
    """The levels that the machine has and DOVETAIL_MAX_CPU allows, the lowest first."""
    for level, flags in LEVELS.items():
        if not flags <= _flags():
            return
        yield level
        if level == limit():
            return


def can_run(cpu):
    """Whether programs for this CPU, "native" or a level, run here."""
    return cpu == "native" or cpu in _levels()


def needs_cpu(cpu):
    """Skips a test, a parameter, or as `pytestmark` all tests of a file, where code for `cpu` does not run."""
    return pytest.mark.skipif(not can_run(cpu), reason=f"needs a CPU that runs code for {cpu}")


def cpu_parameters(*cpus):
    """Parameters of a test that runs code for each of these CPUs: those that are not at hand are skipped."""
    return [pytest.param(cpu, marks=needs_cpu(cpu)) for cpu in cpus]


def cpu_up_to(cpu):
    """`cpu`, or the host's where code for `cpu` does not run: for tests that need the same on machines that have it."""
    return cpu if can_run(cpu) else "native"


@functools.cache
def runnable_cpus():
    """As --cpu takes them, the host's own first. Sanitizers see nothing of kernels, and need only that one."""
    if sanitizers(build_dir()):
        return ("native",)
    return ("native", *(cpu for cpu in ("x86-64-v3", "x86-64-v4") if can_run(cpu)))


def cpu_in_turn(number):
    """One of `runnable_cpus()` for the case with this number: where running every case for each would take too long."""
    return runnable_cpus()[number % len(runnable_cpus())]


def levels_below_host():
    """The levels that DOVETAIL_MAX_CPU can stand for and that make a difference, the lowest first."""
    levels = list(_levels())
    if levels and levels[-1] == "x86-64-v4" and _flags() & BEYOND_LEVELS:
        return levels
    return levels[:-1]


if __name__ == "__main__":
    # For scripts/on-lesser-cpus.
    print(*levels_below_host())
