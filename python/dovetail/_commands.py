# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the commands `plan`, `verify` and `inspect` say, as dicts."""

import json
import os
import pathlib
import tempfile

import numpy as np

from ._compiler import compile_arguments, run_command, shape_arguments
from ._errors import DovetailError
from ._program import Program, _to_array


def _run(command, model, arguments, base_dir=None):
    return json.loads(run_command(command, model, arguments, base_dir))


def plan(model, *, threads=1, base_dir=None, **arguments):
    """Predicts how a model runs: time, traffic and memory of each rank, as `dovetail plan --json` writes them.

    `model` and `arguments` are those of `compile`; `threads` are those of each rank on CPUs. Nothing is run, and files
    of external data may be missing. Where the memory of a rank does not suffice, that is a warning, and
    `["ranks"][i]["memory"]["fits"]` is False. Raises `DovetailError`.
    """
    options = ["--json", "-", "--threads", str(threads)]
    return _run("plan", model, [*options, *compile_arguments(**arguments)], base_dir)


def _write_arrays(folder, option, arrays):
    """Options that name files with these arrays, by name."""
    if not hasattr(arrays, "items"):
        name = "inputs" if option == "--input" else "expect"
        raise TypeError(f"{name} is {type(arrays).__name__}: give a dict of names and arrays")
    options = []
    for index, (name, array) in enumerate(arrays.items()):
        path = os.path.join(folder, f"{option[2:]}{index}.npy")
        what = "input" if option == "--input" else "expected output"
        np.save(path, _to_array(name, array, what=what), allow_pickle=False)
        options += [option, f"{name}=@{path}"]
    return options


def verify(
    model, inputs=None, expect=None, *, seed=0, threads=1, per_op=False, base_dir=None, **arguments
):
    """Compares the outputs of a partitioned model with those of one rank, as `dovetail verify --json` writes it.

    `model` and `arguments` are those of `compile`. With `expect`, a dict of outputs, these arrays are compared with,
    and `model` may be a `Program` or the path of an artifact (.dvt). `inputs` is a dict; inputs without an array are
    random, from `seed` on. `per_op` compares the results of all operations, too. Differences are a warning, and
    `["equal"]` is False. Raises `DovetailError`.
    """
    with tempfile.TemporaryDirectory() as folder:
        options = ["--json", "-", "--threads", str(threads), "--seed", str(seed)]
        options += _write_arrays(folder, "--input", inputs or {})
        options += _write_arrays(folder, "--expect", expect or {})
        if per_op:
            options.append("--per-op")
        if isinstance(model, Program):
            path = os.path.join(folder, "program.dvt")
            model.save(path)
            model = path
        return _run("verify", model, [*options, *compile_arguments(**arguments)], base_dir)


def inspect(model, *, dims=None, bounds=None, shapes=None, threads=1, base_dir=None):
    """What is in a model or a program, as `dovetail inspect --json` prints it.

    `model` is as for `compile`, a `Program`, or the path of an artifact (.dvt). Of a model whose extents are open,
    `["open"]` lists them; of any model, `["tensors"]` lists what `shard` takes besides inputs and outputs. Of programs,
    memory is that of ranks with `threads` threads each. Raises `DovetailError`.
    """
    options = ["--json", "--threads", str(threads), *shape_arguments(dims, bounds, shapes)]
    if not isinstance(model, Program):
        return _run("inspect", model, options, base_dir)
    if base_dir is not None:
        raise DovetailError(2, f"base_dir={base_dir!r}: a program has no external data")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.dvt"
        model.save(path)
        report = _run("inspect", path, options)
        # The file is gone.
        report["file"] = ""
        return report
