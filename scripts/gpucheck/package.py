# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder that travels: files that share their weights, and a manifest of what to check.

A model's file and all programs compiled from it hold the same weights. These are stored once, in `tensors.bin`, as
indices of 4 bits where there are few distinct values; files are stored with holes in their place. A tensor may repeat a
block of at most 64 KiB, which others repeat, too. Such a tensor is stored as the number of the block and a place in it.
"""

import hashlib
import json
import lzma
import os
import pathlib

import numpy as np

VERSION = 1
#: Smaller tensors stay in the files.
LEAST_BYTES = 4096
MOST_LEVELS = 16
#: Of the blocks that tensors repeat, in bytes.
LONGEST_PERIOD = 1 << 16


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


def _period(data):
    """The number of bytes that `data` repeats, at least twice; None if it repeats none, or more than LONGEST_PERIOD."""
    head, period = data[:64], 0
    for _ in range(4):
        period = data.find(head, period + 1, LONGEST_PERIOD + len(head))
        if period < 0 or 2 * period > len(data):
            return None
        if data[period:] == data[:-period]:
            return period
    return None


def _repeated(block, phase, size):
    """`size` bytes of a block's repetitions, from its byte `phase` on."""
    return (block * ((phase + size) // len(block) + 1))[phase : phase + size]


def pack_executable(path):
    """Stores a program or library of the package as NAME.xz, which `Package.require` unpacks."""
    path.with_name(f"{path.name}.xz").write_bytes(lzma.compress(path.read_bytes(), preset=0))
    path.unlink()


def _packed(data):
    """(the name of a packing, or nothing, and the bytes to store)."""
    stored = lzma.compress(data, preset=4) if len(data) > 64 else data
    return ("xz", stored) if len(stored) < len(data) else (None, data)


def _places(data, tensors):
    """Where `data` holds each of the tensors, as sorted holes (place, number, size) that do not overlap.

    Large ones first: a small one may be a part of them, where both repeat a block.
    """
    found = {}
    for order in sorted(range(len(tensors)), key=lambda order: -len(tensors[order][1])):
        number, content = tensors[order]
        # Files mostly hold tensors in the model's order.
        start = max((at + size for other, (at, _, size) in found.items() if other < order), default=0)
        for begin in (start, 0):
            at = data.find(content, begin)
            while at >= 0 and (end := _overlap(at, len(content), found.values())):
                at = data.find(content, end)
            if at >= 0:
                found[order] = at, number, len(content)
                break
    return sorted(found.values())


def _overlap(at, size, holes):
    """The end of the last hole that these bytes overlap, or 0."""
    return max((place + extent for place, _, extent in holes if at < place + extent and place < at + size), default=0)


class PackageWriter:
    """Fills a folder; `close` writes the manifest. With `packs`, files are compressed if that makes them smaller."""

    def __init__(self, folder, packs=False):
        self.folder = pathlib.Path(folder)
        self._packs = packs
        self._tensors, self._files, self._known, self._blocks = [], {}, {}, []
        self._end = 0
        self.folder.mkdir(parents=True, exist_ok=True)
        self._store = open(self.folder / "tensors.bin", "wb")

    def add_tensors(self, tensors):
        """Takes the bytes of tensors; returns those worth sharing as [(number, bytes)]."""
        return [(self._add_tensor(data), data) for data in tensors if len(data) >= LEAST_BYTES]

    def _add_tensor(self, data):
        key = _digest(data)
        if key not in self._known:
            self._known[key] = len(self._tensors)
            self._tensors.append(self._repetition(data) or self._whole(data))
        return self._known[key]

    def add_blocks(self, blocks):
        """Says which blocks tensors may repeat, so that a tensor that is shorter than one is found, too."""
        self._blocks += [{"data": block, "stored": None} for block in blocks]

    def _repetition(self, data):
        """The entry of a tensor that repeats a block, or None."""
        found = self._phase(data)
        if not found and (period := _period(data)):
            self.add_blocks([data[:period]])
            found = len(self._blocks) - 1, 0
        if not found:
            return None
        number, phase = found
        block = self._blocks[number]
        block["stored"] = block["stored"] or self._whole(block["data"])
        return {"block": number, "phase": phase, "bytes": len(data)}

    def _phase(self, data):
        """(number of the block, place in it) of a tensor that repeats a known block, or None."""
        for number, block in enumerate(self._blocks):
            period = len(block["data"])
            phase = (2 * block["data"]).find(data[:period])
            if phase >= 0 and data[period:] == data[:-period]:
                return number, phase
        return None

    def _whole(self, data):
        levels, stored = _encode(data)
        entry = {"offset": self._end, "stored": len(stored), "bytes": len(data), "levels": levels}
        self._store.write(stored)
        self._end += len(stored)
        return entry

    def add_file(self, name, data, tensors=()):
        """Stores `data` under `name`, without the tensors that it contains."""
        holes = _places(data, tensors)
        parts, position = [], 0
        for at, _, size in holes:
            parts.append(data[position:at])
            position = at + size
        parts.append(data[position:])
        path = self.folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        packing, stored = _packed(b"".join(parts)) if self._packs else (None, b"".join(parts))
        path.write_bytes(stored)
        self._files[name] = {
            "bytes": len(data),
            "sha256": _digest(data),
            "holes": [[at, number] for at, number, _ in holes],
        } | ({"packing": packing} if packing else {})
        return name

    def close(self, manifest):
        self._store.close()
        blocks = [block["stored"] for block in self._blocks]
        manifest |= {"script": self._script()}
        manifest |= {"version": VERSION, "tensors": self._tensors, "blocks": blocks, "files": self._files}
        (self.folder / "manifest.json").write_text(json.dumps(manifest, indent=1))


    def _script(self):
        """The files of Python that `run` needs, as far as they are in the folder."""
        found = (file.relative_to(self.folder) for file in self.folder.rglob("*.py"))
        return sorted(str(name) for name in found if name.parts[0] != "files")


class Package:
    """A package that was unpacked. Files are put together again when they are asked for."""

    def __init__(self, folder, restored):
        """`restored` is a folder for the files put together."""
        self.folder = pathlib.Path(folder)
        self.restored = pathlib.Path(restored)
        #: The folder of the runtime, with `bin` and `lib`.
        self.runtime = self.folder
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
        """Ends the check unless these files of the runtime are there.

        Where some are packed, the runtime is in the folder of restored files afterwards: nothing is written into the
        package, which may be read only.
        """
        for name in names:
            if not any(path.exists() for path in self._forms(name)):
                raise DamagedPackage(f"{name} is missing from {self.folder}; unpack the package again")
        if all((self.folder / name).exists() for name in names):
            return
        self.runtime = self.restored / "runtime"
        for name in names:
            path = self.runtime / name
            path.parent.mkdir(parents=True, exist_ok=True)
            plain, packed = self._forms(name)
            path.write_bytes(plain.read_bytes() if plain.exists() else self._unpacked(packed))
            path.chmod(0o755)

    def _forms(self, name):
        """(the path of a file of the runtime, its path where it is packed)."""
        path = self.folder / name
        return path, path.with_name(f"{path.name}.xz")

    def _unpacked(self, packed):
        try:
            return lzma.decompress(packed.read_bytes())
        except lzma.LZMAError as error:
            raise DamagedPackage(f"{packed.name} in {self.folder} is damaged; unpack the package again") from error

    def tensor(self, number):
        """The bytes of a shared tensor."""
        entry = self.manifest["tensors"][number]
        if "block" not in entry:
            return self._stored(entry)
        return _repeated(self._stored(self.manifest["blocks"][entry["block"]]), entry["phase"], entry["bytes"])

    def _stored(self, entry):
        try:
            store = open(self.folder / "tensors.bin", "rb")
        except OSError as error:
            raise DamagedPackage(f"tensors.bin is missing from {self.folder}; unpack the package again") from error
        with store:
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
            if entry.get("packing") == "xz":
                residue = lzma.decompress(residue)
        except lzma.LZMAError as error:
            raise DamagedPackage(f"{name} in {self.folder} is damaged; unpack the package again") from error
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
