# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole programs on CPUs with a process for each rank, which MPI connects: the same bits as from threads."""

import io
import json
import os
import pathlib
import shutil
import sys
import zipfile

import numpy as np
import onnx
import pytest
from harness import mpi
from harness.backend import SubprocessBackend, build_dir, call, tool
from harness.compare import differences
from harness.extent import one_of
from harness.partition import Partition
from subjects import SMALL_SUBJECTS, SUBJECTS

pytestmark = pytest.mark.skipif(bool(mpi.missing()), reason=mpi.missing() or "nothing is missing")

MESHES = {2: {"y": 2}, 3: {"y": 3}, 4: {"y": 2, "x": 2}, 9: {"y": 3, "x": 3}, 64: {"y": 8, "x": 8}}
CASES = [
    ("unet2d-transposed", 2, "uneven"),
    ("unet2d-bilinear", 4, "empty"),
    ("unet3d", 3, "uneven"),
    ("vit", 2, "empty"),
    ("vit-encoder", 4, "uneven"),
    ("llama", 3, "uneven"),
    ("gpt", 4, "empty"),
    ("swin", 2, "uneven"),
    ("mobilenet-v3-small", 3, "empty"),
    ("dcgan", 4, "uneven"),
    ("small-unet2d-bilinear", 9, "uneven"),
    ("small-unet2d-transposed", 9, "empty"),
    ("small-vit", 9, "uneven"),
    ("small-unet2d-bilinear", 64, "uneven"),
]


# What a process sends to another of its machine is a message, too.
MESSAGES = {"DOVETAIL_SHARED_MEMORY": 0}


def _run(line):
    code, output, messages = line
    assert code == 0, (output, messages)
    return messages


def _inputs(folder, inputs):
    flags = []
    for index, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"input{index}.npy", value)
        flags += ["--input", f"{name}=@{folder}/input{index}.npy"]
    return flags


def _outputs(folder, names, kind):
    files = {name: folder / f"{kind}{index}.npy" for index, name in enumerate(names)}
    return files, [part for name, file in files.items() for part in ("--output", f"{name}={file}")]


def _compare(folder, subject, ranks, style, runs, flags=()):
    """Compiles a subject, with more flags; `runs` gives commands to start ranks with from arguments, whose results are those of threads."""
    case = subject.prepared()
    artifact = folder / "model.dvt"
    SubprocessBackend().compile(
        case.path, artifact, subject.partition(MESHES[ranks], style), extra=[*subject.flags(), *flags]
    )
    inputs = _inputs(folder, case.inputs)
    files, outputs = _outputs(folder, case.expected, "local")
    _run(call([tool("dovetail-run"), "run", artifact, *inputs, *outputs]))
    local = {name: np.load(file) for name, file in files.items()}
    found = differences(local, case.expected)
    assert not found, found
    for index, start in enumerate(runs):
        files, outputs = _outputs(folder, case.expected, f"mpi{index}-")
        _run(mpi.call(start(["run", artifact, *inputs, *outputs, "--timeout", 200])))
        for name, file in files.items():
            assert np.load(file).tobytes() == local[name].tobytes(), name


def _both(ranks):
    """How to start ranks that share memory, and ranks that send messages."""
    return [
        lambda arguments, variables=variables: mpi.command(ranks, mpi.run_program(*arguments), variables=variables)
        for variables in ({}, MESSAGES)
    ]


def _subject(name):
    return next(subject for subject in SUBJECTS + SMALL_SUBJECTS if subject.name == name)


@one_of(3)
@pytest.mark.parametrize("name, ranks, style", CASES)
def test_model(tmp_path, name, ranks, style):
    """By memory that processes share, and by messages."""
    _compare(tmp_path, _subject(name), ranks, style, _both(ranks))


def test_one_that_shares_no_memory(tmp_path):
    """Rank 2 may not, or not as much as it takes: all of the machine send messages."""

    def start(limit):
        def commands(arguments):
            line = mpi.run_program(*arguments)
            return mpi.command(4, *[["env", f"DOVETAIL_SHARED_MEMORY={limit}", *line] if rank == 2 else line for rank in range(4)])

        return commands

    _compare(tmp_path, _subject("small-unet2d-transposed"), 4, "uneven", [start(0), start(5000)])


def test_over_sockets(tmp_path):
    """As between machines."""
    _compare(
        tmp_path,
        _subject("small-unet3d"),
        4,
        "uneven",
        [lambda arguments: mpi.command(4, mpi.run_program(*arguments), sockets=True, variables=MESSAGES)],
    )


def test_large_messages_are_sent_in_parts(tmp_path):
    """With the limit of a message at 1000 bytes."""
    name = "mpi_parts"
    assert (build_dir() / "lib" / f"libdovetail_transport_{name}.so").exists()
    _compare(
        tmp_path,
        _subject("small-vit"),
        4,
        "uneven",
        [lambda arguments: mpi.command(4, mpi.run_program(*arguments, comm=name), variables=MESSAGES)],
    )


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_steps_go_on_beside_messages(tmp_path, ranks):
    """What needs no halo, and what is not sent, is computed while messages that are late are under way, by library
    calls, too."""
    name, trace = "mpi_late", tmp_path / "trace.json"
    assert (build_dir() / "lib" / f"libdovetail_transport_{name}.so").exists()
    start = lambda arguments: mpi.command(ranks, mpi.run_program(*arguments, "--trace", trace, comm=name), variables=MESSAGES)
    _compare(tmp_path, _subject("small-unet2d-transposed"), ranks, "uneven", [start], ["--split-launches", "always"])
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["pid"] == 0]
    begins = {event["id"]: event["ts"] for event in events if event["ph"] == "b"}
    ends = {event["id"]: event["ts"] for event in events if event["ph"] == "e"}
    assert begins.keys() == ends.keys() and begins
    interiors = [event for event in events if event["name"].endswith("(interior)")]
    assert any(event["cat"] == "convolution" for event in interiors)
    for event in interiors:
        assert any(begins[id] <= event["ts"] and event["ts"] + event["dur"] <= ends[id] for id in begins), event
    for id, begin in begins.items():
        assert ends[id] - begin >= 200, "messages take 200 us at least"
    # What is sent comes right before an exchange, and the rest right behind its beginning.
    borders = [event for event in events if event["name"].endswith("(border)")]
    assert borders
    for border in borders:
        interior = next(event for event in interiors if event["name"] == border["name"].replace("border", "interior"))
        end = border["ts"] + border["dur"]
        assert any(end <= begin <= interior["ts"] < ends[id] for id, begin in begins.items()), border


@one_of(3)
@pytest.mark.parametrize("ranks, style", [(2, "empty"), (3, "uneven"), (4, "uneven"), (4, "empty"), (9, "uneven")])
@pytest.mark.parametrize("name", ["small-unet2d-transposed", "small-unet2d-bilinear", "small-unet3d"])
def test_parts_of_steps(tmp_path, name, ranks, style):
    """All that can be is computed beside exchanges: the same bits by memory that processes share, and by messages."""
    _compare(tmp_path, _subject(name), ranks, style, _both(ranks), ["--split-launches", "always"])


def _save_pool(path, columns):
    """A pooling window over 9 rows."""
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
        "pool",
        [value("x", onnx.TensorProto.FLOAT, [1, 2, 9, columns])],
        [value("y", onnx.TensorProto.FLOAT, [1, 2, 9, columns])],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """A folder with it for 2 and 3 ranks, and for 2 with other cuts."""
    folder = tmp_path_factory.mktemp("pool")
    _save_pool(folder / "pool.onnx", 7)
    for name, sizes in (("2", [4, 5]), ("2-other", [5, 4]), ("3", [3, 3, 3]), ("1", [9])):
        partition = Partition({"y": len(sizes)}).split("x", 4, 2, "y", sizes)
        SubprocessBackend().compile(folder / "pool.onnx", folder / f"pool{name}.dvt", partition)
    return folder


RANDOM = ("--input", "x=random:3")


def test_limits_of_shared_memory_are_numbers(pool):
    line = mpi.run_program("bench", pool / "pool2.dvt", "--iterations", 1)
    code, _, messages = mpi.call(mpi.command(2, line), DOVETAIL_SHARED_MEMORY="much")
    assert code != 0 and "DOVETAIL_SHARED_MEMORY is 'much'" in messages, (code, messages)


def test_few_processors_are_remarked(pool):
    """mpirun binds each of two processes to one core unless it is told otherwise."""
    line = mpi.run_program("run", pool / "pool2.dvt", *RANDOM, "--threads", 2)
    bound = [part for part in mpi.command(2, ["taskset", "-c", 0, *line])]
    code, _, messages = mpi.call(bound)
    assert code == 0
    assert messages.count("this process has 2 threads, but may use 1 processor only") == 1, messages


def test_rank_0_speaks(pool, tmp_path):
    code, output, messages = mpi.call(
        mpi.command(2, mpi.run_program("run", pool / "pool2.dvt", *RANDOM, "--trace", tmp_path / "trace.json"))
    )
    assert (code, messages) == (0, ""), messages
    assert output.count("float32[1, 2, 9, 7]") == 1
    assert (tmp_path / "trace.json").exists()
    code, output, messages = mpi.call(mpi.command(3, mpi.run_program("bench", pool / "pool3.dvt", "--iterations", 3)))
    assert (code, messages) == (0, ""), messages
    assert output.count("median") == 1


def test_processes_of_mpirun_are_ranks(pool):
    """Without --comm, too, unless that says otherwise."""
    line = [tool("dovetail-run"), "run", pool / "pool2.dvt", *RANDOM]
    for flags, outputs in (([], 1), (["--comm", "local"], 2)):
        code, output, messages = mpi.call(mpi.command(2, [*line, *flags]))
        assert (code, messages) == (0, ""), messages
        assert output.count("float32[1, 2, 9, 7]") == outputs
    # Jobs of PyTorch have such variables.
    torch = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    code, output, messages = mpi.call(mpi.command(2, line, variables=torch))
    assert (code, messages) == (0, ""), messages
    assert output.count("float32[1, 2, 9, 7]") == 1
    code, _, messages = mpi.call(mpi.command(3, line))
    assert code == 8 and "the program is for 2 ranks, but MPI has started 3 processes" in messages


def test_one_rank(pool):
    """mpirun with one process, and none at all."""
    line = mpi.run_program("run", pool / "pool1.dvt", *RANDOM)
    for each in (mpi.command(1, line), [str(part) for part in line]):
        code, output, messages = mpi.call(each)
        assert (code, messages) == (0, ""), messages
        assert output.count("float32[1, 2, 9, 7]") == 1


@pytest.mark.parametrize("ranks, program", [(3, "2"), (2, "3"), (2, "1")])
def test_other_numbers_of_processes(pool, ranks, program):
    code, _, messages = mpi.call(
        mpi.command(ranks, mpi.run_program("run", pool / f"pool{program}.dvt", *RANDOM))
    )
    assert code == 8
    number = "1 rank" if program == "1" else f"{program} ranks"
    wanted = f"the program is for {number}, but MPI has started {ranks} processes; start one for each rank"
    assert wanted in messages


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"])
def test_launcher_of_another_mpi(pool, variable):
    """Which starts processes that are alone, each of them."""
    for program in ("2", "1"):
        line = [str(part) for part in mpi.run_program("run", pool / f"pool{program}.dvt", *RANDOM)]
        code, _, messages = mpi.call(line, **{variable: "4"})
        assert code == 8, messages
        assert f"{variable} says that 4 were started" in messages
        assert "use the mpirun of this MPI or srun --mpi=pmix" in messages


def test_other_artifacts_are_refused(pool):
    programs = [mpi.run_program("run", pool / f"pool{name}.dvt", *RANDOM) for name in ("2", "2-other")]
    code, output, messages = mpi.call(mpi.command(2, *programs))
    assert code == 7 and not output, messages
    assert "rank 1 has another artifact than rank 0" in messages


def test_mpi_says_which_rank_one_is(pool):
    line = mpi.run_program("run", pool / "pool1.dvt", *RANDOM, "--rank", 0, "--world", 1)
    code, _, messages = mpi.call([str(part) for part in line])
    assert code == 2
    assert "the rank of this process is known to mpi; leave out --rank, --world and --address" in messages


def test_errors_of_one_rank_end_all(pool, tmp_path):
    """The input of rank 1 has another shape."""
    np.save(tmp_path / "x.npy", np.zeros([1, 2, 9, 7], np.float32))
    np.save(tmp_path / "wrong.npy", np.zeros([1, 2, 9, 8], np.float32))
    # MPICH's launcher lets the other wait in MPI_Init, which is given up then.
    flags = ["--timeout", 15]
    programs = [
        mpi.run_program("run", pool / "pool2.dvt", "--input", f"x=@{tmp_path}/{name}.npy", *flags)
        for name in ("x", "wrong")
    ]
    code, output, messages = mpi.call(mpi.command(2, *programs), timeout=60)
    # MPICH's launcher has a code of its own.
    assert code == 2 or (code != 0 and not mpi.is_open_mpi()), messages
    assert not output and "input 'x' is float32[1, 2, 9, 7]" in messages
    assert "input 'x'" in messages and "[1, 2, 9, 8]" in messages


def _pooled(x):
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    shifted = [padded[:, :, v : v + x.shape[2], u : u + x.shape[3]] for v in range(3) for u in range(3)]
    return np.max(shifted, axis=0)


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
        assert np.array_equal(np.load(output), _pooled(x))
    _run(call([tool("dovetail-run"), "run", pool / "pool2.dvt", "--input", f"x=@{tmp_path}/{name}", "--output", f"y={tmp_path}/y.npy"]))
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
    _run(call([tool("dovetail"), *line, *flags]))
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


def test_other_outputs_of_a_rank_are_refused(pool, tmp_path):
    """Ranks would wait for each other."""
    line = mpi.run_program("run", pool / "pool2.dvt", *RANDOM)
    code, _, messages = mpi.call(mpi.command(2, line, [*line, "--output", f"y={tmp_path}/y.npy"]), timeout=60)
    assert code == 2 and "rank 1 was given other --output than rank 0" in messages, messages
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flag, value", [("--warmup", 3), ("--steps", 1)])
def test_other_flags_of_a_rank_are_refused(pool, flag, value):
    """Without this, one would wait for the other's run until the timeout."""
    line = mpi.run_program("run", pool / "pool2.dvt", *RANDOM)
    code, _, messages = mpi.call(mpi.command(2, [*line, flag, value], line), timeout=60)
    assert code == 2 and f"rank 1 was given other {flag} than rank 0" in messages, messages


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
        assert np.array_equal(np.load(tmp_path / "y.npy"), _pooled(x))
        (tmp_path / "y.npy").unlink()
    line = mpi.run_program("run", pool / "pool3.dvt", "--input", f"x=@{tmp_path}/packed.npz", "--output", f"y={tmp_path}/y.npy")
    code, _, messages = mpi.call(mpi.command(3, line))
    assert code == 2 and f"array 'x' in '{tmp_path}/packed.npz' is compressed" in messages, messages
    local = ["run", pool / "pool3.dvt", "--output", f"y={tmp_path}/y-{{step}}.npy"]
    for name in ("two", "packed"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.npz").rename(tmp_path / name / "1.npz")
        _run(call([tool("dovetail-run"), *local, "--input", f"x={tmp_path}/{name}/*.npz"]))
        assert np.array_equal(np.load(tmp_path / "y-0001.npy"), _pooled(x))
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
    _save_pool(folder / "pool.onnx", 20000)
    partition = Partition({"y": 2}).split("x", 4, 2, "y", [4, 5])
    SubprocessBackend().compile(folder / "pool.onnx", folder / "pool2.dvt", partition)
    line = mpi.run_program("run", folder / "pool2.dvt", *RANDOM, "--output", f"y={tmp_path}/y.npy")
    words = " ".join(map(str, line))
    limited = ["bash", "-c", f"trap '' XFSZ; ulimit -f 200; exec {words}"]
    code, _, messages = mpi.call(mpi.command(2, line, limited, sockets=True))
    assert code == 3, messages
    assert f"rank 1: cannot write '{tmp_path}/y.npy': File too large" in messages
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("threads", ["serialized", "funneled"])
def test_programs_with_mpi_of_their_own(pool, threads):
    """Two programs at once on halves of the processes, in reverse order; wrong requests are errors that end nothing."""
    program = build_dir() / "bin" / ("mpi-embedding-openmpi" if mpi.is_open_mpi() else "mpi-embedding-mpich")
    assert program.exists()
    code, output, messages = mpi.call(mpi.command(4, [program, pool / "pool2.dvt", threads]))
    assert (code, messages) == (0, ""), (output, messages)
    # UCX remarks what was given up for ever, as parts of requests that are errors are.
    assert [line for line in output.splitlines() if "UCX  WARN" not in line] == ["as it should be"] * 4


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
    _run(call([tool("dovetail"), *arguments]))
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


LOCAL = """
import sys
import numpy as np
import dovetail

program = dovetail.Program.load(sys.argv[1], check_weights=False)
x = np.arange(126, dtype=np.float32).reshape(1, 2, 9, 7) % 29
with dovetail.Runner(program, comm="mpi") as runner:
    (rank,) = runner.ranks
    y = runner.run_local({"x": runner.to_local("x", x)})["y"]
    np.save(f"{sys.argv[2]}/{rank}.npy", y)
"""


def test_python_programs_give_what_their_ranks_hold(pool, tmp_path):
    """Without MPI for Python: the runtime begins MPI itself."""
    from harness.backend import InProcessBackend, fastest_backend

    assert isinstance(fastest_backend(), InProcessBackend), "the shared libraries are not built"
    import dovetail

    paths = os.pathsep.join([str(pathlib.Path(dovetail.__file__).parent.parent), *filter(None, sys.path)])
    line = mpi.command(3, [sys.executable, "-c", LOCAL, pool / "pool3.dvt", tmp_path])
    code, _, messages = mpi.call(line, PYTHONPATH=paths)
    assert code == 0, messages
    program = dovetail.Program.load(pool / "pool3.dvt")
    whole = dovetail.Runner(program).from_local("y", [np.load(tmp_path / f"{rank}.npy") for rank in range(3)])
    x = np.arange(126, dtype=np.float32).reshape(1, 2, 9, 7) % 29
    assert np.array_equal(whole, _pooled(x))
