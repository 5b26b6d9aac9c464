# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/architecture.md against CMake, and the directions in which parts may include one another."""

import collections
import pathlib
import re

import pytest
from harness.backend import ROOT, build_dir

Target = collections.namedtuple("Target", "kind output folder linked")
Row = collections.namedtuple("Row", "names folders linked")

# Built where what they need is installed.
OPTIONAL = {"dovetail_mpi_mpich", "dovetail_mpi_openmpi", "dovetail_transport_mpi"}

# Every target links these, or they only carry headers of others.
SHARED = {"DovetailHeaders", "DovetailMLIR", "DovetailPlanSchema"}


def targets():
    """What CMake has written down at the end of its run, by name; see cmake/DovetailTargetList.cmake."""
    found = {}
    for line in (build_dir() / "targets.tsv").read_text().splitlines():
        name, kind, output, folder, linked = line.split("\t")
        found[name] = Target(kind, output, folder, re.findall(r"[\w-]+", linked))
    return found


def documented():
    """The rows of the table of CMake targets."""
    text = (ROOT / "docs/architecture.md").read_text()
    table = text.split("\n## CMake targets\n")[1].split("\n## ")[0]
    rows = []
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0].startswith("`"):
            rows.append(Row(*(re.findall(r"`([^`]+)`", cell) for cell in cells[:3])))
    return rows


def is_documented(name, target):
    """Parts of the product: no tests, examples or helpers of CMake."""
    return target.folder.split("/")[0] in ("runtime", "lib", "tools", "include") and name not in SHARED and not name.endswith("PCH")


def test_table_of_targets():
    rows, found = documented(), targets()
    assert len(rows) > 15 and len(found) > len(rows)
    ours = {name for name, target in found.items() if is_documented(name, target)}
    absent = OPTIONAL - ours
    listed = [name for row in rows for name in row.names if name not in absent]
    assert sorted(listed) == sorted(ours)
    for row in rows:
        for name in set(row.names) - absent:
            assert row.folders == [found[name].folder], name
            assert sorted(row.linked) == sorted(set(found[name].linked) & ours), name


INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
GENERATED = {"dovetail/runtime/plan_generated.h"}


def includes(folder):
    """(file, included file) for all files of the repository that are included in `folder`, relative to the root."""
    for file in sorted((ROOT / folder).rglob("*")):
        if file.suffix not in (".h", ".cpp", ".hpp", ".in", ".c"):
            continue
        for name in INCLUDE.findall(file.read_text()):
            places = [file.parent, ROOT / "runtime/lib", ROOT / "runtime/include", ROOT / "include", ROOT / "lib", ROOT]
            target = next((place / name for place in places if (place / name).is_file()), None)
            if target:
                yield str(file.relative_to(ROOT)), str(pathlib.Path(target).resolve().relative_to(ROOT))
            else:
                assert name in GENERATED or not name.startswith(("dovetail/", "../")), f"{file} includes {name}"


@pytest.fixture(scope="module")
def runtime_includes():
    found = list(includes("runtime"))
    assert ("runtime/lib/Session/Session.cpp", "runtime/lib/Session/Backend.h") in found
    assert ("runtime/lib/Backend/cpu/HostBackend.cpp", "runtime/lib/Session/Backend.h") in found
    return found


def test_runtime_includes_itself_alone(runtime_includes):
    assert [pair for pair in runtime_includes if not pair[1].startswith("runtime/")] == []


# Which folder of runtime/lib must not include which. Sessions use backends through their own interface.
FORBIDDEN = [
    ("Layout", ["Memory", "Plugin", "Program", "Session", "Transport", "Backend", "Runner", "Api"]),
    ("Memory", ["Plugin", "Program", "Session", "Transport", "Backend", "Runner", "Api"]),
    ("Plugin", ["Program", "Session", "Transport", "Backend", "Runner", "Api"]),
    ("Program", ["Session", "Transport", "Backend", "Runner", "Api"]),
    ("Threads", ["Layout", "Memory", "Plugin", "Program", "Session", "Transport", "Backend", "Runner", "Api"]),
    ("Session", ["Transport", "Backend", "Runner", "Api"]),
    ("Transport", ["Program", "Session", "Backend", "Runner", "Api"]),
    ("Transport/mpi", ["Transport/local", "Transport/message", "Transport/nccl", "Transport/sockets"]),
    ("Transport/nccl", ["Transport/local", "Transport/message", "Transport/mpi", "Transport/sockets"]),
    ("Transport/sockets", ["Transport/local", "Transport/message", "Transport/mpi", "Transport/nccl"]),
    ("Backend", ["Transport", "Runner", "Api"]),
    ("Backend/common", ["Backend/cpu", "Backend/cuda", "Backend/device", "Backend/emulated", "Session", "Runner"]),
    ("Backend/cpu", ["Backend/cuda", "Backend/device", "Backend/emulated"]),
    ("Backend/cuda", ["Backend/cpu", "Backend/device", "Backend/emulated", "Session", "Runner"]),
    ("Backend/device", ["Backend/cpu", "Backend/cuda", "Backend/emulated"]),
    ("Backend/emulated", ["Backend/cpu", "Backend/cuda", "Backend/device", "Session", "Runner"]),
]


@pytest.mark.parametrize("part, others", FORBIDDEN, ids=[part for part, _ in FORBIDDEN])
def test_directions(runtime_includes, part, others):
    own = f"runtime/lib/{part}/"
    assert any(file.startswith(own) for file, _ in runtime_includes)
    wrong = [
        f"{file} includes {target}"
        for file, target in runtime_includes
        for other in others
        if file.startswith(own) and target.startswith(f"runtime/lib/{other}/")
    ]
    assert wrong == []
