# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much of the suites runs: everything with DOVETAIL_ALL=1 (`make verify-all`), and otherwise what CI has time for."""

import os

EVERYTHING = os.environ.get("DOVETAIL_ALL", "0") == "1"


def some(items, number, count):
    """All of `items` when everything runs; otherwise `count` of them in turn, from number `number` on."""
    items = list(items)
    if EVERYTHING or len(items) <= count:
        return items
    return [items[(number * count + i) % len(items)] for i in range(count)]
