# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the cells of a picture on four ranks that have different numbers of rows.

Compiles a small network for four ranks and for one, runs both in this process, compares their results, and
draws what the ranks found.
"""

import argparse
import pathlib
import shutil
import sys
import time

import numpy as np

import dovetail
from dovetail.demo import _drawing, _picture

ROWS = (300, 212, 256, 232)
WIDTH = 1200
SEED, CELLS = 99, 420


def _timed(action):
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def _fastest(action, repetitions=5):
    """The result of `action` and the least seconds that it takes."""
    return min((_timed(action) for _ in range(repetitions)), key=lambda timed: timed[1])


def main():
    parser = argparse.ArgumentParser(prog="python -m dovetail.demo", description=__doc__)
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=pathlib.Path("dovetail-demo.png"),
        metavar="FILE",
        help="the picture to draw (default: dovetail-demo.png)",
    )
    parser.add_argument("--cpu", help="the CPU to compile for (default: that of this machine)")
    parser.add_argument("--save", type=pathlib.Path, metavar="FILE", help="save the mask as a NumPy array, too")
    parser.add_argument(
        "--files",
        type=pathlib.Path,
        metavar="FOLDER",
        help="only write cells.onnx and picture.npy, to try the commands with",
    )
    arguments = parser.parse_args()

    model = pathlib.Path(__file__).with_name("cells.onnx")
    picture, _ = _picture.draw(SEED, sum(ROWS), WIDTH, CELLS)
    if arguments.files:
        arguments.files.mkdir(parents=True, exist_ok=True)
        shutil.copy(model, arguments.files)
        np.save(arguments.files / "picture.npy", picture[None, None])
        return 0
    dims = {"height": sum(ROWS), "width": WIDTH}
    split = {"mesh": {"y": len(ROWS)}, "shard": {"picture": "_,_,y,_"}, "sizes": {"picture:2": ROWS}}
    # Rows of equal numbers would take less time, so a plan would depart from these.
    split["follow"] = 100
    program = dovetail.compile(model, dims=dims, cpu=arguments.cpu, **split)
    whole = dovetail.compile(model, dims=dims, cpu=arguments.cpu)

    inputs = {"picture": picture[None, None]}
    mask, on_ranks = _fastest(lambda: program.run(inputs)["mask"])
    expected, on_one = _fastest(lambda: whole.run(inputs)["mask"])
    difference = float(np.abs(mask - expected).max())

    parts = [program.part("picture", rank)[2] for rank in range(len(ROWS))]
    image = _drawing.draw(picture, mask[0, 0], parts)
    with arguments.out.open("wb") as file:
        image.save(file, "png")
    if arguments.save:
        np.save(arguments.save, mask)
    for line in program.summary.splitlines()[:3]:
        print(line)
    print(f"ran       in {on_ranks * 1e3:.1f} ms; one rank: {on_one * 1e3:.1f} ms")
    print(f"verified  largest difference from one rank {difference:.1e}, values are from 0 to 1; see {arguments.out}")
    return 0 if difference < 1e-5 else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (dovetail.DovetailError, OSError) as error:
        sys.exit(f"dovetail.demo: error: {error}")
