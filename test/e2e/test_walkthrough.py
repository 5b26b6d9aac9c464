# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/walkthrough.md shows what the compiler makes of its model.

Blocks of commands are run in one folder. A block ```mlir [FOLDER/]PHASE is an excerpt of that phase's dump: its lines are
lines of the dump, in this order. `...` is any text of a line or, by itself, any lines.
"""

import re

import pytest
from harness.backend import ROOT, tool
from test_documents import _blocks, _run

pytestmark = pytest.mark.skipif(tool("dovetail") is None, reason="the compiler is not built")

PAGE = ROOT / "docs/walkthrough.md"


def read_blocks(language):
    """(label, text) of each block of the page in `language`."""
    return [(label, text) for found, label, text in _blocks(PAGE) if found == language]


def find_missing(excerpt, dump):
    """The first line of `excerpt` that is not behind those before it in `dump`; None if all are."""
    lines = iter(line.strip() for line in dump.splitlines())
    for line in map(str.strip, excerpt.splitlines()):
        if line in ("", "..."):
            continue
        pattern = re.compile(".*".join(map(re.escape, line.split("..."))))
        if not any(pattern.fullmatch(candidate) for candidate in lines):
            return line
    return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walkthrough")
    for label, text in read_blocks("sh"):
        assert label == "run"
        _run("sh", text, folder)
    return folder


@pytest.mark.parametrize("label, excerpt", read_blocks("mlir"), ids=lambda value: value if "\n" not in value else "")
def test_excerpts(folder, label, excerpt):
    dump = folder / (f"{label}.mlir" if "/" in label else f"phases/{label}.mlir")
    missing = find_missing(excerpt, dump.read_text())
    assert missing is None, f"{PAGE.name} shows a line that {label} does not have there: {missing}"


def test_all_phases_are_shown():
    """Those that leave IR."""
    shown = {label for label, _ in read_blocks("mlir")}
    assert shown >= {"1-import", "2-simplify", "4-propagate", "5-partition", "6-lower", "kernels/7-codegen"}


@pytest.mark.parametrize("excerpt", ["a\nc", "a\n...\nd", "a\nb ... 2", "a\nb = 1 ..."])
def test_excerpts_match(excerpt):
    assert find_missing(excerpt, "a\n  b = 1 + 2\nc\nd\n") is None


@pytest.mark.parametrize("excerpt, missing", [("c\na", "a"), ("b", "b"), ("b = ... 3", "b = ... 3"), ("a\na", "a")])
def test_other_excerpts_do_not_match(excerpt, missing):
    assert find_missing(excerpt, "a\n  b = 1 + 2\nc\nd\n") == missing
