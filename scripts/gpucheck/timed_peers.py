# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part E: our programs against PyTorch and JAX in one process, in turns, with inputs and outputs on the device."""

import gc
import time

from . import inputs, loaded
from .probe import Absent, Checked, compare, measure, summary, torch_on_gpu

#: (model, how the peer runs, variant of our program), in the order of what they are worth. "how" is of peers.PYTORCH.
CELLS = (
    ("resnet50", "CUDA graph, NCHW", "f32"),
    ("unet512", "CUDA graph, NCHW", "f32"),
    ("resnet50", "CUDA graph", "tf32"),
    ("unet512", "CUDA graph", "tf32"),
    ("swin", "CUDA graph, NCHW", "f32"),
    ("resnet50", "CUDA graph", "f16"),
    ("unet512", "CUDA graph", "f16"),
    ("swin", "CUDA graph", "tf32"),
    ("swin", "CUDA graph", "f16"),
    ("resnet50", "eager", "f32"),
    ("unet512", "eager", "f32"),
    ("resnet50", "compile, CUDA graph", "tf32"),
    ("unet512", "compile, CUDA graph", "tf32"),
    ("resnet50", "JAX", "f32"),
    ("unet512", "JAX", "f32"),
)
NOT_MEASURED = "TensorRT and ONNX Runtime's CUDA build are not on these machines: neither is measured."
#: Of a cell in which algorithms are measured at the start, and of one in which PyTorch compiles.
CELL_SECONDS, COMPILE_SECONDS = 25, 60
#: Both sides take turns so often, with so many runs each.
ROUNDS, RUNS = 5, 10
#: Peers round as they like: of the norm of an output.
MOST_DISTANCE = 1e-2


def cells(entries):
    """[(entry, how, variant)] of what the package has, in order."""
    by_name = {entry["name"]: entry for entry in entries}
    return [
        (by_name[name], how, variant)
        for name, how, variant in CELLS
        if name in by_name and any(p["variant"] == variant for p in by_name[name]["programs"])
    ]


def peers(check):
    check.report.data["not measured"] = NOT_MEASURED
    jobs = [job for job in cells(check.entries("model")) if job[0].get("graph")]
    absent = {}
    for entry, how, variant in check.each(jobs, lambda job: f"{job[0]['name']}: {job[1]}, {job[2]}", least=6):
        row = {"name": entry["name"], "variant": f"{how}, {variant}", "how": how, "program": variant}
        library = "JAX" if how == "JAX" else "PyTorch"
        if not check.on_gpu:
            reply = {"status": "skipped", "message": "peers are measured on a GPU only"}
        elif library in absent:
            reply = {"status": "skipped", "message": absent[library]}
        else:
            seconds = COMPILE_SECONDS if "compile" in how else CELL_SECONDS
            reply = check.ask(
                "timed_peers.cell", seconds, entry=entry, program=check.program(entry, variant), how=how,
                autotune=True, rounds=check.iterations(ROUNDS), runs=check.iterations(RUNS),
            )  # fmt: skip
        if reply["status"] == "absent":
            absent[library] = reply["message"]
        check.add(row | reply)


# In the process with PyTorch.


def _torch_peer(package, entry, program, how, values):
    from . import peers

    graph, constants = peers.read_graph(package, entry)
    half = program.get("dtype") == "f16"
    given = inputs.generate(entry, "f32")
    return peers.pytorch(graph, constants, given, "cuda", peers.PYTORCH[how], program["math"], half)


def _jax_peer(package, entry, program, how, values):
    from . import jax_model, peers

    try:
        import jax
    except ImportError as error:
        raise Absent(f"JAX is not here: {error}") from error
    if jax.default_backend() != "gpu":
        raise Absent(f"JAX {jax.__version__} finds no GPU")
    graph, constants = peers.read_graph(package, entry)
    return jax_model.runner(graph, constants, values, program["math"])


def turns(sides, rounds, runs):
    """Seconds of each of `sides`, which are pairs (run, wait), in turns: what else the device does hits all."""
    times = [[] for _ in sides]
    for _ in range(rounds):
        for own, (run, wait) in zip(times, sides):
            # The first run after the other side's finds caches that are not its own.
            run()
            wait()
            for _ in range(runs):
                start = time.perf_counter()
                run()
                wait()
                own.append(time.perf_counter() - start)
    return times


def cell(package, request):
    """One cell of the table: the peer's verdict and time as "ms", ours as "ours_ms"; uploads apart."""
    torch = torch_on_gpu()
    try:
        return _cell(torch, package, request)
    finally:
        # What the peer kept goes back to the device.
        gc.collect()
        torch.cuda.empty_cache()


#: Our programs that run in this process, by file: starting one, with its algorithms measured, takes seconds.
_running = {}


def _started(package, request):
    """Our program, whose results were compared once more if it ran for another cell before."""
    file = request["program"]["file"]
    if file in _running:
        _running[file].check_again()
    else:
        _running[file] = Checked(package, request)
    return _running[file]


def _cell(torch, package, request):
    entry, program, how = request["entry"], request["program"], request["how"]
    side = "JAX" if how == "JAX" else "PyTorch"
    ours = _started(package, request)
    if ours.result["status"] != "ok":
        return ours.result
    loaded.remember("Dovetail")
    prepare = _jax_peer if how == "JAX" else _torch_peer
    wide = program | {"math": "tf32", "tolerance": max(MOST_DISTANCE, program["tolerance"])}
    try:
        run, wait, outputs, version = prepare(package, entry, program, how, ours.values)
        found = compare(package, entry, outputs(), wide)
        for _ in range(3):
            run()
        wait()
    except Absent:
        raise
    except Exception as error:
        # It says nothing about our program.
        return {"status": "peer failed", "message": f"{type(error).__name__}: {error}"}
    found["version"] = version
    if found["status"] != "ok":
        return found | {"status": "peer failed"}
    own, peer = turns([(ours.resident.run, lambda: None), (run, wait)], request["rounds"], request["runs"])
    result = ours.finish()
    uploads = _uploads(torch, ours, request["runs"])
    # It has loaded what it needs.
    loaded.remember(side)
    if result["status"] != "ok":
        return result
    libraries = {name: loaded.used_by(name) for name in ("Dovetail", side)}
    mine, theirs = summary(own), summary(peer)
    found |= theirs | {"ours_ms": mine["ms"], "ours_min_ms": mine["min_ms"], "ratio": mine["ms"] / theirs["ms"]}
    found |= {"libraries": libraries, "not_comparable": loaded.unequal(*libraries.values())}
    return found | uploads | {"ours_error": result["error"], "ours_start_s": ours.resident.start_s}


def _uploads(torch, ours, runs):
    """Milliseconds of PyTorch's copy of the inputs from ordinary memory, and of a run of ours with this copy."""
    arrays = list(ours.values.values())
    given = ours.resident.from_host(ours.values)
    copied = measure(lambda: [torch.from_numpy(a).to("cuda") for a in arrays], torch.cuda.synchronize, runs, 2)
    with_copy = measure(lambda: ours.resident.run(given), lambda: None, runs, 2)
    return {"upload_ms": copied["ms"], "ours_from_host_ms": with_copy["ms"],
            "input_bytes": sum(a.nbytes for a in arrays)}  # fmt: skip
