# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part C: large models. Time, memory, and what is refused, with the reason."""

from .shares import ceiling_kind, share_of_ceiling, work_of

#: Exit codes of the runtime for what it refuses: unsupported, and not enough memory.
REFUSALS = (5, 6)
#: For a program, from its start on.
MOST_SECONDS = 60
#: Each precision of what is quickly done comes before what takes half a minute for one.
ORDER = ("unet3d-128", "unet-1024", "unet-2048", "unet3d-256", "huge-convolution", "unet-4096")


def large(check):
    """From quick to slow models, each in all its modes."""
    place = lambda entry: ORDER.index(entry["name"]) if entry["name"] in ORDER else len(ORDER)
    entries = sorted(check.entries("large"), key=place)
    jobs = [(entry, program) for entry in entries for program in entry["programs"]]
    check.close_probe("")
    if check.has_process("torch"):
        # Programs that run there for the cells of part E hold memory.
        check.ask("timed_peers.release", 20)
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
        check.close_probe("")
