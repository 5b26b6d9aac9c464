# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A picture of cells as a fluorescence microscope takes them, drawn from a seed, with the mask of the cells."""

import numpy as np


def draw(seed, height, width, cells):
    """Returns the picture, float32 [height, width] with values from 0 to about 1, and its mask, bool [height, width].

    Cells are ellipses with soft rims and grains inside; light falls off to one side, and all pixels have noise.
    """
    random = np.random.RandomState(seed)
    picture = np.zeros((height, width))
    mask = np.zeros((height, width), bool)
    for _ in range(cells):
        radius, flat, angle = random.uniform(9, 24), random.uniform(0.6, 1), random.uniform(0, np.pi)
        y, x, brightness = random.uniform(0, height), random.uniform(0, width), random.uniform(0.25, 0.7)
        top, left = max(int(y - radius) - 6, 0), max(int(x - radius) - 6, 0)
        bottom, right = min(int(y + radius) + 7, height), min(int(x + radius) + 7, width)
        part = np.s_[top:bottom, left:right]
        rows, columns = np.mgrid[part]
        along = (columns - x) * np.cos(angle) + (rows - y) * np.sin(angle)
        across = (rows - y) * np.cos(angle) - (columns - x) * np.sin(angle)
        # Pixels from the rim, above 0 inside.
        inside = radius * flat * (1 - np.hypot(along / radius, across / (radius * flat)))
        shape = np.clip(inside / 3 + 0.5, 0, 1)
        grains = 1 + 0.25 * np.sin(along / 2 + radius) * np.sin(across / 2)
        picture[part] = np.maximum(picture[part], brightness * shape * grains)
        mask[part] |= shape > 0.5
    light = 0.15 + 0.2 * np.linspace(0, 1, width) + 0.1 * np.linspace(1, 0, height)[:, None]
    picture = picture * (0.7 + light) + light + random.normal(0, 0.04, picture.shape)
    return picture.astype(np.float32), mask
