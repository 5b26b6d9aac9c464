# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random inputs for a model, and its outputs by ONNX Runtime."""

import numpy as np
import onnx
from onnx import helper


def input_infos(model):
    """The inputs that a caller must give: those without an initializer (IR version 3 lists both)."""
    given = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in given]


def input_shape(info, dims=None):
    """The shape of an input, with symbolic dimensions looked up in `dims`."""
    shape = []
    for index, dim in enumerate(info.type.tensor_type.shape.dim):
        if dim.HasField("dim_value"):
            shape.append(dim.dim_value)
        else:
            shape.append((dims or {}).get(dim.dim_param or f"{info.name}:{index}", 1))
    return shape


def random_inputs(model, seed=0, dims=None, shapes=None):
    """Standard normal inputs (integers in [0, 10)); `shapes` maps input names to full shapes."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for info in input_infos(model):
        shape = (shapes or {}).get(info.name) or input_shape(info, dims)
        dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if np.issubdtype(dtype, np.floating):
            inputs[info.name] = rng.standard_normal(shape).astype(dtype)
        else:
            inputs[info.name] = rng.integers(0, 10, shape).astype(dtype)
    return inputs


def token_inputs(batch, length, vocabulary=512, mask=False, seed=7):
    """Random `ids` (batch, length), and with `mask` one whose sequences end at different positions."""
    ids = np.random.default_rng(seed).integers(0, vocabulary, (batch, length))
    if not mask:
        return {"ids": ids}
    ends = length - length * np.arange(batch)[:, None] // (2 * batch) - 1
    return {"ids": ids, "mask": (np.arange(length) < ends).astype(np.int64)}


def onnxruntime_session(model, threads=2, optimise=True, settings=()):
    """A CPU session for a ModelProto, its bytes, or a path. `settings` are pairs of names and values."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    for name, value in settings:
        options.add_session_config_entry(name, value)
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if isinstance(model, onnx.ModelProto):
        model = model.SerializeToString()
    elif not isinstance(model, bytes):
        model = str(model)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_onnxruntime(model, inputs, threads=2, optimise=True):
    """All outputs, by name."""
    session = onnxruntime_session(model, threads, optimise)
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))
