# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random single operators, and fixed ones that others get wrong, against ONNX Runtime.

A failing case runs again with `test/e2e/random_ops.py --seed N --count 1 --keep DIR`. The first
seed and the number of cases come from DOVETAIL_SEED and DOVETAIL_RANDOM_CASES.
"""

import os

import pytest
from cases import ROUND, fixed_cases
from random_ops import PASSED, Request
from random_ops import workers as create_workers

FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "20250"))
COUNT = int(os.environ.get("DOVETAIL_RANDOM_CASES", "640"))


@pytest.fixture(scope="module")
def workers(backend):
    workers = create_workers(1)
    yield workers
    workers.close()


def _check(outcome):
    assert outcome.status == PASSED, f"{outcome.case}\n{outcome.message}"


@pytest.mark.parametrize("name", list(fixed_cases()))
def test_fixed_case(workers, name):
    _check(workers(Request(fixed=name)))


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + COUNT))
def test_random_case(workers, seed):
    _check(workers(Request(seed=seed)))


def test_seeds_cover_every_operator():
    assert COUNT >= len(ROUND)
