# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python package: compile, run, save, load, and what goes wrong."""

import concurrent.futures
import contextlib
import copy
import gc
import json
import multiprocessing
import os
import pickle
import signal
import threading

import numpy as np
import onnx
import pytest
from harness.backend import build_dir, call, tool
from harness.cpus import cpu_up_to
from harness.sanitizers import sanitizers
from onnx import TensorProto, helper

FLOAT, BOOL = TensorProto.FLOAT, TensorProto.BOOL


@pytest.fixture(scope="module")
def model():
    """sum = a + b, larger = a > b."""
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Greater", ["a", "b"], ["larger"])]
    inputs = [helper.make_tensor_value_info(name, FLOAT, [6, 5]) for name in "ab"]
    outputs = [
        helper.make_tensor_value_info("sum", FLOAT, [6, 5]),
        helper.make_tensor_value_info("larger", BOOL, [6, 5]),
    ]
    graph = helper.make_graph(nodes, "example", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=(6, 5)).astype(np.float32) for name in "ab"}


def _check(outputs, inputs):
    np.testing.assert_array_equal(outputs["sum"], inputs["a"] + inputs["b"])
    assert outputs["larger"].dtype == bool
    np.testing.assert_array_equal(outputs["larger"], inputs["a"] > inputs["b"])


def test_compile_and_run(dovetail, model, inputs, tmp_path):
    program = dovetail.compile(
        model, mesh={"y": 2, "x": 2}, shard={"a": "y,x", "b": ["_", "y+x"]}, sizes={("a", 0): [1, 5], "b:1": "chunk"}
    )
    assert program.num_ranks == 4
    assert [(port.name, port.dtype, port.shape) for port in program.inputs] == [
        ("a", "float32", (6, 5)),
        ("b", "float32", (6, 5)),
    ]
    _check(program.run(inputs), inputs)
    # Any strides, and again.
    strided = {name: np.asfortranarray(value) for name, value in inputs.items()}
    _check(program.run(strided, threads=4), inputs)
    # Strides that are no multiples of the element's size, and elements that are not aligned.
    records = np.zeros((6, 5), dtype=[("byte", "u1"), ("value", "f4")])
    records["value"] = inputs["a"]
    _check(program.run({**inputs, "a": records["value"]}), inputs)

    program.save(tmp_path / "example.dvt")
    assert [path.name for path in tmp_path.iterdir()] == ["example.dvt"]
    loaded = dovetail.Program.load(tmp_path / "example.dvt")
    _check(loaded.run(inputs), inputs)
    # What it was loaded from stays what it was when another file takes its place.
    bytes_before = (tmp_path / "example.dvt").read_bytes()
    dovetail.compile(model).save(tmp_path / "example.dvt")
    assert (tmp_path / "example.dvt").read_bytes() != bytes_before
    loaded.save(tmp_path / "copy.dvt")
    assert (tmp_path / "copy.dvt").read_bytes() == bytes_before


def test_repr(dovetail, model):
    """All that one needs to call it."""
    program = dovetail.compile(model, mesh={"y": 2, "x": 2}, shard={"a": "y,x"})
    assert (program.model, program.target, program.mesh) == ("example", "cpu", {"y": 2, "x": 2})
    assert repr(program).splitlines() == [
        "Program of 'example' for cpu on mesh y=2,x=2",
        "  input a: float32[6, 5]",
        "  input b: float32[6, 5]",
        "  output sum: float32[6, 5]",
        "  output larger: bool[6, 5]",
    ]
    assert repr(dovetail.compile(model)).startswith("Program of 'example' for cpu on 1 rank\n")
    device = dovetail.compile(model, target="cuda")
    assert repr(device).startswith("Program of 'example' for cuda on")


@pytest.mark.parametrize("ranks, rows", [(1, [6]), (3, [4, 0, 2])])
def test_what_ranks_hold(dovetail, model, inputs, ranks, rows):
    program = dovetail.compile(model, mesh={"y": ranks}, shard={"a": "y,_", "b": "y,_"}, sizes={"a:0": rows, "b:0": rows})
    begins = np.cumsum([0, *rows])
    for rank in range(ranks):
        assert program.part("a", rank) == (slice(begins[rank], begins[rank + 1]), slice(0, 5))
        assert program.part("larger", rank)[1] == slice(0, 5)
    with dovetail.Runner(program, threads=2) as runner:
        assert runner.ranks == range(ranks)
        local = {name: runner.to_local(name, np.asfortranarray(array)) for name, array in inputs.items()}
        for _ in range(2):
            outputs = runner.run_local(local)
        _check({name: runner.from_local(name, parts) for name, parts in outputs.items()}, inputs)
        with pytest.raises(dovetail.DovetailError, match="there is no input or output 'c'; the program has 'a', 'b', "):
            program.part("c", 0)
        with pytest.raises(dovetail.DovetailError, match=f"there is no rank {ranks}; the program has {ranks}"):
            program.part("a", ranks)
        with pytest.raises(dovetail.DovetailError, match="input 'b' is not given"):
            runner.run_local({"a": local["a"]})
        if ranks > 1:
            with pytest.raises(dovetail.DovetailError, match="input 'a' is given 2 times for 3 ranks"):
                runner.run_local(local | {"a": local["a"][:2]})
            with pytest.raises(dovetail.DovetailError, match=r"'a' is float32\[2, 5\], but rank 0 holds float32\[4, 5\]"):
                runner.run_local(local | {"a": local["a"][::-1]})
            with pytest.raises(dovetail.DovetailError, match="output 'sum' is held by 3 ranks, not by 1"):
                runner.from_local("sum", outputs["sum"][:1])
        with pytest.raises(dovetail.DovetailError, match=r"'a' has the shape \[6, 5\], not \[7, 5\]"):
            runner.to_local("a", np.zeros((7, 5), np.float32))
        whole = [np.zeros((6, 5))] * ranks
        with pytest.raises(dovetail.DovetailError, match=r"of output 'sum', not float64\[6, 5\]"):
            runner.from_local("sum", whole)
    with pytest.raises(dovetail.DovetailError, match="the runner is closed"):
        runner.run_local(local)
    with pytest.raises(dovetail.DovetailError, match="there is no transport 'smoke'"):
        dovetail.Runner(program, comm="smoke")


def test_threads_stay_on_processors(dovetail, model, inputs):
    def masks():
        found = {}
        for thread in map(int, os.listdir("/proc/self/task")):
            with contextlib.suppress(ProcessLookupError):  # It has just ended.
                found[thread] = sorted(os.sched_getaffinity(thread))
        return found

    allowed = sorted(os.sched_getaffinity(0))
    program = dovetail.compile(model, mesh={"x": 2}, shard={"a": "x,_"})
    # The runs of either kind have threads of their own.
    for pin, expected in ((False, [allowed] * 2), (True, [[p] for p in (allowed * 2)[:2]])):
        before = set(masks())
        _check(program.run(inputs, threads=2, pin=pin), inputs)
        assert sorted(mask for thread, mask in masks().items() if thread not in before) == sorted(expected)
    assert sorted(os.sched_getaffinity(0)) == allowed


def _run_forked(dovetail, program, model, inputs, queue):
    for threads in (1, 2):
        try:
            program.run(inputs, threads=threads)
            queue.put("it ran")
        except dovetail.DovetailError as error:
            queue.put((error.code, str(error)))
    # Its own program runs.
    _check(dovetail.compile(model, mesh={"y": 2}).run(inputs), inputs)
    queue.put("done")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes(dovetail, model, inputs):
    """Workers of a DataLoader are forked, by default: they do not have the threads of ranks."""
    program = dovetail.compile(model, mesh={"y": 2})
    _check(program.run(inputs), inputs)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_run_forked, args=(dovetail, program, model, inputs, queue), daemon=True)
    child.start()
    for _ in range(2):
        code, message = queue.get(timeout=60)
        assert code == 2 and f"was forked from process {os.getpid()}" in message and "'spawn'" in message
    assert queue.get(timeout=60) == "done"
    child.join(60)
    assert child.exitcode == 0
    _check(program.run(inputs), inputs)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_while_a_thread_runs(dovetail, model, inputs):
    """Whatever that thread holds."""
    program = dovetail.compile(model, mesh={"y": 2})
    over = threading.Event()

    def run():
        while not over.is_set():
            program.run(inputs)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                try:
                    program.run(inputs)
                except dovetail.DovetailError as error:
                    os._exit(error.code)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    finally:
        over.set()
        thread.join()


def _run_pickled(program, inputs):
    return program.run(inputs)


def _fail(dovetail_error):
    raise dovetail_error


def test_other_processes(dovetail, model, inputs):
    """Programs and errors go to workers and come back."""
    program = dovetail.compile(model, mesh={"y": 2})
    error = dovetail.DovetailError(6, "too little")
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        _check(pool.submit(_run_pickled, program, inputs).result(timeout=120), inputs)
        with pytest.raises(dovetail.DovetailError, match="^too little$") as raised:
            pool.submit(_fail, error).result(timeout=120)
    assert raised.value.code == 6
    with pytest.raises(TypeError, match="a Runner belongs to its process"):
        pickle.dumps(dovetail.Runner(program))


def test_copies_are_the_program(dovetail, model, inputs):
    program = dovetail.compile(model, mesh={"y": 2})
    copies = copy.copy(program), copy.deepcopy(program)
    del program
    gc.collect()
    for each in copies:
        _check(each.run(inputs), inputs)


def test_threads_share_a_program(dovetail, model, inputs):
    """Each gets its own answer."""
    program = dovetail.compile(model, mesh={"y": 2}, shard={"a": "y,_"})

    def run(factor):
        scaled = {name: value * np.float32(factor) for name, value in inputs.items()}
        for _ in range(100):
            _check(program.run(scaled, threads=1 + factor % 2), scaled)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(1, 5)))


def test_bfloat16(dovetail):
    """Goes in as the package onnx makes it, or as its bits, and comes out as its bits."""
    bfloat16 = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
    values = [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "negation", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    program = dovetail.compile(model)
    x = np.array([1.5, -0.1, np.inf]).astype(bfloat16)
    for given in (x, x.view(np.uint16)):
        np.testing.assert_array_equal(program.run({"x": given})["y"], (-x).view(np.uint16))


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT8E5M2", "INT4", "UINT2"])
def test_narrow_types(dovetail, kind):
    """Go in as the package onnx makes them, or as a byte for each element, and come out as that."""
    element_type = getattr(TensorProto, kind)
    values = [helper.make_tensor_value_info(name, element_type, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    program = dovetail.compile(model)
    x = np.array([1, 0, 3]).astype(helper.tensor_dtype_to_np_dtype(element_type))
    assert program.inputs[0].dtype == x.dtype.name
    for given in (x, x.view(np.uint8)):
        np.testing.assert_array_equal(program.run({"x": given})["y"], x.view(np.uint8))
    with pytest.raises(dovetail.DovetailError, match=f"takes {x.dtype.name}"):
        program.run({"x": x.astype(np.float32)})


def test_paths_and_bytes(dovetail, model, inputs, tmp_path):
    path = tmp_path / "example.onnx"
    path.write_bytes(model.SerializeToString())
    _check(dovetail.compile(path).run(inputs), inputs)
    _check(dovetail.compile(path.read_bytes(), libraries=False, cpu=cpu_up_to("x86-64-v3"), math="f32").run(inputs), inputs)


def test_targets(dovetail, model, tmp_path):
    """What is compiled for is in the artifact."""

    def kernels(**named):
        dovetail.compile(model, target="cuda", **named).save(tmp_path / "example.dvt")
        code, report, messages = call([tool("dovetail-run"), "inspect", tmp_path / "example.dvt", "--json"])
        assert code == 0, messages
        report = json.loads(report)
        return report["target"], report["math"], {kernel["arch"] for kernel in report["kernels"]}

    assert kernels() == ("cuda", "f32", {"sm_80", "sm_90", "sm_100"})
    assert kernels(arch="sm_90", math="tf32") == ("cuda", "tf32", {"sm_90"})
    assert kernels(arch=["sm_80", "sm_90"], math="bf16") == ("cuda", "bf16", {"sm_80", "sm_90"})


def test_warnings(dovetail, model):
    annotated = onnx.ModelProto()
    annotated.CopyFrom(model)
    annotated.graph.node[0].device_configurations.add().configuration_id = "pair"
    with pytest.warns(UserWarning, match="device_configurations.*ignores"):
        dovetail.compile(annotated)


@pytest.mark.skipif("address" in sanitizers(build_dir()), reason="AddressSanitizer ends a process that asks for so much")
def test_too_large_to_compile(dovetail):
    """A constant of 128 TiB, more than a process can address."""
    value = helper.make_tensor("value", TensorProto.DOUBLE, [1], [2])
    node = helper.make_node("ConstantOfShape", ["shape"], ["y"], value=value)
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [2**40, 16])
    y = helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)
    graph = helper.make_graph([node], "large", [], [y], [shape])
    large = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(dovetail.DovetailError, match="memory") as error:
        dovetail.compile(large)
    assert error.value.code == 6


def test_errors(dovetail, model, inputs, tmp_path):
    def check(code, pattern, call, *arguments, **named):
        with pytest.raises(dovetail.DovetailError, match=pattern) as error:
            call(*arguments, **named)
        assert error.value.code == code

    check(2, "no axis 'z'", dovetail.compile, model, mesh={"y": 2}, shard={"a": "z,_"})
    for name in ("mesh", "shard", "sizes", "dims", "shapes"):
        check(2, rf"^{name}=\[4\]: give a dict such as {{", dovetail.compile, model, **{name: [4]})
    for name, key in (("shard", "a"), ("sizes", "a:0"), ("shapes", "a")):
        said = rf"^{name}={{'{key}': 2}}: give a list, such as {{'{key}': "
        check(2, said, dovetail.compile, model, mesh={"y": 2}, **{name: {key: 2}})
    check(2, "target 'cpu' computes in f32", dovetail.compile, model, math="tf32")
    check(2, "this target does not exist", dovetail.compile, model, target="tpu")
    check(2, "arch='sm_90': target 'cpu'", dovetail.compile, model, arch="sm_90")
    check(2, "arch='sm_80,sm_81': expected", dovetail.compile, model, target="cuda", arch=["sm_80", "sm_81"])
    check(2, "cpu='native': target 'cuda'", dovetail.compile, model, target="cuda", cpu="native")
    check(2, "no option '--dump-phases'", dovetail.compile, model, options=["--dump-phases", "x"])
    check(3, "absent.onnx", dovetail.compile, tmp_path / "absent.onnx")
    check(4, "model", dovetail.compile, b"no model")
    check(3, "absent.dvt", dovetail.Program.load, tmp_path / "absent.dvt")
    (tmp_path / "damaged.dvt").write_bytes(b"no artifact")
    check(7, "damaged.dvt", dovetail.Program.load, tmp_path / "damaged.dvt")

    program = dovetail.compile(model)
    check(2, "'b' is not given", program.run, {"a": inputs["a"]})
    check(2, "no input 'c'", program.run, {**inputs, "c": inputs["a"]})
    check(2, r"'a' is float64", program.run, {**inputs, "a": inputs["a"].astype(np.float64)})
    check(2, r"'a' is float32\[5, 6\]", program.run, {**inputs, "a": inputs["a"].T})
    for threads in (0, -3, 2**33):
        check(2, f"threads={threads}: give a number from 1", program.run, inputs, threads=threads)
    check(2, "autotune is for devices", program.run, inputs, autotune=True)
    check(3, "cannot write .*absent/a.dvt", program.save, tmp_path / "absent" / "a.dvt")
    with pytest.raises(TypeError, match="Program.load"):
        dovetail.Program("example.dvt")
    for wrong in (None, 5, inputs["a"]):
        with pytest.raises(TypeError, match=f"^model is {type(wrong).__name__}: give the path of an ONNX file, its bytes"):
            dovetail.compile(wrong)
        with pytest.raises(TypeError, match=f"^inputs is {type(wrong).__name__}: give a dict .* such as {{'a': array}}"):
            program.run(wrong)
    for wrong in ("--objective memory", ["--search-seconds", 5]):
        with pytest.raises(TypeError, match="^options=.*: give a sequence of str"):
            dovetail.compile(b"", options=wrong)
    with pytest.raises(TypeError, match="^threads='two': give an int"):
        program.run(inputs, threads="two")
    with pytest.raises(TypeError, match="^steps=1.5: give an int"):
        program.run(inputs, steps=1.5)
    _check(program.run(inputs), inputs)
