# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a timed profile finds: a line of JSON for each measurement as it comes, one file at the end, and a log."""

import functools
import json
import lzma
import os
import pathlib
import time

MOST_BYTES = 4 << 20
#: Of all lines, of a line, and of a line when there is little room left: 16 MiB come back from some machines.
MOST_LINES_BYTES, MOST_LINE_BYTES, LEAST_LINE_BYTES = 8 << 20, 256 << 10, 4 << 10
#: Of each log, its end; and of all logs together.
MOST_LOG_BYTES, MOST_LOGS_BYTES = 2 << 20, 24 << 20
#: Details in the order in which they are left out of a result that is too large.
DETAILS = ("candidates", "kernels", "implementations", "steps", "memory", "trace")
SCHEMA = "dovetail-measurements-1"


class Journal:
    """Has the interface of `report.Report` for parts, and keeps measurements as lines."""

    def __init__(self, path, heading):
        self.path, self.lines_path, self.log_path = files(path)
        self.start = time.monotonic()
        self.data = dict(heading, schema=SCHEMA, complete=False, parts={}, measurements=[])
        self._part, self._lines = None, open(self.lines_path, "wb")
        self._logs, self._told, self._name = [], b"", ""
        self.tell()

    @property
    def part(self):
        """The name of the part that runs."""
        return self._name

    def tell(self):
        """Writes what is known of the run as a line, unless it was written: nothing else is left of a killed run."""
        heading = {key: value for key, value in self.data.items() if key not in ("parts", "measurements")}
        encoded = json.dumps({"heading": True} | heading, default=str).encode() + b"\n"
        if encoded != self._told and self._lines.tell() + len(encoded) < MOST_LINES_BYTES:
            self._told = encoded
            self._lines.write(encoded)
            self._lines.flush()

    def begin(self, part, title):
        self._part = self.data["parts"].setdefault(part, {"title": title, "status": "ok", "note": ""})
        self._name = part
        print(f"\n== {part}: {title}", flush=True)

    def resume(self, part):
        """A part that had too little time goes on."""
        self._part, self._name = self.data["parts"][part], part
        self._part["note"] = ""
        if self._part["status"] == "incomplete":
            self._part["status"] = "ok"
        print(f"\n== {part}, with the time that is left", flush=True)

    def replaces(self, row):
        """Whether a row of a part that goes on is news. A measurement without an end gives its place to the row."""
        key = (self._name, row["name"], row.get("variant", ""))
        measurements = self.data["measurements"]
        same = [m for m in measurements if (m["part"], m["name"], m["variant"]) == key]
        if any(m["status"] != "unfinished" for m in same):
            return False
        self.data["measurements"] = [m for m in measurements if m not in same]
        return True

    def _write_line(self, line):
        """Appends a line to the file of lines: without candidates that nobody tried, and not too long."""
        room = MOST_LINES_BYTES - self._lines.tell()
        encoded = short_line(line, MOST_LINE_BYTES if room > MOST_LINE_BYTES else LEAST_LINE_BYTES)
        if len(encoded) < room:
            self._lines.write(encoded)
            self._lines.flush()

    def add(self, row):
        """Appends a measurement; one that differs or ends with an error fails the part."""
        line = {"part": self._name, "name": "", "variant": "", "message": ""} | row
        line["at_s"] = round(time.monotonic() - self.start, 3)
        self.data["measurements"].append(line)
        self._write_line(line)
        if line["status"] in ("differs", "error"):
            self._part["status"] = "failed"
        said = f"{line['ms']:.4g} ms" if line.get("ms") is not None else line["message"]
        if not said and line.get("error") is not None:
            said = f"off by {line['error']:.2g} at most"
        print(f"  {line['status']:<10} {titled(line)}{f': {said[:200]}' if said else ''}", flush=True)

    def say(self, status, note):
        """The part ends so: "skipped", "incomplete" or "failed". A part that failed stays so."""
        if self._part["status"] != "failed":
            self._part["status"] = status
        self._part["note"] = "; ".join(filter(None, (self._part["note"], note)))
        print(f"  {status}: {note}", flush=True)

    def add_log(self, name, text):
        """Text, or bytes, of a library or a program; only the end of a long one is kept."""
        data = text.encode(errors="replace") if isinstance(text, str) else text
        if data:
            self._logs.append((name, data[-MOST_LOG_BYTES:]))

    def finish(self, complete=True):
        """Writes the result, at most MOST_BYTES of it, and the log."""
        self.data["complete"] = complete
        self.data["ended"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.data["seconds"] = round(time.monotonic() - self.start, 1)
        _write(self.path, bounded(self.data))
        self._lines.close()
        logs, room = b"", MOST_LOGS_BYTES
        for name, data in self._logs:
            data = data[: max(0, room - len(name))]
            room -= len(data) + len(name)
            logs += f"\n==> {name}\n".encode() + data
        _write(self.log_path, lzma.compress(logs, preset=0))


def files(path):
    """The paths of a result, of its lines and of its log."""
    path = pathlib.Path(path)
    return path, path.with_suffix(".jsonl"), path.with_suffix(".log.xz")


def titled(line):
    """The name and the variant of a measurement, as far as it has them."""
    return " ".join(filter(None, (line.get("name"), line.get("variant"))))


def _write(path, data):
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_bytes(data)
    partial.replace(path)


def _without(value, key):
    if isinstance(value, dict):
        return {k: _without(v, key) for k, v in value.items() if k != key}
    return [_without(v, key) for v in value] if isinstance(value, list) else value


def encode(data):
    """JSON with a line for each measurement."""
    head = json.dumps({k: v for k, v in data.items() if k != "measurements"}, indent=1, default=str)
    lines = ",\n".join(json.dumps(line, default=str) for line in data["measurements"])
    return f'{head.removesuffix("}").rstrip()},\n "measurements": [\n{lines}\n]}}\n'.encode()


def _tried(value):
    """`value` without candidates that nobody tried."""
    if isinstance(value, dict):
        kept = {k: _tried(v) for k, v in value.items()}
        if kept.get("candidates"):
            kept["candidates"] = [c for c in kept["candidates"] if c.get("status") != "untried"]
        return kept
    return [_tried(v) for v in value] if isinstance(value, list) else value


#: (name, function of a measurement that leaves something out), in order.
_WAYS = [("candidates not tried", _tried)]
_WAYS += [(detail, functools.partial(_without, key=detail)) for detail in DETAILS]
_WAYS += [("long messages", lambda line: line | {"message": str(line.get("message", ""))[:200]})]


def short_line(line, limit=MOST_LINE_BYTES):
    """A measurement as a line of JSON, without candidates that nobody tried. A line above `limit` bytes loses details.

    The key "left_out" then names them. A line that is still too long keeps what tells which measurement it is.
    """
    encode = lambda value: json.dumps(value, default=str).encode() + b"\n"
    line = _tried(line)
    encoded, left_out = encode(line), []
    for name, reduced in _WAYS[1:]:
        if len(encoded) <= limit:
            return encoded
        left_out.append(name)
        line = reduced(line) | {"left_out": left_out}
        encoded = encode(line)
    if len(encoded) <= limit:
        return encoded
    kept = ("part", "name", "variant", "status", "message", "ms", "at_s")
    return encode({key: line[key] for key in kept if key in line} | {"left_out": ["all else"]})


def bounded(data, limit=MOST_BYTES):
    """`data` as bytes of JSON, at most `limit`. The key "left_out" names the details that had to be left out."""
    encoded, left_out = encode(data), []
    for name, reduced in _WAYS:
        if len(encoded) <= limit:
            break
        left_out.append(name)
        data = data | {"measurements": [reduced(line) for line in data["measurements"]], "left_out": left_out}
        encoded = encode(data)
    return encoded


def _counted(value):
    """`value` with one candidate for all that have the same engine and reason; "count" says of how many."""
    if isinstance(value, dict):
        kept = {k: _counted(v) for k, v in value.items()}
        if kept.get("candidates"):
            kept["candidates"] = _count(kept["candidates"])
        return kept
    return [_counted(v) for v in value] if isinstance(value, list) else value


def _count(candidates):
    found = {}
    for candidate in candidates:
        is_chosen = candidate.get("status") == "chosen"
        kept = ("engine", "status", "reason", "source", *(("knobs", "layout", "ms") if is_chosen else ()))
        short = {key: candidate[key] for key in kept if candidate.get(key) not in (None, "")}
        same = found.setdefault(json.dumps(short, default=str), short | {"count": 0})
        same["count"] += 1
    return list(found.values())


def _without_folders(line):
    """`line` with the names of libraries in place of their paths, as `loaded.loaded` gives these."""
    if not isinstance(line.get("libraries"), dict):
        return line
    named = lambda paths: {pathlib.Path(path).name: version for path, version in paths.items()}
    of_sides = {
        side: {library: named(paths) for library, paths in found.items()} for side, found in line["libraries"].items()
    }
    return line | {"libraries": of_sides}


def archived(result):
    """A result as bytes for an archive: without candidates that nobody tried, and without folders of the machine."""
    lines = [_without_folders(_counted(_tried(line))) for line in result["measurements"]]
    kept = result | {"measurements": lines}
    if "json" in kept.get("arguments", {}):
        kept["arguments"] = kept["arguments"] | {"json": pathlib.Path(kept["arguments"]["json"]).name}
    return encode(kept)
