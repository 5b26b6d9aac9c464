# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler, through the C ABI of include/dovetail/compiler.h."""

import collections.abc
import ctypes
import functools
import os
import warnings

from ._errors import INTERRUPTED, DovetailError
from ._library import let_interrupt, open_library
from ._messages import speak_python, split_messages
from ._program import Program


@functools.cache
def _compiler():
    library = open_library("dovetail-compiler")
    texts = ctypes.POINTER(ctypes.c_char_p)
    options = [texts, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]
    library.dovetail_compile_file.argtypes = [ctypes.c_char_p, *options]
    library.dovetail_compile_bytes.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, *options]
    library.dovetail_command.argtypes = [ctypes.c_int, texts, ctypes.c_char_p, *options[1:]]
    library.dovetail_compilation_artifact.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
    library.dovetail_compilation_artifact.restype = ctypes.c_void_p
    for name in ("messages", "output", "summary"):
        text = getattr(library, f"dovetail_compilation_{name}")
        text.argtypes, text.restype = [ctypes.c_void_p], ctypes.c_char_p
    library.dovetail_compiler_set_interruptible.argtypes = [ctypes.c_int]
    library.dovetail_compiler_set_interruptible.restype = None
    library.dovetail_compilation_free.argtypes = [ctypes.c_void_p]
    library.dovetail_compilation_free.restype = None
    return library


def _join(values):
    return values if isinstance(values, str) else ",".join(map(str, values))


def _join_entry(entry):
    """An entry of `shard`: None, an axis, or several."""
    return "_" if entry is None else entry if isinstance(entry, str) else "+".join(map(str, entry))


def _join_entries(entries):
    return entries if isinstance(entries, str) else ",".join(map(_join_entry, entries))


def _listed(argument, name, value, example):
    """What an argument has for `name`, which is to be a list or a text."""
    if not isinstance(value, (str, collections.abc.Iterable)):
        raise DovetailError(2, f"{argument}={{{name!r}: {value!r}}}: give a list, such as {{{name!r}: {example!r}}}")
    return value


def _join_target(target):
    """A tensor's dimension, or a name that is text already."""
    return target if isinstance(target, str) else ":".join(map(str, target))


def _items(name, value, example):
    """The items of an argument that is a mapping, if it is given at all."""
    if value and not hasattr(value, "items"):
        raise DovetailError(2, f"{name}={value!r}: give a dict such as {example}")
    return value.items() if value else ()


def shape_arguments(dims=None, bounds=None, shapes=None):
    """The options that give extents, as the command line spells them."""
    arguments = []
    for name, extent in _items("dims", dims, {"N": 1}):
        arguments += ["--dim", f"{name}={extent}"]
    for target, extent in _items("bounds", bounds, {"seq": 512}):
        arguments += ["--bound", f"{_join_target(target)}={extent}"]
    for name, shape in _items("shapes", shapes, {"image": [1, 3, 16, 12]}):
        arguments += ["--shape", f"{name}={_join(_listed('shapes', name, shape, [1, 3, 16, 12]))}"]
    return arguments


def compile_arguments(
    *,
    mesh=None,
    shard=None,
    sizes=None,
    feedback=None,
    objective=None,
    cluster=None,
    memory=None,
    follow=None,
    dims=None,
    bounds=None,
    shapes=None,
    libraries=True,
    index_checks=True,
    source_names=True,
    target=None,
    cpu=None,
    arch=None,
    math=None,
    options=(),
):
    """The arguments of `compile` as the command line spells them."""
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise TypeError(f"options={options!r}: give a sequence of str, such as ['--search-seconds', '5']")
    arguments = []
    if mesh:
        text = mesh
        if not isinstance(mesh, str):
            text = ",".join(f"{axis}={size}" for axis, size in _items("mesh", mesh, {"y": 4}))
        arguments += ["--mesh", text]
    for tensor, entries in _items("shard", shard, {"image": "_,_,y,_"}):
        arguments += ["--shard", f"{tensor}={_join_entries(_listed('shard', tensor, entries, '_,_,y,_'))}"]
    for name, extents in _items("sizes", sizes, {"image:2": [5, 7]}):
        arguments += ["--sizes", f"{_join_target(name)}={_join(_listed('sizes', name, extents, [5, 7]))}"]
    for output, fed in _items("feedback", feedback, {"next": "state"}):
        arguments += ["--feedback", f"{output}:{fed}"]
    arguments += shape_arguments(dims, bounds, shapes)
    if not libraries:
        arguments.append("--no-libraries")
    if not index_checks:
        arguments.append("--no-index-checks")
    if not source_names:
        arguments.append("--no-source-names")
    values = {
        "objective": objective,
        "cluster": None if cluster is None else os.fspath(cluster),
        "memory": memory,
        "follow": follow,
        "target": target,
        "cpu": cpu,
        "arch": None if arch is None else _join(arch),
        "math": math,
    }
    for option, value in values.items():
        if value is not None:
            arguments += [f"--{option}", str(value)]
    return [*arguments, *options]


def _texts(arguments):
    return (ctypes.c_char_p * len(arguments))(*(os.fsencode(text) for text in arguments))


def _read_model(model, base_dir):
    """The path of a model, and its bytes if it is no file."""
    if not (isinstance(model, (str, os.PathLike, bytes, bytearray, memoryview)) or hasattr(model, "SerializeToString")):
        raise TypeError(
            f"model is {type(model).__name__}: give the path of an ONNX file, its bytes, or an onnx.ModelProto"
        )
    if isinstance(model, (str, os.PathLike)):
        if base_dir is not None:
            raise DovetailError(2, f"base_dir={base_dir!r}: external data is beside the file '{os.fspath(model)}'")
        return os.fspath(model), None
    data = model.SerializeToString() if hasattr(model, "SerializeToString") else bytes(model)
    return os.path.join(base_dir, "model") if base_dir is not None else "model", data


def _finish(code, result, speak, stacklevel):
    """The messages of a compilation but errors, which are raised; warnings are those of Python."""
    text = _compiler().dovetail_compilation_messages(result).decode(errors="replace")
    messages = [(kind, speak(message)) for kind, message in split_messages(text)]
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    errors = [message for kind, message in messages if kind in ("error", "note")]
    if code:
        raise DovetailError(code, "\n".join(errors))
    for kind, message in messages:
        if kind in ("warning", "note"):
            warnings.warn(message, stacklevel=stacklevel + 1)
    return [message for kind, message in messages if kind == "remark"]


def _compile(model, arguments, base_dir, speak, stacklevel):
    compiler = _compiler()
    texts = _texts(arguments)
    result = ctypes.c_void_p()
    path, data = _read_model(model, base_dir)
    options = texts, len(texts), ctypes.byref(result)
    let_interrupt(compiler.dovetail_compiler_set_interruptible)
    try:
        if data is None:
            code = compiler.dovetail_compile_file(os.fsencode(path), *options)
        else:
            code = compiler.dovetail_compile_bytes(data, len(data), os.fsencode(path), *options)
        remarks = _finish(code, result, speak, stacklevel + 1)
        size = ctypes.c_size_t()
        address = compiler.dovetail_compilation_artifact(result, ctypes.byref(size))
        summary = compiler.dovetail_compilation_summary(result).decode(errors="replace")
        return ctypes.string_at(address, size.value), remarks, summary.rstrip()
    finally:
        compiler.dovetail_compilation_free(result)


def compile_artifact(model, arguments):
    """The bytes of the artifact that `compile` makes with these arguments of the command line, whose words messages use.

    This machine need not be able to run it. Raises `DovetailError`.
    """
    return _compile(model, arguments, None, str, stacklevel=3)[0]


def run_command(command, model, arguments, base_dir=None):
    """The output of a command of the compiler for a model; errors are raised if there is none, and warned of else."""
    compiler = _compiler()
    path, data = _read_model(model, base_dir)
    texts = _texts([command, *arguments, "--", path])
    result = ctypes.c_void_p()
    size = 0 if data is None else len(data)
    let_interrupt(compiler.dovetail_compiler_set_interruptible)
    try:
        code = compiler.dovetail_command(len(texts), texts, data, size, ctypes.byref(result))
        output = compiler.dovetail_compilation_output(result).decode(errors="replace")
        if output and code:
            text = compiler.dovetail_compilation_messages(result).decode(errors="replace")
            for _, message in split_messages(text):
                warnings.warn(speak_python(message), stacklevel=4)
        else:
            _finish(code, result, speak_python, stacklevel=4)
        return output
    finally:
        compiler.dovetail_compilation_free(result)


def compile(
    model,
    *,
    mesh=None,
    shard=None,
    sizes=None,
    feedback=None,
    objective=None,
    cluster=None,
    memory=None,
    follow=None,
    dims=None,
    bounds=None,
    shapes=None,
    libraries=True,
    index_checks=True,
    source_names=True,
    target=None,
    cpu=None,
    arch=None,
    math=None,
    options=(),
    remarks=False,
    base_dir=None,
):
    """Compiles an ONNX model: a path, the bytes of a file, or an `onnx.ModelProto`. Returns a `Program`.

    `mesh` maps axes to sizes, in order, or is "auto=8", for which the compiler chooses axes. `shard` maps tensors to
    one entry for each dimension: None or "_", an axis, or axes as a tuple or joined by "+". `sizes` maps (tensor,
    dimension), or "tensor:dimension", to the extents of its shards, "balanced" or "chunk"; dimensions may be negative.
    `feedback` maps outputs to the inputs that they are in the next step (`Program.run`).

    `objective` is "time" (the default), "bytes" or "memory": what is to be least of all ways to split the rest.
    `cluster` describes devices and links: a file, or the name of one that is built in. `memory` is what each rank may
    take, in bytes or as "80GiB". `follow` is the share of all time, in percent, that leaving `shard` and `sizes` must
    save (10 by default; 100 follows them always).

    `dims` and `shapes` fix extents that the model leaves open. `bounds` maps dimensions whose extents vary from run to
    run, by the model's name for them or as (input, dimension), to the largest that they have.

    `libraries`, a bool, says whether vendors' libraries are called where they can be. `index_checks`, a bool, says
    whether an index read from data (Gather, GatherElements) that is out of range is an error; else it is clamped.
    `source_names`, a bool, says whether the program keeps the names of modules and the lines of the code that the model
    was exported from.

    `target`, a str, is "cpu" (the default) or "cuda". `cpu`, a str, is the CPU to generate code for: "native" (the
    default), "x86-64-v2", "x86-64-v3", "x86-64-v4" or a name such as "znver4". `arch` are the architectures of target
    "cuda", as a str such as "sm_80,sm_90" or a sequence of such names; by default sm_80, sm_90 and sm_100. `math`, a
    str, is what library calls may round the factors of products of float32 to: "f32" (nothing, the default), or with
    target "cuda" "tf32" or "bf16". `options`, a sequence of str, are further arguments as `dovetail compile` takes
    them, but for those that name files or print.

    With `remarks`, `Program.remarks` lists what the compiler decided. `base_dir` is the folder of external data of a
    model that is not a path.

    Raises `DovetailError`, with code 2 where an argument is wrong or does not go with the others, 3 where the model
    cannot be read, 4 where it is invalid, 5 where something in it is not supported, and 6 where it does not fit into
    memory. What the compiler warns of is a Python warning. `summary` of the program says what came of it.
    """
    arguments = compile_arguments(
        mesh=mesh,
        shard=shard,
        sizes=sizes,
        feedback=feedback,
        objective=objective,
        cluster=cluster,
        memory=memory,
        follow=follow,
        dims=dims,
        bounds=bounds,
        shapes=shapes,
        libraries=libraries,
        index_checks=index_checks,
        source_names=source_names,
        target=target,
        cpu=cpu,
        arch=arch,
        math=math,
        options=options,
    )
    if remarks:
        arguments.append("--remarks")
    artifact, said, summary = _compile(model, arguments, base_dir, speak_python, stacklevel=2)
    program = Program(artifact)
    program.remarks, program.summary = tuple(said), summary
    return program
