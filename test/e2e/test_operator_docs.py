# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/operators.md is what is registered and what tests run."""

import operator_docs


def test_page_is_up_to_date():
    text = operator_docs.page()
    assert operator_docs.PAGE.read_text() == text, "run `.venv/bin/python test/e2e/operator_docs.py`, and look at it"


def test_operators_with_generators_are_known():
    known = operator_docs.known_operators()
    assert not {operator_docs.operator_of(name) for name in operator_docs.GENERATORS} - set(known)
