# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The node tests of the ONNX package, whole and with every dimension split unevenly over 3 ranks, on CPUs and, with
kernels for devices, on the emulated device.

Those that unsupported.txt lists must be refused in the way that it says; see run.py.
"""

import node_tests
import pytest
import run


@pytest.fixture(scope="module")
def evaluate(backend):
    workers = run.workers(1)
    yield workers
    workers.close()


_UNSUPPORTED = run.known_unsupported()


def test_list_names_tests():
    """A name that ONNX does not have would hide nothing, but say that something is not supported."""
    assert set(_UNSUPPORTED) <= set(node_tests.names())


@pytest.mark.parametrize("name", node_tests.names())
@pytest.mark.parametrize("target", ["cpu", "emulated"])
def test_node(evaluate, target, name):
    outcome = run.judge(evaluate((name, target)), _UNSUPPORTED)
    assert outcome.status != run.FAILED, outcome.message
    if outcome.status == run.UNSUPPORTED:
        pytest.skip(outcome.message)
