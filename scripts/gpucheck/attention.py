# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part D: attention that stores its scores, against PyTorch's scaled_dot_product_attention, with the memory of both."""

import gc
import math
import re
import traceback

from . import inputs
from .ceilings import event_ms
from .own_kernels import device_time
from .probe import compare, torch_on_gpu
from .profiler import traced
from .shares import ceiling_kind, share_of_ceiling, work_of

#: Backends of PyTorch by the type of the elements; the first two have 16 bits only.
BACKENDS = {"f16": ("CUDNN_ATTENTION", "FLASH_ATTENTION"), "f32": ("EFFICIENT_ATTENTION", "MATH")}
#: Rounding to 16 bits at other places moves a result so far, of its norm.
TOLERANCE = 2e-2


def score_bytes(entry, dtype):
    """Bytes of all scores, where they are stored: one number for each query and key of each head."""
    query, key = entry["inputs"][0]["shape"], entry["inputs"][1]["shape"]
    return math.prod(query[:-1]) * key[-2] * (2 if dtype == "f16" else 4)


def attention(check):
    jobs = []
    for entry in check.entries("attention"):
        for program in entry["programs"]:
            jobs.append((entry, program, None))
            jobs += [(entry, program, backend) for backend in BACKENDS.get(program.get("dtype", "f32"), ())]
    for entry, program, backend in check.each(jobs, lambda job: f"{job[0]['name']} {job[1]['variant']} {job[2] or ''}"):
        variant = f"torch {backend} {program['variant']}" if backend else program["variant"]
        row = {"name": entry["name"], "variant": variant, "peer": bool(backend)}
        if backend is None:
            reply, events = traced(check, entry, program, 20, warm_up=3)
            row["score_bytes"] = score_bytes(entry, program.get("dtype", "f32"))
            row |= device_time(events) if reply["status"] == "ok" else {}
        elif not check.on_gpu:
            reply = {"status": "skipped", "message": "PyTorch is measured on a GPU only"}
        else:
            request = {"entry": entry, "program": program, "backend": backend}
            reply = check.ask("attention.sdpa", 30, repetitions=check.iterations(20), **request)
            # A peer that fails says nothing about our programs.
            if reply["status"] in ("error", "differs"):
                reply |= {"status": "peer failed"}
        work, kind = work_of(entry, program), ceiling_kind(program)
        ms = row["device_us"] / 1000 if row.get("device_us") else reply.get("ms")
        row["percent"] = share_of_ceiling(work, ms, check.ceilings, kind)
        check.add(row | reply)


# In the process with PyTorch.


def sdpa(package, request):
    """Milliseconds of the device and bytes of one backend, whose result is compared with the samples."""
    torch = torch_on_gpu()
    try:
        return _sdpa(torch, package, request)
    except Exception as error:
        # The error would keep the tensors.
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        # The next program of ours finds the memory that the tensors had.
        gc.collect()
        torch.cuda.empty_cache()


def _sdpa(torch, package, request):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    entry, program = request["entry"], request["program"]
    values = inputs.generate(entry, program.get("dtype"))
    given = [torch.from_numpy(value).to("cuda") for value in values.values()][:3]
    # Backends take images of heads: four dimensions.
    given = [value.reshape((1,) * (4 - value.dim()) + tuple(value.shape)) for value in given]
    run = lambda: torch.nn.functional.scaled_dot_product_attention(*given, scale=entry.get("scale"))
    torch.backends.cuda.matmul.allow_tf32 = program.get("math") == "tf32"
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with torch.inference_mode(), sdpa_kernel(getattr(SDPBackend, request["backend"])):
        try:
            result = run()
            torch.cuda.synchronize()
        except RuntimeError as error:
            if not re.search(r"No (available kernel|viable backend)|out of memory", str(error)):
                raise
            return {"status": "peer failed", "message": str(error)}
        used = torch.cuda.max_memory_allocated() - before
        name = entry["sample_boxes"][0]["output"]
        shape = list(values.values())[0].shape
        output = {name: result.reshape(shape).float().cpu().numpy()}
        del result
        wide = program | {"dtype": "f16", "tolerance": max(TOLERANCE, program["tolerance"])}
        found = compare(package, entry, output, wide)
        if found["status"] != "ok":
            return found
        event_ms(torch, run, 2)
        ms = event_ms(torch, run, request["repetitions"])
    return found | {"ms": ms, "device_bytes": used}
