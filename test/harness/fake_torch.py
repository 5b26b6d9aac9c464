# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An imitation of PyTorch on a GPU, by NumPy: what `gpu-check` calls of it, for the models of `timed_package`.

A test copies this file as torch.py. Graphs are not replayed, and events on the device take no time of its own. The
profiler writes the trace in the file that FAKE_TORCH_TRACE names, or aborts the process where that says "abort".
"""

import contextlib
import os
import shutil
import sys
import time
import types

import numpy as np

__version__ = "0.0-imitated"
float32, float16, bfloat16, float64, int64 = np.float32, np.float16, np.float16, np.float64, np.int64
contiguous_format, channels_last, channels_last_3d = "contiguous", "channels_last", "channels_last_3d"


class Tensor(np.ndarray):
    """An array of NumPy with the methods of a tensor."""

    cpu = detach = lambda self: self
    half, float, double = (lambda self, t=t: self.astype(t) for t in (np.float16, np.float32, np.float64))
    dim = lambda self: self.ndim
    abs = lambda self: np.abs(self)
    numpy = lambda self: np.asarray(self)
    is_floating_point = lambda self: self.dtype.kind == "f"
    to = lambda self, what: self if isinstance(what, str) else self.astype(what)
    contiguous = lambda self, memory_format=None: self

    def copy_(self, other):
        self[...] = other

    def normal_(self):
        self[...] = 1
        return self


def from_numpy(array):
    return np.asarray(array).view(Tensor)


def _made(*shape, dtype=np.float32, device=None):
    assert device in (None, "cuda")
    return np.ones(shape, dtype).view(Tensor)


empty, empty_like, matmul = _made, np.empty_like, np.matmul
tensor = lambda values, dtype=None: from_numpy(np.array(values, dtype))
permute = lambda x, dims: np.transpose(x, dims)


def randn(*shape, device=None):
    return from_numpy(np.random.RandomState(0).standard_normal(shape).astype(np.float32))


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    assert bias is None and groups == 1 and stride in (1, [1, 1]) and dilation in (1, [1, 1])
    pads = [padding] * 2 if isinstance(padding, int) else padding
    padded = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pads)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weight, optimize=True).astype(x.dtype).view(Tensor)


def scaled_dot_product_attention(query, key, value, scale):
    scores = scale * np.matmul(query, np.swapaxes(key, -1, -2)).astype(np.float32)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.matmul(weights / weights.sum(-1, keepdims=True), value).astype(query.dtype).view(Tensor)


class Node:
    def __init__(self, compute):
        self.compute = compute


class Graph:
    """Nodes of torch.fx: each is a function of the inputs and of the module."""

    def __init__(self):
        self.inputs, self.result = [], None

    def placeholder(self, name):
        self.inputs.append(name)
        return Node(lambda given, module, at=len(self.inputs) - 1: given[at])

    def get_attr(self, name):
        return Node(lambda given, module: getattr(module, name))

    def call_function(self, function, arguments, options):
        known = lambda a, *context: a.compute(*context) if isinstance(a, Node) else a
        return Node(lambda *context: function(*(known(a, *context) for a in arguments), **options))

    def output(self, nodes):
        self.result = nodes


class Module:
    register_buffer = lambda self, name, value: setattr(self, name, value)


class GraphModule:
    def __init__(self, root, graph):
        self.root, self.graph = root, graph

    eval = lambda self: self

    def named_buffers(self):
        return []

    def half(self):
        vars(self.root).update({name: value.half() for name, value in vars(self.root).items()})
        return self

    def __call__(self, *given):
        return tuple(node.compute(given, self.root) for node in self.graph.result)


class Stream:
    wait_stream = lambda self, other: None


class Event:
    def __init__(self, enable_timing):
        self.at = None

    def record(self):
        self.at = time.perf_counter()

    synchronize = lambda self: None
    elapsed_time = lambda self, end: 1000 * (end.at - self.at) + 1e-3


class CUDAGraph:
    replay = lambda self: None


class Profile(contextlib.nullcontext):
    def __init__(self, activities):
        super().__init__(self)

    def export_chrome_trace(self, path):
        if os.environ["FAKE_TORCH_TRACE"] == "abort":
            os.abort()
        shutil.copy(os.environ["FAKE_TORCH_TRACE"], path)


#: The modules of this package by name, which are where Python looks for them if the package is torch.
MODULES = sys.modules if __name__ == "torch" else {"torch": sys.modules[__name__]}


def _module(name, **contents):
    """A module of this package, which knows no other functions: one that is called fails."""
    module = types.ModuleType(f"torch.{name}")
    vars(module).update(contents)
    module.__getattr__ = lambda function: _unknown(f"{name}.{function}")
    MODULES[f"torch.{name}"] = module
    return module


def _unknown(name):
    if name.rpartition(".")[2].startswith("__"):
        raise AttributeError(name)

    def unknown(*arguments, **options):
        raise NotImplementedError(f"the imitation of PyTorch has no {name}")

    return unknown


__getattr__ = _unknown
_none, _nothing = lambda *arguments: None, lambda *arguments: contextlib.nullcontext()
inference_mode = no_grad = _nothing
compile = lambda module, **options: module
_matmul = types.SimpleNamespace(allow_tf32=False)
_cudnn = types.SimpleNamespace(allow_tf32=False, benchmark=False, deterministic=False, version=lambda: 91900)
_properties = types.SimpleNamespace(multi_processor_count=132)
cuda = _module(
    "cuda", is_available=lambda: True, synchronize=_none, empty_cache=_none, reset_peak_memory_stats=_none,
    memory_allocated=lambda: 100, max_memory_allocated=lambda: 300, current_stream=Stream, stream=_nothing,
    graph=_nothing, Stream=Stream, Event=Event, CUDAGraph=CUDAGraph, get_device_name=lambda i: "imitated",
    get_device_capability=lambda i: (9, 0), get_device_properties=lambda i: _properties,
    nccl=types.SimpleNamespace(version=lambda: (2, 30, 4)),
)  # fmt: skip
backends = _module("backends", cuda=types.SimpleNamespace(matmul=_matmul), cudnn=_cudnn)
version, distributed = types.SimpleNamespace(cuda="13.0"), types.SimpleNamespace(is_nccl_available=lambda: True)
compiler, ops = types.SimpleNamespace(reset=_none), _module("ops")
fx = types.SimpleNamespace(Graph=Graph, GraphModule=GraphModule)
functional = _module(
    "nn.functional", conv2d=conv2d, relu=lambda x: np.maximum(x, 0),
    scaled_dot_product_attention=scaled_dot_product_attention,
)  # fmt: skip
_backends = types.SimpleNamespace(CUDNN_ATTENTION=1, FLASH_ATTENTION=2, EFFICIENT_ATTENTION=3, MATH=4)
nn = _module("nn", functional=functional, Module=Module)
_module("nn.attention", SDPBackend=_backends, sdpa_kernel=_nothing)
profiler = _module("profiler", ProfilerActivity=types.SimpleNamespace(CUDA=1), profile=Profile)
