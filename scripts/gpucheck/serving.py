# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processes that `run` starts: one that runs programs, one that measures peers."""

import os
import sys

from . import worker
from .package import Package

#: Names the folder for files that are put together.
RESTORED = "GPU_CHECK_RESTORED"


def serve(folder, command):
    package = Package(folder, os.environ[RESTORED])
    if command == "serve":
        sys.path.insert(0, str(folder / "python"))
        from .evaluate import evaluate as answer
    else:
        from .peers import answer
    worker.serve(lambda request: answer(package, request))
    return 0
