# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a result says that time is lost, and to which cause, as far as it tells. Pure functions."""

from .joining import classify
from .rules import timed
from .shares import floor_ms

#: Of parts other than A, so many are listed: large models would hide all else.
MOST_WHOLE = 5
MOST = 10
#: A launch of fewer blocks, as a share of the card's processors, leaves it idle.
STARVED = 0.5
#: Classes of kernels that would not run at all if something else were done.
_AVOIDABLE = {
    "post-operations": "post-operations behind a library's call: a launch and a pass through memory of their own",
    "box copy": "copies of boxes: operands that a library does not take where they are, or exchanges",
}


def _blocks(kernel):
    """The number of blocks of a kernel's launch, or None."""
    grid = kernel[2] if len(kernel) > 2 else []
    return grid[0] * grid[1] * grid[2] if len(grid) == 3 else None


def _longest(row):
    """The kernel of a step that takes the longest, or None."""
    return max(row["kernels"], key=lambda kernel: kernel[1], default=None)


def _cause(row, percent, processors):
    """A sentence about a step that takes longer than the card needs, or several that one engine does."""
    longest = _longest(row)
    said = [] if percent is None else [f"{percent:.0f} % of the ceiling"]
    blocks = _blocks(longest) if longest else None
    if blocks and processors and blocks < STARVED * processors:
        said.append(f"starved: {blocks} blocks on {processors} processors")
    # A replay does not copy weights.
    if staged := [operand for operand in row.get("staged") or () if not operand.endswith(", once")]:
        said.append(f"staged: {', '.join(staged)}")
    if row.get("engine"):
        said.append(f"engine {row['engine']}")
    if longest:
        said.append(longest[0][:70])
    return "; ".join(said) or "unknown"


def _of_replay(line, ceilings, processors):
    """Losses of one model: by engines of convolutions and products, of what could be left out, and of pauses."""
    name = line["name"] if line["variant"] == "f32" else f"{line['name']} {line['variant']}"
    totals, alike = {}, {}
    for row in line["steps"]:
        avoidable = 0.0
        for kernel, us, *_ in row["kernels"]:
            if (kind := classify(kernel)) in _AVOIDABLE:
                avoidable += us
                totals[kind] = totals.get(kind, 0.0) + us
        floor = floor_ms(row.get("work"), ceilings)
        if floor is not None:
            key = row.get("engine"), (_longest(row) or [""])[0]
            alike.setdefault(key, []).append(((row["us"] - avoidable) / 1000 - floor, floor, row))
    for found in alike.values():
        yield _of_engine(name, found, processors)
    for kind, us in totals.items():
        yield {"ms": us / 1000, "where": f"{name}, all steps", "cause": _AVOIDABLE[kind]}
    if line["joined"] != "by steps" and line["ms"] > line["device_ms"]:
        pause = line["ms"] - line["device_ms"]
        yield {"ms": pause, "where": f"{name}, all steps", "cause": "pauses between kernels"}


def _of_engine(name, found, processors):
    """The loss of steps that the same kernel does: [(milliseconds that are lost, those that it needs, step)]."""
    *_, worst = max(found, key=lambda step: step[0])
    ms, floor = sum(row["us"] for *_, row in found) / 1000, sum(step[1] for step in found)
    several = f", {len(found)} steps such as" if len(found) > 1 else ","
    return {"ms": sum(step[0] for step in found), "where": f"{name}{several} {worst['step']}",
            "cause": _cause(worst, 100 * floor / ms if ms else None, processors)}  # fmt: skip


def _family(line):
    """Measurements of one kind that differ in size: the largest tells."""
    return line["part"], line["name"].rpartition("-")[0] or line["name"], line["variant"]


def losses(result):
    """The largest losses, [{"ms", "where", "cause"}]. Nothing without ceilings, but for what could be left out."""
    ceilings, found, whole = result.get("ceilings", {}), [], {}
    processors = result.get("versions", {}).get("processors")
    for line in timed(result["measurements"]):
        if line["part"] == "A" and "steps" in line:
            found += _of_replay(line, ceilings, processors)
        elif line["part"] in ("C", "D", "F") and line.get("percent") and not line.get("peer"):
            ms = line["device_us"] / 1000 if line.get("device_us") else line["ms"]
            lost = ms * (1 - line["percent"] / 100)
            cause = f"{line['percent']:.0f} % of the ceiling; kernels not looked into"
            if line.get("score_bytes"):
                cause = (
                    f"{line['percent']:.0f} % of the ceiling; stores {line['score_bytes'] / 2**20:.0f} MiB of scores"
                )
            loss = {"ms": lost, "where": f"{line['name']} {line['variant']}", "cause": cause}
            whole[_family(line)] = max(loss, whole.get(_family(line), loss), key=lambda loss: loss["ms"])
    order = lambda loss: -loss["ms"]
    found += sorted(whole.values(), key=order)[:MOST_WHOLE]
    return sorted((loss for loss in found if loss["ms"] > 0), key=order)[:MOST]
