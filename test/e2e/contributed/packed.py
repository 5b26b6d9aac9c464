# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of few bits, packed into bytes."""

import ml_dtypes
import numpy as np

from .registry import contributes


def pack(numbers, bits):
    """Rows of numbers below `2 ** bits` as bytes, low bits first; the last byte of a row may have bits left over."""
    per_byte = 8 // bits
    rest = -numbers.shape[-1] % per_byte
    numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, rest)])
    numbers = numbers.reshape(*numbers.shape[:-1], -1, per_byte).astype(np.uint8)
    return (numbers << (np.arange(per_byte, dtype=np.uint8) * bits)).sum(-1, dtype=np.uint8)


@contributes("MatMulNBits", refused=("weight_prepacked",))
def matmul(d, op):
    bits, size = d.pick(2, 4, 4, 8), d.pick(16, 16, 32, 64)
    dtype = d.pick(np.float32, np.float32, np.float16)
    if dtype == np.float16:
        d.tolerance = 2e-3
    rows, terms = d.integer(1, 40), d.pick(size, 2 * size, 3 * size, d.integer(1, 4 * size))
    blocks = -(-terms // size)
    weights = d.rng.integers(0, 2**bits, [rows, blocks, size])
    # Weights that are left out have an extent of 0.
    is_empty = d.chance(0.05)
    scales = d.values([rows, blocks], dtype, 0.02, 0.2)
    # Constants are unpacked when they are read, others by arithmetic.
    put = d.constant if d.chance(0.6) else d.either
    is_flat = d.chance(0.2)
    x = d.values([*d.shape(0, 2, 3), d.integer(1, 9), terms], dtype)
    operands = [
        d.input(x),
        put(pack(weights, bits)[:0] if is_empty else pack(weights, bits)),
        put(scales.reshape(-1) if is_flat else scales),
        "",
        "",
        "",
    ]
    zeros = d.pick(None, "packed", "packed", "wide")
    # ONNX Runtime does not have these.
    if bits == 8 and zeros == "wide":
        zeros = "packed"
    points = np.array(2 ** (bits - 1))
    if zeros == "packed":
        points = d.rng.integers(0, 2**bits, [rows, blocks])
        packed = pack(points, bits)
        operands[3] = put(packed.reshape(-1) if is_flat else packed)
    elif zeros == "wide":
        points = d.values([rows, blocks], dtype, 0, 2**bits - 1)
        operands[3] = d.constant(points)
    if d.chance(0.2):
        operands[4] = d.constant((np.arange(blocks * size if d.chance(0.5) else terms) // size).astype(np.int32))
    if d.chance(0.5):
        bias = d.values([rows], dtype)
        operands[5] = d.either(bias)
    # With an order, ONNX Runtime 1.32 leaves packed zero points out, and reads 2 bits as 4.
    if is_empty:
        zero = np.zeros([*x.shape[:-1], rows])
        d.expect("y0_0", (zero + (bias if operands[5] else 0)).astype(dtype))
    elif operands[4] and (zeros == "packed" or bits != 4):
        wide = (weights - points.reshape(*points.shape, 1)) * scales.astype(np.float64)[..., None]
        expected = x.astype(np.float64) @ wide.reshape(rows, -1)[:, :terms].T
        d.expect("y0_0", (expected + (bias if operands[5] else 0)).astype(dtype))
    while not operands[-1]:
        operands.pop()
    d.contributed(
        op,
        *operands,
        N=rows,
        K=terms,
        block_size=size,
        bits=bits if bits != 4 or d.chance(0.5) else None,
        accuracy_level=d.pick(None, 0, 1),
    )


def _float_table(d, shape):
    dtype = d.pick(ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn)
    return d.values(shape, np.float32).astype(dtype)


@contributes("GatherBlockQuantized")
def gather(d, op):
    kind = d.pick("bytes", "bytes", "nibbles", "floats")
    size = d.pick(16, 32, 128)
    rank = d.integer(2, 3)
    shape = [d.integer(1, 7) for _ in range(rank)]
    gather_axis, quantize_axis, bits = 0, rank - 1, None
    if kind == "bytes":
        bits = d.pick(2, 4, 8)
    else:
        gather_axis, quantize_axis = d.integer(0, rank - 1), d.integer(0, rank - 1)
    shape[quantize_axis] = d.pick(size, d.integer(1, 5) * 8, 2 * size)
    blocks = list(shape)
    whole = kind == "floats" and d.chance(0.4)
    blocks[quantize_axis] = 1 if whole else -(-shape[quantize_axis] // size)
    scale_type = d.pick(np.float32, np.float32, np.float16)
    scales = d.values(blocks, scale_type, 0.05, 0.5)
    zeros = []
    if kind == "bytes":
        data = pack(d.rng.integers(0, 2**bits, shape), bits)
        if d.chance(0.6):
            zeros = [d.constant(pack(d.rng.integers(0, 2**bits, blocks), bits))]
    elif kind == "nibbles":
        dtype, low = d.pick((ml_dtypes.int4, -8), (ml_dtypes.uint4, 0))
        data = d.rng.integers(low, low + 16, shape).astype(dtype)
        if d.chance(0.6):
            zeros = [d.constant(d.rng.integers(low, low + 16, blocks).astype(dtype))]
    else:
        data = _float_table(d, shape)
        if d.chance(0.3):
            scales = scales[tuple(slice(0, None if a == quantize_axis else 1) for a in range(rank))]
    extent = shape[gather_axis]
    low, high = d.pick((0, extent - 1), (-extent, extent - 1), (-extent - 3, extent + 2))
    # Types of less than 8 bits are no inputs of ONNX Runtime's interface for Python.
    table = d.constant(data) if kind != "bytes" or d.chance(0.8) else d.input(data)
    indices = d.values(d.shape(0, 2, 5), d.pick(np.int32, np.int64), low, high)
    d.exact = True
    sign = d.pick(0, rank)
    d.contributed(
        op,
        table,
        d.either(indices, 0.4),
        d.constant(scales),
        *zeros,
        bits=bits if kind == "bytes" and bits != 4 else None,
        block_size=0 if whole else size if size != 128 or d.chance(0.5) else None,
        gather_axis=d.pick(gather_axis, None) if gather_axis == 0 else gather_axis - sign,
        quantize_axis=quantize_axis - sign,
    )
