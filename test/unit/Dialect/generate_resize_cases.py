"""Writes ResizeCases.inc: random ONNX Resize operators and what ONNX Runtime computes for them."""

import random
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
               "tf_crop_and_resize", "tf_half_pixel_for_nn"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def operand(shape):
    """The values that the test gives to the operand, too."""
    return ((np.arange(np.prod(shape)) * 37 % 101) / 4 - 10).astype(np.float32).reshape(shape)


def random_case(rng, mode, coordinates):
    spatial = 2 if mode == "cubic" else rng.choice([1, 2, 3] if mode == "nearest" else [2, 3])
    extents = [rng.randint(1, [7, 4, 2][spatial - 1]) for _ in range(spatial)]
    shape = [1] * (2 if mode != "nearest" else rng.choice([0, 2])) + extents
    outer = len(shape) - spatial
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": rng.choice(NEAREST),
                  "cubic_coeff_a": rng.choice([-0.5, -0.75]), "extrapolation_value": 7.5,
                  "exclude_outside": rng.randint(0, 1) if mode == "cubic" else 0}
    inputs = {}
    if rng.random() < 0.5:
        sizes = [1] * outer + [rng.randint(1, [11, 5, 3][spatial - 1]) for _ in extents]
        scales = [np.float32(b) / np.float32(a) for a, b in zip(shape, sizes)]
        inputs["sizes"] = np.array(sizes, np.int64)
    else:
        scales = [np.float32(1)] * outer + [np.float32(rng.choice([0.4, 0.5, 0.6, 1.0, 1.3, 1.5, 2.0, 2.7]))
                                            for _ in extents]
        scales = [s if int(s * np.float32(e)) else np.float32(1) for s, e in zip(scales, shape)]
        sizes = [int(s * np.float32(e)) for s, e in zip(scales, shape)]
        inputs["scales"] = np.array(scales, np.float32)
    roi = [0.0] * outer + [rng.choice([-0.25, 0.0, 0.3]) for _ in extents]
    roi += [1.0] * outer + [rng.choice([0.6, 1.0, 1.25]) for _ in extents]
    if coordinates == "tf_crop_and_resize":
        inputs["roi"] = np.array(roi, np.float32)
    return shape, sizes, scales, roi, attributes, inputs


def run(shape, attributes, inputs):
    feeds = {"x": operand(shape), **inputs}
    names = ["x"] + [name if name in inputs else "" for name in ("roi", "scales", "sizes")]
    types = {"x": TensorProto.FLOAT, "roi": TensorProto.FLOAT, "scales": TensorProto.FLOAT, "sizes": TensorProto.INT64}
    node = helper.make_node("Resize", names, ["y"], **attributes)
    graph = helper.make_graph(
        [node], "resize", [helper.make_tensor_value_info(n, types[n], v.shape) for n, v in feeds.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def braces(values):
    return "{" + ", ".join(repr(float(v)) if isinstance(v, (float, np.floating)) else str(v) for v in values) + "}"


def main():
    rng = random.Random(1)
    with open(sys.argv[1], "w") as out:
        out.write("// Written by generate_resize_cases.py from ONNX Runtime " + onnxruntime.__version__ + ".\n")
        for mode in ["nearest", "linear", "cubic"]:
            for coordinates in COORDINATES:
                for _ in range(12 if mode == "nearest" else 3):
                    shape, sizes, scales, roi, attributes, inputs = random_case(rng, mode, coordinates)
                    result = run(shape, attributes, inputs)
                    assert list(result.shape) == sizes, (result.shape, sizes)
                    text = ", ".join([
                        f'"{mode}"', f'"{coordinates}"', f'"{attributes["nearest_mode"]}"', braces(shape),
                        braces(sizes), braces(scales), braces(roi), repr(attributes["cubic_coeff_a"]),
                        "true" if attributes["exclude_outside"] else "false", braces(result.ravel())])
                    out.write("{" + text + "},\n")


if __name__ == "__main__":
    main()
