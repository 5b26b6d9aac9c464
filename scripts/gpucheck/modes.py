# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part B: the modes in which a model can be compiled and started, and one convolution alone, in all ways of cuDNN."""

from .ceilings import event_ms
from .measurements import BenchError
from .own_kernels import device_time
from .probe import torch_on_gpu
from .profiler import traced
from .shares import ceiling_kind, share_of_ceiling, work_of

#: (variant of the program, whether algorithms are measured at the start), in their order.
MODES = (("f32", False), ("f32", True), ("tf32", False), ("tf32", True), ("f16", False))
#: How PyTorch runs one layer: (layout, deterministic).
LAYERS = (("NHWC", False), ("NCHW", False), ("NCHW", True), ("NHWC", True))
#: Runs of a layer in one graph, so that the time is not that of a launch.
IN_A_GRAPH = 20


def name_of(variant, autotune):
    return f"{variant} autotuned" if autotune else variant


def modes(check):
    _layers(check)
    jobs = [
        (entry, variant, autotune)
        for variant, autotune in MODES
        for entry in check.entries("model")
        if check.program(entry, variant) and (check.on_gpu or not autotune)
    ]
    for entry, variant, autotune in check.each(jobs, lambda job: f"{job[0]['name']} {name_of(*job[1:])}"):
        program = check.program(entry, variant)
        reply = check.measure(entry, program, autotune)
        percent = share_of_ceiling(work_of(entry, program), reply.get("ms"), check.ceilings, ceiling_kind(program))
        check.add({"name": entry["name"], "variant": name_of(variant, autotune), "percent": percent, **reply})
    _candidates(check)


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
    jobs = [
        (entry, variant, autotune)
        for variant, autotune in MODES
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
