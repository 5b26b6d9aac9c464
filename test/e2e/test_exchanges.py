# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes that real models exchange are the fewest possible: what each rank needs, less what it holds.

Every other model on 2 x 2 ranks; all models, and on other meshes, too, with DOVETAIL_ALL=1 (`make verify-all`).
"""

import json
import math
import re

import pytest
from harness.backend import call, tool
from harness.extent import EVERYTHING, one_of
from subjects import SUBJECTS

MESHES = [{"y": 2, "x": 2}, *([{"y": 3}, {"y": 4}] if EVERYTHING else [])]

_DIM = re.compile(r"_|(?P<axes>[\w+]+):(?:(?P<windows>(?:\[\d+, \d+\))+)|(?P<sizes>\d+(?:\+\d+)*))")


def _pieces(match):
    """The pieces (lo, hi) of a split dimension, as `dovetail inspect` writes them."""
    if match["windows"]:
        return [tuple(map(int, w)) for w in re.findall(r"\[(\d+), (\d+)\)", match["windows"])]
    cuts = [0]
    for size in match["sizes"].split("+"):
        cuts.append(cuts[-1] + int(size))
    return list(zip(cuts, cuts[1:]))


def _box(text, shape, mesh, coordinates):
    """What the rank at `coordinates` has of a tensor; `text` is such as `[_, y:3+4]`."""
    matches = list(_DIM.finditer(text[1 : text.rindex("]")]))
    assert len(matches) == len(shape), text
    box = []
    for match, extent in zip(matches, shape):
        if match["axes"] is None:
            box.append((0, extent))
            continue
        index = 0
        for axis in match["axes"].split("+"):
            index = index * mesh[axis] + coordinates[axis]
        box.append(_pieces(match)[index])
    return box


def _volume(box):
    return math.prod(max(0, hi - lo) for lo, hi in box)


def _least_bytes(move, mesh, rank):
    type, shape = re.fullmatch(r"([a-z]+\d*)\[(.*)\]", move["tensor"]).groups()
    shape = [int(extent) for extent in shape.split(",") if extent]
    coordinates = {}
    for axis, size in reversed(mesh.items()):
        rank, coordinates[axis] = divmod(rank, size)
    held, needed = (_box(move[side], shape, mesh, coordinates) for side in ("from", "to"))
    common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(held, needed)]
    size = 1 if type == "bool" else int(re.search(r"\d+", type)[0]) // 8
    return (_volume(needed) - _volume(common)) * size


@one_of(2)
@pytest.mark.parametrize("mesh", MESHES, ids=lambda mesh: "x".join(map(str, mesh.values())))
@pytest.mark.parametrize("subject", SUBJECTS if EVERYTHING else [s for s in SUBJECTS if not s.heavy][1::2], ids=lambda s: s.name)
def test_bytes_are_the_fewest(subject, mesh, tmp_path):
    report = tmp_path / "report.json"
    command = [tool("dovetail"), "compile", subject.prepared().path, "-o", tmp_path / "m.dvt", "--report", report]
    code, _, messages = call([*command, *subject.partition(mesh, "uneven").flags(), *subject.flags()])
    assert code == 0, messages
    exchanges = json.loads(report.read_text())["exchanges"]
    assert exchanges, "nothing is exchanged: the model is not split"
    for exchange in exchanges:
        for move in exchange["moves"]:
            if "partial" in move["from"]:
                continue  # A reduction: every rank needs what others have computed of the same elements.
            least = [_least_bytes(move, mesh, rank) for rank in range(math.prod(mesh.values()))]
            assert move["received_bytes"] == least, exchange
