# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part H: single operators, compared, and compute-sanitizer over a convolution and the programs of part F."""

import re

from .exactness import evaluate_case, findings_in

TOOLS = ("memcheck", "racecheck")
#: Programs of more operations come last: racecheck takes 12 s for a product of 1024³, and over a minute for 4096³.
MOST_FLOPS = 1e11


def sanitized(check):
    _operators(check)
    tool = check.find_tool("compute-sanitizer")
    if not check.on_gpu or not tool:
        reason = "compute-sanitizer is not on this machine" if check.on_gpu else "compute-sanitizer needs a GPU"
        check.report.say("skipped" if not check.manifest["operators"] else "incomplete", reason)
        return
    # Sums of windows that blocks share, then products, the small ones before the large.
    flops = lambda entry: entry.get("work", {}).get("flops", 0)
    groups = ("layer", "tile", "kernel")
    order = lambda entry: (flops(entry) > MOST_FLOPS, groups.index(entry["group"]), flops(entry))
    # The libraries' kernels are not ours to check. In f32 our own do the layer.
    is_ours = lambda entry, program: {"kernel": True, "layer": program["variant"] == "f32"}.get(
        entry["group"], not program["libraries"]
    )
    jobs = [
        (entry, program, name)
        for entry in sorted(check.entries(*groups), key=order)
        for program in entry["programs"]
        for name in TOOLS
        if is_ours(entry, program)
    ]
    for entry, program, name in check.each(jobs, lambda job: f"{job[2]}: {job[0]['name']}", least=5):
        row = {"name": entry["name"], "variant": f"{program['variant']}: {name}", "tool": name}
        check.add(row | _sanitize(check, tool, name, entry, program))


def _operators(check):
    """Compares all cases, several at a time."""
    cases = check.manifest["operators"][: 1 if check.smoke else None]
    by = lambda case: "operator, by a library" if case["libraries"] else "operator, by our kernels"
    row = lambda worker, case: {"name": case["name"], "variant": by(case), **evaluate_case(check, worker, case)}
    if cases:
        check.distribute(cases, 1, row, lambda case: case["name"])
    check.close_workers()


def _sanitize(check, tool, name, entry, program):
    """What a tool of compute-sanitizer finds in two runs of a program."""
    log = check.package.restored / f"{name}.log"
    log.unlink(missing_ok=True)
    command = [tool, "--tool", name, "--error-exitcode", "86", "--log-file", log, check.tool]
    command += ["bench", check.package.path(program["file"]), "--iterations", "1", "--warmup", "1"]
    command += check.input_flags(entry, program)
    code, _, said = check.processes.run(command, check.clock.part_left(), check.environment(1))
    text = log.read_text(errors="replace") if log.exists() else ""
    findings = findings_in(text)
    if code == 0 and findings == 0:
        return {"status": "ok", "message": "", "findings": 0}
    if re.search(r"Device not supported", text + said):
        return {"status": "skipped", "message": f"{name}: Device not supported", "findings": None}
    if code is None and not findings:
        return {"status": "late", "message": said, "findings": None}
    message = f"exit code {code}; {name} says: {(text or said)[-800:].strip()}"
    return {"status": "error", "message": message, "findings": findings, "log": text[:8000]}
