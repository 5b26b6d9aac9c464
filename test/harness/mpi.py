# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose ranks are processes that mpirun starts."""

import functools
import os
import shutil
import subprocess
import tempfile

from harness.backend import build_dir, tool
from harness.sanitizers import sanitizers, without_preload

TIMEOUT = 300


@functools.cache
def missing():
    """Why there is nothing to test; empty if there is."""
    if not shutil.which("mpirun"):
        return "there is no mpirun on this machine"
    if not (build_dir() / "lib" / "libdovetail_transport_mpi.so").exists():
        return "the build has no transport mpi"
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    return "" if "Open MPI" in version else "the flags are those of Open MPI's mpirun"


def command(ranks, *programs, flags=()):
    """What starts `ranks` processes of a program, or one process of each of several."""
    line = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", *flags]
    for index, program in enumerate(programs):
        line += [":"] if index else []
        line += ["-n", ranks if len(programs) == 1 else 1, *program]
    return [str(part) for part in line]


def run_program(*arguments, comm="mpi"):
    """`dovetail-run` as one of several ranks."""
    return [tool("dovetail-run"), *arguments, "--comm", comm]


def environment(**more):
    found = {name: value for name, value in without_preload().items() if not name.startswith(("OMPI_", "PMIX_"))}
    if "address" in sanitizers(build_dir()):
        # Open MPI leaks in components that it has unloaded by then, so that no suppression can name them.
        found["ASAN_OPTIONS"] = "detect_leaks=0"
    # Open MPI's own files of a session have a place of their own.
    return found | {"TMPDIR": tempfile.gettempdir()} | more


def start(line, **more):
    return subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment(**more),
        start_new_session=True,
    )


def finish(process, timeout=TIMEOUT):
    """(exit code, standard output, standard error)."""
    try:
        output, messages = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        raise
    return process.returncode, output, messages


def call(line, timeout=TIMEOUT, **more):
    return finish(start(line, **more), timeout)
