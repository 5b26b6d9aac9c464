# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder that travels: files that share their weights, and a manifest of what to check.

A model's file and all programs compiled from it hold the same weights. These are stored once, in `tensors.bin`, as
indices of 4 bits where there are few distinct values; files are stored with holes in their place.
"""

import hashlib
import json
import os
import pathlib

import numpy as np

VERSION = 1
#: Smaller tensors stay in the files.
LEAST_BYTES = 4096
MOST_LEVELS = 16


class DamagedPackage(Exception):
    """A file of the package is missing, or not what it was."""


def _digest(data):
    return hashlib.sha256(data).hexdigest()


def _encode(data):
    """(levels, stored bytes): indices into few 32-bit words, or the bytes as they are with no levels."""
    if len(data) % 4:
        return None, data
    levels, indices = np.unique(np.frombuffer(data, "<u4"), return_inverse=True)
    if len(levels) > MOST_LEVELS:
        return None, data
    indices = np.append(indices, np.zeros(len(indices) % 2, np.int64)).astype(np.uint8)
    return levels.tolist(), (indices[0::2] | indices[1::2] << 4).tobytes()


def _decode(levels, stored, size):
    if levels is None:
        return stored
    packed = np.frombuffer(stored, np.uint8)
    indices = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)[: size // 4]
    return np.asarray(levels, "<u4")[indices].tobytes()


class PackageWriter:
    """Fills a folder; `close` writes the manifest."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._tensors, self._files, self._known = [], {}, {}
        self._end = 0
        self.folder.mkdir(parents=True, exist_ok=True)
        self._store = open(self.folder / "tensors.bin", "wb")

    def add_tensors(self, tensors):
        """Takes the bytes of tensors; returns those worth sharing as [(number, bytes)]."""
        return [(self._add_tensor(data), data) for data in tensors if len(data) >= LEAST_BYTES]

    def _add_tensor(self, data):
        key = _digest(data)
        if key not in self._known:
            levels, stored = _encode(data)
            self._known[key] = len(self._tensors)
            self._tensors.append(
                {"offset": self._end, "stored": len(stored), "bytes": len(data), "levels": levels}
            )
            self._store.write(stored)
            self._end += len(stored)
        return self._known[key]

    def add_file(self, name, data, tensors=()):
        """Stores `data` under `name`, without the tensors that it contains."""
        holes, start = [], 0
        for number, content in tensors:
            # Files mostly hold tensors in the model's order.
            found = data.find(content, start)
            if found < 0:
                found = data.find(content)
            if found < 0 or any(found < at + size and at < found + len(content) for at, _, size in holes):
                continue
            holes.append((found, number, len(content)))
            start = found + len(content)
        holes.sort()
        parts, position = [], 0
        for at, _, size in holes:
            parts.append(data[position:at])
            position = at + size
        parts.append(data[position:])
        path = self.folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(parts))
        self._files[name] = {
            "bytes": len(data),
            "sha256": _digest(data),
            "holes": [[at, number] for at, number, _ in holes],
        }
        return name

    def close(self, manifest):
        self._store.close()
        manifest |= {"version": VERSION, "tensors": self._tensors, "files": self._files}
        (self.folder / "manifest.json").write_text(json.dumps(manifest, indent=1))


class Package:
    """A package that was unpacked. Files are put together again when they are asked for."""

    def __init__(self, folder, restored):
        """`restored` is a folder for the files put together."""
        self.folder = pathlib.Path(folder)
        self.restored = pathlib.Path(restored)
        try:
            self.manifest = json.loads((self.folder / "manifest.json").read_text())
        except (OSError, ValueError) as error:
            raise DamagedPackage(
                f"{self.folder} holds no package: {error}; unpack what `gpu-check pack` wrote, and run its gpu-check"
            ) from error
        if self.manifest.get("version") != VERSION:
            raise DamagedPackage(
                f"{self.folder}: this script reads packages of version {VERSION}, "
                f"not {self.manifest.get('version')}; run the script of the package itself"
            )

    def require(self, names):
        """Ends the check unless these files of the folder are there."""
        for name in names:
            if not (self.folder / name).exists():
                raise DamagedPackage(f"{name} is missing from {self.folder}; unpack the package again")

    def tensor(self, number):
        """The bytes of a shared tensor."""
        entry = self.manifest["tensors"][number]
        with open(self.folder / "tensors.bin", "rb") as store:
            store.seek(entry["offset"])
            return _decode(entry["levels"], store.read(entry["stored"]), entry["bytes"])

    def path(self, name):
        """A file as it was, put together if it has not been yet."""
        path = self.restored / name
        if path.exists():
            return path
        try:
            entry = self.manifest["files"][name]
            residue = (self.folder / "files" / name).read_bytes()
        except (KeyError, OSError) as error:
            raise DamagedPackage(f"{name} is missing from {self.folder}; unpack the package again") from error
        parts, position, used = [], 0, 0
        for at, number in entry["holes"]:
            parts.append(residue[used : used + at - position])
            used += at - position
            parts.append(self.tensor(number))
            position = at + len(parts[-1])
        parts.append(residue[used:])
        data = b"".join(parts)
        if len(data) != entry["bytes"] or _digest(data) != entry["sha256"]:
            raise DamagedPackage(f"{name} in {self.folder} is damaged; unpack the package again")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Several processes may put it together at the same time.
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_bytes(data)
        partial.replace(path)
        return path

    def forget(self, name):
        """Frees the disk space of a file that was put together."""
        (self.restored / name).unlink(missing_ok=True)

    def arrays(self, name):
        """The (inputs, expected outputs) of a file of arrays, by name."""
        with np.load(self.path(name)) as file:
            values = {key: file[key] for key in file.files}
        below = lambda prefix: {k[len(prefix) :]: v for k, v in values.items() if k.startswith(prefix)}
        return below("input/"), below("output/")
