# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `gpu-check` reads from profilers, libraries and models, of texts and traces that are made up. Needs no build."""

import sys
import types

import pytest
from harness.backend import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from gpucheck import joining, loaded, own_kernels, profiler, several_ranks, step_work  # noqa: E402
from gpucheck.joining import Event  # noqa: E402

CONV = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw_tilesize128x128x8"

STEPS = [
    {"step": "conv0", "kind": "convolution", "kernels": 2, "copies": 0, "fills": 1, "others": 0},
    {"step": "empty", "kind": "exchange", "kernels": 0, "copies": 0, "fills": 0, "others": 1},
    {"step": "copy", "kind": "exchange", "kernels": 0, "copies": 1, "fills": 0, "others": 0},
    {"step": "relu", "kind": "kernel", "kernels": 1, "copies": 0, "fills": 0, "others": 0},
]


def _events(*names, start=0.0, graph=1, stream=7):
    """Events one after the other, 10 µs each; the kind is that of the name."""
    kinds = {"Memset": "fills", "Memcpy DtoD": "copies", "Memcpy HtoD": "copies", "Memcpy DtoH": "copies"}
    return [
        Event(name, start + 11.0 * i, 10.0, stream, kinds.get(name, "kernels"), (4, 2, 1), (128, 1, 1), graph)
        for i, name in enumerate(names)
    ]


REPLAY = ("Memset", CONV, "dovetail_post_ops", "Memcpy DtoD", "kernel3")


def test_joined():
    found = joining.join(_events(*REPLAY), STEPS)
    assert (found["status"], found["reason"]) == ("joined", "")
    assert [(row["step"], row["us"], len(row["kernels"])) for row in found["steps"]] == [
        ("conv0", 30.0, 3), ("copy", 10.0, 1), ("relu", 10.0, 1)
    ]  # fmt: skip
    assert found["steps"][0]["kernels"][1] == [CONV, 10.0, [4, 2, 1], [128, 1, 1]]
    assert found["us"] == 50.0 and found["span_us"] == 54.0
    shares = {"convolution": 20.0, "post-operations": 10.0, "box copy": 10.0, "our kernel": 10.0}
    assert joining.shares(found) == shares


def test_joined_around_copies():
    """Transfers are not part of a graph; where graphs have numbers, neither are kernels without one."""
    inside = _events(*REPLAY, start=100.0)
    before = _events("Memcpy HtoD", "Memcpy DtoD", "kernel9", graph=0)
    outside = before + inside + _events("Memcpy DtoD", "Memset", "Memcpy DtoH", start=200.0, graph=0)
    found = joining.join(outside, STEPS)
    assert (found["status"], found["us"], found["span_us"]) == ("joined", 50.0, 54.0)
    assert joining.shares(found)["box copy"] == 10.0
    # Without numbers, and in no graph, only the kinds tell.
    around = _events("Memcpy DtoD", "Memcpy DtoD") + inside + _events("Memcpy DtoD", start=200.0)
    for graph in (None, 0):
        found = joining.join([event._replace(graph=graph) for event in around], STEPS)
        assert (found["status"], found["us"], found["span_us"]) == ("joined", 50.0, 54.0), graph
    same = [{"step": "a", "kind": "kernel", "kernels": 2}]
    several = joining.join([e._replace(graph=None) for e in _events("k", "k", "k")], same)
    assert several["status"] == "not joined" and "several ways" in several["reason"]


@pytest.mark.parametrize("graph", [5, 0, None])
def test_device_time(graph):
    """Copies of inputs and outputs, which are in no graph, are not the program's time."""
    copy = Event("Memcpy DtoD (Device -> Device)", 0.0, 80.0, 7, "copies", graph=graph and 0)
    kernel = Event("kernel1", 81.0, 80.0, 7, grid=(4, 1, 1), graph=graph)
    found = own_kernels.device_time([copy, kernel, copy._replace(start=162.0)])
    assert found == {"device_us": 80.0, "kernels": [["kernel1", 80.0, [4, 1, 1]]]}
    # A program of copies alone has these.
    own = [event._replace(graph=graph) for event in (copy, copy._replace(start=162.0))]
    assert own_kernels.device_time(own)["device_us"] == 160.0
    assert own_kernels.device_time([]) == {}


@pytest.mark.parametrize(
    ("events", "steps", "reason"),
    [
        (_events(*REPLAY, "kernel9"), STEPS, "the profiler saw 6 events, the steps have 5 nodes"),
        (_events(*REPLAY[:-1]), STEPS, "the profiler saw 4 events, the steps have 5 nodes"),
        (_events(CONV, CONV, CONV, "Memcpy DtoD", "kernel3"), STEPS, "kinds of events differ from the steps'"),
        (_events(*REPLAY), None, "the runtime does not say how many nodes the steps have"),
        (_events("Memcpy HtoD"), STEPS, "the profiler saw nothing of the program"),
        ([], STEPS, "the profiler saw nothing of the program"),
        (_events(*REPLAY[:-1]) + _events("kernel3", start=35.0, stream=8), STEPS, "streams run side by side"),
    ],
)
def test_not_joined(events, steps, reason):
    """Names and times are there all the same."""
    found = joining.join(events, steps)
    assert found["status"] == "not joined" and reason in found["reason"]
    ours = joining.of_the_program(events)
    assert sum(row["count"] for row in found["steps"]) == len(ours)
    assert found["us"] == sum(event.duration for event in ours)
    assert all(row["step"] is None for row in found["steps"])


def test_streams_in_turns():
    """Two streams that wait for each other are one chain."""
    first, second = _events("a", "b"), _events("c", start=22.0, stream=8)
    steps = [{"step": "all", "kind": "kernel", "kernels": 3}]
    assert joining.join(first + second, steps)["status"] == "joined"


def test_replays():
    """Replays are what long pauses separate."""
    events = [event for start in (0.0, 5000.0, 10000.0) for event in _events(*REPLAY, start=start)]
    parts = joining.split_replays(events, 3)
    assert [[e.name for e in part] for part in parts] == [list(REPLAY)] * 3
    assert joining.split_replays(events[:2], 3) == []
    assert joining.split_replays(events, 1) == [events]


def test_read_trace():
    kernel = {"ph": "X", "cat": "kernel", "name": CONV, "ts": 20.0, "dur": 3.5, "tid": 7,
              "args": {"stream": 7, "grid": [4, 1, 1], "block": [256, 1, 1], "graph id": 5}}  # fmt: skip
    copied = {
        "ph": "X",
        "cat": "gpu_memcpy",
        "name": "Memcpy HtoD",
        "ts": 10.0,
        "dur": 1,
        "tid": 7,
        "args": {"stream": 7},
    }
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "ts": 1.0, "dur": 1, "tid": 1}
    events = joining.read_trace({"traceEvents": [kernel, call, copied, {"ph": "M", "name": "process_name"}]})
    assert events == [
        Event("Memcpy HtoD", 10.0, 1.0, 7, "copies", (), (), None),
        Event(CONV, 20.0, 3.5, 7, "kernels", (4, 1, 1), (256, 1, 1), 5),
    ]


def test_overlapped_copies():
    copy = Event("dovetail_copy_boxes", 10.0, 10.0, 8)
    interior = [Event("kernel1", 0.0, 14.0, 7), Event("kernel2", 13.0, 4.0, 9), Event("kernel3", 12.0, 2.0, 8)]
    found = several_ranks.overlapped(sorted([copy, *interior], key=lambda e: e.start))
    assert found == {"copies_us": 10.0, "overlapped_us": 7.0, "copies": 1}
    assert several_ranks.overlapped(_events("kernel1", "nccl_SendRecv"))["overlapped_us"] == 0


# What is read from others.


SMI = """#!/bin/sh
case "$*" in
*reasons.active*) REASONS ;;
*--query-gpu=clocks.sm,*) echo "1980, 2619, 412.50, 700.00, 55, 99" ;;
*) echo "no such field" >&2; exit 6 ;;
esac
"""


def test_clocks(tmp_path, monkeypatch):
    from gpucheck import ceilings, processes

    tool = tmp_path / "nvidia-smi"
    tool.write_text(SMI.replace("REASONS", "echo '1200, 2619, 690.00, 700.00, 80, 99, 0x0000000000000004'"))
    tool.chmod(0o755)
    check = types.SimpleNamespace(on_gpu=True, processes=processes.Processes())
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = ceilings.clocks(check)
    assert (found["clocks.sm"], found["clocks_event_reasons.active"]) == ("1200", "0x0000000000000004")
    # An older driver knows no reasons.
    tool.write_text(SMI.replace("REASONS", "echo 'no such field' >&2; exit 6"))
    found = ceilings.clocks(check)
    assert (found["clocks.sm"], found["power.draw"], found["temperature.gpu"]) == ("1980", "412.50", "55")
    tool.write_text(SMI.replace("REASONS", "echo 'no such field' >&2; exit 6").replace("clocks.sm,*", "nothing"))
    assert ceilings.clocks(check) == "nvidia-smi: no such field"
    tool.unlink()
    assert ceilings.clocks(check) is None


def test_ncu_table():
    text = (
        "==PROF== Connected\n"
        '"ID","Kernel Name","Grid Size","gpu__time_duration.sum","sm__inst_executed_pipe_tensor.sum"\n'
        '"","","","ns","inst"\n'
        '"0","kernel1(float)","(128, 1, 1)","1,500","0"\n"1","kernel2","(1, 1, 1)","2,000.5","12"\n'
    )
    found = profiler.read_ncu(text)
    assert [row["name"] for row in found] == ["kernel1(float)", "kernel2"]
    assert found[0]["grid"] == (128, 1, 1)
    assert found[0]["metrics"] == {"gpu__time_duration.sum": 1.5, "sm__inst_executed_pipe_tensor.sum": 0}
    assert profiler.read_ncu("==ERROR== no permission\n") == []


def test_ncu_without_a_metric(tmp_path, monkeypatch):
    """A metric that a card does not have costs itself only."""
    calls = []

    def run_ncu(check, tool, entry, program, metrics):
        calls.append(metrics)
        if "sm__other.sum" in metrics:
            return 1, "", "==ERROR== Failed to find metric sm__other.sum\n"
        row = "".join('"0","kernel1","(1, 1, 1)","2","7"\n' for _ in range(3))
        return 0, f'"ID","Kernel Name","Grid Size","{profiler.NCU_TIME}","sm__one.sum"\n"","","","us","inst"\n{row}', ""

    monkeypatch.setattr(profiler, "_run_ncu", run_ncu)
    events, metrics, message = profiler.ncu(None, "ncu", {}, {}, ["sm__other.sum", "sm__one.sum"])
    assert message == "" and metrics == [{profiler.NCU_TIME: 2.0, "sm__one.sum": 7.0}] and len(events) == 1
    assert calls == [["sm__other.sum", "sm__one.sum"], ["sm__one.sum"]]
    # Metrics that cannot be told apart, and other errors, are said.
    monkeypatch.setattr(profiler, "_run_ncu", lambda *_: (1, "", "==ERROR== ERR_NVGPUCTRPERM"))
    assert "ERR_NVGPUCTRPERM" in profiler.ncu(None, "ncu", {}, {}, ["sm__one.sum"])[2]
    said = "Failed to find metrics: a__b.sum, c__d.avg.pct\nx__y"
    assert profiler.unknown_metrics(said) == {"a__b.sum", "c__d.avg.pct"}


@pytest.mark.parametrize(
    ("log", "code", "status"),
    [
        ("========= Error: Device not supported. Please refer to the documentation\n", 1, "skipped"),
        ("========= ERROR SUMMARY: 0 errors\n", 0, "ok"),
        ("========= ERROR SUMMARY: 2 errors\n", 86, "error"),
        ("", None, "late"),
    ],
)
def test_sanitizer(tmp_path, log, code, status):
    from gpucheck import sanitized

    def run(command, timeout, environment):
        if log:
            (tmp_path / "memcheck.log").write_text(log)
        return code, "", ""

    check = types.SimpleNamespace(
        package=types.SimpleNamespace(restored=tmp_path, path=lambda name: name), tool="dovetail-run",
        input_flags=lambda *_: [], processes=types.SimpleNamespace(run=run), environment=lambda gpus: {},
        clock=types.SimpleNamespace(part_left=lambda: 60),
    )  # fmt: skip
    assert sanitized._sanitize(check, "sanitizer", "memcheck", {}, {"file": "f"})["status"] == status


def test_log_of_cudnn():
    text = (
        "I! CuDNN (v91900 70) function cudnnBackendFinalize() called:\n"
        "i!         CUDNN_ATTR_ENGINE_GLOBAL_INDEX: type=CUDNN_TYPE_INT64; val=34;\n"
        "w!         engine index: 7 is not supported\n"
        "E! CuDNN (v91900 70) function cudnnBackendFinalize() called:\n"
        "W! a warning\n"
    )
    found = profiler.digest_cudnn(text)
    assert (found["errors"], found["warnings"]) == (1, 1) and found["functions"] == {"cudnnBackendFinalize": 2}
    assert found["engines"] == {"34": 1, "7": 1} and found["first"][0].startswith("E! ")


MAPS = """\
7f00-7f01 r-xp 00000000 08:01 12 /opt/torch/nvidia/cudnn/lib/libcudnn.so.9
7f02-7f03 r-xp 00000000 08:01 12 /opt/torch/nvidia/cudnn/lib/libcudnn.so.9
7f04-7f05 r-xp 00000000 08:01 13 /opt/torch/nvidia/cudnn/lib/libcudnn_ops.so.9
7f06-7f07 r-xp 00000000 08:01 14 /usr/local/cuda/lib64/libcublasLt.so.13 (deleted)
7f08-7f09 rw-p 00000000 00:00 0
"""


def test_loaded_libraries(monkeypatch):
    assert loaded.paths_in(MAPS) == {
        "cuDNN": ["/opt/torch/nvidia/cudnn/lib/libcudnn.so.9"],
        "cuBLASLt": ["/usr/local/cuda/lib64/libcublasLt.so.13 (deleted)"],
    }
    torch = {"cuDNN": {"/a/libcudnn.so.9": 91900}, "NCCL": {"/a/libnccl.so.2": 22809}}
    monkeypatch.setattr(loaded, "_sides", {})
    loaded.remember("PyTorch", torch)
    loaded.remember("Dovetail", torch | {"cuDNN": torch["cuDNN"] | {"/b/libcudnn.so.9": 91301}})
    assert loaded.used_by("PyTorch") == torch
    assert loaded.used_by("Dovetail") == torch | {"cuDNN": {"/b/libcudnn.so.9": 91301}}
    told = loaded.unequal(loaded.used_by("Dovetail"), loaded.used_by("PyTorch"))
    assert told == "cuDNN 91301 here, 91900 there"
    # A copy of the same version makes no difference, nor does what one side does not use.
    assert loaded.unequal({"cuDNN": {"/b/libcudnn.so.9": 91900}}, torch) == ""
    assert loaded.unequal({}, torch) == ""


def test_nccl_version():
    assert several_ranks.nccl_version("2.30.4") == (2, 30, 4)
    assert several_ranks.nccl_version(None) is None


NODES = [
    {"name": "c", "op": "Conv", "inputs": ["x", "w"], "outputs": ["c"], "attributes": {}},
    {"name": "b", "op": "BatchNormalization", "inputs": ["c"], "outputs": ["b"], "attributes": {}},
    {"name": "d", "op": "Conv", "inputs": ["b", "v"], "outputs": ["d"], "attributes": {}},
    {"name": "a", "op": "Add", "inputs": ["d", "b"], "outputs": ["a"], "attributes": {}},
    {"name": "r", "op": "Relu", "inputs": ["a"], "outputs": ["r"], "attributes": {}},
]
SHAPES = {"x": (1, 4, 8, 8), "w": (16, 4, 3, 3), "v": (16, 16, 1, 1)} | dict.fromkeys("cbdar", (1, 16, 8, 8))


def test_work_of_steps():
    """A step that ends with a Relu does the convolution before it, and none that another step does."""
    found = step_work.works(NODES, SHAPES, ["b", "a", "r"])
    assert found["b"] == {"flops": 2 * 16 * 64 * 4 * 9, "bytes": 4 * (4 * 64 + 16 * 36 + 16 * 64)}
    assert found["a"]["flops"] == 2 * 16 * 64 * 16 and "r" not in found
    whole = step_work.works(NODES, SHAPES, ["b", "r"])
    assert whole["r"] == found["a"]
