# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Runtime in a process of its own, limited to an instruction set where the machine can do that.

`cpu_mask.c` hides from the process what the CPU has beyond AVX2.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve()


def can_mask():
    """Whether this CPU can hide from a process what it has."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    return cpuinfo.exists() and " cpuid_fault" in cpuinfo.read_text()


def mask(environment, folder):
    """Has programs that run in `environment` use AVX2 at most; `folder` stays while they run."""
    library = pathlib.Path(folder) / "cpu_mask.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", HERE.with_name("cpu_mask.c"), "-o", library], check=True)
    environment["LD_PRELOAD"] = str(library)


class Peer:
    """Times models with ONNX Runtime. With `masked` it uses AVX2 at most; the caller asks `can_mask` first."""

    def __init__(self, masked, threads=1):
        self.folder = tempfile.TemporaryDirectory()
        environment = dict(os.environ)
        if masked:
            mask(environment, self.folder.name)
        self.process = subprocess.Popen(
            [sys.executable, HERE, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def load(self, model, inputs):
        """Takes a model and its inputs, both paths, in place of those before."""
        self._ask({"model": str(model), "inputs": str(inputs)})

    def time(self, repetitions):
        """The median of so many runs, in milliseconds, after two others."""
        return self._ask({"repetitions": repetitions})

    def _ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"ONNX Runtime's process ended with {self.process.wait()}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


class _Session:
    def __init__(self, model, inputs, threads):
        import onnxruntime

        sys.path.append(str(HERE.parents[1] / "test/models"))
        from dovetail_models import onnxruntime_session

        self.session = onnxruntime_session(model, threads=threads)
        self.binding = self.session.io_binding()
        with np.load(inputs) as file:
            self.inputs = dict(file)
        self.values = {n: onnxruntime.OrtValue.ortvalue_from_numpy(value) for n, value in self.inputs.items()}
        for name, value in self.values.items():
            self.binding.bind_ortvalue_input(name, value)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)

    def time(self, repetitions):
        times = []
        for _ in range(repetitions + 2):
            for name, value in self.values.items():
                value.update_inplace(self.inputs[name])
            begin = time.perf_counter()
            self.session.run_with_iobinding(self.binding)
            times.append(time.perf_counter() - begin)
        return 1000 * statistics.median(times[2:])


def _serve(threads):
    session = None
    for line in sys.stdin:
        request = json.loads(line)
        if "model" in request:
            session = _Session(request["model"], request["inputs"], threads)
            answer = None
        else:
            answer = session.time(request["repetitions"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
