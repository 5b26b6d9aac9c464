# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers the package of the profile ten-minutes: a folder, which travels as it is."""

import json
import pathlib
import tempfile

import numpy as np
from dovetail_models import with_element_type
from onnx import numpy_helper

from . import expected, timed_contents, timed_models
from .package import pack_executable
from .pack import PackError, Packer, UsageError, archived, copy_runtime, graph_of, heading, largest, progress

MOST_BYTES = 54 << 20
NAME = "gpu-check-ten-minutes"
OPERATORS = {"cuda": 40, "cpu": 12}
#: Of programs and libraries, in bytes; larger ones are packed.
MOST_AS_IT_IS = 1 << 20
#: The machines that can be had for ten minutes have GPUs of this generation.
ARCH = "sm_90"


class TimedPacker(Packer):
    """Adds what is measured to a package."""

    def __init__(self, *arguments):
        super().__init__(*arguments, packs=True)
        self.writer.add_blocks(timed_models.blocks())
        self.manifest["timed"] = []

    def add_timed(self, timed):
        """Adds programs and expected values of a model, and its nodes for peers.

        Raises PackError if these values would not tell errors.
        """
        model = timed.build()
        forms = {"f32": model}
        if any(way.dtype == "f16" for way in timed.ways):
            forms["f16"] = with_element_type(model, np.float16)
        paths, shared = {}, {}
        for dtype, form in forms.items():
            paths[dtype] = self.work / f"{timed.name}-{dtype}.onnx"
            paths[dtype].write_bytes(form.SerializeToString())
            tensors = [numpy_helper.to_array(tensor).tobytes() for tensor in form.graph.initializer]
            shared[dtype] = self.writer.add_tensors(tensors)
        programs = [self.pool.submit(self._compiled, timed, way, paths[way.dtype]) for way in timed.ways]
        entry = self._described(timed, model)
        for way, program in zip(timed.ways, programs):
            file = f"timed/{timed.name}-{way.name}.dvt"
            entry["programs"].append(
                {"variant": way.name, "math": way.math, "dtype": way.dtype, "libraries": way.libraries,
                 "ranks": way.ranks, "partition": str(timed.partition(way)), "tolerance": way.tolerance,
                 "file": self.writer.add_file(file, program.result(), shared[way.dtype])}
            )  # fmt: skip
        if timed.is_peer:
            graph, constants = graph_of(model)
            tensors = self.writer.add_tensors([value.tobytes() for value in constants.values()])
            name = f"timed/{timed.name}"
            entry["graph"] = self.writer.add_file(f"{name}.graph.json", json.dumps(graph).encode())
            entry["constants"] = self.writer.add_file(f"{name}.constants.npz", archived(constants), tensors)
        self.manifest["timed"].append(entry)
        for path in paths.values():
            path.unlink()

    def _compiled(self, timed, way, path):
        return self.compile(path, f"{timed.name}-{way.name}", timed.partition(way), way.flags())

    def _described(self, timed, model):
        """The entry of the manifest, without programs, once the expected values are in the package."""
        items = timed.items(model)
        found = timed.expect(model, items)
        if reason := expected.tells(found):
            raise PackError(f"{timed.name}: the expected output would not tell errors: {reason}")
        boxes = [
            {"output": name, "starts": [int(s) for s in starts], "sizes": list(values.shape)}
            for name, starts, values in found
        ]
        arrays = {f"{index}/values": values for index, (_, _, values) in enumerate(found)}
        shape = "×".join(map(str, items[0]["shape"]))
        return {
            "name": timed.name, "group": timed.group, "label": f"{timed.label}, {shape}", "inputs": items,
            "samples": self.writer.add_file(f"timed/{timed.name}.npz", archived(arrays)), "sample_boxes": boxes,
            "work": timed_models.work(model), "programs": [], "graph": None, "constants": None, **timed.more,
        }  # fmt: skip


def _chosen(arguments):
    """What is packed, of `--models` where that is given."""
    found = {timed.name: timed for timed in timed_contents.timed(arguments.target)}
    for name in arguments.models or ():
        if name not in found:
            raise UsageError(
                f"--models: there is no model '{name}' in the profile ten-minutes; there are {', '.join(found)}"
            )
    return [found[name] for name in (found if arguments.models is None else arguments.models)]


def _check_size(folder):
    """The bytes of a folder; PackError where they are too many."""
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if size > MOST_BYTES:
        raise PackError(
            f"the package would have {size / 2**20:.1f} MiB, more than {MOST_BYTES >> 20}; its largest parts: "
            f"{largest(folder, depth=3)}; leave something out with --models or --operators"
        )
    return size


def pack(arguments):
    """The command `pack --profile ten-minutes`; returns the exit code. PackError if there is no package."""
    output = pathlib.Path(arguments.output or NAME)
    if output.name.endswith(".tar.xz"):
        raise PackError(f"a package of the profile ten-minutes is a folder; name one instead of {output}")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise PackError(f"{output} is not an empty folder; name another one")
    archs = (arguments.arch or ARCH).split(",") if arguments.target == "cuda" else []
    chosen = _chosen(arguments)
    operators = OPERATORS[arguments.target] if arguments.operators is None else arguments.operators
    say = progress()
    output.parent.mkdir(parents=True, exist_ok=True)
    # Beside the output, which gets all of the package or nothing.
    with tempfile.TemporaryDirectory(prefix=f"{output.name}.", dir=output.parent) as name:
        work, folder = pathlib.Path(name), pathlib.Path(name) / NAME
        runtime = copy_runtime(folder, arguments.target)
        for file in (folder / name for name in runtime):
            if file.stat().st_size > MOST_AS_IT_IS:
                pack_executable(file)
        packer = TimedPacker(folder, work, arguments.target, archs, say)
        for timed in chosen:
            say(timed.name)
            packer.add_timed(timed)
        packer.add_operators(operators, timed_contents.operator_cases())
        say("done")
        packer.writer.close(packer.manifest | heading("ten-minutes", arguments.target, archs, runtime))
        size = _check_size(folder)
        folder.replace(output)
    print(f"{output}: {size / 2**20:.1f} MiB. Where there is a GPU: {output.name}/gpu-check run --profile ten-minutes")
    return 0
