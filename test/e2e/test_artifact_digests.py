# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts are those recorded in test/artifacts/digests.tsv, so that a change that only moves code is seen to change none."""

import subprocess

import pytest
from harness.backend import ROOT, build_dir

SCRIPT = ROOT / "scripts/artifact-digests"
OTHER_VERSIONS = 3


def run(*arguments, **options):
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=300, **options)


@pytest.mark.quick
def test_artifacts():
    result = run(build_dir())
    if result.returncode == OTHER_VERSIONS:
        pytest.skip(result.stderr)
    assert result.returncode == 0, f"{result.stdout}{result.stderr}if this is meant: scripts/artifact-digests --update"


def test_no_build(tmp_path):
    result = run(tmp_path)
    assert result.returncode == 2 and "has no compiler" in result.stderr
