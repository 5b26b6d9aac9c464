# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A large page of text made from real pictures, and its preparation for PP-OCR."""

import numpy as np

from .trained import picture_path

# What PP-OCRv4 detection was trained with, for channels in the order blue, green, red.
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


def _picture(name):
    """A grey picture as an array of bytes."""
    from PIL import Image

    return np.asarray(Image.open(picture_path(name)).convert("L"))


def _fitted(picture, width):
    """The picture scaled to `width`."""
    from PIL import Image

    height = round(picture.shape[0] * width / picture.shape[1])
    resized = Image.fromarray(picture).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(resized)


def text_page(height=1472, width=2048):
    """A page (height, width) of bytes: columns of scanned text at several sizes, mirrored and light
    on dark in places."""
    page, text = _picture("page.png"), _picture("text.png")
    blocks = [page, 255 - page, page[:, ::-1], page, text, 255 - page[:, ::-1]]
    canvas = np.full((height, width), 242, np.uint8)
    gap = max(4, width // 80)
    left, column = gap, 0
    while width - left > 2 * gap:
        wanted = round((0.27, 0.38, 0.22, 0.3)[column % 4] * max(width, 640))
        right = left + wanted
        if width - right < 8 * gap:
            right = width - gap
        top = gap - 3 * gap * column
        row = 0
        while top < height - gap:
            block = _fitted(blocks[(2 * column + row) % len(blocks)], right - left)
            _paste(canvas, block, top, left, height - gap)
            top += block.shape[0] + gap
            row += 1
        left = right + gap
        column += 1
    return canvas


def _paste(canvas, block, top, left, bottom):
    """Pastes what of the block lies between row 0 and row `bottom`."""
    if top < 0:
        block, top = block[-top:], 0
    target = canvas[top : min(bottom, top + block.shape[0]), left : left + block.shape[1]]
    target[:] = block[: target.shape[0], : target.shape[1]]


def detection_input(page):
    """The page as PP-OCRv4 detection takes it: (1, 3, height, width), normalised.

    Height and width must be multiples of 32.
    """
    if page.shape[0] % 32 or page.shape[1] % 32:
        raise ValueError(f"a page of {page.shape} is not a multiple of 32 in both directions")
    colours = np.repeat(page[None, :, :, None], 3, axis=3).astype(np.float32) / 255
    return np.ascontiguousarray(((colours - _MEAN) / _DEVIATION).transpose(0, 3, 1, 2))


def orientation_input(page, count=1, height=48, width=192):
    """Strips of the page as PP-OCR orientation takes them: (count, 3, height, width)."""
    strips = [page[100 + 97 * i :, 60 + 211 * i :][:height, :width] for i in range(count)]
    values = np.stack(strips).astype(np.float32) / 127.5 - 1
    return np.repeat(values[:, None], 3, axis=1)
