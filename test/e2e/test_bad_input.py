# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bad flags, files, models and inputs: the exit code says what kind, the message names the thing."""

import dataclasses
import os
import re
import resource
import subprocess

import numpy as np
import onnx
import pytest
from harness.backend import build_dir, call, tool
from harness.sanitizers import sanitizers, without_preload
from onnx import TensorProto, helper, numpy_helper

USAGE, FILE, INVALID_MODEL, UNSUPPORTED, DOES_NOT_FIT, DAMAGED, INTERNAL = 2, 3, 4, 5, 6, 7, 9
FLOAT = TensorProto.FLOAT


@dataclasses.dataclass
class Bad:
    """A command line, in which {dir} is the folder of the files below, and what must come of it."""

    name: str
    command: str
    code: int
    pattern: str


def _value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def _model(nodes, inputs, outputs, initializers=(), opset=17, domains=()):
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    graph = helper.make_graph(nodes, "bad", inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = 8
    return model


def _conv(height=16):
    """The good model that most cases start from: input image (1, 3, height, 12), output result."""
    weight = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["image", "weight"], ["result"], name="stem", pads=[1] * 4)
    return _model(
        [node],
        [_value("image", [1, 3, height, 12])],
        [_value("result", [1, 4, height, 12])],
        [numpy_helper.from_array(weight, "weight")],
    )


def _one_node(op, inputs=("x",), domain="", output_type=FLOAT, **attributes):
    node = helper.make_node(op, list(inputs), ["y"], name="culprit", domain=domain, **attributes)
    return _model(
        [node], [_value("x", [2, 3])], [_value("y", None, output_type)], domains=[domain] if domain else ()
    )


def _cyclic():
    return _model(
        [
            helper.make_node("Add", ["x", "b"], ["a"], name="first"),
            helper.make_node("Relu", ["a"], ["b"], name="second"),
        ],
        [_value("x", [2])],
        [_value("b", [2])],
    )


def _twice():
    nodes = [helper.make_node(op, ["x"], ["y"], name=op.lower()) for op in ("Relu", "Neg")]
    return _model(nodes, [_value("x", [2])], [_value("y", [2])])


def _wrong_channels():
    model = _conv()
    model.graph.input[0].CopyFrom(_value("image", [1, 5, 16, 12]))
    return model


def _short_initializer():
    model = _conv()
    tensor = model.graph.initializer[0]
    tensor.raw_data = tensor.raw_data[:100]
    return model


def _external(location, offset=0, length=4 * 4 * 27):
    model = _conv()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return model


def _many_unsupported():
    nodes = [
        helper.make_node("FancyOne", ["x"], ["a"], name="one", domain="acme"),
        helper.make_node("FancyTwo", ["a"], ["y"], name="two", domain="acme"),
    ]
    return _model(nodes, [_value("x", [2])], [_value("y", [2])], domains=["acme"])


def _opset(version):
    model = _conv()
    model.opset_import[0].version = version
    return model


def _typed(dtype):
    node = helper.make_node("Identity", ["x"], ["y"], name="culprit")
    return _model([node], [_value("x", [2], dtype)], [_value("y", [2], dtype)])


def _operator(op, shape, dtype=FLOAT, constants=(), opset=17, **attributes):
    """One operator on an input x and constants."""
    names = [f"constant{i}" for i in range(len(constants))]
    node = helper.make_node(op, ["x", *names], ["y"], name="culprit", **attributes)
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in zip(names, constants)]
    return _model([node], [_value("x", shape, dtype)], [_value("y", None, dtype)], values, opset)


def _padded(pads, **attributes):
    return _operator("Pad", [4], constants=[np.array(pads, np.int64)], **attributes)


def _enlarged():
    """Keeps an aspect ratio that the sizes do not bound: 2^31 - 1 times 2^30 elements wide."""
    return _model(
        [helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], name="culprit", keep_aspect_ratio_policy="not_smaller")],
        [_value("x", [1, 2**30])],
        [_value("y", None)],
        [numpy_helper.from_array(np.array([2**31 - 1, 1], np.int64), "sizes")],
        opset=19,
    )


_WEIGHT = np.ones((1, 1, 1, 1), np.float32)

MODELS = {
    "good": _conv,
    "dynamic": lambda: _conv("H"),
    "cyclic": _cyclic,
    "twice": _twice,
    "undefined": lambda: _one_node("Add", ("x", "nowhere")),
    "wrong-channels": _wrong_channels,
    "short-initializer": _short_initializer,
    "bad-axis": lambda: _one_node("Softmax", axis=7),
    "bad-perm": lambda: _one_node("Transpose", perm=[0, 0]),
    "bad-attribute-type": lambda: _one_node("Softmax", axis=[1, 2]),
    "missing-attribute": lambda: _one_node("DepthToSpace"),
    "too-few-inputs": lambda: _one_node("Add"),
    "unknown-op": lambda: _one_node("NoSuchOperator"),
    "custom-domain": lambda: _one_node("Fancy", domain="acme"),
    "many-unsupported": _many_unsupported,
    "no-opset": lambda: _opset(0),
    "future-opset": lambda: _opset(999),
    "complex": lambda: _typed(TensorProto.COMPLEX64),
    "strings": lambda: _typed(TensorProto.STRING),
    "pads-lowest": lambda: _padded([-(2**63), 0]),
    "pads-highest": lambda: _padded([2**63 - 1, 2**63 - 1]),
    "pads-long": lambda: _padded([2**30, 0], mode="edge"),
    "transposed-far": lambda: _operator("ConvTranspose", [1, 1, 2**34, 1], constants=[_WEIGHT], strides=[2**30, 1]),
    "transposed-same": lambda: _operator(
        "ConvTranspose", [1, 1, 2**34, 1], constants=[_WEIGHT], strides=[2**31 - 1, 1], auto_pad="SAME_UPPER"
    ),
    "stride-highest": lambda: _operator("Conv", [1, 1, 4, 4], constants=[_WEIGHT], strides=[2**63 - 1, 1]),
    "enlarged": _enlarged,
    "too-long": lambda: _operator("Relu", [2**42]),
    "rank-33": lambda: _operator("Relu", [1] * 33),
    "rank-1000": lambda: _operator("Transpose", [1] * 1000),
    "rank-20": lambda: _operator("Transpose", [2] * 20),
    "dilated-far": lambda: _operator(
        "Conv", [1, 1, 4, 4], constants=[np.ones((1, 1, 2, 2), np.float32)], dilations=[2**29] * 2, auto_pad="SAME_UPPER"
    ),
    "empty-reversed": lambda: _operator("Slice", [0, 3], constants=[np.array([v], np.int64) for v in (5, -9, 0, -1)]),
    "external-missing": lambda: _external("weights.bin"),
    "external-outside": lambda: _external("../weights.bin"),
    "external-absolute": lambda: _external("/etc/hostname"),
    "external-short": lambda: _external("small.bin"),
    "external-far": lambda: _external("large.bin", offset=2**40),
    "external-negative": lambda: _external("large.bin", offset=-8),
}


def _compile(model="good", flags="", mesh="--mesh y=2", shard="--shard image=_,_,y,_"):
    return f"compile {{dir}}/{model}.onnx -o {{dir}}/out.dvt {mesh} {shard} {flags}"


def _bare(model):
    """Compiles a model whose inputs are not sharded."""
    return _compile(model, shard="")


_IMAGE = "--input image=@{dir}/image.npy"


def _run(inputs=_IMAGE, artifact="good", flags=""):
    return f"run {{dir}}/{artifact}.dvt {inputs} {flags}"


CASES = [
    # Flags.
    Bad("no-command", "", USAGE, "command|subcommand|usage"),
    Bad("unknown-command", "translate {dir}/good.onnx", USAGE, "translate"),
    Bad("help-of-unknown-command", "translate --help", USAGE, "no command 'translate'"),
    Bad("unknown-flag", _compile(flags="--frobnicate"), USAGE, "--frobnicate"),
    Bad("no-model", "compile -o {dir}/out.dvt", USAGE, "model|MODEL|file"),
    Bad("mesh-without-size", _compile(mesh="--mesh y"), USAGE, r"--mesh.*y"),
    Bad("mesh-of-zero", _compile(mesh="--mesh y=0"), USAGE, r"y.*0"),
    Bad("mesh-negative", _compile(mesh="--mesh y=-3"), USAGE, r"y.*-3"),
    Bad("mesh-not-a-number", _compile(mesh="--mesh y=two"), USAGE, "two"),
    Bad("mesh-twice-an-axis", _compile(mesh="--mesh y=2,y=2"), USAGE, "two axes.*'y'"),
    Bad("mesh-huge", _compile(mesh="--mesh y=99999999999999999999"), USAGE, "9999999999"),
    Bad("shard-unknown-axis", _compile(shard="--shard image=_,_,z,_"), USAGE, "no axis 'z'"),
    Bad("shard-wrong-rank", _compile(shard="--shard image=_,y"), USAGE, r"image.*(4|2)"),
    Bad("shard-unknown-tensor", _compile(shard="--shard picture=_,_,y,_"), USAGE, "picture"),
    Bad("shard-axis-twice", _compile(shard="--shard image=_,_,y,y"), USAGE, r"image.*y|y.*image"),
    Bad("shard-malformed", _compile(shard="--shard image"), USAGE, "image"),
    Bad("shard-empty-entry", _compile(shard="--shard image=_,,y,_"), USAGE, "image"),
    Bad("shard-without-mesh", _compile(mesh=""), USAGE, r"no --mesh.*'y'.*--mesh y=N"),
    Bad("sizes-do-not-add-up", _compile(flags="--sizes image:2=7,8"), USAGE, r"image.*(15|16)"),
    Bad("sizes-too-many", _compile(flags="--sizes image:2=4,4,8"), USAGE, r"image.*(2|3)"),
    Bad("sizes-negative", _compile(flags="--sizes image:2=-1,17"), USAGE, r"-1"),
    Bad("sizes-of-unsplit", _compile(flags="--sizes image:3=6,6"), USAGE, r"image.*3"),
    Bad("sizes-bad-dimension", _compile(flags="--sizes image:9=8,8"), USAGE, r"image.*9"),
    Bad("sizes-unknown-tensor", _compile(flags="--sizes picture:2=8,8"), USAGE, "--sizes names tensor 'picture'"),
    Bad("sizes-of-constant", _compile(flags="--sizes weight:0=2,2"), USAGE, "--sizes names tensor 'weight', .* constant"),
    Bad("sizes-malformed", _compile(flags="--sizes image=8,8"), USAGE, "image=8,8"),
    Bad("sizes-overflow", _compile(flags="--sizes image:2=9223372036854775807,9223372036854775807"), USAGE, "image"),
    Bad("dim-unknown", _compile(flags="--dim Q=3"), USAGE, "Q"),
    Bad("dim-malformed", _compile("dynamic", flags="--dim H"), USAGE, "H"),
    Bad("dim-negative", _compile("dynamic", flags="--dim H=-1"), USAGE, r"H=-1.*at least 0"),
    Bad("shape-negative", _compile("dynamic", flags="--shape image=1,3,-16,12"), USAGE, r"image.*'-16'.*at least 0"),
    Bad("shape-wrong-rank", _compile("dynamic", flags="--shape image=1,3,16"), USAGE, "image"),
    Bad("shape-contradicts", _compile(flags="--shape image=1,4,16,12"), USAGE, r"image.*(3|4)"),
    Bad("shape-unknown-input", _compile(flags="--shape picture=1,3,16,12"), USAGE, "picture"),
    Bad("target-unknown", _compile(flags="--target abacus"), USAGE, "abacus"),
    Bad("phase-unknown", _compile(flags="--compile-to teleport"), USAGE, "teleport"),
    Bad("phase-as-program", _compile(flags="--compile-to lower"), USAGE, "out.dvt.*compile-to"),
    Bad("cpu-unknown", _compile(flags="--cpu i4004x"), USAGE, "i4004x"),
    Bad("cpu-of-32-bits", _compile(flags="--cpu i386"), USAGE, "i386"),
    Bad("misspelt-flag", _compile(flags="--meshh y=2"), USAGE, "'--meshh'; did you mean '--mesh'"),
    Bad("misspelt-command", "complie {dir}/good.onnx", USAGE, "'complie'; did you mean 'compile'"),
    Bad("two-models", "compile {dir}/good.onnx {dir}/garbage.onnx", USAGE, "{dir}/garbage.onnx"),
    Bad("output-is-the-model", "compile {dir}/good.onnx -o {dir}/good.onnx", USAGE, "good.onnx.*model"),
    Bad("output-not-npy", _run(flags="--output result={dir}/good.dvt"), USAGE, r"good.dvt.*\.npy"),
    Bad("inspect-fixed-shapes", "inspect {dir}/good.dvt --shape image=1,3,16,12", USAGE, "--shape"),
    Bad("verify-unknown-axis", "verify {dir}/good.onnx --mesh y=2 --shard image=_,_,z,_", USAGE, "no axis 'z'"),
    # Files.
    Bad("model-missing", _compile("absent"), FILE, "absent.onnx"),
    Bad("model-is-a-folder", "compile {dir} -o {dir}/out.dvt", FILE, "{dir}"),
    Bad("model-below-a-file", "compile {dir}/good.onnx/x.onnx -o {dir}/out.dvt", FILE, "x.onnx"),
    Bad("model-is-a-loop", _compile("loop"), FILE, "loop.onnx"),
    Bad("output-folder-missing", "compile {dir}/good.onnx -o {dir}/no/out.dvt", FILE, "no/out.dvt"),
    Bad("output-is-a-pipe", "compile {dir}/good.onnx -o {dir}/pipe.npy", FILE, "pipe.npy"),
    Bad("output-tensor-is-a-pipe", _run(flags="--output result={dir}/pipe.npy"), FILE, "pipe.npy"),
    Bad("external-missing", _compile("external-missing"), FILE, "weights.bin"),
    Bad("artifact-missing", _run(artifact="absent"), FILE, "absent.dvt"),
    Bad("trace-folder-missing", _run(flags="--trace {dir}/no/t.json"), FILE, "no/t.json"),
    Bad("artifact-is-a-loop", _run(artifact="loop"), FILE, "loop.dvt"),
    Bad("artifact-below-a-file", "run {dir}/good.dvt/x.dvt", FILE, "x.dvt"),
    Bad("input-missing", _run("--input image=@{dir}/absent.npy"), FILE, "absent.npy"),
    Bad("input-is-a-loop", _run("--input image=@{dir}/loop.npy"), FILE, "loop.npy"),
    Bad("input-below-a-file", _run("--input image=@{dir}/image.npy/x.npy"), FILE, "x.npy"),
    Bad("input-name-too-long", _run("--input image=@{dir}/" + "n" * 300 + ".npy"), FILE, "nnnn"),
    Bad("device-of-a-cpu", _run("--input image=random:0 --device 1"), USAGE, "leave out the device"),
    Bad("input-is-a-device", _run("--input image=@/dev/zero"), FILE, "/dev/zero"),
    Bad("archive-below-a-file", _run("--input @{dir}/image.npy/x.npz"), FILE, "x.npz"),
    Bad("input-not-npy", _run("--input image=@{dir}/garbage.onnx"), FILE, "garbage.onnx"),
    Bad("input-truncated", _run("--input image=@{dir}/truncated.npy"), FILE, "truncated.npy"),
    Bad("output-below-a-file", _run(flags="--output result={dir}/image.npy/out.npy"), FILE, "out.npy"),
    Bad("archive-out-below-a-file", _run(flags="--output {dir}/image.npy/out.npz"), FILE, "out.npz"),
    Bad("output-name-too-long", _run(flags="--output result={dir}/" + "n" * 300 + ".npy"), FILE, "nnnn"),
    Bad("output-not-writable", _run(flags="--output result={dir}/no/out.npy"), FILE, "no/out.npy"),
    # Models.
    Bad("model-empty", _compile("empty"), INVALID_MODEL, "empty.onnx"),
    Bad("model-garbage", _compile("garbage"), INVALID_MODEL, "garbage.onnx"),
    Bad("model-truncated", _compile("truncated"), INVALID_MODEL, "truncated.onnx"),
    Bad("model-is-an-artifact", _compile("artifact"), USAGE, "artifact.onnx' is a compiled program, not a model"),
    Bad("verified-artifact", "verify {dir}/good.dvt", USAGE, "good.dvt' is a compiled program, not a model"),
    Bad("operators-of-artifact", "operators {dir}/good.dvt", USAGE, "good.dvt' is a compiled program"),
    Bad("model-is-text", _compile("text"), INVALID_MODEL, "text.onnx"),
    Bad("cyclic", _bare("cyclic"), INVALID_MODEL, "first|second|'b'|'a'"),
    Bad("defined-twice", _bare("twice"), INVALID_MODEL, "'?y'?"),
    Bad("undefined-value", _bare("undefined"), INVALID_MODEL, "nowhere"),
    Bad("wrong-channels", _compile("wrong-channels"), INVALID_MODEL, "stem"),
    Bad("short-initializer", _compile("short-initializer"), INVALID_MODEL, "weight"),
    Bad("bad-axis", _bare("bad-axis"), INVALID_MODEL, r"culprit|axis"),
    Bad("bad-perm", _bare("bad-perm"), INVALID_MODEL, r"culprit|perm"),
    Bad("bad-attribute-type", _bare("bad-attribute-type"), INVALID_MODEL, r"culprit|axis"),
    Bad("missing-attribute", _bare("missing-attribute"), INVALID_MODEL, r"culprit|blocksize"),
    Bad("too-few-inputs", _bare("too-few-inputs"), INVALID_MODEL, "culprit|Add"),
    Bad("pads-lowest", _bare("pads-lowest"), INVALID_MODEL, "culprit.*pads"),
    Bad("pads-highest", _bare("pads-highest"), INVALID_MODEL, "culprit.*pads"),
    Bad("transposed-far", _bare("transposed-far"), INVALID_MODEL, "culprit"),
    Bad("transposed-same", _bare("transposed-same"), INVALID_MODEL, "culprit"),
    Bad("stride-highest", _bare("stride-highest"), INVALID_MODEL, "culprit.*strides"),
    Bad("enlarged", _bare("enlarged"), INVALID_MODEL, "culprit.*aspect"),
    Bad("no-opset", _compile("no-opset"), INVALID_MODEL, "opset|version"),
    Bad("external-outside", _compile("external-outside"), INVALID_MODEL, r"\.\./weights.bin"),
    Bad("external-absolute", _compile("external-absolute"), INVALID_MODEL, "/etc/hostname"),
    Bad("external-short", _compile("external-short"), INVALID_MODEL, "small.bin"),
    Bad("external-far", _compile("external-far"), INVALID_MODEL, "large.bin"),
    Bad("external-negative", _compile("external-negative"), INVALID_MODEL, "-8|large.bin"),
    # What the compiler does not do.
    Bad("unknown-op", _bare("unknown-op"), UNSUPPORTED, "NoSuchOperator"),
    Bad("custom-domain", _bare("custom-domain"), UNSUPPORTED, "(?s)(?=.*culprit)(?=.*acme)"),
    Bad("all-are-listed", _bare("many-unsupported"), UNSUPPORTED, "(?s)(?=.*FancyOne)(?=.*FancyTwo)"),
    Bad("future-opset", _compile("future-opset"), UNSUPPORTED, "999"),
    Bad("complex-numbers", _bare("complex"), UNSUPPORTED, "(?i)complex"),
    Bad("strings", _bare("strings"), UNSUPPORTED, "(?i)string"),
    Bad("pads-long", _bare("pads-long"), UNSUPPORTED, "culprit"),
    Bad("rank-33", _bare("rank-33"), UNSUPPORTED, "'x': it has 33 dimensions"),
    Bad("rank-1000", _bare("rank-1000"), UNSUPPORTED, "'x': it has 1000 dimensions"),
    Bad("too-long", _bare("too-long"), UNSUPPORTED, r"'x' with the shape \[4398046511104\] is too large: an extent may be 2\^40"),
    Bad("dim-too-long", _compile("dynamic", "--dim H=4398046511104"), USAGE, "'image' .* too large.*give --dim"),
    Bad("dim-of-another-name", _compile("dynamic", "--dim N=3"), USAGE, r"--dim N=3: .* \(there are H\)"),
    Bad("dim-without-names", _compile(flags="--dim N=3"), USAGE, "--dim N=3: .*no other has a name: the model says all extents"),
    Bad("open-dimension", _compile("dynamic"), USAGE, r"(?s)(?=.*image)(?=.*--(dim|shape))"),
    # Artifacts.
    Bad("artifact-empty", _run(artifact="empty"), DAMAGED, "empty.dvt"),
    Bad("artifact-garbage", _run(artifact="garbage"), DAMAGED, "garbage.dvt"),
    Bad("artifact-truncated", _run(artifact="truncated"), DAMAGED, "truncated.dvt"),
    Bad("artifact-flipped", _run(artifact="flipped"), DAMAGED, "flipped.dvt"),
    Bad("artifact-is-a-model", _run(artifact="model"), USAGE, "model.dvt' is not .* but an ONNX model; compile it"),
    Bad("artifact-is-called-a-model", "run {dir}/text.onnx", USAGE, "text.onnx' is not .* but an ONNX model; compile it"),
    Bad("inspect-damaged", "inspect {dir}/truncated.dvt", DAMAGED, "truncated.dvt"),
    Bad("inspect-missing", "inspect {dir}/absent.dvt", FILE, "absent.dvt"),
    # Inputs of a run.
    Bad("run-without-input", _run(""), USAGE, "image"),
    Bad("run-unknown-input", _run(_IMAGE + " --input mask=@{dir}/image.npy"), USAGE, "mask"),
    Bad("run-input-twice", _run(_IMAGE + " " + _IMAGE), USAGE, "image"),
    Bad("run-unknown-output", _run(flags="--output mask={dir}/out.npy"), USAGE, "mask"),
    Bad("run-wrong-shape", _run("--input image=@{dir}/wide.npy"), USAGE, r"(?s)(?=.*image)(?=.*13)"),
    Bad("run-wrong-rank", _run("--input image=@{dir}/flat.npy"), USAGE, "image"),
    Bad("run-wrong-type", _run("--input image=@{dir}/doubles.npy"), USAGE, r"(?s)(?=.*image)(?=.*(f64|float64|double))"),
    Bad("run-malformed-input", _run("--input image"), USAGE, "image"),
    Bad("run-bad-random", _run("--input image=random:x"), USAGE, "random:x"),
    Bad("run-no-threads", _run(flags="--threads 0"), USAGE, "threads"),
    Bad("run-unknown-comm", _run(flags="--comm pigeon"), USAGE, "pigeon"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory, backend):
    """All files that the cases name."""
    root = tmp_path_factory.mktemp("bad") / "files"
    root.mkdir()
    for name, make in MODELS.items():
        (root / f"{name}.onnx").write_bytes(make().SerializeToString())
    good = (root / "good.onnx").read_bytes()
    garbage = np.random.default_rng(0).bytes(3000)
    (root / "empty.onnx").write_bytes(b"")
    (root / "garbage.onnx").write_bytes(garbage)
    (root / "truncated.onnx").write_bytes(good[: len(good) // 2])
    (root / "text.onnx").write_text("this is no model\n" * 20)
    (root / "small.bin").write_bytes(bytes(100))
    (root / "large.bin").write_bytes(bytes(4000))

    os.mkfifo(root / "pipe.npy")
    for name in ("loop.onnx", "loop.dvt", "loop.npy"):
        (root / name).symlink_to(name)

    image = np.zeros((1, 3, 16, 12), np.float32)
    np.save(root / "image.npy", image)
    np.save(root / "wide.npy", np.zeros((1, 3, 16, 13), np.float32))
    np.save(root / "flat.npy", np.zeros(576, np.float32))
    np.save(root / "doubles.npy", image.astype(np.float64))
    (root / "truncated.npy").write_bytes((root / "image.npy").read_bytes()[:-8])

    command = _compile().format(dir=root).replace("out.dvt", "good.dvt")
    code, _, messages = call([tool("dovetail"), *command.split()])
    assert code == 0, messages
    artifact = (root / "good.dvt").read_bytes()
    (root / "artifact.onnx").write_bytes(artifact)
    flipped = bytearray(artifact)
    flipped[len(flipped) // 2] ^= 0x40
    (root / "empty.dvt").write_bytes(b"")
    (root / "garbage.dvt").write_bytes(garbage)
    (root / "truncated.dvt").write_bytes(artifact[: len(artifact) * 2 // 3])
    (root / "flipped.dvt").write_bytes(bytes(flipped))
    (root / "model.dvt").write_bytes(good)
    return root


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input(folder, case):
    command = case.command.format(dir=folder).split()
    code, output, messages = call([tool("dovetail"), *command], timeout=60)
    assert code == case.code, f"exit code {code}: {messages}"
    # The tool repeats no command line, so a name in a message was put there by what went wrong.
    assert re.search(case.pattern.replace("{dir}", re.escape(str(folder))), messages), messages
    assert "internal" not in messages.lower()
    assert not output or case.name == "no-command"
    assert not (folder / "out.dvt").exists(), "an artifact was written all the same"
    assert (folder / "pipe.npy").is_fifo(), "a device was replaced"


@pytest.mark.skipif(bool(sanitizers(build_dir())), reason="sanitizers reserve more memory than the limit leaves")
def test_no_more_threads(folder):
    """64 ranks where the system gives stacks for a few."""
    # Without libraries, which do not all survive such a lack of memory.
    command = _compile(mesh="--mesh y=64", flags="--no-libraries").format(dir=folder).replace("out.dvt", "many.dvt")
    code, _, messages = call([tool("dovetail"), *command.split()])
    assert code == 0, messages
    command = _run(artifact="many").format(dir=folder)
    # 64 MiB of addresses for each stack; the libraries take about 300 MiB. How much is left for all else differs.
    for limit in range(500_000, 1_500_001, 50_000):
        script = f"ulimit -s 65536; ulimit -v {limit}; exec {tool('dovetail-run')} {command}"
        code, _, messages = call(["bash", "-c", script], timeout=120)
        assert code == DOES_NOT_FIT, f"{limit} KiB, exit code {code}: {messages}"
        assert re.search("rank [0-9]+.*thread", messages), messages


def test_good_input(folder):
    """What the cases start from is right."""
    command = _run(flags="--output result={dir}/result.npy").format(dir=folder)
    code, _, messages = call([tool("dovetail"), *command.split()])
    assert code == 0, messages
    assert np.load(folder / "result.npy").shape == (1, 4, 16, 12)


@pytest.mark.parametrize(
    "ptxas, message",
    [
        ("/bin/false", r"'/bin/false' cannot assemble kernels for sm_80 \(exit code 1\)"),
        ("/missing", "cannot run '/missing': .*set DOVETAIL_PTXAS"),
    ],
)
def test_failing_ptxas(folder, tmp_path, monkeypatch, ptxas, message):
    monkeypatch.setenv("DOVETAIL_PTXAS", ptxas)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = _compile(flags="--target cuda --no-libraries").format(dir=folder)
    code, _, messages = call([tool("dovetail"), *command.split()])
    assert code == INTERNAL and re.search(message, messages), f"exit code {code}: {messages}"
    assert not (folder / "out.dvt").exists() and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        "run {dir}/good.dvt --input image=random:0",
        "inspect {dir}/good.dvt",
        "inspect {dir}/good.onnx",
        "compile {dir}/good.onnx --compile-to import",
        "verify {dir}/good.onnx --mesh y=2 --shard image=_,_,y,_",
    ],
)
def test_lost_output_is_an_error(folder, command):
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [tool("dovetail"), *command.format(dir=folder).split()],
            stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, timeout=60, env=without_preload(),
        )  # fmt: skip
    assert result.returncode == FILE, result.stderr
    assert "cannot write to the standard output" in result.stderr


@pytest.mark.skipif(bool(sanitizers(build_dir())), reason="sanitizers need more address space than the limit leaves")
def test_too_many_threads(folder):
    """Threads that the system refuses: here for want of address space."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    result = subprocess.run(
        [tool("dovetail"), *"run {dir}/good.dvt --input image=random:0 --threads 4096".format(dir=folder).split()],
        capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=60, preexec_fn=limit,
    )  # fmt: skip
    assert result.returncode == DOES_NOT_FIT, result.stderr
    assert re.search(r"rank \d.*threads", result.stderr), result.stderr


@pytest.mark.skipif(bool(sanitizers(build_dir())), reason="sanitizers need more address space than the limit leaves")
def test_too_large_to_run(folder, tmp_path):
    """Inputs and outputs that do not fit: the message says how large they are."""
    value = lambda name: _value(name, [1 << 32])
    model = _model([helper.make_node("Neg", ["x"], ["y"])], [value("x")], [value("y")])
    onnx.save(model, tmp_path / "large.onnx")
    dovetail = os.path.abspath(tool("dovetail"))
    subprocess.run([dovetail, "compile", "large.onnx"], cwd=tmp_path, check=True, timeout=60)

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    result = subprocess.run(
        [dovetail, "run", "large.dvt", "--input", "x=random:0"],
        cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=60, preexec_fn=limit,
    )  # fmt: skip
    assert result.returncode == DOES_NOT_FIT, result.stderr
    assert re.search(r"'large.dvt': .* take 32.0 GiB; the largest is 'x' float32\[4294967296\]", result.stderr), result.stderr


@pytest.mark.parametrize("name", ["rank-20", "dilated-far", "empty-reversed"])
def test_odd_but_good(folder, name):
    """Odd models that once made the compiler stumble: expected is what NumPy makes of them."""
    model = MODELS[name]()
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    # Both elements of each dilated window lie 2^28 away from the operand, in the padding.
    expected = {"rank-20": lambda: x.T, "dilated-far": lambda: 0 * x, "empty-reversed": lambda: x[5:-9:-1]}[name]()
    np.save(folder / "odd.npy", x)
    command = _bare(name).format(dir=folder).replace("out.dvt", "odd.dvt").split()
    code, _, messages = call([tool("dovetail"), *command], timeout=60)
    assert code == 0, messages
    run = f"run {folder}/odd.dvt --input x=@{folder}/odd.npy --output y={folder}/odd-result.npy"
    code, _, messages = call([tool("dovetail"), *run.split()])
    assert code == 0, messages
    np.testing.assert_array_equal(np.load(folder / "odd-result.npy"), expected)


def test_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES) >= 40
