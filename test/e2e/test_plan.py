# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`dovetail plan`: what it predicts agrees with what is compiled, with itself, and with formats of others."""

import html.parser
import json
import time

import numpy as np
import onnx
import pytest
from dovetail_models import build
from harness.backend import call, tool
from harness.extent import one_of
from onnx import TensorProto, helper
from subjects import SMALL_SUBJECTS

MESHES = {"1": {"y": 1}, "3": {"y": 3}, "2x2": {"y": 2, "x": 2}}
DOES_NOT_FIT = 6


def _plan(folder, *command, expected=0):
    """Runs `dovetail plan`; returns what it prints, its JSON, its trace and its page."""
    files = [folder / name for name in ("plan.json", "plan.trace", "plan.html")]
    flags = ["--json", files[0], "--trace", files[1], "--report", files[2]]
    code, text, messages = call([tool("dovetail"), "plan", *command, *flags])
    assert code == expected, messages
    return text, json.loads(files[0].read_text()), json.loads(files[1].read_text()), files[2].read_text()


def _flags(subject, mesh):
    # By bytes: models of a few elements would be computed whole.
    partition = subject.partition(mesh, "uneven" if len(mesh) > 1 or mesh["y"] > 1 else "balanced")
    return [subject.prepared().path, *partition.flags(), *subject.flags()]


@one_of(2)
@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("subject", SMALL_SUBJECTS, ids=lambda subject: subject.name)
def test_agrees_with_what_is_compiled(tmp_path, subject, mesh):
    flags = _flags(subject, mesh)
    _, plan, _, _ = _plan(tmp_path, *flags, "--threads", "2")
    artifact = tmp_path / "model.dvt"
    code, _, messages = call([tool("dovetail"), "compile", *flags, "-o", artifact])
    assert code == 0, messages
    code, text, messages = call([tool("dovetail"), "inspect", "--json", artifact, "--threads", "2"])
    assert code == 0, messages
    program = json.loads(text)
    assert [(s["name"], s["kind"]) for s in plan["steps"]] == [(s["name"], s["kind"]) for s in program["steps"]]
    for mine, theirs in zip(plan["ranks"], program["ranks"], strict=True):
        for key in ("values", "scratch", "prologue", "weights", "packed", "total"):
            assert mine["memory"][f"{key}_bytes"] == theirs[f"{key}_bytes"], key
        used = mine["memory"]["used_bytes"]
        # Positions: inputs, each step, outputs. The arena has room for the most, and seldom more.
        assert len(used) == len(program["steps"]) + 2
        assert max(used) <= mine["memory"]["values_bytes"] <= 1.5 * max(used)
    exchanges = {exchange["step"]: exchange["bytes"] for exchange in program["exchanges"]}
    assert exchanges == {s["step"]: s["bytes"] for s in plan["steps"] if s["kind"] == "exchange"}


@pytest.mark.parametrize("model", ["vit", "swin", "unet3d", "convnext"])
def test_two_axes_are_no_worse_than_one(tmp_path, model):
    """What can be done on one axis of four ranks can be done on two of two, where not splitting is an option, too."""
    (tmp_path / "m.onnx").write_bytes(build(model).SerializeToString())
    flags = [tmp_path / "m.onnx", "--target", "cuda", "--cluster", "h100"]
    alone, one, two = (_plan(tmp_path, *flags, "--mesh", mesh)[1]["seconds"] for mesh in ("a=1", "a=4", "a=2,b=2"))
    assert two <= 1.001 * one <= 1.001 * 1.001 * alone


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("subject", SMALL_SUBJECTS[:3], ids=lambda subject: subject.name)
def test_time_adds_up(tmp_path, subject, target):
    _, plan, trace, _ = _plan(tmp_path, *_flags(subject, {"y": 3}), "--target", target)
    for rank in plan["ranks"]:
        seconds = rank["seconds"]
        parts = ("products", "elements", "copies", "exchanging")
        assert seconds["busy"] == pytest.approx(sum(seconds[part] for part in parts))
        assert seconds["busy"] + seconds["waiting"] + seconds["idle"] == pytest.approx(plan["seconds"])
        number = rank["rank"]
        clock = 0
        ends = {}
        for step in plan["steps"]:
            begin, end = step["begin"][number], step["end"][number]
            assert begin == pytest.approx(clock) and end >= begin
            ends[step["step"]] = end
            if step["kind"] == "wait":
                assert all(end >= ends[exchange] for exchange in step["complete"])
            # Of streams, exchanges go on while the steps do.
            if step["kind"] != "exchange" or plan["transport"] == "threads":
                clock = end
        assert max(ends.values()) <= plan["seconds"] * (1 + 1e-9)
    assert plan["speedup"] == pytest.approx(plan["alone"]["seconds"] / plan["seconds"])
    assert plan["efficiency"] == pytest.approx(plan["speedup"] / 3)
    _check_trace(trace, plan)


def _check_trace(trace, plan):
    """The Trace Event Format: complete events, metadata and counters; those of a row do not overlap.

    Perfetto rounds begins and durations to nanoseconds, and leaves out events that then overlap.
    """
    rows = {}
    for event in trace["traceEvents"]:
        assert event["ph"] in ("X", "M", "C") and isinstance(event["pid"], int)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and event["args"]["name"]
        if event["ph"] == "C":
            assert all(isinstance(value, int) for value in event["args"].values())
        if event["ph"] == "X":
            assert event["name"] and event["cat"] and event["ts"] >= 0 and event["dur"] > 0
            begin, duration = round(1e3 * event["ts"]), round(1e3 * event["dur"])
            rows.setdefault((event["pid"], event["tid"]), []).append((begin, begin + duration))
    assert max(end for events in rows.values() for _, end in events) == pytest.approx(1e9 * plan["seconds"], abs=1)
    for events in rows.values():
        assert all(end <= begin for (_, end), (begin, _) in zip(events, events[1:], strict=False))


def test_what_does_not_fit_is_predicted(tmp_path):
    """`--memory` says what ranks have: that it does not suffice is said, and the rest is as without it."""
    (tmp_path / "m.onnx").write_bytes(build("llama").SerializeToString())
    flags = [tmp_path / "m.onnx", "--mesh", "y=2"]
    _, free, _, _ = _plan(tmp_path, *flags)
    assert all(rank["memory"]["device_bytes"] == 0 and rank["memory"]["fits"] for rank in free["ranks"])
    text, plan, _, page = _plan(tmp_path, *flags, "--memory", "64KiB", expected=DOES_NOT_FIT)
    assert plan["seconds"] == free["seconds"]
    assert all(rank["memory"]["device_bytes"] == 1 << 16 and not rank["memory"]["fits"] for rank in plan["ranks"])
    assert "Ranks whose memory does not suffice: 0-1" in text and "NOT FIT" in page
    _, plan, _, _ = _plan(tmp_path, *flags, "--memory", "1GiB")
    assert all(rank["memory"]["device_bytes"] == 1 << 30 and rank["memory"]["fits"] for rank in plan["ranks"])


def _without_data(model, folder, name="model.onnx"):
    """Writes a model whose large weights are in a file that is not there."""
    at = 0
    for tensor in model.graph.initializer:
        size = len(tensor.raw_data)
        if tensor.data_type != TensorProto.FLOAT or size < 1024:
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "weights.bin"), ("offset", str(at)), ("length", str(size))):
            tensor.external_data.add(key=key, value=value)
        at += size
    assert at > 0
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("name", ["unet2d-bilinear", "resnet18", "vit", "llama", "bert", "swin", "convnext", "unet3d"])
def test_weights_may_be_missing(tmp_path, name):
    model = build(name)
    whole = tmp_path / "whole.onnx"
    onnx.save(model, whole)
    _, expected, _, _ = _plan(tmp_path, whole)
    path = _without_data(model, tmp_path)
    text, plan, _, _ = _plan(tmp_path, path)
    assert plan["missing_files"] == [str(tmp_path / "weights.bin")] and expected["missing_files"] == []
    assert "weights.bin' is missing" in text
    # What depends on weights alone is computed before the first run, where it could not be folded.
    assert plan["seconds"] == pytest.approx(expected["seconds"], rel=0.05)
    code, _, messages = call([tool("dovetail"), "compile", path, "-o", tmp_path / "model.dvt"])
    assert code == 3 and "weights.bin" in messages


def test_what_shapes_depend_on_may_not_be_missing(tmp_path):
    shape = TensorProto(name="shape", data_type=TensorProto.INT64, dims=[2], data_location=TensorProto.EXTERNAL)
    shape.external_data.add(key="location", value="weights.bin")
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"], name="flatten")],
        "reshape",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [shape],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    code, _, messages = call([tool("dovetail"), "plan", path])
    assert code == 3
    assert "node 'flatten' (Reshape)" in messages and "'shape', which are in a file that is missing" in messages


class _Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.tags = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        # Nothing is fetched.
        assert not {"src", "href", "onload", "onclick"} & {name for name, _ in attributes}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page(tmp_path):
    subject = SMALL_SUBJECTS[0]
    _, _, _, text = _plan(tmp_path, *_flags(subject, {"y": 3}))
    page = _Page(text)
    assert page.open == [] and "script" not in page.tags and "@import" not in text
    # An input and an output, lanes, memory, and steps.
    assert page.tags.count("svg") == 5
    for title in ("What ranks hold", "Time of ranks", "Memory of ranks", "Steps, by how they are split", "Numbers"):
        assert title in text
    assert "results split over y" in text


def _tiny_model(path, rows):
    rng = np.random.default_rng(1)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    ]
    weights = onnx.numpy_helper.from_array(rng.standard_normal((8, 8, 3, 3)).astype(np.float32), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, rows, 4096])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, rows, 4096])
    graph = helper.make_graph(nodes, "tiny", [x], [y], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def test_idle_axes_are_judged_by_all_work(tmp_path):
    """What a split softmax gives way to is decided last and is whole; all that takes time is split by then."""
    path = tmp_path / "m.onnx"
    path.write_bytes(build("light-squeezenet").SerializeToString())
    code, text, messages = call([tool("dovetail"), "plan", path, "--mesh", "y=2"])
    assert code == 0 and not messages, messages


def test_a_thousand_gpus(tmp_path):
    path = tmp_path / "model.onnx"
    _tiny_model(path, 1 << 14)
    begin = time.monotonic()
    text, plan, trace, page = _plan(
        tmp_path, path, "--mesh", "y=1024", "--shard", "x=_,_,y,_", "--target", "cuda", "--cluster", "h100"
    )
    assert time.monotonic() - begin < 60
    assert plan["num_ranks"] == 1024 and len(plan["ranks"]) == 1024
    # A rank sends a row of 8 x 4096 numbers to each neighbour, one in eight of which is in another node.
    row = 4 * 8 * 4096
    near, far = plan["links"]
    boundaries, beyond = 1023, 127
    assert far["bytes"] == 2 * 2 * beyond * row and near["bytes"] == 2 * 2 * (boundaries - beyond) * row
    # Most ranks are alike: pictures and traces show each kind once.
    assert len(text.splitlines()) < 100 and len(page) < 1 << 20
    assert len({event["pid"] for event in trace["traceEvents"]}) < 64
