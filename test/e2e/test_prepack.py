# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts whose weights are packed when they are compiled (`--prepack`)."""

import struct
import subprocess

import dovetail_models
import numpy as np
import onnx
import pytest
from harness.artifact import PACKED, fit_checksums, sections
from harness.backend import call, tool
from harness.compare import differences
from harness.cpus import can_run, cpu_parameters, needs_cpu
from onnx import TensorProto, helper, numpy_helper

REPACKED = "are packed when ranks start"


def _write(folder, nodes, inits, x_shape, y_shape):
    """Writes a model of one input and a result, and an input; returns the folder and what is expected."""
    graph = helper.make_graph(
        nodes,
        "packed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x_shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y_shape)],
        inits,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "m.onnx")
    x = np.random.default_rng(1).standard_normal(x_shape, dtype=np.float32)
    np.save(folder / "x.npy", x)
    return folder, dovetail_models.run_onnxruntime(model, {"x": x})


@pytest.fixture
def files(tmp_path):
    """A folder with the model, an input, and what is expected.

    Convolutions with folded normalisation, a transposed one, and a product; 37 channels fill no vectors."""
    random = np.random.default_rng(5)
    inits, nodes = [], []

    def weights(name, *shape, scale=0.1):
        inits.append(numpy_helper.from_array((scale * random.standard_normal(shape)).astype(np.float32), name))
        return name

    nodes.append(helper.make_node("Conv", ["x", weights("a", 37, 3, 3, 3)], ["c"], pads=[1] * 4))
    norm = [weights(f"n{i}", 37) for i in range(3)]
    inits.append(numpy_helper.from_array(random.uniform(0.5, 2, 37).astype(np.float32), "variance"))
    nodes.append(helper.make_node("BatchNormalization", ["c", *norm, "variance"], ["n"]))
    nodes.append(helper.make_node("Relu", ["n"], ["r"]))
    nodes.append(helper.make_node("ConvTranspose", ["r", weights("t", 37, 16, 2, 2)], ["u"], strides=[2, 2]))
    nodes.append(helper.make_node("MatMul", ["u", weights("m", 34, 48)], ["y"]))
    return _write(tmp_path, nodes, inits, [1, 3, 19, 17], [1, 16, 38, 48])


def _compile(folder, *flags):
    artifact = folder / "m.dvt"
    code, _, messages = call([tool("dovetail"), "compile", folder / "m.onnx", "-o", artifact, *map(str, flags)])
    assert code == 0, messages
    return artifact


def _run(folder, artifact, expected, threads=1):
    """Runs and compares; returns what was said."""
    output = folder / "y.npz"
    code, _, messages = call(
        [tool("dovetail"), "run", artifact, "--input", f"x=@{folder}/x.npy", "--output", output, "--threads", threads]
    )
    assert code == 0, messages
    with np.load(output) as results:
        assert not differences(dict(results), expected)
        return messages, dict(results)["y"]


MESHES = {
    "1": [],
    "uneven": ["--mesh", "y=3", "--shard", "x=_,_,y,_", "--sizes", "x:2=9,4,6"],
    "2x2": ["--mesh", "y=2,x=2", "--shard", "x=_,_,y,x"],
}


@pytest.mark.parametrize("cpu", cpu_parameters("native", "x86-64-v3"))
@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
def test_results_are_the_same(files, mesh, cpu):
    folder, expected = files
    plain = _compile(folder, *mesh, "--cpu", cpu)
    size = plain.stat().st_size
    messages, result = _run(folder, plain, expected)
    assert REPACKED not in messages
    packed = _compile(folder, *mesh, "--cpu", cpu, "--prepack", 1)
    assert packed.stat().st_size > size + 4 * (37 * 3 * 9 + 37 * 16 * 4 + 34 * 48)
    messages, prepacked = _run(folder, packed, expected)
    assert REPACKED not in messages
    np.testing.assert_array_equal(prepacked, result)


def test_weights_of_the_image_are_used(files):
    """Other packed bytes, other results: nothing is packed at start-up. Checksums are made to fit."""
    folder, expected = files
    artifact = _compile(folder, "--prepack", 1)
    _, before = _run(folder, artifact, expected)
    content = bytearray(artifact.read_bytes())
    (_, _, offset, _) = next(s for s in sections(content) if s[0] == PACKED)
    entries = struct.unpack_from("<Q", content, offset)[0]
    assert entries >= 2
    for entry in range(entries):
        _, begin, length = struct.unpack_from("<3Q", content, offset + 24 + 24 * entry)
        content[offset + begin : offset + begin + length] = struct.pack("<f", 1) * (length // 4)
    artifact.write_bytes(fit_checksums(content, {PACKED}))
    code, _, messages = call(
        [tool("dovetail"), "run", artifact, "--input", f"x=@{folder}/x.npy", "--output", folder / "z.npz"]
    )
    assert code == 0, messages
    with np.load(folder / "z.npz") as results:
        assert not np.array_equal(results["y"], before)


#: What the library is told to use on a CPU that has more.
_FEWER = {"AVX2": "x86-64-v4", "SSE41": "x86-64-v3"}


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=needs_cpu(cpu)) for isa, cpu in _FEWER.items()])
def test_other_instructions_pack_again(files, monkeypatch, isa):
    """The library is told to use fewer instructions than when the weights were packed."""
    folder, expected = files
    artifact = _compile(folder, "--cpu", "x86-64-v2", "--prepack", 1)
    assert REPACKED not in _run(folder, artifact, expected)[0]
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", isa)
    messages, _ = _run(folder, artifact, expected)
    assert REPACKED in messages and "for oneDNN 2." in messages and "and 1 thread a rank" in messages, messages


@pytest.fixture
def winograd(tmp_path):
    """The same of two convolutions of the same weights, of which one is by Winograd's algorithm."""
    random = np.random.default_rng(8)
    weights = (0.1 * random.standard_normal((40, 40, 3, 3))).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
             helper.make_node("Conv", ["a", "w"], ["y"], pads=[1] * 4, strides=[2, 2])]  # fmt: skip
    inits = [numpy_helper.from_array(weights, "w")]
    return _write(tmp_path, nodes, inits, [1, 40, 38, 30], [1, 40, 19, 15])


def _packed(artifact):
    """(offset, size) of the section of packed weights, its texts, and the bytes of each entry."""
    content = artifact.read_bytes()
    (_, _, offset, size) = next(s for s in sections(content) if s[0] == PACKED)
    count, _, machine = struct.unpack_from("<3Q", content, offset)
    entries = [struct.unpack_from("<3Q", content, offset + 24 + 24 * i) for i in range(count)]
    texts = content[offset + 24 + 24 * count :][: machine + sum(length for length, _, _ in entries)]
    return (offset, size), texts, [length for _, _, length in entries]


def _keys(artifact):
    """What is packed, and how."""
    content = artifact.read_bytes()
    (_, _, offset, _) = next(s for s in sections(content) if s[0] == PACKED)
    count, _, at = struct.unpack_from("<3Q", content, offset)
    _, texts, _ = _packed(artifact)
    keys = set()
    for i in range(count):
        (length,) = struct.unpack_from("<Q", content, offset + 24 + 24 * i)
        keys.add(texts[at : at + length])
        at += length
    return keys


@needs_cpu("x86-64-v3")
@pytest.mark.parametrize("mesh", [[], ["--mesh", "y=2", "--shard", "x=_,_,y,_"]], ids=["1", "2"])
def test_each_algorithm_has_its_own_weights(winograd, mesh):
    folder, expected = winograd
    plan = call([tool("dovetail"), "compile", folder / "m.onnx", "--compile-to=lower", *mesh])[1]
    assert plan.count("plan.convolution") == 2 and plan.count("convolution_algorithm winograd") == 1
    _, result = _run(folder, _compile(folder, *mesh), expected)
    artifact = _compile(folder, *mesh, "--prepack", 1)
    _, texts, sizes = _packed(artifact)
    assert texts.count(b"winograd") == 1 and len(sizes) == 2 and max(sizes) >= 4 * min(sizes) >= 4 * 40 * 40 * 36
    messages, prepacked = _run(folder, artifact, expected)
    assert REPACKED not in messages
    np.testing.assert_array_equal(prepacked, result)


def test_other_kernels_pack_again(winograd):
    """The runtime's own kernels are for other instructions than when the weights were packed."""
    folder, expected = winograd
    artifact = _compile(folder, "--prepack", 1)
    _, texts, _ = _packed(artifact)
    start = texts.index(b" and kernels ")
    content = bytearray(artifact.read_bytes())
    at = content.index(texts[start:])
    content[at + len(" and kernels ")] ^= 2
    artifact.write_bytes(fit_checksums(content, {PACKED}))
    messages, _ = _run(folder, artifact, expected)
    assert REPACKED in messages, messages


@pytest.fixture
def divided(tmp_path):
    """The same of a convolution whose rows threads divide, and a product of one row whose columns they divide. The latter
    is packed on machines with AVX-512: without it, the library wants parts of weights in one piece, and no more.
    """
    random = np.random.default_rng(11)
    first = (0.1 * random.standard_normal((40, 24, 3, 3))).astype(np.float32)
    second = (0.1 * random.standard_normal((40 * 20 * 16, 256))).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "c"], ["a"], pads=[1] * 4, strides=[2, 2]),
             helper.make_node("Flatten", ["a"], ["f"]),
             helper.make_node("MatMul", ["f", "m"], ["y"])]  # fmt: skip
    inits = [numpy_helper.from_array(first, "c"), numpy_helper.from_array(second, "m")]
    return _write(tmp_path, nodes, inits, [1, 24, 40, 32], [1, 256])


def test_other_threads(divided):
    """Threads that divide rows use the same packed weights. Those that divide columns have each their own, so with
    another number of threads these are packed again, and the others only if the library wants another format."""
    folder, expected = divided
    plan = call([tool("dovetail"), "compile", folder / "m.onnx", "--compile-to=lower"])[1]
    for operation, loop in ("plan.convolution", 2), ("plan.matmul", 1):
        line = next(line for line in plan.splitlines() if operation in line)
        assert f"<loop = {loop}," in line, line
    packs_products = can_run("x86-64-v4")
    results, artifacts = {}, {}
    plain = _compile(folder)
    for threads in (1, 2, 4):
        messages, results[threads] = _run(folder, plain, expected, threads)
        assert REPACKED not in messages
    for threads in (1, 2, 4):
        artifacts[threads] = _compile(folder, "--prepack", threads).rename(folder / f"{threads}.dvt")
    keys = {threads: _keys(artifact) for threads, artifact in artifacts.items()}
    for packing, artifact in artifacts.items():
        assert len(keys[packing]) == 2 or (len(keys[packing]) == 1 and not packs_products)
        for threads in (1, 2, 4):
            messages, result = _run(folder, artifact, expected, threads)
            np.testing.assert_array_equal(result, results[threads])
            missing = len(keys[threads] - keys[packing])
            assert missing == 0 if threads == packing else missing > 0 or not packs_products
            if missing > 0:
                assert f"weights of {missing} calls" in messages and f"and {packing} thread" in messages, messages
            else:
                assert REPACKED not in messages, messages


def test_damaged_images_are_refused(files):
    folder, _ = files
    artifact = _compile(folder, "--prepack", 1)
    whole = artifact.read_bytes()
    (_, _, offset, size) = next(s for s in sections(whole) if s[0] == PACKED)
    for position in (offset, offset + 20, offset + size // 2, offset + size - 1):
        content = bytearray(whole)
        content[position] ^= 16
        artifact.write_bytes(content)
        code, _, messages = call([tool("dovetail"), "run", artifact, "--input", f"x=@{folder}/x.npy"])
        assert code == 7 and "packed weights section does not match" in messages, messages


def test_options_are_checked(files):
    folder, _ = files
    command = [tool("dovetail"), "compile", folder / "m.onnx", "-o", folder / "m.dvt", "--prepack"]
    for flags, message in ((["0"], "--prepack"), (["1", "--target", "cuda"], "'--prepack': target 'cuda' packs no weights")):
        code, _, messages = call([*command, *flags])
        assert code == 2 and message in messages, messages


def test_processes_agree(files):
    """Two processes use the same file at once."""
    folder, expected = files
    artifact = _compile(folder, "--prepack", 1)
    command = [str(tool("dovetail")), "run", str(artifact), "--input", f"x=@{folder}/x.npy", "--output"]
    runs = [subprocess.Popen([*command, str(folder / f"y{i}.npz")]) for i in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    for i in range(2):
        with np.load(folder / f"y{i}.npz") as results:
            assert not differences(dict(results), expected)
