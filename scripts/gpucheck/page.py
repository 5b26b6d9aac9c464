# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page that `gpu-check report` makes of a result. Needs neither NumPy nor a GPU."""

import collections
import json
import math
import pathlib
import textwrap

from .journal import SCHEMA, titled
from .losses import losses
from .report import CLOCK_REASONS, FOR_CPUS
from .report import number as _number
from .rules import OWN, all_peer_cells, decide, lines, of_modes, timed

MOST_FAULTS, MOST_SKIPPED = 12, 4
#: Characters of a line, as documents have them.
WIDTH = 100
_MODES = ("f32", "f32 autotuned", OWN, "tf32", "tf32 autotuned", "f16")


def read(path):
    """A result: the file that a run wrote at its end, or the lines (.jsonl) of one that was killed. ValueError."""
    text = pathlib.Path(path).read_text()
    result = _of_lines(text) if str(path).endswith(".jsonl") else _parsed(text)
    if not isinstance(result, dict) or not {"parts", "measurements"} <= result.keys():
        raise ValueError("it has no measurements")
    if result.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {result.get('schema')}, and this script reads {SCHEMA}")
    _check_parts(result["parts"])
    if not isinstance(result["measurements"], list):
        raise ValueError("its measurements are no list")
    for number, line in enumerate(result["measurements"], 1):
        _check_line(line, f"measurement {number}")
    return result


def _parsed(text):
    """JSON; a number that is not finite is none."""
    number = lambda text: value if math.isfinite(value := float(text)) else None
    return json.loads(text, parse_constant=lambda _: None, parse_float=number)


def _of_lines(text):
    """The result of a run that was killed: the last heading counts, and the last word about a measurement."""
    result, found = {"schema": SCHEMA}, []
    for line in text.splitlines():
        if not line.endswith("}"):
            continue
        line = _parsed(line)
        if isinstance(line, dict) and line.pop("heading", False):
            result |= line
            continue
        _check_line(line, f"measurement {len(found) + 1}")
        key = lambda line: (line["part"], line["name"], line["variant"])
        found = [m for m in found if m["status"] != "unfinished" or key(m) != key(line)] + [line]
    names = dict.fromkeys(line["part"] for line in found)
    parts = {name: {"title": "", "status": "incomplete", "note": "the run was killed"} for name in names}
    return result | {"complete": False, "parts": parts, "measurements": found}


#: Numbers of a measurement, where it has them.
_NUMBERS = ("ms", "min_ms", "error", "ours_ms", "ratio", "percent", "device_us", "device_ms", "device_bytes",
            "gb_per_s", "score_bytes")  # fmt: skip


def _check_parts(parts):
    if not isinstance(parts, dict):
        raise ValueError("its parts are not named")
    for name, part in parts.items():
        if not isinstance(part, dict) or not all(isinstance(part.get(key), str) for key in ("status", "note")):
            raise ValueError(f"part {name} has no status and note")


def _check_line(line, what):
    """ValueError unless a measurement says what it is, and its numbers are numbers."""
    if not isinstance(line, dict):
        raise ValueError(f"{what} is none")
    for key in ("part", "name", "variant", "status", "message"):
        if not isinstance(line.get(key), str):
            raise ValueError(f"{what} has no text as {key}")
    for key in _NUMBERS:
        if not isinstance(line.get(key), int | float | None):
            raise ValueError(f"{what}: {key} is no number")


def _cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def _table(header, rows):
    rows = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(map(_cell, row)) + " |" for row in rows] + [""]


def _heading(result):
    devices = result.get("devices", {})
    found = devices.get("devices") or [{}]
    versions = result.get("versions", {})
    name = versions.get("device") or found[0].get("name", "a machine that is not known")
    libraries = {k: v for k, v in (devices.get("libraries") or {}).items()}
    libraries |= {f"PyTorch's {k}": versions[k] for k in ("torch", "cuda", "cudnn", "nccl") if versions.get(k)}
    yield f"# Ten minutes on {name}"
    yield ""
    if result.get("target") == "cpu":
        yield f"**{FOR_CPUS}**"
        yield ""
    seconds = f"{_number(result['seconds'])} s" if result.get("seconds") is not None else ""
    about = (result.get("started"), f"Dovetail {result.get('dovetail', '?')}", seconds)
    yield ", ".join(filter(None, about)) + "."
    cards = result.get("machine", {}).get("nvidia-smi", [])
    for line in cards if isinstance(cards, list) else [cards]:
        yield f"Card: {line}."
    if libraries:
        yield "Libraries: " + ", ".join(f"{k} {v}" for k, v in libraries.items()) + "."
    if ceilings := result.get("ceilings"):
        shown = [f"copy {ceilings['copy'] / 1e12:.2f} TB/s"] if "copy" in ceilings else []
        shown += [f"{kind} {rate / 1e12:.0f} TFLOP/s" for kind, rate in ceilings.items() if kind != "copy"]
        yield f"Ceilings, measured: {', '.join(shown)}. Percentages are of these."
    yield from _clocks(result)
    if result.get("left_out"):
        yield f"Left out of the file, which would be too large: {', '.join(result['left_out'])}."
    yield ""


def _clocks(result):
    """Clocks directly after the parts, the lowest one with its cause. Before the first part the card is idle."""
    found, reasons = {}, {}
    for name, part in result["parts"].items():
        state = (part.get("clocks") or {}).get("after")
        if isinstance(state, dict) and str(state.get("clocks.sm", "")).isdigit():
            found[f"after {name}"] = int(state["clocks.sm"])
            reasons[f"after {name}"] = _reasons(state.get(CLOCK_REASONS, ""))
    if found:
        low = min(found, key=found.get)
        why = f", {reasons[low]}" if reasons[low] else ""
        yield f"Clock of the processors: {found[low]} MHz ({low}{why}) to {max(found.values())} MHz."


#: Bits of nvidia-smi's field, by what lowers the clocks.
_REASON_BITS = {
    0x1: "idle", 0x2: "set by an application", 0x4: "power cap", 0x8: "hardware slowdown", 0x20: "temperature",
    0x40: "hardware temperature", 0x80: "power brake",
}  # fmt: skip


def _reasons(text):
    """The causes of a mask such as 0x0000000000000004; nothing for none or for what is no number."""
    try:
        mask = int(text, 16)
    except ValueError:
        return ""
    return " and ".join(name for bit, name in _REASON_BITS.items() if mask & bit)


def _faults(result):
    """What is wrong, the worst first."""
    wrong = [*_parts_that(result, "failed"), *_lines_that(result, "differs", "error", "peer failed"), *_tried(result)]
    compared = sum(line["status"] == "ok" and line["part"] not in ("devices", "smoke")
                   for line in result["measurements"])  # fmt: skip
    yield "## What is wrong"
    yield ""
    yield from wrong
    if not wrong and not compared:
        yield "Nothing was compared."
    elif not wrong:
        yield f"Nothing: all {compared} results that were compared are right."
    yield ""


def _tried(result):
    """Lines about wrong results of the smoke, whose parts may not have come to them again."""
    for smoke in lines(result, "smoke"):
        for row in smoke.get("rows", []):
            # In older results its part is said to be right.
            if row.get("status") == "differs" and smoke["status"] != "differs":
                yield f"* differs, when it was tried: {smoke['name']} {titled(row)}: {row['message'][:160]}"


def _not_measured(result):
    """What there was no time, no memory or no library for."""
    found = [*_parts_that(result, "incomplete"), *_lines_that(result, "refused", "unfinished")]
    skipped = collections.Counter(m["message"] for m in result["measurements"] if m["status"] == "skipped")
    found += [f"* {count} not measured: {reason[:120]}" for reason, count in skipped.most_common(MOST_SKIPPED)]
    if not result.get("complete", True):
        found.insert(0, "* The run was ended before its end.")
    if found:
        yield "## What was not measured"
        yield ""
        yield from found
        yield ""


def _parts_that(result, status):
    """Lines about the parts that ended so."""
    for name, part in result["parts"].items():
        if part["status"] == status:
            yield f"* Part {name} {status}{f': {note[:200]}' if (note := part['note']) else ''}"


def _lines_that(result, *statuses):
    """Lines about measurements that ended so, in the order of `statuses`."""
    found = [m for m in result["measurements"] if m["status"] in statuses]
    found.sort(key=lambda line: statuses.index(line["status"]))
    for line in found[:MOST_FAULTS]:
        yield f"* {line['status']}: {line['part']} {titled(line)}: {line['message'][:160]}"
    if len(found) > MOST_FAULTS:
        yield f"* And {len(found) - MOST_FAULTS} more."


def _rules(result):
    yield "## Decisions"
    yield ""
    rows = [
        [d["rule"], d["question"], d["verdict"] + (f": {d['reason']}" if d["verdict"] == "undecided" else ""),
         d["reason"] if d["verdict"] != "undecided" else "", d["then"]]
        for d in decide(result)
    ]  # fmt: skip
    yield from _table(["rule", "question", "answer", "by", "so"], rows)


def _losses(result):
    yield "## The largest losses"
    yield ""
    found = losses(result)
    rows = [[i, _number(loss["ms"]), loss["where"], loss["cause"]] for i, loss in enumerate(found, 1)]
    if rows:
        yield from _table(["", "ms", "where", "cause, as far as it is known"], rows)
    else:
        yield "None is known: there are no ceilings of this card, or no kernels were seen."
        yield ""
    for line in lines(result, "A"):
        if line.get("joined") not in (None, "joined"):
            yield f"{line['name']}: {line['joined']} ({line['reason']})."
    yield ""


def _models(result):
    names = list(dict.fromkeys(line["name"] for line in of_modes(result) if line["variant"] in _MODES))
    if not names:
        return
    yield "## Times of one replay, ms"
    yield ""
    ratios = "Ratios are of our time to the peer's, in turns in one process."
    yield " ".join(filter(None, (result.get("not measured"), ratios)))
    yield "Ours includes copies of inputs and outputs on the device."
    yield ""
    rows = []
    for name in names:
        cells = {line["variant"]: line for line in of_modes(result, name=name)}
        row = [name, *(_time_of(cells.get(mode)) for mode in _MODES)]
        for math in ("f32", "tf32", "f16"):
            row.append(_best(next(iter(all_peer_cells(result, name, math)), None)))
        rows.append(row)
    yield from _table(["model", *_MODES, "best f32 peer", "best tf32 peer", "best f16 peer"], rows)
    reasons = {}
    for line in lines(result, "E"):
        if line.get("not_comparable"):
            reasons.setdefault(line["not_comparable"], []).append(f"{line['name']} {line['variant']}")
    for reason, cells in reasons.items():
        yield f"Not comparable, {len(cells)} cells ({cells[0]}, ...): {reason}."
    layers = timed(lines(result, "B", layer=True))
    if layers:
        of_device = [(line["variant"], *device_ms(line)) for line in layers]
        yield ""
        yield "One 3×3 convolution of 512 channels at 7×7, time of the device:"
        yield ""
        rows = [["µs", *(f"{1000 * ms:.1f}{host}" for _, ms, host in of_device)]]
        yield from _table(["", *(variant for variant, *_ in of_device)], rows)
    yield ""


def _best(line):
    """A cell for the best peer: its time, how it runs, and the ratio of our time to it."""
    if line is None:
        return "-"
    ratio = "not comparable" if line.get("not_comparable") else f"{_number(line.get('ratio'))} ×"
    return f"{_number(line['ms'])} {line['how']} ({ratio})"


def _time_of(line):
    if line is None:
        return "-"
    return _number(line.get("ms")) if line["status"] == "ok" else line["status"]


#: Parts of which each entry has a row, with a column for each variant of its programs.
_OTHERS = {
    "C": "Large models: ms",
    "D": "Attention: ms of the device",
    "F": "Own kernels: µs of the device",
    "G": "Ranks on one GPU: ms",
}
#: What else a cell may have, by the key of a measurement.
_ELSE = {
    "gb_per_s": "GB/s",
    "device_bytes": "MiB of the device",
    "percent": "% of the ceiling",
    "overlap": "how much of the copies overlaps with kernels of any rank",
}
#: How bytes are counted.
_OF_SESSION = "MiB are those that the device has less once a program has started: weights, workspaces, code."
_NOTES = {
    "C": _OF_SESSION,
    "D": f"{_OF_SESSION} PyTorch's are the most that its tensors took during a call, with the result, without inputs.",
}


def device_ms(line):
    """(milliseconds of the device, nothing); or those of the host, which include copies, and a text that says so."""
    if line.get("device_us"):
        return line["device_us"] / 1000, ""
    return line["ms"], "" if line.get("peer") or line.get("layout") else " (host)"


def _others(result):
    for part, title in _OTHERS.items():
        found = [line for line in lines(result, part) if line.get("name") and line["status"] != "skipped"]
        columns = list(dict.fromkeys(line["variant"] for line in found))
        if not found:
            continue
        more = [what for key, what in _ELSE.items() if any(line.get(key) for line in timed(found))]
        yield f"## {', '.join([title, *more])}"
        yield ""
        rows = []
        for name in dict.fromkeys(line["name"] for line in found):
            own = {line["variant"]: line for line in found if line["name"] == name}
            rows.append([name, *(_with_details(own[c]) if c in own else "" for c in columns)])
        yield from _table(["", *columns], rows)
        if part in _NOTES and any(line.get("device_bytes") for line in found):
            yield _NOTES[part]
            yield ""


def _with_details(line):
    """A cell: the time, and what else the part measures."""
    if line["status"] != "ok" or not line.get("ms"):
        return _time_of(line)
    said = [_time_of(line)]
    if line["part"] == "D":
        ms, host = device_ms(line)
        said = [f"{_number(ms)}{host}"]
    if line["part"] == "F":
        said = [_number(line["device_us"] if line.get("device_us") else 1000 * line["ms"])]
        said += [f"{_number(line['gb_per_s'])} GB/s"] if line.get("gb_per_s") else []
    if line.get("device_bytes"):
        said.append(f"{line['device_bytes'] / 2**20:.0f} MiB")
    if line.get("percent") is not None:
        said.append(f"{_number(line['percent'], 2)} %")
    if (overlap := line.get("overlap")) and overlap["copies_us"]:
        said.append(f"{100 * overlap['overlapped_us'] / overlap['copies_us']:.0f} % of {overlap['copies_us']:.0f} µs")
    return ", ".join(said)


def _wrapped(line):
    """The lines of a paragraph or of an entry of a list. A table has a line for each row."""
    is_whole = not line or line.startswith("|")
    return [line] if is_whole else textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)


def page(result):
    """The page as Markdown."""
    sections = (_heading, _faults, _not_measured, _rules, _losses, _models, _others)
    lines_of = (line for section in sections for line in section(result))
    text = "\n".join(piece for line in lines_of for piece in _wrapped(line))
    return text.rstrip() + "\n"
