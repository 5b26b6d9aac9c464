# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decoder of ONNX Runtime's GroupQueryAttention, token by token on its own outputs, against ONNX Runtime.

A prompt fills caches of their whole length, and each step feeds its caches, its token and its lengths to the next one.
"""

import numpy as np
import onnx
import pytest
from dovetail_models import onnxruntime_session
from harness.backend import call, tool
from harness.compare import differences
from harness.partition import Partition, split_alike
from ops import Draft

BATCH, HEADS, GROUPS, SIZE, LAYERS, ROOM, VOCABULARY = 3, 6, 2, 16, 2, 23, 61
WIDTH = HEADS * SIZE
STEPS = 7
CACHES = [f"{kind}{layer}" for layer in range(LAYERS) for kind in ("key", "value")]
STATES = ["ids", "lengths", *CACHES]


class Decoder:
    """The model of `tokens` tokens a run."""

    def __init__(self, tokens):
        self.draft = d = Draft(np.random.default_rng(5))
        # Equal weights in models of different lengths.
        self.rng = np.random.default_rng(6)
        self.tokens = tokens
        self.names = {}
        for name, value in self.inputs().items():
            d.input(value, name)
        longest = d.node("ReduceMax", "lengths", keepdims=0, final=False)
        totals = d.node("Add", "lengths", d.constant(np.full(1, tokens, np.int32)), final=False)
        self.ends = d.node("Sub", totals, d.constant(np.ones(1, np.int32)), final=False)
        self.total = d.node("Add", longest, d.constant(np.array(tokens, np.int32)), final=False)
        angles = np.outer(np.arange(ROOM), 100.0 ** (-np.arange(SIZE // 2) / (SIZE // 2)))
        self.tables = [d.constant(f(angles).astype(np.float32)) for f in (np.cos, np.sin)]
        x = d.node("Gather", self.weights(VOCABULARY, WIDTH, scale=1), "ids", axis=0, final=False)
        written = []
        for layer in range(LAYERS):
            x = self.layer(x, layer, written)
        last = d.node("Gather", self.norm(x), d.ints(tokens - 1), axis=1, final=False)
        logits = d.node("MatMul", d.node("Squeeze", last, d.ints(1), final=False), self.weights(WIDTH, VOCABULARY), final=False)
        following = d.node("ArgMax", logits, axis=-1, keepdims=1, final=False)
        for name, value in zip(["logits", *STATES], [logits, following, totals, *written]):
            name = name if name == "logits" else f"next_{name}"
            d.nodes.append(onnx.helper.make_node("Identity", [value], [name]))
            d.outputs.append(name)
        self.model = d.model()

    def weights(self, *shape, scale=None):
        values = self.rng.standard_normal(shape) * (scale or shape[0] ** -0.5)
        return self.draft.constant(values.astype(np.float32))

    def norm(self, x):
        d = self.draft
        square = d.node("ReduceMean", d.node("Mul", x, x, final=False), d.ints(-1), final=False)
        root = d.node("Sqrt", d.node("Add", square, d.constant(np.float32(1e-6)), final=False), final=False)
        return d.node("Mul", d.node("Div", x, root, final=False), self.weights(WIDTH, scale=1), final=False)

    def layer(self, x, layer, written):
        d = self.draft
        packed = d.node("MatMul", self.norm(x), self.weights(WIDTH, (HEADS + 2 * GROUPS) * SIZE), final=False)
        caches = [f"key{layer}", f"value{layer}"]
        mixed, *new = d.contributed(
            "GroupQueryAttention", packed, "", "", *caches, self.ends, self.total, *self.tables,
            outputs=3, final=False, num_heads=HEADS, kv_num_heads=GROUPS, do_rotary=1,
        )  # fmt: skip
        written += new
        x = d.node("Add", x, d.node("MatMul", mixed, self.weights(WIDTH, WIDTH), final=False), final=False)
        y = self.norm(x)
        gate = d.node("MatMul", y, self.weights(WIDTH, 2 * WIDTH), final=False)
        gate = d.node("Mul", gate, d.node("Sigmoid", gate, final=False), final=False)
        up = d.node("Mul", gate, d.node("MatMul", y, self.weights(WIDTH, 2 * WIDTH), final=False), final=False)
        return d.node("Add", x, d.node("MatMul", up, self.weights(2 * WIDTH, WIDTH), final=False), final=False)

    def inputs(self):
        rng = np.random.default_rng(7)
        caches = {name: np.zeros([BATCH, GROUPS, ROOM, SIZE], np.float32) for name in CACHES}
        return {"ids": rng.integers(0, VOCABULARY, [BATCH, self.tokens]), "lengths": np.zeros(BATCH, np.int32)} | caches

    def run(self, inputs):
        """ONNX Runtime's outputs by name."""
        session = onnxruntime_session(self.model, threads=1)
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, inputs)))


def _fed(outputs):
    return {name: outputs[f"next_{name}"] for name in STATES}


@pytest.fixture(scope="module")
def prompt():
    return Decoder(5)


@pytest.fixture(scope="module")
def step():
    return Decoder(1)


@pytest.fixture(scope="module")
def start(prompt):
    """After a prompt: sequences of different lengths, of which those behind have less in their caches."""
    state = _fed(prompt.run(prompt.inputs()))
    state["lengths"] = np.array([5, 2, 4], np.int32)
    for name in CACHES:
        for sequence, length in enumerate(state["lengths"]):
            state[name][sequence, :, length:] = 0
    return state


def _split(dim, sizes, names=CACHES):
    return split_alike(names, 4, dim, sizes)


PARTITIONS = {
    "whole": Partition({"y": 1}),
    "heads": _split(1, (1, 1)),
    "tokens": _split(2, (4, 0, 19)),
    "some-tokens": _split(2, (9, 7, 7), ["next_key0", "value1"]),
    "batch": _split(0, (1, 2)),
    "automatic": Partition({"y": 2, "x": 2}),
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_prompt(backend, prompt, name):
    inputs = prompt.inputs()
    expected = prompt.run(inputs)
    actual = backend.compile_and_run(prompt.model, PARTITIONS[name], inputs, list(expected))
    assert not differences(actual, expected, tolerance=1e-5)


@pytest.mark.parametrize("name", PARTITIONS)
def test_steps(step, start, tmp_path, name):
    onnx.save(step.model, tmp_path / "step.onnx")
    line = [tool("dovetail"), "compile", tmp_path / "step.onnx", "-o", tmp_path / "step.dvt", *PARTITIONS[name].flags()]
    for state in STATES:
        line += ["--feedback", f"next_{state}:{state}"]
    code, _, messages = call(line)
    assert code == 0, messages
    line = [tool("dovetail"), "run", tmp_path / "step.dvt", "--steps", STEPS]
    for state in STATES:
        np.save(tmp_path / f"{state}.npy", start[state])
        line += ["--input", f"{state}=@{tmp_path}/{state}.npy"]
    for output in ("logits", *(f"next_{state}" for state in STATES)):
        line += ["--output", f"{output}={tmp_path}/{output}-{{step}}.npy"]
    code, _, messages = call(line)
    assert code == 0, messages
    inputs = start
    for number in range(1, STEPS + 1):
        expected = step.run(inputs)
        actual = {output: np.load(tmp_path / f"{output}-{number:04}.npy") for output in expected}
        assert not differences(actual, expected, tolerance=1e-5), number
        inputs = _fed(expected)


def test_caches_that_are_full(step, start, tmp_path):
    """A token that has no room is an error of the run, which names the node."""
    onnx.save(step.model, tmp_path / "step.onnx")
    code, _, messages = call([tool("dovetail"), "compile", tmp_path / "step.onnx", "-o", tmp_path / "step.dvt"])
    assert code == 0, messages
    line = [tool("dovetail"), "run", tmp_path / "step.dvt"]
    for name, value in (start | {"lengths": np.array([ROOM, 2, 4], np.int32)}).items():
        np.save(tmp_path / f"{name}.npy", value)
        line += ["--input", f"{name}=@{tmp_path}/{name}.npy"]
    code, _, messages = call(line)
    assert code == 2 and "GroupQueryAttention" in messages and f"index {ROOM} is out of range" in messages, messages
