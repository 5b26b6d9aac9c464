# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of the end-to-end tests, with their inputs and expected outputs, kept on disk."""

import dataclasses
import functools
import hashlib
import pathlib

import dovetail_models
import numpy as np
from dovetail_models import page, token_inputs

from harness.backend import build_dir
from harness.partition import MESHES, Partition, sizes_with_empty_shard, uneven_sizes

STYLES = ("balanced", "uneven", "empty")


@dataclasses.dataclass(frozen=True)
class Subject:
    """A model as it is tested.

    `split` gives for each mesh axis the (input dimension) that it cuts. `shape` is stated to the
    compiler with --shape where the model leaves it open, and `dims` with --dim.
    """

    name: str
    model: str
    sizes: tuple = ()
    input: str = "image"
    shape: tuple = ()
    dims: tuple = ()
    split: tuple = (("y", 2), ("x", 3))
    #: Gives the input, or all of them by name, where random ones would not do.
    make_input: object = None
    #: Compiling and running takes long: only a few partitions unless all are asked for.
    heavy: bool = False

    def flags(self):
        flags = []
        if self.dims:
            for name, size in self.dims:
                flags += ["--dim", f"{name}={size}"]
        elif self.shape:
            flags += ["--shape", f"{self.input}={','.join(map(str, self.shape))}"]
        return flags

    def made_inputs(self):
        """What `make_input` gives, by name."""
        made = self.make_input()
        return made if isinstance(made, dict) else {self.input: made}

    def partition(self, mesh, style):
        """The input's dimensions cut over `mesh`, in one of STYLES."""
        partition = Partition(dict(mesh))
        extents = self.prepared().inputs[self.input].shape
        for axis, dim in self.split:
            if axis not in mesh:
                continue
            sizes = None
            if style == "uneven":
                sizes = uneven_sizes(extents[dim], mesh[axis])
            elif style == "empty":
                sizes = sizes_with_empty_shard(extents[dim], mesh[axis])
            partition.split(self.input, len(extents), dim, axis, sizes)
        return partition

    @functools.lru_cache(maxsize=4)
    def prepared(self):
        return _prepare(self)


@dataclasses.dataclass
class Prepared:
    path: pathlib.Path
    inputs: dict
    expected: dict


def _fingerprint():
    """Changes when the code that makes models and inputs does."""
    digest = hashlib.sha256()
    folder = pathlib.Path(dovetail_models.__file__).parent
    for file in (*sorted(folder.glob("*.py")), pathlib.Path(__file__)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _prepare(subject):
    folder = build_dir() / "test-models" / _fingerprint()
    folder.mkdir(parents=True, exist_ok=True)
    path, arrays = folder / f"{subject.name}.onnx", folder / f"{subject.name}.npz"
    if not arrays.exists():
        model = dovetail_models.build(subject.model, **dict(subject.sizes))
        if subject.make_input:
            inputs = subject.made_inputs()
        else:
            shapes = {subject.input: subject.shape} if subject.shape else None
            inputs = dovetail_models.random_inputs(model, seed=7, shapes=shapes)
        expected = dovetail_models.run_onnxruntime(model, inputs)
        _write(path, lambda file: file.write(model.SerializeToString()))
        values = {f"input/{n}": v for n, v in inputs.items()}
        values |= {f"output/{n}": v for n, v in expected.items()}
        _write(arrays, lambda file: np.savez(file, **values))
    with np.load(arrays) as file:
        values = {name: file[name] for name in file.files}
    return Prepared(path, _below("input/", values), _below("output/", values))


def _write(path, write):
    """All or nothing: tests of several processes share the folder."""
    import os

    partial = path.with_name(f"{path.name}.{os.getpid()}")
    with open(partial, "wb") as file:
        write(file)
    partial.replace(path)


def _below(prefix, values):
    return {name[len(prefix) :]: v for name, v in values.items() if name.startswith(prefix)}


_LIGHT_INPUTS = {"resnet50": "gpu_0/data_0", "shufflenet": "gpu_0/data_0", "zfnet512": "gpu_0/data_0"}
_LARGE = ("bvlc_alexnet", "vgg19", "zfnet512")

SUBJECTS = [
    *(
        Subject(
            f"light-{name}",
            f"light-{name}",
            input=_LIGHT_INPUTS.get(name, "data_0"),
            heavy=name in _LARGE,
        )
        for name in dovetail_models.LIGHT
    ),
    Subject(
        "ppocr-det",
        "ppocr-det",
        input="x",
        shape=(1, 3, 480, 640),
        make_input=lambda: page.detection_input(page.text_page(480, 640)),
    ),
    Subject(
        "ppocr-cls",
        "ppocr-cls",
        input="x",
        shape=(3, 3, 48, 192),
        split=(("y", 3), ("x", 0)),
        make_input=lambda: page.orientation_input(page.text_page(), 3),
    ),
    Subject("unet2d-transposed", "unet2d-transposed", sizes=(("base", 8),)),
    Subject("unet2d-bilinear", "unet2d-bilinear", sizes=(("base", 8),)),
    Subject(
        "unet2d-dynamic",
        "unet2d-bilinear",
        sizes=(("base", 4), ("batch", "N"), ("height", "H"), ("width", "W")),
        shape=(2, 3, 101, 77),
        dims=(("N", 2), ("H", 101), ("W", 77)),
    ),
    Subject("unet3d", "unet3d", input="volume", split=(("y", 3), ("x", 4))),
    Subject("resnet50", "resnet50"),
    Subject("vit", "vit"),
    Subject(
        "vit-encoder",
        "vit-encoder",
        sizes=(("batch", 3), ("length", 197)),
        input="tokens",
        split=(("y", 1), ("x", 0)),
    ),
    Subject(
        "llama",
        "llama",
        sizes=(("batch", 2), ("length", 53), ("layers", 2), ("width", 16), ("inner", 344)),
        input="ids",
        split=(("y", 1), ("x", 0)),
        make_input=lambda: token_inputs(2, 53),
    ),
    Subject(
        "gpt",
        "gpt",
        sizes=(("batch", 2), ("length", 47), ("layers", 2)),
        input="ids",
        split=(("y", 1), ("x", 0)),
        make_input=lambda: token_inputs(2, 47),
    ),
    Subject(
        "bert-dynamic",
        "bert",
        sizes=(("batch", "N"), ("length", "L"), ("layers", 2)),
        input="ids",
        shape=(3, 41),
        dims=(("N", 3), ("L", 41)),
        split=(("y", 1), ("x", 0)),
        make_input=lambda: token_inputs(3, 41, mask=True),
    ),
    Subject("swin", "swin", sizes=(("batch", 2),)),
    Subject("swin-v2", "swin-v2", sizes=(("batch", 2),)),
    Subject("swin-gathered", "swin", sizes=(("batch", 2), ("size", 24), ("is_folded", False))),
    Subject(
        "graph-network",
        "graph-network",
        input="nodes",
        split=(("y", 0), ("x", 1)),
        make_input=dovetail_models.graph_inputs,
    ),
    Subject("dgcnn", "dgcnn", input="cloud", split=(("y", 2), ("x", 0))),
    Subject("experts", "experts", input="tokens", split=(("y", 1), ("x", 0))),
    Subject("convnext", "convnext"),
    Subject("mobilenet-v3-small", "mobilenet-v3-small", sizes=(("height", 101), ("width", 77))),
    Subject("efficientnet-b0", "efficientnet-b0", sizes=(("height", 67), ("width", 58))),
    Subject(
        "dcgan",
        "dcgan",
        sizes=(("batch", 2), ("channels", (64, 32, 16, 8))),
        input="code",
        split=(("y", 1), ("x", 0)),
    ),
    # The widest windows reach beyond the features, and beyond what a rank has of them.
    Subject("segmenter", "segmenter", sizes=(("height", 101), ("width", 77), ("base", 8))),
    Subject(
        "wavenet",
        "wavenet",
        sizes=(("batch", 2), ("length", 211), ("channels", 16), ("stacks", 1)),
        input="signal",
        split=(("y", 2), ("x", 0)),
    ),
    Subject(
        "byte-cnn",
        "byte-cnn",
        sizes=(("batch", 2), ("length", 203), ("channels", 24)),
        input="text",
        split=(("y", 1), ("x", 0)),
    ),
    Subject("deformable-pyramid", "deformable-pyramid", sizes=(("height", 101), ("width", 77))),
    Subject("bilstm", "bilstm", input="signal", split=(("y", 0), ("x", 1))),
    Subject(
        "gru-encoder",
        "gru-encoder",
        input="ids",
        split=(("y", 0), ("x", 1)),
        make_input=lambda: token_inputs(3, 30),
    ),
    Subject("loop-decoder", "loop-decoder", input="memory", split=(("y", 1), ("x", 0))),
    Subject(
        "cached-step",
        "cached-step",
        input="keys_0",
        split=(("y", 2), ("x", 1)),
        make_input=dovetail_models.cached_inputs,
    ),
    Subject(
        "cached-loop",
        "cached-loop",
        input="values_0",
        split=(("y", 1), ("x", 0)),
        make_input=dovetail_models.cached_inputs,
    ),
    Subject("scan-filter", "scan-filter", input="signal", split=(("y", 2), ("x", 1))),
    Subject("relaxation", "relaxation", input="field", make_input=dovetail_models.relaxation_inputs),
    Subject("fno2d", "fno2d", input="field"),
    Subject("fno2d-torch", "fno2d-torch", input="field"),
    Subject("afno", "afno", input="fields"),
    Subject("fno3d", "fno3d", input="field", split=(("y", 4), ("x", 2))),
]

#: The same kinds of models, small enough for a device that is emulated on the CPU.
SMALL_SUBJECTS = [
    Subject(
        "small-ppocr-det",
        "ppocr-det",
        input="x",
        shape=(1, 3, 64, 96),
        make_input=lambda: page.detection_input(page.text_page(64, 96)),
    ),
    Subject("small-ppocr-cls", "ppocr-cls", input="x", shape=(1, 3, 48, 64)),
    Subject(
        "small-unet2d-transposed", "unet2d-transposed", sizes=(("base", 4), ("height", 61), ("width", 45))
    ),
    Subject("small-unet2d-bilinear", "unet2d-bilinear", sizes=(("base", 4), ("height", 53), ("width", 41))),
    Subject(
        "small-unet3d",
        "unet3d",
        sizes=(("base", 4), ("depth", 9), ("height", 13), ("width", 17)),
        input="volume",
        split=(("y", 3), ("x", 4)),
    ),
    Subject("small-vit", "vit", sizes=(("height", 64), ("width", 48), ("size", 32))),
    Subject(
        "small-vit-encoder",
        "vit-encoder",
        sizes=(("length", 37), ("size", 32)),
        input="tokens",
        split=(("y", 1), ("x", 0)),
    ),
]


def combinations(everything):
    """(subject, mesh, style) to test: all of them, or a few of each subject."""
    for subject in SUBJECTS:
        for mesh in MESHES:
            for style in STYLES if mesh != {"y": 1} else STYLES[:1]:
                if everything or _is_chosen(subject, mesh, style):
                    yield subject, mesh, style


def _is_chosen(subject, mesh, style):
    key = ("x".join(map(str, mesh.values())), style)
    if subject.heavy:
        return key == ("3", "uneven")
    return key in (("1", "balanced"), ("3", "uneven"), ("4", "empty"), ("2x2", "uneven"))
