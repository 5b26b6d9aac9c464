# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes of a run that are killed or stopped: the others notice, nothing stays, and no output is half written.

DOVETAIL_FAULTS faults are tried, at random moments of a seed of their own; 6 when it is not set.
"""

import contextlib
import os
import pathlib
import random
import signal
import socket
import time

import numpy as np
import pytest
from harness import mpi
from harness.backend import SubprocessBackend, call, tool
from subjects import SMALL_SUBJECTS

pytestmark = pytest.mark.skipif(bool(mpi.missing()), reason=mpi.missing() or "nothing is missing")

RANKS = 3
FAULTS = int(os.environ.get("DOVETAIL_FAULTS", "6"))
# Heartbeats are missed for 7 s; what is left is for machines that are busy.
SECONDS = 20


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """An artifact, and its inputs as flags."""
    folder = tmp_path_factory.mktemp("faults")
    subject = next(subject for subject in SMALL_SUBJECTS if subject.name == "small-unet2d-bilinear")
    case = subject.prepared()
    partition = subject.partition({"y": RANKS}, "uneven")
    SubprocessBackend().compile(case.path, folder / "model.dvt", partition, extra=subject.flags())
    flags = []
    for index, (name, value) in enumerate(case.inputs.items()):
        np.save(folder / f"input{index}.npy", value)
        flags += ["--input", f"{name}=@{folder}/input{index}.npy"]
    return folder / "model.dvt", flags, next(iter(case.expected))


def _ranks(launcher):
    """The processes below `launcher`, or one that it has started, that are ranks, by rank."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
    found = {}
    for process, parent in parents.items():
        if launcher not in (parent, parents.get(parent)):
            continue
        with contextlib.suppress(OSError):
            for variable in pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                if variable.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")):
                    found[int(variable.split(b"=")[1])] = process
    return found


def _await_ranks(process):
    """All of them, or, where the run is over before that is seen, as on a machine that is busy, those that were."""
    for _ in range(1000):
        ranks = _ranks(process.pid)
        if len(ranks) == RANKS or process.poll() is not None:
            return ranks
        time.sleep(0.01)
    raise AssertionError("the ranks did not start")


def _is_running(pid):
    try:
        return (pathlib.Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _check_end(process, ranks, since):
    """The launcher has ended with an error, soon, and all of its processes have."""
    code, output, messages = mpi.finish(process, timeout=60)
    assert code != 0, (output, messages)
    assert time.monotonic() - since < SECONDS
    for _ in range(500):
        if not any(map(_is_running, ranks.values())):
            break
        time.sleep(0.01)
    assert not any(map(_is_running, ranks.values()))
    return code, messages


@pytest.mark.parametrize("culprit", range(RANKS))
def test_a_rank_that_stops_is_named(program, culprit):
    artifact, flags, _ = program
    line = mpi.run_program("bench", artifact, *flags, "--iterations", 1000000, "--timeout", 600)
    process = mpi.start(mpi.command(RANKS, line))
    ranks = _await_ranks(process)
    time.sleep(3)
    os.kill(ranks[culprit], signal.SIGSTOP)
    code, messages = _check_end(process, ranks, time.monotonic())
    assert code == 8, messages
    assert f"rank {culprit} on host '{socket.gethostname()}' has been silent for 7 s" in messages


@pytest.mark.parametrize("culprit", range(RANKS))
def test_a_rank_that_is_killed_ends_the_run(program, culprit):
    artifact, flags, _ = program
    line = mpi.run_program("bench", artifact, *flags, "--iterations", 1000000, "--timeout", 600)
    process = mpi.start(mpi.command(RANKS, line))
    ranks = _await_ranks(process)
    time.sleep(3)
    os.kill(ranks[culprit], signal.SIGKILL)
    _, messages = _check_end(process, ranks, time.monotonic())
    # Either of the two is first.
    assert f"rank {culprit} on host" in messages or f"process rank {culprit} " in messages, messages


@pytest.mark.parametrize("signal_of_user", [signal.SIGINT, signal.SIGTERM])
def test_the_launcher_is_told_to_end(program, tmp_path, signal_of_user):
    artifact, flags, name = program
    line = mpi.run_program(
        "run", artifact, *flags, "--output", f"{name}={tmp_path}/y.npy", "--warmup", 1000000, "--timeout", 600
    )
    process = mpi.start(mpi.command(RANKS, line))
    ranks = _await_ranks(process)
    for _ in range(500):
        if list(tmp_path.iterdir()):
            break
        time.sleep(0.01)
    assert list(tmp_path.iterdir()), "outputs have no other name before they are whole"
    process.send_signal(signal_of_user)
    _check_end(process, ranks, time.monotonic())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seed", range(FAULTS))
def test_faults_at_any_moment(program, tmp_path, seed):
    """One or two ranks at once; the run may also be over before."""
    artifact, flags, name = program
    choose = random.Random(seed)
    _, output, _ = call(
        [tool("dovetail-run"), "run", artifact, *flags, "--output", f"{name}={tmp_path}/expected.npy"]
    )
    expected = (tmp_path / "expected.npy").read_bytes()
    file = tmp_path / "out" / "y.npy"
    file.parent.mkdir()
    line = mpi.run_program("run", artifact, *flags, "--output", f"{name}={file}", "--warmup", 20, "--timeout", 15)
    process = mpi.start(mpi.command(RANKS, line))
    ranks = _await_ranks(process)
    time.sleep(choose.uniform(0, 1.5))
    begin = time.monotonic()
    stopped = set()
    for culprit in choose.sample(range(RANKS), choose.choice([1, 1, 2])):
        kind = choose.choice([signal.SIGKILL, signal.SIGSTOP])
        if culprit not in ranks:
            continue
        try:
            os.kill(ranks[culprit], kind)
        except ProcessLookupError:
            continue
        if kind == signal.SIGSTOP:
            stopped.add(ranks[culprit])
    # Nobody is left to notice who is stopped when the run is over.
    while process.poll() is None and time.monotonic() - begin < 60:
        if file.exists() and not any(_is_running(pid) for pid in ranks.values() if pid not in stopped):
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            break
        time.sleep(0.05)
    if time.monotonic() - begin >= 60 and process.poll() is None and not any(map(_is_running, ranks.values())):
        # Seen of Open MPI 4.1.4 where two ranks are killed while they start: its threads wait for each other.
        os.killpg(process.pid, signal.SIGKILL)
        assert not list(file.parent.iterdir())
        pytest.xfail("mpirun does not end, though all processes that it started have")
    code, output, messages = mpi.finish(process, timeout=90)
    # Before MPI is there, it is the launcher that notices, or what starts MPI gives up after the time allowed.
    assert time.monotonic() - begin < 60
    assert file.exists() or code != 0, (output, messages)
    if file.exists():
        assert file.read_bytes() == expected
    for _ in range(500):
        if not any(map(_is_running, ranks.values())):
            break
        time.sleep(0.01)
    assert not any(map(_is_running, ranks.values()))
    left = [entry.name for entry in file.parent.iterdir() if entry != file]
    if left and not mpi.is_open_mpi():
        # MPICH's launcher ends processes that are still starting by a signal that none of them may outlive.
        assert len(left) == 1 and not file.exists() and not messages
        pytest.xfail("a rank was killed while others were in MPI_Init, and all were ended before they could tidy up")
    assert not left, (left, messages)
