# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bad flags, files, models and inputs: the exit code says what kind, the message names the thing."""

import dataclasses
import re

import numpy as np
import pytest
from bad_files import IMAGE, MODELS, compile_command, compile_unsharded, run_command, write_files
from harness.backend import call, tool

USAGE, FILE, INVALID_MODEL, UNSUPPORTED, DAMAGED = 2, 3, 4, 5, 7


@dataclasses.dataclass
class Bad:
    """A command line, in which {dir} is the folder of `write_files`, and what must come of it."""

    name: str
    command: str
    code: int
    pattern: str


CASES = [
    # Flags.
    Bad("no-command", "", USAGE, "command|subcommand|usage"),
    Bad("unknown-command", "translate {dir}/good.onnx", USAGE, "translate"),
    Bad("help-of-unknown-command", "translate --help", USAGE, "no command 'translate'"),
    Bad("unknown-flag", compile_command(flags="--frobnicate"), USAGE, "--frobnicate"),
    Bad("no-model", "compile -o {dir}/out.dvt", USAGE, "model|MODEL|file"),
    Bad("mesh-without-size", compile_command(mesh="--mesh y"), USAGE, r"--mesh.*y"),
    Bad("mesh-of-zero", compile_command(mesh="--mesh y=0"), USAGE, r"y.*0"),
    Bad("mesh-negative", compile_command(mesh="--mesh y=-3"), USAGE, r"y.*-3"),
    Bad("mesh-not-a-number", compile_command(mesh="--mesh y=two"), USAGE, "two"),
    Bad("mesh-twice-an-axis", compile_command(mesh="--mesh y=2,y=2"), USAGE, "two axes.*'y'"),
    Bad("mesh-huge", compile_command(mesh="--mesh y=99999999999999999999"), USAGE, "9999999999"),
    Bad("shard-unknown-axis", compile_command(shard="--shard image=_,_,z,_"), USAGE, "no axis 'z'"),
    Bad("shard-wrong-rank", compile_command(shard="--shard image=_,y"), USAGE, r"image.*(4|2)"),
    Bad("shard-unknown-tensor", compile_command(shard="--shard picture=_,_,y,_"), USAGE, "picture"),
    Bad("shard-axis-twice", compile_command(shard="--shard image=_,_,y,y"), USAGE, r"image.*y|y.*image"),
    Bad("shard-malformed", compile_command(shard="--shard image"), USAGE, "image"),
    Bad("shard-empty-entry", compile_command(shard="--shard image=_,,y,_"), USAGE, "image"),
    Bad("shard-without-mesh", compile_command(mesh=""), USAGE, r"no --mesh.*'y'.*--mesh y=N"),
    Bad("sizes-do-not-add-up", compile_command(flags="--sizes image:2=7,8"), USAGE, r"image.*(15|16)"),
    Bad("sizes-too-many", compile_command(flags="--sizes image:2=4,4,8"), USAGE, r"image.*(2|3)"),
    Bad("sizes-negative", compile_command(flags="--sizes image:2=-1,17"), USAGE, r"-1"),
    Bad("sizes-of-unsplit", compile_command(flags="--sizes image:3=6,6"), USAGE, r"image.*3"),
    Bad("sizes-bad-dimension", compile_command(flags="--sizes image:9=8,8"), USAGE, r"image.*9"),
    Bad("sizes-unknown-tensor", compile_command(flags="--sizes picture:2=8,8"), USAGE, "--sizes names tensor 'picture'"),
    Bad("sizes-of-constant", compile_command(flags="--sizes weight:0=2,2"), USAGE, "--sizes names tensor 'weight', .* constant"),
    Bad("sizes-malformed", compile_command(flags="--sizes image=8,8"), USAGE, "image=8,8"),
    Bad("sizes-overflow", compile_command(flags="--sizes image:2=9223372036854775807,9223372036854775807"), USAGE, "image"),
    Bad("dim-unknown", compile_command(flags="--dim Q=3"), USAGE, "Q"),
    Bad("dim-malformed", compile_command("dynamic", flags="--dim H"), USAGE, "H"),
    Bad("dim-negative", compile_command("dynamic", flags="--dim H=-1"), USAGE, r"H=-1.*at least 0"),
    Bad("shape-negative", compile_command("dynamic", flags="--shape image=1,3,-16,12"), USAGE, r"image.*'-16'.*at least 0"),
    Bad("shape-wrong-rank", compile_command("dynamic", flags="--shape image=1,3,16"), USAGE, "image"),
    Bad("shape-contradicts", compile_command(flags="--shape image=1,4,16,12"), USAGE, r"image.*(3|4)"),
    Bad("shape-unknown-input", compile_command(flags="--shape picture=1,3,16,12"), USAGE, "picture"),
    Bad("target-unknown", compile_command(flags="--target abacus"), USAGE, "abacus"),
    Bad("phase-unknown", compile_command(flags="--compile-to teleport"), USAGE, "teleport"),
    Bad("phase-as-program", compile_command(flags="--compile-to lower"), USAGE, "out.dvt.*compile-to"),
    Bad("cpu-unknown", compile_command(flags="--cpu i4004x"), USAGE, "i4004x"),
    Bad("cpu-of-32-bits", compile_command(flags="--cpu i386"), USAGE, "i386"),
    Bad("misspelt-flag", compile_command(flags="--meshh y=2"), USAGE, "'--meshh'; did you mean '--mesh'"),
    Bad("misspelt-command", "complie {dir}/good.onnx", USAGE, "'complie'; did you mean 'compile'"),
    Bad("two-models", "compile {dir}/good.onnx {dir}/garbage.onnx", USAGE, "{dir}/garbage.onnx"),
    Bad("output-is-the-model", "compile {dir}/good.onnx -o {dir}/good.onnx", USAGE, "good.onnx.*model"),
    Bad("output-not-npy", run_command(flags="--output result={dir}/good.dvt"), USAGE, r"good.dvt.*\.npy"),
    Bad("inspect-fixed-shapes", "inspect {dir}/good.dvt --shape image=1,3,16,12", USAGE, "--shape"),
    Bad("verify-unknown-axis", "verify {dir}/good.onnx --mesh y=2 --shard image=_,_,z,_", USAGE, "no axis 'z'"),
    # Files.
    Bad("model-missing", compile_command("absent"), FILE, "absent.onnx"),
    Bad("model-is-a-folder", "compile {dir} -o {dir}/out.dvt", FILE, "{dir}"),
    Bad("model-below-a-file", "compile {dir}/good.onnx/x.onnx -o {dir}/out.dvt", FILE, "x.onnx"),
    Bad("model-is-a-loop", compile_command("loop"), FILE, "loop.onnx"),
    Bad("output-folder-missing", "compile {dir}/good.onnx -o {dir}/no/out.dvt", FILE, "no/out.dvt"),
    Bad("output-is-a-pipe", "compile {dir}/good.onnx -o {dir}/pipe.npy", FILE, "pipe.npy"),
    Bad("output-tensor-is-a-pipe", run_command(flags="--output result={dir}/pipe.npy"), FILE, "pipe.npy"),
    Bad("external-missing", compile_command("external-missing"), FILE, "weights.bin"),
    Bad("artifact-missing", run_command(artifact="absent"), FILE, "absent.dvt"),
    Bad("trace-folder-missing", run_command(flags="--trace {dir}/no/t.json"), FILE, "no/t.json"),
    Bad("artifact-is-a-loop", run_command(artifact="loop"), FILE, "loop.dvt"),
    Bad("artifact-below-a-file", "run {dir}/good.dvt/x.dvt", FILE, "x.dvt"),
    Bad("input-missing", run_command("--input image=@{dir}/absent.npy"), FILE, "absent.npy"),
    Bad("input-is-a-loop", run_command("--input image=@{dir}/loop.npy"), FILE, "loop.npy"),
    Bad("input-below-a-file", run_command("--input image=@{dir}/image.npy/x.npy"), FILE, "x.npy"),
    Bad("input-name-too-long", run_command("--input image=@{dir}/" + "n" * 300 + ".npy"), FILE, "nnnn"),
    Bad("device-of-a-cpu", run_command("--input image=random:0 --device 1"), USAGE, "leave out the device"),
    Bad("input-is-a-device", run_command("--input image=@/dev/zero"), FILE, "/dev/zero"),
    Bad("archive-below-a-file", run_command("--input @{dir}/image.npy/x.npz"), FILE, "x.npz"),
    Bad("input-not-npy", run_command("--input image=@{dir}/garbage.onnx"), FILE, "garbage.onnx"),
    Bad("input-truncated", run_command("--input image=@{dir}/truncated.npy"), FILE, "truncated.npy"),
    Bad("output-below-a-file", run_command(flags="--output result={dir}/image.npy/out.npy"), FILE, "out.npy"),
    Bad("archive-out-below-a-file", run_command(flags="--output {dir}/image.npy/out.npz"), FILE, "out.npz"),
    Bad("output-name-too-long", run_command(flags="--output result={dir}/" + "n" * 300 + ".npy"), FILE, "nnnn"),
    Bad("output-not-writable", run_command(flags="--output result={dir}/no/out.npy"), FILE, "no/out.npy"),
    # Models.
    Bad("model-empty", compile_command("empty"), INVALID_MODEL, "empty.onnx"),
    Bad("model-garbage", compile_command("garbage"), INVALID_MODEL, "garbage.onnx"),
    Bad("model-truncated", compile_command("truncated"), INVALID_MODEL, "truncated.onnx"),
    Bad("model-is-an-artifact", compile_command("artifact"), USAGE, "artifact.onnx' is a compiled program, not a model"),
    Bad("verified-artifact", "verify {dir}/good.dvt", USAGE, "good.dvt' is a compiled program, not a model"),
    Bad("operators-of-artifact", "operators {dir}/good.dvt", USAGE, "good.dvt' is a compiled program"),
    Bad("model-is-text", compile_command("text"), INVALID_MODEL, "text.onnx"),
    Bad("cyclic", compile_unsharded("cyclic"), INVALID_MODEL, "first|second|'b'|'a'"),
    Bad("defined-twice", compile_unsharded("twice"), INVALID_MODEL, "'?y'?"),
    Bad("undefined-value", compile_unsharded("undefined"), INVALID_MODEL, "nowhere"),
    Bad("wrong-channels", compile_command("wrong-channels"), INVALID_MODEL, "stem"),
    Bad("short-initializer", compile_command("short-initializer"), INVALID_MODEL, "weight"),
    Bad("bad-axis", compile_unsharded("bad-axis"), INVALID_MODEL, r"culprit|axis"),
    Bad("bad-perm", compile_unsharded("bad-perm"), INVALID_MODEL, r"culprit|perm"),
    Bad("bad-attribute-type", compile_unsharded("bad-attribute-type"), INVALID_MODEL, r"culprit|axis"),
    Bad("missing-attribute", compile_unsharded("missing-attribute"), INVALID_MODEL, r"culprit|blocksize"),
    Bad("too-few-inputs", compile_unsharded("too-few-inputs"), INVALID_MODEL, "culprit|Add"),
    Bad("pads-lowest", compile_unsharded("pads-lowest"), INVALID_MODEL, "culprit.*pads"),
    Bad("pads-highest", compile_unsharded("pads-highest"), INVALID_MODEL, "culprit.*pads"),
    Bad("transposed-far", compile_unsharded("transposed-far"), INVALID_MODEL, "culprit"),
    Bad("transposed-same", compile_unsharded("transposed-same"), INVALID_MODEL, "culprit"),
    Bad("stride-highest", compile_unsharded("stride-highest"), INVALID_MODEL, "culprit.*strides"),
    Bad("enlarged", compile_unsharded("enlarged"), INVALID_MODEL, "culprit.*aspect"),
    Bad("no-opset", compile_command("no-opset"), INVALID_MODEL, "opset|version"),
    Bad("external-outside", compile_command("external-outside"), INVALID_MODEL, r"\.\./weights.bin"),
    Bad("external-absolute", compile_command("external-absolute"), INVALID_MODEL, "/etc/hostname"),
    Bad("external-short", compile_command("external-short"), INVALID_MODEL, "small.bin"),
    Bad("external-far", compile_command("external-far"), INVALID_MODEL, "large.bin"),
    Bad("external-negative", compile_command("external-negative"), INVALID_MODEL, "-8|large.bin"),
    # What the compiler does not do.
    Bad("unknown-op", compile_unsharded("unknown-op"), UNSUPPORTED, "NoSuchOperator"),
    Bad("custom-domain", compile_unsharded("custom-domain"), UNSUPPORTED, "(?s)(?=.*culprit)(?=.*acme)"),
    Bad("all-are-listed", compile_unsharded("many-unsupported"), UNSUPPORTED, "(?s)(?=.*FancyOne)(?=.*FancyTwo)"),
    Bad("future-opset", compile_command("future-opset"), UNSUPPORTED, "999"),
    Bad("complex-numbers", compile_unsharded("complex"), UNSUPPORTED, "(?i)complex"),
    Bad("strings", compile_unsharded("strings"), UNSUPPORTED, "(?i)string"),
    Bad("pads-long", compile_unsharded("pads-long"), UNSUPPORTED, "culprit"),
    Bad("rank-33", compile_unsharded("rank-33"), UNSUPPORTED, "'x': it has 33 dimensions"),
    Bad("rank-1000", compile_unsharded("rank-1000"), UNSUPPORTED, "'x': it has 1000 dimensions"),
    Bad("too-long", compile_unsharded("too-long"), UNSUPPORTED, r"'x' with the shape \[4398046511104\] is too large: an extent may be 2\^40"),
    Bad("dim-too-long", compile_command("dynamic", "--dim H=4398046511104"), USAGE, "'image' .* too large.*give --dim"),
    Bad("dim-of-another-name", compile_command("dynamic", "--dim N=3"), USAGE, r"--dim N=3: .* \(there are H\)"),
    Bad("dim-without-names", compile_command(flags="--dim N=3"), USAGE, "--dim N=3: .*no other has a name: the model says all extents"),
    Bad("open-dimension", compile_command("dynamic"), USAGE, r"(?s)(?=.*image)(?=.*--(dim|shape))"),
    # Artifacts.
    Bad("artifact-empty", run_command(artifact="empty"), DAMAGED, "empty.dvt"),
    Bad("artifact-garbage", run_command(artifact="garbage"), DAMAGED, "garbage.dvt"),
    Bad("artifact-truncated", run_command(artifact="truncated"), DAMAGED, "truncated.dvt"),
    Bad("artifact-flipped", run_command(artifact="flipped"), DAMAGED, "flipped.dvt"),
    Bad("artifact-is-a-model", run_command(artifact="model"), USAGE, "model.dvt' is not .* but an ONNX model; compile it"),
    Bad("artifact-is-called-a-model", "run {dir}/text.onnx", USAGE, "text.onnx' is not .* but an ONNX model; compile it"),
    Bad("inspect-damaged", "inspect {dir}/truncated.dvt", DAMAGED, "truncated.dvt"),
    Bad("inspect-missing", "inspect {dir}/absent.dvt", FILE, "absent.dvt"),
    # Inputs of a run.
    Bad("run-without-input", run_command(""), USAGE, "image"),
    Bad("run-unknown-input", run_command(IMAGE + " --input mask=@{dir}/image.npy"), USAGE, "mask"),
    Bad("run-input-twice", run_command(IMAGE + " " + IMAGE), USAGE, "image"),
    Bad("run-unknown-output", run_command(flags="--output mask={dir}/out.npy"), USAGE, "mask"),
    Bad("run-wrong-shape", run_command("--input image=@{dir}/wide.npy"), USAGE, r"(?s)(?=.*image)(?=.*13)"),
    Bad("run-wrong-rank", run_command("--input image=@{dir}/flat.npy"), USAGE, "image"),
    Bad("run-wrong-type", run_command("--input image=@{dir}/doubles.npy"), USAGE, r"(?s)(?=.*image)(?=.*(f64|float64|double))"),
    Bad("run-malformed-input", run_command("--input image"), USAGE, "image"),
    Bad("run-bad-random", run_command("--input image=random:x"), USAGE, "random:x"),
    Bad("run-no-threads", run_command(flags="--threads 0"), USAGE, "threads"),
    Bad("run-unknown-comm", run_command(flags="--comm pigeon"), USAGE, "pigeon"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory, backend):
    """All files that the cases name."""
    return write_files(tmp_path_factory.mktemp("bad") / "files")


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


def test_good_input(folder):
    """What the cases start from is right."""
    command = run_command(flags="--output result={dir}/result.npy").format(dir=folder)
    code, _, messages = call([tool("dovetail"), *command.split()])
    assert code == 0, messages
    assert np.load(folder / "result.npy").shape == (1, 4, 16, 12)


@pytest.mark.parametrize("name", ["rank-20", "dilated-far", "empty-reversed"])
def test_odd_but_good(folder, name):
    """Odd models that once made the compiler stumble: expected is what NumPy makes of them."""
    model = MODELS[name]()
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    # Both elements of each dilated window lie 2^28 away from the operand, in the padding.
    expected = {"rank-20": lambda: x.T, "dilated-far": lambda: 0 * x, "empty-reversed": lambda: x[5:-9:-1]}[name]()
    np.save(folder / "odd.npy", x)
    command = compile_unsharded(name).format(dir=folder).replace("out.dvt", "odd.dvt").split()
    code, _, messages = call([tool("dovetail"), *command], timeout=60)
    assert code == 0, messages
    run = f"run {folder}/odd.dvt --input x=@{folder}/odd.npy --output y={folder}/odd-result.npy"
    code, _, messages = call([tool("dovetail"), *run.split()])
    assert code == 0, messages
    np.testing.assert_array_equal(np.load(folder / "odd-result.npy"), expected)


def test_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES) >= 40
