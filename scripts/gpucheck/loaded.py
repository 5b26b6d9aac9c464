# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which copies of NVIDIA's libraries a process has loaded, and whether two sides use the same."""

import ctypes
import os
import pathlib
import re

LIBRARIES = {"cuDNN": "libcudnn", "cuBLASLt": "libcublasLt", "NCCL": "libnccl"}
_VERSIONS = {"cuDNN": "cudnnGetVersion", "cuBLASLt": "cublasLtGetVersion"}


def paths_in(maps):
    """{library: sorted paths} of the text of /proc/self/maps."""
    found = {}
    for path in {line.split(maxsplit=5)[5] for line in maps.splitlines() if len(line.split(maxsplit=5)) == 6}:
        name = os.path.basename(path.removesuffix(" (deleted)"))
        for library, stem in LIBRARIES.items():
            if re.fullmatch(rf"{stem}\.so(\.\d+)*", name):
                found.setdefault(library, set()).add(path)
    return {library: sorted(paths) for library, paths in found.items()}


def loaded():
    """{library: {path: version}} of this process; a version is a number, or None where the library does not say."""
    found = {}
    for library, paths in paths_in(pathlib.Path("/proc/self/maps").read_text()).items():
        found[library] = {path: _version(library, path) for path in paths}
    return found


def _version(library, path):
    handle = ctypes.CDLL(path)
    if library == "NCCL":
        value = ctypes.c_int()
        return value.value if handle.ncclGetVersion(ctypes.byref(value)) == 0 else None
    function = getattr(handle, _VERSIONS[library])
    function.restype = ctypes.c_size_t
    return function()


def preload(folder):
    """Loads the libraries of a package but its own runtime, which then finds them. The system's copies come first.

    Others in the process, such as PyTorch, do not see the folder. The runtime names a library that cannot be
    loaded.
    """
    left = [f for f in sorted(pathlib.Path(folder).iterdir()) if ".so" in f.name and "dovetail" not in f.name]
    # They need one another.
    while left:
        failed = [file for file in left if not (_can_load(file.name) or _can_load(file))]
        if len(failed) == len(left):
            return
        left = failed


def _can_load(name):
    try:
        ctypes.CDLL(str(name))
    except OSError:
        return False
    return True


def unequal(ours, peer):
    """Why a ratio of two sides, with what `loaded` says of each, is not comparable; nothing where it is.

    A library that one side does not use at all is no difference.
    """
    reasons = []
    for library in LIBRARIES:
        versions = [{v for v in side.get(library, {}).values()} for side in (ours, peer)]
        if all(versions) and versions[0] != versions[1]:
            shown = [" and ".join(sorted(str(v) for v in found)) for found in versions]
            reasons.append(f"{library} {shown[0]} here, {shown[1]} there")
    return "; ".join(reasons)


def new_in(after, before):
    """What was loaded since `before`: the side that was started in between."""
    found = {}
    for library, paths in after.items():
        if new := {path: version for path, version in paths.items() if path not in before.get(library, {})}:
            found[library] = new
    return found


#: What each side of a comparison brought into this process, in the order in which they came.
_sides = {}


def remember(side, found=None):
    """Notes what is loaded and was not before: it came with `side`. Only the first time that this side is named."""
    if side in _sides:
        return
    everything = loaded() if found is None else found
    for earlier in _sides.values():
        everything = new_in(everything, earlier)
    _sides[side] = everything


def used_by(side):
    """What a side uses: what it brought, or else what was there when it came."""
    found, earlier = dict(_sides.get(side, {})), list(_sides)
    for other in earlier[: earlier.index(side)] if side in _sides else earlier:
        for library, paths in _sides[other].items():
            found.setdefault(library, paths)
    return found
