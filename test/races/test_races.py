# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled models on the ranks of a runtime built with ThreadSanitizer: no race, and the right outputs.

Such a build has no compiler: that of the release build is used, or the one in $DOVETAIL_COMPILER_DIR.
"""

import os
import pathlib

import numpy as np
import pytest
from harness.backend import ROOT, call, tool
from harness.compare import differences
from harness.sanitizers import tool_environment
from subjects import SUBJECTS

COMPILER = pathlib.Path(os.environ.get("DOVETAIL_COMPILER_DIR", ROOT / "build" / "release")) / "bin" / "dovetail"
NAMES = (
    "unet2d-transposed", "unet2d-bilinear", "unet2d-dynamic", "unet3d", "vit", "vit-encoder", "resnet50", "ppocr-det",
    "ppocr-cls", "light-shufflenet", "light-densenet121",
)  # fmt: skip
#: What splits the threads unevenly among the ranks, or leaves ranks with several: those of kernels are our own.
THREADS = (1, 4, 11)


def _subject(name):
    return next(subject for subject in SUBJECTS if subject.name == name)


def _compile(name, mesh, style, libraries, folder, options=()):
    subject = _subject(name)
    partition = subject.partition(mesh, style)
    command = [COMPILER, "compile", subject.prepared().path, "-o", folder / "model.dvt"]
    command += [*partition.flags(), *subject.flags(), *([] if libraries else ["--no-libraries"]), *options]
    code, _, messages = call(command)
    assert code == 0, messages
    return folder / "model.dvt", subject.prepared()


def _run(artifact, case, folder, threads):
    command = [tool("dovetail-run"), "run", artifact, "--threads", threads, "--trace", folder / "trace.json"]
    for index, (name, value) in enumerate(case.inputs.items()):
        np.save(folder / f"input{index}.npy", value)
        command += ["--input", f"{name}=@{folder / f'input{index}.npy'}"]
    files = {name: folder / f"output{index}.npy" for index, name in enumerate(case.expected)}
    for name, file in files.items():
        command += ["--output", f"{name}={file}"]
    code, _, messages = call(command)
    assert code == 0, messages
    assert "ThreadSanitizer" not in messages, messages
    found = differences({name: np.load(file) for name, file in files.items()}, case.expected)
    assert not found, found


def _repeat(artifact, threads):
    """Many runs of one session: what a run leaves behind must not be in the way of the next."""
    command = [tool("dovetail-run"), "bench", artifact, "--threads", threads, "--iterations", 4, "--warmup", 1]
    code, _, messages = call(command)
    assert code == 0 and "ThreadSanitizer" not in messages, messages


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name, value in tool_environment(os.environ["DOVETAIL_BUILD_DIR"]).items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("mesh, style", [({"y": 4}, "uneven"), ({"y": 4}, "empty"), ({"y": 2, "x": 2}, "balanced")], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_model(name, mesh, style, tmp_path):
    artifact, case = _compile(name, mesh, style, True, tmp_path)
    for threads in THREADS:
        _run(artifact, case, tmp_path, threads)
    _repeat(artifact, THREADS[-1])


@pytest.mark.parametrize("name", NAMES)
def test_model_without_libraries(name, tmp_path):
    artifact, case = _compile(name, {"y": 4}, "uneven", False, tmp_path)
    _run(artifact, case, tmp_path, THREADS[-1])
    _repeat(artifact, THREADS[-1])


@pytest.mark.parametrize("libraries", [False, True], ids=["kernels", "libraries"])
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("unet") or name == "resnet50"])
def test_what_is_written_while_others_read(name, libraries, tmp_path):
    """Steps that are split write next to what others read meanwhile."""
    artifact, case = _compile(name, {"y": 4}, "uneven", libraries, tmp_path, ["--split-launches", "always"])
    for threads in THREADS[::2]:
        _run(artifact, case, tmp_path, threads)
    _repeat(artifact, THREADS[-1])
