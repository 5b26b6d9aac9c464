#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes tables, a chart and docs/performance.md of what bench.py measured.

usage: page.py bench/results/FILE.json     (writes docs/performance.md and its chart)
"""

import argparse
import functools
import json
import pathlib
import statistics

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/performance.md"
CHART = ROOT / "docs/images/performance.svg"

#: What follows it on the page is not measured by bench.py, and stays.
KEPT = "<!-- From here on the page is written by hand. -->"
#: So does what is between these two.
OTHERS = "<!-- By hand: other machines. -->", "<!-- Measured from here on. -->"

#: The comparisons with ONNX Runtime: part, title, what the gain is to.
COMPARISONS = (
    ("one thread", "One rank of one thread, and ONNX Runtime with one", None),
    ("two threads", "One rank of two threads, and ONNX Runtime with two", "one thread"),
    ("two ranks", "Two ranks of one thread, split by the compiler, and ONNX Runtime with two threads", "one rank"),
)
OPERATORS = "Single operators, one thread"


def _interval(values):
    """A ratio and where 95 % of resampled ones lie: `0.92 (0.90–0.93)`."""
    ratio, low, high = values
    return f"{ratio:.2f} ({low:.2f}–{high:.2f})"


def _mean(entries, key):
    return f"{statistics.geometric_mean(entry[key][0] for entry in entries):.2f}"


def _compare(entries, part, title, gain_to):
    # ONNX Runtime with two threads is in the table of two threads.
    has_peer = part != "two ranks"
    header = ["model", "Dovetail, ms"]
    header += [f"times as fast as {gain_to}"] * bool(gain_to) + ["ONNX Runtime, ms"] * has_peer + ["ratio (95 %)"]
    rows = []
    for entry in entries:
        cells = [entry["name"], f"{entry['ms']:.1f}"]
        cells += [_interval(entry["gain"])] if gain_to else []
        cells += [f"{entry['peer_ms']:.1f}"] if has_peer else []
        rows.append([*cells, _interval(entry["ratio"])])
    mean = ["geometric mean", ""] + ([_mean(entries, "gain")] if gain_to else []) + [""] * has_peer
    return title, header, [*rows, [*mean, _mean(entries, "ratio")]]


def _operators(entries):
    header = ["operator", "Dovetail, ms", "ONNX Runtime, ms", "memcpy, ms", "to ONNX Runtime (95 %)", "to memcpy"]
    rows = [
        [entry["name"], *(f"{entry[key]:.2f}" for key in ("ms", "peer_ms", "copy_ms")), _interval(entry["ratio"]),
         f"{entry['to_copy']:.2f}" if entry["to_copy"] else "–"]
        for entry in entries
    ]  # fmt: skip
    return OPERATORS, header, [*rows, ["geometric mean", "", "", "", _mean(entries, "ratio"), ""]]


def _packed(entries):
    header = ["product"]
    for threads in ("one thread", "two threads"):
        header += [f"{threads}, ms", "ONNX Runtime in f32, ms", "with inputs in 8 bits, ms", "to f32 (95 %)"]
    rows = []
    for entry in entries:
        cells = [entry["name"]]
        for times in entry["threads"]:
            cells += [f"{times[key]:.2f}" for key in ("ms", "peer_f32_ms", "peer_ms")] + [_interval(times["ratio"])]
        rows.append([*cells, f"{entry['kept_mb']:.1f}", f"{entry['total_mb']:.1f}"])
    return "Products with weights of few bits", [*header, "weights kept, MB", "in all, MB"], rows


def _halves(entries):
    header = [
        "type", "Dovetail, ms", "to its f32", "ONNX Runtime, ms", "error against f64",
        "with a rounding after each operator",
    ]  # fmt: skip

    def cell(value, form):
        return "–" if value is None else format(value, form)

    rows = [
        [entry["name"], f"{entry['ms']:.1f}", f"{entry['to_f32']:.2f}", cell(entry["peer_ms"], ".1f"),
         f"{entry['error']:.1e}", cell(entry["rounding_error"], ".1e")]
        for entry in entries
    ]  # fmt: skip
    return "ResNet-18 in 16 bits, one thread", header, rows


def _runtime(entries):
    header = ["work", "measured", "first, µs", "second, µs", "difference, µs", "ratio"]
    rows = []
    for entry in entries:
        first, second = entry["first_us"], entry["second_us"]
        numbers = [f"{number:.2f}" for number in (first, second, first - second, first / second)]
        rows.append([entry["name"], entry["variant"], *numbers])
    return "What the runtime adds to the work", header, rows


def _compiling(entries):
    header = ["model", "seconds", "peak memory, MB", "artifact, MB"]
    rows = [
        [entry["name"], f"{entry['seconds']:.1f}", f"{entry['peak_mb']:.0f}", f"{entry['artifact_mb']:.1f}"]
        for entry in entries
    ]
    return "dovetail compile, one rank", header, rows


#: Parts of measurements, in the order of the page, each with what makes a table of its entries.
_TABLES = {
    **{
        part: functools.partial(_compare, part=part, title=title, gain_to=gain_to)
        for part, title, gain_to in COMPARISONS
    },
    "operators": _operators,
    "packed": _packed,
    "16 bits": _halves,
    "runtime": _runtime,
    "compile": _compiling,
}


def of_part(measurements, part):
    return [entry for entry in measurements if entry["part"] == part]


def tables(measurements):
    """For each part that was measured (title, header, rows)."""
    found = {part: of_part(measurements, part) for part in _TABLES}
    return [_TABLES[part](entries) for part, entries in found.items() if entries]


def markdown_table(title, header, rows):
    lines = [f"## {title}", "", "| " + " | ".join(header) + " |"]
    lines.append("|---|" + "---:|" * (len(header) - 1))
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def summarize(measurements):
    """Of each comparison with ONNX Runtime: the mean and the median of ratios, what two cores gain, the three slowest."""
    rows = []
    for part, title in (*((part, title) for part, title, _ in COMPARISONS), ("operators", OPERATORS)):
        entries = of_part(measurements, part)
        if not entries:
            continue
        ratios = sorted(((entry["ratio"][0], entry["name"]) for entry in entries), reverse=True)
        median = f"{statistics.median(ratio for ratio, _ in ratios):.2f}"
        slowest = "; ".join(f"{name} {ratio:.2f}" for ratio, name in ratios[:3])
        gain = _mean(entries, "gain") if "gain" in entries[0] else "–"
        rows.append([title, _mean(entries, "ratio"), median, gain, slowest])
    header = ["comparison", "mean ratio", "median ratio", "times as fast as one", "slowest against ONNX Runtime"]
    return markdown_table("How fast it is today", header, rows)


#: Colours that can be told from each other on white and on black, and by people who see no red.
_COLOURS = {"one thread": "#0072b2", "two threads": "#e69f00", "two ranks": "#009e73"}


def chart(measurements):
    """An SVG: for each model the ratio of each comparison, as points on a line from 0; at 1 both are as fast."""
    found = {part: {e["name"]: e["ratio"][0] for e in of_part(measurements, part)} for part, _, _ in COMPARISONS}
    names = sorted(found["one thread"], key=lambda name: found["one thread"][name])
    most = max(1.1, *(ratio for ratios in found.values() for ratio in ratios.values()))
    left, right, row, top, width = 250, 20, 20, 44, 760
    height = top + row * len(names) + 30

    def at(ratio):
        return left + ratio / most * (width - left - right)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f"<title>Time of Dovetail divided by that of ONNX Runtime, {len(names)} models</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, part in enumerate(found):
        x = left + number * 130
        lines.append(f'<circle cx="{x}" cy="16" r="4.5" fill="{_COLOURS[part]}"/>')
        lines.append(f'<text x="{x + 10}" y="20" fill="#222">{part}</text>')
    for tenth in range(0, int(most * 10) + 1, 2):
        x = at(tenth / 10)
        stroke = 'stroke="#888" stroke-dasharray="4 3"' if tenth == 10 else 'stroke="#ddd"'
        lines.append(f'<line x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{height - 26}" {stroke}/>')
        lines.append(f'<text x="{x:.1f}" y="{height - 10}" text-anchor="middle" fill="#222">{tenth / 10:.1f}</text>')
    lines.append(
        f'<text x="{at(1) + 4:.1f}" y="{top - 12}" text-anchor="end" fill="#222">as fast as ONNX Runtime</text>'
    )
    for number, name in enumerate(names):
        y = top + row * number + row / 2
        lines.append(f'<text x="{left - 10}" y="{y + 4:.1f}" text-anchor="end" fill="#222">{name}</text>')
        ratios = [ratios[name] for ratios in found.values() if name in ratios]
        lines.append(
            f'<line x1="{at(min(ratios)):.1f}" y1="{y:.1f}" x2="{at(max(ratios)):.1f}" y2="{y:.1f}" stroke="#bbb"/>'
        )
        for part, ratios in found.items():
            if name in ratios:
                lines.append(f'<circle cx="{at(ratios[name]):.1f}" cy="{y:.1f}" r="4.5" fill="{_COLOURS[part]}"/>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def document(results, name, before):
    """docs/performance.md from `results`, of a file called `name`; `before`: what the page was."""
    _, mark, kept = before.partition(KEPT)
    others = before.partition(OTHERS[0])[2].partition(OTHERS[1])[0]
    measurements = results["measurements"]
    return "\n".join(
        [
            "# Performance",
            "",
            "For people who want to know how fast Dovetail is, and where it is slow. A ratio is the time of",
            "Dovetail, divided by that of the other program. Below 1 Dovetail is faster.",
            "",
            summarize(measurements),
            "![For each model the time of Dovetail divided by that of ONNX Runtime](images/performance.svg)",
            "",
            OTHERS[0] + others + OTHERS[1],
            "",
            "Measured by `make bench`, which measures again and prints these tables. `bench/page.py` makes",
            f"this page and its chart from [results that are kept](../bench/results/{name}).",
            "",
            f"Machine: {results['machine']['description']}. f32. Medians of {results['arguments']['rounds']} rounds, in"
            " which all that",
            "is compared runs in turns; in parentheses the interval that 95 % of resampled rounds give.",
            "",
            *(markdown_table(*table) for table in tables(measurements)),
        ]
    ) + (mark and "\n" + mark + kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=pathlib.Path, help="what `scripts/bench --save` wrote")
    arguments = parser.parse_args()
    results = json.loads(arguments.results.read_text())
    CHART.write_text(chart(results["measurements"]))
    PAGE.write_text(document(results, arguments.results.name, PAGE.read_text()))


if __name__ == "__main__":
    main()
