# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The registry of generators of operators that ONNX Runtime adds."""

GENERATORS = {}
#: Attributes, operands and results that the compiler refuses, by operator; values are a word of the message.
REFUSED = {}


def contributes(*ops, domain="com.microsoft", refused=()):
    """Registers `function(draft, op)` as the generator of each of `ops`.

    The cases of a generator have each attribute of the operator at values other than its default, and each optional
    operand and result; but those that are `refused`.
    """

    def register(function):
        for op in ops:
            name = f"{domain}.{op}" if domain else op
            GENERATORS[name] = lambda draft, _, op=op: function(draft, op)
            REFUSED[name] = tuple(refused)
        return function

    return register
