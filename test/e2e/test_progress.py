# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What commands say while they work: on a terminal which phase it is, elsewhere a line now and then."""

import os
import pty
import re
import subprocess

from harness.backend import ROOT, tool
from harness.sanitizers import without_preload


def _run_shown(command, seconds=120):
    """What a command writes on a terminal."""
    terminal, other = pty.openpty()
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.DEVNULL, stderr=other, stdin=subprocess.DEVNULL,
        env={**without_preload(), "DOVETAIL_PROGRESS": ""},
    )
    os.close(other)
    text = b""
    try:
        while part := os.read(terminal, 4096):
            text += part
    except OSError:
        pass
    os.close(terminal)
    assert process.wait(timeout=seconds) == 0, text
    return text.decode()


def test_phases_on_terminal(tmp_path):
    model = ROOT / "test" / "Driver" / "Inputs" / "blur.onnxtxt"
    text = _run_shown([tool("dovetail"), "compile", model, "-o", tmp_path / "m.dvt", "--mesh", "y=2"])
    for number, phase in enumerate(["import", "simplify", "legalize", "propagate", "partition", "lower", "codegen", "emit"], 1):
        assert f"\r{phase} ({number} of 8) ...\x1b[K" in text
    # The line is gone at the end.
    assert "\r\x1b[K" in text[text.index("emit (8 of 8)") :]


def _calibrate(folder, progress):
    """Standard error of a command that takes more than 5 s."""
    command = [tool("dovetail"), "calibrate", "-o", folder / "c.json", "--ranks", "2", "--seconds", "6"]
    environment = {**without_preload(), "DOVETAIL_PROGRESS": progress}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stderr.splitlines()


def test_long_work_that_is_piped(tmp_path):
    """After 5 s a line says what goes on: `calibrate` measures, and does not emit."""
    lines = _calibrate(tmp_path, "")
    assert lines
    seconds = []
    for line in lines:
        found = re.fullmatch(r"dovetail: measure [^:]+ \(\d+ of \d+\)(: [a-z :]+)?, (\d+) s elapsed", line)
        assert found, line
        seconds.append(int(found[2]))
    assert seconds[0] >= 5 and all(b - a >= 9 for a, b in zip(seconds, seconds[1:]))


def test_progress_can_be_turned_off(tmp_path):
    assert _calibrate(tmp_path, "never") == []
