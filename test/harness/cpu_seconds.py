# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU seconds of a test: those of its process and of all that it started, which other work on the machine changes little."""

import psutil


def spent():
    """CPU seconds so far of this process, of its children that have ended, and of all descendants that live."""
    this = psutil.Process()
    seconds = _of(this)
    for child in this.children(recursive=True):
        try:
            seconds += _of(child)
        except psutil.NoSuchProcess:
            continue
    return seconds


def _of(process):
    times = process.cpu_times()
    return times.user + times.system + times.children_user + times.children_system
