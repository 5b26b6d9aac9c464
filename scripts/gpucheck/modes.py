# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts B and T: the modes of a model, first as it starts by default, and one convolution alone in all ways of cuDNN."""

from .ceilings import event_ms
from .measurements import BenchError
from .own_kernels import device_time
from .probe import torch_on_gpu
from .profiler import traced
from .rules import OWN
from .shares import ceiling_kind, share_of_ceiling, work_of

#: Variants of programs in the order of part B; one without a library starts at once. Part T starts some with algorithms measured, which takes longer.
MODES = ("f32", OWN, "tf32", "f16")
TUNED = ("f32", "tf32")
#: How PyTorch runs one layer: (layout, deterministic).
LAYERS = (("NHWC", False), ("NCHW", False), ("NCHW", True), ("NHWC", True))
#: Runs of a layer in one graph, so that the time is not that of a launch.
IN_A_GRAPH = 20


def name_of(variant, autotune):
    return f"{variant} autotuned" if autotune else variant


def modes(check):
    """Part B."""
    _layers(check)
    _models(check, MODES, False)


def tuned(check):
    """Part T, and then all engines that were looked at."""
    if not check.on_gpu:
        check.report.say("skipped", "a program for CPUs measures no algorithms")
        return
    _models(check, TUNED, True)
    _candidates(check)


def _models(check, variants, autotune):
    jobs = [(entry, v) for v in variants for entry in check.entries("model") if check.program(entry, v)]
    for entry, variant in check.each(jobs, lambda job: f"{job[0]['name']} {name_of(job[1], autotune)}"):
        program = check.program(entry, variant)
        reply = _alone(check, entry, program) if not autotune else check.measure(entry, program, autotune)
        percent = share_of_ceiling(work_of(entry, program), reply.get("ms"), check.ceilings, ceiling_kind(program))
        check.add({"name": entry["name"], "variant": name_of(variant, autotune), "percent": percent, **reply})


def _alone(check, entry, program):
    """What `TimedCheck.measure` replies. A program that peers are compared with starts once: there, where they are."""
    if check.on_gpu and entry.get("graph") and program["libraries"]:
        count = {"repetitions": check.iterations(50), "warm_up": check.iterations(10)}
        reply = check.ask("timed_peers.alone", 60, entry=entry, program=program, autotune=False, **count)
        if reply["status"] != "absent":
            return reply
    return check.measure(entry, program)


def _layers(check):
    jobs = [(entry, how) for entry in check.entries("layer") for how in (None, *LAYERS)]
    for entry, how in check.each(jobs, lambda job: job[0]["name"]) if jobs else ():
        if how is None:
            for variant, autotune in (("f32", False), ("f32", True)) if check.on_gpu else (("f32", False),):
                if program := check.program(entry, variant):
                    reply, events = traced(check, entry, program, 50, autotune=autotune)
                    row = {"name": entry["name"], "variant": name_of(variant, autotune), "layer": True, **reply}
                    check.add(row | (device_time(events) if reply["status"] == "ok" else {}))
            continue
        layout, deterministic = how
        row = {"name": entry["name"], "variant": f"torch {layout}{' deterministic' if deterministic else ''}"}
        row |= {"layer": True, "layout": layout, "deterministic": deterministic, "peer": True}
        if not check.on_gpu:
            check.add(row | {"status": "skipped", "message": "PyTorch is measured on a GPU only"})
            continue
        check.add(row | check.ask("modes.layer", 30, layout=layout, deterministic=deterministic, smoke=check.smoke))


def _candidates(check):
    """What the libraries were asked and what was chosen, with the time that is left: starting up takes seconds."""
    if check.smoke or not check.on_gpu:
        return
    modes = [(v, autotune) for v in MODES for autotune in (False, True) if v != OWN and (v in TUNED or not autotune)]
    jobs = [
        (entry, variant, autotune)
        for variant, autotune in modes
        for entry in check.entries("model", "layer")
        if check.program(entry, variant)
    ]
    for entry, variant, autotune in check.each(jobs, lambda job: f"{job[0]['name']}: engines", least=8):
        row = {"name": entry["name"], "variant": f"{name_of(variant, autotune)}: engines"}
        try:
            found = check.bench(entry, check.program(entry, variant), 10, ["--autotune"] if autotune else [])
            check.add(
                row | {"status": "ok", "bench_ms": found["median_ms"], "start_s": found["start_ms"] / 1000,
                       "implementations": found["implementations"], "memory": found.get("memory")}
            )  # fmt: skip
        except BenchError as error:
            check.add(row | {"status": error.status, "message": str(error)})


# In the process with PyTorch.

#: The layer: images, channels in, channels out, extent of the image, extent of the kernel.
LAYER = (1, 512, 512, 7, 3)


def layer(package, request):
    """Milliseconds of one 3x3 convolution of 512 channels at 7x7 in f32, of many in one CUDA graph."""
    torch = torch_on_gpu()
    images, channels, filters, extent, taps = LAYER
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = True, request["deterministic"]
    memory_format = torch.channels_last if request["layout"] == "NHWC" else torch.contiguous_format
    x = torch.randn(images, channels, extent, extent, device="cuda").contiguous(memory_format=memory_format)
    weight = torch.randn(filters, channels, taps, taps, device="cuda").contiguous(memory_format=memory_format)
    count = 1 if request["smoke"] else IN_A_GRAPH

    def run():
        for _ in range(count):
            result = torch.nn.functional.conv2d(x, weight, padding=taps // 2)
        return result

    expected = torch.nn.functional.conv2d(x.double(), weight.double(), padding=taps // 2)
    error = float((run().double() - expected).abs().max() / expected.abs().max())
    from .peers import graphed

    replay = graphed(run)
    ms = event_ms(torch, replay, 1 if request["smoke"] else 20) / count
    replay = None
    torch.cuda.empty_cache()
    status = "ok" if error < 1e-4 else "differs"
    message = "" if status == "ok" else f"off by {error:.3g} of the largest value"
    return {"status": status, "message": message, "error": error} | ({"ms": ms} if status == "ok" else {})
