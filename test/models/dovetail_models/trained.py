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


def _deps():
    """Where fetched files lie: $DOVETAIL_DEPS, or .deps of the checkout."""
    return pathlib.Path(os.environ.get("DOVETAIL_DEPS", _ROOT / ".deps"))


def _fetched(file):
    if not file.exists():
        raise FileNotFoundError(f"{file} is missing: run scripts/fetch-models")
    return file


def trained_path(name):
    """The file of the trained model `name`; see FILES."""
    return _fetched(_deps() / "models" / FILES[name])


def picture_path(name):
    """The file of the picture `name`, such as page.png."""
    return _fetched(_deps() / "pictures" / name)


def trained(name):
    """The trained model `name`; see FILES."""
    return onnx.load(trained_path(name))
