# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part 0: clocks, versions, and how fast this card copies and multiplies. Percentages of the report are of these."""

import shutil

from .probe import torch_on_gpu
from .report import CLOCK_REASONS

_CLOCKS = ("clocks.sm", "clocks.mem", "power.draw", "power.limit", "temperature.gpu", "utilization.gpu")
COPY_BYTES, PRODUCT = 2 << 30, 8192


def clocks(check):
    """Clocks in MHz, power in W and temperature in degrees of the first GPU; a text where they cannot be read."""
    smi = shutil.which("nvidia-smi")
    if not check.on_gpu or not smi:
        return None
    # Older drivers do not know the reasons.
    for fields in ((*_CLOCKS, CLOCK_REASONS), _CLOCKS):
        query = [smi, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", "-i", "0"]
        code, output, said = check.processes.run(query, 4)
        values = output.strip().split(", ")
        if code == 0 and len(values) == len(fields):
            return dict(zip(fields, values))
    return f"nvidia-smi: {said.strip() or output.strip()}"


def ceilings(check):
    """Adds a measurement for each limit, and keeps them for the other parts."""
    found = check.report.data.setdefault("ceilings", {})
    if not check.on_gpu:
        check.report.say("skipped", "ceilings are those of a GPU, and the programs are for CPUs")
        return
    versions = check.versions if check.versions.get("status") == "ok" else check.ask("ceilings.versions")
    check.report.data["versions"] = versions.get("versions", {})
    if versions["status"] != "ok":
        check.add({"name": "versions", **versions})
        return
    kinds = ["copy", "f32", "tf32", "f16", "bf16"]
    for kind in check.each(kinds, str, least=1):
        reply = check.ask("ceilings.measure", 20, kind=kind, smoke=check.smoke)
        if reply["status"] == "ok" and not check.smoke:
            found[kind] = reply["per_second"]
        check.add({"name": kind, "variant": "ceiling", **reply})
    check.ceilings = found


# In the process with PyTorch.


def versions(package, request):
    torch = torch_on_gpu()
    nccl = torch.cuda.nccl.version() if torch.distributed.is_nccl_available() else None
    found = {
        "torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
        "nccl": ".".join(map(str, nccl)) if nccl else None, "device": torch.cuda.get_device_name(0),
        "capability": list(torch.cuda.get_device_capability(0)),
        "processors": torch.cuda.get_device_properties(0).multi_processor_count,
    }  # fmt: skip
    return {"status": "ok", "message": "", "versions": found}


def event_ms(torch, run, count):
    """The least milliseconds of `count` runs on the device, by events."""
    times = []
    for _ in range(count):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return min(times)


def measure(package, request):
    """Bytes (read and written) or operations per second; a multiply-add is two operations."""
    torch = torch_on_gpu()
    kind, count = request["kind"], 1 if request["smoke"] else 5
    if kind == "copy":
        source = torch.empty(COPY_BYTES // 4, dtype=torch.float32, device="cuda").normal_()
        target = torch.empty_like(source)
        run, work = lambda: target.copy_(source), 2 * COPY_BYTES
    else:
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16}.get(kind, torch.float32)
        # Random factors: zeros would let the card clock higher than real work does.
        a, b = (torch.randn(PRODUCT, PRODUCT, device="cuda").to(dtype) for _ in range(2))
        result = torch.empty(PRODUCT, PRODUCT, device="cuda", dtype=dtype)
        run, work = lambda: torch.matmul(a, b, out=result), 2 * PRODUCT**3
    try:
        if count > 1:
            event_ms(torch, run, 2)
        ms = event_ms(torch, run, count)
    finally:
        run = source = target = a = b = result = None
        torch.cuda.empty_cache()
    return {"status": "ok", "message": "", "ms": ms, "per_second": work / ms * 1000}
