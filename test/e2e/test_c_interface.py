# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C interface of the libraries is the recorded one (scripts/abi), and changes of it are found."""

import importlib.machinery
import importlib.util
import subprocess

import pytest
from harness.backend import ROOT, build_dir
from harness.sanitizers import sanitizers

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(bool(sanitizers(build_dir())), reason="sanitizers add symbols of their own"),
]


def test_interface_is_the_recorded_one():
    result = subprocess.run([ROOT / "scripts/abi", build_dir()], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def abi():
    loader = importlib.machinery.SourceFileLoader("abi", str(ROOT / "scripts/abi"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("abi", loader))
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "old, new",
    [
        ("int32_t pin;", "int64_t pin;"),
        ("int32_t pin;", "int32_t pinned;"),
        ("double timeout_seconds;", ""),
        ("const int32_t *mpi_communicator;", "const int32_t *mpi_communicator; int64_t added;"),
        ("DOVETAIL_ERROR_DEVICE = 8", "DOVETAIL_ERROR_DEVICE = 10"),
        ("int32_t dovetail_program_num_ranks(", "int64_t dovetail_program_num_ranks("),
        ("dovetail_program_num_ranks(const", "dovetail_program_num_ranks(int32_t rank, const"),
    ],
)
def test_changes_of_the_interface_are_found(abi, backend, monkeypatch, tmp_path, old, new):
    header, marker = abi.LIBRARIES["dovetail"]
    text = header.read_text()
    assert text.count(old) == 1
    changed = tmp_path / "dovetail.h"
    changed.write_text(text.replace(old, new))
    monkeypatch.setitem(abi.LIBRARIES, "dovetail", (changed, marker))
    assert "the C interface of libdovetail.so is not the recorded one" in abi.compare("dovetail", build_dir(), False)


@pytest.mark.parametrize("name, problem", [("dovetail_program_model", "which its header declares"), ("other", "no public header")])
def test_symbols_are_those_of_the_headers(abi, backend, monkeypatch, name, problem):
    """As if the library had another function, or lacked one."""
    exported = abi.exported
    monkeypatch.setattr(abi, "exported", lambda library: exported(library) ^ {name})
    assert problem in abi.compare("dovetail", build_dir(), False)
