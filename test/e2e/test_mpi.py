# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole programs on CPUs with a process for each rank, which MPI connects: the same bits as from threads."""

import json

import numpy as np
import pytest
from harness import mpi
from harness.backend import SubprocessBackend, build_dir, call, tool
from harness.compare import differences
from harness.extent import one_of
from mpi_programs import succeed
from subjects import SMALL_SUBJECTS, SUBJECTS

pytestmark = pytest.mark.skipif(bool(mpi.missing()), reason=mpi.missing() or "nothing is missing")

MESHES = {2: {"y": 2}, 3: {"y": 3}, 4: {"y": 2, "x": 2}, 9: {"y": 3, "x": 3}, 64: {"y": 8, "x": 8}}
CASES = [
    ("unet2d-transposed", 2, "uneven"),
    ("unet2d-bilinear", 4, "empty"),
    ("unet3d", 3, "uneven"),
    ("vit", 2, "empty"),
    ("vit-encoder", 4, "uneven"),
    ("llama", 3, "uneven"),
    ("gpt", 4, "empty"),
    ("swin", 2, "uneven"),
    ("mobilenet-v3-small", 3, "empty"),
    ("dcgan", 4, "uneven"),
    ("small-unet2d-bilinear", 9, "uneven"),
    ("small-unet2d-transposed", 9, "empty"),
    ("small-vit", 9, "uneven"),
    ("small-unet2d-bilinear", 64, "uneven"),
]


# What a process sends to another of its machine is a message, too.
MESSAGES = {"DOVETAIL_SHARED_MEMORY": 0}


def _inputs(folder, inputs):
    flags = []
    for index, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"input{index}.npy", value)
        flags += ["--input", f"{name}=@{folder}/input{index}.npy"]
    return flags


def _outputs(folder, names, kind):
    files = {name: folder / f"{kind}{index}.npy" for index, name in enumerate(names)}
    return files, [part for name, file in files.items() for part in ("--output", f"{name}={file}")]


def _compare(folder, subject, ranks, style, runs, flags=()):
    """Compiles a subject, with more flags; `runs` gives commands to start ranks with from arguments, whose results are those of threads."""
    case = subject.prepared()
    artifact = folder / "model.dvt"
    SubprocessBackend().compile(
        case.path, artifact, subject.partition(MESHES[ranks], style), extra=[*subject.flags(), *flags]
    )
    inputs = _inputs(folder, case.inputs)
    files, outputs = _outputs(folder, case.expected, "local")
    succeed(call([tool("dovetail-run"), "run", artifact, *inputs, *outputs]))
    local = {name: np.load(file) for name, file in files.items()}
    found = differences(local, case.expected)
    assert not found, found
    for index, start in enumerate(runs):
        files, outputs = _outputs(folder, case.expected, f"mpi{index}-")
        succeed(mpi.call(start(["run", artifact, *inputs, *outputs, "--timeout", 200])))
        for name, file in files.items():
            assert np.load(file).tobytes() == local[name].tobytes(), name


def _both(ranks):
    """How to start ranks that share memory, and ranks that send messages."""
    return [
        lambda arguments, variables=variables: mpi.command(ranks, mpi.run_program(*arguments), variables=variables)
        for variables in ({}, MESSAGES)
    ]


def _subject(name):
    return next(subject for subject in SUBJECTS + SMALL_SUBJECTS if subject.name == name)


@one_of(3)
@pytest.mark.parametrize("name, ranks, style", CASES)
def test_model(tmp_path, name, ranks, style):
    """By memory that processes share, and by messages."""
    _compare(tmp_path, _subject(name), ranks, style, _both(ranks))


def test_one_that_shares_no_memory(tmp_path):
    """Rank 2 may not, or not as much as it takes: all of the machine send messages."""

    def start(limit):
        def commands(arguments):
            line = mpi.run_program(*arguments)
            return mpi.command(4, *[["env", f"DOVETAIL_SHARED_MEMORY={limit}", *line] if rank == 2 else line for rank in range(4)])

        return commands

    _compare(tmp_path, _subject("small-unet2d-transposed"), 4, "uneven", [start(0), start(5000)])


def test_over_sockets(tmp_path):
    """As between machines."""
    _compare(
        tmp_path,
        _subject("small-unet3d"),
        4,
        "uneven",
        [lambda arguments: mpi.command(4, mpi.run_program(*arguments), sockets=True, variables=MESSAGES)],
    )


def test_large_messages_are_sent_in_parts(tmp_path):
    """With the limit of a message at 1000 bytes."""
    name = "mpi_parts"
    assert (build_dir() / "lib" / f"libdovetail_transport_{name}.so").exists()
    _compare(
        tmp_path,
        _subject("small-vit"),
        4,
        "uneven",
        [lambda arguments: mpi.command(4, mpi.run_program(*arguments, comm=name), variables=MESSAGES)],
    )


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_steps_go_on_beside_messages(tmp_path, ranks):
    """What needs no halo, and what is not sent, is computed while messages that are late are under way, by library
    calls, too."""
    name, trace = "mpi_late", tmp_path / "trace.json"
    assert (build_dir() / "lib" / f"libdovetail_transport_{name}.so").exists()
    start = lambda arguments: mpi.command(ranks, mpi.run_program(*arguments, "--trace", trace, comm=name), variables=MESSAGES)
    _compare(tmp_path, _subject("small-unet2d-transposed"), ranks, "uneven", [start], ["--split-launches", "always"])
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["pid"] == 0]
    begins = {event["id"]: event["ts"] for event in events if event["ph"] == "b"}
    ends = {event["id"]: event["ts"] for event in events if event["ph"] == "e"}
    assert begins.keys() == ends.keys() and begins
    interiors = [event for event in events if event["name"].endswith("(interior)")]
    assert any(event["cat"] == "convolution" for event in interiors)
    for event in interiors:
        assert any(begins[id] <= event["ts"] and event["ts"] + event["dur"] <= ends[id] for id in begins), event
    for id, begin in begins.items():
        assert ends[id] - begin >= 200, "messages take 200 us at least"
    # What is sent comes right before an exchange, and the rest right behind its beginning.
    borders = [event for event in events if event["name"].endswith("(border)")]
    assert borders
    for border in borders:
        interior = next(event for event in interiors if event["name"] == border["name"].replace("border", "interior"))
        end = border["ts"] + border["dur"]
        assert any(end <= begin <= interior["ts"] < ends[id] for id, begin in begins.items()), border


@one_of(3)
@pytest.mark.parametrize("ranks, style", [(2, "empty"), (3, "uneven"), (4, "uneven"), (4, "empty"), (9, "uneven")])
@pytest.mark.parametrize("name", ["small-unet2d-transposed", "small-unet2d-bilinear", "small-unet3d"])
def test_parts_of_steps(tmp_path, name, ranks, style):
    """All that can be is computed beside exchanges: the same bits by memory that processes share, and by messages."""
    _compare(tmp_path, _subject(name), ranks, style, _both(ranks), ["--split-launches", "always"])
