# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much of the suites runs: everything with DOVETAIL_ALL=1 (`make verify-all`), and otherwise what CI has time for.

Of a test function that is marked `one_of(n)`, CI runs one of n cases: those that have all values of all parameters, and
most pairs of values that so many cases can have.
"""

import collections
import itertools
import os
import random
import re

import pytest

#: Of an object in its text, which differs from process to process.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

EVERYTHING = os.environ.get("DOVETAIL_ALL", "0") == "1"


def some(items, number, count):
    """All of `items` when everything runs; otherwise `count` of them in turn, from number `number` on."""
    items = list(items)
    if EVERYTHING or len(items) <= count:
        return items
    return [items[(number * count + i) % len(items)] for i in range(count)]


def one_of(number):
    """Marks a test function, of whose cases CI runs one of `number`."""
    return pytest.mark.one_of(number)


def cover(cases, count):
    """The numbers of `count` of `cases`, or of more if it takes more to have all values of all parameters.

    A case is a dictionary of parameters, whose values are compared as text. A parameter that differs in all cases does
    not count.
    Next comes the case with most values that are missing, and of these the one whose pairs of values, then whose values,
    have been chosen least; where that decides nothing, chance does, always in the same way.
    """
    values = [[(name, _ADDRESS.sub("", repr(value))) for name, value in case.items()] for case in cases]
    occurrences = collections.Counter(itertools.chain(*values))
    telling = {name for (name, _), number in occurrences.items() if number > 1}
    values = [[value for value in own if value[0] in telling] for own in values]
    left = list(range(len(cases)))
    random.Random(0).shuffle(left)
    missing, seen, chosen = {*itertools.chain(*values)}, collections.Counter(), []

    def rank(number):
        own = values[number]
        pairs = sum(seen[pair] for pair in itertools.combinations(own, 2))
        return -len(missing & {*own}), pairs, sum(seen[value] for value in own)

    while left and (missing or len(chosen) < count):
        best = min(left, key=rank)
        left.remove(best)
        chosen.append(best)
        missing -= {*values[best]}
        seen.update(values[best])
        seen.update(itertools.combinations(values[best], 2))
    return sorted(chosen)


def select(items):
    """What CI runs of pytest's test items, and the rest. What is quick runs in any case."""
    groups = collections.defaultdict(list)
    for item in items:
        groups[item.nodeid.split("[")[0]].append(item)
    kept = set()
    for group in groups.values():
        mark = group[0].get_closest_marker("one_of")
        if mark is None or EVERYTHING:
            kept.update(group)
            continue
        parameters = [item.callspec.params for item in group]
        kept.update(group[number] for number in cover(parameters, -(-len(group) // mark.args[0])))
        kept.update(item for item in group if item.get_closest_marker("quick"))
    return [item for item in items if item in kept], [item for item in items if item not in kept]
