# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole programs with a process for each rank, on emulated devices and CPUs, connected by sockets."""

import json
import socket
import subprocess

import numpy as np
import onnx
import pytest
from harness.backend import SubprocessBackend, call, tool
from harness.compare import differences
from harness.oracle import expected_outputs
from harness.partition import Partition
from harness.sanitizers import without_preload
from onnx import TensorProto, helper
from subjects import SMALL_SUBJECTS

TIMEOUT = 600
SUBJECTS = [subject for subject in SMALL_SUBJECTS if subject.name in ("small-unet2d-bilinear", "small-vit")]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(arguments, rank, world, port, by_flags):
    """Starts `dovetail-run` as a rank, which it learns from flags or as from torchrun."""
    # The emulated device is slow.
    command = [tool("dovetail-run"), *arguments, "--comm", "sockets"]
    if "--timeout" not in arguments:
        command += ["--timeout", TIMEOUT]
    environment = without_preload()
    if by_flags:
        command += ["--rank", rank, "--world", world, "--address", f"127.0.0.1:{port}"]
    else:
        environment |= {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank)}
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def run_ranks(arguments, world, by_flags=True, ranks=None):
    """The exit code, output and messages of each rank."""
    port = free_port()
    return finish([start(arguments, rank, world, port, by_flags) for rank in ranks or range(world)])


def finish(processes):
    results = []
    try:
        for process in processes:
            output, messages = process.communicate(timeout=TIMEOUT)
            results.append((process.returncode, output, messages))
    finally:
        for process in processes:
            process.kill()
    return results


def output_files(folder, names):
    """Where outputs of these names go, and the flags that say so."""
    files = {name: folder / f"output{index}.npy" for index, name in enumerate(names)}
    return files, [part for name, file in files.items() for part in ("--output", f"{name}={file}")]


def compile(model, artifact, partition, extra=(), target="emulated"):
    SubprocessBackend().compile(model, artifact, partition, libraries=False, extra=[*extra, "--target", target])


@pytest.mark.parametrize("target", ["emulated", "cpu"])
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_model(tmp_path, subject, target):
    case, ranks = subject.prepared(), 3
    compile(case.path, tmp_path / "model.dvt", subject.partition({"y": ranks}, "uneven"), subject.flags(), target)
    files, output_flags = output_files(tmp_path, case.expected)
    flags = ["run", tmp_path / "model.dvt", *output_flags]
    for index, (name, value) in enumerate(case.inputs.items()):
        np.save(tmp_path / f"input{index}.npy", value)
        flags += ["--input", f"{name}=@{tmp_path}/input{index}.npy"]
    results = run_ranks(flags, ranks, by_flags=False)
    assert [code for code, _, _ in results] == [0] * ranks, results
    found = differences({name: np.load(file) for name, file in files.items()}, case.expected)
    assert not found, found


@pytest.fixture
def artifact(tmp_path):
    """A pooling window over rows of two ranks."""
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
        "pool",
        [value("x", onnx.TensorProto.FLOAT, [1, 2, 9, 7])],
        [value("y", onnx.TensorProto.FLOAT, [1, 2, 9, 7])],
    )
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), tmp_path / "pool.onnx")
    compile(tmp_path / "pool.onnx", tmp_path / "pool.dvt", Partition({"y": 2}).split("x", 4, 2, "y", [4, 5]))
    return tmp_path / "pool.dvt"


def test_all_give_what_threads_give(artifact, tmp_path):
    command = ["run", artifact, "--input", "x=random:3", "--output"]
    code, _, messages = call([tool("dovetail-run"), *command, f"y={tmp_path}/local.npy"])
    assert code == 0, messages
    for by_flags, warmup in ((False, 0), (True, 0), (True, 2)):
        results = run_ranks([*command, f"y={tmp_path}/processes.npy", "--warmup", warmup], 2, by_flags)
        assert results == [(0, "", "")] * 2
        assert np.array_equal(np.load(tmp_path / "local.npy"), np.load(tmp_path / "processes.npy"))


@pytest.mark.parametrize("rows, kinds", [(64, ["reduce-scatter", "all-gather"]), (67, ["messages", "messages"])])
@pytest.mark.parametrize("mesh", [{"y": 3, "x": 1}, {"y": 2, "x": 2}], ids=["3", "2x2"])
def test_large_sums_go_in_two_phases(tmp_path, mesh, rows, kinds):
    """Whole numbers, whose sums are exact in any order; thirds of 64 rows are not equal, but those of 66 are."""
    rows += 2 if mesh["y"] == 3 and rows == 64 else 0
    rows *= mesh["x"]
    values = np.random.default_rng(rows)
    x, w = (values.integers(-8, 9, shape).astype(np.float32) for shape in ((rows, 2000), (2000, 300)))
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        "sum",
        [value("x", onnx.TensorProto.FLOAT, x.shape)],
        [value("y", onnx.TensorProto.FLOAT, [rows, 300])],
        [onnx.numpy_helper.from_array(w, "w")],
    )
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), tmp_path / "sum.onnx")
    partition = Partition(mesh).split("x", 2, 1, "y", [700, 1300] if mesh["y"] == 2 else [700, 0, 1300])
    partition.split("x", 2, 0, "x")
    compile(tmp_path / "sum.onnx", tmp_path / "sum.dvt", partition, target="cpu")
    code, text, messages = call([tool("dovetail"), "inspect", "--json", tmp_path / "sum.dvt"])
    assert code == 0, messages
    exchanges = json.loads(text)["exchanges"]
    assert [exchange["kind"] for exchange in exchanges] == kinds, exchanges
    classes = [move["class"] for exchange in exchanges for move in exchange["moves"]]
    assert classes == ["reduce-scatter", "all-gather"], exchanges

    np.save(tmp_path / "x.npy", x)
    command = ["run", tmp_path / "sum.dvt", "--input", f"x=@{tmp_path}/x.npy", "--output"]
    code, _, messages = call([tool("dovetail-run"), *command, f"y={tmp_path}/local.npy"])
    assert code == 0, messages
    ranks = mesh["y"] * mesh["x"]
    assert run_ranks([*command, f"y={tmp_path}/processes.npy"], ranks) == [(0, "", "")] * ranks
    for name in ("local", "processes"):
        assert np.array_equal(np.load(tmp_path / f"{name}.npy"), x @ w)


@pytest.mark.parametrize("target", ["emulated", "cpu"])
@pytest.mark.parametrize("sizes", [[3, 1, 0, 2], [2, 2, 1, 1]], ids=["one empty", "uneven"])
def test_small_parts_are_packed(tmp_path, target, sizes):
    """Columns and rows of two tensors, which four ranks collect at once."""
    value = onnx.helper.make_tensor_value_info
    outputs = [value("top", onnx.TensorProto.FLOAT, [5, 6]), value("bottom", onnx.TensorProto.FLOAT, [7, 12])]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Neg", ["a"], ["top"]), onnx.helper.make_node("Exp", ["b"], ["bottom"])],
        "gathers",
        [value("a", onnx.TensorProto.FLOAT, [5, 6]), value("b", onnx.TensorProto.FLOAT, [7, 12])],
        outputs,
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "gathers.onnx")
    partition = Partition({"y": 2, "x": 2}).split("a", 2, 1, "y+x", sizes).split("b", 2, 0, "x+y", [4, 1, 0, 2])
    for output in ("top", "bottom"):
        partition.split(output, 2, 0, "_")
    compile(tmp_path / "gathers.onnx", tmp_path / "gathers.dvt", partition, target=target)
    code, text, messages = call([tool("dovetail"), "inspect", "--json", tmp_path / "gathers.dvt"])
    assert code == 0, messages
    exchanges = json.loads(text)["exchanges"]
    assert [(exchange["kind"], len(exchange["moves"])) for exchange in exchanges] == [("packed all-gather", 2)]

    random = np.random.default_rng(7)
    inputs = {name: random.standard_normal(shape, np.float32) for name, shape in (("a", (5, 6)), ("b", (7, 12)))}
    files, output_flags = output_files(tmp_path, ("top", "bottom"))
    command = ["run", tmp_path / "gathers.dvt", *output_flags]
    for name, array in inputs.items():
        np.save(tmp_path / f"{name}.npy", array)
        command += ["--input", f"{name}=@{tmp_path}/{name}.npy"]
    assert [code for code, _, _ in run_ranks(command, 4)] == [0] * 4
    found = differences({name: np.load(file) for name, file in files.items()}, expected_outputs(model, inputs))
    assert not found, found


def test_rank_0_speaks(artifact, tmp_path):
    trace = tmp_path / "trace.json"
    first, second = run_ranks(["run", artifact, "--input", "x=random:0", "--trace", trace], 2)
    assert first[0] == 0 and "float32[1, 2, 9, 7]" in first[1]
    assert second == (0, "", "")
    ranks = {event["pid"] for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"}
    assert ranks == {0, 1}
    first, second = run_ranks(["bench", artifact, "--iterations", "3"], 2)
    assert first[0] == 0 and "median" in first[1]
    assert second == (0, "", "")


def test_rank_that_does_not_come(artifact):
    ((code, _, messages),) = run_ranks(["bench", artifact, "--timeout", "1"], 2, ranks=[0])
    assert code == 8
    assert "rank 1 did not connect to rank 0 within 1 s" in messages


def test_other_artifacts_are_refused(artifact, tmp_path):
    """The same model, cut elsewhere."""
    other = tmp_path / "other.dvt"
    compile(tmp_path / "pool.onnx", other, Partition({"y": 2}).split("x", 4, 2, "y", [5, 4]))
    port = free_port()
    arguments = [["run", name, "--input", "x=random:3"] for name in (artifact, other)]
    for code, output, messages in finish([start(each, rank, 2, port, True) for rank, each in enumerate(arguments)]):
        assert code == 7 and not output, messages
        assert "rank 1 has another artifact than rank 0" in messages


def test_two_processes_of_one_rank(artifact, tmp_path):
    compile(tmp_path / "pool.onnx", artifact, Partition({"y": 3}).split("x", 4, 2, "y", [3, 3, 3]))
    results = run_ranks(["bench", artifact, "--timeout", "2"], 3, ranks=[0, 1, 1])
    assert any("two processes are rank 1; give each a rank of its own, from 0 to 2" in result[2] for result in results)
    assert all(code != 0 for code, _, _ in results)


def test_processes_that_nothing_connects(tmp_path):
    """Each would run all ranks, and write the same files."""
    onnx.save(helper.make_model(
        helper.make_graph(
            [helper.make_node("Neg", ["x"], ["y"])], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        ),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
    ), tmp_path / "model.onnx")  # fmt: skip
    code, _, messages = call([tool("dovetail"), "compile", tmp_path / "model.onnx", "-o", tmp_path / "model.dvt"])
    assert code == 0, messages
    variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = [tool("dovetail-run"), "run", tmp_path / "model.dvt", "--input", "x=random:1"]
    for flags, code in (([], 2), (["--comm", "local"], 0)):
        result = subprocess.run(
            [str(part) for part in command + flags], capture_output=True, text=True, env=without_preload() | variables
        )
        assert result.returncode == code, result.stderr
        assert bool(code) == ("this process is one of 2, as torchrun says" in result.stderr)
