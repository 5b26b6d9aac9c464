# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trained models taken from Python packages by scripts/fetch-models."""

import os
import pathlib

import onnx

_ROOT = pathlib.Path(__file__).resolve().parents[3]

FILES = {
    "ppocr-det": "ch_PP-OCRv4_det_infer.onnx",
    "ppocr-cls": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
}


def folder():
    """Where fetched models and pictures lie: $DOVETAIL_MODELS, or .deps/models of the checkout."""
    return pathlib.Path(os.environ.get("DOVETAIL_MODELS", _ROOT / ".deps" / "models"))


def path(name):
    """The file of a trained model or picture; FileNotFoundError says how to get it."""
    file = folder() / FILES.get(name, name)
    if not file.exists():
        raise FileNotFoundError(f"{file} is missing: run scripts/fetch-models")
    return file


def trained(name):
    """The trained model `name`; see FILES."""
    return onnx.load(path(name))
