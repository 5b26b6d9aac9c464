# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests' own tools: a partition that does not add up, or a comparison that is blind, would make
every other test worthless."""

import os

import numpy as np
import pytest
from harness.compare import difference
from harness.extent import cover
from harness.isolated import Crash, IsolatedFunction, WorkerError
from harness.partition import Partition, random_sizes, sizes_with_empty_shard, uneven_sizes


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_sizes_add_up(parts):
    rng = np.random.default_rng(parts)
    for extent in range(1, 30):
        for sizes in (
            uneven_sizes(extent, parts),
            sizes_with_empty_shard(extent, parts),
            *(random_sizes(rng, extent, parts) for _ in range(20)),
        ):
            assert len(sizes) == parts and sum(sizes) == extent and min(sizes) >= 0
        if parts > 1:
            assert 0 in sizes_with_empty_shard(extent, parts)


def test_flags():
    partition = Partition({"y": 2, "x": 2}).split("a", 3, 1, "y+x", [1, 0, 2, 3])
    assert partition.flags() == [
        "--mesh", "y=2,x=2", "--shard", "a=_,y+x,_", "--sizes", "a:1=1,0,2,3",
        "--objective", "bytes",
    ]  # fmt: skip


def test_difference_sees():
    a = np.linspace(-1, 1, 9, dtype=np.float32)
    assert difference(a, a) is None
    assert difference(a + np.float32(5e-5), a) is None
    assert "first at [0]" in difference(a + np.float32(2e-4), a)
    assert difference(a + np.float32(5e-5), a, tolerance=0)
    assert "shape" in difference(a[:8], a)
    assert "type" in difference(a.astype(np.float64), a)
    b = a.copy()
    b[3] = np.nan
    assert "[3]" in difference(b, a) and "[3]" in difference(a, b)
    assert difference(b, b) is None and difference(b, b, tolerance=0) is None
    b[3] = np.inf
    assert "[3]" in difference(b, a) and difference(b, -b)
    assert difference(np.array([1, 2]), np.array([1, 3]))


def _obey(order):
    if order == "crash":
        os.abort()
    if order == "hang":
        import time

        time.sleep(60)
    if order == "raise":
        raise ValueError("as told")
    return order


def test_isolated_function_survives():
    function = IsolatedFunction(_obey, timeout=5)
    assert function("a") == "a"
    with pytest.raises(Crash, match="SIGABRT"):
        function("crash")
    with pytest.raises(WorkerError, match="as told"):
        function("raise")
    function.timeout = 0.5
    with pytest.raises(Crash, match="no answer"):
        function("hang")
    function.timeout = 30
    assert function("b") == "b"
    function.close()


def test_cover_has_every_value():
    """Of the cases of a product each value, each pair where the number allows, and no more than were asked for."""
    cases = [{"mesh": mesh, "kind": kind, "cpu": cpu} for mesh in range(4) for kind in "abc" for cpu in (0, 1)]
    chosen = [cases[number] for number in cover(cases, 12)]
    assert len(chosen) == 12
    assert {(case["mesh"], case["kind"]) for case in chosen} == {(case["mesh"], case["kind"]) for case in cases}
    assert {(case["kind"], case["cpu"]) for case in chosen} == {(case["kind"], case["cpu"]) for case in cases}
    assert len(cover(cases, 1)) == 4  # All meshes.


def test_cover_spreads_over_names():
    """Where each case has a name of its own, names do not count, and any part of the cases is taken."""
    cases = [{"name": f"case{number}", "half": number // 50} for number in range(100)]
    chosen = cover(cases, 10)
    assert len(chosen) == 10
    assert sum(cases[number]["half"] for number in chosen) == 5
    assert cover(cases, 10) == chosen
