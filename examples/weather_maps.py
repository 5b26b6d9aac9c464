# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws fields on a grid of latitudes and longitudes, and where it is cut."""

import re

import numpy as np
from PIL import Image, ImageDraw, ImageFont

_MAP = (540, 270)
_GAP, _HEAD, _SIDE = 14, 40, 118
_INK, _PAPER = (33, 37, 41), (255, 255, 255)
_CUT = (20, 20, 20)
# From cold to warm.
_COLOURS = np.array(
    [(24, 48, 120), (48, 126, 184), (150, 205, 220), (246, 242, 220), (246, 186, 110), (214, 84, 56), (120, 20, 36)],
    np.float32,
)


def parse_cuts(sharding):
    """Where the last two dimensions of a sharding, as `inspect` prints it, are cut, without the ends."""
    cuts = []
    for entry in re.findall(r"[^\[\],\s][^,\]]*", sharding)[-2:]:
        sizes = [int(size) for size in re.findall(r"\d+", entry.split(":")[-1])] if ":" in entry else []
        cuts.append([int(position) for position in np.cumsum(sizes)[:-1]])
    return cuts


def _paint(field):
    """Colours for numbers of which most lie in [-1, 1]."""
    place = np.clip((field + 1) / 2, 0, 1) * (len(_COLOURS) - 1)
    low = np.minimum(place.astype(int), len(_COLOURS) - 2)
    share = (place - low)[..., None]
    return (_COLOURS[low] * (1 - share) + _COLOURS[low + 1] * share).astype(np.uint8)


def _shrink(field):
    """The field at the points of the map."""
    rows = np.linspace(0, field.shape[0] - 1, _MAP[1]).round().astype(int)
    columns = (np.arange(_MAP[0]) * field.shape[1]) // _MAP[0]
    return np.asarray(field[rows][:, columns], np.float32)


def draw(files, titles, variables, cuts):
    """A picture: a row for each of the first variables, a column for each file, of shape (1, variables, rows, columns)."""
    font, small = ImageFont.load_default(18), ImageFont.load_default(15)
    size = (_SIDE + len(files) * (_MAP[0] + _GAP), _HEAD + len(variables) * (_MAP[1] + _GAP))
    picture = Image.new("RGB", size, _PAPER)
    pen = ImageDraw.Draw(picture)
    for row, variable in enumerate(variables):
        top = _HEAD + row * (_MAP[1] + _GAP)
        pen.text((10, top + _MAP[1] // 2), variable, _INK, small)
        for column, (path, title) in enumerate(zip(files, titles)):
            left = _SIDE + column * (_MAP[0] + _GAP)
            fields = np.load(path, mmap_mode="r")
            height, width = fields.shape[-2:]
            picture.paste(Image.fromarray(_paint(_shrink(fields[0, row]))), (left, top))
            for cut in cuts[0]:
                y = top + round(cut / height * _MAP[1])
                pen.line([(left, y), (left + _MAP[0] - 1, y)], _CUT, 2)
            for cut in cuts[1]:
                x = left + round(cut / width * _MAP[0])
                pen.line([(x, top), (x, top + _MAP[1] - 1)], _CUT, 2)
            pen.rectangle([left, top, left + _MAP[0] - 1, top + _MAP[1] - 1], outline=_INK)
            if row == 0:
                pen.text((left, 10), title, _INK, font)
            edges = [[0, *cuts[0], height], [0, *cuts[1], width]]
            for number in range((len(edges[0]) - 1) * (len(edges[1]) - 1)):
                band, strip = divmod(number, len(edges[1]) - 1)
                pen.text(
                    (left + edges[1][strip] / width * _MAP[0] + 6, top + edges[0][band] / height * _MAP[1] + 5),
                    f"rank {number}",
                    _INK,
                    small,
                    stroke_width=2,
                    stroke_fill=_PAPER,
                )
    return picture
