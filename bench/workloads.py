# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models that are measured, at their usual sizes."""

import dataclasses

import dovetail_models
import numpy as np
from dovetail_models import page, random_inputs, token_inputs, with_element_type


@dataclasses.dataclass(frozen=True)
class Workload:
    """A model at the size at which it is measured, on one rank."""

    label: str
    model: str
    sizes: tuple = ()
    #: (input, shape) that is stated to the compiler, as the model leaves it open.
    shape: tuple = ()
    #: The NumPy type of inputs, weights and outputs.
    dtype: str = "float32"
    #: Of its files, where sizes tell it from another one.
    file: str = ""

    @property
    def stem(self):
        """Of its files."""
        name = self.file or self.model
        return name if self.dtype == "float32" else f"{name}-{self.dtype}"

    def build(self):
        model = dovetail_models.build(self.model, **dict(self.sizes))
        return model if self.dtype == "float32" else with_element_type(model, self.dtype)

    def make_inputs(self, model):
        """All inputs by name."""
        if self.model == "ppocr-det":
            name, shape = self.shape
            return {name: page.detection_input(page.text_page(*shape[2:]))}
        names = [info.name for info in dovetail_models.input_infos(model)]
        if "ids" in names:
            (batch, length) = dovetail_models.input_shape(dovetail_models.input_infos(model)[0])
            return token_inputs(batch, length, mask="mask" in names)
        inputs = random_inputs(model, seed=3)
        return {n: v.astype(self.dtype) if np.issubdtype(v.dtype, np.floating) else v for n, v in inputs.items()}

    def flags(self):
        """Of `dovetail compile`."""
        if not self.shape:
            return []
        name, shape = self.shape
        return ["--shape", f"{name}={','.join(map(str, shape))}"]


_224 = (("height", 224), ("width", 224))
_512 = (("height", 512), ("width", 512))
_64 = (("depth", 64), ("height", 64), ("width", 64))
_TOKENS = (("length", 128), ("positions", 128))

RESNET18 = Workload("ResNet-18", "resnet18")
WORKLOADS = (
    RESNET18,
    Workload("ResNet-50", "resnet50"),
    Workload("VGG-19", "light-vgg19"),
    Workload("DenseNet-121", "light-densenet121"),
    Workload("Inception v2", "light-inception_v2"),
    Workload("SqueezeNet", "light-squeezenet"),
    Workload("MobileNetV3-small", "mobilenet-v3-small"),
    Workload("EfficientNet-B0", "efficientnet-b0"),
    Workload("ConvNeXt-T", "convnext", (*_224, ("blocks", (3, 3, 9, 3)), ("base", 96), ("classes", 1000))),
    Workload(
        "Swin-T",
        "swin",
        (
            *_224,
            ("window", 7),
            ("size", 96),
            ("heads", (3, 6, 12, 24)),
            ("blocks", (2, 2, 6, 2)),
            ("classes", 1000),
        ),
    ),
    Workload("ViT-Tiny", "vit", (*_224, ("size", 192), ("heads", 3), ("blocks", 12), ("classes", 1000))),
    Workload(
        "BERT, 4 × 512, 128 tokens", "bert", (*_TOKENS, ("layers", 4), ("heads", 8), ("size", 512))
    ),
    Workload("GPT, 4 × 512, 128 tokens", "gpt", (*_TOKENS, ("layers", 4), ("heads", 8), ("size", 512))),
    Workload("Llama-like, 4 × 256, 211 tokens", "llama"),
    Workload("U-Net, transposed convolutions", "unet2d-transposed", _512),
    Workload("U-Net, bilinear", "unet2d-bilinear", _512),
    Workload("3-D U-Net, 64³", "unet3d", _64),
    Workload("PP-OCRv4 detection, 736 × 1280", "ppocr-det", shape=("x", (1, 3, 736, 1280))),
    Workload("DCGAN, 64 × 80", "dcgan"),
    Workload("ShuffleNet", "light-shufflenet"),
    Workload("Segmentation by ASPP, 257²", "segmenter"),
    Workload("WaveNet, 4 000 samples", "wavenet"),
    Workload("CNN of 2 048 bytes", "byte-cnn"),
)
