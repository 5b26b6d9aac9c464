# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs of several operators against ONNX Runtime.

A failing case runs again with `test/e2e/random_graphs.py --seed N --count 1 --keep DIR`, with `--large` if it is a
large one, with its `--cpu`, and with `--any-shardings` or what else the test that failed asks for. All graphs run for
the host, and every third one for another CPU, too, those that the host can stand for taking turns. The first seed and
the number of cases come from DOVETAIL_SEED and DOVETAIL_RANDOM_GRAPHS; `make verify-all` runs 200.
"""

import os

import pytest
from graphs import MOTIFS
from graphs.case import random_graph
from harness.cpus import runnable_cpus
from random_graphs import PASSED, Request, workers

FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "20250"))
COUNT = int(os.environ.get("DOVETAIL_RANDOM_GRAPHS", "200"))


@pytest.fixture(scope="module")
def worker(backend):
    pool = workers(1)
    yield pool
    pool.close()


# Every fourth graph is large.
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + COUNT))
def test_random_graph(worker, seed):
    native, *others = runnable_cpus()
    for cpu in [native, *others[seed // 3 % len(others) :][:1]] if others and seed % 3 == 0 else [native]:
        outcome = worker(Request(seed, large=seed % 4 == 0, cpu=cpu))
        assert outcome.status == PASSED, f"{outcome.case} --cpu {cpu}\n{outcome.message}"


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + COUNT))
def test_random_graph_in_any_shardings(worker, seed):
    """Whatever may be decided for the whole graph gives what ONNX Runtime gives, be it the best or not."""
    outcome = worker(Request(seed, large=seed % 4 == 0, any_shardings=True))
    assert outcome.status == PASSED, f"{outcome.case}\n{outcome.message}"


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + COUNT * 3 // 2))
def test_random_graph_on_a_mesh_alone(worker, seed):
    """What is decided for unequal devices, by time, bytes and memory in turns, gives what ONNX Runtime gives."""
    outcome = worker(Request(seed, large=seed % 8 == 0, mesh_alone=True))
    assert outcome.status == PASSED, f"{outcome.case}\n{outcome.message}"


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + COUNT))
def test_random_images(worker, seed):
    """Ranks compute all halos that they can, or in turns any, and few are exchanged."""
    how = {"halos": "always"} if seed % 2 else {"any_shardings": True}
    outcome = worker(Request(seed, images=True, **how))
    assert outcome.status == PASSED, f"{outcome.case}\n{outcome.message}"


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + COUNT))
def test_random_images_while_ranks_exchange(worker, seed):
    """What needs no halo, or is in none, is computed while halos are exchanged, which are all that there may be."""
    outcome = worker(Request(seed, images=True, halos="never", split_launches="always"))
    assert outcome.status == PASSED, f"{outcome.case}\n{outcome.message}"


@pytest.mark.parametrize("seed", [710081, 676418110])
def test_graph_that_failed_before(worker, seed):
    """710081: an input that only its users' wishes split was to be split twice by one axis.

    676418110: all that is normalised is equal, so that rounding decides what comes out.
    """
    outcome = worker(Request(seed, large=True))
    assert outcome.status == PASSED, f"{outcome.case}\n{outcome.message}"


def test_graphs_are_worth_running():
    """The generator must not reject itself into graphs of nothing, or outputs that are not compared."""
    cases = [random_graph(seed) for seed in range(30)]
    cases = [case for case in cases if case]
    nodes = sum(len(case.model.graph.node) for case in cases)
    outputs = sum(len(case.model.graph.output) for case in cases)
    compared = sum(len(case.expected) for case in cases)
    assert len(cases) >= 28
    assert nodes >= 7 * len(cases)
    assert compared >= 0.9 * outputs
    assert len({node.op_type for case in cases for node in case.model.graph.node}) >= len(MOTIFS)
