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
    ("swin", "CUDA graph, NCHW", "f32"),
    ("resnet50", "CUDA graph", "tf32"),
    ("unet512", "CUDA graph", "tf32"),
    ("swin", "CUDA graph", "tf32"),
    ("resnet50", "CUDA graph", "f16"),
    ("unet512", "CUDA graph", "f16"),
    ("swin", "CUDA graph", "f16"),
    ("resnet50", "eager", "f32"),
    ("unet512", "eager", "f32"),
    ("resnet50", "compile, CUDA graph", "tf32"),
    ("unet512", "compile, CUDA graph", "tf32"),
    ("resnet50", "JAX", "f32"),
    ("unet512", "JAX", "f32"),
)
NOT_MEASURED = "TensorRT and ONNX Runtime's CUDA build are not on these machines: neither is measured."
#: Of the start of our program, of a cell in which PyTorch measures algorithms, and of one in which it compiles.
START_SECONDS, CELL_SECONDS, COMPILE_SECONDS = 45, 45, 60
#: A program is started with its algorithms measured if part T has seen that this takes less, in seconds.
MOST_AUTOTUNED = 15
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
    absent, slow = {}, set()
    for entry, how, variant in check.each(jobs, lambda job: f"{job[0]['name']}: {job[1]}, {job[2]}", least=6):
        row = {"name": entry["name"], "variant": f"{how}, {variant}", "how": how, "program": variant}
        library = "JAX" if how == "JAX" else "PyTorch"
        if not check.on_gpu:
            reply = {"status": "skipped", "message": "peers are measured on a GPU only"}
        elif library in absent:
            reply = {"status": "skipped", "message": absent[library]}
        else:
            row["autotuned"] = is_autotuned(check, entry, variant) and (entry["name"], variant) not in slow
            reply = _ask(check, entry, variant, how, row["autotuned"])
            if reply.pop("start", False) and reply["status"] == "late":
                slow.add((entry["name"], variant))
        if reply["status"] == "late":
            # The process is lost with all programs in it, which says nothing about them.
            reply["status"] = "unfinished"
        if reply["status"] == "absent":
            absent[library] = reply["message"]
        check.add(row | reply)


def is_autotuned(check, entry, variant):
    """Whether our program is to measure its algorithms when it starts, by the seconds that this took in part T.

    Part E comes before part T, so that it does not wait for this. It may go on after it.
    """
    wanted = {"part": "T", "name": entry["name"], "variant": f"{variant} autotuned", "status": "ok"}
    tried = [m for m in check.report.data["measurements"] if all(m[key] == wanted[key] for key in wanted)]
    return bool(tried) and not check.smoke and tried[0].get("start_s", MOST_AUTOTUNED) < MOST_AUTOTUNED


def _ask(check, entry, variant, how, autotune):
    """The reply about a cell. Our program starts in a request of its own: what it takes is not the peer's time."""
    request = {"entry": entry, "program": check.program(entry, variant), "autotune": autotune}
    reply = check.ask("timed_peers.start", START_SECONDS, **request)
    if reply["status"] != "ok":
        return reply | {"start": True}
    seconds = COMPILE_SECONDS if "compile" in how else CELL_SECONDS
    rounds, runs = check.iterations(ROUNDS), check.iterations(RUNS)
    return check.ask("timed_peers.cell", seconds, how=how, rounds=rounds, runs=runs, **request)


# In the process with PyTorch.


def _torch_peer(package, entry, program, how, values):
    from . import peers

    graph, constants = peers.read_graph(package, entry)
    half = program.get("dtype") == "f16"
    given = inputs.generate(entry, "f32")
    return peers.pytorch(graph, constants, given, "cuda", peers.PYTORCH[how], program["math"], half)


def _jax_peer(package, entry, program, how, values):
    try:
        import jax
    except ImportError as error:
        raise Absent(f"JAX is not here: {error}") from error
    from . import jax_model, peers

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
        # Our programs, and the next peer, find the memory that this peer had.
        gc.collect()
        torch.cuda.empty_cache()


#: Our programs that run in this process, by file and by whether algorithms were measured: starting one takes seconds.
_running = {}


def start(package, request):
    """Starts our program, or compares it again where it runs already. A wrong or failed program ends the cell."""
    import dovetail

    torch_on_gpu()
    try:
        return _started(package, request).result
    except dovetail.DovetailError as error:
        return {"status": "error", "message": str(error), "code": error.code}


def alone(package, request):
    """Time of our program, which goes on running here for its cells: what `probe.run` replies."""
    import dovetail

    torch_on_gpu()
    try:
        ours = _started(package, request)
        found = {"start_s": ours.resident.start_s, "device_bytes": ours.resident.device_bytes}
        times = {}
        if ours.result["status"] == "ok":
            times = measure(ours.resident.run, repetitions=request["repetitions"], warm_up=request["warm_up"])
        result = ours.finish()
    except dovetail.DovetailError as error:
        return {"status": "error", "message": str(error), "code": error.code}
    return result | found | (times if result["status"] == "ok" else {})


def release(package, request):
    """Ends our programs that run here."""
    while _running:
        _running.popitem()[1].resident.close()
    return {"status": "ok", "message": ""}


def _started(package, request):
    """Our program, whose results were compared once more if it ran for another cell before."""
    key = request["program"]["file"], request["autotune"]
    if key in _running:
        _running[key].check_again()
    else:
        _running[key] = Checked(package, request)
        loaded.remember("Dovetail")
    return _running[key]


def _cell(torch, package, request):
    entry, program, how = request["entry"], request["program"], request["how"]
    side = "JAX" if how == "JAX" else "PyTorch"
    # `start` has begun it, and compared it, unless the process has ended since.
    ours = _running.get((program["file"], request["autotune"])) or _started(package, request)
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
