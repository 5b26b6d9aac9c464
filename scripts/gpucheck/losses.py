# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a result says that time is lost, and to which cause, as far as it tells. Pure functions."""

from .joining import classify
from .rules import timed
from .shares import floor_ms

#: Of parts other than A, so many are listed: large models would hide all else.
MOST_WHOLE = 4
MOST = 10
#: Classes of kernels that would not run at all if something else were done.
_AVOIDABLE = {
    "post-operations": "post-operations behind a library's call: a launch and a pass through memory of their own",
    "box copy": "copies of boxes: operands that a library does not take where they are, or exchanges",
}


def _blocks(kernel):
    """The number of blocks of a kernel's launch, or None."""
    grid = kernel[2] if len(kernel) > 2 else []
    return grid[0] * grid[1] * grid[2] if len(grid) == 3 else None


def _cause(row, processors):
    """A sentence about a step that takes longer than the card needs."""
    longest = max(row["kernels"], key=lambda kernel: kernel[1], default=None)
    said = []
    if row.get("percent") is not None:
        said.append(f"{row['percent']:.0f} % of the ceiling")
    blocks = _blocks(longest) if longest else None
    if blocks and processors and blocks < processors:
        said.append(f"starved: {blocks} blocks on {processors} processors")
    if row.get("staged"):
        said.append(f"staged: {', '.join(row['staged'])}")
    if row.get("engine"):
        said.append(f"engine {row['engine']}")
    if longest:
        said.append(longest[0][:70])
    return "; ".join(said) or "unknown"


def _of_replay(line, ceilings, processors):
    """Losses of one model: of each convolution and product, of what could be left out, and of pauses."""
    totals = {}
    for row in line["steps"]:
        avoidable = 0.0
        for name, us, *_ in row["kernels"]:
            if (kind := classify(name)) in _AVOIDABLE:
                avoidable += us
                totals[kind] = totals.get(kind, 0.0) + us
        floor = floor_ms(row.get("work"), ceilings)
        if floor is not None:
            lost = (row["us"] - avoidable) / 1000 - floor
            yield {"ms": lost, "where": f"{line['name']}, {row['step']}", "cause": _cause(row, processors)}
    for kind, us in totals.items():
        yield {"ms": us / 1000, "where": f"{line['name']}, all steps", "cause": _AVOIDABLE[kind]}
    if line["joined"] != "by steps" and line["ms"] > line["device_ms"]:
        pause = line["ms"] - line["device_ms"]
        yield {"ms": pause, "where": f"{line['name']}, all steps", "cause": "pauses between kernels"}


def losses(result):
    """The largest losses, [{"ms", "where", "cause"}]. Nothing without ceilings, but for what could be left out."""
    ceilings, found, whole = result.get("ceilings", {}), [], []
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
            whole.append({"ms": lost, "where": f"{line['name']} {line['variant']}", "cause": cause})
    order = lambda loss: -loss["ms"]
    found += sorted(whole, key=order)[:MOST_WHOLE]
    return sorted((loss for loss in found if loss["ms"] > 0), key=order)[:MOST]
