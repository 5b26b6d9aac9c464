# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Command lines: wrong ones get a sentence that says what to type, and help texts are short and name defaults."""

import functools
import os
import re
import signal
import subprocess

import numpy as np
import onnx
import pytest
from harness.backend import FILE, USAGE, call, tool
from harness.sanitizers import without_preload
from onnx import TensorProto, helper, numpy_helper

#: Commands of each program, with the positional argument of each.
COMMANDS = {
    "dovetail": {
        "compile": "m.onnx",
        "run": "p.dvt",
        "verify": "m.onnx",
        "inspect": "p.dvt",
        "plan": "m.onnx",
        "operators": "m.onnx",
        "bench": "p.dvt",
        "devices": None,
        "calibrate": None,
        "messages": None,
    },
    "dovetail-run": {"run": "p.dvt", "inspect": "p.dvt", "bench": "p.dvt", "devices": None},
}
ALL = [(program, command) for program, commands in COMMANDS.items() for command in commands]


@functools.cache
def _options(program, command):
    """Of each option in a help text: its names, what its value is called or None, its text, and its heading."""
    options, heading = [], None
    for line in call([tool(program), command, "--help"])[1].splitlines():
        if re.fullmatch(r"\S.*:", line):
            heading = line[:-1]
        start = re.match(r"  (-\S+)( \S.*?)?(?:\s{2,}(\S.*))?$", line)
        if heading and heading.endswith("ptions") or heading and heading.startswith("Options"):
            if start:
                names, value, text = start.groups()
                options.append([names.split(","), value and value.strip(), text or "", heading])
            elif options and re.match(r"\s{20,}\S", line):
                options[-1][2] += " " + line.strip()
    assert len(options) > 1
    return options


def _lines(program, *arguments):
    code, out, messages = call([tool(program), *arguments])
    assert code == USAGE, (arguments, code, messages)
    assert not out
    assert messages.startswith(f"{program}: error: ") and messages.count("\n") == 1, messages
    assert len(messages) < 400, messages
    return messages


def test_all_commands_are_known():
    for program, commands in COMMANDS.items():
        text = call([tool(program), "--help"])[1]
        listed = re.findall(r"^  ([a-z]+) {2,}", text.split("Subcommands:")[1].split("Exit codes:")[0], re.M)
        assert listed == list(commands) or sorted(listed) == sorted(commands)


@pytest.mark.parametrize("program, command", ALL)
def test_help_is_short_and_names_defaults(program, command):
    for names, value, text, _ in _options(program, command):
        if "--help" in names:
            continue
        assert len(text.split()) <= 20, (names, text)
        assert text.count(";") <= 1 and text.endswith("."), (names, text)
        if value:
            assert "=" in value.split()[-1] or re.search(r"\bdefault\b", text, re.I), (names, value, text)
            # Checks that the parser appends say nothing to people.
            assert "INT in" not in value, (names, value)


@pytest.mark.parametrize("program, command", ALL)
def test_misspelled_options(program, command):
    for names, *_ in _options(program, command):
        long = names[-1]
        wrong = long[:4] + long[3:]
        messages = _lines(program, command, wrong)
        assert f"there is no option '{wrong}'; did you mean '{long}'?" in messages


@pytest.mark.parametrize("program, command", ALL)
def test_missing_values(program, command):
    positional = COMMANDS[program][command]
    given = [positional] if positional else []
    for names, value, _, _ in _options(program, command):
        if not value:
            continue
        for name in names:
            # At the end, and before another option, which is no value.
            for more in ([], ["--help"], ["-h"], [name, "1"]):
                messages = _lines(program, command, *given, name, *more)
                assert any(f"{n} is given without a value; write {n} " in messages for n in names), messages
                assert f"see `{program} {command} --help`" in messages


def _model(path, dims):
    weight = numpy_helper.from_array(np.ones((2, 3, 3, 3), np.float32), "weight")
    nodes = [helper.make_node("Conv", ["image", "weight"], ["mask"], name="conv", pads=[1, 1, 1, 1])]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, dims)
    mask = helper.make_tensor_value_info("mask", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [image], [mask], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("usage")
    _model(folder / "m.onnx", [1, 3, 8, 6])
    code, _, messages = call([tool("dovetail"), "compile", "m.onnx", "-o", "p.dvt", "-q"], cwd=folder)
    assert code == 0, messages
    values = np.arange(144, dtype=np.float32).reshape(1, 3, 8, 6)
    np.save(folder / "image.npy", values)
    np.savez(folder / "inputs.npz", image=values)
    values.tofile(folder / "image.raw")
    (folder / "noextension").write_bytes((folder / "image.npy").read_bytes())
    return folder


def _wrong(folder, *arguments, program="dovetail", code=USAGE):
    result, _, messages = call([tool(program), *arguments], cwd=folder)
    assert result == code, messages
    assert messages.count("\n") == 1 and len(messages) < 400, messages
    return messages


#: Values that no option of the name takes, and what the message says.
WRONG_VALUES = {
    "--mesh": "y",
    "--shard": "image",
    "--sizes": "image",
    "--feedback": "mask",
    "--objective": "speed",
    "--search-seconds": "soon",
    "--follow": "much",
    "--cluster": "h10",
    "--halos": "wide",
    "--split-launches": "wide",
    "--memory": "much",
    "--dim": "H",
    "--bound": "H",
    "--shape": "=",
    "--target": "cdua",
    "--cpu": "pentium",
    "--math": "f23",
    "--prepack": "0",
    "--autotune": "many",
    "--compile-to": "teleport",
    "--threads": "none",
    "--timeout": "long",
    "--device": "first",
    "--rank": "first",
    "--world": "many",
    "--warmup": "x",
    "--iterations": "x",
    "--steps": "x",
    "--input": "image",
    "--comm": "mpii",
    "--seed": "x",
    "--ranks": "x",
    "--seconds": "x",
}


@pytest.mark.parametrize("program, command", ALL)
def test_wrong_values(folder, program, command):
    positional = COMMANDS[program][command]
    # What describes models is for models.
    positional = "m.onnx" if (program, command) == ("dovetail", "inspect") else positional
    given = [positional] if positional else []
    for names, value, _, _ in _options(program, command):
        # On one rank `verify` has a warning.
        mesh = ["--mesh", "y=2"] if command == "verify" and "--mesh" not in names else []
        name, wrong = names[-1], WRONG_VALUES.get(names[-1])
        if not value or not wrong or (command, name) in {("devices", "--target"), ("inspect", "--threads")}:
            continue
        messages = _wrong(folder, command, *given, *mesh, name, wrong, program=program)
        assert wrong in messages, messages
        # Transports are named as what they are.
        assert name in messages or name == "--comm", messages


@pytest.mark.parametrize(
    "spec", ["image=image.npy", "image=inputs.npz", "image=image.raw", "inputs.npz", "image=noextension"]
)
def test_files_without_at(folder, spec):
    for program in ("dovetail", "dovetail-run"):
        for number, each in enumerate([spec, re.sub("=|^(?=inputs)", r"\g<0>@", spec)]):
            code, _, messages = call(
                [tool(program), "run", "p.dvt", "--input", each, "--output", f"mask=mask{number}.npy"], cwd=folder
            )
            assert code == 0, messages
        assert (folder / "mask0.npy").read_bytes() == (folder / "mask1.npy").read_bytes()


def test_outputs_are_not_written_over_inputs(folder):
    before = (folder / "image.npy").read_bytes()
    messages = _wrong(folder, "run", "p.dvt", "--input", "image=image.npy", "--output", "mask=image.npy")
    assert "would be written over the input image=image.npy" in messages
    assert (folder / "image.npy").read_bytes() == before


@pytest.mark.parametrize(
    "spec, advice",
    [
        ("Image=image.npy", "did you mean 'image'?"),
        ("image.npy", "the name of the input is missing; write --input image=image.npy"),
        ("image=image", "this file does not exist; write --input image=FILE.npy"),
        ("image", "this file does not exist; write --input image=FILE.npy"),
    ],
)
def test_inputs_say_what_to_write(folder, spec, advice):
    assert advice in _wrong(folder, "run", "p.dvt", "--input", spec)


def test_files_that_are_not_there(folder):
    assert "missing.npy" in _wrong(folder, "run", "p.dvt", "--input", "image=missing.npy", code=FILE)


@pytest.mark.parametrize("blank", ["-", "*", "None", ""])
def test_a_dimension_that_stays_whole(folder, blank):
    spec = f"image={blank},_,y,{blank}"
    messages = _wrong(folder, "compile", "m.onnx", "-o", "none.dvt", "--mesh", "y=2", "--shard", spec)
    assert "write '_' for a dimension that stays whole: --shard image=_,_,y,_" in messages


#: Lists as people copy them from `inspect`, Python and PyTorch.
LISTS = [
    ["--shard", "image=[_, _, y, x]"],
    ["--shard", "image=(_,_,y,x)"],
    ["--shard", "image= _ , _ , y , x "],
    ["--shard", "image=[_, _, [y], (x)]"],
    ["--mesh", "y=2, x=2"],
    ["--sizes", "image:2=[5, 3]"],
    ["--sizes", "image:2=5 + 3"],
]


@pytest.mark.parametrize("flags", LISTS, ids=" ".join)
def test_lists_may_have_brackets_and_spaces(folder, tmp_path, flags):
    plain = {"--mesh": "y=2,x=2", "--shard": "image=_,_,y,x", "--sizes": "image:2=5,3"}
    artifacts = []
    for number, given in enumerate((plain, plain | dict([flags]))):
        path = tmp_path / f"{number}.dvt"
        options = [text for option in given.items() for text in option]
        code, _, messages = call([tool("dovetail"), "compile", folder / "m.onnx", "-q", "-o", path, *options])
        assert code == 0, messages
        artifacts.append(path.read_bytes())
    assert artifacts[0] == artifacts[1]


def test_lists_of_shapes(folder, tmp_path):
    _model(tmp_path / "open.onnx", ["n", 3, "h", "w"])
    results = []
    for shape in ("image=1,3,8,6", "image=[1, 3, 8, 6]"):
        command = [tool("dovetail"), "inspect", "--json", tmp_path / "open.onnx", "--shape", shape]
        results.append(call(command))
        assert results[-1][0] == 0, results[-1]
    assert results[0] == results[1]


@pytest.mark.parametrize("spec", ["image=[_,_,y,_", "image=_,_,y],_", "image=[[_,_,y,_]]"])
def test_brackets_that_do_not_match(folder, spec):
    messages = _wrong(folder, "compile", "m.onnx", "-o", "none.dvt", "--mesh", "y=2", "--shard", spec)
    assert f"'--shard {spec}': the mesh has no axis '" in messages


def test_shardings_of_inspect(folder):
    """`inspect` prints the pieces of a dimension, which have an option of their own."""
    text = call([tool("dovetail"), "compile", "m.onnx", "-o", "p2.dvt", "--mesh", "y=2", "-q"], cwd=folder)
    assert text[0] == 0, text
    wrong = ["compile", "m.onnx", "-o", "none.dvt", "--mesh", "y=2", "--shard", "image=[_, _, y:5+3, _]"]
    assert "write the axis 'y' alone, and the extents of its shards as --sizes image:2=5+3" in _wrong(folder, *wrong)


@pytest.mark.parametrize("ignores", [False, True], ids=["default", "ignored"])
@pytest.mark.parametrize(
    "program, command",
    [("dovetail", "operators"), ("dovetail", "operators --json"), ("dovetail", "--help"), ("dovetail-run", "inspect p.dvt")],
)
def test_reader_that_ends_early(folder, program, command, ignores):
    """`dovetail operators | head -1`: no message, and the exit code of whom SIGPIPE ends, if it is ignored, too."""
    reading, writing = os.pipe()
    os.close(reading)
    previous = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        result = subprocess.run(
            [tool(program), *command.split()], cwd=folder, stdout=writing, stderr=subprocess.PIPE,
            restore_signals=not ignores, env=without_preload(),
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGPIPE, previous)
        os.close(writing)
    assert result.stderr == b""
    assert result.returncode == (128 + signal.SIGPIPE if ignores else -signal.SIGPIPE)


def test_options_of_other_commands(folder):
    messages = _wrong(folder, "run", "p.dvt", "--mesh", "y=2")
    assert "`run` has no option '--mesh'; give it to `dovetail compile`, `verify`, `plan`" in messages
    messages = _wrong(folder, "compile", "m.onnx", "--comm", "mpi")
    assert "`compile` has no option '--comm'; give it to `dovetail run`, `bench`" in messages


def test_an_option_is_no_value(folder):
    messages = _wrong(folder, "compile", "m.onnx", "--autotune", "-o", "f.dvt")
    assert "--autotune is given without a value; write --autotune THREADS" in messages
    assert not (folder / "f.dvt").exists()
    # Numbers below 0 are no options, nor is the standard output.
    assert "are for ranks that are processes" in _wrong(folder, "run", "p.dvt", "--rank", "-1", "--world", "2")


def test_cpus(folder):
    messages = _wrong(folder, "compile", "m.onnx", "-o", "none.dvt", "--cpu", "skylak")
    assert "did you mean 'skylake" in messages and "`dovetail --list-cpus`" in messages
    assert "haswell" in _wrong(folder, "compile", "m.onnx", "-o", "none.dvt", "--cpu", "pentium")
    code, out, messages = call([tool("dovetail"), "--list-cpus"])
    assert code == 0 and not messages
    names = out.splitlines()
    assert {"native", "x86-64-v3", "skylake-avx512", "znver4"} < set(names) and len(names) == len(set(names))


def test_transports(folder):
    messages = _wrong(folder, "run", "p.dvt", "--input", "image=random:0", "--comm", "locl")
    assert "there is no transport 'locl'" in messages and "did you mean 'local'?" in messages


@pytest.mark.parametrize("spec, name", [("mask=@mask.npy", "mask.npy"), ("@all.npz", "all.npz")])
def test_outputs_may_have_the_sign_of_inputs(folder, tmp_path, spec, name):
    command = [tool("dovetail"), "run", folder / "p.dvt", "--input", "image=random:0", "--output", spec]
    code, _, messages = call(command, cwd=tmp_path)
    assert code == 0, messages
    assert [path.name for path in tmp_path.iterdir()] == [name]
