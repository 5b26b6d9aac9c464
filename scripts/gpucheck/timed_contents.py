# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the profile ten-minutes measures: the programs of each model, and what they are expected to give."""

import dataclasses
import functools
import itertools
import zlib

import bench
import dovetail_models
import numpy as np
from cases import TOLERANCE, Case, fixed_cases, random_case
from dovetail_models.graph import Graph
from harness.partition import Partition
from onnx import TensorProto

from . import expected, inputs, timed_models
from .contents import FIRST_SEED, TF32_TOLERANCE

#: Of the norm of an output. Weights and results of operators are rounded to 11 bits: on CPUs that gives up to 1.1e-3.
F16_TOLERANCE = 1e-2


@dataclasses.dataclass(frozen=True)
class Way:
    """One way to compile a model."""

    math: str = "f32"
    dtype: str = "f32"
    libraries: bool = True
    ranks: int = 1

    @property
    def name(self):
        words = [self.dtype if self.dtype != "f32" else self.math, "" if self.libraries else "no-libraries"]
        return "-".join(filter(None, [*words, "" if self.ranks == 1 else f"{self.ranks}-ranks"]))

    @property
    def tolerance(self):
        return F16_TOLERANCE if self.dtype == "f16" else TF32_TOLERANCE if self.math == "tf32" else TOLERANCE

    def flags(self):
        return [*([] if self.libraries else ["--no-libraries"]), *([] if self.math == "f32" else ["--math", self.math])]


F32, TF32, F16 = Way(), Way(math="tf32"), Way(dtype="f16")
F32_OWN, F16_OWN = Way(libraries=False), Way(dtype="f16", libraries=False)


@dataclasses.dataclass
class Timed:
    """A model, compiled in some ways. `expect(model, inputs of the manifest)` gives boxes, as `expected` has them."""

    name: str
    group: str
    label: str
    build: object
    ways: tuple
    expect: object = None
    shards: dict = dataclasses.field(default_factory=dict)  #: How ranks share tensors.
    is_peer: bool = False  #: PyTorch runs it, too.
    more: dict = dataclasses.field(default_factory=dict)  #: For the manifest.

    def items(self, model):
        """The inputs for the manifest."""
        return [
            {"name": i.name, "shape": dovetail_models.input_shape(i), "dtype": "f32",
             "seed": zlib.crc32(f"{self.name}/{i.name}".encode())}
            for i in dovetail_models.input_infos(model)
        ]  # fmt: skip

    def partition(self, way):
        shards = {name: spec.split(",") for name, spec in self.shards.items()} if way.ranks > 1 else {}
        return Partition({"y": way.ranks}, shards)


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Of the models. All of CPUs' programs run within seconds: they test the script."""

    resnet50: tuple = ()
    swin: tuple = ()
    unet: tuple = ()
    base: int = 64
    images: tuple = (1024, 2048, 4096)
    volumes: tuple = (128, 256)
    volume_base: int = 16
    huge: tuple = (128, 64, 4096, 4096)
    heads: tuple = (16, 128)
    tokens: tuple = (4096, 8192, 16384)
    layer: tuple = (512, 7)
    wide: tuple = (64, 512)  #: Channels, and height and width, of an image larger than caches.
    rows: tuple = (8192, 4096)
    transform: int = 512
    tiles: tuple = (256, 1024, 4096)
    halo_width: int = 1024  #: Of 16 channels in f32: 64 KiB.


_FOR_CPU = Sizes(
    resnet50=(("height", 32), ("width", 32), ("base", 8), ("blocks", (1, 1, 1, 1)), ("classes", 10)),
    swin=(
        *(("height", 32), ("width", 32), ("window", 4), ("size", 16)),
        *(("heads", (2, 4)), ("blocks", (2, 2)), ("classes", 10)),
    ),
    unet=(("height", 32), ("width", 32), ("base", 4)),
    base=4,
    images=(32, 48, 64),
    volumes=(16, 24),
    volume_base=4,
    huge=(16, 16, 64, 64),
    heads=(2, 16),
    tokens=(32, 48, 64),
    layer=(32, 7),
    wide=(8, 32),
    rows=(32, 64),
    transform=32,
    tiles=(16, 32, 64),
    halo_width=16,
)


def _of_workload(stem, sizes):
    """The builder of a model of the benchmarks, at its size there, or at another one."""
    (workload,) = (w for w in bench.WORKLOADS if w.stem == stem)
    return lambda: dovetail_models.build(workload.model, **(dict(workload.sizes) | dict(sizes)))


def _tiled(build):
    """The same model with weights that pack to nothing."""
    return lambda *sizes: timed_models.with_tiled_weights(build(*sizes))


def _whole(model, items):
    return expected.whole(model, inputs.generate({"inputs": items}))


def _models(sizes, ways):
    for name, label, stem, own in (
        ("resnet50", "ResNet-50", "resnet50", sizes.resnet50),
        ("unet512", "U-Net", "unet2d-transposed", sizes.unet),
        ("swin", "Swin-T", "swin", sizes.swin),
    ):
        # Its products need no engine that is compiled at the start.
        more = {"starts_quickly": name == "swin"}
        # Convolutions are what our own kernels are to do better than a library.
        every = ways if name == "swin" else (*ways, F32_OWN)
        yield Timed(name, "model", label, _tiled(_of_workload(stem, own)), every, _whole, is_peer=True, more=more)
    across, shards = tuple(Way(ranks=ranks) for ranks in (1, 2, 4)), {"image": "_,_,y,_"}
    build = _tiled(_of_workload("unet2d-transposed", sizes.unet))
    yield Timed("unet512-ranks", "rank", "U-Net on 1, 2 and 4 ranks", build, across, _whole, shards=shards)


def _unet(base, height, width):
    return dovetail_models.build("unet2d-transposed", height=height, width=width, base=base)


def _large(sizes, ways):
    for usual, extent in zip((1024, 2048, 4096), sizes.images):
        build = _tiled(functools.partial(_unet, sizes.base))

        def expect(model, items, build=build, extent=extent):
            return expected.in_crops(build, items, (extent, extent))

        label = f"U-Net of base {sizes.base}"
        every = (*ways, F32_OWN) if usual == 1024 else ways
        yield Timed(f"unet-{usual}", "large", label, lambda b=build, e=extent: b(e, e), every, expect)
    for usual, extent in zip((128, 256), sizes.volumes):
        own = {"depth": extent, "height": extent, "width": extent, "base": sizes.volume_base}
        build = _tiled(functools.partial(dovetail_models.build, "unet3d", **own))
        label = f"3-D U-Net of base {sizes.volume_base}"
        own = (F32_OWN,) if usual == 128 else ()
        yield Timed(f"unet3d-{usual}", "large", label, build, (*(w for w in ways if w != F16), *own), _whole)
    channels, filters, *extents = sizes.huge
    pool = 16
    build = _tiled(lambda h, w: timed_models.huge_convolution(channels, filters, h, w, pool))

    def expect_huge(model, items):
        return expected.in_crops(build, items, extents, rows=2, columns=4, margin=pool, align=pool, stride=pool)

    shape = f"1×{channels}×{extents[0]}×{extents[1]}"
    ways, more = tuple(w for w in ways if w != F16), {"label": f"a 3×3 convolution, {shape}"}
    yield Timed("huge-convolution", "large", "", lambda: build(*extents), ways, expect_huge, more=more)


#: Scores are up to about 10 with this factor. Few tokens count then, and errors of scores tell.
_SHARPNESS = 6


def _attention(sizes, ways):
    heads, size = sizes.heads
    scale = _SHARPNESS / size**0.5
    for usual, tokens in zip(("4k", "8k", "16k"), sizes.tokens):
        build = functools.partial(timed_models.attention, heads, tokens, size, scale)
        label = f"attention, {heads} heads of {size}, {tokens} tokens"
        more = {"scale": scale, "score_elements": heads * tokens**2}
        expect = lambda model, items: expected.attention(items, scale)
        own = tuple(w for w in ways if w != TF32)
        yield Timed(f"attention-{usual}", "attention", label, build, own, expect, more=more)


def _kernels(sizes, ways):
    plain = tuple(w for w in ways if w != TF32)
    models, part = timed_models, functools.partial
    filters, extent = sizes.layer
    layer = part(models.convolution, extent, filters, 3)
    yield Timed("layer", "layer", f"a 3×3 convolution of {filters} channels", _tiled(layer), ways, _whole)
    channels, extent = sizes.wide
    image, matrix = (extent, channels), sizes.rows
    transforms = (max(1, channels // 2), sizes.transform)
    for name, label, build, own in (
        ("post-operations", "bias, residual and HardSwish behind a convolution", part(models.post_operations, *image),
         (F32,)),
        ("box-copy", "the input of a convolution with uneven pads", part(models.uneven_pads, *image), plain),
        ("movement", "a slice, padded, beside the whole", part(models.movement, *image), plain),
        ("transpose", "a transpose", part(models.transpose, *matrix), plain),
        ("softmax", "a softmax of rows", part(models.softmax, *matrix), plain),
        ("layer-norm", "a layer normalisation of rows", part(models.layer_norm, *matrix), plain),
        ("depthwise", "a depthwise 7×7 convolution", part(models.convolution, *image, 7, channels), (*plain, F32_OWN)),
        ("transform", "a Fourier transform of 2 dimensions", part(models.transform, *transforms), (F32,)),
    ):  # fmt: skip
        yield Timed(name, "kernel", label, _tiled(build), own, _whole)
    for name, extent in zip(("small", "medium", "large"), sizes.tiles):
        build = part(models.product, extent, extent, extent)
        yield Timed(f"tile-{name}", "tile", "a product of our own kernels", build, (F32_OWN, F16_OWN), _of_product)


def _of_product(model, items):
    return expected.product(items)


def _exchanges(sizes):
    """Halos of 64 KiB to 16 MiB, if the width is the usual one, and a change of the dimension that is split."""
    across = tuple(Way(ranks=ranks) for ranks in (2, 4))
    for power, usual in enumerate(("64k", "256k", "1m", "4m", "16m")):
        width = sizes.halo_width * 4**power
        build = functools.partial(timed_models.halo, width, 16, 8)
        shards, more = {"x": "_,_,y,_"}, {"halo_bytes": 16 * width * 4}
        yield Timed(f"halo-{usual}", "rank", "rows of neighbours", build, across, _whole, shards=shards, more=more)
    build = functools.partial(timed_models.negation, sizes.rows[1])
    shards = {"x": "y,_", "y": "_,y"}
    yield Timed("all-to-all", "rank", "rows become columns", build, across, _whole, shards=shards)


def timed(target):
    """All that is measured. Programs for CPUs are small, and these know no TF32."""
    sizes, ways = (Sizes(), (F32, TF32, F16)) if target == "cuda" else (_FOR_CPU, (F32, F16))
    yield from _models(sizes, ways)
    yield from _large(sizes, ways)
    yield from _attention(sizes, ways)
    yield from _kernels(sizes, ways)
    yield from _exchanges(sizes)


def _relu_cases():
    """Relu behind a product and convolutions of elements some of which are NaN or infinite.

    NaN stays NaN in ONNX. cuBLASLt's Relu makes 0 of it, and cuDNN promises nothing for most of its engines.
    """
    rng = np.random.RandomState(5)
    x = rng.standard_normal((1, 64, 32)).astype(np.float32)
    weights, bias = rng.standard_normal((32, 48)).astype(np.float32), rng.standard_normal(48).astype(np.float32)
    x[0, 3], x[0, 9, 0], x[0, 20, 5] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        result = np.maximum(x @ weights + bias, 0)
    graph = Graph("relu", 17)
    product = graph.op("MatMul", graph.input("x", list(x.shape)), graph.weight(weights))
    graph.output(graph.op("Relu", graph.op("Add", product, graph.weight(bias))), "y", 3)
    whole = Partition({"y": 1}, {})
    yield Case("relu-of-nan-product", graph.build(), {"x": x}, whole, TOLERANCE, known={"y": result})
    image = lambda array: np.ascontiguousarray(array.transpose(0, 2, 1).reshape(1, -1, 8, 8))
    graph = Graph("relu", 17)
    kernel = graph.weight(np.ascontiguousarray(weights.T.reshape(48, 32, 1, 1)))
    product = graph.op("Conv", graph.input("x", [1, 32, 8, 8]), kernel, graph.weight(bias))
    graph.output(graph.op("Relu", product), "y", 4)
    yield Case("relu-of-nan-conv", graph.build(), {"x": image(x)}, whole, TOLERANCE, known={"y": image(result)})
    # Windows in f16, of small integers, so that nothing is rounded. With stride 2 no CPU takes Winograd's algorithm,
    # which spreads NaN over its tiles.
    x = rng.randint(-2, 3, (1, 16, 8, 8)).astype(np.float16)
    weights = rng.randint(-1, 2, (32, 16, 3, 3)).astype(np.float16)
    x[0, 3, 2, 2] = np.nan
    padded = np.pad(x.astype(np.float32), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    result = np.maximum(np.einsum("nchwij,ocij->nohw", windows, weights.astype(np.float32)), 0).astype(np.float16)
    graph = Graph("relu", 17)
    image = graph.input("x", list(x.shape), TensorProto.FLOAT16)
    product = graph.op("Conv", image, graph.weight(weights), pads=[1] * 4, strides=[2, 2])
    graph.output(graph.op("Relu", product), "y", 4, TensorProto.FLOAT16)
    yield Case("relu-of-nan-windows", graph.build(), {"x": x}, whole, TOLERANCE, known={"y": result})


def operator_cases():
    """Relu of NaN, some of the fixed cases, by a library and by our kernels, and as many random ones, in turns."""
    fixed = list(fixed_cases().values())
    # A prime number of steps: neighbours are alike.
    chosen = itertools.cycle(fixed[start] for start in range(0, len(fixed), 13))
    yield from _relu_cases()
    for seed in itertools.count(FIRST_SEED):
        case = next(chosen)
        yield case
        yield dataclasses.replace(case, libraries=False)
        yield random_case(2 * seed)
        yield random_case(2 * seed + 1)
