# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No pass takes far more than twice the time for twice the operations.

Graphs of bench/compile_time.py of two sizes are compiled, and the processor time of each phase and pass is compared.
Four times the operations may take eight times the time, which is n^1.5: what is linear takes four times, what is
quadratic sixteen times. That is far from both, as times vary with other work on the machine. What takes longer is
measured again before the test fails, and the least times count.
"""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import compile_time  # noqa: E402

SMALL, LARGE = 800, 3200
#: In seconds for the large graph: shorter times say nothing.
LEAST = 0.1
LIMIT = 8
ROUNDS = 4


def _compile(kind, ranks, size):
    model = compile_time.KINDS[kind][0](size, seed=0)
    # Processor time counts, not the clock's, which other work on the machine prolongs.
    return compile_time.compile_model(model, compile_time.flags(kind, ranks), limit=None)


def _find_slow(small, large):
    """By how much what grows too fast has grown."""
    growths = {key: large[key][0] / max(small[key][0], LEAST / 16) for key in large if large[key][0] >= LEAST}
    return {key: round(growth, 1) for key, growth in growths.items() if growth > LIMIT}


@pytest.mark.parametrize("kind, ranks", [("windows", 1), ("joint", 4)])
def test_growth(kind, ranks):
    small, large = [], []
    for _ in range(ROUNDS):
        small.append(_compile(kind, ranks, SMALL))
        large.append(_compile(kind, ranks, LARGE))
        slow = _find_slow(compile_time.least(small), compile_time.least(large))
        if not slow:
            return
    pytest.fail(f"{kind} on {ranks}: from {SMALL} to {LARGE} nodes, times grow so many times: {slow}")
