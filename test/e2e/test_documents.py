# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of README.md and of docs/ do what the pages say, and links of all pages lead to something.

Blocks that begin with ```sh run or ```python run are run in the order of the page, in one folder for each page. A block
```output behind one is what it prints, numbers apart.
"""

import json
import os
import re
import subprocess
import sys

import pytest
from harness.backend import ROOT, build_dir, tool
from harness.sanitizers import sanitizers

pytestmark = pytest.mark.skipif(
    bool(sanitizers(build_dir())) or tool("dovetail") is None, reason="pages show builds for users"
)

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
#: Beside the code.
ROOMS = sorted(page for top in ("lib", "runtime", "bench") for page in (ROOT / top).rglob("README.md"))
BLOCK = re.compile(r"^```(\S*) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def _blocks(page):
    """(language, flag, text) of each block of code."""
    return [match.groups() for match in BLOCK.finditer(page.read_text())]


def _skeleton(text):
    """Lines without numbers, units and the width of gaps."""
    text = re.sub(r"\d+(\.\d+)?(e[-+]\d+)?", "#", text)
    return [re.sub(r"# [KMG]?i?B\b", "# B", re.sub(r"\s+", " ", line)).strip() for line in text.strip().splitlines()]


def _run(language, text, folder):
    """Runs a block as a reader does who has installed Dovetail; returns what it prints."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1")
    # Open MPI's mpirun asks for consent: to run as root, and more ranks than the machine has cores.
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    environment["PATH"] = f"{build_dir() / 'bin'}:{os.path.dirname(sys.executable)}:{environment['PATH']}"
    command = ["bash", "-eo", "pipefail", "-c", text] if language == "sh" else [sys.executable, "-c", text]
    result = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    assert result.returncode == 0, f"{text}\n{result.stdout}"
    return result.stdout


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(flag == "run" for _, flag, _ in _blocks(page))],
    ids=lambda page: page.name,
)
def test_commands(page, tmp_path):
    printed = None
    for language, flag, text in _blocks(page):
        if language == "output" and printed is not None:
            assert _skeleton(printed) == _skeleton(text)
        printed = _run(language, text, tmp_path) if flag == "run" else None


def test_first_result_prints_what_the_readme_says(tmp_path):
    """The demo, which README.md installs from a wheel."""
    shown = next(text for language, _, text in _blocks(ROOT / "README.md") if language == "output")
    assert _skeleton(_run("sh", "python -m dovetail.demo", tmp_path)) == _skeleton(shown)


def test_performance_is_what_was_measured():
    """The tables of docs/performance.md and its chart are made from measurements that are kept."""
    sys.path.append(str(ROOT / "bench"))
    import page as bench

    text = bench.PAGE.read_text()
    name = re.search(r"\(\.\./bench/results/(cpu-[\w.-]+\.json)\)", text)[1]
    results = json.loads((ROOT / "bench/results" / name).read_text())
    assert bench.document(results, name, text) == text
    assert bench.chart(results["measurements"]) == bench.CHART.read_text()


def _anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *ROOMS, ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page):
    """Every link leads to a file, and to a heading that is in it."""
    for target, anchor in LINK.findall(BLOCK.sub("", page.read_text())):
        if "://" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name} links {target}"
        if anchor and path.suffix == ".md":
            assert anchor in _anchors(path), f"{page.name} links {target}#{anchor}"


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90
