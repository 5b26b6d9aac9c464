# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPUs that kernels are generated for in tests: machines differ in what they make of the same code."""

import functools
import pathlib

from harness.backend import build_dir
from harness.sanitizers import sanitizers

#: What a CPU must have, as Linux names it, to run code for these.
_V3 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
_NEEDED = {"x86-64-v3": _V3, "x86-64-v4": _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}

#: Linked for on every machine, run on none: the oldest supported; AVX2 without AVX-512; AVX-512 alone, with bf16, with
#: f16 and matrices, in Intel's and AMD's way.
LINKED_CPUS = ("x86-64-v2", "haswell", "skylake-avx512", "sapphirerapids", "znver4", "znver5")


@functools.cache
def runnable_cpus():
    """As --cpu takes them, the host's own first. Sanitizers see nothing of kernels, and need only that one."""
    if sanitizers(build_dir()):
        return ("native",)
    flags = set()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            flags = set(line.split())
            break
    return ("native", *(cpu for cpu, needed in _NEEDED.items() if needed <= flags))


def cpu_in_turn(number):
    """One of `runnable_cpus()` for the case with this number: where running every case for each would take too long."""
    return runnable_cpus()[number % len(runnable_cpus())]
