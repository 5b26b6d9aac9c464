# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The node tests of the ONNX package, whole and with dimensions split unevenly over 3 ranks, on CPUs and, with kernels
for devices, on the emulated device. Which dimensions, and which tests run on the device, harness/extent.py says.

Those that unsupported.txt lists must be refused in the way that it says; see run.py.
"""

import node_tests
import pytest
import run
from harness.extent import EVERYTHING


@pytest.fixture(scope="module")
def evaluate(backend):
    workers = run.workers(1)
    yield workers
    workers.close()


_UNSUPPORTED = run.known_unsupported()


def test_list_names_tests():
    """A name that ONNX does not have would hide nothing, but say that something is not supported."""
    assert set(_UNSUPPORTED) <= set(node_tests.names())


def _requests():
    """All tests on CPUs, of which every 25th is quick. On the device every other one of those of bodies of functions runs in
    `make verify-all` alone: they are made of operators that have tests of their own."""
    for number, name in enumerate(node_tests.names()):
        for target in ("cpu", "emulated") if EVERYTHING or "_expanded" not in name or number % 2 else ("cpu",):
            quick = pytest.mark.quick if number % 25 == 0 and target == "cpu" else ()
            yield pytest.param(target, name, marks=quick)


@pytest.mark.parametrize("target, name", list(_requests()))
def test_node(evaluate, target, name):
    outcome = run.judge(evaluate((name, target)), _UNSUPPORTED)
    assert outcome.status != run.FAILED, outcome.message
    if outcome.status == run.UNSUPPORTED:
        pytest.skip(outcome.message)
