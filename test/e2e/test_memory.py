# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `inspect` says of the memory of each rank is what sessions allocate."""

import json

import numpy as np
import onnx
import pytest
from harness.backend import build_dir, call, tool
from harness.extent import one_of
from onnx import TensorProto, helper, numpy_helper
from subjects import SMALL_SUBJECTS

MESHES = {"1": {"y": 1}, "3": {"y": 3}, "2x2": {"y": 2, "x": 2}}


def _json(*command):
    code, text, messages = call(command)
    assert code == 0, messages
    return json.loads(text)


def _compare(folder, subject, mesh, options, threads):
    partition = subject.partition(mesh, "uneven" if len(mesh) > 1 or mesh["y"] > 1 else "balanced")
    artifact = folder / "model.dvt"
    command = [tool("dovetail"), "compile", subject.prepared().path, "-o", artifact]
    code, _, messages = call([*command, *partition.flags(), *subject.flags(), *options])
    assert code == 0, messages
    planned = _json(tool("dovetail"), "inspect", "--json", artifact, "--threads", threads)["ranks"]
    in_all = threads * partition.ranks
    measured = _json(
        tool("dovetail-run"), "bench", "--json", "--iterations", 1, "--warmup", 0, "--threads", in_all, artifact
    )
    for rank in planned:
        del rank["received_bytes"]
        rank["message_bytes"] = 0  # Ranks are threads.
    assert planned == measured["memory"]
    assert all(rank["total_bytes"] > 0 for rank in planned)
    return planned


@one_of(2)
@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("subject", SMALL_SUBJECTS, ids=lambda subject: subject.name)
def test_sessions_allocate_what_inspect_says(tmp_path, subject, mesh):
    ranks = _compare(tmp_path, subject, mesh, [], threads=1 + len(mesh))
    # These have weights that are packed for calls, which take scratch memory.
    assert all(rank["packed_bytes"] > 0 and rank["scratch_bytes"] > 0 for rank in ranks)


@one_of(2)
@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("subject", SMALL_SUBJECTS[:2], ids=lambda subject: subject.name)
def test_without_libraries(tmp_path, subject, target):
    ranks = _compare(tmp_path, subject, {"y": 3}, ["--no-libraries", "--target", target], threads=1)
    assert all(rank["packed_bytes"] == rank["scratch_bytes"] == 0 for rank in ranks)


def _tiny_model(path):
    """In f16, of which a library for devices does all."""
    random = np.random.default_rng(1)

    def weights(name, *shape):
        return numpy_helper.from_array(random.standard_normal(shape).astype(np.float16), name)

    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w"], ["c"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("MatMul", ["c", "m"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1, 8, 20, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [1, 16, 10, 12])],
        [weights("v", 16, 8, 3, 3), weights("w", 16, 16, 3, 3), weights("m", 8, 12)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


@pytest.mark.parametrize("ranks", [1, 3])
def test_calls_of_device_libraries(tmp_path, monkeypatch, ranks):
    """On a driver, cuDNN and cuBLASLt that are imitated on the host; see `test/unit/Cuda`."""
    imitations = build_dir() / "test" / "unit" / "Cuda"
    if not (imitations / "cudnn").exists():
        pytest.skip("the plug-in for CUDA is not built")
    monkeypatch.setenv("DOVETAIL_CUDA_PATH", ":".join(str(imitations / n) for n in ("driver", "cudnn", "cublaslt")))
    _tiny_model(tmp_path / "tiny.onnx")
    artifact = tmp_path / "tiny.dvt"
    command = [tool("dovetail"), "compile", tmp_path / "tiny.onnx", "-o", artifact, "--target", "cuda"]
    shards = [f"--shard={name}=_,_,y,_" for name in "xacy"]
    code, _, messages = call([*command, "--arch", "sm_90", "--mesh", f"y={ranks}", *shards])
    assert code == 0, messages
    report = _json(tool("dovetail"), "inspect", "--json", artifact)
    kinds = [step["kind"] for step in report["steps"]]
    assert kinds.count("convolution") == 2 and kinds.count("matmul") == 1
    planned = report["ranks"]
    measured = _json(tool("dovetail-run"), "bench", "--json", "--iterations", 1, "--warmup", 0, artifact)
    for rank in planned:
        del rank["received_bytes"]
        rank["message_bytes"] = 0
        # The weights of both convolutions, in the library's order.
        assert rank["packed_bytes"] == (16 * 8 + 16 * 16) * 9 * 2
        # 32 MiB, the weights, and a little for operands.
        assert 0 < rank["scratch_bytes"] - (32 << 20) < 1 << 20
    assert planned == measured["memory"]
