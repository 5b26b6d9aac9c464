# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the page of the demo: which rank holds which rows, and the text that was found."""

import dataclasses

import numpy as np
from PIL import Image, ImageDraw, ImageFont

# One hue for each rank, readable on white, and one for text that crosses a cut.
_RANK_COLOURS = ((38, 110, 196), (15, 140, 110), (196, 122, 16), (134, 78, 176))
_CROSSING_COLOUR = (214, 40, 57)
_INK = (33, 37, 41)
_FAINT = (108, 117, 125)


@dataclasses.dataclass
class TextBox:
    """A region of text in pixels of the page, half-open."""

    left: int
    top: int
    right: int
    bottom: int

    def crosses(self, cuts):
        return any(self.top < cut < self.bottom for cut in cuts)


def find_text(probability, threshold=0.3, smallest=150, growth=1.9):
    """The boxes of connected regions above `threshold`, grown as the model's training shrank them."""
    boxes = []
    for left, top, right, bottom, area in _regions(probability > threshold):
        if area < smallest:
            continue
        margin = growth * area / (2 * (right - left + bottom - top))
        boxes.append(
            TextBox(
                max(0, round(left - margin)),
                max(0, round(top - margin)),
                min(probability.shape[1], round(right + margin)),
                min(probability.shape[0], round(bottom + margin)),
            )
        )
    return boxes


def _regions(mask):
    """(left, top, right, bottom, area) of each connected region, by joining runs row by row."""
    parents, extents = [], []

    def root(run):
        while parents[run] != run:
            run = parents[run]
        return run

    def join(a, b):
        a, b = root(a), root(b)
        if a == b:
            return
        parents[b] = a
        x, y = extents[a], extents[b]
        extents[a] = (min(x[0], y[0]), min(x[1], y[1]), max(x[2], y[2]), max(x[3], y[3]), x[4] + y[4])

    above = []
    for row, pixels in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], pixels.astype(np.int8), [0]])))
        runs = []
        for left, right in edges.reshape(-1, 2).tolist():
            run = len(parents)
            parents.append(run)
            extents.append((left, row, right, row + 1, right - left))
            for other, (other_left, other_right) in above:
                if other_left < right and left < other_right:
                    join(other, run)
            runs.append((run, (left, right)))
        above = runs
    return [extents[run] for run in range(len(parents)) if parents[run] == run]


def draw(page, cuts, boxes, title, notes, width=1600):
    """The page with a coloured band for each rank and the boxes on it; returns a picture.

    `cuts` are the P + 1 positions that bound the ranks' rows; `notes` are lines set below the title.
    """
    scale = width / page.shape[1]
    height = round(page.shape[0] * scale)
    margin, gutter = 36, 190
    header = 96 + 30 * len(notes)
    size = (gutter + width + margin, header + height + margin)
    picture = Image.new("RGB", size, "white")
    picture.paste(_tinted(page, cuts, (width, height), scale), (gutter, header))
    canvas = ImageDraw.Draw(picture, "RGBA")

    canvas.text((margin, 30), title, _INK, ImageFont.load_default(38))
    for line, note in enumerate(notes):
        canvas.text((margin, 88 + 30 * line), note, _FAINT, ImageFont.load_default(22))
    for rank in range(len(cuts) - 1):
        top, bottom = (header + round(c * scale) for c in cuts[rank : rank + 2])
        _label(canvas, rank, cuts[rank], cuts[rank + 1], margin, gutter, top, bottom)
    for cut in cuts[1:-1]:
        y = header + round(cut * scale)
        canvas.line([(gutter, y), (gutter + width, y)], fill=(*_INK, 200), width=2)
    for box in boxes:
        crossing = box.crosses(cuts)
        rank = _rank_of(box, cuts)
        colour = _CROSSING_COLOUR if crossing else _RANK_COLOURS[rank % len(_RANK_COLOURS)]
        corners = [
            (gutter + box.left * scale, header + box.top * scale),
            (gutter + box.right * scale, header + box.bottom * scale),
        ]
        canvas.rounded_rectangle(
            corners,
            radius=4,
            fill=(*colour, 40),
            outline=(*colour, 255),
            width=4 if crossing else 2,
        )
    return picture


def _rank_of(box, cuts):
    return int(np.searchsorted(cuts, (box.top + box.bottom) / 2, side="right")) - 1


def _tinted(page, cuts, size, scale):
    """The page scaled to `size`, each band washed with its rank's colour."""
    grey = np.asarray(Image.fromarray(page).resize(size, Image.Resampling.LANCZOS), np.float32)
    # Darkest tone lifted, so that the boxes stand out on dark pictures too.
    tone = (60 + grey * (195 / 255))[:, :, None]
    colours = np.zeros((size[1], 1, 3), np.float32)
    for rank in range(len(cuts) - 1):
        top, bottom = (round(c * scale) for c in cuts[rank : rank + 2])
        colours[top:bottom] = _RANK_COLOURS[rank % len(_RANK_COLOURS)]
    wash = 255 - 0.16 * (255 - colours)
    return Image.fromarray((tone * wash / 255).clip(0, 255).astype(np.uint8))


def _label(canvas, rank, first, last, left, right, top, bottom):
    colour = _RANK_COLOURS[rank % len(_RANK_COLOURS)]
    canvas.rectangle([(right - 16, top + 2), (right - 6, bottom - 2)], fill=colour)
    middle = (top + bottom) // 2
    canvas.text((left, middle - 32), f"rank {rank}", colour, ImageFont.load_default(28))
    small = ImageFont.load_default(18)
    canvas.text((left, middle + 4), f"{first} to {last - 1}", _FAINT, small)
    canvas.text((left, middle + 26), f"{last - first} rows", _FAINT, small)
