# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which folders include which, against cmake/Rooms.txt, and the libraries that they are linked with, against CMake."""

import collections
import pathlib
import re

import pytest
from harness.backend import ROOT, build_dir

TABLE = ROOT / "cmake/Rooms.txt"
SOURCES = ("include", "lib", "runtime", "tools")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
#: In TableGen files.
TABLEGEN_INCLUDE = re.compile(r'^\s*include\s+"([^"]+)"', re.MULTILINE)
#: Headers that CMake writes.
GENERATED = {"dovetail/runtime/PluginBuild.h"}
#: Where folders of headers are described: together with the sources beside them.
TWINS = {
    "include/dovetail/": "lib/",
    "runtime/include/dovetail/Layout/": "runtime/lib/Layout/",
    "runtime/include/dovetail/Calls/": "runtime/lib/Calls/",
    "runtime/include/dovetail/Text/": "runtime/lib/Text/",
    "runtime/include/dovetail/tools/": "runtime/tools/",
}


def read_table():
    """For each room, in their order, those that it includes."""
    rooms = {}
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            room, _, included = line.partition(":")
            assert room not in rooms, f"{room} is there twice"
            rooms[room] = included.split()
    return rooms


ROOMS = read_table()


def room_of(file):
    """The innermost room that a file, named from the root, is in."""
    for headers, sources in TWINS.items():
        if file.startswith(headers):
            file = sources + file[len(headers) :]
            break
    return max((room for room in ROOMS if file.startswith(f"{room}/")), key=len, default=None)


def find_includes():
    """(file, included file) of all sources, named from the root, as far as both are files of the repository."""
    for top in SOURCES:
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".hpp", ".in", ".c", ".inc", ".td"):
                continue
            pattern = TABLEGEN_INCLUDE if file.suffix == ".td" else INCLUDE
            for name in pattern.findall(file.read_text()):
                places = [file.parent, ROOT / "runtime/lib", ROOT / "runtime/include", ROOT / "include", ROOT / "lib", ROOT]
                target = next((place / name for place in places if (place / name).is_file()), None)
                if target:
                    yield str(file.relative_to(ROOT)), str(target.resolve().relative_to(ROOT))
                else:
                    is_generated = name.endswith((".inc", "_generated.h")) or name in GENERATED
                    assert is_generated or not name.startswith(("dovetail/", "../")), f"{file} includes {name}"


@pytest.fixture(scope="module")
def includes():
    """For each pair of rooms, an include."""
    found = {}
    for file, target in find_includes():
        rooms = room_of(file), room_of(target)
        assert all(rooms), f"{file if not rooms[0] else target} is in no room of {TABLE.name}"
        if rooms[0] != rooms[1]:
            found.setdefault(rooms, f"{file} includes {target}")
    assert len(found) > 100
    return found


def test_rooms_include_what_the_table_says(includes):
    listed = {(room, other) for room, others in ROOMS.items() for other in others}
    assert [how for rooms, how in includes.items() if rooms not in listed] == []
    assert sorted(listed - set(includes)) == [], "listed, but not included any more"


def test_rooms_include_rooms_above_them_in_the_table():
    order = list(ROOMS)
    assert [(room, other) for room in ROOMS for other in ROOMS[room] if order.index(other) >= order.index(room)] == []


def test_runtime_includes_itself_alone():
    own = [room for room in ROOMS if room.startswith("runtime/")]
    assert len(own) > 10
    assert [(room, other) for room in own for other in ROOMS[room] if other not in own] == []


def read_libraries():
    """For each folder with one library, the folders of the libraries that this one is linked with directly."""
    targets = {}
    for line in (build_dir() / "targets.tsv").read_text().splitlines():
        name, folder, linked = line.split("\t")
        targets[name] = (folder, re.findall(r"[\w-]+", linked))
    folders = collections.Counter(folder for folder, _ in targets.values())
    return {
        folder: {targets[other][0] for other in linked if other in targets} - {folder}
        for folder, linked in targets.values()
        if folders[folder] == 1
    }


def reach(folder, libraries):
    """`folder`, and all folders that its library is linked with."""
    seen, left = set(), [folder]
    while left:
        folder = left.pop()
        if folder not in seen:
            seen.add(folder)
            left.extend(libraries.get(folder, ()))
    return seen


def test_libraries_are_linked_with_what_they_include():
    """And with nothing else. A folder may have the sources of several rooms."""
    libraries = read_libraries()

    def library_of(room):
        return max((folder for folder in libraries if f"{room}/".startswith(f"{folder}/")), key=len, default=None)

    missing, checked, needed = [], 0, set()
    for room, others in ROOMS.items():
        for other in others:
            pair = library_of(room), library_of(other)
            if all(pair):
                checked += 1
                needed.add(pair)
                if pair[1] not in reach(pair[0], libraries):
                    missing.append(f"{pair[0]} includes {pair[1]}, but is not linked with it")
    assert checked > 30 and missing == []
    rooms = [folder for folder in libraries if library_of(folder) == folder and room_of(f"{folder}/")]
    links = {(folder, other) for folder in rooms for other in libraries[folder] if other in libraries}
    assert len(links) > 30 and sorted(links - needed) == []


def test_folders_are_there():
    assert [room for room in ROOMS if not pathlib.Path(ROOT / room).is_dir()] == []
