# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`dovetail messages` lists what commands print, and its list is what scripts/messages finds in the sources."""

import json
import re
import subprocess
import sys

import pytest
from harness.backend import ROOT, USAGE, call, tool

pytestmark = pytest.mark.quick

BLUR = ROOT / "test/Driver/Inputs/blur.onnxtxt"


def _text(node, inputs="float[2, 3] x", outputs="float[2, 3] y"):
    return f'<ir_version: 8, opset_import: ["" : 17]>\nbad ({inputs}) => ({outputs})\n{{\n  [culprit] {node}\n}}\n'


#: Texts of models and other files that cases below name.
FILES = {
    "axis.onnxtxt": _text("y = Softmax <axis = 5> (x)"),
    "nothing.onnxtxt": _text("y = Relu (unknown)"),
    "strings.onnxtxt": _text("y = Relu (x)", inputs="string[2] x"),
    "unknown.onnxtxt": _text("y = Blur (x)"),
    "words.onnxtxt": "no model",
    "words.onnx": "no model",
    "words.dvt": "no program",
    "words.npy": "no array",
    "words.json": "{",
}
#: Command lines that fail or warn. FOLDER has the files above, and the program blur.dvt.
CASES = [
    "compile BLUR -o FOLDER/p.dvt --mesh y=2 --shard image=_,_,z,_",
    "compile BLUR -o FOLDER/p.dvt --mesh y=2 --shard picture=_,y",
    "compile BLUR -o FOLDER/p.dvt --mesh y=2 --shard image=_,_,y,_ --sizes image:2=5,6",
    "compile BLUR -o FOLDER/p.dvt --target tpu",
    "compile BLUR -o FOLDER/p.dvt --dim N=1",
    "compile BLUR -o FOLDER/missing/p.dvt",
    "compile BLUR -o FOLDER/p.dvt --mesh y=2 --memory 1KiB",
    "compile BLUR -o FOLDER/p.dvt --cluster FOLDER/words.json",
    "compile FOLDER/missing.onnx -o FOLDER/p.dvt",
    "compile FOLDER/words.onnx -o FOLDER/p.dvt",
    "compile FOLDER/words.onnxtxt -o FOLDER/p.dvt",
    "compile FOLDER/axis.onnxtxt -o FOLDER/p.dvt",
    "compile FOLDER/nothing.onnxtxt -o FOLDER/p.dvt",
    "compile FOLDER/unknown.onnxtxt -o FOLDER/p.dvt",
    "compile FOLDER/strings.onnxtxt -o FOLDER/p.dvt",
    "verify BLUR",
    "run FOLDER/words.dvt",
    "run FOLDER/blur.dvt --input image=FOLDER/missing.npy",
    "run FOLDER/blur.dvt --input image=FOLDER/words.npy",
    "run FOLDER/blur.dvt --input picture=random:0",
    "run FOLDER/blur.dvt",
    "run FOLDER/blur.dvt --comm pigeons --input image=random:0",
    "inspect FOLDER/missing.dvt",
    "bench FOLDER/blur.dvt --iterations 0",
    "devices --target tpu",
    "translate BLUR",
    "messages a-word-of-no-message",
]


@pytest.fixture(scope="module")
def patterns():
    """Each text of the list as an expression, with the number of its letters."""
    code, out, messages = call([tool("dovetail"), "messages", "--json"])
    assert code == 0, messages
    return [_pattern(entry["text"]) for entry in json.loads(out)]


def _pattern(text):
    pattern, letters = "", 0
    for piece in re.split(r"(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})", text):
        if not piece.startswith("{"):
            pattern += re.escape(piece)
            letters += sum(c.isalpha() for c in piece)
        elif "|" in piece:
            pattern += "(?:" + "|".join(_pattern(one)[0] for one in piece[1:-1].split("|")) + ")"
        else:
            pattern += ".*"
    return pattern, letters


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messages")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    code, _, messages = call([tool("dovetail"), "compile", BLUR, "-o", folder / "blur.dvt"])
    assert code == 0, messages
    return folder


def test_list_is_up_to_date():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/messages", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("case", CASES)
def test_printed_messages_are_listed(case, folder, patterns):
    arguments = case.replace("BLUR", str(BLUR)).replace("FOLDER", str(folder)).split()
    messages = call([tool("dovetail"), *arguments])[2]
    found = re.match(r"dovetail: (?:error|warning): (.*)", messages, re.DOTALL)
    assert found, messages
    text = re.sub(r"\s+", " ", found[1])
    # The longest entry that the message contains; names of files and reasons may stand around it.
    most = max((letters for pattern, letters in patterns if re.search(pattern, text)), default=0)
    assert most >= 10, f"{most} letters: {text}"


def test_words_select():
    code, out, _ = call([tool("dovetail"), "messages", "MESH", "has no axis"])
    assert code == 0
    assert out and all("mesh" in line.lower() and "has no axis" in line for line in out.splitlines())
    code, out, _ = call([tool("dovetail"), "messages", "warning\t", "--json"])
    assert code == 0
    assert {entry["kind"] for entry in json.loads(out)} == {"warning"}


def test_no_such_words():
    code, out, messages = call([tool("dovetail"), "messages", "mesh", "xyzzy"])
    assert (code, out) == (USAGE, "")
    assert "no message contains 'mesh' and 'xyzzy'" in messages
