# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures shared by all Python tests."""

import pytest

from harness import backend as backends


@pytest.fixture(scope="session")
def backend():
    """The compiler and the runtime under test."""
    found = backends.default_backend()
    assert found, f"no compiler in {backends.build_dir()}: run `make build`"
    return found
