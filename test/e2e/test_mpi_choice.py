# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which MPI a process uses where there are several, and MPICH's, which most tests of MPI do not take."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from harness import mpi
from harness.backend import SubprocessBackend, build_dir, call, tool
from harness.sanitizers import sanitizers
from subjects import SMALL_SUBJECTS

MISSING = mpi.missing() or mpi.missing(mpi.MPICH) or ("" if mpi.is_open_mpi() else "DOVETAIL_MPIRUN is not Open MPI's")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING or "nothing is missing")

#: What an MPI says of itself.
OPEN_MPI, MPICH = "Open MPI v", "MPICH Version: "
#: Debian's name and that of others.
MPICH_FILES = ("libmpich.so.12", "libmpi.so.12")
DEVICE = 8


def _mpich_file():
    """By the name that the dynamic loader finds."""
    for name in MPICH_FILES:
        if subprocess.run(["true"], env={"LD_PRELOAD": name}, capture_output=True, text=True).stderr == "":
            return name
    raise AssertionError(f"none of {MPICH_FILES} is there")


# Runs.


@pytest.fixture(scope="module", params=[2, 3])
def program(request, tmp_path_factory):
    """(ranks, arguments, files of outputs, their bytes from threads) of a network that is split unevenly."""
    ranks, folder = request.param, tmp_path_factory.mktemp("mpich")
    subject = next(subject for subject in SMALL_SUBJECTS if subject.name == "small-unet2d-transposed")
    case, artifact = subject.prepared(), folder / "model.dvt"
    partition = subject.partition({"y": ranks}, "uneven")
    SubprocessBackend().compile(case.path, artifact, partition, extra=subject.flags())
    arguments = ["run", artifact]
    for index, (name, value) in enumerate(case.inputs.items()):
        np.save(folder / f"input{index}.npy", value)
        arguments += ["--input", f"{name}=@{folder}/input{index}.npy"]
    files = [folder / f"output{index}.npy" for index in range(len(case.expected))]
    for name, file in zip(case.expected, files):
        arguments += ["--output", f"{name}={file}"]
    code, _, messages = call([tool("dovetail-run"), *arguments])
    assert code == 0, messages
    local = [file.read_bytes() for file in files]
    for file in files:
        file.unlink()
    return ranks, arguments, files, local


@pytest.mark.parametrize("variables", [{}, {"DOVETAIL_SHARED_MEMORY": 0}], ids=["memory", "messages"])
def test_mpich_gives_the_bits_of_threads(program, variables):
    """Without --comm, too: its launcher says that the processes are ranks."""
    ranks, arguments, files, local = program
    line = [tool("dovetail-run"), *arguments, "--timeout", 200]
    code, output, messages = mpi.call(mpi.command(ranks, line, variables=variables, launcher=mpi.MPICH))
    assert (code, output, messages) == (0, "", ""), (output, messages)
    assert [file.read_bytes() for file in files] == local
    for file in files:
        file.unlink()


def test_exit_codes_with_mpich(program):
    ranks, arguments, files, _ = program
    code, _, messages = mpi.call(mpi.command(ranks + 1, mpi.run_program(*arguments), launcher=mpi.MPICH))
    assert code == DEVICE, messages
    assert f"the program is for {ranks} ranks, but MPI has started {ranks + 1} processes" in messages
    assert not any(file.exists() for file in files)


# The choice.


def _libraries(program=None, **variables):
    """What `devices` lists, in an environment."""
    code, output, messages = mpi.call([str(program or tool("dovetail-run")), "devices", "--json"], **variables)
    assert code == 0, messages
    return json.loads(output)["libraries"]


def _chosen(program=None, **variables):
    return _libraries(program, **variables)["MPI"]


@pytest.mark.parametrize(
    "variables, wanted",
    [
        ({}, OPEN_MPI),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, OPEN_MPI),
        ({"PMIX_RANK": "0"}, OPEN_MPI),
        ({"PMI_RANK": "0", "PMI_FD": "9"}, MPICH),
        ({"PMI_RANK": "0", "PMI_PORT": "localhost:9"}, MPICH),
        # What srun without a plug-in for MPI, and users, may set.
        ({"PMI_RANK": "0"}, OPEN_MPI),
    ],
)
def test_by_the_launcher(variables, wanted):
    found = _libraries(**variables)
    assert found["MPI"].startswith(wanted)
    assert os.path.basename(found["file of MPI"]) in (("libmpi.so.40",) if wanted == OPEN_MPI else MPICH_FILES)


@pytest.mark.parametrize("launcher, wanted", [(mpi.LAUNCHER, OPEN_MPI), (mpi.MPICH, MPICH)])
def test_by_launchers_themselves(launcher, wanted):
    line = [tool("dovetail-run"), "devices", "--target", "cpu"]
    code, output, messages = mpi.call(mpi.command(2, line, launcher=launcher))
    assert code == 0, messages
    assert output.count(wanted) == 2


@pytest.mark.skipif(bool(sanitizers(build_dir())), reason="sanitizers are loaded first")
def test_what_the_process_has_loaded_comes_first(program):
    """Before what the launcher says, as one process cannot have both."""
    variables = {"LD_PRELOAD": _mpich_file(), "OMPI_COMM_WORLD_SIZE": "4"}
    assert _chosen(**variables).startswith(MPICH)
    assert _chosen(LD_PRELOAD="libmpi.so.40", PMI_RANK="0", PMI_FD="9").startswith(OPEN_MPI)
    _, arguments, _, _ = program
    code, _, messages = mpi.call([str(part) for part in mpi.run_program(*arguments)], **variables)
    assert code == DEVICE
    assert "MPICH Version: " in messages and " finds this process alone, but " in messages and "OMPI_COMM_WORLD_SIZE says that 4" in messages
    assert "a launcher for Open MPI has started this process, but the process had loaded /" in messages


# Machines where something is missing.


@pytest.fixture
def build(tmp_path):
    """Copies programs and plug-ins, for those MPIs alone, as a wheel puts them into a Python environment."""
    package = tmp_path / "environment/lib/python3.11/site-packages/dovetail"

    def copy(*interfaces):
        (package / "bin").mkdir(parents=True)
        (package / "lib").mkdir()
        shutil.copy(tool("dovetail-run"), package / "bin")
        for name in ("transport_mpi", *(f"mpi_{interface}" for interface in interfaces)):
            shutil.copy(build_dir() / "lib" / f"libdovetail_{name}.so", package / "lib")
        return package / "bin/dovetail-run"

    return copy


def _empty_library(path):
    """Which is no MPI."""
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", path, f"-Wl,-soname,{path.name}"], check=True)


def test_builds_for_one_mpi(build):
    program = build("mpich")
    assert _chosen(program).startswith(MPICH)
    assert _chosen(program, OMPI_COMM_WORLD_SIZE="1").startswith(MPICH)


@pytest.mark.skipif(bool(sanitizers(build_dir())), reason="sanitizers are loaded first")
def test_builds_that_lack_the_plugin(build):
    program = build("mpich")
    assert "this build of Dovetail has no plug-in for it (libdovetail_mpi_openmpi.so)" in _chosen(
        program, LD_PRELOAD="libmpi.so.40"
    )


def test_an_mpi_of_the_python_environment(build, tmp_path):
    """Before that of the system."""
    program, library = build("mpich", "openmpi"), tmp_path / "environment/lib/libmpi.so.12"
    assert _chosen(program).startswith(OPEN_MPI)
    found = next(line for line in subprocess.check_output(["/sbin/ldconfig", "-p"], text=True).splitlines() if _mpich_file() in line)
    library.symlink_to(found.split("=> ")[1])
    found = _libraries(program)
    assert found["MPI"].startswith(MPICH) and found["file of MPI"] == str(library)
    assert _chosen(program, OMPI_COMM_WORLD_SIZE="1").startswith(OPEN_MPI)


def test_no_mpi(build, tmp_path, program):
    """Files of these names are something else; there are no plug-ins; and one of them alone."""
    for name in ("libmpi.so.40", *MPICH_FILES):
        _empty_library(tmp_path / name)
    ranks, arguments, _, _ = program
    code, output, messages = mpi.call(
        mpi.command(ranks, mpi.run_program(*arguments), launcher=mpi.MPICH), LD_LIBRARY_PATH=str(tmp_path)
    )
    assert (code, output) == (DEVICE, "")
    line = messages.splitlines()[0]
    assert "no MPI can be used (MPICH: " in line and "libmpich.so.12 is no MPICH; Open MPI: " in line, messages
    assert "install one with its launcher: openmpi-bin or mpich of Debian" in line
    found = _chosen(build())
    assert "Open MPI: this build of Dovetail has no plug-in for it (libdovetail_mpi_openmpi.so)" in found
    assert "MPICH: this build of Dovetail has no plug-in for it (libdovetail_mpi_mpich.so)" in found


def test_the_launcher_of_the_mpi_that_is_missing(build, tmp_path, program):
    _empty_library(tmp_path / "libmpi.so.40")
    _, arguments, _, _ = program
    line = [str(part) for part in mpi.run_program(*arguments)]
    code, _, messages = mpi.call(line, LD_LIBRARY_PATH=str(tmp_path), OMPI_COMM_WORLD_SIZE="4")
    assert code == DEVICE
    assert "MPICH Version: " in messages and " finds this process alone, but " in messages and "OMPI_COMM_WORLD_SIZE says that 4" in messages
    assert "a launcher for Open MPI has started this process, but no library of it can be used: " in messages
