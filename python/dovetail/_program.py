# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs and how they run, through the C ABI of runtime/include/dovetail/dovetail.h."""

import collections.abc
import contextlib
import ctypes
import dataclasses
import difflib
import functools
import itertools
import operator
import os
import pathlib
import threading
import warnings
import weakref

import numpy as np

from ._errors import INTERRUPTED, DovetailError
from ._library import let_interrupt, open_library


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Sized(ctypes.Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class _Port(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("type", _DataType),
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("type_name", ctypes.c_char_p),
    ]


class _RunnerOptions(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("threads", ctypes.c_int32),
        ("timeout_seconds", ctypes.c_double),
        ("autotune", ctypes.c_int32),
        ("communicator", ctypes.c_char_p),
        ("pin", ctypes.c_int32),
        ("mpi_communicator", ctypes.POINTER(ctypes.c_int32)),
    ]


_CPU = 1
#: What the elements of types that NumPy lacks are given as.
_BITS = {"bfloat16": np.uint16}
_BITS |= dict.fromkeys(
    ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"], np.uint8
)
_BITS |= dict.fromkeys(["int4", "uint4", "int2", "uint2"], np.uint8)
# As the command line.
_MOST_THREADS = 4096


@functools.cache
def _runtime():
    library = open_library("dovetail")
    handle, out, size = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t
    tensors = ctypes.POINTER(_Tensor)
    library.dovetail_last_error.restype = ctypes.c_char_p
    library.dovetail_set_interruptible.argtypes = [ctypes.c_int32]
    library.dovetail_set_interruptible.restype = None
    library.dovetail_program_load.argtypes = [ctypes.c_char_p, out]
    library.dovetail_program_open.argtypes = [ctypes.c_char_p, out]
    library.dovetail_program_load_bytes.argtypes = [ctypes.c_char_p, size, out]
    library.dovetail_program_bytes.argtypes = [handle, out, ctypes.POINTER(size)]
    library.dovetail_program_free.argtypes = [handle]
    library.dovetail_program_free.restype = None
    library.dovetail_program_num_ranks.argtypes = [handle]
    for name in ("model", "target"):
        text = getattr(library, f"dovetail_program_{name}")
        text.argtypes, text.restype = [handle], ctypes.c_char_p
    library.dovetail_program_num_axes.argtypes = [handle]
    library.dovetail_program_num_axes.restype = size
    axis = [ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_int32)]
    library.dovetail_program_axis.argtypes = [handle, size, *axis]
    for direction in ("input", "output"):
        count = getattr(library, f"dovetail_program_num_{direction}s")
        count.argtypes = [handle]
        count.restype = size
        getattr(library, f"dovetail_program_{direction}").argtypes = [handle, size, ctypes.POINTER(_Port)]
        numbers = ctypes.POINTER(ctypes.c_int64)
        part = getattr(library, f"dovetail_program_{direction}_part")
        part.argtypes = [handle, size, ctypes.c_int32, numbers, numbers]
    library.dovetail_runner_create.argtypes = [handle, ctypes.POINTER(_RunnerOptions), out]
    library.dovetail_runner_free.argtypes = [handle]
    library.dovetail_runner_free.restype = None
    library.dovetail_runner_remark.argtypes, library.dovetail_runner_remark.restype = [handle], ctypes.c_char_p
    library.dovetail_runner_run_local.argtypes = [handle, tensors, size, tensors, size]
    library.dovetail_runner_ranks.argtypes = [handle, *[ctypes.POINTER(ctypes.c_int32)] * 2]
    library.dovetail_runner_run_steps.argtypes = [handle, tensors, size, tensors, size, ctypes.c_int64]
    library.dovetail_program_input_length.argtypes = [handle, size, ctypes.c_int32, ctypes.POINTER(ctypes.c_char_p)]
    library.dovetail_program_feedback.argtypes = [handle, size, ctypes.POINTER(ctypes.c_int64)]
    library.dovetail_runner_output_shape.argtypes = [handle, size, ctypes.POINTER(ctypes.c_int64)]
    return library


def _warn(runner, stacklevel):
    """Makes the runtime's remark about a runner a warning, at the caller that `stacklevel` means to Python."""
    if remark := _runtime().dovetail_runner_remark(runner):
        warnings.warn(remark.decode(errors="replace"), stacklevel=stacklevel + 1)


def _check_not_forked(process):
    """Raises DovetailError in a process that was forked from `process`, which has threads, and perhaps holds locks."""
    if process != os.getpid():
        raise DovetailError(
            2,
            f"this process was forked from process {process}, which ran the program, and has no threads of its ranks; "
            "start workers by 'spawn' or 'forkserver', or load the program after the fork",
        )


def _check(code):
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code:
        raise DovetailError(code, _runtime().dovetail_last_error().decode(errors="replace"))


@dataclasses.dataclass(frozen=True)
class Port:
    """An input or output of a program. `dtype` is NumPy's name, or where NumPy has no such type that of `ml_dtypes`.

    The elements are then given as bits: of "bfloat16" as uint16, of floats and integers of at most 8 bits, such as
    "float8_e4m3fn" and "int4", as uint8, a byte for each element.

    Of an input of which lengths vary from run to run, `lengths` has for each dimension the name of its length or None,
    and `shape` the largest extents; else it is empty.
    """

    name: str
    dtype: str
    shape: tuple
    lengths: tuple = ()

    def __str__(self):
        names = self.lengths or (None,) * len(self.shape)
        extents = [f"{name}<={extent}" if name else str(extent) for name, extent in zip(names, self.shape)]
        return f"{self.name}: {self.dtype}[{', '.join(extents)}]"

    def fits(self, shape):
        """Whether arrays of this shape may be given."""
        names = self.lengths or (None,) * len(self.shape)
        return len(shape) == len(self.shape) and all(
            given == extent or (name is not None and given < extent)
            for given, extent, name in zip(shape, self.shape, names)
        )

    @property
    def numpy_dtype(self):
        return np.dtype(_BITS.get(self.dtype, self.dtype))


def _bits(array, port):
    """An array of the port's type of ml_dtypes, which ONNX's own package uses, as the bits that `Port` says."""
    return array.view(_BITS[port.dtype]) if port.dtype in _BITS and array.dtype.name == port.dtype else array


def _to_array(name, value, port=None, what="input"):
    """`value` as an array. Raises DovetailError if NumPy cannot read it."""
    try:
        return np.asarray(value)
    except Exception as error:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        dtype = str(getattr(value, "dtype", ""))
        if getattr(value, "requires_grad", False):
            advice = "give it without its gradient, as x.detach()"
        elif str(getattr(getattr(value, "device", None), "type", "cpu")) != "cpu":
            advice = "give it in the memory of the host, as x.cpu()"
        elif "bfloat16" in dtype and port is not None and port.dtype == "bfloat16":
            advice = "give its bits, as x.view(torch.uint16).numpy()"
        elif "bfloat16" in dtype:
            advice = "NumPy has no bfloat16; give another type, as x.float()"
        else:
            advice = "give a NumPy array"
        raise DovetailError(2, f"{what} '{name}' is a {kind} that NumPy cannot read ({error}): {advice}") from error


def _addressable(array):
    """`array`, or a copy where its elements are not aligned or its strides no multiples of their size."""
    whole = all(stride % array.itemsize == 0 for stride in array.strides)
    return array if whole and array.flags.aligned else array.copy(order="C")


def _integer(name, value):
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: give an int") from None


def _number_of_threads(threads):
    threads = _integer("threads", threads)
    if not 1 <= threads <= _MOST_THREADS:
        raise DovetailError(2, f"threads={threads}: give a number from 1 to {_MOST_THREADS}")
    return threads


class Program:
    """A compiled program. Threads may share it: runs happen one after another.

    `model` is the name of the graph that it was compiled from, `target` what it was compiled for, and `mesh` maps axes
    to sizes, in order; `num_ranks` is their product. `inputs` and `outputs` are lists of `Port`. `feedback` maps names
    of inputs to those of the outputs that they are in the next step. `remarks` are those that `compile` was asked for.
    `summary` is a str for people: where the program was compiled in this process, its cuts, exchanges, memory and
    predicted time, a line each. Else it is empty.
    """

    def __init__(self, artifact):
        """Loads and verifies an artifact, given as bytes. Raises `DovetailError`."""
        if not isinstance(artifact, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"an artifact is given as bytes, not as {type(artifact).__name__}; "
                "dovetail.Program.load(path) loads one from a file"
            )
        artifact = bytes(artifact)
        handle = ctypes.c_void_p()
        _check(_runtime().dovetail_program_load_bytes(artifact, len(artifact), ctypes.byref(handle)))
        self._own(handle)

    def _own(self, handle):
        """Makes this the program of `handle`."""
        runtime = _runtime()
        self._handle = handle
        self._finalizer = weakref.finalize(self, runtime.dovetail_program_free, handle)
        self._runners = {}
        self._lock = threading.Lock()
        self._process = None
        self._types = {}
        self.remarks = ()
        self.model = runtime.dovetail_program_model(handle).decode(errors="replace")
        self.target = runtime.dovetail_program_target(handle).decode(errors="replace")
        self.mesh = dict(self._axis(index) for index in range(runtime.dovetail_program_num_axes(handle)))
        self.num_ranks = runtime.dovetail_program_num_ranks(handle)
        self.inputs = self._ports("input")
        self.outputs = self._ports("output")
        self.feedback = self._feedback()
        self.summary = ""

    def __copy__(self):
        # A program does not change.
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        # With all of its weights: a program that is loaded from a file in each process shares the memory of its pages.
        return Program, (self._bytes(),)

    def _bytes(self):
        """The artifact."""
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        _check(_runtime().dovetail_program_bytes(self._handle, ctypes.byref(address), ctypes.byref(size)))
        return ctypes.string_at(address, size.value)

    def __repr__(self):
        axes = ",".join(f"{name}={size}" for name, size in self.mesh.items())
        mesh = f"mesh {axes}" if self.num_ranks > 1 else "1 rank"
        lines = [f"Program of '{self.model}' for {self.target} on {mesh}"]
        for kind, ports in (("input", self.inputs), ("output", self.outputs)):
            lines += [f"  {kind} {port}" for port in ports]
        return "\n".join(lines)

    @staticmethod
    def load(path, check_weights=True):
        """Loads and verifies the artifact in the file `path`, which is mapped: it may be replaced, but not changed.

        Without `check_weights`, runners verify weights, each of them those that its ranks read, and no others are read:
        for processes that are one rank of many.
        """
        handle = ctypes.c_void_p()
        runtime = _runtime()
        load = runtime.dovetail_program_load if check_weights else runtime.dovetail_program_open
        _check(load(os.fsencode(path), ctypes.byref(handle)))
        program = Program.__new__(Program)
        program._own(handle)
        return program

    def save(self, path):
        """Writes the artifact to a file, which is there complete or not at all. Raises `DovetailError`."""
        path = pathlib.Path(path)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        _check(_runtime().dovetail_program_bytes(self._handle, ctypes.byref(address), ctypes.byref(size)))
        try:
            temporary.write_bytes((ctypes.c_char * size.value).from_address(address.value))
            os.replace(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise DovetailError(3, f"cannot write '{path}': {error.strerror}") from error

    def run(self, inputs, threads=1, autotune=False, pin=False, steps=1):
        """Runs all ranks once, as threads of this process; `threads` are divided among them.

        `inputs` maps the names of all inputs to arrays of their types and shapes; types that NumPy lacks may be those
        of `ml_dtypes`. Dimensions of one length (`Port.lengths`) agree. Returns the outputs by name. Where an extent depends on data, the port has its bound, and the
        array what there is. The ranks are kept for later runs. `autotune` measures the algorithms of a GPU's
        libraries when the ranks start. `pin` lets each thread of the ranks stay on a processor of its own, of those
        that the calling thread may run on; the calling thread is left alone.

        With several `steps` they run so often, from the second time on with the last outputs for the inputs that these
        are fed back to (`feedback`), which stay where they are on each rank; the outputs are those of the last step.
        Inputs whose lengths vary become as long as these outputs were, up to their bounds.
        """
        steps = _integer("steps", steps)
        if not 1 <= steps < 1 << 63:
            raise DovetailError(2, f"steps={steps}: give a number from 1")
        threads = _number_of_threads(threads)
        self._check_names(inputs)
        arrays = [self._array(port, inputs[port.name]) for port in self.inputs]
        results = [np.empty(port.shape, port.numpy_dtype) for port in self.outputs]
        keep = []
        runtime = _runtime()
        given, made = self._tensors("input", arrays, keep), self._tensors("output", results, keep)
        key = threads, bool(autotune), bool(pin)
        self._process = self._process or os.getpid()
        _check_not_forked(self._process)
        # A runner that failed is freed, which must not happen while another thread uses it.
        with self._lock:
            code = None
            try:
                let_interrupt(runtime.dovetail_set_interruptible)
                runner = self._runner(*key)
                code = runtime.dovetail_runner_run_steps(runner, given, len(arrays), made, len(results), steps)
                _check(code)
            finally:
                # Ctrl-C may come before the code is there.
                if code not in (0, 2) and key in self._runners:
                    self._runners.pop(key)[1]()
            results = [self._cut(runner, index, array) for index, array in enumerate(results)]
        return {port.name: array for port, array in zip(self.outputs, results)}

    def part(self, name, rank):
        """What `rank` holds of the input or output `name`: a slice for each dimension, by which arrays are indexed.

        A rank may hold nothing, and several ranks the same elements.
        """
        for direction, ports in (("input", self.inputs), ("output", self.outputs)):
            for index, port in enumerate(ports):
                if port.name == name:
                    return self._part(direction, index, rank)
        known = ", ".join(f"'{port.name}'" for port in self.inputs + self.outputs)
        raise DovetailError(2, f"there is no input or output '{name}'; the program has {known}")

    def _part(self, direction, index, rank):
        ndim = len((self.inputs if direction == "input" else self.outputs)[index].shape)
        offsets, extents = (ctypes.c_int64 * ndim)(), (ctypes.c_int64 * ndim)()
        part = getattr(_runtime(), f"dovetail_program_{direction}_part")
        _check(part(self._handle, index, _integer("rank", rank), offsets, extents))
        return tuple(slice(offset, offset + extent) for offset, extent in zip(offsets, extents))

    def _check_names(self, inputs):
        if not isinstance(inputs, collections.abc.Mapping):
            name = self.inputs[0].name if self.inputs else "x"
            raise TypeError(
                f"inputs is {type(inputs).__name__}: "
                f"give a dict of the names of all inputs, such as {{{name!r}: array}}"
            )
        unknown = set(inputs) - {port.name for port in self.inputs}
        missing = [port.name for port in self.inputs if port.name not in inputs]
        if unknown or missing:
            known = ", ".join(f"'{port.name}'" for port in self.inputs)
            what = f"there is no input '{min(unknown)}'" if unknown else f"input '{missing[0]}' is not given"
            near = (
                difflib.get_close_matches(str(min(unknown)), [port.name for port in self.inputs], 1) if unknown else ()
            )
            meant = f"; did you mean '{near[0]}'?" if near else ""
            raise DovetailError(2, f"{what}; the program's inputs are {known}{meant}")

    @staticmethod
    def _array(port, value, part=None, holder="the program takes"):
        """What is given for an input, as `holder` takes it: with the extents of a port's shape, or those of `part`."""
        array = _addressable(_bits(_to_array(port.name, value, port), port))
        wanted = port if part is None else Port(port.name, port.dtype, part)
        if array.dtype != port.numpy_dtype or not wanted.fits(array.shape):
            _, _, description = str(wanted).rpartition(": ")
            raise DovetailError(
                2, f"input '{port.name}' is {array.dtype}{list(array.shape)}, but {holder} {description}"
            )
        return array

    @staticmethod
    def _cut(runner, index, array):
        """The output as large as it was in the last run of `runner`."""
        shape = (ctypes.c_int64 * array.ndim)()
        _check(_runtime().dovetail_runner_output_shape(runner, index, shape))
        return array if tuple(shape) == array.shape else array[tuple(map(slice, shape))].copy()

    def _axis(self, index):
        name, size = ctypes.c_char_p(), ctypes.c_int32()
        _check(_runtime().dovetail_program_axis(self._handle, index, ctypes.byref(name), ctypes.byref(size)))
        return name.value.decode(), size.value

    def _feedback(self):
        output, pairs = ctypes.c_int64(), {}
        for index, port in enumerate(self.inputs):
            _check(_runtime().dovetail_program_feedback(self._handle, index, ctypes.byref(output)))
            if output.value >= 0:
                pairs[port.name] = self.outputs[output.value].name
        return pairs

    def _lengths(self, index, ndim):
        """`Port.lengths` of input number `index`."""
        names = []
        for dim in range(ndim):
            name = ctypes.c_char_p()
            _check(_runtime().dovetail_program_input_length(self._handle, index, dim, ctypes.byref(name)))
            names.append(name.value.decode(errors="replace") if name.value is not None else None)
        return tuple(names) if any(name is not None for name in names) else ()

    def _ports(self, direction):
        runtime = _runtime()
        ports, types = [], []
        for index in range(getattr(runtime, f"dovetail_program_num_{direction}s")(self._handle)):
            port = _Port()
            _check(getattr(runtime, f"dovetail_program_{direction}")(self._handle, index, ctypes.byref(port)))
            types.append(_DataType(port.type.code, port.type.bits, port.type.lanes))
            lengths = self._lengths(index, port.ndim) if direction == "input" else ()
            ports.append(Port(port.name.decode(), port.type_name.decode(), tuple(port.shape[: port.ndim]), lengths))
        self._types[direction] = types
        return ports

    def _runner(self, *key):
        """The runner for `key`: the number of threads, and whether to autotune and to pin."""
        if key not in self._runners:
            runtime = _runtime()
            runner = ctypes.c_void_p()
            threads, autotune, pin = key
            options = _RunnerOptions(threads=threads, autotune=autotune, pin=pin)
            _check(runtime.dovetail_runner_create(self._handle, ctypes.byref(options), ctypes.byref(runner)))
            # A runner may outlive its program, so the order does not matter.
            self._runners[key] = runner, weakref.finalize(self, runtime.dovetail_runner_free, runner)
            _warn(runner, stacklevel=3)
        return self._runners[key][0]

    def _tensors(self, direction, arrays, keep):
        """DLTensors for `arrays`, one or more for each port; what they point to is appended to `keep`."""
        tensors = (_Tensor * len(arrays))()
        for tensor, array, data_type in zip(tensors, arrays, itertools.cycle(self._types[direction])):
            shape = (ctypes.c_int64 * array.ndim)(*array.shape)
            strides = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
            keep += [array, shape, strides]
            tensor.data = array.ctypes.data
            tensor.device = _Device(_CPU, 0)
            tensor.ndim = array.ndim
            tensor.dtype = data_type
            tensor.shape = shape
            tensor.strides = strides
        return tensors
