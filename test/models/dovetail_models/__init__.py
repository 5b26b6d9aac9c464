# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real model graphs with seeded random weights, and trained ones, for tests and benchmarks.

    python -m dovetail_models unet2d-bilinear -o unet.onnx --size height=512 --size width=W
"""

import functools

from . import light as _light
from .afno import afno
from .bert import bert
from .byte_cnn import byte_cnn
from .cached import cached_inputs, cached_loop, cached_step
from .convert import with_element_type
from .convnext import convnext
from .dcgan import dcgan
from .deformable import deformable_pyramid
from .dgcnn import dgcnn
from .experts import experts
from .fno import fno2d, fno3d
from .fno_torch import fno2d_torch
from .gpt import gpt
from .graph_network import graph_inputs, graph_network
from .light import NAMES as LIGHT
from .inputs import (
    input_infos,
    input_shape,
    onnxruntime_session,
    random_inputs,
    run_onnxruntime,
    token_inputs,
)
from .llama import llama
from .mobile import efficientnet_b0, mobilenet_v3_small
from .recurrent import bilstm, gru_encoder, loop_decoder, scan_filter
from .relaxation import relaxation, relaxation_inputs
from .rounding import rounded_weights, run_exactly, run_rounding_each
from .resnet import resnet18, resnet50
from .segmenter import segmenter
from .swin import swin
from .swin2 import swin_v2
from .trained import FILES as TRAINED
from .trained import trained, trained_path
from .unet2d import unet2d
from .unet3d import unet3d
from .vit import vit, vit_encoder
from .wavenet import wavenet
from .weather import weather

BUILDERS = {
    "unet2d-transposed": functools.partial(unet2d, "transposed"),
    "unet2d-bilinear": functools.partial(unet2d, "bilinear"),
    "unet3d": unet3d,
    "vit": vit,
    "vit-encoder": vit_encoder,
    "weather": weather,
    "llama": llama,
    "gpt": gpt,
    "bert": bert,
    "swin": swin,
    "swin-v2": swin_v2,
    "convnext": convnext,
    "mobilenet-v3-small": mobilenet_v3_small,
    "efficientnet-b0": efficientnet_b0,
    "dcgan": dcgan,
    "wavenet": wavenet,
    "segmenter": segmenter,
    "byte-cnn": byte_cnn,
    "deformable-pyramid": deformable_pyramid,
    "bilstm": bilstm,
    "gru-encoder": gru_encoder,
    "loop-decoder": loop_decoder,
    "scan-filter": scan_filter,
    "relaxation": relaxation,
    "fno2d": fno2d,
    "fno3d": fno3d,
    "fno2d-torch": fno2d_torch,
    "afno": afno,
    "dgcnn": dgcnn,
    "cached-step": cached_step,
    "cached-loop": cached_loop,
    "graph-network": graph_network,
    "experts": experts,
    "resnet18": resnet18,
    "resnet50": resnet50,
    **{f"light-{name}": functools.partial(_light.light, name) for name in LIGHT},
    **{name: functools.partial(trained, name) for name in TRAINED},
}


def build(name, **sizes):
    """The model `name`; a size that is a string becomes a symbolic dimension."""
    return BUILDERS[name](**sizes)
