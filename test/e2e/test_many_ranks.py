# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts do not grow with the number of ranks: those that are alike have one row, and the JSON has all of them."""

import json
import re
import resource

import onnx
import pytest
from harness.backend import call, tool
from onnx import TensorProto, helper


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A convolution and a pool, whose edges make ranks differ."""
    nodes = [
        helper.make_node("AveragePool", ["x"], ["p"], kernel_shape=[5, 5], pads=[2, 2, 2, 2], name="first"),
        helper.make_node("MaxPool", ["p"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], name="second"),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 8229, 12]) for name in "xy"]
    graph = helper.make_graph(nodes, "pools", ports[:1], ports[1:])
    path = tmp_path_factory.mktemp("ranks") / "pools.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def _compile(path, ranks, *options):
    artifact = path.with_name(f"pools{ranks}.dvt")
    split = ["--mesh", f"y={ranks}", "--shard", "x=_,_,y,_", "--follow", "100"]
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", artifact, *split, *options])
    assert code == 0, messages
    return artifact


def _inspect(artifact, *options):
    code, text, messages = call([tool("dovetail"), "inspect", artifact, *options])
    assert code == 0, messages
    return text


def _ranks(text):
    """The ranks of a list such as 0-2, 5."""
    ranks = []
    for part in text.split(", "):
        first, _, last = part.partition("-")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


def test_text_is_bounded(path):
    texts = {ranks: _inspect(_compile(path, ranks)) for ranks in (16, 64, 1024)}
    for text in texts.values():
        assert max(map(len, text.splitlines())) < 400
        assert len(text) < 1.3 * len(texts[16])
    # 8229 = 64 * 128 + 37: the first 37 shards have a row more.
    assert "y:37 x 129 + 27 x 128" in texts[64]


def test_all_ranks_are_listed_once(path):
    text = _inspect(_compile(path, 64))
    table = text[text.index("Memory of ranks") :].splitlines()[2:]
    rows = [re.split(r"  +", line.strip()) for line in table if line.strip()]
    assert 1 < len(rows) <= 12
    assert sorted(rank for row in rows for rank in _ranks(row[0])) == list(range(64))
    report = json.loads(_inspect(_compile(path, 64), "--json"))
    assert [rank["rank"] for rank in report["ranks"]] == list(range(64))
    moves = [move for exchange in report["exchanges"] for move in exchange["moves"]]
    assert moves and all(len(move["received_bytes"]) == 64 for move in moves)
    assert "129+129+129" in moves[0]["from"] + moves[0]["to"] + report["inputs"][0]["sharding"]
    # Each number of the table of exchanges is that of the ranks behind it.
    lines = text[text.index("Exchanges") : text.index("Memory of ranks")].splitlines()[2:]
    for line, move in zip([line for line in lines if line.strip()], moves, strict=True):
        groups = re.findall(r"(\d+) \(([\d, -]+)\)", line)
        assert groups
        for number, ranks in groups:
            assert {move["received_bytes"][rank] for rank in _ranks(ranks)} == {int(number)}
        assert sum(len(_ranks(ranks)) for _, ranks in groups) == 64


def test_uneven_cuts(path):
    """Cuts of which no two are equal are cut short, and so is the list of ranks."""
    sizes = [100 + rank for rank in range(40)]
    sizes.append(8229 - sum(sizes))
    artifact = _compile(path, 41, "--sizes", "x:2=" + ",".join(map(str, sizes)))
    text = _inspect(artifact)
    assert max(map(len, text.splitlines())) < 400
    assert f"y:100+101+102+...+{sizes[-1]} (41 shards)" in text
    assert re.search(r"\d+ more groups of ranks need less; --json lists all ranks", text)
    # The rank that needs most is listed.
    report = json.loads(_inspect(artifact, "--json"))
    most = max(report["ranks"], key=lambda rank: rank["total_bytes"])
    table = text[text.index("Memory of ranks") :].splitlines()[2:14]
    listed = [rank for line in table for rank in _ranks(re.split(r"  +", line.strip())[0])]
    assert len(listed) == 12 and most["rank"] in listed
    assert f"x:{'+'.join(map(str, sizes))}"[2:] in report["inputs"][0]["sharding"]


def test_few_ranks_are_listed_as_they_are(path):
    text = _inspect(_compile(path, 3, "--sizes", "x:2=4000,229,4000"))
    assert "y:4000+229+4000" in text and not re.search(r"\d x \d", text)


@pytest.mark.parametrize("ranks, is_cut", [(4, False), (41, True)])
def test_legend_of_the_page(path, ranks, is_cut, tmp_path):
    """The page says how many groups it does not draw."""
    sizes = [100 + rank for rank in range(ranks - 1)]
    sizes.append(8229 - sum(sizes))
    command = [tool("dovetail"), "plan", path, "--mesh", f"y={ranks}", "--shard", "x=_,_,y,_", "--follow", "100"]
    page = tmp_path / "page.html"
    code, _, messages = call([*command, "--sizes", "x:2=" + ",".join(map(str, sizes)), "--report", page])
    assert code == 0, messages
    html = page.read_text()
    memory = html[html.index("<h2>Memory of ranks") :]
    entries = memory[memory.index('class="legend"') : memory.index("<svg")].count("<i ")
    said = re.search(r"(\d+) of (\d+) groups of equal ranks, which take no more than these, are not shown", memory)
    assert entries == min(ranks, 10) and bool(said) == is_cut
    if is_cut:
        assert [int(said[1]), int(said[2])] == [ranks - 10, ranks]
    # Each entry has a colour of its own.
    legend = memory[: memory.index("<svg")]
    assert len(set(re.findall(r"background:(#\w+)", legend))) == entries


def _bars(page, title):
    """The bars of a part of the report: the text of ranks, and the amount beside it."""
    part = page[page.index(f"<h2>{title}") :]
    part = part[: part.index("</table>")]
    rows = re.findall(r"<tr><td>ranks? ([^<]*)</td><td class=\"bar\"><div [^>]*></div></td><td>([^<]*)</td></tr>", part)
    assert len(rows) == part.count("<tr>")
    return rows


def _agrees(text, number):
    value, unit = text.split()
    unit = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]
    return abs(float(value) * unit - number) <= 0.051 * unit


def test_report_is_bounded(path):
    pages = {}
    for ranks in (16, 64, 4096):
        report = path.with_name("report.html")
        _compile(path, ranks, "--report", report)
        pages[ranks] = report.read_text()
        assert max(len(cell) for cell in re.findall(r"<td>([^<]*)", pages[ranks])) < 300
    assert len(pages[64]) < 1.3 * len(pages[16]) and len(pages[4096]) < 1.3 * len(pages[16])
    assert "y:37 x 129 + 27 x 128" in pages[64]


def test_report_has_each_rank_once(path):
    report = path.with_name("report.html")
    artifact = _compile(path, 64, "--report", report)
    ranks = json.loads(_inspect(artifact, "--json"))["ranks"]
    page = report.read_text()
    for title, key in (("Memory of each rank", "total_bytes"), ("Bytes received by each rank", "received_bytes")):
        bars = _bars(page, title)
        assert 1 < len(bars) <= 12
        assert sorted(rank for names, _ in bars for rank in _ranks(names)) == list(range(64))
        for names, amount in bars:
            assert all(_agrees(amount, ranks[rank][key]) for rank in _ranks(names))


def test_report_says_what_it_leaves_out(path):
    sizes = [100 + rank for rank in range(40)]
    sizes.append(8229 - sum(sizes))
    report = path.with_name("report.html")
    _compile(path, 41, "--sizes", "x:2=" + ",".join(map(str, sizes)), "--report", report)
    page = report.read_text()
    assert f"y:100+101+102+...+{sizes[-1]} (41 shards)" in page
    numbers = {rank["total_bytes"] for rank in json.loads(_inspect(path.with_name("pools41.dvt"), "--json"))["ranks"]}
    said = re.search(r"(\d+) more groups of ranks have less; --report FILE.json lists all ranks", page)
    assert len(_bars(page, "Memory of each rank")) == 12 and int(said[1]) == len(numbers) - 12


@pytest.mark.parametrize("ranks", [256, 4096])
def test_parts_of_the_page(path, ranks, tmp_path):
    """Each of a few hundred parts is a box with a title; of thousands, lines say where they begin."""
    page = tmp_path / "page.html"
    command = [tool("dovetail"), "plan", path, "--mesh", f"y={ranks}", "--shard", "x=_,_,y,_", "--follow", "100"]
    code, _, messages = call([*command, "--report", page])
    assert code == 0, messages
    html = page.read_text()
    parts = html[html.index("<h2>What ranks hold") : html.index("<h2>Time of ranks")]
    assert parts.count(f">{ranks} parts") == 2 and len(parts) < 100_000
    boxes = 2 * ranks if ranks == 256 else 0
    assert parts.count("<title>rank ") == boxes and parts.count(", not all drawn<") == (2 if not boxes else 0)
    assert (parts.count("<line ") > 100) == (not boxes)


def test_time_grows_with_ranks(path):
    """`inspect` plans each exchange once, and not once for each rank."""

    def seconds(ranks):
        artifact = _compile(path, ranks)
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        _inspect(artifact)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime

    # Where each rank planned, this took hundreds of times as long.
    assert seconds(16384) < 1 + 20 * seconds(512)
