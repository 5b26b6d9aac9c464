# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python package: what the compiler decides, predicts and finds, and in which words it says what is wrong."""

import copy
import json
import re

import numpy as np
import onnx
import pytest
from harness.backend import call, tool
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def _model(nodes, inputs, outputs, weights=()):
    def ports(shapes):
        return [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in shapes.items()]

    graph = helper.make_graph(nodes, "example", ports(inputs), ports(outputs), list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture(scope="module")
def model():
    """scaled = x @ w, y = relu(scaled)."""
    weight = numpy_helper.from_array(np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["scaled"]), helper.make_node("Relu", ["scaled"], ["y"])]
    return _model(nodes, {"x": ["N", 8]}, {"y": ["N", 6]}, [weight])


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def y(model, x):
    return np.maximum(x @ numpy_helper.to_array(model.graph.initializer[0]), 0)


def _fails(dovetail, code, pattern, function, *arguments, **named):
    with pytest.raises(dovetail.DovetailError, match=pattern) as error:
        function(*arguments, **named)
    assert error.value.code == code
    assert not re.search(r"dovetail: |--(?!search|halos|follow-inputs)[a-z]", str(error.value))
    return str(error.value)


def test_inspect_of_models(dovetail, model, tmp_path):
    report = dovetail.inspect(model)
    assert report["inputs"] == [{"name": "x", "type": "f32", "shape": ["N", 8]}]
    assert [entry["name"] for entry in report["open"]] == ["N"]
    report = dovetail.inspect(model, dims={"N": 4})
    assert report["open"] == [] and report["outputs"][0]["shape"] == [4, 6]
    assert [tensor["name"] for tensor in report["tensors"]] == ["scaled"]
    # As the command prints it.
    path = tmp_path / "example.onnx"
    onnx.save(model, path)
    code, text, messages = call([tool("dovetail"), "inspect", path, "--json", "--shape", "x=4,8"])
    assert code == 0, messages
    assert dovetail.inspect(path, shapes={"x": [4, 8]}) == json.loads(text)
    assert dovetail.inspect(path.read_bytes(), bounds={"N": 4})["inputs"][0]["shape"] == [4, 8]


def test_inspect_of_programs(dovetail, model, tmp_path):
    program = dovetail.compile(model, dims={"N": 4}, mesh={"y": 2}, shard={"x": ("y", None)})
    path = tmp_path / "example.dvt"
    program.save(path)
    code, text, messages = call([tool("dovetail"), "inspect", path, "--json"])
    assert code == 0, messages
    wanted = json.loads(text)
    assert dovetail.inspect(path) == wanted
    of_program = dovetail.inspect(program)
    assert of_program.pop("file") == "" and wanted.pop("file") == str(path)
    assert of_program == wanted
    assert wanted["num_ranks"] == 2


def test_plan(dovetail, model, tmp_path):
    path = tmp_path / "example.onnx"
    onnx.save(model, path)
    code, text, messages = call(
        [tool("dovetail"), "plan", path, "--json", "-", "--dim", "N=4", "--mesh", "y=2", "--shard", "x=y,_"]
    )
    assert code == 0, messages
    arguments = dict(dims={"N": 4}, mesh={"y": 2}, shard={"x": "y,_"})
    wanted = json.loads(text)
    assert dovetail.plan(path, **arguments) == wanted
    from_model = dovetail.plan(model, **arguments)
    assert from_model["ranks"] == wanted["ranks"] and len(wanted["ranks"]) == 2
    # 192 bytes of weights and a row of x do not fit into 100 bytes.
    with pytest.warns(UserWarning, match="^the program does not fit: rank 0 needs"):
        report = dovetail.plan(model, memory=100, **arguments)
    assert [rank["memory"]["fits"] for rank in report["ranks"]] == [False, False]


def test_verify(dovetail, model, x, y):
    arguments = dict(dims={"N": 4}, mesh={"y": 2}, shard={"x": "y,_"})
    report = dovetail.verify(model, {"x": x}, per_op=True, **arguments)
    assert report["equal"] and report["compared_with"] == "one rank"
    assert [output["name"] for output in report["outputs"]] == ["y"]
    assert {"scaled", "y"} <= {value["name"] for value in report["values"]}
    assert dovetail.verify(model, {"x": x}, {"y": y}, **arguments)["equal"]
    program = dovetail.compile(model, **arguments)
    assert dovetail.verify(program, {"x": x}, {"y": y})["equal"]
    with pytest.warns(UserWarning, match=r"^output 'y' differs in 24 of 24 elements"):
        report = dovetail.verify(program, {"x": x}, {"y": y + 1})
    assert not report["equal"] and report["outputs"][0]["different_elements"] == 24
    _fails(dovetail, 2, r"^expect\['y'\]: the file has float64", dovetail.verify, program, {"x": x}, {"y": y.astype(float)})
    _fails(dovetail, 2, r"^inputs\['z'\]: the program has no input 'z'", dovetail.verify, program, {"z": x}, {"y": y})
    _fails(dovetail, 2, "compiled program, not a model", dovetail.verify, program, {"x": x})


def test_objectives(dovetail, model, x, y):
    """Arguments of the planner mean the same as the command's options."""
    arguments = dict(dims={"N": 4}, mesh={"y": 2})
    for named in ({"objective": "bytes"}, {"objective": "memory"}, {"follow": 100}, {"memory": 10**6}, {"memory": "1MB"}):
        np.testing.assert_allclose(dovetail.compile(model, **arguments, **named).run({"x": x})["y"], y, rtol=1e-5)
    assert dovetail.plan(model, cluster="h100", target="cuda", **arguments)["cluster"] == "h100"
    _fails(dovetail, 2, "^objective='speed': ", dovetail.compile, model, objective="speed", **arguments)
    _fails(dovetail, 2, "^follow=101: give a number from 0 to 100, in percent", dovetail.compile, model, follow=101, **arguments)
    _fails(dovetail, 2, "^memory='much': expected a size", dovetail.compile, model, memory="much", **arguments)
    _fails(dovetail, 2, "^cluster='h1': neither a file nor a built-in cluster has this name", dovetail.compile, model, cluster="h1", **arguments)
    _fails(dovetail, 6, "fit", dovetail.compile, model, memory=100, **arguments)


def test_remarks(dovetail, model):
    arguments = dict(dims={"N": 4}, mesh={"y": 2}, shard={"x": "y,_"})
    assert dovetail.compile(model, **arguments).remarks == ()
    remarks = dovetail.compile(model, **arguments, remarks=True).remarks
    assert remarks and not any("dovetail: " in remark for remark in remarks)


def test_shards(dovetail, model, x, y):
    """Entries are None, axes, or several of them; dimensions count from the end, too."""
    arguments = dict(dims={"N": 4}, mesh={"y": 2, "t": 3}, follow=100)
    program = dovetail.compile(model, shard={"y": (None, ("y", "t"))}, **arguments)
    assert [program.part("y", rank)[1] for rank in range(6)] == [slice(i, i + 1) for i in range(6)]
    program = dovetail.compile(
        model, shard={"y": ("y", "t")}, sizes={("y", -2): [3, 1], "y:-1": [1, 2, 3]}, **arguments
    )
    assert [program.part("y", rank) for rank in (0, 5)] == [(slice(0, 3), slice(0, 1)), (slice(3, 4), slice(3, 6))]
    np.testing.assert_allclose(program.run({"x": x})["y"], y, rtol=1e-5)
    shard = {"y": ("y", "t")}
    for sizes in ({("y", -2): [3, 1], ("y", 0): [3, 1]}, {"y:0": [3, 1], "y:-2": [3, 1]}):
        _fails(dovetail, 2, "dimension 0 of tensor 'y' already has sizes=", dovetail.compile, model, shard=shard, sizes=sizes, **arguments)
    _fails(dovetail, 2, "the first one is -2", dovetail.compile, model, shard=shard, sizes={("y", -3): [4]}, **arguments)


def test_bounds(dovetail):
    model = _model([helper.make_node("Neg", ["x"], ["y"])], {"x": [2, None]}, {"y": [2, None]})
    for bounds in ({("x", -1): 9}, {"x:1": 9}):
        program = dovetail.compile(model, bounds=bounds)
        assert program.inputs[0].shape == (2, 9) and program.inputs[0].lengths == (None, "x:1")
    _fails(dovetail, 2, "already has a bound", dovetail.compile, model, bounds={("x", -1): 9, "x:1": 9})
    _fails(dovetail, 2, "counted from 0, or from the end as -1", dovetail.compile, model, bounds={("x", -3): 9})


def test_external_data(dovetail, model, x, y, tmp_path):
    path = tmp_path / "example.onnx"
    # Saving changes what is saved.
    onnx.save(copy.deepcopy(model), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    outside = onnx.load(path, load_external_data=False)
    for source in (outside, path.read_bytes()):
        program = dovetail.compile(source, dims={"N": 4}, base_dir=tmp_path)
        np.testing.assert_allclose(program.run({"x": x})["y"], y, rtol=1e-5)
        assert dovetail.verify(source, {"x": x}, {"y": y}, dims={"N": 4}, base_dir=str(tmp_path))["equal"]
        assert dovetail.inspect(source, dims={"N": 4}, base_dir=tmp_path)["missing_files"] == []
        _fails(dovetail, 3, "weights.bin", dovetail.compile, source, dims={"N": 4})
    _fails(dovetail, 2, "external data is beside the file", dovetail.compile, path, dims={"N": 4}, base_dir=tmp_path)


class _Tensor:
    """Refuses to become an array, with the errors of PyTorch."""

    def __init__(self, error, **facts):
        self.error = error
        self.__dict__ |= facts

    def __array__(self, *_, **__):
        raise self.error


def test_values_that_are_no_arrays(dovetail, model):
    program = dovetail.compile(model, dims={"N": 4})
    unsupported = TypeError("Got unsupported ScalarType BFloat16")
    gradient = RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    device = type("device", (), {"type": "cuda"})()
    for value, advice in (
        (_Tensor(unsupported, dtype="torch.bfloat16"), "NumPy has no bfloat16; give another type, as x.float"),
        (_Tensor(gradient, requires_grad=True), "give it without its gradient, as x.detach"),
        (_Tensor(TypeError("can't convert cuda:0 device type tensor to numpy"), device=device), "as x.cpu"),
        (_Tensor(ValueError("no")), "give a NumPy array"),
    ):
        for use in (lambda: program.run({"x": value}), lambda: dovetail.verify(program, {"x": value}, {"y": value})):
            message = _fails(dovetail, 2, "^input 'x' is a .*_Tensor that NumPy cannot read", use)
            assert str(value.error) in message and advice in message


def test_bits_of_bfloat16(dovetail):
    ports = [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", ports[:1], ports[1:])
    program = dovetail.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))
    value = _Tensor(TypeError("Got unsupported ScalarType BFloat16"), dtype="torch.bfloat16")
    _fails(dovetail, 2, r"give its bits, as x\.view\(torch\.uint16\)\.numpy", program.run, {"x": value})


def test_words_of_errors(dovetail, model):
    """Errors name arguments, and none has the words of the command line."""
    arguments = dict(dims={"N": 4}, mesh={"y": 2})
    wrong = [
        (dict(), r"pass dims=\{'N': \.\.\.\} or shapes=\{'x': \[\?, 8\]\}"),
        (dict(dims={"M": 1}), r"^dims=\{'M': 1\}: no input has a dimension of this name"),
        (dict(dims={"N": -1}), r"^dims=\{'N': '-1'\}: expected"),
        (dict(shapes={"x": [4, 9]}), r"^shapes=\{'x': \[4, 9\]\}: dimension 1 is fixed to 8"),
        (dict(bounds={"N": 0}), r"^bounds=\{'N': 0\}: expected"),
        (dict(arguments, shard={"x": "z,_"}), r"^shard=\{'x': 'z,_'\}: the mesh has no axis 'z'"),
        (dict(arguments, shard={"x": "y"}), r"^shard= gives 1 entries for tensor 'x'"),
        (dict(arguments, shard={"q": "y"}), r"^shard= names tensor 'q'"),
        (dict(arguments, sizes={("x", 0): [2, 2]}), r"say over which axes with shard=\{'x': \.\.\.\}"),
        (dict(arguments, shard={"x": "y,_"}, sizes={("x", 0): [2, 3]}), r"^sizes='x:0': the sizes add up to 5"),
        (dict(dims={"N": 4}, shard={"x": "y,_"}), r"there is no mesh= with an axis 'y'; add mesh='y=N'"),
        (dict(arguments, feedback={"y": "x"}), r"^feedback=\{'y': 'x'\}: output 'y' is"),
        (dict(arguments, mesh={"y": 0}), r"^mesh='y=0': the size of axis 'y'"),
        (dict(arguments, arch="sm_90"), r"^arch='sm_90': target 'cpu' compiles for CPUs; pass cpu="),
        (dict(arguments, target="cuda", cpu="native"), r"runs no code on CPUs; pass arch="),
        (dict(arguments, libraries=False, target="cuda", math="tf32"), r"^math='tf32' with libraries=False: "),
    ]
    for named, pattern in wrong:
        _fails(dovetail, 2, pattern, dovetail.compile, model, **named)
        _fails(dovetail, 2, pattern, dovetail.plan, model, **named)


def test_all_options_have_words(dovetail):
    """Each option of `dovetail compile` is an argument of `compile`, or is for `options`."""
    from dovetail import _messages

    code, text, _ = call([tool("dovetail"), "compile", "--help"])
    assert code == 0
    options = set(re.findall(r"^ +(?:-\w,)? *(--[a-z-]+)", text, re.MULTILINE))
    known = {*_messages._MAPPINGS, *_messages._VALUES, *_messages._FLAGS}
    other = options - known
    # They are for experts, name files, or print.
    assert other == {
        *("--help", "--output", "--report", "--compile-to", "--dump-phases", "--print-constants", "--timing"),
        "--quiet",
        *("--search-seconds", "--halos", "--prepack", "--autotune", "--split-launches"),
    }
