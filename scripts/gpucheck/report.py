# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a check found: a JSON file that is whole at any moment, tables, and the time that is left."""

import contextlib
import json
import math
import os
import pathlib
import sys
import time

#: What a run and its page say first of a package that tests the script.
FOR_CPUS = "This package is for CPUs: sizes are small stand-ins."
#: The field of nvidia-smi with bits that say why clocks are lower than they could be.
CLOCK_REASONS = "clocks_event_reasons.active"


class Lasting:
    """A stream for people, who may go away: text that cannot be written is lost, and the check goes on."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        try:
            return self._stream.write(text)
        except OSError:
            self._lose()
            return len(text)

    def flush(self):
        try:
            self._stream.flush()
        except OSError:
            self._lose()

    def _lose(self):
        """Sends the rest to nowhere: Python flushes the stream once more when it ends, and must not fail then."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name):
        return getattr(self._stream, name)


def keep_printing():
    """From now on, printing cannot end this process."""
    for name in ("stdout", "stderr"):
        if stream := getattr(sys, name):
            stream.reconfigure(errors="replace")
            setattr(sys, name, Lasting(stream))


class Clock:
    """The seconds of a whole check, shared among its parts by weight."""

    def __init__(self, seconds):
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.part_end = self.end
        #: Seconds of the part that runs.
        self.share = seconds

    def enter(self, weight, weights_left):
        """A part begins: it gets its share of what is left; `weights_left` includes its own."""
        self.limit(self.left() * weight / weights_left)

    def limit(self, seconds):
        """What begins now gets so many seconds, of those that are left."""
        self.share = min(seconds, self.left())
        self.part_end = time.monotonic() + self.share

    def left(self):
        return max(0.0, self.end - time.monotonic())

    def part_left(self):
        return max(0.0, min(self.part_end, self.end) - time.monotonic())


class Report:
    """Rows of each part, written to a file as they come: nothing is lost when a check is cut short."""

    def __init__(self, path, heading):
        self.path = pathlib.Path(path)
        self.data = dict(heading, complete=False, parts={})
        self._part = None
        self.write()

    def begin(self, part, title):
        self._part = self.data["parts"][part] = {"title": title, "status": "ok", "note": "", "rows": []}
        print(f"\n== {title}", flush=True)

    @property
    def rows(self):
        return self._part["rows"]

    def add(self, row):
        """Appends a row; one that differs or ends with an error fails the part."""
        self._part["rows"].append(row)
        if row["status"] in ("differs", "error"):
            self._part["status"] = "failed"
        if row["status"] != "ok":
            print(f"  {row['status']}: {row.get('name', '')} {row.get('variant', '')}: {row['message']}", flush=True)
        self.write()

    def say(self, status, note, show=True):
        """The part ends so: "skipped", "incomplete" or "failed". A part that failed stays so."""
        if self._part["status"] != "failed":
            self._part["status"] = status
        self._part["note"] = "; ".join(filter(None, (self._part["note"], note)))
        if show:
            print(f"  {status}: {note}", flush=True)
        self.write()

    def finish(self):
        self.data["complete"] = True
        self.data["ended"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.write()

    def write(self):
        partial = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        partial.write_text(json.dumps(self.data, indent=1, default=str) + "\n")
        partial.replace(self.path)


class Progress:
    """One line on a terminal, now and then a line elsewhere."""

    def __init__(self, total):
        self.total, self.done = total, 0
        self._told = time.monotonic()

    def step(self, what):
        self.done += 1
        text = f"  {self.done} of {self.total}: {what}"
        if sys.stderr.isatty():
            print(f"\r{text[:110]:<110}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._told > 15:
            self._told = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def clear(self):
        if sys.stderr.isatty():
            print(f"\r{'':<110}\r", end="", file=sys.stderr, flush=True)


def table(header, rows):
    """A table for a terminal: the first column to the left, the others to the right."""
    rows = [["" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *rows)]

    def line(cells):
        padded = [cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:]))]
        return "  " + "  ".join(padded).rstrip()

    return "\n".join([line(header), line(["-" * w for w in widths]), *map(line, rows)])


def number(value, digits=3):
    """A number with few digits, and a dash for none."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:.0f}"
