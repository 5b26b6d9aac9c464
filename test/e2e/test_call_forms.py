# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""That passes and libraries ask for the form of a call, and do not compare classes: which files may name these."""

import re

import pytest
from harness.backend import ROOT

#: Operations that calls are for, and calls of plans.
CLASSES = re.compile(
    r"\b(Conv|ConvTranspose|MatMul|Pool|Attention|Dft|Convolution|Transform)Op\b"
)
#: For each room of decisions about calls, the files that name a class, and why.
ALLOWED = {
    "Library": {"Calls.cpp": "creates calls of plans from their forms"},
    "Cost": {},
    "Schedule": {
        "ChooseAlgorithms.cpp": "only convolutions have algorithms",
        "MergeRows.cpp": "only products have rows of several dimensions",
        "ReplaceSlowCalls.cpp": "only convolutions have algorithms",
    },
    "Conversion": {"MergeHeads.cpp": "rewrites attention"},
    "Target": {},
}
#: Where an algorithm for convolutions is named beside its kernels: its entry, and the numbers that files have for it.
WINOGRAD = {
    "include/dovetail/Dialect/Plan/IR/PlanEnums.td",
    "include/dovetail/Dialect/Plan/IR/PlanOps.td",
    "include/dovetail/Schedule/Passes.td",
    "lib/Artifact/PlanEnums.cpp",
    "lib/Dialect/Plan/IR/Steps.cpp",
    "runtime/include/dovetail/Calls/ConvolutionAlgorithms.h",
    "runtime/include/dovetail/Calls/Winograd.h",
    "runtime/lib/Calls/ConvolutionAlgorithms.cpp",
    "runtime/lib/Program/PlanEnums.cpp",
    "runtime/schema/plan.fbs",
}


def sources(*folders):
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".h", ".cpp", ".td", ".inc", ".fbs"):
                yield file


@pytest.mark.parametrize("room", ALLOWED)
def test_decisions_name_no_class(room):
    files = list(sources(f"lib/{room}", f"include/dovetail/{room}"))
    assert len(files) > 2
    found = {
        file.name: CLASSES.search(file.read_text()).group(0)
        for file in files
        if CLASSES.search(file.read_text())
    }
    assert {name: what for name, what in found.items() if name not in ALLOWED[room]} == {}
    assert set(ALLOWED[room]) <= set(found), "allowed, but not needed any more"


def test_algorithms_are_entries():
    """Backends have kernels, and names of other libraries' algorithms."""
    found = {
        str(file.relative_to(ROOT))
        for file in sources("include", "lib", "tools", "runtime")
        if re.search("winograd", file.read_text(), re.IGNORECASE) and "/Backend/" not in str(file)
    }
    assert found == WINOGRAD
