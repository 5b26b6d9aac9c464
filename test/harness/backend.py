# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a model for a partition and runs it on all ranks."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import numpy as np

from harness.sanitizers import sanitizers, without_preload

ROOT = pathlib.Path(__file__).resolve().parents[2]

EXIT_CODES = {
    1: "outputs differ",
    2: "usage",
    3: "file",
    4: "invalid model",
    5: "unsupported",
    6: "does not fit",
    7: "incompatible or damaged artifact",
    8: "device or communication",
    9: "internal error",
}
USAGE = 2
FILE = 3
UNSUPPORTED = 5

#: The runtime remarks this of library calls whose bounds in the plan do not suffice.
EXCESS = "of memory more than planned"

#: What each byte of memory is before it is written to: NaN in floats, and no index.
MEMORY_FILL = 0xFF


def build_dir():
    """$DOVETAIL_BUILD_DIR, or build/release of the checkout."""
    return pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build" / "release")).resolve()


def tool(name):
    """The path of a built tool, or None if it is not built."""
    path = build_dir() / "bin" / name
    return path if path.exists() else None


class BackendError(Exception):
    """The compiler or the runtime gave up. `code` is its exit code, negative for a signal."""

    def __init__(self, phase, code, message):
        self.phase = phase
        self.code = code
        self.message = message.strip()
        meaning = f"killed by signal {-code}" if code < 0 else EXIT_CODES.get(code, "?")
        super().__init__(f"{phase} exits with {code} ({meaning}): {self.message}")


def call(command, timeout=300, cwd=None):
    """Runs a tool; returns (exit code, standard output, standard error)."""
    result = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        cwd=cwd,
        env=without_preload(),
    )
    assert EXCESS not in result.stderr, f"{command}: {result.stderr}"
    return result.returncode, result.stdout, result.stderr


class SubprocessBackend:
    """Runs the command-line tools, in a temporary folder of its own for each model."""

    def __init__(self, timeout=300):
        self.timeout = timeout

    def compile(self, model, artifact, partition, libraries=True, extra=()):
        """Compiles the file `model` to the file `artifact`; returns what the compiler said."""
        command = [tool("dovetail"), "compile", model, "-o", artifact, *partition.flags(), *extra]
        if not libraries:
            command.append("--no-libraries")
        code, _, messages = call(command, self.timeout)
        if code:
            raise BackendError("compile", code, messages)
        return messages

    def run(self, artifact, inputs, outputs, folder, threads=1):
        """Runs an artifact on all of its ranks; returns the named outputs."""
        command = [tool("dovetail-run"), "run", artifact, "--threads", threads, "--fill-memory", MEMORY_FILL]
        for index, (name, value) in enumerate(inputs.items()):
            file = folder / f"input{index}.npy"
            np.save(file, value)
            command += ["--input", f"{name}=@{file}"]
        files = {name: folder / f"output{i}.npy" for i, name in enumerate(outputs)}
        for name, file in files.items():
            command += ["--output", f"{name}={file}"]
        code, _, messages = call(command, self.timeout)
        if code:
            raise BackendError("run", code, messages)
        return {name: np.load(file) for name, file in files.items()}

    def compile_and_run(self, model, partition, inputs, outputs, libraries=True, extra=()):
        """`model` is a ModelProto or a path; raises BackendError."""
        with tempfile.TemporaryDirectory(prefix="dovetail-") as name:
            folder = pathlib.Path(name)
            path = model
            if not isinstance(model, (str, os.PathLike)):
                path = folder / "model.onnx"
                path.write_bytes(model.SerializeToString())
            artifact = folder / "model.dvt"
            self.compile(path, artifact, partition, libraries, extra)
            return self.run(artifact, inputs, outputs, folder)


def _soiled(value):
    """Other elements. Integers may be indices, each row one of several dimensions: they stay in range in another order."""
    if value.dtype.kind == "f":
        return np.full_like(value, np.nan)
    return np.flip(value, 0) if value.ndim else value


class InProcessBackend:
    """Compiles and runs through the Python package, in this process: fast, but a crash is the caller's.

    What is not written to is `MEMORY_FILL`, as by the tools. With `soils`, a first run leaves NaN in all memory that it writes: the next must not depend on what was there.
    """

    def __init__(self, soils=False, threads=1):
        from dovetail._library import open_library

        open_library("dovetail").dovetail_fill_memory(MEMORY_FILL)
        self.soils = soils
        self.threads = threads

    def compile(self, model, artifact, partition, libraries=True, extra=()):
        """Compiles a ModelProto or a path to the file `artifact`, perhaps for another machine; raises BackendError."""
        import dovetail
        from dovetail._compiler import compile_artifact

        flags = [*partition.flags(), *extra, *([] if libraries else ["--no-libraries"])]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pathlib.Path(artifact).write_bytes(compile_artifact(model, flags))
        except dovetail.DovetailError as error:
            raise BackendError("compile", error.code, str(error)) from error

    def compile_and_run(self, model, partition, inputs, outputs, libraries=True, extra=()):
        """`model` is a ModelProto or a path; raises BackendError."""
        import dovetail

        phase = "compile"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = dovetail.compile(model, libraries=libraries, options=[*partition.flags(), *extra])
            phase = "run"
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message=f".*{EXCESS}")
                if self.soils:
                    program.run({name: _soiled(value) for name, value in inputs.items()}, self.threads)
                results = program.run(inputs, self.threads)
        except dovetail.DovetailError as error:
            raise BackendError(phase, error.code, str(error)) from error
        return {name: results[name] for name in outputs}


def default_backend():
    """The command-line tools; None if they are not built."""
    return SubprocessBackend() if tool("dovetail") and tool("dovetail-run") else None


@functools.cache
def fastest_backend():
    """For callers in a process of their own: the Python package if its libraries are built, or else the tools."""
    libraries = build_dir() / "lib"
    if not all((libraries / f"lib{name}.so").exists() for name in ("dovetail", "dovetail-compiler")):
        return default_backend()
    if "address" in sanitizers(build_dir()) and "asan" not in os.environ.get("LD_PRELOAD", ""):
        return default_backend()
    os.environ["DOVETAIL_LIBRARY_DIR"] = str(libraries)
    sys.path.insert(0, str(ROOT / "python"))
    return InProcessBackend()


def replaying_backend():
    """`fastest_backend`, but what it returns is, where possible, that of a second run: devices replay recorded work."""
    backend = fastest_backend()
    return InProcessBackend(soils=True) if isinstance(backend, InProcessBackend) else backend


def keep(folder, model, inputs, expected, partition):
    """Writes all that is needed to look into a failure by hand."""
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    flags = []
    for kind, values in (("input", inputs), ("expected", expected)):
        for index, (name, value) in enumerate(values.items()):
            np.save(folder / f"{kind}{index}.npy", value)
            if kind == "input":
                flags.append(f"--input '{name}=@input{index}.npy'")
    partition_flags = " ".join(f"'{flag}'" for flag in partition.flags())
    (folder / "commands").write_text(
        f"dovetail compile model.onnx -o model.dvt {partition_flags}\n"
        f"dovetail run model.dvt {' '.join(flags)}\n"
    )
