# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processes that `run` starts: for programs, for peers, and for both in one process."""

import os
import sys

from . import worker
from .package import Package

#: Names the folder for files that are put together.
RESTORED = "GPU_CHECK_RESTORED"
#: Not empty: PyTorch is loaded before all else. Its libraries fail if others of the same name are there first.
WITH_TORCH = "GPU_CHECK_WITH_TORCH"


def serve(folder, command):
    package = Package(folder, os.environ[RESTORED])
    if command in ("serve", "probe"):
        sys.path.insert(0, str(folder / "python"))
    if command == "serve":
        from .evaluate import evaluate as answer
    elif command == "probe":
        from .probe import answer, start

        start(bool(os.environ.get(WITH_TORCH)))
    else:
        from .peers import answer
    worker.serve(lambda request: answer(package, request))
    return 0
