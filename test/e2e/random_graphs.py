#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs random graphs of several operators, partitioned at random, against ONNX Runtime.

    random_graphs.py --count 10000            new cases, from a random first seed
    random_graphs.py --seed 4711 --count 1    one case again
    random_graphs.py --objective time         all that is not requested decided by time
    random_graphs.py --any-shardings          anything decided that may be, at random
    random_graphs.py --mesh-alone             nothing requested, and unequal devices
    random_graphs.py --images                 mostly windows of images, one behind the other
    random_graphs.py --halos always           halos computed and not exchanged wherever that can be
    random_graphs.py --split-launches always  computed while ranks exchange what can be
    random_graphs.py --large                  larger tensors: several threads for a kernel, partial sums that scatter
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import re
import secrets
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / p) for p in ("", "models", "e2e")]

import numpy as np  # noqa: E402
from graphs.case import ABSOLUTE_TOLERANCE, TOLERANCE, random_graph  # noqa: E402
from harness import backend as backends  # noqa: E402
from harness.compare import differences  # noqa: E402
from harness.isolated import IsolatedPool  # noqa: E402
from random_ops import FAILED, PASSED, UNSUPPORTED  # noqa: E402


@dataclasses.dataclass
class Request:
    """Which case to run, and where to put the files of one that fails."""

    seed: int
    large: bool = False
    cpu: str = "native"
    keep: str | None = None
    objective: str = "bytes"
    any_shardings: bool = False
    #: Nothing is requested, devices differ, and what is to be least takes turns.
    mesh_alone: bool = False
    images: bool = False
    #: Whether ranks compute halos in place of exchanging them, as the compiler takes it.
    halos: str = "gain"
    #: Whether ranks compute while they exchange halos, as the compiler takes it.
    split_launches: str = "gain"


@dataclasses.dataclass
class Outcome:
    status: str
    case: str
    message: str = ""


def random_cluster(seed):
    """A cluster file's text: up to three kinds of devices, and links so fast or slow that they matter or do not."""
    rng = np.random.default_rng(seed)
    devices = {
        f"d{number}": {
            "base": "cpu",
            "products_32": float(10 ** rng.uniform(8, 11)),
            "operations": float(10 ** rng.uniform(8, 10.5)),
            "step": float(10 ** rng.uniform(-9, -6)),
        }
        for number in range(rng.integers(1, 4))
    }
    ranks = [str(name) for name in rng.choice(list(devices), rng.integers(1, 5))]
    links = [{"name": "near", "group": int(rng.integers(2, 4))}, {"name": "far"}]
    for link in links:
        link.update(exchange=float(10 ** rng.uniform(-9, -4)), message=1e-9, bytes=float(10 ** rng.uniform(8, 12)))
    cluster = {"name": "random", "devices": devices, "ranks": ranks, "repeat": True, "links": links}
    return json.dumps(cluster)


def _run(backend, case, request):
    with tempfile.TemporaryDirectory() as folder:
        options = []
        if request.mesh_alone:
            case.partition.shards.clear()
            case.partition.sizes.clear()
            case.partition.objective = ("time", "bytes", "memory", "time")[request.seed % 4]
            cluster = pathlib.Path(folder) / "cluster.json"
            cluster.write_text(random_cluster(request.seed))
            options = ["--cluster", str(cluster)]
        else:
            case.partition.objective = request.objective
        return _compile_and_run(backend, case, request, options)


def _compile_and_run(backend, case, request, options):
    options = [*options, "--cpu", request.cpu]
    options += ["--shardings-seed", str(request.seed + 1)] if request.any_shardings else []
    options += ["--halos", request.halos, "--split-launches", request.split_launches]
    while True:
        try:
            return backend.compile_and_run(
                case.model, case.partition, case.inputs, list(case.expected), case.libraries, options
            )
        except backends.BackendError as error:
            gone = re.search(r"tensor '(t[0-9_]+)',? (?:which|has)", error.message)
            if error.code != backends.USAGE or not gone or gone[1] in case.expected:
                raise
            # It was folded away, or stands in another shape, and cannot be split as stated: the rest can.
            case.partition.forget(gone[1])


def evaluate(request):
    """Makes the case of a seed, runs it and compares. Runs in a worker."""
    case = random_graph(request.seed, request.large, request.images)
    if case is None:
        return Outcome(PASSED, f"seed {request.seed}: nothing to compare")
    backend = backends.fastest_backend()
    if backend is None:
        raise RuntimeError(f"no compiler in {backends.build_dir()}: run `make build`")
    if isinstance(backend, backends.InProcessBackend):
        backend = backends.InProcessBackend(soils=True, threads=(1, 4, 7)[request.seed % 3])
    try:
        found = differences(_run(backend, case, request), case.expected, TOLERANCE, ABSOLUTE_TOLERANCE)
        outcome = Outcome(FAILED if found else PASSED, str(case), found or "")
    except backends.BackendError as error:
        unsupported = error.phase == "compile" and error.code == backends.UNSUPPORTED
        outcome = Outcome(UNSUPPORTED if unsupported else FAILED, str(case), str(error))
    if outcome.status != PASSED and request.keep:
        folder = pathlib.Path(request.keep) / f"seed-{request.seed}"
        backends.keep(folder, case.model, case.inputs, case.expected, case.partition)
    return outcome


def workers(count):
    """Evaluates requests in worker processes; a crash is the failure of one request."""
    return IsolatedPool(evaluate, lambda request, message: Outcome(FAILED, f"seed {request.seed}", message), count)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="the first seed (default: random)")
    parser.add_argument("--count", type=int, default=500, help="how many seeds (default: 500)")
    parser.add_argument("--large", action="store_true", help="larger tensors")
    parser.add_argument("--cpu", default="native", help="what to generate code for, as the compiler takes it")
    parser.add_argument("--objective", metavar="NAME", default="bytes", help="of the compiler's (default: bytes)")
    parser.add_argument("--any-shardings", action="store_true", help="decides at random what may be decided")
    parser.add_argument("--mesh-alone", action="store_true", help="requests nothing, of random clusters")
    parser.add_argument("--images", action="store_true", help="mostly windows of images")
    parser.add_argument("--halos", default="gain", help="gain (default), never or always")
    parser.add_argument("--split-launches", default="gain", help="gain (default), never or always")
    parser.add_argument("--keep", metavar="DIR", help="writes the files of failing cases there")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    arguments = parser.parse_args()
    first = secrets.randbelow(10**9) if arguments.seed is None else arguments.seed
    print(f"seeds {first} to {first + arguments.count - 1}", flush=True)
    counts = collections.Counter()
    start = time.monotonic()
    pool = workers(arguments.workers)
    seeds = range(first, first + arguments.count)
    common = {name: value for name, value in vars(arguments).items() if name not in ("seed", "count", "workers")}
    for outcome in pool.map(Request(seed, **common) for seed in seeds):
        counts[outcome.status] += 1
        if outcome.status != PASSED:
            print(f"{outcome.status}: {outcome.case}\n    {outcome.message}", flush=True)
    pool.close()
    print(
        f"{counts[PASSED]} passed, {counts[FAILED]} failed, {counts[UNSUPPORTED]} unsupported "
        f"({time.monotonic() - start:.0f} s)"
    )
    return 0 if counts[PASSED] == arguments.count else 1


if __name__ == "__main__":
    sys.exit(main())
