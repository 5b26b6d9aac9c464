# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program whose inputs and outputs stay on its device. For the process that measures; needs no PyTorch."""

import contextlib
import ctypes
import functools
import math
import time

import numpy as np

_CPU, _CUDA = 1, 2
#: Of the device's free memory, so much is overwritten before a program starts.
MOST_SOILED = 8 << 30


class DeviceError(Exception):
    """A call of the driver failed."""


class Driver:
    """Memory of the first GPU that this process may use, in its primary context, which the runtime uses, too."""

    def __init__(self):
        self._cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._context = context

    def _call(self, name, *arguments):
        code = getattr(self._cuda, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(code, ctypes.byref(text))
            raise DeviceError(f"{name}: {(text.value or b'error').decode()} ({code})")

    @contextlib.contextmanager
    def _current(self):
        """The context is current on this thread; before and after, that of another library may be."""
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def allocate(self, size):
        address = ctypes.c_uint64()
        with self._current():
            self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(1, size)))
        return address.value

    def free(self, address):
        with self._current():
            self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def fill(self, address, byte, size):
        with self._current():
            arguments = ctypes.c_uint64(address), ctypes.c_ubyte(byte), ctypes.c_size_t(size), None
            self._call("cuMemsetD8Async", *arguments)
            self._call("cuCtxSynchronize")

    def upload(self, address, array):
        source = ctypes.c_void_p(array.ctypes.data)
        with self._current():
            self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), source, ctypes.c_size_t(array.nbytes))
            self._call("cuCtxSynchronize")

    def download(self, array, address):
        target = ctypes.c_void_p(array.ctypes.data)
        with self._current():
            self._call("cuMemcpyDtoH_v2", target, ctypes.c_uint64(address), ctypes.c_size_t(array.nbytes))

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self._current():
            self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def soil(self):
        """Fills up to MOST_SOILED bytes of free memory with NaN for the next who allocates; returns the number."""
        size = min(self.free_bytes() // 2, MOST_SOILED)
        address = self.allocate(size)
        try:
            self.fill(address, 0xFF, size)
        finally:
            self.free(address)
        return size


@functools.cache
def driver():
    return Driver()


class _HostArray:
    def __init__(self, array):
        self.array, self.address, self.device = array, array.ctypes.data, _CPU

    def put(self, values):
        np.copyto(self.array, values, casting="no")

    def get(self):
        return self.array.copy()

    def fill(self, byte):
        self.array.reshape(-1).view(np.uint8)[...] = byte

    def close(self):
        pass


class _DeviceArray:
    def __init__(self, shape, dtype):
        self._shape, self._dtype = shape, dtype
        self._bytes = math.prod(shape) * dtype.itemsize
        self.address, self.device = driver().allocate(self._bytes), _CUDA

    def put(self, values):
        if values.shape != self._shape or values.dtype != self._dtype:
            raise ValueError(f"{values.dtype}{list(values.shape)} given for {self._dtype}{list(self._shape)}")
        driver().upload(self.address, np.ascontiguousarray(values))

    def get(self):
        array = np.empty(self._shape, self._dtype)
        driver().download(array, self.address)
        return array

    def fill(self, byte):
        driver().fill(self.address, byte, self._bytes)

    def close(self):
        driver().free(self.address)


class Resident:
    """Runs all ranks of a program, as threads, on arrays on its device. Raises dovetail.DovetailError.

    `start_s` is how long loading the program and starting the ranks took, `device_bytes` the device's memory that is
    less since then (None on a CPU).
    """

    def __init__(self, path, target, autotune=False, threads=1):
        import dovetail
        from dovetail import _program

        self._api, self._arrays, self._runner = _program, {}, ctypes.c_void_p()
        self._on_gpu = target == "cuda"
        before = driver().free_bytes() if self._on_gpu else 0
        start = time.monotonic()
        self.program = dovetail.Program.load(path)
        options = _program._RunnerOptions(threads=threads, autotune=int(autotune and self._on_gpu))
        create = _program._runtime().dovetail_runner_create
        _program._check(create(self.program._handle, ctypes.byref(options), ctypes.byref(self._runner)))
        self.start_s = time.monotonic() - start
        self.device_bytes = before - driver().free_bytes() if self._on_gpu else None
        try:
            for port in [*self.program.inputs, *self.program.outputs]:
                self._arrays[port.name] = self._array(port)
            self._given, self._made = (self._tensors(d, self._arrays) for d in ("input", "output"))
        except BaseException:
            self.close()
            raise

    def _array(self, port):
        if self._on_gpu:
            return _DeviceArray(port.shape, port.numpy_dtype)
        return _HostArray(np.zeros(port.shape, port.numpy_dtype))

    def _tensors(self, direction, arrays):
        """DLTensors of all inputs or outputs; what they point to lives as long as they do."""
        ports = getattr(self.program, f"{direction}s")
        tensors = (self._api._Tensor * len(ports))()
        tensors.kept = [arrays]
        for tensor, port, data_type in zip(tensors, ports, self.program._types[direction]):
            shape = (ctypes.c_int64 * len(port.shape))(*port.shape)
            tensors.kept.append(shape)
            array = arrays[port.name]
            tensor.data, tensor.device = array.address, self._api._Device(array.device, 0)
            tensor.ndim, tensor.dtype, tensor.shape = len(port.shape), data_type, shape
        return tensors

    def put(self, values):
        """Writes all inputs, from arrays of the program's types by name."""
        for port in self.program.inputs:
            self._arrays[port.name].put(values[port.name])

    def soil_inputs(self, values):
        """Makes all inputs NaN, and turns round those that are no floating-point numbers, which may be indices."""
        for port in self.program.inputs:
            if port.numpy_dtype.kind == "f":
                self._arrays[port.name].fill(0xFF)
            else:
                self._arrays[port.name].put(np.flip(values[port.name]))

    def soil_outputs(self):
        """Fills the outputs with bytes that are NaN, so that what a run does not write is found."""
        for port in self.program.outputs:
            self._arrays[port.name].fill(0xFF)

    def run(self, given=None):
        """Runs once, and waits for the end; with inputs that `from_host` made, or with those on the device."""
        run, given = self._api._runtime().dovetail_runner_run_steps, self._given if given is None else given
        self._api._check(run(self._runner, given, len(given), self._made, len(self._made), 1))

    def from_host(self, values):
        """Inputs for `run` that it has to copy from the host: arrays by name."""
        return self._tensors("input", {name: _HostArray(np.ascontiguousarray(v)) for name, v in values.items()})

    def outputs(self):
        return {port.name: self._arrays[port.name].get() for port in self.program.outputs}

    def close(self):
        if self._runner:
            self._api._runtime().dovetail_runner_free(self._runner)
            self._runner = ctypes.c_void_p()
        while self._arrays:
            self._arrays.popitem()[1].close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
