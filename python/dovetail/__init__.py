# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles ONNX models for a mesh of ranks, and runs them in this process.

    import dovetail
    program = dovetail.compile("unet.onnx", mesh={"y": 4}, shard={"image": "_,_,y,_"})
    mask = program.run({"image": image})["mask"]
    program.save("unet.dvt")
    program = dovetail.Program.load("unet.dvt")

Before that, or without running anything:

    dovetail.inspect("unet.onnx")["open"]         # dimensions that need an extent
    dovetail.plan("unet.onnx", mesh={"y": 4})     # time, traffic and memory that are predicted
    dovetail.verify("unet.onnx", mesh={"y": 4})   # the outputs against those of one rank

Under MPI each process is one rank, and gives and gets what that holds:

    runner = dovetail.Runner(program, comm=mpi4py.MPI.COMM_WORLD)
    outputs = runner.run_local({"image": image[program.part("image", runner.ranks[0])]})
"""

import importlib

from ._errors import DovetailError
from ._version import __version__

# Imported when they are asked for: the commands of this package need neither NumPy nor the libraries.
_LAZY = {"Port": "_program", "Program": "_program", "Runner": "_runner", "compile": "_compiler"}
_LAZY |= dict.fromkeys(["inspect", "plan", "verify"], "_commands")

__all__ = ["DovetailError", "Port", "Program", "Runner", "__version__", "compile", "inspect", "plan", "verify"]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'dovetail' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LAZY})
