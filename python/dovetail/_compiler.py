# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler, through the C ABI of include/dovetail/compiler.h."""

import ctypes
import functools
import os
import warnings

from ._errors import DovetailError
from ._library import open_library
from ._program import Program


@functools.cache
def _compiler():
    library = open_library("dovetail-compiler")
    options = [ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]
    library.dovetail_compile_file.argtypes = [ctypes.c_char_p, *options]
    library.dovetail_compile_bytes.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, *options]
    library.dovetail_compilation_artifact.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
    library.dovetail_compilation_artifact.restype = ctypes.c_void_p
    library.dovetail_compilation_messages.argtypes = [ctypes.c_void_p]
    library.dovetail_compilation_messages.restype = ctypes.c_char_p
    library.dovetail_compilation_summary.argtypes = [ctypes.c_void_p]
    library.dovetail_compilation_summary.restype = ctypes.c_char_p
    library.dovetail_compilation_free.argtypes = [ctypes.c_void_p]
    library.dovetail_compilation_free.restype = None
    return library


def _join(values):
    return values if isinstance(values, str) else ",".join(map(str, values))


def _items(name, value, example):
    """The items of an argument that is a mapping, if it is given at all."""
    if value and not hasattr(value, "items"):
        raise DovetailError(2, f"{name}={value!r}: give a dict such as {example}")
    return value.items() if value else ()


def _arguments(mesh, shard, sizes, feedback, dims, bounds, shapes, libraries, index_checks, source_names, **names):
    """The options as the command line spells them."""
    arguments = []
    if mesh:
        text = mesh
        if not isinstance(mesh, str):
            text = ",".join(f"{axis}={size}" for axis, size in _items("mesh", mesh, {"y": 4}))
        arguments += ["--mesh", text]
    for tensor, entries in _items("shard", shard, {"image": "_,_,y,_"}):
        arguments += ["--shard", f"{tensor}={_join(entries)}"]
    for target, extents in _items("sizes", sizes, {"image:2": [5, 7]}):
        name = target if isinstance(target, str) else ":".join(map(str, target))
        arguments += ["--sizes", f"{name}={_join(extents)}"]
    for output, fed in _items("feedback", feedback, {"next": "state"}):
        arguments += ["--feedback", f"{output}:{fed}"]
    for name, extent in _items("dims", dims, {"N": 1}):
        arguments += ["--dim", f"{name}={extent}"]
    for name, extent in _items("bounds", bounds, {"seq": 512}):
        arguments += ["--bound", f"{name if isinstance(name, str) else ':'.join(map(str, name))}={extent}"]
    for name, shape in _items("shapes", shapes, {"image": [1, 3, 16, 12]}):
        arguments += ["--shape", f"{name}={_join(shape)}"]
    if not libraries:
        arguments.append("--no-libraries")
    if not index_checks:
        arguments.append("--no-index-checks")
    if not source_names:
        arguments.append("--no-source-names")
    for option, value in names.items():
        if value is not None:
            arguments += [f"--{option}", str(value)]
    return arguments


def compile_artifact(model, arguments):
    """The bytes of the artifact that `compile` makes with these arguments of the command line, and its summary.

    This machine need not be able to run it. Raises `DovetailError`.
    """
    if not (isinstance(model, (str, os.PathLike, bytes, bytearray, memoryview)) or hasattr(model, "SerializeToString")):
        raise TypeError(
            f"model is {type(model).__name__}: give the path of an ONNX file, its bytes, or an onnx.ModelProto"
        )
    compiler = _compiler()
    texts = (ctypes.c_char_p * len(arguments))(*(text.encode() for text in arguments))
    result = ctypes.c_void_p()
    if isinstance(model, (str, os.PathLike)):
        path = os.fsencode(model)
        code = compiler.dovetail_compile_file(path, texts, len(texts), ctypes.byref(result))
    else:
        data = model.SerializeToString() if hasattr(model, "SerializeToString") else bytes(model)
        code = compiler.dovetail_compile_bytes(data, len(data), b"model", texts, len(texts), ctypes.byref(result))
    try:
        messages = compiler.dovetail_compilation_messages(result).decode(errors="replace").strip()
        if code:
            raise DovetailError(code, messages)
        if messages:
            warnings.warn(messages, stacklevel=3)
        size = ctypes.c_size_t()
        address = compiler.dovetail_compilation_artifact(result, ctypes.byref(size))
        summary = compiler.dovetail_compilation_summary(result).decode(errors="replace")
        return ctypes.string_at(address, size.value), summary
    finally:
        compiler.dovetail_compilation_free(result)


def compile(
    model,
    *,
    mesh=None,
    shard=None,
    sizes=None,
    feedback=None,
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
    """Compiles an ONNX model: a path, the bytes of a file, or an `onnx.ModelProto`. Returns a `Program`.

    `mesh` maps axes to sizes, in order; `shard` maps tensors to one entry for each dimension ("_", an axis, or axes
    joined by "+"); `sizes` maps (tensor, dimension), or "tensor:dimension", to the extents of its shards, "balanced" or
    "chunk"; `feedback` maps outputs to the inputs that they are in the next step (`Program.run`); `dims` and `shapes` fix extents that the model leaves open; `bounds` maps
    dimensions whose extents vary from run to run, by the model's name for them or as (input, dimension), to the largest
    that they have. `libraries`, a bool, says whether vendors'
    libraries are called where they can be. `index_checks`, a bool, says whether an index read from data (Gather,
    GatherElements) that is out of range is an error; else it is clamped. `source_names`, a bool, says whether the program
    keeps the names of modules and the lines of the code that the model was exported from, where the model has them.

    `target`, a str, is "cpu" (the default) or "cuda". `cpu`, a str, is the CPU to generate code for: "native" (the
    default), "x86-64-v2", "x86-64-v3", "x86-64-v4" or a name such as "znver4". `arch` are the architectures of target
    "cuda", as a str such as "sm_80,sm_90" or a sequence of such names; by default sm_80, sm_90 and sm_100. `math`, a
    str, is what library calls may round the factors of products of float32 to: "f32" (nothing, the default), or with
    target "cuda" "tf32" or "bf16". `options`, a sequence of str, are further arguments as `dovetail compile` takes
    them, but for those that name files or print.

    Raises `DovetailError`, with code 2 where an argument is wrong or does not go with the others, 3 where the model
    cannot be read, 4 where it is invalid, 5 where something in it is not supported, and 6 where it does not fit into
    memory. What the compiler warns of is a Python warning. `summary` of the program says what came of it.
    """
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise TypeError(f"options={options!r}: give a sequence of str, such as ['--objective', 'memory']")
    names = {"target": target, "cpu": cpu, "arch": None if arch is None else _join(arch), "math": math}
    arguments = _arguments(
        mesh, shard, sizes, feedback, dims, bounds, shapes, libraries, index_checks, source_names, **names
    )
    artifact, summary = compile_artifact(model, [*arguments, *options])
    program = Program(artifact)
    program.summary = summary
    return program
