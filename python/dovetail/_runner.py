# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ranks of a program that a process has, and runs with what these hold."""

import ctypes
import os
import threading
import weakref

import numpy as np

from ._errors import DovetailError
from ._library import let_interrupt
from ._program import _check, _check_not_forked, _number_of_threads, _RunnerOptions, _runtime, _warn


class Runner:
    """The ranks of a program that are in this process: all of them, as threads, or one of several processes.

    `comm` is "local" for threads, the name of a transport that connects processes, such as "mpi" and "nccl", or a
    communicator of mpi4py, whose processes are the ranks. Processes make the same calls, in the same order. `threads`
    are those of this process; a step that takes `timeout` seconds ends the run. `autotune` and `pin` are those of
    `Program.run`. `ranks` is the range of this process's ranks. Raises `DovetailError`.
    """

    def __init__(self, program, threads=1, comm="local", timeout=60.0, autotune=False, pin=False):
        options = _RunnerOptions(
            threads=_number_of_threads(threads), timeout_seconds=timeout, autotune=bool(autotune), pin=bool(pin)
        )
        if isinstance(comm, str):
            options.communicator = comm.encode()
        else:
            # That is MPI_Comm_c2f, as mpi4py calls it.
            options.mpi_communicator = ctypes.pointer(ctypes.c_int32(comm.py2f()))
        self.program = program
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._handle = ctypes.c_void_p()
        let_interrupt(_runtime().dovetail_set_interruptible)
        _check(_runtime().dovetail_runner_create(program._handle, ctypes.byref(options), ctypes.byref(self._handle)))
        self._finalizer = weakref.finalize(self, _runtime().dovetail_runner_free, self._handle)
        _warn(self._handle, stacklevel=2)
        first, count = ctypes.c_int32(), ctypes.c_int32()
        _check(_runtime().dovetail_runner_ranks(self._handle, ctypes.byref(first), ctypes.byref(count)))
        self.ranks = range(first.value, first.value + count.value)

    def __reduce__(self):
        raise TypeError("a Runner belongs to its process: create one in each process")

    def close(self):
        """Stops the ranks. Where they are processes, all close their runners."""
        if self._process != os.getpid():
            return
        with self._lock:
            self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def to_local(self, name, array):
        """What the ranks of this process hold of `array`, all of an input: a view, or a list of one for each rank."""
        shapes = {port.name: port.shape for port in self.program.inputs + self.program.outputs}
        for port in self.program.inputs:
            if port.name == name and any(port.lengths):
                raise DovetailError(5, f"'{name}' varies in length from run to run; give `run` all of it")
        if name in shapes and np.shape(array) != shapes[name]:
            raise DovetailError(2, f"'{name}' has the shape {list(shapes[name])}, not {list(np.shape(array))}")
        parts = [array[self.program.part(name, rank)] for rank in self.ranks]
        return parts if len(parts) > 1 else parts[0]

    def from_local(self, name, parts):
        """The whole output `name`, of what all ranks hold of it, in their order: as a new array.

        With processes, whoever wants it has to collect these first, such as by mpi4py's `gather`.
        """
        port = next((port for port in self.program.outputs if port.name == name), None)
        if port is None:
            known = ", ".join(f"'{port.name}'" for port in self.program.outputs)
            raise DovetailError(2, f"there is no output '{name}'; the program's outputs are {known}")
        if self.program.num_ranks == 1 and isinstance(parts, np.ndarray):
            parts = [parts]
        if len(parts) != self.program.num_ranks:
            raise DovetailError(2, f"output '{name}' is held by {self.program.num_ranks} ranks, not by {len(parts)}")
        whole = np.empty(port.shape, port.numpy_dtype)
        for rank, part in enumerate(parts):
            part, shape = np.asarray(part), self._shape(port, rank)
            if part.shape != shape or part.dtype != port.numpy_dtype:
                raise DovetailError(
                    2,
                    f"rank {rank} holds {port.dtype}{list(shape)} of output '{name}', not {part.dtype}{list(part.shape)}",
                )
            whole[self.program.part(name, rank)] = part
        return whole

    def run_local(self, inputs):
        """Runs once with what the ranks of this process hold, and nothing of what others hold.

        `inputs` maps names to arrays with the extents of `Program.part`; where this process has several ranks, to lists
        of one for each. Arrays of any strides are read where they are. Where ranks hold the same elements, they are
        given the same. Returns the outputs in the same form, in new arrays.
        """
        program, several = self.program, len(self.ranks) > 1
        program._check_names(inputs)
        lists = {name: value if several else [value] for name, value in inputs.items()}
        for name, parts in lists.items():
            if len(parts) != len(self.ranks):
                raise DovetailError(2, f"input '{name}' is given {len(parts)} times for {len(self.ranks)} ranks")
        given, made = [], []
        for slot, rank in enumerate(self.ranks):
            for port in program.inputs:
                shape = self._shape(port, rank)
                given.append(program._array(port, lists[port.name][slot], shape, f"rank {rank} holds"))
            made += [np.empty(self._shape(port, rank), port.numpy_dtype) for port in program.outputs]
        keep = []
        tensors = program._tensors("input", given, keep), len(given), program._tensors("output", made, keep), len(made)
        _check_not_forked(self._process)
        with self._lock:
            if not self._finalizer.alive:
                raise DovetailError(2, "the runner is closed")
            let_interrupt(_runtime().dovetail_set_interruptible)
            _check(_runtime().dovetail_runner_run_local(self._handle, *tensors))
        count = len(program.outputs)
        results = {port.name: made[index::count] for index, port in enumerate(program.outputs)}
        return results if several else {name: parts[0] for name, parts in results.items()}

    def _shape(self, port, rank):
        return tuple(piece.stop - piece.start for piece in self.program.part(port.name, rank))
