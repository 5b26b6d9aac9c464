# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How near a time is to the ceilings that were measured on the same card."""


def floor_ms(work, ceilings, kind="f32"):
    """The least milliseconds for {"flops", "bytes"} by the measured ceilings, or None where one was not measured."""
    if not work or not ceilings.get("copy") or not ceilings.get(kind):
        return None
    return 1000 * max(work.get("bytes", 0) / ceilings["copy"], work.get("flops", 0) / ceilings[kind])


def share_of_ceiling(work, ms, ceilings, kind="f32"):
    """Percent that the least time for `work` is of `ms`; None where a ceiling was not measured."""
    floor = floor_ms(work, ceilings, kind)
    return 100 * floor / ms if floor and ms else None


def ceiling_kind(program):
    """Which measured ceiling of products holds for a program."""
    return "f16" if program.get("dtype") == "f16" else "tf32" if program.get("math") == "tf32" else "f32"


def work_of(entry, program):
    """The entry's {"flops", "bytes"}, which are those of f32, for a program: numbers of 16 bits are half as long."""
    work = entry.get("work")
    return work and work | {"bytes": work.get("bytes", 0) // (2 if program.get("dtype") == "f16" else 1)}
