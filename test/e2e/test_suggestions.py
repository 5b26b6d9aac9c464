# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages about tensors, axes and dimensions that are not there name the one that was probably meant."""

import numpy as np
import onnx
import pytest
from harness.backend import USAGE, call, tool
from harness.source_names import named_model
from test_names import SPLIT, folder  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("dovetail")


def _unknown(folder, *options):
    command = [tool("dovetail"), "compile", folder / "named.onnx", "-o", folder / "none.dvt", *options]
    code, _, messages = call(command)
    assert code == USAGE, messages
    return messages


@pytest.mark.parametrize(
    "options, meant",
    [
        (["--mesh", "y=2", "--shard", "imgae=_,_,y,_"], "image"),
        (["--mesh", "y=2", "--shard", "Image=_,_,y,_"], "image"),
        (["--mesh", "y=2", "--shard", "con2d_1=_,_,y,_"], "conv2d_1"),
        (["--mesh", "y=2", "--shard", "ad=_,_,y,_"], "add"),
        (["--mesh", "rows=2", "--shard", "image=_,_,row,_"], "rows"),
        ([*SPLIT, "--sizes", "imagee:2=8,8"], "image"),
        (["--feedback", "add:imag"], "add:image"),
        (["--shape", "imag=1,3,16,12"], "image"),
    ],
)
def test_did_you_mean(folder, options, meant):
    assert f"; did you mean '{meant}'?" in _unknown(folder, *options)


@pytest.mark.parametrize("node", ["node_conv2d", "body.0", "body.0 (net.py:8)"])
def test_a_node_is_no_tensor(folder, node):
    messages = _unknown(folder, "--mesh", "y=2", "--shard", f"{node}=_,_,y,_")
    assert f"'{node}' is a node: did you mean its result 'conv2d'?" in messages


def test_nothing_is_near(folder):
    assert "did you mean" not in _unknown(folder, "--mesh", "y=2", "--shard", "weights_of_something=_,_,y,_")
    assert "did you mean" not in _unknown(folder, "--mesh", "y=2", "--shard", "image=_,_,columns,_")


@pytest.mark.parametrize(
    "options, meant",
    [
        (["--dim", "hieght=16"], "height"),
        (["--dim", "HEIGHT=16"], "height"),
        (["--bound", "heigth=16"], "height"),
        (["--bound", "imag:3=16", "--dim", "height=16"], "image:3"),
        (["--shape", "iamge=1,3,16,12"], "image"),
    ],
)
def test_did_you_mean_a_dimension(tmp_path, options, meant):
    model = named_model()
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    model.graph.output[0].type.tensor_type.shape.dim[2].dim_param = "height"
    onnx.save(model, tmp_path / "named.onnx")
    assert f"; did you mean '{meant}'?" in _unknown(tmp_path, *options)


def test_did_you_mean_of_runs(dovetail, folder):  # noqa: F811
    base = [tool("dovetail-run"), "run", folder / "named.dvt"]
    code, _, messages = call([*base, "--input", "imgae=random:0"])
    assert code == USAGE and "; did you mean 'image'?" in messages
    code, _, messages = call([*base, "--input", "image=random:0", "--output", f"adds={folder}/out.npy"])
    assert code == USAGE and "; did you mean 'add'?" in messages
    with pytest.raises(dovetail.DovetailError, match="did you mean 'image'"):
        dovetail.Program.load(folder / "named.dvt").run({"imgae": np.zeros((1, 3, 16, 12), np.float32)})
