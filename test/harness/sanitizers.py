# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs of a build with sanitizers need in their environment."""

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
_SUPPRESSIONS = ROOT / "test" / "suppressions"


def _cached(build, name):
    """A setting of the build, or an empty text."""
    try:
        cache = (pathlib.Path(build) / "CMakeCache.txt").read_text()
    except OSError:
        return ""
    found = re.search(rf"^{name}:[A-Z]+=(.*)$", cache, re.MULTILINE)
    return found.group(1) if found else ""


def sanitizers(build):
    """The sanitizers that a build folder was configured with, such as {"address", "undefined"}."""
    return set(filter(None, _cached(build, "DOVETAIL_SANITIZE").split(",")))


def tool_environment(build):
    """For programs of the build."""
    environment = {}
    if "address" in sanitizers(build):
        environment["LSAN_OPTIONS"] = f"suppressions={_SUPPRESSIONS / 'lsan.txt'}:print_suppressions=0"
        environment["UBSAN_OPTIONS"] = "print_stacktrace=1"
    if "thread" in sanitizers(build):
        # Tests start ranks as forks, perhaps while a rank that hangs is left behind.
        options = "print_suppressions=0:die_after_fork=0"
        environment["TSAN_OPTIONS"] = f"suppressions={_SUPPRESSIONS / 'tsan.txt'}:{options}"
    return environment


def python_environment(build):
    """For a Python that loads the shared libraries of the build: AddressSanitizer must be there first."""
    environment = tool_environment(build)
    if "address" in sanitizers(build):
        compiler = _cached(build, "CMAKE_CXX_COMPILER")
        names = ("libclang_rt.asan-x86_64.so", "libstdc++.so.6")
        ask = lambda name: subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()
        environment["LD_PRELOAD"] = " ".join(map(ask, names))
        # Python and its packages leak; the rest is what cmake/SanitizerDefaults.cpp says for programs.
        environment["ASAN_OPTIONS"] = "detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0"
    return environment


def without_preload():
    """This process's environment, for programs that have their own sanitizer."""
    return {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "ASAN_OPTIONS")}
