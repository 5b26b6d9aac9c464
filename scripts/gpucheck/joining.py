# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assigns what a profiler saw on a device to the steps of a program. Pure functions over events."""

import re
from typing import NamedTuple

#: What the profiler calls them, and what `bench` counts them as.
CATEGORIES = {"kernel": "kernels", "gpu_memcpy": "copies", "gpu_memset": "fills"}
KINDS = ("kernels", "copies", "fills", "others")
#: Microseconds by which events on two streams may seem to overlap that do not.
SLACK = 0.5


class Event(NamedTuple):
    """A kernel, copy or fill; times are in microseconds. `graph` is the number of its graph, 0 for none, or unknown."""

    name: str
    start: float
    duration: float
    stream: int
    kind: str = "kernels"
    grid: tuple = ()
    block: tuple = ()
    graph: int | None = None

    @property
    def end(self):
        return self.start + self.duration


def read_trace(trace):
    """The device's events of a trace in Chrome's format, in order of their start."""
    events = []
    for item in trace.get("traceEvents", []):
        kind = CATEGORIES.get(item.get("cat"))
        if kind is None or item.get("ph") != "X":
            continue
        known = item.get("args", {})
        graph = known.get("graph id", known.get("graph node id"))
        events.append(
            Event(item["name"], float(item["ts"]), float(item.get("dur", 0)), int(known.get("stream", item["tid"])),
                  kind, tuple(known.get("grid", ())), tuple(known.get("block", ())),
                  None if graph is None else int(graph))
        )  # fmt: skip
    return sorted(events, key=lambda event: (event.start, event.end))


def split_replays(events, count):
    """`events` cut at the `count` - 1 longest pauses; nothing if there are fewer events than replays."""
    if len(events) < count:
        return []
    ends, latest = [], float("-inf")
    for event in events:
        latest = max(latest, event.end)
        ends.append(latest)
    pauses = sorted(range(1, len(events)), key=lambda i: events[i].start - ends[i - 1])
    cuts = sorted(pauses[len(pauses) - (count - 1) :]) if count > 1 else []
    return [events[low:high] for low, high in zip([0, *cuts], [*cuts, len(events)])]


def of_the_program(events):
    """Without transfers from and to the host, and without events that are in no graph while others are in one.

    The runtime copies inputs and outputs that are on the device outside of the graph.
    """
    crosses = lambda event: event.kind == "copies" and re.search(r"HtoD|DtoH", event.name)
    in_graphs = any(event.graph for event in events)
    return [event for event in events if not crosses(event) and not (in_graphs and event.graph == 0)]


def _is_transfer(event):
    """Whether the event may be the copy of an input or output: a transfer, or one of our kernels that copy boxes."""
    return event.kind == "copies" or "dovetail_copy_boxes" in event.name


def without_transfers(events):
    """Of the program, without copies of inputs and outputs. Where no graph has a number, these are the first and last.

    Such a program may begin or end with a copy of its own, which is left out as well. A program of copies alone keeps
    all of them.
    """
    ours = of_the_program(events)
    if any(event.graph for event in ours):
        return ours
    inner = [index for index, event in enumerate(ours) if event.kind != "copies"]
    return ours[inner[0] : inner[-1] + 1] if inner else ours


def overlap(events):
    """The first two events on different streams that run side by side, or None."""
    latest = {}
    for event in events:
        for stream, other in latest.items():
            if stream != event.stream and other.end - event.start > SLACK and event.duration > SLACK:
                return other, event
        if event.stream not in latest or latest[event.stream].end < event.end:
            latest[event.stream] = event
    return None


def _counts(events):
    counts = dict.fromkeys(KINDS, 0)
    for event in events:
        counts[event.kind] += 1
    return counts


def _assign(events, steps):
    """Events of each step, or None where some step's counts are not those of the events in its place."""
    parts, at = [], 0
    for step in steps:
        wanted = {kind: step.get(kind, 0) for kind in KINDS}
        # Nodes of other kinds are nothing that the profiler sees.
        wanted["others"] = 0
        part = events[at : at + sum(wanted.values())]
        if _counts(part) != wanted:
            return None
        parts.append(part)
        at += len(part)
    return parts


def join(events, steps):
    """{"status": "joined" | "not joined", "reason", "us", "span_us", "steps": [{"step", "kind", "us", "kernels"}]}.

    `events` are those of one replay, `steps` what `bench` says of graph nodes. Not joined, "steps" has one entry for
    each name of a kernel, and "kind" is None.
    """
    ours = sorted(of_the_program(events), key=lambda event: event.start)
    parts, reason = None, ""
    if not ours:
        reason = "the profiler saw nothing of the program"
    elif not steps:
        reason = "the runtime does not say how many nodes the steps have"
    elif side := overlap(ours):
        reason = f"streams run side by side: {side[0].name[:60]} and {side[1].name[:60]}"
    else:
        total = sum(step.get(kind, 0) for step in steps for kind in KINDS[:3])
        # Around what is in no graph there are copies of inputs and outputs.
        is_known = any(e.graph for e in ours) and all(e.graph is not None for e in ours)
        places = range(1) if is_known else range(max(0, len(ours) - total) + 1)
        fits = {at: fit for at in places if len(ours) >= total and (fit := _assign(ours[at : at + total], steps))}
        alone = [at for at in fits if all(map(_is_transfer, ours[:at] + ours[at + total :]))]
        if len(ours) != total and (len(ours) < total or len(places) == 1):
            reason = f"the profiler saw {len(ours)} events, the steps have {total} nodes"
        elif len(alone) == 1 or len(fits) == 1:
            (at,) = alone or fits
            parts = fits[at]
        else:
            several = "the events fit the steps in several ways" if fits else "kinds of events differ from the steps'"
            reason = f"{several}: {len(ours)} events, {total} nodes"
    if parts is None:
        ours = without_transfers(ours)
        return _times(ours) | {"status": "not joined", "reason": reason, "steps": by_name(ours)}
    rows = [_row(step["step"], step["kind"], part) for step, part in zip(steps, parts) if part]
    found = _times([event for part in parts for event in part])
    return found | {"status": "joined", "reason": "", "steps": rows}


def _times(events):
    first, last = min((e.start for e in events), default=0), max((e.end for e in events), default=0)
    return {"us": sum(event.duration for event in events), "span_us": last - first}


def _row(step, kind, events):
    return {
        "step": step, "kind": kind, "us": sum(e.duration for e in events),
        "kernels": [[e.name, round(e.duration, 3), list(e.grid), list(e.block)] for e in events],
    }  # fmt: skip


def by_name(events):
    """A row for each name, with all of its time, the longest first."""
    names = {}
    for event in events:
        names.setdefault(event.name, []).append(event)
    rows = []
    for name, same in names.items():
        total = sum(e.duration for e in same)
        grids = sorted({e.grid for e in same})
        kernel = [name, round(total, 3), *map(list, grids[:1])]
        rows.append({"step": None, "kind": None, "us": total, "kernels": [kernel], "count": len(same)})
    return sorted(rows, key=lambda row: -row["us"])


#: Which kind of work a kernel does, by its name; the first that matches. Our own names come before libraries'.
_CLASSES = (
    ("post-operations", r"dovetail_post_ops"),
    ("box copy", r"dovetail_(copy|combine)_boxes|Memcpy DtoD"),
    ("our kernel", r"dovetail|^kernel\d+"),
    ("convolution", r"conv|fprop|dgrad|wgrad|winograd|implicit|cudnn|xmma_f|cutlass.*(nhwc|nchw)"),
    ("product", r"gemm|gemv|matmul|cublas|cutlass|nvjet|xmma|splitK"),
)


def classify(name):
    """The class of a kernel: a name of _CLASSES, or "other"."""
    return next((kind for kind, pattern in _CLASSES if re.search(pattern, name, re.IGNORECASE)), "other")


#: Steps of these kinds are of one class, but for what is our own in them.
_STEPS = {"convolution": "convolution", "deconvolution": "convolution", "winograd": "convolution", "matmul": "product",
          "kernel": "our kernel"}  # fmt: skip


def shares(joined):
    """{class: microseconds} of a replay, by steps where these are known, by names of kernels elsewhere."""
    found = {}
    for row in joined["steps"]:
        of_step = _STEPS.get(row["kind"])
        for name, us, *_ in row["kernels"] or [["", row["us"]]]:
            kind = classify(name)
            if of_step and kind in ("convolution", "product", "other"):
                kind = of_step
            found[kind] = found.get(kind, 0.0) + us
    return found
