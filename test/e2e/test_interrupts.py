# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C while the libraries work: calls from Python end early, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import onnx
import pytest
from harness.backend import ROOT, InProcessBackend, build_dir, fastest_backend, tool
from harness.sanitizers import sanitizers, without_preload
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.skipif(bool(sanitizers(build_dir())), reason="times are those of the release build")

#: Seconds until a call that was interrupted has returned. The calls below take many times as long.
MOST = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupts")

    def save(name, nodes, ports, weights=()):
        tensors = [helper.make_tensor_value_info(port, TensorProto.FLOAT, shape) for port, shape in ports.items()]
        graph = helper.make_graph(nodes, name, tensors[:1], tensors[1:], list(weights))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, folder / f"{name}.onnx")

    # No two kernels are alike: each has an extent of its own. One model takes minutes, the other one seconds.
    axis = numpy_helper.from_array(np.array(0), "axis")
    for name, count in (("slow", 1500), ("middle", 60)):
        nodes = []
        for number in range(count):
            nodes.append(helper.make_node("Concat", [f"t{number}", "x"], [f"c{number}"], axis=0))
            nodes.append(helper.make_node("Softplus", [f"c{number}"], [f"s{number}"]))
            nodes.append(helper.make_node("CumSum", [f"s{number}", "axis"], [f"t{number + 1}"]))
        nodes[0].input[0] = "x"
        save(name, nodes, {"x": [2, 3], f"t{count}": [2 * count + 2, 3]}, [axis])
    # A product takes a good part of a second.
    size = 3000
    weight = numpy_helper.from_array(np.eye(size, dtype=np.float32), "w")
    nodes = [helper.make_node("MatMul", [f"p{number}", "w"], [f"p{number + 1}"]) for number in range(100)]
    save("long", nodes, {"p0": [size, size], "p100": [size, size]}, [weight])
    save("quick", [helper.make_node("Add", ["x", "x"], ["y"])], {"x": [4, 3], "y": [4, 3]})
    return folder


def _start(folder, code, tmp_path):
    """Starts Python on `code`, and waits until that prints a line."""
    head = """
        import numpy as np, signal, sys, threading, warnings
        import dovetail
        big = np.ones((3000, 3000), np.float32)

        def begin():
            print("begun", flush=True)
    """
    environment = {
        **without_preload(), "PYTHONPATH": str(ROOT / "python"), "DOVETAIL_LIBRARY_DIR": str(build_dir() / "lib"),
        "TMPDIR": str(tmp_path),
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(code)],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "begun\n", process.stderr.read()
    return process


def _interrupt(process, wait):
    """Sends SIGINT after `wait` seconds; returns the exit code, both outputs, and the seconds since."""
    time.sleep(wait)
    assert process.poll() is None, process.communicate()
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, messages = process.communicate(timeout=120)
    return process.returncode, output, messages, time.monotonic() - begin


CALLS = {
    "compile": "begin(); dovetail.compile('slow.onnx')",
    "plan": "begin(); dovetail.plan('slow.onnx', mesh={'y': 4})",
    "run": "p = dovetail.compile('long.onnx', mesh={'y': 2}); begin(); p.run({'p0': big})",
    "runner": "r = dovetail.Runner(dovetail.compile('long.onnx')); begin(); r.run_local({'p0': big})",
    "verify": "begin(); dovetail.verify('long.onnx', mesh={'y': 2}, shard={'p0': 'y,_'})",
}


@pytest.fixture(scope="module", autouse=True)
def libraries():
    assert isinstance(fastest_backend(), InProcessBackend), "the shared libraries are not built"


@pytest.mark.parametrize("wait", [0.3, 1.5])
@pytest.mark.parametrize("call", CALLS)
def test_calls_end_early(folder, tmp_path, call, wait):
    code, output, messages, seconds = _interrupt(_start(folder, CALLS[call], tmp_path), wait)
    assert code == -signal.SIGINT and output == "", messages
    assert messages.rstrip().endswith("KeyboardInterrupt") and "DovetailError" not in messages, messages
    assert seconds < MOST
    assert list(tmp_path.iterdir()) == []


def test_process_goes_on(folder, tmp_path):
    """After Ctrl-C all can be called again, programs that were interrupted included, and be interrupted again."""
    code = """
        p = dovetail.compile("long.onnx", mesh={"y": 2}, shard={"p0": "y,_"})
        begin()
        for call in (lambda: dovetail.compile("slow.onnx"), lambda: p.run({"p0": big}, threads=2)):
            try:
                call()
            except KeyboardInterrupt:
                print("interrupted", flush=True)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        np.testing.assert_array_equal(dovetail.compile("quick.onnx").run({"x": x})["y"], x + x)
        try:
            p.run({"p0": big}, threads=2)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = _start(folder, code, tmp_path)
    for wait in (0.5, 0.5):
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n", process.stderr.read()
    code, output, messages, seconds = _interrupt(process, 1.5)
    assert code == 0 and output == "interrupted\n", messages
    assert seconds < MOST


def test_handlers_of_others(folder, tmp_path):
    """A handler that does not raise wants the call to go on."""
    code = """
        signal.signal(signal.SIGINT, lambda *_: print("noted", flush=True))
        begin()
        print(len(dovetail.compile("middle.onnx")._bytes()) > 0)
    """
    code, output, messages, _ = _interrupt(_start(folder, code, tmp_path), 0.3)
    assert code == 0 and output == "noted\nTrue\n", messages


def test_other_threads_go_on(folder, tmp_path):
    """Python interrupts its main thread alone."""
    code = """
        results = []
        thread = threading.Thread(target=lambda: results.append(dovetail.compile("middle.onnx")))
        thread.start()
        begin()
        try:
            dovetail.compile("slow.onnx")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        thread.join()
        print(len(results))
    """
    code, output, messages, _ = _interrupt(_start(folder, code, tmp_path), 0.5)
    assert code == 0 and output == "interrupted\n1\n", messages


@pytest.mark.parametrize("wait", [0.05, 0.5, 2])
def test_command_line(folder, tmp_path, wait):
    """SIGINT ends the program at once."""
    command = [tool("dovetail"), "compile", folder / "slow.onnx", "-o", tmp_path / "slow.dvt"]
    environment = {**without_preload(), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(list(map(str, command)), env=environment, stderr=subprocess.PIPE, text=True)
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=10)
    assert process.returncode == -signal.SIGINT and messages == ""
    assert os.listdir(tmp_path) == []
