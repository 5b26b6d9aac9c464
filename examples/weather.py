#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forecasts the weather of a world on a grid of 0.1 degrees, on four ranks that MPI connects.

The model is a U-Net with seeded random weights, periodic in longitude. Its output is its input in the next step
(`compile --feedback`): ranks keep their parts of it, and exchange borders only. The state at first is a file of which
each rank reads its part; each step is written to a file of its own, and the last one compared with that of one rank.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "test" / "models"))

import weather_maps  # noqa: E402
from dovetail_models import weather  # noqa: E402

import onnx  # noqa: E402

VARIABLES = ("temperature", "pressure", "humidity", "wind east", "wind north", "clouds", "rain", "ozone")
# Bands of latitude: each goes around the world, so that no rank needs another one for that.
MESH = {"lat": 4}
TOLERANCE = 1e-4

# Runs a rank, and says what it took: the peak of its memory, and the bytes that it read of files and sockets.
_WATCH = """
import json, os, resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
read = int(open("/proc/self/io").readline().split()[1])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0"))
with open(os.path.join(sys.argv[1], f"rank{rank}.json"), "w") as file:
    json.dump({"peak": peak, "read": read}, file)
sys.exit(code)
"""


def call(*command):
    """Runs a tool, with its messages shown; ends the example if it fails."""
    command = [str(part) for part in command]
    start = time.perf_counter()
    if subprocess.run(command).returncode:
        sys.exit(f"weather: error: {' '.join(command)} failed; see above")
    return time.perf_counter() - start


def _rows(path, shape, make, chunk=64):
    """Writes an array of float32 some rows of latitude at a time."""
    array = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    for top in range(0, shape[-2], chunk):
        array[..., top : top + chunk, :] = make(np.arange(top, min(top + chunk, shape[-2])))
    array.flush()
    return path


def write_inputs(out, height, width, steps, seed=0):
    """Files with the state at first, the ground, and the sun in each step, as `weather` takes them."""
    longitude = np.linspace(0, 2 * np.pi, width, endpoint=False, dtype=np.float32)
    waves = np.random.default_rng(seed).uniform(-1, 1, (len(VARIABLES), 6, 3)).astype(np.float32)

    def latitude(rows):
        return ((0.5 - rows / (height - 1)) * np.pi).astype(np.float32)[:, None]

    def state(rows):
        phi = latitude(rows)
        fields = []
        for variable in waves:
            field = 0.8 * np.cos(phi) - 0.3 + 0 * longitude
            for number, (amplitude, east, north) in enumerate(variable, 1):
                field = field + 0.4 * amplitude * np.cos(phi) ** 2 * np.sin(
                    (2 * number + 1) * longitude + 3 * east + (number + 5 * north) * phi
                )
            fields.append(field)
        return np.stack(fields)[None]

    def ground(rows):
        phi = latitude(rows)
        hills = np.sin(3 * longitude + 1) * np.cos(2 * phi) + 0.5 * np.sin(7 * longitude) * np.sin(5 * phi)
        return np.stack([np.maximum(hills, 0), (hills > 0.2).astype(np.float32)])[None]

    def sun(rows):
        phi = latitude(rows)
        hours = 2 * np.pi * np.arange(steps, dtype=np.float32)[:, None, None] / 24
        return np.maximum(np.cos(phi) * np.cos(longitude - hours), 0)[:, None, None]

    return {
        "state": _rows(out / "state.npy", (1, len(VARIABLES), height, width), state),
        "ground": _rows(out / "ground.npy", (1, 2, height, width), ground),
        # One dimension more than the model takes: a part of it is read in each step.
        "sun": _rows(out / "sun.npy", (steps, 1, 1, height, width), sun),
    }


def compile_model(dovetail, model, artifact, mesh=None):
    flags = ["--feedback", "next:state"]
    if mesh:
        flags += ["--mesh", ",".join(f"{axis}={size}" for axis, size in mesh.items()), "--shard", "state=_,_,lat,_"]
        flags += ["--objective", "bytes"]
    return call(dovetail, "compile", model, "-o", artifact, *flags)


def cuts_of(run, artifact):
    """Where rows and columns of the state are cut, without the ends."""
    report = json.loads(subprocess.run([run, "inspect", artifact, "--json"], capture_output=True, check=True).stdout)
    state = next(port for port in report["inputs"] if port["name"] == "state")
    assert state["fed_by"] == "next", state
    return weather_maps.parse_cuts(state["sharding"]), report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "weather-out")
    parser.add_argument("--height", type=int, default=1801, help="rows of latitude, poles included")
    parser.add_argument("--width", type=int, default=3600, help="columns of longitude, a multiple of 4")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    arguments = parser.parse_args()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    dovetail, run = (arguments.build / "bin" / name for name in ("dovetail", "dovetail-run"))
    height, width, steps = arguments.height, arguments.width, arguments.steps
    ranks = int(np.prod(list(MESH.values())))

    onnx.save(weather(height=height, width=width), out / "weather.onnx")
    inputs = write_inputs(out, height, width, steps)
    size = inputs["state"].stat().st_size
    print(f"World: {height} x {width} points, {len(VARIABLES)} variables, {size / 1e6:.1f} MB; {steps} steps")
    compile_model(dovetail, out / "weather.onnx", out / "weather.dvt", MESH)
    compile_model(dovetail, out / "weather.onnx", out / "one.dvt")
    cuts, report = cuts_of(run, out / "weather.dvt")
    received = sum(rank["received_bytes"] for rank in report["ranks"])
    print(f"Cuts: rows {cuts[0]}; ranks exchange {received / 1e6:.2f} MB in each step")

    flags = [part for name, path in inputs.items() for part in ("--input", f"{name}=@{path}")]
    flags += ["--threads", arguments.threads]
    (out / "steps").mkdir(exist_ok=True)
    (out / "one").mkdir(exist_ok=True)
    watch = [sys.executable, "-c", _WATCH, out]
    launcher = ["mpirun", "-n", ranks, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    seconds = call(
        *launcher, *watch, run, "run", out / "weather.dvt", "--comm", "mpi", *flags, "--steps", steps,
        "--output", f"next={out}/steps/{{step}}.npy",
    )  # fmt: skip
    print(f"\n{ranks} ranks: {seconds:.1f} s for {steps} steps, start and files included")
    for rank in range(ranks):
        taken = json.loads((out / f"rank{rank}.json").read_text())
        print(f"  rank {rank}   read {taken['read'] / 1e6:8.1f} MB   peak memory {taken['peak'] / 1e6:8.1f} MB")
    seconds = call(
        *watch, run, "run", out / "one.dvt", *flags, "--steps", steps, "--output", f"next={out}/one/{{step}}.npy"
    )
    taken = json.loads((out / "rank0.json").read_text())
    print(f"1 rank: {seconds:.1f} s, peak memory {taken['peak'] / 1e6:.1f} MB")

    worst = 0.0
    for step in range(1, steps + 1):
        pair = [np.load(out / kind / f"{step:04}.npy", mmap_mode="r") for kind in ("steps", "one")]
        # NaN stays, unlike with `max`.
        difference = np.max(
            [np.abs(pair[0][:, :, top : top + 64] - pair[1][:, :, top : top + 64]).max() for top in range(0, height, 64)]
        )
        worst = float(np.maximum(worst, difference / np.abs(pair[1][:, 0]).max()))
    print(f"Largest difference from one rank in any step: {worst:.1e} of the largest value")
    picture = weather_maps.draw(
        [inputs["state"], *(out / "steps" / f"{step:04}.npy" for step in sorted({(steps + 1) // 2, steps}))],
        ["at first", *(f"step {step}" for step in sorted({(steps + 1) // 2, steps}))],
        VARIABLES[:3],
        cuts,
    )
    picture.save(out / "weather.png")
    print(f"Picture: {os.path.relpath(out / 'weather.png')}")
    if not worst < TOLERANCE:
        sys.exit(f"weather: error: the ranks differ from one rank by more than {TOLERANCE}")


if __name__ == "__main__":
    main()
