# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that mpirun starts are ranks of one program: how many, what they say, and what they must agree on."""

import os
import pathlib
import sys

import numpy as np
import pytest
from harness import mpi
from harness.backend import build_dir, tool
from mpi_programs import RANDOM, compile_pool, pooled

pytestmark = pytest.mark.skipif(bool(mpi.missing()), reason=mpi.missing() or "nothing is missing")


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """A folder with programs of the window."""
    return compile_pool(tmp_path_factory.mktemp("pool"))


def test_limits_of_shared_memory_are_numbers(pool):
    line = mpi.run_program("bench", pool / "pool2.dvt", "--iterations", 1)
    code, _, messages = mpi.call(mpi.command(2, line), DOVETAIL_SHARED_MEMORY="much")
    assert code != 0 and "DOVETAIL_SHARED_MEMORY is 'much'" in messages, (code, messages)


def test_few_processors_are_remarked(pool):
    """mpirun binds each of two processes to one core unless it is told otherwise."""
    line = mpi.run_program("run", pool / "pool2.dvt", *RANDOM, "--threads", 2)
    bound = [part for part in mpi.command(2, ["taskset", "-c", 0, *line])]
    code, _, messages = mpi.call(bound)
    assert code == 0
    assert messages.count("this process has 2 threads, but may use 1 processor only") == 1, messages


def test_rank_0_speaks(pool, tmp_path):
    code, output, messages = mpi.call(
        mpi.command(2, mpi.run_program("run", pool / "pool2.dvt", *RANDOM, "--trace", tmp_path / "trace.json"))
    )
    assert (code, messages) == (0, ""), messages
    assert output.count("float32[1, 2, 9, 7]") == 1
    assert (tmp_path / "trace.json").exists()
    code, output, messages = mpi.call(mpi.command(3, mpi.run_program("bench", pool / "pool3.dvt", "--iterations", 3)))
    assert (code, messages) == (0, ""), messages
    assert output.count("median") == 1


def test_processes_of_mpirun_are_ranks(pool):
    """Without --comm, too, unless that says otherwise."""
    line = [tool("dovetail-run"), "run", pool / "pool2.dvt", *RANDOM]
    for flags, outputs in (([], 1), (["--comm", "local"], 2)):
        code, output, messages = mpi.call(mpi.command(2, [*line, *flags]))
        assert (code, messages) == (0, ""), messages
        assert output.count("float32[1, 2, 9, 7]") == outputs
    # Jobs of PyTorch have such variables.
    torch = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    code, output, messages = mpi.call(mpi.command(2, line, variables=torch))
    assert (code, messages) == (0, ""), messages
    assert output.count("float32[1, 2, 9, 7]") == 1
    code, _, messages = mpi.call(mpi.command(3, line))
    assert code == 8 and "the program is for 2 ranks, but MPI has started 3 processes" in messages


def test_one_rank(pool):
    """mpirun with one process, and none at all."""
    line = mpi.run_program("run", pool / "pool1.dvt", *RANDOM)
    for each in (mpi.command(1, line), [str(part) for part in line]):
        code, output, messages = mpi.call(each)
        assert (code, messages) == (0, ""), messages
        assert output.count("float32[1, 2, 9, 7]") == 1


@pytest.mark.parametrize("ranks, program", [(3, "2"), (2, "3"), (2, "1")])
def test_other_numbers_of_processes(pool, ranks, program):
    code, _, messages = mpi.call(
        mpi.command(ranks, mpi.run_program("run", pool / f"pool{program}.dvt", *RANDOM))
    )
    assert code == 8
    number = "1 rank" if program == "1" else f"{program} ranks"
    wanted = f"the program is for {number}, but MPI has started {ranks} processes; start one for each rank"
    assert wanted in messages


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"])
def test_launcher_of_another_mpi(pool, variable):
    """Which starts processes that are alone, each of them."""
    for program in ("2", "1"):
        line = [str(part) for part in mpi.run_program("run", pool / f"pool{program}.dvt", *RANDOM)]
        code, _, messages = mpi.call(line, **{variable: "4"})
        assert code == 8, messages
        assert f"{variable} says that 4 were started" in messages
        assert "use the mpirun of this MPI or srun --mpi=pmix" in messages


def test_other_artifacts_are_refused(pool):
    programs = [mpi.run_program("run", pool / f"pool{name}.dvt", *RANDOM) for name in ("2", "2-other")]
    code, output, messages = mpi.call(mpi.command(2, *programs))
    assert code == 7 and not output, messages
    assert "rank 1 has another artifact than rank 0" in messages


def test_mpi_says_which_rank_one_is(pool):
    line = mpi.run_program("run", pool / "pool1.dvt", *RANDOM, "--rank", 0, "--world", 1)
    code, _, messages = mpi.call([str(part) for part in line])
    assert code == 2
    assert "the rank of this process is known to mpi; leave out --rank, --world and --address" in messages


def test_errors_of_one_rank_end_all(pool, tmp_path):
    """The input of rank 1 has another shape."""
    np.save(tmp_path / "x.npy", np.zeros([1, 2, 9, 7], np.float32))
    np.save(tmp_path / "wrong.npy", np.zeros([1, 2, 9, 8], np.float32))
    # MPICH's launcher lets the other wait in MPI_Init, which is given up then.
    flags = ["--timeout", 15]
    programs = [
        mpi.run_program("run", pool / "pool2.dvt", "--input", f"x=@{tmp_path}/{name}.npy", *flags)
        for name in ("x", "wrong")
    ]
    code, output, messages = mpi.call(mpi.command(2, *programs), timeout=60)
    # MPICH's launcher has a code of its own.
    assert code == 2 or (code != 0 and not mpi.is_open_mpi()), messages
    assert not output and "input 'x' is float32[1, 2, 9, 7]" in messages
    assert "input 'x'" in messages and "[1, 2, 9, 8]" in messages


def test_other_outputs_of_a_rank_are_refused(pool, tmp_path):
    """Ranks would wait for each other."""
    line = mpi.run_program("run", pool / "pool2.dvt", *RANDOM)
    code, _, messages = mpi.call(mpi.command(2, line, [*line, "--output", f"y={tmp_path}/y.npy"]), timeout=60)
    assert code == 2 and "rank 1 was given other --output than rank 0" in messages, messages
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flag, value", [("--warmup", 3), ("--steps", 1)])
def test_other_flags_of_a_rank_are_refused(pool, flag, value):
    """Without this, one would wait for the other's run until the timeout."""
    line = mpi.run_program("run", pool / "pool2.dvt", *RANDOM)
    code, _, messages = mpi.call(mpi.command(2, [*line, flag, value], line), timeout=60)
    assert code == 2 and f"rank 1 was given other {flag} than rank 0" in messages, messages


@pytest.mark.parametrize("threads", ["serialized", "funneled"])
def test_programs_with_mpi_of_their_own(pool, threads):
    """Two programs at once on halves of the processes, in reverse order; wrong requests are errors that end nothing."""
    program = build_dir() / "bin" / ("mpi-embedding-openmpi" if mpi.is_open_mpi() else "mpi-embedding-mpich")
    assert program.exists()
    code, output, messages = mpi.call(mpi.command(4, [program, pool / "pool2.dvt", threads]))
    assert (code, messages) == (0, ""), (output, messages)
    # UCX remarks what was given up for ever, as parts of requests that are errors are.
    assert [line for line in output.splitlines() if "UCX  WARN" not in line] == ["as it should be"] * 4


LOCAL = """
import sys
import numpy as np
import dovetail

program = dovetail.Program.load(sys.argv[1], check_weights=False)
x = np.arange(126, dtype=np.float32).reshape(1, 2, 9, 7) % 29
with dovetail.Runner(program, comm="mpi") as runner:
    (rank,) = runner.ranks
    y = runner.run_local({"x": runner.to_local("x", x)})["y"]
    np.save(f"{sys.argv[2]}/{rank}.npy", y)
"""


def test_python_programs_give_what_their_ranks_hold(pool, tmp_path):
    """Without MPI for Python: the runtime begins MPI itself."""
    from harness.backend import InProcessBackend, fastest_backend

    assert isinstance(fastest_backend(), InProcessBackend), "the shared libraries are not built"
    import dovetail

    paths = os.pathsep.join([str(pathlib.Path(dovetail.__file__).parent.parent), *filter(None, sys.path)])
    line = mpi.command(3, [sys.executable, "-c", LOCAL, pool / "pool3.dvt", tmp_path])
    code, _, messages = mpi.call(line, PYTHONPATH=paths)
    assert code == 0, messages
    program = dovetail.Program.load(pool / "pool3.dvt")
    whole = dovetail.Runner(program).from_local("y", [np.load(tmp_path / f"{rank}.npy") for rank in range(3)])
    x = np.arange(126, dtype=np.float32).reshape(1, 2, 9, 7) % 29
    assert np.array_equal(whole, pooled(x))
