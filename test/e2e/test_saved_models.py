# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models as ONNX Runtime saves them when it has optimised them: they equal their originals, and are as fast by estimate.

    test_saved_models.py    prints a table: predicted seconds of each model and of its saved copies
"""

import json
import pathlib
import sys
import tempfile

if __name__ == "__main__":
    sys.path[:0] = [str(pathlib.Path(__file__).parents[1]), str(pathlib.Path(__file__).parents[1] / "models")]

import dovetail_models
import numpy as np
import onnx
import onnxruntime
import pytest
from harness.backend import call, tool
from harness.compare import differences
from harness.extent import one_of
from subjects import SMALL_SUBJECTS, SUBJECTS

LEVELS = {
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
}
MODELS = [s for s in SUBJECTS + SMALL_SUBJECTS if s.model not in dovetail_models.TRAINED]
#: The longest time that is predicted of a saved copy, over that of its original.
SLOWEST = 1.03


def save(path, level, folder):
    """The copy of a model that ONNX Runtime saves at `level`."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.log_severity_level = 3
    options.optimized_model_filepath = str(folder / f"{level}.onnx")
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return folder / f"{level}.onnx"


def predict(path, subject, mesh):
    """The seconds that a run is predicted to take, for x86-64-v3."""
    flags = [*subject.partition(mesh, "uneven" if mesh["y"] > 1 else "balanced").flags(), *subject.flags()]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "plan.json"
        code, _, messages = call([tool("dovetail"), "plan", path, *flags, "--cpu", "x86-64-v3", "--json", file])
        assert code == 0, messages
        return json.loads(file.read_text())["seconds"]


@one_of(4)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("subject", [s for s in MODELS if not s.heavy], ids=lambda s: s.name)
def test_saved_model(backend, subject, level, tmp_path):
    case = subject.prepared()
    path = save(case.path, level, tmp_path)
    # Shapes of reshapes stay inputs of models of old versions, though nothing reads them any more.
    graph = onnx.load(path).graph
    given = {*case.inputs, *(i.name for i in graph.initializer)}
    unused = {i.name: i.type.tensor_type for i in graph.input if i.name not in given}
    inputs = case.inputs | {
        name: np.zeros([d.dim_value for d in kind.shape.dim], onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        for name, kind in unused.items()
    }
    actual = backend.compile_and_run(
        path, subject.partition({"y": 3}, "uneven"), inputs, list(case.expected), True, subject.flags()
    )
    assert not (found := differences(actual, case.expected)), found
    before, after = (predict(p, subject, {"y": 3}) for p in (case.path, path))
    assert after <= SLOWEST * before, f"{before} s, saved {after} s"


def main():
    for subject in MODELS:
        case = subject.prepared()
        for level in LEVELS:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    path = save(case.path, level, pathlib.Path(folder))
                    times = [[predict(p, subject, mesh) for p in (case.path, path)] for mesh in ({"y": 1}, {"y": 3})]
                    text = "  ".join(f"{a * 1e3:9.3f} {b * 1e3:9.3f} ms {b / a:5.2f}" for a, b in times)
                except AssertionError as error:
                    text = str(error).strip()[:400]
                except Exception as error:
                    text = f"{type(error).__name__} {str(error)[:200]}"
                print(f"{subject.name:28} {level:9} {text}", flush=True)


if __name__ == "__main__":
    main()
