# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random choices of the generators of operators and graphs."""


class Choices:
    """Draws from `rng`, a numpy generator."""

    def __init__(self, rng):
        self.rng = rng

    def pick(self, *values):
        return values[self.rng.integers(len(values))]

    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def integer(self, low, high):
        """From `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))
