# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names and places in a model's metadata that are large, control a terminal, are markup, or are no UTF-8, do no harm."""

import html.parser
import json
import time

import onnx
import pytest
from harness.backend import build_dir, call, tool
from harness.sanitizers import sanitizers
from harness.source_names import named_model, set_metadata, trace
from onnx import TensorProto, helper
from test_names import MODULES, SPLIT, TRACE, compile_model, inspect, relu, source_of, steps_of

pytestmark = pytest.mark.usefixtures("dovetail")

#: Bytes of a source name, at most.
MOST_BYTES = 120


def compile_bounded(path, seconds, megabytes):
    """Compiles with a limit of time and address space; returns the size of the artifact."""
    output = path.with_suffix(".dvt")
    # Sanitizers reserve more than there is.
    limit = [] if sanitizers(build_dir()) else ["prlimit", f"--as={megabytes << 20}"]
    begin = time.monotonic()
    code, _, messages = call([*limit, tool("dovetail"), "compile", path, "-o", output, "--no-libraries"])
    assert code == 0, messages[:1000]
    assert time.monotonic() - begin < seconds
    return output.stat().st_size


HUGE = 100_000_000


@pytest.mark.parametrize(
    "metadata",
    [
        {MODULES: "['" + "a" * HUGE + "']"},
        {MODULES: "['" + "a', '" * (HUGE // 5) + "']"},
        {"namespace": "a: b/" * (HUGE // 5)},
        {TRACE: 'File "' + "a" * HUGE + '", line 8, in forward'},
        {TRACE: trace(*[("net.py", 8, "y")] * (HUGE // 41))},
        {"unknown": "a" * HUGE},
        {"a" * HUGE: "unknown"},
    ],
    ids=["name", "names", "namespace", "file", "frames", "value", "key"],
)
def test_100_megabytes(tmp_path, metadata):
    node = relu()
    set_metadata(node, **metadata)
    check_100_megabytes(tmp_path, [node])


def test_100_megabytes_of_entries(tmp_path):
    node = relu()
    entry = onnx.StringStringEntryProto(key="key", value="v" * 20)
    node.metadata_props.extend([entry] * (HUGE // 29))
    check_100_megabytes(tmp_path, [node])


def save_model(nodes, path):
    """Saves a model of these nodes from x to y."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    onnx.save(model, path)


def check_100_megabytes(tmp_path, nodes):
    path = tmp_path / "huge.onnx"
    save_model(nodes, path)
    assert path.stat().st_size > HUGE // 2
    # Small entries take eight times their size in the parser, and none once the model is read.
    assert compile_bounded(path, seconds=60, megabytes=2000) < 100_000
    path.unlink()


def test_many_long_names(tmp_path):
    """Each of 200 nodes has a name of 10 kB: steps have 120 bytes at most."""
    nodes = []
    for number in range(200):
        node = helper.make_node(
            "Softmax", [f"x{number}" if number else "x"], [f"x{number + 1}" if number < 199 else "y"], name=f"n{number}"
        )
        set_metadata(
            node,
            **{
                MODULES: repr(["", f"a{number}." * 3000 + "last", "softmax"]),
                TRACE: trace(("b" * 5000 + ".py", 7, "y")),
            },
        )
        nodes.append(node)
    save_model(nodes, tmp_path / "long.onnx")
    command = [tool("dovetail"), "compile", tmp_path / "long.onnx", "-o", tmp_path / "long.dvt", "--no-libraries"]
    assert call(command)[0] == 0
    sources = [step["source"] for step in steps_of(tmp_path / "long.dvt")]
    # Some nodes share a kernel.
    assert len(sources) > 100 and max(len(source.encode()) for source in sources) <= MOST_BYTES
    assert all(
        source.startswith("...") and "last.softmax (...b" in source and source.endswith(".py:7)") for source in sources
    )


#: What a hostile model calls things: it rewrites the terminal, ends lines, reverses text, and is markup.
CONTROL = "a\x1b[2J\x07\r\tdovetail: b\u202e\u2028c\x9b"
MARKUP = '<script>alert(1)</script><img src=x onerror="alert(2)">&amp;'


def hostile_model(name):
    """A model, as bytes, whose modules and files are called so."""
    model = named_model()
    for node in model.graph.node:
        # As `repr` writes it control characters would be escapes already.
        set_metadata(node, **{MODULES: f"['', '{name}', 'relu']", TRACE: trace((f"/x/{name}.py", 8, "y"))})
    return model.SerializeToString()


def texts_of(folder, model):
    """Everything that is said about a model, by what says it."""
    (folder / "hostile.onnx").write_bytes(model)
    texts = {}
    files = ("a.html", "a.json", "b.html", "events.json", "data.json")
    html_report, json_report, page, events, data = (folder / name for name in files)
    texts["remarks"] = compile_model(folder, "hostile", "--remarks", "--report", html_report)
    compile_model(folder, "hostile", "--report", json_report)
    texts["inspect"] = inspect(folder / "hostile.dvt")
    texts["inspect --json"] = inspect(folder / "hostile.dvt", "--json")
    command = [tool("dovetail"), "plan", folder / "hostile.onnx", *SPLIT]
    code, texts["plan"], messages = call([*command, "--report", page, "--trace", events, "--json", data])
    assert code == 0, messages
    for path in (html_report, json_report, page, events, data):
        texts[path.name] = path.read_bytes().decode()  # Wrong UTF-8 is an error.
    for name in ("inspect --json", json_report.name, events.name, data.name):
        json.loads(texts[name])
    return texts


def test_control_characters(tmp_path):
    # As Python's `repr` they would be escapes; others may write them as they are.
    for name, text in texts_of(tmp_path, hostile_model(CONTROL)).items():
        assert not set(text) & set("\x1b\x07\r\t\u202e\u2028\x9b"), name
        assert "a\\x1b[2J\\x07\\x0d\\x09dovetail: b\\u202e\\u2028c\\x9b" in text.replace("\\\\", "\\"), name


def test_line_ends(tmp_path):
    node = relu()
    source = source_of(node, **{MODULES: "['', 'a\nb', 'relu']"})
    assert source == "a\\x0ab.relu"


class Elements(html.parser.HTMLParser):
    """Collects the names of elements, and the text between."""

    def __init__(self):
        super().__init__()
        self.names, self.text = set(), ""

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data):
        self.text += data


def test_markup(tmp_path):
    texts = texts_of(tmp_path, hostile_model(MARKUP))
    plain = texts_of(tmp_path, named_model().SerializeToString())
    for name in ("a.html", "b.html"):
        parsed, usual = Elements(), Elements()
        parsed.feed(texts[name])
        usual.feed(plain[name])
        assert parsed.names == usual.names, name
        assert "onerror" in parsed.text, name


@pytest.mark.parametrize("wrong", [b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xe5\xb1"])
def test_wrong_utf8(tmp_path, wrong):
    mark = "@" * len(wrong)
    content = hostile_model(f"a{mark}b")
    assert mark.encode() in content
    texts = texts_of(tmp_path, content.replace(mark.encode(), wrong))
    escaped = "a" + "".join(f"\\x{byte:02x}" for byte in wrong) + "b"
    for name, text in texts.items():
        assert escaped in text.replace("\\\\", "\\"), name
        assert "\ufffd" not in text, name


def test_nodes_that_are_no_utf8(tmp_path):
    content = named_model(annotated=False).SerializeToString().replace(b"node_conv2d", b"node_\xff\xfenv2d")
    (tmp_path / "hostile.onnx").write_bytes(content)
    code, text, messages = call([tool("dovetail"), "operators", "--json", tmp_path / "hostile.onnx"])
    assert code == 0, messages
    assert json.loads(text)[0]["inputs"][0]["nodes"][2] == ["node_\ufffd\ufffdnv2d"]


def test_table_of_operators(tmp_path):
    """Names of inputs and nodes, which `operators` prints in tables."""
    value = helper.make_tensor_value_info(CONTROL, TensorProto.FLOAT, [2, 3])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    node = helper.make_node("Softmax", [CONTROL], ["y"], name=CONTROL, axis=-1)
    model = helper.make_model(helper.make_graph([node], "g", [value], [result]), opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, tmp_path / "hostile.onnx")
    code, text, messages = call([tool("dovetail"), "operators", tmp_path / "hostile.onnx"])
    assert code == 0, messages
    assert not set(text) & set("\x1b\x07\r\t\u202e\u2028\x9b")
    # The input, and the node that causes its exchanges.
    assert text.count("a\\x1b[2J\\x07\\x0d\\x09dovetail: b\\u202e\\u2028c\\x9b") >= 3
