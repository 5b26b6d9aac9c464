# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles ONNX models for a mesh of ranks, and runs them in this process.

    import dovetail
    program = dovetail.compile("unet.onnx", mesh={"y": 4}, shard={"image": "_,_,y,_"})
    mask = program.run({"image": image})["mask"]
    program.save("unet.dvt")
    program = dovetail.Program.load("unet.dvt")
"""

from ._compiler import compile
from ._errors import DovetailError
from ._program import Port, Program

__all__ = ["DovetailError", "Port", "Program", "compile"]
