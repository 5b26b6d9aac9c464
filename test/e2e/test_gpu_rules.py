# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `gpu-check report` decides and joins, with results and traces that are made up. Needs no build and no GPU."""

import copy
import json
import subprocess
import sys

import pytest
from harness.backend import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from gpucheck import joining, journal, losses, page, rules  # noqa: E402

CONV = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw_tilesize128x128x8"


def _line(part, name, variant, ms=None, status="ok", **more):
    line = {"part": part, "name": name, "variant": variant, "status": status, "message": "", **more}
    return line | ({"ms": ms} if ms is not None else {})


def _engines(name, ms, shares, joined="joined"):
    return _line("A", name, "f32", ms, joined=joined, device_ms=0.9 * ms, shares_us=shares, steps=[], reason="")


def _layer(layout, deterministic, ms, **more):
    named = f"torch {layout}{' deterministic' if deterministic else ''}"
    return _line("B", "layer", named, ms, layer=True, layout=layout, deterministic=deterministic, **more)


def _peer(name, program, ms, ours_ms, how="CUDA graph", **more):
    return _line("E", name, f"{how}, {program}", ms, how=how, program=program, ours_ms=ours_ms, **more)


def _result(*measurements, **parts):
    found = {name: {"title": "", "status": "ok", "note": ""} for name in "0ABECTDFGH"}
    for name, status in parts.items():
        found[name]["status"] = status
    return {"complete": True, "parts": found, "measurements": list(measurements), "ceilings": {}}


def _decision(rule, result):
    (found,) = (d for d in rules.decide(result) if d["rule"] == rule)
    assert bool(found["then"]) == (found["verdict"] != "undecided")
    return found["verdict"], found["reason"], found["then"]


SLOW_NHWC = [_layer("NHWC", False, 0.09), _layer("NHWC", True, 0.12), _layer("NCHW", True, 0.05)]


@pytest.mark.parametrize(
    ("result", "verdict", "reason"),
    [
        (_result(*SLOW_NHWC), "holds", "NCHW deterministic 50.0 µs, NHWC 90.0 µs"),
        (_result(_layer("NHWC", False, 0.06), _layer("NCHW", True, 0.05)), "does not", "NHWC 60.0 µs"),
        # What is wrong has no time.
        (
            _result(_layer("NHWC", False, None, status="differs"), _layer("NCHW", True, 0.05)),
            "undecided",
            "part B failed",
        ),
        (_result(_layer("NHWC", False, 0.06), B="incomplete"), "undecided", "part B late"),
        (_result(_layer("NCHW", True, None, status="unfinished"), *SLOW_NHWC[:2]), "undecided", "part B late"),
        (
            _result(_layer("NCHW", True, None, status="skipped", peer=True), *SLOW_NHWC[:2]),
            "undecided",
            "part B: no PyTorch",
        ),
        (_result(B="skipped"), "undecided", "part B skipped"),
        (_result(B="failed"), "undecided", "part B failed"),
    ],
)
def test_nchw(result, verdict, reason):
    found = _decision("R1", result)
    assert found[0] == verdict and reason in found[1]
    no = "the layout is not the cause: see the largest losses"
    assert found[2] == {"holds": "NCHW staging and autotune first", "does not": no}.get(verdict, "")


FEW = {"convolution": 800.0, "post-operations": 50.0}
MANY = {"convolution": 600.0, "post-operations": 200.0}


@pytest.mark.parametrize(
    ("result", "verdict", "reason"),
    [
        (_result(_engines("resnet50", 1.0, FEW), _engines("unet512", 1.0, MANY)), "holds", "unet512 22.2 %"),
        (_result(_engines("resnet50", 1.0, MANY), A="incomplete"), "holds", "resnet50 22.2 %"),
        (_result(_engines("resnet50", 1.0, FEW), _engines("unet512", 1.0, FEW)), "does not", "resnet50 5.6 %"),
        (_result(_engines("resnet50", 1.0, FEW), A="incomplete"), "undecided", "part A late"),
        (_result(_line("A", "resnet50", "f32", status="differs")), "undecided", "part A failed"),
        (_result(_engines("resnet50", 1.0, {}, "by steps")), "undecided", "part A: no kernels were seen"),
    ],
)
def test_post_operations(result, verdict, reason):
    found = _decision("R2", result)
    assert found[0] == verdict and reason in found[1]


@pytest.mark.parametrize(
    ("result", "verdict", "reason"),
    [
        (_result(_engines("resnet50", 1.0, FEW)), "holds", "80 % of 1 ms"),
        (_result(_engines("resnet50", 1.0, MANY, "not joined")), "does not", "60 % of 1 ms"),
        (_result(_engines("resnet50", 1.0, {}, "by steps")), "undecided", "part A: no kernels were seen"),
        # A line that was too long has no details.
        (_result(_line("A", "resnet50", "f32", 1.0, left_out=["all else"])), "undecided", "no kernels were seen"),
        (_result(_line("A", "resnet50", "f32", status="error")), "undecided", "part A failed"),
        (_result(A="incomplete"), "undecided", "part A late"),
    ],
)
def test_starved(result, verdict, reason):
    found = _decision("R4", result)
    assert found[0] == verdict and reason in found[1]


def _near(program, ours, peer, autotuned=None, **more):
    """Both models against a peer; `autotuned` is the time in part B, or False where algorithms were not measured."""
    more |= {"autotuned": autotuned is not False}
    found = [_peer(name, program, peer, ours, **more) for name in rules.CONVOLUTIONAL]
    if autotuned:
        found += [_line("B", name, f"{program} autotuned", autotuned) for name in rules.CONVOLUTIONAL]
    return found


def _tuned(program, ms):
    return [_line("T", name, f"{program} autotuned", ms) for name in rules.CONVOLUTIONAL]


UNEQUAL = "cuDNN 91900 here, 92000 there"


@pytest.mark.parametrize(("rule", "program"), [("R3", "tf32"), ("R5", "f32")])
@pytest.mark.parametrize(
    ("make", "parts", "verdict", "reason"),
    [
        (lambda p: _near(p, 1.05, 1.0), {}, "holds", "resnet50 1.05 × CUDA graph"),
        (lambda p: _near(p, 1.5, 1.0), {}, "does not", "resnet50 1.50"),
        # The time of another process is beside, and does not count.
        (lambda p: _near(p, 1.5, 1.0, autotuned=0.9), {}, "does not", "resnet50 1.50 × CUDA graph (alone: 0.9"),
        # Nor do our times in cells of other peers.
        (
            lambda p: _near(p, 1.5, 1.0) + _near(p, 1.0, 3.0, how="eager"),
            {},
            "does not",
            "unet512 1.50 × CUDA graph",
        ),
        (lambda p: _near(p, 1.5, 1.0, autotuned=False), {}, "undecided", "algorithms of ours not measured"),
        (lambda p: _near(p, 1.05, 1.0, autotuned=False), {}, "holds", "unet512 1.05"),
        # Nor are they near with algorithms measured, beside no peer.
        (
            lambda p: _near(p, 1.5, 1.0, autotuned=False) + _tuned(p, 1.4),
            {},
            "does not",
            "resnet50 1.50 × CUDA graph (alone: 1.4 ms), unet512 1.50",
        ),
        (lambda p: _near(p, 1.5, 1.0, autotuned=False) + _tuned(p, 1.0), {}, "undecided", "algorithms of ours not"),
        # One that is slower suffices.
        (lambda p: _near(p, 1.5, 1.0)[:1], {"E": "incomplete"}, "does not", "resnet50 1.50"),
        (lambda p: _near(p, 1.0, 1.0)[:1], {"E": "incomplete"}, "undecided", "part E late"),
        (lambda p: _near(p, 1.0, 1.0, not_comparable=UNEQUAL), {}, "undecided", UNEQUAL),
        (lambda p: _near(p, 1.0, None, status="peer failed"), {}, "undecided", "part E failed"),
        (lambda p: _near(p, 1.0, None, status="skipped"), {}, "undecided", "part E: no PyTorch"),
        (lambda p: _near(p, None, 1.0), {}, "undecided", "ours was not measured beside CUDA graph"),
    ],
)
def test_near_peers(rule, program, make, parts, verdict, reason):
    found = _decision(rule, _result(*make(program), **parts))
    assert found[0] == verdict and reason in found[1]


@pytest.mark.parametrize(
    ("ms", "parts", "verdict", "reason"),
    [
        ((0.9, 0.5, 0.8), {}, "holds", "resnet50 0.90 ×, unet512 0.50 ×, unet-1024 0.80 ×"),
        ((0.9, 1.5, 0.8), {}, "does not", "unet512 1.50 ×"),
        # One that is slower suffices.
        ((None, 1.5, 0.8), {}, "does not", "unet512 1.50 ×"),
        ((0.9, 0.5, None), {"C": "incomplete"}, "undecided", "part C late (unet-1024 not measured); resnet50 0.90"),
        ((None, None, None), {"B": "failed"}, "undecided", "part B failed"),
    ],
)
def test_own_kernels(ms, parts, verdict, reason):
    names = (("B", "resnet50"), ("B", "unet512"), ("C", "unet-1024"))
    found = [_line(*name, "f32", 1.0) for name in names]
    found += [_line(*name, "f32-no-libraries", own) for name, own in zip(names, ms) if own]
    decision = _decision("R6", _result(*found, **parts))
    assert decision[0] == verdict and reason in decision[1]


def test_best_peer_counts():
    """The ratio is to the fastest peer that uses the same libraries."""
    slow = _near("f32", 1.0, 1.0, how="eager")
    fast = _near("f32", 1.0, 0.5, how="CUDA graph, NCHW")
    assert _decision("R5", _result(*slow))[0] == "holds"
    assert _decision("R5", _result(*slow, *fast))[0] == "does not"
    other = [line | {"not_comparable": UNEQUAL} for line in fast]
    assert _decision("R5", _result(*slow, *other))[0] == "holds"


# The file and the page.


def test_result_that_is_too_large():
    candidates = [{"engine": str(i), "knobs": {}, "reason": "x" * 100} for i in range(200)]
    step = {"step": "conv", "candidates": candidates, "fused": 1}
    data = {"parts": {}, "measurements": [_line("B", "resnet50", "f32", 1.0, implementations=[copy.deepcopy(step)])]}
    assert json.loads(journal.bounded(data, 1 << 20)) == data
    tried = copy.deepcopy(data)
    tried["measurements"][0]["implementations"][0]["candidates"][1:] = [
        {"engine": "1", "status": "untried", "x": "x" * 900}
    ] * 50
    assert json.loads(journal.bounded(tried, 10_000))["left_out"] == ["candidates not tried"]
    smaller = json.loads(journal.bounded(data, 10_000))
    assert smaller["left_out"] == ["candidates not tried", "candidates"]
    assert smaller["measurements"][0]["implementations"] == [{"step": "conv", "fused": 1}]
    assert data["measurements"][0]["implementations"][0]["candidates"]
    assert len(journal.bounded(data, 10_000)) <= 10_000


def test_archived(tmp_path):
    """What is committed has all times, and engines by their number, and no folder of a machine."""
    refused = [{"engine": "1", "status": "rejected", "reason": "tensor cores", "knobs": {"a": i}} for i in range(3)]
    tried = [{"engine": "2", "status": "chosen", "reason": "", "knobs": {"a": 1}}, {"engine": "3", "status": "untried"}]
    step = {"step": "/layer1/conv", "candidates": refused + tried, "fused": 1}
    libraries = {"Dovetail": {"cuDNN": {"/opt/site/libcudnn.so.9": 91900}}}
    found = _result(
        _line("B", "resnet50", "f32", 1.0, implementations=[step]),
        _line("E", "resnet50", "CUDA graph, f32", 1.0, libraries=libraries),
    )  # fmt: skip
    path = tmp_path / "ten-minutes.json"
    found |= {"schema": journal.SCHEMA, "arguments": {"json": str(path)}}
    path.write_text(json.dumps(found))
    assert _report(path, "--archive", tmp_path / "short.json", "-o", tmp_path / "page.md").returncode == 0
    short = json.loads((tmp_path / "short.json").read_text())
    first, second = short["measurements"]
    assert first["implementations"] == [
        {"step": "/layer1/conv", "fused": 1, "candidates": [
            {"engine": "1", "status": "rejected", "reason": "tensor cores", "count": 3},
            {"engine": "2", "status": "chosen", "knobs": {"a": 1}, "count": 1}]}
    ]  # fmt: skip
    assert second["libraries"] == {"Dovetail": {"cuDNN": {"libcudnn.so.9": 91900}}}
    assert short["arguments"] == {"json": "ten-minutes.json"} and first["ms"] == 1.0
    assert page.page(page.read(tmp_path / "short.json")) == (tmp_path / "page.md").read_text()
    process = _report(path, "--archive", path)
    assert process.returncode == 2 and "--archive: " in process.stderr


def test_lines_are_short(tmp_path):
    """The file of lines has what was tried. It loses details rather than growing beyond what can be brought back."""
    found = journal.Journal(tmp_path / "result.json", {"dovetail": "0.1"})
    found.begin("B", "")
    tried = [{"engine": "1", "status": "chosen"}]
    untried = [{"engine": str(i), "status": "untried", "reason": "x" * 1000} for i in range(400)]
    step = {"step": "conv", "candidates": tried + untried}
    found.add(_line("B", "resnet50", "f32", 1.0, implementations=[step]))
    found.add(_line("B", "unet512", "f32", 2.0, trace="x" * (1 << 19), implementations=[step | {"candidates": tried}]))
    found.add(_line("B", "swin", "f32", 3.0, unknown="x" * (1 << 19)))
    lines = (tmp_path / "result.jsonl").read_bytes().splitlines()
    assert all(len(line) < 256 << 10 for line in lines)
    heading, first, second, third = map(json.loads, lines)
    assert first["implementations"] == [{"step": "conv", "candidates": tried}] and "left_out" not in first
    assert heading["heading"] and heading["dovetail"] == "0.1" and "measurements" not in heading
    assert "trace" in second["left_out"] and (second["ms"], third["ms"]) == (2.0, 3.0)
    assert third["left_out"] == ["all else"]
    # All of them are bounded, too; the result itself is by `bounded`.
    for _ in range(60):
        found.add(_line("B", "resnet50", "f32", 1.0, memory="x" * 250_000))
    found.finish()
    assert (tmp_path / "result.jsonl").stat().st_size < 8 << 20
    assert len((tmp_path / "result.jsonl").read_bytes().splitlines()) == 64
    assert len(json.loads((tmp_path / "result.json").read_text())["measurements"]) == 63


CEILINGS = {"copy": 4e12, "f32": 50e12, "tf32": 400e12, "f16": 800e12}


def _row(kind, *names):
    """A step with kernels of 10 µs and 8 blocks."""
    kernels = [[name, 10.0, [4, 2, 1], [128, 1, 1]] for name in names]
    row = {
        "step": "conv0" if kind == "convolution" else kind,
        "kind": kind,
        "us": 10.0 * len(names),
        "kernels": kernels,
    }
    return row | {"work": None, "percent": None, "staged": ["input"], "fused": 0, "engine": "34"}


def _full_result():
    rows = [
        _row("convolution", "Memset", CONV, "dovetail_post_ops"),
        _row("exchange", "Memcpy DtoD"),
        _row("kernel", "kernel3"),
    ]
    rows[0] |= {"work": {"flops": 500_000_000, "bytes": 1}, "percent": 33.0}
    more = {"joined": "joined", "reason": "", "device_ms": 0.05, "shares_us": joining.shares({"steps": rows})}
    engines = _line("A", "resnet50", "f32", 0.054, steps=rows, **more)
    result = _result(
        engines, *SLOW_NHWC, *_near("f32", 1.2, 1.0), *_near("tf32", 1.0, 1.0, not_comparable=UNEQUAL),
        _line("B", "resnet50", "f32", 1.25), _line("B", "resnet50", "f32-no-libraries", 2.5), _line("B", "resnet50", "f16", status="differs") | {"message": "off by 3"},
        _line("C", "unet-2048", "f32", 30.0, percent=10.0, device_bytes=3 << 30),
        _line("C", "unet-4096", "f32", status="refused") | {"message": "no memory"},
        _line("D", "attention-4k", "f32", 5.0, percent=5.0, score_bytes=1 << 30, device_bytes=2 << 20),
        _line("D", "attention-4k", "torch MATH f32", 4.0, peer=True, device_bytes=1 << 20),
        _line("D", "attention-8k", "f32", 9.0, device_us=8000.0),
        _line("B", "layer", "f32", 0.1, layer=True, device_us=70.0),
        _line("B", "layer", "f32 autotuned", 0.2, layer=True),
        _line("F", "softmax", "f32", 0.2, device_us=100.0, gb_per_s=2000.0, percent=50.0),
        _line("E", "swin", "JAX, f32", status="skipped") | {"message": "JAX is not here"},
        _line("G", "halo-64k", "f32-2-ranks", 0.02, overlap={"copies_us": 8.0, "overlapped_us": 2.0}),
        H="incomplete",
    )  # fmt: skip
    result["parts"]["H"]["note"] = "time is over"
    idle, reasons = {"clocks.sm": "345"}, "clocks_event_reasons.active"
    result["parts"]["0"]["clocks"] = {"before": idle, "after": {"clocks.sm": "1980", reasons: "0x0000000000000000"}}
    hot = {"clocks.sm": "1200", reasons: "0x0000000000000024"}
    result["parts"]["A"]["clocks"] = {"before": {"clocks.sm": "1980"}, "after": hot}
    return result | {"ceilings": CEILINGS, "versions": {"device": "NVIDIA H100", "processors": 132}}


def test_losses():
    found = losses.losses(_full_result())
    assert [loss["where"] for loss in found] == [
        "unet-2048 f32", "attention-4k f32", "softmax f32", "resnet50, conv0", "resnet50, all steps",
        "resnet50, all steps", "resnet50, all steps",
    ]  # fmt: skip
    assert found[0]["ms"] == pytest.approx(27.0) and found[2]["ms"] == pytest.approx(0.05)
    # The kernel of post-operations is a loss of its own: 20 µs remain, of which 10 have to be.
    assert found[3]["ms"] == pytest.approx(0.01)
    cause = found[3]["cause"]
    assert (
        "33 % of the ceiling" in cause and "starved: 8 blocks on 132 processors" in cause and "staged: input" in cause
    )
    assert "stores 1024 MiB of scores" in found[1]["cause"]
    causes = [loss["cause"] for loss in found[4:]]
    assert any("post-operations" in c for c in causes) and any("copies of boxes" in c for c in causes)


def test_losses_of_one_engine():
    """Steps that one kernel does are one loss. What a replay does not do is no cause, nor are enough blocks."""
    work = {"flops": 500_000_000, "bytes": 1}
    often = [_row("convolution", CONV) | {"step": f"conv{i}"} for i in range(5)]
    for us, row in zip((100.0, 30.0, 30.0, 30.0, 60.0), often):
        row |= {"us": us, "work": work, "staged": ["weights, once"], "kernels": [[CONV, us, [128, 1, 1], [128, 1, 1]]]}
    other = _row("convolution", "winograd") | {"step": "other", "work": work, "staged": None}
    other |= {"us": 50.0, "kernels": [["winograd", 50.0, [8, 8, 1], [128, 1, 1]]]}
    more = {"joined": "joined", "reason": "", "device_ms": 0.3, "shares_us": {}}
    own = _line("A", "resnet50", "f32-no-libraries", 0.3, steps=[other | {"step": "own"}], **more)
    result = _result(
        _line("A", "resnet50", "f32", 0.3, steps=[*often, other], **more), own,
        *(_line("C", f"unet-{size}", "f32", float(size), percent=50.0) for size in (1, 3, 2)),
    )  # fmt: skip
    found = losses.losses(result | {"ceilings": CEILINGS, "versions": {"processors": 132}})
    assert [loss["where"] for loss in found] == [
        "unet-3 f32", "resnet50, 5 steps such as conv0", "resnet50, other", "resnet50 f32-no-libraries, own"
    ]  # fmt: skip
    assert found[1]["ms"] == pytest.approx(0.25 - 5 * 0.01)
    assert found[1]["cause"] == f"20 % of the ceiling; engine 34; {CONV[:70]}"
    assert found[2]["cause"].startswith("20 % of the ceiling; starved: 64 blocks on 132 processors; engine 34")
    assert _decision("R4", result)[1].startswith("convolutions take 0 % of 0.3 ms")
    often[0]["percent"] = often[1]["percent"] = 9.0
    assert _decision("R4", result)[1].endswith("; 2 below 10 % of the ceiling take 0.13 ms")


def test_smoke_that_differs():
    """A wrong result counts, whether its part came to it again or not."""
    rows = [{"name": "unet3d-128", "variant": "f32", "status": "differs", "message": "first replay: off"}]
    smoke = _line("smoke", "C", "", rows=rows)
    text = page.page(_result(smoke, _line("C", "unet-1024", "f32", 1.0)))
    assert "## What is wrong\n\n* differs, when it was tried: C unet3d-128 f32: first replay: off\n" in text
    assert "are right" not in text


def test_page():
    text = page.page(_full_result())
    wanted = (
        "# Ten minutes on NVIDIA H100", "f32 50 TFLOP/s",
        "1200 MHz (after A, power cap and temperature) to 1980 MHz",
        "differs: B resnet50 f16: off by 3",
        "## What was not measured\n\n* Part H incomplete: time is over\n* refused: C unet-4096 f32: no memory\n"
        "* 1 not measured: JAX is not here",
        f"Not comparable, 2 cells (resnet50 CUDA graph, tf32, ...): {UNEQUAL}", "1 CUDA graph (not comparable)",
        "| resnet50 | 1.25 | - | 2.5 | - | - | differs |", "30, 3072 MiB, 10 %", "100, 2000 GB/s, 50 %", "25 % of 8 µs",
        "| R1 |", "NCHW staging and autotune first",
        # Times of the device, and those that are not.
        "| attention-4k | 5 (host), 2 MiB, 5 % | 4, 1 MiB |", "| attention-8k | 8 |", "of any rank",
        "| torch NCHW deterministic | f32 | f32 autotuned |", "| 50.0 | 70.0 | 200.0 (host) |", "without inputs",
    )  # fmt: skip
    for piece in wanted:
        assert piece in text, piece
    assert not any(line.startswith(" ") for line in text.splitlines()) and "CPUs" not in text
    # One page.
    assert len(text.splitlines()) < 90


def test_page_of_nothing():
    """A result without measurements has a page, which decides nothing."""
    empty = {"parts": {"A": {"title": "", "status": "failed", "note": "no GPU"}}, "measurements": []}
    text = page.page(empty)
    assert "Part A failed: no GPU" in text and text.count("undecided") == len(rules.RULES)
    assert page.page(empty | {"parts": {}, "complete": False}).count("Nothing was compared.") == 1
    assert "Nothing: all 1 results that were" in page.page(_result(_line("B", "resnet50", "f32", 1.0)))


def test_page_of_programs_for_cpus():
    text = page.page(_result(_line("C", "unet-1024", "f32", 1.0)) | {"target": "cpu"})
    assert text.splitlines()[2] == "**This package is for CPUs: sizes are small stand-ins.**"
    # Nothing but times: the heading names nothing else.
    assert "## Large models: ms\n" in text


def test_lines_of_a_run_that_was_killed(tmp_path):
    late = _line("B", "unet512", "f32", status="unfinished")
    lines = [_line("B", "resnet50", "f32", 1.0), _line("B", "unet512", "f32", 2.0)]
    path = tmp_path / "ten-minutes.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [lines[0], late, lines[1]]))
    assert page.read(path)["measurements"] == lines
    heading = {"heading": True, "schema": journal.SCHEMA, "dovetail": "0.1", "started": "today"}
    path.write_text(json.dumps(heading) + "\n")
    assert page.page(page.read(path)).splitlines()[2] == "today, Dovetail 0.1."
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"part": "B", "na')
    result = page.read(path)
    assert result["measurements"] == lines and not result["complete"]
    assert "The run was ended before its end" in page.page(result)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="no measurements"):
        page.read(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "other-2"}, "its schema is other-2"),
        ({"parts": []}, "its parts are not named"),
        ({"parts": {"A": {"status": "ok"}}}, "part A has no status and note"),
        ({"measurements": {}}, "its measurements are no list"),
        ({"measurements": [1]}, "measurement 1 is none"),
        ({"measurements": [{"part": "A"}]}, "measurement 1 has no text as name"),
        ({"measurements": [_line("B", "resnet50", "f32", "fast")]}, "measurement 1: ms is no number"),
        # What nothing checks beforehand.
        ({"devices": [1]}, "is damaged"),
        ({"measurements": [_line("A", "resnet50", "f32", 1.0, steps=3, joined="joined")]}, "is damaged"),
    ],
)
def test_odd_results(tmp_path, change, message):
    """Exit code 3 and one sentence."""
    path = tmp_path / "ten-minutes.json"
    path.write_text(json.dumps(_result() | {"schema": journal.SCHEMA} | change))
    process = _report(path)
    assert process.returncode == 3 and message in process.stderr and len(process.stderr.splitlines()) == 1


def _report(*arguments):
    command = [sys.executable, ROOT / "scripts/gpu-check", "report", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def test_numbers_that_are_none(tmp_path):
    path = tmp_path / "ten-minutes.json"
    result = _result(_line("B", "resnet50", "f32", float("nan")), _line("C", "unet-1024", "f32", float("inf")))
    path.write_text(json.dumps(result | {"schema": journal.SCHEMA, "seconds": float("nan")}))
    process = _report(path)
    assert process.returncode == 0 and "| resnet50 | - |" in process.stdout and "| unet-1024 | - |" in process.stdout
    assert "nan" not in process.stdout and "inf" not in process.stdout
    # The page does not replace its result.
    process = _report(path, "-o", tmp_path / "." / "ten-minutes.json")
    assert process.returncode == 2 and json.loads(path.read_text())
