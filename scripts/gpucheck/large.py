# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part C: large models. Time, memory, and what is refused, with the reason."""

from .shares import ceiling_kind, share_of_ceiling, work_of

#: Exit codes of the runtime for what it refuses: unsupported, and not enough memory.
REFUSALS = (5, 6)
#: For a program, from its start on.
MOST_SECONDS = 60


def large(check):
    """All f32 programs first, from small to large, then those of other modes."""
    jobs = [
        (entry, program)
        for variant in ("f32", "tf32", "f16")
        for entry in check.entries("large")
        for program in entry["programs"]
        if program["variant"] == variant
    ]
    check.close_probe()
    for entry, program in check.each(jobs, lambda job: f"{job[0]['name']} {job[1]['variant']}", least=6):
        seconds = min(MOST_SECONDS, check.clock.part_left())
        # Four replays are behind a program before it is measured.
        few = {"repetitions": 10, "least": 2, "warm_up": 0, "within": seconds}
        reply = check.measure(entry, program, seconds=seconds, forget=True, **few)
        if reply["status"] == "error" and reply.get("code") in REFUSALS:
            reply |= {"status": "refused"}
        percent = share_of_ceiling(work_of(entry, program), reply.get("ms"), check.ceilings, ceiling_kind(program))
        check.add({"name": entry["name"], "variant": program["variant"], "percent": percent, **reply})
        # The next one finds an empty device.
        check.close_probe()
