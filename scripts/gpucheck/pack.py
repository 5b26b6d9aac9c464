# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers a package: programs, inputs, what ONNX Runtime expects, and all that they need to run."""

import concurrent.futures
import io
import json
import lzma
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy as np
import onnx
from dovetail_models import onnxruntime_session
from harness.backend import BackendError, SubprocessBackend, UNSUPPORTED, build_dir, call, tool
from onnx import helper, numpy_helper

from . import contents
from .package import PackageWriter

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 60 << 20
NAME = "gpu-check"
OPERATORS = 300
ARCHS = "sm_80,sm_90,sm_100"

#: Every Linux has these, and a program must not bring its own.
_OF_THE_SYSTEM = re.compile(
    r"(ld-linux-x86-64|libc|libm|libmvec|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so\.\d+$"
)


class PackError(Exception):
    """Why there is no package."""

    code = 1


class UsageError(PackError):
    """The command names something that is not there."""

    code = 2


def _libraries(binary):
    """The shared libraries that a file needs, but for the system's."""
    listing = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    missing = re.findall(r"^\s*(\S+) => not found", listing, re.MULTILINE)
    if missing:
        raise PackError(f"{binary} needs {', '.join(missing)}, which this machine lacks; run scripts/setup")
    found = re.findall(r"^\s*(\S+) => (/\S+)", listing, re.MULTILINE)
    return {name: path for name, path in found if not _OF_THE_SYSTEM.match(name)}


def copy_runtime(folder, target):
    """The runtime, its libraries, and the scripts; returns the names of the files of the runtime."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    files = [tool("dovetail-run"), build_dir() / "lib/libdovetail.so"]
    if target == "cuda":
        files += [build_dir() / "lib/libdovetail_cuda.so", build_dir() / "lib/libdovetail_transport_nccl.so"]
    for file in files:
        if file is None or not file.exists():
            raise PackError(f"{file or 'dovetail-run'} is not built in {build_dir()}: run `make build`")
        shutil.copy(file, folder / ("bin" if file.parent.name == "bin" else "lib"))
        for name, path in _libraries(file).items():
            if not (folder / "lib" / name).exists():
                shutil.copy(path, folder / "lib" / name)
    runtime = sorted(str(file.relative_to(folder)) for part in ("bin", "lib") for file in (folder / part).iterdir())
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python/dovetail", folder / "python/dovetail", ignore=ignored)
    shutil.copytree(ROOT / "scripts/gpucheck", folder / "gpucheck", ignore=ignored)
    (folder / "harness").mkdir()
    for file in ("__init__.py", "compare.py"):
        shutil.copy(ROOT / "test/harness" / file, folder / "harness")
    shutil.copy(ROOT / "scripts" / NAME, folder / NAME)
    shutil.copy(ROOT / "LICENSE", folder)
    return runtime


def archived(arrays):
    """The bytes of an npz file."""
    data = io.BytesIO()
    np.savez(data, **arrays)
    return data.getvalue()


def graph_of(model):
    """(the nodes as JSON, constants by name): what `torch_model` reads without the onnx package."""
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Constant":
            (value,) = attributes.values()
            is_tensor = isinstance(value, onnx.TensorProto)
            constants[node.output[0]] = numpy_helper.to_array(value) if is_tensor else np.asarray(value)
            continue
        text = lambda v: v.decode() if isinstance(v, bytes) else list(v) if not isinstance(v, (int, float)) else v
        # What has graphs is not run by PyTorch.
        attributes = {name: text(v) for name, v in attributes.items() if not isinstance(v, onnx.GraphProto)}
        nodes.append(
            {"name": node.name, "op": node.op_type, "inputs": list(node.input), "outputs": list(node.output),
             "attributes": attributes}
        )  # fmt: skip
    outputs = [o.name for o in model.graph.output]
    return {"nodes": nodes, "outputs": outputs, "opset": model.opset_import[0].version}, constants


class Packer:
    """Adds models and operators to a package."""

    def __init__(self, folder, work, target, archs, say, packs=False):
        self.writer = PackageWriter(folder, packs)
        self.work, self.say = work, say
        self.flags = ["--target", target] + (["--arch", ",".join(archs)] if archs else [])
        self.backend = SubprocessBackend()
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1)
        self.target = target
        self.manifest = {"models": [], "operators": [], "exchanges": []}

    def compile(self, model, name, partition, flags):
        """The bytes of a program."""
        artifact = self.work / f"{name.replace('/', '-')}.dvt"
        self.backend.compile(model, artifact, partition, extra=[*flags, *self.flags])
        data = artifact.read_bytes()
        artifact.unlink()
        return data

    def add_model(self, name, model):
        path = self.work / "model.onnx"
        data = model.proto.SerializeToString()
        path.write_bytes(data)
        session = onnxruntime_session(data)
        names = [o.name for o in session.get_outputs()]
        expected = dict(zip(names, session.run(names, model.inputs)))
        for output, value in expected.items():
            if not np.isfinite(value).all() or value.std() <= 1e-2 * np.abs(value).max():
                raise PackError(f"{name}: the expected output {output} would not tell errors")
        arrays = {f"input/{n}": v for n, v in model.inputs.items()} | {f"output/{n}": v for n, v in expected.items()}
        graph, constants = graph_of(model.proto)
        shared = self.writer.add_tensors([value.tobytes() for value in constants.values()])
        entry = {"name": name, "label": model.label, "timed": model.timed, "programs": []}
        entry["arrays"] = self.writer.add_file(f"models/{name}.npz", archived(arrays))
        if model.timed:
            entry["onnx"] = self.writer.add_file(f"models/{name}.onnx", data, shared)
            entry["graph"] = self.writer.add_file(f"models/{name}.graph.json", json.dumps(graph).encode())
            entry["constants"] = self.writer.add_file(f"models/{name}.constants.npz", archived(constants), shared)
        chosen = contents.variants(model, self.target)

        def compiled(variant):
            flags = [*model.flags, *variant.flags()]
            return self.compile(path, f"{name}-{variant.name}", variant.partition(model), flags)

        for variant, program in zip(chosen, self.pool.map(compiled, chosen)):
            file = self.writer.add_file(f"programs/{name}-{variant.name}.dvt", program, shared)
            entry["programs"].append(
                {"variant": variant.name, "file": file, "ranks": variant.ranks, "libraries": variant.libraries,
                 "math": variant.math, "style": variant.style, "tolerance": variant.tolerance,
                 "partition": str(variant.partition(model))}
            )  # fmt: skip
        self.manifest["models"].append(entry)

    def add_operators(self, count, cases=None):
        """`count` cases, each compiled for its partition; the next of `cases`, if they are given."""

        def compiled(case):
            name = f"{case.name.replace(' ', '-')}-{case.libraries}"
            path = self.work / f"{name}.onnx"
            path.write_bytes(case.model.SerializeToString())
            try:
                flags = [] if case.libraries else ["--no-libraries"]
                return case, self.compile(path, name, case.partition, flags)
            except BackendError as error:
                if error.code != UNSUPPORTED:
                    raise
                return case, None

        made, cases = [], cases or contents.operator_cases()
        while len(made) < count:
            some = [next(cases) for _ in range(min(16, count - len(made)))]
            made += [m for m in self.pool.map(compiled, some) if m[1] is not None]
            self.say(f"operators: {len(made)} of {count}")
        for number, (case, program) in enumerate(made):
            arrays = {f"input/{n}": v for n, v in case.inputs.items()}
            arrays |= {f"output/{n}": v for n, v in case.expected().items()}
            self.manifest["operators"].append(
                {"name": case.name, "case": str(case), "libraries": case.libraries, "tolerance": case.tolerance,
                 "floor": contents.OPERATOR_FLOOR, "ranks": case.partition.ranks,
                 "arrays": self.writer.add_file(f"operators/{number}.npz", archived(arrays)),
                 "program": self.writer.add_file(f"operators/{number}.dvt", program)}
            )  # fmt: skip

    def add_exchanges(self):
        for name, model, flags in contents.exchanges(self.target):
            path = self.work / "exchange.onnx"
            path.write_bytes(model.SerializeToString())
            for ranks in (2, 4):
                program = self.compile(path, f"{name}-{ranks}", contents.Partition({"y": ranks}), flags)
                file = self.writer.add_file(f"exchanges/{name}-{ranks}.dvt", program)
                self.manifest["exchanges"].append({"name": name, "ranks": ranks, "file": file})


def _version():
    """The commit, where there is one."""
    code, commit, _ = call(["git", "-C", ROOT, "describe", "--always", "--dirty"])
    _, text, _ = call([tool("dovetail-run"), "--version"])
    version = text.splitlines()[0]
    return f"{version} {commit.strip()}" if code == 0 else version


def largest(folder, depth=2):
    """The largest parts of the package before it is packed, as a text. A path of `depth` names is a part."""
    sizes = {}
    for file in folder.rglob("*"):
        if file.is_file():
            part = "/".join(file.relative_to(folder).parts[:depth])
            sizes[part] = sizes.get(part, 0) + file.stat().st_size
    parts = sorted(sizes.items(), key=lambda item: -item[1])[:6]
    return ", ".join(f"{part} {size / 2**20:.1f} MiB" for part, size in parts)


def compress(folder, file):
    """Writes `folder` as a .tar.xz; PackError when that is too large."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 2, "dict_size": 64 << 20}]
    partial = file.with_name(file.name + ".part")
    try:
        with lzma.open(partial, "wb", filters=filters) as stream, tarfile.open(fileobj=stream, mode="w|") as archive:
            archive.add(folder, NAME)
        size = partial.stat().st_size
        if size > MOST_BYTES:
            raise PackError(
                f"the package would have {size / 2**20:.1f} MiB, more than {MOST_BYTES >> 20}; "
                f"its largest parts, unpacked: {largest(folder)}; "
                "leave something out with --models, --operators or --arch"
            )
        partial.replace(file)
        return size
    finally:
        partial.unlink(missing_ok=True)


def progress():
    """A function that says what is being done, and since when."""
    start = time.monotonic()
    return lambda text: print(f"[{time.monotonic() - start:4.0f} s] {text}", file=sys.stderr, flush=True)


def heading(profile, target, archs, runtime):
    """What the manifest says of the package as a whole."""
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"profile": profile, "target": target, "archs": archs, "dovetail": _version(),
            "libc": platform.libc_ver()[1], "runtime": runtime, "packed": made}  # fmt: skip


def pack(arguments):
    """The command `pack`; returns the exit code."""
    if arguments.profile == "ten-minutes":
        from . import timed_pack

        return timed_pack.pack(arguments)
    output = pathlib.Path(arguments.output or f"{NAME}.tar.xz")
    makers = contents.model_makers()
    for name in arguments.models or ():
        if name not in makers:
            raise UsageError(f"--models: there is no model '{name}'; there are {', '.join(makers)}")
    chosen = arguments.models if arguments.models is not None else list(makers)
    contents.require_fetched(chosen)
    packed = output.name.endswith(".tar.xz")
    if not packed and output.exists() and any(output.iterdir()):
        raise PackError(f"{output} is not empty; name another folder, or a file that ends in .tar.xz")

    say = progress()
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as name:
        work = pathlib.Path(name)
        folder = work / NAME if packed else output
        runtime = copy_runtime(folder, arguments.target)
        archs = (arguments.arch or ARCHS).split(",") if arguments.target == "cuda" else []
        packer = Packer(folder, work, arguments.target, archs, say)
        for model in chosen:
            say(model)
            packer.add_model(model, makers[model]())
        packer.add_operators(OPERATORS if arguments.operators is None else arguments.operators)
        packer.add_exchanges()
        packer.writer.close(packer.manifest | heading("default", arguments.target, archs, runtime))
        if not packed:
            print(f"{output}: run {output / NAME} run")
            return 0
        say("packing")
        size = compress(folder, output)
    print(f"{output}: {size / 2**20:.1f} MiB. Where there is a GPU: tar xf {output.name} && {NAME}/{NAME} run")
    return 0
