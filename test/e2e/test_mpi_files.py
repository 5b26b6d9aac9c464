# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes of MPI read and write their parts of files, and their weights, alone."""

import io
import json
import os
import shutil
import sys
import zipfile

import numpy as np
import onnx
import pytest
from harness import mpi
from harness.backend import SubprocessBackend, call, tool
from harness.extent import one_of
from harness.partition import Partition
from mpi_programs import RANDOM, compile_pool, pooled, save_pool, succeed

pytestmark = pytest.mark.skipif(bool(mpi.missing()), reason=mpi.missing() or "nothing is missing")


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """A folder with programs of the window."""
    return compile_pool(tmp_path_factory.mktemp("pool"))


@pytest.mark.parametrize("name", ["x.npy", "fortran.npy", "x.raw", "x.npz"])
def test_inputs_are_read_in_parts(pool, tmp_path, name):
    x = np.random.default_rng(4).standard_normal([1, 2, 9, 7], np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(x))
    np.savez(tmp_path / "x.npz", x=x)
    x.tofile(tmp_path / "x.raw")
    for ranks in (2, 3):
        output = tmp_path / f"y{ranks}.npy"
        line = mpi.run_program(
            "run", pool / f"pool{ranks}.dvt", "--input", f"x=@{tmp_path}/{name}", "--output", f"y={output}", "--warmup", 1
        )
        assert mpi.call(mpi.command(ranks, line)) == (0, "", "")
        assert np.array_equal(np.load(output), pooled(x))
    succeed(call([tool("dovetail-run"), "run", pool / "pool2.dvt", "--input", f"x=@{tmp_path}/{name}", "--output", f"y={tmp_path}/y.npy"]))
    assert (tmp_path / "y.npy").read_bytes() == (tmp_path / "y2.npy").read_bytes()
    assert not [file for file in tmp_path.iterdir() if file.name not in {"x.npy", "fortran.npy", "x.raw", "x.npz", "y.npy", "y2.npy", "y3.npy"}]


def _short_pieces(folder, shape, mesh, *flags):
    """A program whose ranks have columns of its outputs."""
    value, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    nodes = [node("Neg", ["x"], ["y"]), node("Cast", ["x"], ["half"], to=onnx.TensorProto.FLOAT16)]
    types = {"y": onnx.TensorProto.FLOAT, "half": onnx.TensorProto.FLOAT16}
    outputs = [value(name, kind, shape) for name, kind in types.items()]
    graph = onnx.helper.make_graph(nodes, "columns", [value("x", onnx.TensorProto.FLOAT, shape)], outputs)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "columns.onnx")
    line = ["compile", folder / "columns.onnx", "-o", folder / "columns.dvt", "--mesh", mesh, "--objective", "bytes"]
    succeed(call([tool("dovetail"), *line, *flags]))
    return folder / "columns.dvt"


@one_of(3)
@pytest.mark.parametrize(
    "shape, mesh, flags, most",
    [
        ([1801, 1200], "x=4", ["--shard", "x=_,x"], 1),  # 1 801 pieces a rank, of two or three slabs in all.
        ([3, 50, 7, 31], "x=3", ["--shard", "x=_,_,_,x"], 1),
        ([2, 3, 400, 1100], "y=2,x=2", ["--shard", "x=_,_,y,x"], 1),
        ([2, 3, 400, 1100], "y=2,x=2", ["--shard", "x=_,_,_,x"], 1),  # Two ranks have the same.
        ([12, 400, 600], "x=3", ["--shard", "x=_,x,_", "--sizes", "x:1=1,399,0"], 2),  # A rank has nothing.
        ([2, 1, 2_600_000], "x=3", ["--shard", "x=_,_,x"], 2),  # A row has more than a slab; its thirds are long.
        ([2, 1, 2_600_000], "x=13", ["--shard", "x=_,_,x"], 1),  # These are not.
        ([9, 2, 5], "x=3", ["--shard", "x=_,_,x", "--sizes", "x:2=5,0,0"], 1),
        ([40, 300_000], "y=4", ["--shard", "x=y,_"], 1),  # Long pieces are written where they are.
    ],
)
def test_outputs_of_short_pieces_are_written_in_slabs(tmp_path, shape, mesh, flags, most):
    """Each process writes few pieces, whatever the sharding: so many of each output."""
    artifact = _short_pieces(tmp_path, shape, mesh, *flags)
    x = np.random.default_rng(6).standard_normal(shape).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    outputs = [part for name in ("y", "half") for part in ("--output", f"{name}={tmp_path}/{name}.npy")]
    line = mpi.run_program("run", artifact, "--input", f"x=@{tmp_path}/x.npy", *outputs)
    ranks = int(np.prod([int(axis.split("=")[1]) for axis in mesh.split(",")]))
    if shutil.which("strace"):
        line = ["strace", "-f", "-qq", "-e", "trace=pwrite64", "-o", f"{tmp_path}/trace", "-ff", *line]
    assert mpi.call(mpi.command(ranks, line)) == (0, "", "")
    assert np.load(tmp_path / "y.npy").tobytes() == (-x).tobytes()
    assert np.load(tmp_path / "half.npy").tobytes() == x.astype(np.float16).tobytes()
    for trace in tmp_path.glob("trace.*"):
        assert trace.read_text().count("pwrite64(") <= 2 * most + 2, trace.read_text()[:2000]


def test_steps_of_short_pieces(tmp_path):
    artifact = _short_pieces(tmp_path, [300, 200], "x=3", "--shard", "x=_,x")
    x = np.random.default_rng(7).standard_normal([4, 300, 200]).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    outputs = [part for name in ("y", "half") for part in ("--output", f"{name}={tmp_path}/{name}-{{step}}.npy")]
    (tmp_path / "in").mkdir()
    for step, value in enumerate(x):
        np.savez(tmp_path / "in" / f"{step}.npz", x=value)
    line = mpi.run_program("run", artifact, "--input", f"x={tmp_path}/in/*.npz", *outputs, "--warmup", 1)
    assert mpi.call(mpi.command(3, line)) == (0, "", "")
    for step, value in enumerate(x, 1):
        assert np.load(tmp_path / f"y-{step:04}.npy").tobytes() == (-value).tobytes()
        assert np.load(tmp_path / f"half-{step:04}.npy").tobytes() == value.astype(np.float16).tobytes()


PEAK = """
import resource, subprocess, sys
# Launchers leave files open for their processes.
code = subprocess.call(sys.argv[2:], close_fds=False)
open(sys.argv[1], "a").write(f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}\\n")
sys.exit(code)
"""


@pytest.mark.parametrize("cut", ["x=x,_", "x=_,x"])
def test_steps_take_no_more_than_their_parts(tmp_path, cut):
    """Of 400 MB in each step, a third of inputs and outputs each: what the plan says, and at most 128 MB more."""
    shape, steps = [4096, 24576], 3
    artifact = _short_pieces(tmp_path, shape, "x=3", "--shard", cut)
    code, text, messages = call([tool("dovetail-run"), "inspect", "--json", artifact])
    assert code == 0, messages
    planned = max(rank["total_bytes"] for rank in json.loads(text)["ranks"])
    (tmp_path / "in").mkdir()
    x = np.lib.format.open_memmap(tmp_path / "in" / "1.npy", "w+", np.float32, tuple(shape))
    x[:] = np.arange(shape[1], dtype=np.float32) + np.arange(shape[0], dtype=np.float32)[:, None] * 0.5
    x.flush()
    for step in range(2, steps + 1):
        os.link(tmp_path / "in" / "1.npy", tmp_path / "in" / f"{step}.npy")
    line = mpi.run_program("run", artifact, "--input", f"x={tmp_path}/in/*.npy", "--output", f"y={tmp_path}/y-{{step}}.npy")
    assert mpi.call(mpi.command(3, [sys.executable, "-c", PEAK, tmp_path / "peaks", *line])) == (0, "", "")
    for step in range(1, steps + 1):
        y = np.load(tmp_path / f"y-{step:04}.npy", mmap_mode="r")
        assert all(np.array_equal(y[row], -x[row]) for row in range(0, shape[0], 7))
    peaks = [1024 * int(peak) for peak in (tmp_path / "peaks").read_text().split()]
    assert len(peaks) == 3 and max(peaks) <= planned + 128e6, (peaks, planned)


def test_archives_are_read_in_parts(pool, tmp_path):
    """Of large ones a process reads its part alone; what is compressed is refused by name where ranks are processes."""
    x = np.random.default_rng(8).standard_normal([1, 2, 9, 7], np.float32)
    fortran = np.asfortranarray(x)
    # Nobody asks for the other one, which is of no type of ours.
    np.savez(tmp_path / "two.npz", other=np.zeros(3, np.complex64), x=fortran)
    np.savez_compressed(tmp_path / "packed.npz", x=x)
    # As other programs write them: with a comment, and with fields and data between members.
    with zipfile.ZipFile(tmp_path / "strange.npz", "w") as archive:
        info = zipfile.ZipInfo("x.npy")
        info.extra = b"\xfe\xca\x04\x00abcd"
        buffer = io.BytesIO()
        np.save(buffer, x)
        archive.writestr(info, buffer.getvalue())
        archive.writestr("notes.npy", b"this is no array", zipfile.ZIP_DEFLATED)
        archive.comment = b"PK\x05\x06" + bytes(30)
    for name in ("two", "strange"):
        line = mpi.run_program("run", pool / "pool3.dvt", "--input", f"x=@{tmp_path}/{name}.npz", "--output", f"y={tmp_path}/y.npy")
        assert mpi.call(mpi.command(3, line)) == (0, "", "")
        assert np.array_equal(np.load(tmp_path / "y.npy"), pooled(x))
        (tmp_path / "y.npy").unlink()
    line = mpi.run_program("run", pool / "pool3.dvt", "--input", f"x=@{tmp_path}/packed.npz", "--output", f"y={tmp_path}/y.npy")
    code, _, messages = mpi.call(mpi.command(3, line))
    assert code == 2 and f"array 'x' in '{tmp_path}/packed.npz' is compressed" in messages, messages
    local = ["run", pool / "pool3.dvt", "--output", f"y={tmp_path}/y-{{step}}.npy"]
    for name in ("two", "packed"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.npz").rename(tmp_path / name / "1.npz")
        succeed(call([tool("dovetail-run"), *local, "--input", f"x={tmp_path}/{name}/*.npz"]))
        assert np.array_equal(np.load(tmp_path / "y-0001.npy"), pooled(x))
    # Damaged in any place, it is an error or another array, and no signal.
    good = (tmp_path / "two" / "1.npz").read_bytes()
    rng = np.random.default_rng(9)
    for attempt in range(60):
        damaged = bytearray(good[: rng.integers(len(good))] if attempt % 3 == 0 else good)
        for place in rng.integers(0, max(1, len(damaged)), 0 if attempt % 3 == 0 else 3):
            damaged[place if attempt % 3 == 1 else -1 - place % 150] ^= 1 << rng.integers(8)
        (tmp_path / "two" / "1.npz").write_bytes(damaged)
        code, _, messages = call([tool("dovetail-run"), *local, "--input", f"x={tmp_path}/two/*.npz"])
        assert code in (0, 2, 3), (attempt, code, messages)
        assert code == 0 or "1.npz" in messages or "input 'x'" in messages, messages


@pytest.mark.parametrize("kind", ["npy", "fortran", "npz", "raw"])
def test_files_of_half_the_size(tmp_path, kind):
    """An error, and no signal as from a mapping; no output stays."""
    artifact = _short_pieces(tmp_path, [1024, 2048], "x=2", "--shard", "x=_,x")
    x = np.random.default_rng(10).standard_normal([1024, 2048]).astype(np.float32)
    suffix = kind if kind != "fortran" else "npy"
    good = tmp_path / f"good.{suffix}"
    (tmp_path / "in").mkdir()
    if kind == "npz":
        np.savez(good, x=x)
    elif kind == "raw":
        x.tofile(good)
    else:
        np.save(good, np.asfortranarray(x) if kind == "fortran" else x)
    whole = good.read_bytes()
    line = mpi.run_program("run", artifact, "--input", f"x=@{tmp_path}/in/1.{suffix}", "--output", f"y={tmp_path}/y.npy")
    (tmp_path / "in" / f"1.{suffix}").write_bytes(whole[: len(whole) // 2])
    code, _, messages = mpi.call(mpi.command(2, line))
    assert code == 3 and f"in/1.{suffix}'" in messages, messages
    assert not list(tmp_path.glob("y.npy*"))


def test_random_inputs_are_those_of_threads(pool, tmp_path):
    """Each rank makes its part alone; what is printed of outputs is brought together."""
    printed = []
    for line in (
        mpi.command(3, mpi.run_program("run", pool / "pool3.dvt", *RANDOM)),
        [str(part) for part in (tool("dovetail-run"), "run", pool / "pool3.dvt", *RANDOM)],
    ):
        code, output, messages = mpi.call(line)
        assert (code, messages) == (0, ""), messages
        printed.append(output)
    assert printed[0] == printed[1]
    assert "min" in printed[0] and "max" in printed[0]


def test_archives_are_refused(pool, tmp_path):
    line = mpi.run_program("run", pool / "pool2.dvt", *RANDOM, "--output", tmp_path / "y.npz")
    code, _, messages = mpi.call(mpi.command(2, line))
    assert code == 2
    assert "each process writes its part of an output, which archives do not allow" in messages
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("size, what", [(100, "bytes of elements instead of"), (700, "bytes of elements instead of")])
def test_inputs_that_are_too_short_or_long(pool, tmp_path, size, what):
    (tmp_path / "x.raw").write_bytes(bytes(size))
    line = mpi.run_program("run", pool / "pool2.dvt", "--input", f"x=@{tmp_path}/x.raw", "--output", f"y={tmp_path}/y.npy")
    code, _, messages = mpi.call(mpi.command(2, line))
    assert code == 3 and what in messages
    assert not (tmp_path / "y.npy").exists()


def test_no_room_for_outputs(tmp_path_factory, tmp_path):
    """Files of rank 1 may not be as long as the output, but as long as kernels, of which it makes a file."""
    folder = tmp_path_factory.mktemp("wide")
    save_pool(folder / "pool.onnx", 20000)
    partition = Partition({"y": 2}).split("x", 4, 2, "y", [4, 5])
    SubprocessBackend().compile(folder / "pool.onnx", folder / "pool2.dvt", partition)
    line = mpi.run_program("run", folder / "pool2.dvt", *RANDOM, "--output", f"y={tmp_path}/y.npy")
    words = " ".join(map(str, line))
    limited = ["bash", "-c", f"trap '' XFSZ; ulimit -f 200; exec {words}"]
    code, _, messages = mpi.call(mpi.command(2, line, limited, sockets=True))
    assert code == 3, messages
    assert f"rank 1: cannot write '{tmp_path}/y.npy': File too large" in messages
    assert not list(tmp_path.iterdir())


def test_each_process_reads_its_weights_alone(tmp_path):
    """Rank 0 does not notice damage in what rank 2 alone needs, which does, as do threads of one process."""
    channels, terms = 3072, 1024  # A part of 4 MiB for each rank.
    rng = np.random.default_rng(5)
    weights = rng.standard_normal((channels, terms, 1, 1), np.float32)
    value, x = onnx.helper.make_tensor_value_info, rng.standard_normal((1, terms, 3, 2), np.float32)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Conv", ["x", "w"], ["y"])],
        "channels",
        [value("x", onnx.TensorProto.FLOAT, x.shape)],
        [value("y", onnx.TensorProto.FLOAT, [1, channels, 3, 2])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx")
    good, damaged, output = tmp_path / "good.dvt", tmp_path / "damaged.dvt", tmp_path / "y.npy"
    arguments = ["compile", tmp_path / "model.onnx", "-o", good, "--mesh", "c=3", "--shard", "y=_,c,_,_"]
    succeed(call([tool("dovetail"), *arguments]))
    data = bytearray(good.read_bytes())
    place = data.find(weights[2560].tobytes())
    assert place > 0, "the weights of rank 2 are not where they should be"
    data[place] ^= 1
    damaged.write_bytes(data)
    np.save(tmp_path / "x.npy", x)
    run = {
        name: ["run", file, "--input", f"x=@{tmp_path}/x.npy", "--output", f"y={output}"]
        for name, file in (("good", good), ("damaged", damaged))
    }

    def start(*names):
        return mpi.call(mpi.command(len(names), *[mpi.run_program(*run[name]) for name in names]))

    assert start("damaged", "damaged", "good") == (0, "", "")
    expected = np.einsum("oi,ihw->ohw", weights[:, :, 0, 0], x[0])[None]
    np.testing.assert_allclose(np.load(output), expected, rtol=1e-4, atol=1e-3)
    output.unlink()
    code, _, messages = start("good", "good", "damaged")
    assert code == 7 and "rank 2: the checksum of the weights section does not match" in messages, messages
    code, _, messages = call([tool("dovetail-run"), *run["damaged"]])
    assert code == 7 and "the checksum of the weights section does not match" in messages
    assert not output.exists()
