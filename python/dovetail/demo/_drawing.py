# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the picture as ranks share it, and the cells that they found."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

# Okabe and Ito's colours, which people with any vision tell apart.
_RANKS = ((0, 114, 178), (230, 159, 0), (204, 121, 167), (86, 180, 233))
_CELLS = (0, 158, 115)
_SCALE = 2


def _tinted(grey, colour, strength):
    return grey[..., None] * (1 - strength) + np.array(colour) * strength


def _outlines(mask):
    inner = mask.copy()
    for axis in (0, 1):
        for step in (-1, 1):
            inner &= np.roll(mask, step, axis)
    return mask & ~inner


def draw(picture, mask, parts):
    """Returns an Image: left the picture, with a colour for each rank's rows; right the cells found, and the cuts.

    `picture` and `mask` are float32 [height, width]; `parts` are the slices of the rows of each rank.
    """
    grey = np.clip(picture / 1.1, 0, 1) * 255
    left, right = np.empty((*grey.shape, 3)), np.repeat(grey[..., None], 3, axis=2)
    for colour, rows in zip(_RANKS, parts):
        left[rows] = _tinted(grey[rows], colour, 0.35)
    found = mask > 0.5
    right[found] = _tinted(grey[found], _CELLS, 0.45)
    right[_outlines(found)] = _CELLS
    height, width = grey.shape
    page = np.concatenate([left, np.full((height, 4 * _SCALE, 3), 255.0), right], axis=1)
    image = Image.fromarray(page.astype(np.uint8))
    image = image.resize((image.width // _SCALE, image.height // _SCALE), Image.Resampling.BOX)
    canvas = ImageDraw.Draw(image)
    font = ImageFont.load_default()
    for rank, rows in enumerate(parts):
        top = rows.start // _SCALE
        if rank:
            canvas.line([(0, top), (image.width, top)], fill="white")
        label = f"rank {rank}: rows {rows.start} to {rows.stop - 1}"
        box = canvas.textbbox((8, top + 6), label, font=font)
        canvas.rectangle([box[0] - 3, box[1] - 3, box[2] + 3, box[3] + 3], fill=_RANKS[rank % len(_RANKS)])
        canvas.text((8, top + 6), label, fill="black" if rank else "white", font=font)
    return image
