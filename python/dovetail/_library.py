# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds and opens the shared libraries."""

import ctypes
import functools
import os
import pathlib

from ._errors import DovetailError
from ._version import __version__

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _folder():
    """$DOVETAIL_LIBRARY_DIR, the release build of the checkout around this package, or nothing."""
    if "DOVETAIL_LIBRARY_DIR" in os.environ:
        return pathlib.Path(os.environ["DOVETAIL_LIBRARY_DIR"])
    build = _ROOT / "build" / "release" / "lib"
    return build if build.is_dir() else None


#: The function of each library that says which version it is of.
_VERSIONS = {"dovetail": "dovetail_version", "dovetail-compiler": "dovetail_compiler_version"}


def _check_version(library, name, path):
    """Raises DovetailError if the library is of another version than this package, whose calls it may not have."""
    try:
        function = getattr(library, _VERSIONS[name])
        function.restype = ctypes.c_char_p
        found = function().decode()
    except AttributeError:
        found = None  # Older versions do not have the function.
    if found != __version__:
        raise DovetailError(
            7,
            f"'{path}' is of {f'Dovetail {found}' if found else 'an older Dovetail'}, but this Python package is of "
            f"Dovetail {__version__}: run `make build`, or set DOVETAIL_LIBRARY_DIR to the folder with libraries of "
            "this version",
        )


@functools.cache
def open_library(name):
    """The library `lib<name>.so`, from where the build put it or from where the system looks."""
    folder = _folder()
    path = f"lib{name}.so" if folder is None else str(folder / f"lib{name}.so")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"cannot open {path} ({error}): run `make build`, or set DOVETAIL_LIBRARY_DIR to the folder with "
            "libdovetail.so"
        ) from error
    _check_version(library, name, path)
    return library
