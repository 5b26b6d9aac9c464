# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of timed programs, and the boxes in which outputs are compared.

`pack` and `run` both make the inputs from a seed; no file holds them. An output may be larger than the package. The
package has the expected values of some boxes of it.
"""

import functools

import numpy as np

DTYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64}

#: A prime number: neighbours along no dimension of an image are equal because values repeat.
PERIOD = 4194301


@functools.lru_cache(maxsize=4)
def _block(seed, count):
    """`count` multiples of 1/64 from -1 up to, but not with, 1. f16 holds them exactly."""
    # NumPy keeps the numbers of RandomState the same in all of its versions.
    return np.random.RandomState(seed).randint(-64, 64, count, dtype=np.int8).astype(np.float32) / np.float32(64)


def _count(shape):
    return int(np.prod(shape, dtype=np.int64))


def values(item, dtype=None):
    """The array of one input of an entry. Its elements in row-major order repeat after PERIOD elements."""
    count = _count(item["shape"])
    block = _block(item["seed"], min(count, PERIOD)).astype(DTYPES[dtype or item["dtype"]])
    if count <= PERIOD:
        return block.reshape(item["shape"])
    result = np.empty(count, block.dtype)
    for start in range(0, count, PERIOD):
        result[start : start + PERIOD] = block[: count - start]
    return result.reshape(item["shape"])


def crop(item, starts, sizes):
    """The box of `values(item)` that begins at `starts`, without making the rest of the array."""
    index, stride = np.zeros((1,) * len(sizes), np.int64), 1
    for dim in reversed(range(len(sizes))):
        places = (np.arange(sizes[dim], dtype=np.int64) + starts[dim]) * stride
        index = index + places.reshape([-1 if d == dim else 1 for d in range(len(sizes))])
        stride *= item["shape"][dim]
    block = _block(item["seed"], min(_count(item["shape"]), PERIOD))
    return block[index % len(block)].astype(DTYPES[item["dtype"]])


def generate(entry, dtype=None):
    """The inputs of an entry of manifest["timed"], by name. `dtype` ("f32" or "f16") replaces the type of the entry."""
    return {item["name"]: values(item, dtype) for item in entry["inputs"]}


def _gathered(entry, pieces):
    """The values of all boxes of an output in one vector, by the name of the output."""
    found = {}
    for box, piece in zip(entry["sample_boxes"], pieces, strict=True):
        found.setdefault(box["output"], []).append(np.asarray(piece).reshape(-1))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def samples(package, entry):
    """The expected values of each output's boxes, one vector an output. Raises DamagedPackage."""
    with np.load(package.path(entry["samples"])) as file:
        return _gathered(entry, [file[f"{index}/values"] for index in range(len(entry["sample_boxes"]))])


def taken(entry, outputs, dtype=np.float32):
    """The values of `outputs`, arrays by name, in the order of `samples`.

    A box that is not inside of its output gives fewer values: `verdict` then says that shapes differ.
    """

    def piece(box):
        output = np.asarray(outputs[box["output"]])
        return output[tuple(slice(s, s + n) for s, n in zip(box["starts"], box["sizes"]))].astype(dtype)

    return _gathered(entry, [piece(box) for box in entry["sample_boxes"]])
