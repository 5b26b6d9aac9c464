# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a package checks: models with their partitions, operators, and exchanges."""

import dataclasses
import itertools

import bench
import dovetail_models
import numpy as np
import onnx
from cases import ABSOLUTE_TOLERANCE, TOLERANCE, fixed_cases, random_case
from harness.partition import Partition, uneven_sizes
from onnx import TensorProto, helper, numpy_helper
from subjects import SMALL_SUBJECTS, SUBJECTS

from .package import LEAST_BYTES, MOST_LEVELS

RANKS = (1, 2, 3, 4)
#: Of the norm of an output. Rounding the factors of all products to 10 bits gives up to 3e-3 with these models.
TF32_TOLERANCE = 1e-2
FIRST_SEED = 20250


@dataclasses.dataclass
class Model:
    """A model to check. `small` ones are compiled without libraries, too; `timed` ones are measured."""

    name: str
    label: str
    proto: onnx.ModelProto
    inputs: dict
    split: str  #: The input that is cut,
    dim: int  #: at this dimension.
    flags: list
    small: bool = False
    timed: bool = False


def with_few_levels(model):
    """Rounds the large weights of a synthetic model to few values, which pack into 4 bits each."""
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.nbytes < LEAST_BYTES or not values.std():
            continue
        half = MOST_LEVELS // 2
        step = np.float32(values.std() * 3.2 / half)
        levels = np.clip(np.floor(values / step), -half, half - 1).astype(np.float32)
        tensor.ClearField("float_data")
        tensor.raw_data = ((levels + np.float32(0.5)) * step).astype("<f4").tobytes()
    return model


def _short(values):
    """Random inputs with few digits: they pack better, and are as good."""
    return (np.round(values * 64) / 64).astype(values.dtype) if values.dtype.kind == "f" else values


def _workload(workload):
    trained = workload.model in dovetail_models.TRAINED
    model = workload.build()
    inputs = workload.make_inputs(model)
    split = workload.shape[0] if workload.shape else next(iter(inputs))
    shape = inputs[split].shape
    return Model(
        _name_of(workload),
        f"{workload.label}, {'×'.join(map(str, shape))}",
        model if trained else with_few_levels(model),
        inputs if trained else {name: _short(values) for name, values in inputs.items()},
        split,
        min(2, len(shape) - 1),
        workload.flags(),
        timed=True,
    )


def _name_of(workload):
    """Those of the benchmarks are larger than those of the tests, which may have the same name."""
    return f"bench-{workload.stem}"


def _subject(subject, small):
    trained = subject.model in dovetail_models.TRAINED
    model = dovetail_models.build(subject.model, **dict(subject.sizes))
    shapes = {subject.input: subject.shape} if subject.shape else None
    if subject.make_input:
        inputs = subject.made_inputs()
    else:
        inputs = {n: _short(v) for n, v in dovetail_models.random_inputs(model, seed=7, shapes=shapes).items()}
    return Model(
        subject.name,
        subject.name,
        model if trained else with_few_levels(model),
        inputs,
        subject.input,
        dict(subject.split)["y"],
        subject.flags(),
        small=small,
        timed=subject.name == _BRIEF,
    )


#: A model of the test suite that computes so little that its time is that of launches.
_BRIEF = "small-vit-encoder"

#: Models of the test suite at odd sizes and with batches, one of which only a run knows how often it iterates, and
#: those with Fourier transforms.
_ODD = ("ppocr-cls", "unet2d-transposed", "unet2d-dynamic", "unet3d", "vit-encoder", "relaxation", "fno2d", "afno")


def _entries():
    """(name, workload or subject, function that makes the model) of each model."""
    for workload in bench.WORKLOADS:
        yield _name_of(workload), workload, lambda w=workload: _workload(w)
    for subject in (s for s in SUBJECTS if s.name in _ODD):
        yield subject.name, subject, lambda s=subject: _subject(s, small=False)
    for subject in SMALL_SUBJECTS:
        yield subject.name, subject, lambda s=subject: _subject(s, small=True)


def model_makers():
    """Functions that make the models, by name."""
    return {name: make for name, _, make in _entries()}


def require_fetched(names):
    """FileNotFoundError unless the files that scripts/fetch-models fetches for these models are there."""
    for name, source, _ in _entries():
        if name in names and source.model in dovetail_models.TRAINED:
            dovetail_models.trained_path(source.model)
            dovetail_models.page.text_page()


@dataclasses.dataclass
class Variant:
    """One way to compile a model."""

    ranks: int
    style: str = "uneven"
    libraries: bool = True
    math: str = "f32"

    @property
    def name(self):
        words = [f"{self.ranks}", "" if self.ranks == 1 else self.style]
        words += ["" if self.libraries else "no-libraries", "" if self.math == "f32" else self.math]
        return "-".join(filter(None, words))

    @property
    def tolerance(self):
        return TF32_TOLERANCE if self.math == "tf32" else TOLERANCE

    def flags(self):
        flags = [] if self.libraries else ["--no-libraries"]
        return flags if self.math == "f32" else [*flags, "--math", self.math]

    def partition(self, model):
        extents = model.inputs[model.split].shape
        partition = Partition({"y": self.ranks})
        if self.ranks > 1:
            sizes = uneven_sizes(extents[model.dim], self.ranks) if self.style == "uneven" else None
            partition.split(model.split, len(extents), model.dim, "y", sizes)
        return partition


def variants(model, target):
    """How `model` is compiled. CPUs know no TF32."""
    found = [Variant(ranks) for ranks in RANKS]
    if model.small:
        found += [Variant(ranks, libraries=False) for ranks in RANKS]
    if model.timed:
        found += [Variant(ranks, "balanced") for ranks in (2, 4)]
        found += [Variant(ranks, math="tf32") for ranks in (1, 3) if target == "cuda"]
    return found


def operator_cases():
    """The fixed cases, by a library and by our kernels, then random ones: without an end, since some may be refused."""
    for case in fixed_cases().values():
        yield case
        yield dataclasses.replace(case, libraries=False)
    for seed in itertools.count(FIRST_SEED):
        yield random_case(seed)


OPERATOR_FLOOR = ABSOLUTE_TOLERANCE


def exchanges(target):
    """(name, model, flags) of programs that do little but exchange: on GPUs so much that starting it does not count."""

    def model(shape, node, name):
        value = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
        graph = helper.make_graph([node], name, [value("x")], [value("out")])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        made.ir_version = 8
        return made

    on_gpu = target == "cuda"
    matrix, image = ([8192, 8192], [1, 16, 4096, 2048]) if on_gpu else ([1024, 2048], [1, 16, 256, 256])
    negate = helper.make_node("Neg", ["x"], ["out"])
    window = helper.make_node("MaxPool", ["x"], ["out"], kernel_shape=[33, 1], pads=[16, 0, 16, 0])
    yield "all-to-all", model(matrix, negate, "all-to-all"), ["--shard", "x=y,_", "--shard", "out=_,y"]
    yield "all-gather", model(matrix, negate, "all-gather"), ["--shard", "x=y,_", "--shard", "out=_,_"]
    yield "halo", model(image, window, "halo"), ["--shard", "x=_,_,y,_"]
