# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that ONNX Runtime adds to ONNX's, whole and split, against its kernels.

`test/e2e/random_ops.py --op com.microsoft.FusedConv --count 500` runs more cases of one operator, and
`make verify-all` `EVERY` of each.
"""

import subprocess
import sys

import onnx
import pytest
from cases import ABSOLUTE_TOLERANCE, random_draft
from contributed import GENERATORS, REFUSED
from harness.backend import ROOT
from harness.compare import differences
from harness.extent import EVERYTHING
from harness.oracle import expected_outputs
from random_ops import PASSED, Request
from random_ops import workers as create_workers

#: Cases of each operator in `make verify-all`, and in other runs.
EVERY, SOME = 40, 3


@pytest.fixture(scope="module")
def workers(backend):
    workers = create_workers(1)
    yield workers
    workers.close()


@pytest.mark.parametrize("seed", range(EVERY if EVERYTHING else SOME))
@pytest.mark.parametrize("op", sorted(GENERATORS))
def test_random_case(workers, op, seed):
    outcome = workers(Request(seed=seed, op=op))
    assert outcome.status == PASSED, f"{outcome.case}\n{outcome.message}"


def _schema(name):
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    domain, _, op = name.rpartition(".")
    return next(s for s in get_all_operator_schema() if (s.domain, s.name) == (domain, op))


def _is_default(attribute, schema):
    default = onnx.AttributeProto()
    default.ParseFromString(schema.attributes[attribute.name]._default_value)
    if not default.name:
        return False
    return onnx.helper.get_attribute_value(default) == onnx.helper.get_attribute_value(attribute)


def _optional(formals):
    from onnx.defs import OpSchema

    option = OpSchema.FormalParameterOption.Optional
    return {index: formal.name for index, formal in enumerate(formals) if formal.option.value == option.value}


@pytest.mark.parametrize("op", sorted(GENERATORS))
def test_cases_have_every_attribute_and_operand(op):
    schema = _schema(op)
    seen, absent = set(), set()
    for seed in range(EVERY):
        node = next(n for n in random_draft(seed, op).nodes if (n.domain, n.op_type) == (schema.domain, schema.name))
        seen |= {a.name for a in node.attribute if not _is_default(a, schema)}
        for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs)):
            for index, formal in _optional(formals).items():
                there = index < len(names) and names[index]
                (seen if there else absent).add(formal)
    optional = set(_optional(schema.inputs).values()) | set(_optional(schema.outputs).values())
    wanted = set(schema.attributes) | optional
    refused = set(REFUSED[op])
    assert refused <= wanted
    assert wanted - seen == refused
    assert optional - absent == set()


def test_signatures_are_those_of_onnxruntime():
    script = ROOT / "scripts/contributed-operators"
    subprocess.run([sys.executable, script, "--check"], check=True)


@pytest.mark.parametrize("op", ["com.microsoft.MultiHeadAttention", "com.microsoft.GroupQueryAttention"])
def test_reference_agrees(op):
    """NumPy's attention, which stands in where ONNX Runtime has no kernel, with its kernels where it has."""
    compared = 0
    for seed in range(EVERY):
        draft = random_draft(seed, op)
        if not draft.expected:
            expected = expected_outputs(draft.model(), draft.inputs)
            assert not differences(draft.reference(), expected, draft.tolerance, ABSOLUTE_TOLERANCE), seed
            compared += 1
    assert compared >= EVERY / 2
