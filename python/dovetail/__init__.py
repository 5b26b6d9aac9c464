# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles ONNX models for a mesh of ranks, and runs them in this process.

    import dovetail
    program = dovetail.compile("unet.onnx", mesh={"y": 4}, shard={"image": "_,_,y,_"})
    mask = program.run({"image": image})["mask"]
    program.save("unet.dvt")
    program = dovetail.Program.load("unet.dvt")

Under MPI each process is one rank, and gives and gets what that holds:

    runner = dovetail.Runner(program, comm=mpi4py.MPI.COMM_WORLD)
    outputs = runner.run_local({"image": image[program.part("image", runner.ranks[0])]})
"""

from ._compiler import compile
from ._errors import DovetailError
from ._program import Port, Program
from ._runner import Runner
from ._version import __version__

__all__ = ["DovetailError", "Port", "Program", "Runner", "__version__", "compile"]
