# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds and opens the shared libraries."""

import ctypes
import functools
import os
import pathlib
import signal

from ._errors import DovetailError
from ._version import __version__

_PACKAGE = pathlib.Path(__file__).resolve().parent
#: What the names of libraries end with, as CMakeLists.txt says.
_ABI = ".".join(__version__.split(".")[: 2 if __version__.startswith("0.") else 1])


def _folder():
    """$DOVETAIL_LIBRARY_DIR, this package's, the release build of the checkout around this package, or nothing."""
    if "DOVETAIL_LIBRARY_DIR" in os.environ:
        return pathlib.Path(os.environ["DOVETAIL_LIBRARY_DIR"])
    folders = [_PACKAGE / "lib", _PACKAGE.parents[1] / "build" / "release" / "lib"]
    return next((folder for folder in folders if folder.is_dir()), None)


def _path(name):
    folder = _folder()
    if folder is None:
        return f"lib{name}.so.{_ABI}"
    exact = folder / f"lib{name}.so.{_ABI}"
    return str(exact if exact.exists() else folder / f"lib{name}.so")


def _advice():
    repair = "install the package again" if (_PACKAGE / "lib").is_dir() else "run `make build`"
    return f"{repair}, or set DOVETAIL_LIBRARY_DIR to the folder with libraries of this version"


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
            f"Dovetail {__version__}: {_advice()}",
        )


def let_interrupt(function):
    """Lets Ctrl-C end the next calls of a library, where it raises KeyboardInterrupt when they have returned.

    `function` is that of the library which says so. A handler of somebody else may want to go on.
    """
    function(signal.getsignal(signal.SIGINT) is signal.default_int_handler)


@functools.cache
def open_library(name):
    """The library `lib<name>.so`, from where the package or the build has it, or from where the system looks.

    Raises ImportError if it cannot be opened, and DovetailError, with code 7, if it is of another version.
    """
    path = _path(name)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"cannot open {path} ({error}): {_advice()}") from error
    _check_version(library, name, path)
    return library
