# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a check, in the order of what they are worth."""

import dataclasses
import importlib

DEFAULT_SECONDS = 540


@dataclasses.dataclass(frozen=True)
class Part:
    """`place` is the module and function that does it; `weight` its share of the time, with those after it."""

    title: str
    place: str
    weight: float
    exactness: bool = False  #: A check that is cut short does not succeed.
    needs_gpu: bool = False  #: Programs for CPUs, which test this script, cannot do it.

    def run(self, check):
        module, function = self.place.split(":")
        getattr(importlib.import_module(f"gpucheck.{module}"), function)(check)


PARTS = {
    "models": Part("every model on 1 to 4 ranks on one GPU", "exactness:models", 60, exactness=True),
    "operators": Part("single operators, split unevenly", "exactness:operators", 25, exactness=True),
    "gpus": Part("every model on several GPUs", "exactness:several_gpus", 15, exactness=True, needs_gpu=True),
    "nccl": Part("ranks as processes, through NCCL", "exactness:nccl", 12, exactness=True, needs_gpu=True),
    "peers": Part("time against PyTorch and ONNX Runtime", "measurements:peers", 60),
    "ranks": Part("time of several ranks against one", "measurements:ranks", 10),
    "exchanges": Part("bytes per second of exchanges", "measurements:exchanges", 5),
    "sanitizers": Part(
        "compute-sanitizer over the operators", "exactness:sanitizers", 25, exactness=True, needs_gpu=True
    ),
}

#: The parts of `--profile ten-minutes`, in their order; `weight` is in seconds. B to C are what a short run is for.
TIMED_PARTS = {
    "0": Part("clocks, versions, and what this card can do at most", "ceilings:ceilings", 10),
    "A": Part("kernels and engines of each step", "engines:engines", 60),
    "B": Part("modes and precisions", "modes:modes", 70),
    "E": Part("against PyTorch and JAX", "timed_peers:peers", 80),
    "C": Part("large models", "large:large", 110),
    "T": Part("the modes of B, with algorithms measured at the start", "modes:tuned", 40),
    "D": Part("attention", "attention:attention", 50),
    "F": Part("kernels of our own", "own_kernels:kernels", 50),
    "G": Part("several ranks on one GPU, and NCCL", "several_ranks:ranks", 40),
    "H": Part("single operators, and compute-sanitizer over the programs of F", "sanitized:sanitized", 40),
}
TIMED_SECONDS = 560
#: Less is taken for a mistake.
LEAST_SECONDS = 10
