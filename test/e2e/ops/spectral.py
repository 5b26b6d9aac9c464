# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms, and what they are used with."""

import numpy as np

from .draft import generates

#: Powers of two, products of others, primes with and without factors of their own, and one point.
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 21, 29, 30, 31, 32, 37, 41, 45, 64, 74, 97, 100, 128]


@generates("DFT", weight=8)
def dft(d, op):
    # The reference knows inverse transforms of one side, and ONNX Runtime does not.
    opset = d.since(17, 22)
    d.prefer_reference = True
    shape = [d.integer(1, d.pick(3, 12)) for _ in range(d.integer(1, 3))]
    axis = d.integer(0, len(shape) - 1)
    shape[axis] = d.pick(*LENGTHS)
    inverse, onesided = d.pick(None, 0, 1), d.pick(None, 0, 1)
    if onesided and inverse and shape[axis] == 1:
        shape[axis] = 2
    parts = 1 if onesided and not inverse else 2 if onesided else d.pick(1, 2)
    given = axis - len(shape) - 1 if d.chance(0.4) else axis
    x = d.input(d.values([*shape, parts], d.pick(np.float32, np.float32, np.float64)))
    length = d.constant(np.array(d.pick(*LENGTHS), np.int64)) if d.chance(0.3) else ""
    attributes = {"inverse": inverse, "onesided": onesided}
    if opset < 20:
        name = d.node(op, *([x, length] if length else [x]), axis=given, **attributes)
    else:
        name = d.node(op, x, length, d.constant(np.array(given, np.int64)), **attributes)
    points = int(d.constants[length]) if length else 2 * (shape[axis] - 1) if inverse and onesided else shape[axis]
    shape[axis] = points // 2 + 1 if onesided and not inverse else points
    # ONNX infers other shapes for inverse transforms of one side.
    d.declare(name, np.zeros([*shape, 1 if inverse and onesided else 2], d.inputs[x].dtype))


@generates("STFT", weight=3)
def stft(d, op):
    d.since(17, 22)
    d.prefer_reference = True
    length, step, frames = d.pick(4, 8, 12, 15, 16, 20, 37), d.integer(1, 20), d.integer(1, 9)
    onesided = d.pick(None, 0, 1)
    parts = d.pick(1, 2) if onesided == 0 else 1
    extent = length + step * (frames - 1) + d.integer(0, step - 1)
    dtype = d.pick(np.float32, np.float32, np.float64)
    x = d.input(d.values([d.integer(1, 4), extent, parts], dtype))
    window = d.either(d.values([length], dtype, 0, 1)) if d.chance(0.7) else ""
    given = d.constant(np.array(length, np.int64)) if not window or d.chance(0.5) else ""
    d.node(op, x, d.constant(np.array(step, np.int64)), window, given, onesided=onesided)


@generates("MelWeightMatrix")
def mel_weight_matrix(d, op):
    d.since(17)
    rate = d.pick(8000, 16000)
    numbers = [d.integer(1, 12), d.pick(16, 64, 200, 255), rate]
    edges = [np.float32(d.integer(0, 300)), np.float32(d.integer(rate // 8, rate // 2))]
    operands = [d.constant(np.array(n, np.int64)) for n in numbers] + [d.constant(e) for e in edges]
    # Weights alone are no case: they are applied to a spectrum.
    weights = d.node(op, *operands, final=False, output_datatype=1)
    d.node("MatMul", d.input(d.values([d.integer(1, 9), numbers[1] // 2 + 1])), weights)
