# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gelu and what is like it."""

from .registry import contributes


@contributes("Gelu")
def gelu(d, op):
    d.contributed(op, d.input(d.values(d.shape(1, 5))))


@contributes("QuickGelu")
def quick_gelu(d, op):
    d.contributed(op, d.input(d.values(d.shape(1, 5))), alpha=d.pick(None, 1.0, 0.5, -2.0))


@contributes("BiasGelu")
def bias_gelu(d, op):
    shape = d.shape(1, 4)
    d.contributed(op, d.input(d.values(shape)), d.either(d.values(shape[-1:])))


@contributes("FastGelu")
def fast_gelu(d, op):
    shape = d.shape(1, 4)
    bias = [d.either(d.values(shape[-1:]))] if d.chance(0.6) else []
    d.contributed(op, d.input(d.values(shape)), *bias)
