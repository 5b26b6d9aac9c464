# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What people read calls nodes as the user's program does; programs find them by their names in the model.

`harness/source_names.py` makes metadata as exporters do. Expected names are those of the program in its comment.
"""

import json
import tempfile

import numpy as np
import onnx
import pytest
from harness.backend import call, tool
from harness.source_names import SITE, named_model, set_metadata, trace
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.usefixtures("dovetail")

INVALID_MODEL = 4
SPLIT = ["--mesh", "y=2", "--shard", "image=_,_,y,_"]
#: Nodes of the model, and what they are in the program.
NAMES = {
    "node_conv2d": "body.0 (net.py:8)",
    "node_relu": "body.1 (net.py:8)",
    "node_conv2d_1": "body.2 (net.py:8)",
    "node_mean": "mean (net.py:9)",
    "node_add": "add (net.py:9)",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The model as named.onnx and, without metadata, plain.onnx; and both compiled."""
    path = tmp_path_factory.mktemp("names")
    for name, annotated in (("named", True), ("plain", False)):
        onnx.save(named_model(annotated), path / f"{name}.onnx")
        compile_model(path, name)
    return path


def compile_artifact(model, options):
    """The bytes of an artifact, through the compiler's C interface."""
    from dovetail._compiler import compile_artifact

    return compile_artifact(model, options)


def compile_model(path, name, *options, output=None):
    """Compiles a model of a folder; returns what the compiler said."""
    output = path / f"{output or name}.dvt"
    command = [tool("dovetail"), "compile", path / f"{name}.onnx", "-o", output, *SPLIT, "--cpu", "x86-64-v2", *options]
    code, _, messages = call(command)
    assert code == 0, messages
    return messages


def inspect(artifact, *options):
    code, text, messages = call([tool("dovetail-run"), "inspect", artifact, *options])
    assert code == 0, messages
    return text


def steps_of(artifact):
    description = json.loads(inspect(artifact, "--json"))
    return [step for steps in (description["prologue"], description["steps"]) for step in steps]


def source_of(node, **metadata):
    """What the steps of a model are called whose one node has these metadata; None if they have no source name."""
    set_metadata(node, **metadata)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    return sources_in(compile_artifact(model, []))


def sources_in(artifact):
    """The one source name of all steps of an artifact, which is bytes."""
    with tempfile.NamedTemporaryFile(suffix=".dvt") as file:
        file.write(artifact)
        file.flush()
        names = {step.get("source") for step in steps_of(file.name)}
    assert len(names) == 1, names
    return names.pop()


def relu():
    return helper.make_node("Relu", ["x"], ["y"], name="culprit")


# ---- Where people read ----


def test_inspect(folder):
    text = inspect(folder / "named.dvt")
    assert "body.0 (net.py:8)" in text and "node_" not in text
    assert "node_conv2d" in inspect(folder / "plain.dvt")


def test_names_of_nodes_stay_keys(folder):
    steps = steps_of(folder / "named.dvt")
    assert any(step["name"] == "node_conv2d" for step in steps)
    named = 0
    for step in steps:
        if base := next((name for name in sorted(NAMES, key=len, reverse=True) if step["name"].startswith(name)), None):
            # Parts of a step, such as its interior, are that of the same node.
            assert step["source"].startswith(NAMES[base]), step
            assert step["source"][len(NAMES[base]) :] == step["name"][len(base) :], step
            named += 1
    assert named >= 3
    exchanges = json.loads(inspect(folder / "named.dvt", "--json"))["exchanges"]
    assert all(
        "node_" in exchange["name"] and "net.py" in exchange["source"] for exchange in exchanges if "source" in exchange
    )
    assert [exchange["name"] for exchange in exchanges] == [
        exchange["name"] for exchange in json.loads(inspect(folder / "plain.dvt", "--json"))["exchanges"]
    ]


def test_remarks(folder, tmp_path):
    named = compile_model(folder, "named", "--remarks", "--quiet", output="remarks")
    plain = compile_model(folder, "plain", "--remarks", "--quiet", output="remarks")
    assert "node 'body.0 (net.py:8)': " in named and "node 'node_" not in named
    assert "node 'node_conv2d': " in plain
    # All else is said alike.
    for name, source in sorted(NAMES.items(), key=lambda item: -len(item[0])):
        plain = plain.replace(f"node '{name}'", f"node '{source}'")
    assert named == plain


def test_errors(folder):
    onnx.save(named_model(channels=5), folder / "wrong.onnx")
    code, _, messages = call([tool("dovetail"), "compile", folder / "wrong.onnx", "-o", folder / "wrong.dvt"])
    assert code == INVALID_MODEL
    assert "error: node 'body.0 (net.py:8)' (Conv)" in messages and "node_conv2d" not in messages


def test_unsupported_nodes(folder):
    model = named_model()
    for node in model.graph.node[1:3]:
        node.op_type, node.domain = "Fancy", "acme"
        del node.attribute[:]
    model.opset_import.append(helper.make_opsetid("acme", 1))
    onnx.save(model, folder / "unsupported.onnx")
    code, _, messages = call(
        [tool("dovetail"), "compile", folder / "unsupported.onnx", "-o", folder / "wrong.dvt", "--remarks"]
    )
    assert code == 5
    assert "'body.1 (net.py:8)': Fancy" in messages and "node_" not in messages
    # The node says itself what it is called.
    assert "remark: node 'body.1 (net.py:8)'" in messages and "': node '" not in messages


@pytest.mark.parametrize("kind", ["html", "json"])
def test_report_of_compile(folder, kind):
    report = folder / f"report.{kind}"
    compile_model(folder, "named", "--report", report, output="reported")
    text = report.read_text()
    assert "body.0 (net.py:8)" in text
    assert ("node_conv2d" in text) == (kind == "json")


def test_plan(folder):
    page, data, events = (folder / name for name in ("plan.html", "plan.json", "trace.json"))
    command = [tool("dovetail"), "plan", folder / "named.onnx", *SPLIT]
    code, text, messages = call([*command, "--report", page, "--trace", events, "--json", data])
    assert code == 0, messages
    assert "body.0 (net.py:8)" in text and "node_" not in text
    assert "body.0 (net.py:8)" in page.read_text() and "node_conv2d" not in page.read_text()
    check_trace(json.loads(events.read_text()))
    names = {step["name"]: step.get("source") for step in json.loads(data.read_text())["steps"]}
    assert names["node_conv2d"] == "body.0 (net.py:8)"
    code, text, messages = call([*command, "--no-source-names"])
    assert code == 0 and "node_conv2d" in text and "net.py" not in text, messages


def check_trace(trace):
    """That events have the program's names, and the model's beside them."""
    found = {(event["name"], event["args"].get("node")) for event in trace["traceEvents"] if event["ph"] == "X"}
    assert ("body.0 (net.py:8)", "node_conv2d") in found
    assert not any(name.startswith("node_") for name, _ in found)


def test_trace(folder):
    trace = folder / "run.json"
    command = [tool("dovetail-run"), "run", folder / "named.dvt", "--input", "image=random:0", "--trace", trace]
    code, _, messages = call(command)
    assert code == 0, messages
    check_trace(json.loads(trace.read_text()))


def test_verify(folder):
    np.save(folder / "nan.npy", np.full((1, 3, 16, 12), np.nan, np.float32))
    command = [tool("dovetail"), "verify", folder / "named.onnx", *SPLIT, "--per-op", "-i", f"image=@{folder}/nan.npy"]
    code, _, messages = call(command)
    assert code == 0, messages
    # Tensors are called as requests name them.
    assert "value 'conv2d' of 'body.0 (net.py:8)' is NaN everywhere" in messages
    assert "value 'mean' of 'mean (net.py:9)' is NaN everywhere" in messages


def test_operators(folder):
    code, text, messages = call([tool("dovetail"), "operators", folder / "named.onnx"])
    assert code == 0, messages
    assert "halo (body.0 (net.py:8))" in text
    code, text, messages = call([tool("dovetail"), "operators", "--json", folder / "named.onnx"])
    described = json.loads(text)[0]["inputs"][0]
    assert described["nodes"][2][0] == "node_conv2d" and described["sources"][2][0] == "body.0 (net.py:8)"


def test_index_out_of_range(dovetail):
    gather = helper.make_node("Gather", ["table", "i"], ["y"], name="node_embedding")
    set_metadata(
        gather,
        pkg__torch__onnx__name_scopes="['', 'embed', 'embedding']",
        pkg__torch__onnx__class_hierarchy="['net.Net', 'torch.nn.modules.sparse.Embedding', 'aten.embedding.default']",
        pkg__torch__onnx__stack_trace=trace(("net.py", 12, "return self.embed(i)")),
    )
    graph = helper.make_graph(
        [gather],
        "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [numpy_helper.from_array(np.zeros((4, 3), np.float32), "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    program = dovetail.compile(model)
    with pytest.raises(dovetail.DovetailError, match=r"node 'embed \(net\.py:12\)': index 9 is out of range"):
        program.run({"i": np.array([1, 9])})


# ---- Nothing but names ----


def parts_of(artifact):
    """(code, weights) of an artifact, in which they are the last sections."""
    content, said = artifact.read_bytes(), json.loads(inspect(artifact, "--json"))
    align = 4096
    weights = len(content) - said["weights_bytes"]
    assert weights % align == 0 and said["weights_bytes"] > 0
    code = weights - -(-said["code_bytes"] // align) * align
    assert content[code : code + 4] == b"\x7fELF"
    return content[code : code + said["code_bytes"]], content[weights:]


@pytest.mark.parametrize("options", [[], ["--no-libraries"]], ids=["libraries", "kernels"])
def test_metadata_change_names_alone(folder, options):
    for name in ("named", "plain"):
        compile_model(folder, name, *options, output=f"{name}-same")
    named, plain = folder / "named-same.dvt", folder / "plain-same.dvt"
    assert parts_of(named) == parts_of(plain)
    said = [json.loads(inspect(path, "--json")) for path in (named, plain)]
    for description in said:
        del description["file"], description["file_bytes"]
        for step in (*description["steps"], *description["prologue"], *description["exchanges"]):
            assert ("net.py" in step.pop("source", "")) <= (description is said[0])
    assert said[0] == said[1]
    assert named.read_bytes() != plain.read_bytes()


def test_no_source_names(folder):
    """Without source names an artifact is that of the model without metadata, byte for byte."""
    messages = compile_model(folder, "named", "--no-source-names", "--remarks", output="bare")
    assert (folder / "bare.dvt").read_bytes() == (folder / "plain.dvt").read_bytes()
    assert "node 'body.0 (net.py:8)'" in messages
    options = [*SPLIT, "--cpu", "x86-64-v2", "--no-source-names"]
    # The C interface: of a file, and of bytes.
    assert compile_artifact(folder / "named.onnx", options) == (folder / "plain.dvt").read_bytes()
    assert compile_artifact(named_model(), options) == (folder / "plain.dvt").read_bytes()


@pytest.mark.parametrize("keeps", [True, False])
def test_no_source_names_in_python(dovetail, folder, keeps):
    program = dovetail.compile(
        named_model(), mesh={"y": 2}, shard={"image": "_,_,y,_"}, cpu="x86-64-v2", source_names=keeps
    )
    path = folder / "python.dvt"
    program.save(path)
    assert path.read_bytes() == (folder / ("named.dvt" if keeps else "plain.dvt")).read_bytes()


# ---- What exporters write ----

MODULES = "pkg__torch__onnx__name_scopes"
CLASSES = "pkg__torch__onnx__class_hierarchy"
TRACE = "pkg__torch__onnx__stack_trace"


@pytest.mark.parametrize(
    "metadata, expected",
    [
        # PyTorch: the innermost module, and the operator where the module's class does not say it.
        (
            {
                MODULES: "['', 'a', 'a.0', 'conv2d_7']",
                CLASSES: "['Net', 'A', 'torch.nn.modules.conv.Conv2d', 'aten.conv2d.default']",
            },
            "a.0",
        ),
        (
            {
                MODULES: "['', 'bn', 'batch_norm']",
                CLASSES: "['Net', 'torch.nn.modules.batchnorm.BatchNorm2d', 'aten.batch_norm.default']",
            },
            "bn",
        ),
        ({MODULES: "['', 'block', 'add_3']", CLASSES: "['net.Net', 'net.Block', 'aten.add.Tensor']"}, "block.add"),
        ({MODULES: "['', 'add']", CLASSES: "['net.Net', 'aten.add.Tensor']"}, "add"),
        ({MODULES: "['', 'block', 'add_3']"}, "block.add"),
        ({MODULES: "['relu']"}, "relu"),
        # As Python prints strings with quotes.
        ({MODULES: """['', "it's", 'say "a"', 'relu']"""}, 'say "a".relu'),
        ({MODULES: """['', 'it\\'s "b"', 'relu']"""}, """it's "b".relu"""),
        # The same without the lists.
        (
            {
                "namespace": ": net.Net/a: torch.nn.modules.container.Sequential/a.0: torch.nn.modules.activation.ReLU/relu: aten.relu.default"
            },
            "a.0",
        ),
        # Other tools write paths there.
        ({"namespace": "/encoder/layer.0/"}, "encoder/layer.0"),
        ({"namespace": ""}, None),
        # Places: of the user's own frame, else of the last one.
        ({TRACE: trace(("/x/net.py", 8, "y"), (f"{SITE}/torch/nn/modules/conv.py", 5, "z"))}, "net.py:8"),
        (
            {TRACE: trace(("/x/net.py", 8, "y"), (f"{SITE}/transformers/models/llama/modeling_llama.py", 253, "z"))},
            "modeling_llama.py:253",
        ),
        ({TRACE: trace((f"{SITE}/torch/nn/modules/conv.py", 5, "z"))}, "conv.py:5"),
        (
            {
                TRACE: trace(
                    ("C:\\Users\\ann\\my net.py", 96, "y"),
                    ("C:\\py\\site-packages\\torch\\nn\\modules\\linear.py", 134, "z"),
                )
            },
            "my net.py:96",
        ),
        ({TRACE: ""}, None),
        ({TRACE: 'File "net.py", line 99999999999999999999, in forward'}, None),
        (
            {
                MODULES: "['', 'a', 'relu']",
                CLASSES: "['Net', 'ReLU', 'aten.relu.default']",
                TRACE: trace(("net.py", 3, "y")),
            },
            "a (net.py:3)",
        ),
        # jax2onnx: the function and its line; with its full detail, tracebacks.
        ({"pkg__jax2onnx__callsite": "wide_fn:8", "pkg__jax2onnx__plugin": "SinPlugin.lower:41"}, "wide_fn (line 8)"),
        (
            {
                "pkg__jax2onnx__callsite": "wide_fn:8",
                "pkg__jax2onnx__jax_traceback": trace(
                    ("/x/wide.py", 8, "y"), (f"{SITE}/jax/_src/numpy/ufuncs.py", 5, "z")
                ),
            },
            "wide_fn (wide.py:8)",
        ),
        # Nothing is made of what is not as expected.
        ({MODULES: "['', 'a'"}, None),
        ({MODULES: "[1, 2]"}, None),
        ({MODULES: "['', 'a"}, None),
        ({MODULES: "__import__('os')"}, None),
        ({"another__key": "body.0"}, None),
    ],
)
def test_formats(metadata, expected):
    assert source_of(relu(), **metadata) == expected


def with_function(call_metadata, inner_metadata=None):
    inner = helper.make_node("Relu", ["a"], ["b"], name="inner")
    if inner_metadata:
        set_metadata(inner, **inner_metadata)
    function = helper.make_function("mine", "Gate", ["a"], ["b"], [inner], [helper.make_opsetid("", 17)])
    call_node = helper.make_node("Gate", ["x"], ["y"], name="call", domain="mine")
    set_metadata(call_node, **call_metadata)
    graph = helper.make_graph(
        [call_node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=[function])
    model.ir_version = 10
    return compile_artifact(model, [])


def test_functions():
    caller = {MODULES: "['', 'body', 'gate']", TRACE: trace(("net.py", 8, "y"))}
    assert sources_in(with_function(caller)) == "body.gate.Gate (net.py:8)"
    inner = {MODULES: "['', 'body', 'relu']", TRACE: trace(("gate.py", 2, "y"))}
    assert sources_in(with_function(caller, inner)) == "body.relu (gate.py:2)"
    assert sources_in(with_function({})) is None


def test_graphs_of_nodes():
    """Nodes of a branch that do not say it themselves are a part of the If."""

    def branch(op):
        value = helper.make_tensor_value_info("v", TensorProto.FLOAT, [4])
        return helper.make_graph([helper.make_node(op, ["x"], ["v"], name=op)], op, [], [value])

    node = helper.make_node("If", ["c"], ["y"], name="if", then_branch=branch("Relu"), else_branch=branch("Neg"))
    set_metadata(node, **{MODULES: "['', 'choice', 'cond']", TRACE: trace(("net.py", 8, "y"))})
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [4]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    assert sources_in(compile_artifact(model, [])) == "choice.cond (net.py:8)"
