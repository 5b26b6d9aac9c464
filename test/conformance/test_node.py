# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The node tests of the ONNX package, whole and with every dimension split unevenly over 3 ranks.

Those that unsupported.txt lists must be refused in the way that it says; see run.py.
"""

import node_tests
import pytest
import run


@pytest.fixture(scope="module")
def evaluate(backend):
    runner = run.Runner()
    yield runner
    runner.close()


_UNSUPPORTED = run.known_unsupported()


@pytest.mark.parametrize("name", node_tests.names())
def test_node(evaluate, name):
    outcome = evaluate(name)
    assert outcome.status != run.FAILED, outcome.message
    if name in _UNSUPPORTED:
        assert outcome.status == run.UNSUPPORTED, f"{name} passes: run test/conformance/run.py --update"
        pytest.skip(f"unsupported: {outcome.message}")
    assert outcome.status == run.PASSED, f"newly unsupported: {outcome.message}"
