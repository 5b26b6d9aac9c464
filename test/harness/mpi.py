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


def _launcher(*names):
    return next((name for name in names if shutil.which(name)), names[-1])


#: What starts processes. Where several MPIs are installed, mpirun is that of one of them.
LAUNCHER = os.environ.get("DOVETAIL_MPIRUN") or _launcher("mpirun.openmpi", "mpirun")
#: That of MPICH, for tests that take both.
MPICH = _launcher("mpirun.mpich", "mpiexec.hydra")


@functools.cache
def is_open_mpi(launcher=LAUNCHER):
    """Whether it is Open MPI's launcher; else it is MPICH's, or of what derives from it."""
    output = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
    return "Open MPI" in output or "OpenRTE" in output


@functools.cache
def missing(launcher=LAUNCHER):
    """Why there is nothing to test; empty if there is."""
    if not shutil.which(launcher):
        return f"there is no {launcher} on this machine"
    if not (build_dir() / "lib" / f"libdovetail_mpi_{'openmpi' if is_open_mpi(launcher) else 'mpich'}.so").exists():
        return f"the build has no transport mpi for {launcher}"
    return ""


def command(ranks, *programs, sockets=False, variables=None, launcher=LAUNCHER):
    """What starts `ranks` processes of a program, or one process of each of several; `sockets`: that connect as those of
    several machines do; `variables`: of their environment."""
    variables = dict(variables or {})
    if is_open_mpi(launcher):
        line = [launcher, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        line += ["--mca", "btl", "self,tcp"] if sockets else []
        line += [part for name, value in variables.items() for part in ("-x", f"{name}={value}")]
    else:
        # MPICH's channel is UCX, or libfabric.
        variables |= {"UCX_TLS": "self,tcp", "FI_PROVIDER": "tcp"} if sockets else {}
        # Else it kills all others as soon as one ends, before they can say why or tidy up.
        line = [launcher, "-disable-auto-cleanup", *(part for name, value in variables.items() for part in ("-genv", name, value))]
    for index, program in enumerate(programs):
        line += [":"] if index else []
        line += ["-n", ranks if len(programs) == 1 else 1, *program]
    return [str(part) for part in line]


def run_program(*arguments, comm="mpi"):
    """`dovetail-run` as one of several ranks."""
    return [tool("dovetail-run"), *arguments, "--comm", comm]


def environment(**more):
    found = {name: value for name, value in without_preload().items() if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
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
