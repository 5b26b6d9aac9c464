# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says how two sets of outputs differ."""

import numpy as np


def from_bits(actual, dtype):
    """`actual`, as elements of `dtype` where NumPy lacks this type and programs return the bits."""
    lacks = np.dtype(dtype).type.__module__ == "ml_dtypes"
    if lacks and actual.dtype.kind in "uV" and actual.itemsize == np.dtype(dtype).itemsize:
        return actual.view(dtype)
    return actual


def _as_numbers(array):
    """Numbers of a type that NumPy lacks, as f32, which has all of them."""
    return array.astype(np.float32) if array.dtype.type.__module__ == "ml_dtypes" else array


def difference(actual, expected, tolerance=1e-4, name="output", floor=0.0):
    """None if they agree, else a sentence that names the first place where they do not.

    Floating-point values may differ by `tolerance` times the largest finite magnitude expected, or
    by `floor` if that is more; a tolerance of 0, and every other type, asks for equality. NaN
    equals NaN.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    actual = from_bits(actual, expected.dtype)
    if actual.dtype != expected.dtype:
        return f"{name}: type {actual.dtype}, expected {expected.dtype}"
    if actual.shape != expected.shape:
        return f"{name}: shape {actual.shape}, expected {expected.shape}"
    if expected.size == 0:
        return None
    actual, expected = _as_numbers(actual), _as_numbers(expected)
    if not np.issubdtype(expected.dtype, np.inexact) or tolerance == 0:
        equal = actual == expected
        if np.issubdtype(expected.dtype, np.inexact):
            equal |= np.isnan(actual) & np.isnan(expected)
        return None if equal.all() else _first(name, actual, expected, ~equal, "")
    wrong = np.isnan(actual) != np.isnan(expected)
    infinite = np.isinf(actual) | np.isinf(expected)
    wrong |= infinite & (actual != expected)
    finite = np.isfinite(actual) & np.isfinite(expected)
    magnitudes = np.abs(expected[np.isfinite(expected)])
    limit = max(floor, tolerance * (float(magnitudes.max()) if magnitudes.size else 0.0))
    errors = np.zeros(expected.shape)
    np.subtract(actual, expected, out=errors, where=finite, dtype=np.float64)
    wrong |= np.abs(errors) > limit
    if not wrong.any():
        return None
    return _first(name, actual, expected, wrong, f", limit {limit:.3g}")


def _first(name, actual, expected, wrong, note):
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{name}: {int(wrong.sum())} of {expected.size} elements differ, first at {list(index)}: "
        f"{actual[index]}, expected {expected[index]}{note}"
    )


#: Whole numbers that were rounded from values this near to a half may be either one.
TIE = 1e-5


def round_ties_alike(expected, actual, unrounded):
    """`expected`, with ties rounded as they are in `actual`.

    `unrounded` are the exact values of `expected` before rounding, or None. They must agree with `expected`.
    """
    if unrounded is None:
        return expected
    unrounded = np.asarray(unrounded, np.float64)
    ties = np.abs(unrounded - np.floor(unrounded) - 0.5) <= TIE
    info = np.iinfo(expected.dtype)
    exact = np.clip(np.rint(unrounded), info.min, info.max)
    wrong = (exact != expected) & ~ties
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ValueError(f"expected {expected[at]} at {list(map(int, at))}, but the exact value is {unrounded[at]}")
    if actual is None or actual.shape != expected.shape or actual.dtype != expected.dtype:
        return expected
    steps = np.abs(actual.astype(np.int64) - expected)
    return np.where(ties & (steps == 1), actual, expected)


def largest_relative_difference(actual, expected):
    """The largest difference over the largest magnitude of `expected`."""
    scale = float(np.abs(expected).max()) if expected.size else 0.0
    error = float(np.abs(actual.astype(np.float64) - expected).max()) if expected.size else 0.0
    return error / scale if scale else error


def relative_distance(actual, expected):
    """The norm of the difference over the norm of `expected`."""
    scale = float(np.linalg.norm(expected.astype(np.float64)))
    error = float(np.linalg.norm(actual.astype(np.float64) - expected))
    return error / scale if scale else error


def differences(actual, expected, tolerance=1e-4, floor=0.0):
    """The first difference among all outputs, or None; both are dictionaries by name."""
    for name, value in expected.items():
        if name not in actual:
            return f"{name}: not produced"
        found = difference(actual[name], value, tolerance, name, floor)
        if found:
            return found
    return None
