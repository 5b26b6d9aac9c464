# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler's messages, in the words of Python: `dims={'N': 1}` where the command line has `--dim N=1`."""

import re

#: Options that map names to values, with the argument that holds all of them.
_MAPPINGS = {
    "--shard": "shard",
    "--sizes": "sizes",
    "--feedback": "feedback",
    "--dim": "dims",
    "--bound": "bounds",
    "--shape": "shapes",
}
#: Options with a text or a number, with the argument for it.
_VALUES = {
    "--mesh": "mesh",
    "--objective": "objective",
    "--cluster": "cluster",
    "--memory": "memory",
    "--follow": "follow",
    "--target": "target",
    "--cpu": "cpu",
    "--arch": "arch",
    "--math": "math",
    "--threads": "threads",
    "--seed": "seed",
}
#: Options that are given or not.
_FLAGS = {
    "--no-libraries": "libraries=False",
    "--no-index-checks": "index_checks=False",
    "--no-source-names": "source_names=False",
    "--remarks": "remarks=True",
    "--per-op": "per_op=True",
}
#: Options for which Python writes the files that they name.
_FILES = {"--input": "inputs", "--expect": "expect"}

_WORDS = r"cpu|cuda|time|bytes|memory"
_OPTION = re.compile(
    r"'(?P<quoted>--[a-z][a-z-]*)(?: (?P<text>.*?))?'(?=[:;,.)\s]|$)"
    r"|(?<![\w-])(?P<option>--[a-z][a-z-]*)"
    rf"(?: (?P<value>'[^'\s][^']*=[^']*'|[^\s'=]+=[^\s']*?(?=[:;,.)]*(?:\s|$))(?:\.\.\.)?|\d+|(?:{_WORDS})\b))?"
)
_NEIGHBOURS = re.compile(r"(\b(?:dims|bounds|shapes|shard|sizes))=\{([^{}]*)\} \1=\{([^{}]*)\}")
_LINE = re.compile(r"^dovetail: (error|warning|remark|note): ", re.MULTILINE)


def split_messages(text):
    """Pairs of the kind of a message, such as "error", and its text, which may have several lines."""
    pieces = _LINE.split(text)[1:]
    return [(kind, message.strip()) for kind, message in zip(pieces[::2], pieces[1::2])]


def _format_mapping(option, text):
    argument = _MAPPINGS[option]
    if option == "--feedback":
        name, _, value = text.partition(":")
    else:
        name, _, value = text.rpartition("=")
    if not name:
        return f"{argument}={text!r}"
    if option in ("--shape", "--sizes") and re.fullmatch(r"[\d?.,-]*", value):
        value = f"[{value.replace(',', ', ')}]"
    elif not re.fullmatch(r"\d+|\.\.\.", value):
        value = repr(value)
    return f"{argument}={{{name!r}: {value}}}"


def _format(option, text):
    """An option with its value, or None, as Python has it."""
    if option in _FLAGS:
        return _FLAGS[option] + (f" {text}" if text else "")
    if option in _FILES:
        name = text.rpartition("=")[0] if text else ""
        return f"{_FILES[option]}[{name!r}]" if name else f"{_FILES[option]}="
    if option in _MAPPINGS:
        return _format_mapping(option, text) if text else f"{_MAPPINGS[option]}="
    if option in _VALUES:
        return f"{_VALUES[option]}=" if text is None else f"{_VALUES[option]}={text if text.isdigit() else repr(text)}"
    raise KeyError(option)


def speak_python(message):
    """A message of the compiler with options as arguments of this package's functions."""

    def replace(match):
        value = match["text"] if match["quoted"] else match["value"]
        if value and not match["quoted"]:
            value = value.strip("'")
        try:
            return _format(match["quoted"] or match["option"], value)
        except KeyError:
            return match[0]  # Python gives others as the command line has them, in `options`.

    message = _OPTION.sub(replace, message)
    while (merged := _NEIGHBOURS.sub(r"\1={\2, \3}", message)) != message:
        message = merged
    return message
