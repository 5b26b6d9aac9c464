# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds and opens the shared libraries."""

import ctypes
import functools
import os
import pathlib

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _folder():
    """$DOVETAIL_LIBRARY_DIR, the release build of the checkout around this package, or nothing."""
    if "DOVETAIL_LIBRARY_DIR" in os.environ:
        return pathlib.Path(os.environ["DOVETAIL_LIBRARY_DIR"])
    build = _ROOT / "build" / "release" / "lib"
    return build if build.is_dir() else None


@functools.cache
def open_library(name):
    """The library `lib<name>.so`, from where the build put it or from where the system looks."""
    folder = _folder()
    path = f"lib{name}.so" if folder is None else str(folder / f"lib{name}.so")
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"cannot open {path} ({error}): run `make build`, or set DOVETAIL_LIBRARY_DIR to the folder with "
            "libdovetail.so"
        ) from error
