# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures PyTorch and ONNX Runtime on a model of the package. The requests of a worker."""

import json

import numpy as np

from .evaluate import verdict
from .probe import measure

#: How PyTorch is used, in the order of what they cost to prepare.
PYTORCH = {
    "eager": {},
    "channels-last": {"channels_last": True},
    "CUDA graph, NCHW": {"graph": True},
    "CUDA graph": {"channels_last": True, "graph": True},
    "compile": {"channels_last": True, "compile": {}},
    "compile, CUDA graph": {"channels_last": True, "compile": {"mode": "reduce-overhead"}},
}
MOST_DISTANCE = 1e-2


def graphed(run):
    """`run` recorded as one CUDA graph."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = run()

    def replay():
        graph.replay()
        return results

    return replay


def read_graph(package, entry):
    """(graph, constants by name) that `torch_model.build` takes."""
    graph = json.loads(package.path(entry["graph"]).read_text())
    with np.load(package.path(entry["constants"])) as file:
        return graph, {name: file[name] for name in file.files}


def pytorch(graph, constants, inputs, device, how, math="f32", half=False):
    """(function that runs once, function that waits, function that gives the outputs, version).

    `how` is a value of PYTORCH. TF32 is for convolutions and products alike, or for neither.
    """
    import torch

    from . import torch_model

    if device == "cuda" and not torch.cuda.is_available():
        raise ImportError(f"torch {torch.__version__} finds no GPU")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = math == "tf32"
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = True, False
    module, names = torch_model.build(graph, constants, inputs, device)
    values = [torch.from_numpy(value).to(device) for value in inputs.values()]
    if half:
        module = module.half()
        values = [value.half() if value.is_floating_point() else value for value in values]
    if how.get("channels_last"):
        values = torch_model.channels_last(module, values)
    function = module
    if "compile" in how:
        torch.compiler.reset()
        function = torch.compile(module, **how["compile"])

    def run():
        with torch.inference_mode():
            return function(*values)

    if how.get("graph"):
        run = graphed(run)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    outputs = lambda: {name: value.cpu().numpy() for name, value in zip(names, run())}
    return run, wait, outputs, f"PyTorch {torch.__version__} on {device}"


def _pytorch(package, request, inputs):
    graph, constants = read_graph(package, request)
    package.forget(request["constants"])
    return pytorch(graph, constants, inputs, request["device"], PYTORCH[request["how"]], request["math"])


def _onnxruntime(package, request, inputs):
    import onnxruntime

    device = request["device"]
    provider = f"{device.upper()}ExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        raise ImportError(f"onnxruntime {onnxruntime.__version__} without {provider}")
    # NVIDIA's libraries are in Python's packages, too.
    if device == "cuda" and hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    settings = {"use_tf32": str(int(request["math"] == "tf32"))} if device == "cuda" else {}
    path = str(package.path(request["onnx"]))
    session = onnxruntime.InferenceSession(path, options, providers=[(provider, settings)])
    package.forget(request["onnx"])
    if session.get_providers()[0] != provider:
        raise ImportError(f"onnxruntime {onnxruntime.__version__} cannot use {provider} here")
    binding = session.io_binding()
    kept = [onnxruntime.OrtValue.ortvalue_from_numpy(value, device, 0) for value in inputs.values()]
    for name, value in zip(inputs, kept):
        binding.bind_ortvalue_input(name, value)
    names = [output.name for output in session.get_outputs()]
    for name in names:
        binding.bind_output(name, device)
    # A run waits for the device.
    run = lambda: session.run_with_iobinding(binding)

    def outputs():
        run()
        return dict(zip(names, binding.copy_outputs_to_cpu()))

    return run, binding.synchronize_outputs, outputs, f"ONNX Runtime {onnxruntime.__version__}"


def answer(package, request):
    """Times one way to run a model, and compares its outputs: a peer that computes something else is no peer."""
    inputs, expected = package.arrays(request["arrays"])
    prepare = _onnxruntime if request["how"] == "ONNX Runtime" else _pytorch
    try:
        run, wait, outputs, version = prepare(package, request, inputs)
    except ImportError as error:
        return {"status": "absent", "message": str(error)}
    # Peers round as they like: this is to see that they compute the same model.
    result = verdict(outputs(), expected, MOST_DISTANCE, math="tf32")
    times = measure(run, wait)
    return result | times | {"median_ms": times["ms"], "version": version}
