# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a model to a file."""

import argparse
import inspect

import onnx

from . import BUILDERS, build


def _parse_size(text):
    name, _, value = text.partition("=")
    if not name or not value:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, int(value) if value.lstrip("-").isdigit() else value


def main():
    parser = argparse.ArgumentParser(prog="python -m dovetail_models", description=__doc__)
    parser.add_argument("model", choices=sorted(BUILDERS), metavar="NAME")
    parser.add_argument("-o", "--output", required=True, help="the .onnx file to write")
    parser.add_argument(
        "--size",
        type=_parse_size,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the model, such as height=512; a word makes the dimension symbolic",
    )
    arguments = parser.parse_args()
    sizes = dict(arguments.size)
    known = inspect.signature(BUILDERS[arguments.model]).parameters
    for name in sizes:
        if name not in known:
            parser.error(f"{arguments.model} has no parameter '{name}'; it has {', '.join(known)}")
    onnx.save(build(arguments.model, **sizes), arguments.output)


if __name__ == "__main__":
    main()
