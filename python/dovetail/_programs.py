# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands that a wheel installs: each becomes the program of that name in this package, or in the build around it."""

import os
import pathlib
import sys


def _become(name):
    package = pathlib.Path(__file__).resolve().parent
    folders = [package / "bin", package.parents[1] / "build/release/bin"]
    program = next((folder / name for folder in folders if (folder / name).exists()), folders[0] / name)
    try:
        os.execv(program, [str(program), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: error: cannot start {program}: {error.strerror}; install the package again")


def dovetail():
    _become("dovetail")


def dovetail_run():
    _become("dovetail-run")
