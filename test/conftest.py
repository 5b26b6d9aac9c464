# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures shared by all Python tests."""

import os

import pytest

from harness import backend as backends
from harness import cpu_seconds
from harness import extent


# Tests compare what tools say, however long they take on a busy machine.
os.environ["DOVETAIL_PROGRESS"] = "never"


@pytest.fixture(scope="session")
def backend():
    """The compiler and the runtime under test."""
    found = backends.default_backend()
    assert found, f"no compiler in {backends.build_dir()}: run `make build`"
    return found


@pytest.fixture(scope="session")
def dovetail(backend):
    """The package for Python, over the libraries of the build."""
    assert isinstance(backends.fastest_backend(), backends.InProcessBackend), "the shared libraries are not built"
    import dovetail

    return dovetail


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leaves to `make verify-all` what CI has no time for, of what the command line selects."""
    items[:], left = extent.select(items)
    if left:
        config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Notes in the report what a test took of the CPU: `scripts/test-times` prints it."""
    before = cpu_seconds.spent()
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu_seconds", round(cpu_seconds.spent() - before, 3)))
