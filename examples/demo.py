#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the text of a large page on four ranks of uneven heights.

Compiles PP-OCRv4 text detection, a trained model, for a page of 1472 x 2048 pixels cut into four
bands, runs it on four ranks, compares with ONNX Runtime on the whole page, and draws what it found.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "test" / "models"))

import render  # noqa: E402
from dovetail_models import onnxruntime_session, trained_path  # noqa: E402
from dovetail_models.page import detection_input, text_page  # noqa: E402

HEIGHT, WIDTH = 1472, 2048
# Deliberately odd: no cut falls on a multiple of a stride of the model.
ROWS = (211, 523, 289, 449)
TOLERANCE = 1e-4


def call(*command):
    """Runs a tool, with its messages shown; ends the demo if it fails."""
    result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"demo: error: {pathlib.Path(command[0]).name} {command[1]} failed; see above")
    return result.stdout


def timed(action):
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def print_partition():
    top = 0
    print("\nPartition of the page:")
    for rank, rows in enumerate(ROWS):
        print(f"  rank {rank}   rows {top:4} to {top + rows - 1:4}   {rows:4} rows")
        top += rows


def print_exchanges(exchanges):
    """One line for each kind of exchange; returns the bytes of all."""
    counts, sizes = collections.Counter(), collections.Counter()
    for exchange in exchanges:
        for move in exchange["moves"]:
            counts[move["class"]] += 1
            sizes[move["class"]] += move["bytes"]
    print("\nExchanges of one run, all ranks together:")
    for kind, size in sizes.most_common():
        print(f"  {counts[kind]:4} x {kind:<16} {size / 1e6:10.3f} MB")
    return sum(sizes.values())


def compare(found, expected):
    """The largest difference over the largest value expected."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "demo-out")
    arguments = parser.parse_args()
    dovetail = arguments.build / "bin" / "dovetail"
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)

    page = text_page(HEIGHT, WIDTH)
    image = detection_input(page)
    np.save(out / "page.npy", image)
    model, artifact = trained_path("ppocr-det"), out / "detection.dvt"

    print(f"Compiling {model.name} for {len(ROWS)} ranks ...", flush=True)
    partition = ["--mesh", f"y={len(ROWS)}", "--shard", "x=_,_,y,_"]
    partition += ["--sizes", "x:2=" + ",".join(map(str, ROWS))]
    shape = ["--shape", f"x=1,3,{HEIGHT},{WIDTH}"]
    _, seconds = timed(lambda: call(dovetail, "compile", model, "-o", artifact, *partition, *shape))
    print(f"  {artifact}, {artifact.stat().st_size / 1e6:.1f} MB, {seconds:.1f} s")
    print_partition()
    plan = json.loads(call(dovetail, "inspect", "--json", artifact))
    exchanged = print_exchanges(plan["exchanges"])

    print(f"\nRunning on {len(ROWS)} ranks ...", flush=True)
    output = "sigmoid_0.tmp_0"
    call(
        dovetail, "run", artifact, "--threads", os.cpu_count(),
        "--input", f"x=@{out / 'page.npy'}", "--output", f"{output}={out / 'probability.npy'}",
    )  # fmt: skip
    found = np.load(out / "probability.npy")
    # As the model states it: ONNX Runtime's own optimisations change its result by as much as the tolerance here.
    expected = onnxruntime_session(model, optimise=False).run([output], {"x": image})[0]
    difference = compare(found, expected)
    print(f"Largest difference to ONNX Runtime, whose optimisations are off: {difference:.1e} of the largest value")

    cuts = np.cumsum([0, *ROWS]).tolist()
    boxes = render.find_text(found[0, 0])
    crossing = sum(box.crosses(cuts) for box in boxes)
    notes = [
        f"PP-OCRv4 on {HEIGHT} x {WIDTH} pixels. {exchanged / 1e6:.1f} MB exchanged. "
        f"Largest difference to ONNX Runtime: {difference:.1e} of the largest value.",
        f"{len(boxes)} regions of text; {crossing} of them (red) cross a cut and are found whole.",
    ]
    picture = out / "text.png"
    title = f"Text detection on {len(ROWS)} ranks of uneven heights"
    render.draw(page, cuts, boxes, title, notes).save(picture)
    print(f"{len(boxes)} regions of text found, {crossing} of them across a cut: see {picture}")
    if not difference <= TOLERANCE:
        sys.exit(f"demo: error: the difference exceeds {TOLERANCE:.0e}")


if __name__ == "__main__":
    main()
