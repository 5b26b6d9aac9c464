# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Systems that lack threads, memory, an assembler or a standard output: the exit code says what kind."""

import os
import re
import resource
import subprocess

import onnx
import pytest
from bad_files import compile_command, make_model, make_value, run_command, write_files
from harness.backend import build_dir, call, tool
from harness.sanitizers import sanitizers, without_preload
from onnx import helper

FILE, DOES_NOT_FIT, INTERNAL = 3, 6, 9


@pytest.fixture(scope="module")
def folder(tmp_path_factory, backend):
    """The files that the commands name."""
    return write_files(tmp_path_factory.mktemp("bad") / "files")


@pytest.mark.skipif(bool(sanitizers(build_dir())), reason="sanitizers reserve more memory than the limit leaves")
def test_no_more_threads(folder):
    """64 ranks where the system gives stacks for a few."""
    # Without libraries, which do not all survive such a lack of memory.
    command = compile_command(mesh="--mesh y=64", flags="--no-libraries").format(dir=folder).replace("out.dvt", "many.dvt")
    code, _, messages = call([tool("dovetail"), *command.split()])
    assert code == 0, messages
    command = run_command(artifact="many").format(dir=folder)
    # 64 MiB of addresses for each stack; the libraries take about 300 MiB. How much is left for all else differs.
    for limit in range(500_000, 1_500_001, 50_000):
        script = f"ulimit -s 65536; ulimit -v {limit}; exec {tool('dovetail-run')} {command}"
        code, _, messages = call(["bash", "-c", script], timeout=120)
        assert code == DOES_NOT_FIT, f"{limit} KiB, exit code {code}: {messages}"
        assert re.search("rank [0-9]+.*thread", messages), messages


@pytest.mark.parametrize(
    "ptxas, message",
    [
        ("/bin/false", r"'/bin/false' cannot assemble kernels for sm_80 \(exit code 1\)"),
        ("/missing", "cannot run '/missing': .*set DOVETAIL_PTXAS"),
    ],
)
def test_failing_ptxas(folder, tmp_path, monkeypatch, ptxas, message):
    monkeypatch.setenv("DOVETAIL_PTXAS", ptxas)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = compile_command(flags="--target cuda --no-libraries").format(dir=folder)
    code, _, messages = call([tool("dovetail"), *command.split()])
    assert code == INTERNAL and re.search(message, messages), f"exit code {code}: {messages}"
    assert not (folder / "out.dvt").exists() and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        "run {dir}/good.dvt --input image=random:0",
        "inspect {dir}/good.dvt",
        "inspect {dir}/good.onnx",
        "compile {dir}/good.onnx --compile-to import",
        "verify {dir}/good.onnx --mesh y=2 --shard image=_,_,y,_",
    ],
)
def test_lost_output_is_an_error(folder, command):
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [tool("dovetail"), *command.format(dir=folder).split()],
            stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, timeout=60, env=without_preload(),
        )  # fmt: skip
    assert result.returncode == FILE, result.stderr
    assert "cannot write to the standard output" in result.stderr


@pytest.mark.skipif(bool(sanitizers(build_dir())), reason="sanitizers need more address space than the limit leaves")
def test_too_many_threads(folder):
    """Threads that the system refuses: here for want of address space."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    result = subprocess.run(
        [tool("dovetail"), *"run {dir}/good.dvt --input image=random:0 --threads 4096".format(dir=folder).split()],
        capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=60, preexec_fn=limit,
    )  # fmt: skip
    assert result.returncode == DOES_NOT_FIT, result.stderr
    assert re.search(r"rank \d.*threads", result.stderr), result.stderr


@pytest.mark.skipif(bool(sanitizers(build_dir())), reason="sanitizers need more address space than the limit leaves")
def test_too_large_to_run(folder, tmp_path):
    """Inputs and outputs that do not fit: the message says how large they are."""
    value = lambda name: make_value(name, [1 << 32])
    model = make_model([helper.make_node("Neg", ["x"], ["y"])], [value("x")], [value("y")])
    onnx.save(model, tmp_path / "large.onnx")
    dovetail = os.path.abspath(tool("dovetail"))
    subprocess.run([dovetail, "compile", "large.onnx"], cwd=tmp_path, check=True, timeout=60)

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    result = subprocess.run(
        [dovetail, "run", "large.dvt", "--input", "x=random:0"],
        cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=60, preexec_fn=limit,
    )  # fmt: skip
    assert result.returncode == DOES_NOT_FIT, result.stderr
    assert re.search(r"'large.dvt': .* take 32.0 GiB; the largest is 'x' float32\[4294967296\]", result.stderr), result.stderr
