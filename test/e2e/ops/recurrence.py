# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LSTM, GRU and RNN."""

import numpy as np

from .draft import generates

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
#: Functions with the numbers that they take.
_NUMBERS = {
    "Relu": 0,
    "Tanh": 0,
    "Sigmoid": 0,
    "Softsign": 0,
    "Softplus": 0,
    "LeakyRelu": 1,
    "ThresholdedRelu": 1,
    "Elu": 1,
    "Affine": 2,
    "ScaledTanh": 2,
    "HardSigmoid": 2,
}
#: Those whose values have a bound.
_BOUNDED = {"Tanh", "Sigmoid", "Softsign", "ScaledTanh", "HardSigmoid"}


def _overflows(names):
    """Whether ONNX Runtime's Softplus, log(1 + exp(x)), may overflow, as states grow from step to step."""
    return "Softplus" in names and not set(names) <= _BOUNDED | {"Softplus"}


def _activations(d, op, directions):
    """Names of functions, and what they take, in order."""
    if d.chance(0.4):
        return {}
    names = [d.pick(*_NUMBERS) for _ in range(directions * _FUNCTIONS[op])]
    # Without them ONNX Runtime takes defaults.
    if d.chance(0.3) and not any(_NUMBERS[n] for n in names):
        return {"activations": names}
    alphas = [round(d.rng.uniform(0.1, 0.9), 3) for n in names if _NUMBERS[n] >= 1]
    betas = [round(d.rng.uniform(0.1, 0.9), 3) for n in names if _NUMBERS[n] == 2]
    return {"activations": names, "activation_alpha": alphas or None, "activation_beta": betas or None}


@generates("LSTM", "GRU", "RNN", weight=6)
def recurrence(d, op):
    d.since(7)
    # Small, as the witness of reads goes through every term; test_models.py has more hidden elements than a panel.
    steps, batch, inputs = d.integer(1, 4), d.integer(1, 6), d.integer(1, 5)
    hidden = d.integer(1, 9)
    direction = d.pick(None, "forward", "reverse", "bidirectional", "bidirectional")
    directions = 2 if direction == "bidirectional" else 1
    gates = _GATES[op]

    def values(*shape):
        return d.values(shape, np.float32, -1, 1)

    scale = 1 / np.sqrt(hidden)
    operands = [
        d.input(values(steps, batch, inputs)),
        d.either(values(directions, gates * hidden, inputs)),
        d.either((values(directions, gates * hidden, hidden) * scale).astype(np.float32)),
        d.either(values(directions, 2 * gates * hidden)) if d.chance(0.7) else "",
        d.either(d.rng.integers(1, steps + 1, batch).astype(np.int32), 0.4) if d.chance(0.4) else "",
        d.either(values(directions, batch, hidden)) if d.chance(0.5) else "",
    ]
    attributes = {"hidden_size": hidden, "direction": direction, **_activations(d, op, directions)}
    if op == "LSTM":
        operands.append(d.either(values(directions, batch, hidden)) if d.chance(0.5) else "")
        operands.append(d.either(values(directions, 3 * hidden)) if d.chance(0.4) else "")
        attributes["input_forget"] = d.pick(None, None, 0, 1)
    if op == "GRU":
        attributes["linear_before_reset"] = d.pick(None, 0, 1)
    if d.chance(0.3) or _overflows(attributes.get("activations", [])):
        attributes["clip"] = round(d.rng.uniform(0.3, 2), 3)
    while operands[-1] == "":
        operands.pop()
    d.node(op, *operands, outputs=d.integer(1, 3 if op == "LSTM" else 2), **attributes)
