# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random single operators, and fixed ones that others get wrong, against ONNX Runtime.

Cases run for the host and in turn one of the other CPUs that it can stand for; fixed ones in `make verify-all` for all. A
failing case runs again with `test/e2e/random_ops.py --seed N --count 1 --cpu CPU --keep DIR`. The first
seed and the number of cases come from DOVETAIL_SEED and DOVETAIL_RANDOM_CASES.
"""

import os

import pytest
from cases import ROUND, fixed_cases, quick_seeds
from harness.cpus import runnable_cpus
from harness.extent import some
from random_ops import PASSED, Request
from random_ops import workers as create_workers

FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "20250"))
COUNT = int(os.environ.get("DOVETAIL_RANDOM_CASES", "640"))


@pytest.fixture(scope="module")
def workers(backend):
    workers = create_workers(1)
    yield workers
    workers.close()


def _seeds():
    quick = quick_seeds(FIRST_SEED)
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        yield pytest.param(seed, marks=pytest.mark.quick if seed in quick else ())


def _check(outcome):
    assert outcome.status == PASSED, f"{outcome.case}\n{outcome.message}"


@pytest.mark.parametrize("number, name", list(enumerate(fixed_cases())))
def test_fixed_case(workers, number, name):
    native, *others = runnable_cpus()
    _check(workers(Request(fixed=name, cpus=(native, *some(others, number, 1)))))


@pytest.mark.parametrize("seed", list(_seeds()))
def test_random_case(workers, seed):
    native, *others = runnable_cpus()
    cpus = (native, others[seed % len(others)]) if others else (native,)
    _check(workers(Request(seed=seed, cpus=cpus)))


def test_seeds_cover_every_operator():
    assert COUNT >= len(ROUND)
