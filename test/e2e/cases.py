# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single-operator cases: random ones, made from a seed, and fixed ones that others get wrong."""

import dataclasses

import numpy as np
import onnx

from contributed import GENERATORS as CONTRIBUTED
from harness.oracle import expected_outputs
from harness.partition import Partition, random_partition
from ops import GENERATORS, WEIGHTS, Draft

TOLERANCE = 1e-4
#: Inputs are about one: a result that nearly cancels may be off by some of their last bits.
ABSOLUTE_TOLERANCE = 1e-6


def subject(nodes):
    """The node that a case is about: the last one, or the last one of an operator that ONNX does not have."""
    return next((node for node in reversed(nodes) if node.domain), nodes[-1])


@dataclasses.dataclass
class Case:
    """A model, its inputs, a partition, and how its outputs are judged."""

    name: str
    model: onnx.ModelProto
    inputs: dict
    partition: Partition | None
    tolerance: float
    libraries: bool = True
    prefer_reference: bool = False
    #: As in `Draft`.
    known: dict = dataclasses.field(default_factory=dict)
    unrounded: dict = dataclasses.field(default_factory=dict)

    def expected(self):
        if self.known:
            assert set(self.known) == {o.name for o in self.model.graph.output}
            return dict(self.known)
        return expected_outputs(self.model, self.inputs, self.prefer_reference)

    def __str__(self):
        node = subject(self.model.graph.node)
        shapes = ", ".join(f"{n}:{v.dtype}{list(v.shape)}" for n, v in self.inputs.items())
        attributes = ", ".join(
            f"{a.name}={onnx.helper.get_attribute_value(a)}"
            for a in node.attribute
            if a.type not in (onnx.AttributeProto.TENSOR,)
        )
        libraries = "" if self.libraries else " --no-libraries"
        opset = self.model.opset_import[0].version
        return (
            f"{self.name}: {node.op_type}({attributes}) opset {opset}, {shapes}, "
            f"{self.partition}{libraries}"
        )


def _round():
    """Operators in the order in which seeds take them: weighted, well mixed, the same every time."""
    ops = [op for op in sorted(GENERATORS) for _ in range(WEIGHTS[op])]
    return [ops[i] for i in np.random.default_rng(0).permutation(len(ops))]


ROUND = _round()


def quick_seeds(first):
    """Of the seeds from `first` on, the first one of each family of operators, in which `random_case` has their turns."""
    families = {}
    for seed in range(first, first + len(ROUND)):
        families.setdefault(GENERATORS[ROUND[seed % len(ROUND)]].__module__, seed)
    return set(families.values())


def random_draft(seed, op=None):
    """The model and the inputs of `random_case`."""
    name = op or ROUND[seed % len(ROUND)]
    draft = Draft(np.random.default_rng([seed, 0 if op is None else 1]))
    (GENERATORS | CONTRIBUTED)[name](draft, name)
    return draft


def random_case(seed, op=None):
    """The case of `seed`; `op` restricts it to one operator (which makes another case of the seed)."""
    draft = random_draft(seed, op)
    rng = draft.rng
    shapes = {n: v.shape for n, v in draft.inputs.items()}
    model = draft.model()
    case = Case(
        name=f"seed {seed}" + (f" --op {op}" if op else ""),
        model=model,
        inputs=draft.inputs,
        partition=None,
        tolerance=0.0 if draft.exact else draft.tolerance or TOLERANCE,
        libraries=bool(rng.random() < 0.5),
        prefer_reference=draft.prefer_reference,
        known=draft.expected,
        unrounded=draft.unrounded,
    )
    # ONNX's shape inference is wrong for some transposed convolutions: outputs are as they are computed.
    outputs = {n: v.shape for n, v in case.expected().items()} | draft.bounded
    return dataclasses.replace(case, partition=random_partition(rng, shapes, outputs))


# Fixed cases: each is silently wrong in some other system that shards unevenly.


def _cut(name, draft, sizes, dim, exact=False, mesh=None, tensor="x"):
    """The case of a draft, whose tensor `tensor`, of the rank of its input x, is cut in dimension `dim` into `sizes`."""
    mesh = mesh or {"y": len(sizes)}
    partition = Partition(mesh).split(tensor, draft.inputs["x"].ndim, dim, "+".join(mesh), sizes)
    return Case(name, draft.model(), draft.inputs, partition, 0.0 if exact else TOLERANCE)


def _chain(name, nodes, shape, sizes, dim=2, exact=False, opset=17, mesh=None, declares=False, dtype=np.float32):
    """Operators, each applied to the result of the one before, on an input of `shape` whose dimension `dim` is cut
    into `sizes`. A node is an operator, its constant operands, and its attributes.

    `declares` says that ONNX infers no shape for the result, which is that of the input.
    """
    draft = Draft(np.random.default_rng(0))
    draft.opset = opset
    value = draft.input(draft.values(shape, dtype), "x")
    for op, operands, attributes in nodes:
        operands = [draft.constant(np.asarray(o)) for o in operands]
        value = draft.node(op, value, *operands, final=op is nodes[-1][0], **attributes)
    if declares:
        draft.declare(value, draft.inputs["x"])
    return _cut(name, draft, sizes, dim, exact, mesh)


def _single(name, op, shape, sizes, *operands, dim=2, exact=False, opset=17, mesh=None, declares=False, **attributes):
    """One operator, as in `_chain`."""
    return _chain(name, [(op, operands, attributes)], shape, sizes, dim, exact, opset, mesh, declares)


def _weights(*shape):
    return np.random.default_rng(1).uniform(-0.5, 0.5, shape).astype(np.float32)


def _strided_windows():
    """Kernel, stride and pad, and row counts that do not divide by the stride."""
    for kernel, stride, pad, rows in (
        (3, 2, 1, (15, 17)),
        (3, 2, 1, (9, 9)),
        (2, 2, 0, (17, 16)),
        (7, 2, 3, (9, 9, 9, 5)),
        (1, 1, 1, (9, 7)),
        (3, 1, 1, (9, 0, 8)),
        (7, 1, 3, (2, 1, 1, 9)),
        (5, 1, 4, (1, 1, 1, 1)),
        (4, 3, 2, (0, 7, 0, 8)),
    ):
        shape = [1, 4, sum(rows), 11]
        window = dict(kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
        label = f"k{kernel}s{stride}p{pad}-{'+'.join(map(str, rows))}"
        weights = _weights(6, 4, kernel, kernel)
        yield _single(f"conv-{label}", "Conv", shape, rows, weights, _weights(6), **window)
        if pad < kernel:
            yield _single(f"maxpool-{label}", "MaxPool", shape, rows, exact=True, **window)
            for include in (0, 1):
                yield _single(
                    f"averagepool-{label}-include{include}",
                    "AveragePool",
                    shape,
                    rows,
                    count_include_pad=include,
                    **window,
                )


def _transposed():
    weights = _weights(4, 5, 3, 3)
    for label, attributes in {
        "output_padding": dict(strides=[2, 2], pads=[1] * 4, output_padding=[1, 1]),
        "output_shape": dict(strides=[2, 2], output_shape=[34, 20]),
        "dilated": dict(strides=[3, 2], dilations=[2, 2], pads=[2, 1, 1, 0]),
        "same_upper": dict(strides=[2, 2], auto_pad="SAME_UPPER"),
    }.items():
        for rows in ((9, 8), (1, 0, 13, 3)):
            yield _single(
                f"convtranspose-{label}-{'+'.join(map(str, rows))}",
                "ConvTranspose",
                [1, 4, sum(rows), 10],
                rows,
                weights,
                **attributes,
            )


def _resizes():
    none = np.zeros(0, np.float32)
    for mode in ("align_corners", "half_pixel", "pytorch_half_pixel", "asymmetric"):
        for rows in ((7, 10), (1, 0, 9, 3)):
            height = sum(rows)
            yield _single(
                f"bilinear-{mode}-{'+'.join(map(str, rows))}",
                "Resize",
                [1, 3, height, 11],
                rows,
                none,
                none,
                np.array([1, 3, 2 * height + 1, 25], np.int64),
                mode="linear",
                coordinate_transformation_mode=mode,
            )


def _reshapes():
    for rows in ((5, 7), (1, 0, 8, 3)):
        label = "+".join(map(str, rows))
        height = sum(rows)
        chw = [2, 3, height, 4]
        yield _single(
            f"reshape-merges-chw-{label}",
            "Reshape",
            chw,
            rows,
            np.array([2, -1], np.int64),
            exact=True,
        )
        yield _single(f"flatten-{label}", "Flatten", chw, rows, exact=True, axis=1)
        yield _single(
            f"reshape-splits-{label}",
            "Reshape",
            [2, 3, height],
            rows,
            np.array([6, height // 2, 2], np.int64),
            exact=True,
        )


def _others():
    # ONNX's formula gives these no window at all.
    for op, stride, ceil in (("MaxPool", 1, 0), ("MaxPool", 2, 1), ("AveragePool", 2, 0)):
        window = dict(kernel_shape=[3, 2], dilations=[3, 1], strides=[stride, 1], ceil_mode=ceil)
        yield _single(f"no-window-{op}-{stride}-{ceil}", op, [1, 3, 7 - stride, 5], (2, 1, 2), dim=3, opset=19, **window)
    yield _single("softmax-split", "Softmax", [2, 3, 17], (8, 0, 9), axis=-1)
    yield _single("instancenorm-split", "InstanceNormalization", [2, 3, 17, 5], (3, 9, 5), _weights(3), _weights(3))
    yield _single(
        "groupnorm-of-rows", "GroupNormalization", [4, 6], (4, 2), _weights(6), _weights(6),
        dim=1, opset=21, declares=True, num_groups=2,
    )  # fmt: skip
    yield _single("matmul-contracted", "MatMul", [2, 5, 17], (8, 0, 9), _weights(17, 6))
    yield _single(
        "reducesum-split", "ReduceSum", [2, 5, 17], (1, 16), np.array([2], np.int64), keepdims=0
    )
    yield _single("transpose", "Transpose", [2, 5, 17], (1, 0, 16), exact=True, perm=[2, 0, 1])
    yield _single(
        "pad-wrap", "Pad", [1, 2, 9], (2, 7), np.array([0, 0, 3, 0, 0, 4], np.int64),
        opset=19, exact=True, mode="wrap",
    )  # fmt: skip
    yield _single(
        "pad-reflect", "Pad", [1, 2, 9], (2, 0, 7), np.array([0, 0, 5, 0, 0, 6], np.int64),
        exact=True, mode="reflect",
    )  # fmt: skip
    yield _single(
        "slice-reversed", "Slice", [1, 2, 13], (4, 9),
        *(np.array([v], np.int64) for v in (-1, -(2**63), 2, -3)), exact=True,
    )  # fmt: skip
    yield _single(
        "conv-over-two-axes", "Conv", [1, 4, 19, 7], (3, 0, 9, 7), _weights(6, 4, 3, 3),
        mesh={"y": 2, "x": 2}, pads=[1] * 4, strides=[2, 1],
    )  # fmt: skip


def _columns():
    """Reductions of dimensions that are not innermost in memory: channels last between convolutions."""
    for rows in ((67,), (40, 27), (3, 0, 64)):
        label, height = "+".join(map(str, rows)), sum(rows)
        conv = ("Conv", (_weights(40, 40, 1, 1),), {})
        image, table = [2, 40, height, 5], [3, 90, height]
        norm = ("InstanceNormalization", (_weights(40), _weights(40)), {})
        group = ("GroupNormalization", (_weights(40), _weights(40)), {"num_groups": 8})
        yield _chain(f"channels-mean-{label}", [conv, ("GlobalAveragePool", (), {})], image, rows)
        yield _chain(f"channels-max-{label}", [conv, ("GlobalMaxPool", (), {})], image, rows)
        yield _chain(f"channels-norm-{label}", [conv, norm], image, rows)
        yield _chain(f"channels-groups-{label}", [conv, group], image, rows, opset=21, declares=True)
        yield _single(f"columns-sum-{label}", "ReduceSum", table, rows, np.array([1], np.int64))
        yield _single(f"columns-max-{label}", "ReduceMax", table, rows, exact=True, axes=[1])
        yield _single(f"columns-softmax-{label}", "Softmax", table, rows, axis=1)
        yield _single(f"columns-few-{label}", "ReduceMin", [height, 9], rows, dim=0, exact=True, axes=[0])


def _tiles():
    """Results whose innermost dimension is not that of what they are made of, with borders inside of tiles."""
    for rows in ((70,), (33, 37), (1, 0, 69)):
        label, extent = "+".join(map(str, rows)), sum(rows)
        for dtype in (np.bool_, np.uint8, np.float16, np.float32, np.int64, np.float64):
            transpose = ("Transpose", (), {"perm": [2, 0, 1]})
            name = f"tiles-{np.dtype(dtype).name}-{label}"
            yield _chain(name, [transpose], [3, 40, extent], rows, exact=True, dtype=dtype)
        for dim, shape in enumerate(([extent, 2, 3, 50], [2, extent, 3, 50], [2, 40, extent, 17], [2, 40, 3, extent])):
            last = ("Transpose", (), {"perm": [0, 2, 3, 1]})
            yield _chain(f"tiles-last-{dim}-{label}", [last], shape, rows, dim=dim, exact=True)
        swap = ("Transpose", (), {"perm": [0, 2, 1]})
        swapped = [2, extent, 40]
        add, scale = ("Add", (_weights(*swapped),), {}), ("Mul", (_weights(1, extent, 1),), {})
        yield _chain(f"tiles-mixed-{label}", [swap, scale, ("Sigmoid", (), {}), add], [2, 40, extent], rows)
        draft = Draft(np.random.default_rng(0))
        x = draft.node("Transpose", draft.input(draft.values([2, 40, extent]), "x"), final=False, perm=[0, 2, 1])
        moved = draft.node("Add", x, draft.constant(_weights(*swapped)), final=False)
        draft.node("Mul", moved, draft.node("Tanh", x, final=False))
        yield _cut(f"tiles-two-{label}", draft, rows, 2)
        for axis, shape in ((1, [2, 9, 40]), (2, [2, extent, 70])):
            draft = Draft(np.random.default_rng(0))
            x = draft.node("Transpose", draft.input(draft.values([2, 40, extent]), "x"), final=False, perm=[0, 2, 1])
            draft.node("Concat", x, draft.constant(_weights(*shape)), axis=axis)
            yield _cut(f"tiles-concat-{axis}-{label}", draft, rows, 2, exact=True)
        yield _chain(f"tiles-after-{label}", [("Relu", (), {}), swap], [2, 40, extent], rows, exact=True)


def _splits():
    """Few results of very many terms."""
    for rows in ((170,), (90, 80), (1, 0, 169)):
        label, height = "+".join(map(str, rows)), sum(rows)
        image, all_axes = [1, 2, height, 130], np.array([1, 2, 3], np.int64)
        yield _single(f"split-sum-{label}", "ReduceSum", image, rows, all_axes)
        yield _single(f"split-flat-{label}", "ReduceMean", image, rows, axes=[1, 2, 3], keepdims=0)
        for dtype in (np.float16, np.int64, np.float64):
            name = f"split-{np.dtype(dtype).name}-{label}"
            yield _chain(f"{name}-max", [("ReduceMax", (), {"axes": [2, 3]})], image, rows, exact=True, dtype=dtype)
            # Ranks round their parts to f16 before they are added.
            if dtype != np.float16 or len(rows) == 1:
                yield _chain(f"{name}-sum", [("ReduceSum", (all_axes[1:],), {})], image, rows, dtype=dtype)
        square = [("Abs", (), {}), ("Sqrt", (), {}), ("ReduceMin", (), {"axes": [2, 3]})]
        yield _chain(f"split-min-{label}", square, image, rows)
        # Parts differ in their means.
        slope = ("Add", (np.linspace(0, 20, height, dtype=np.float32).reshape(height, 1),), {})
        norm = ("InstanceNormalization", (_weights(2), _weights(2)), {})
        yield _chain(f"split-norm-{label}", [slope, norm], image, rows)
        yield _single(f"split-columns-{label}", "ReduceSum", [1, height, 50, 12], rows, all_axes[:2], dim=1)
        yield _single(f"split-cut-columns-{label}", "ReduceMax", [40, 120, height], rows, exact=True, axes=[0, 1])


def _products():
    """Matrix products of several tiles, with borders inside of tiles and a rest of terms."""
    for rows in ((70,), (33, 37), (1, 0, 69)):
        label, extent = "+".join(map(str, rows)), sum(rows)
        yield _single(f"product-rows-{label}", "MatMul", [2, extent, 37], rows, _weights(37, 65), dim=1)
        yield _single(f"product-terms-{label}", "MatMul", [40, extent], rows, _weights(extent, 130), dim=1)
        yield _single(f"product-batch-{label}", "MatMul", [3, 1, 50, extent], rows, _weights(2, extent, 40), dim=3)
        yield _single(f"product-transposed-{label}", "Gemm", [48, extent], rows, _weights(33, 48), dim=1, transA=1, transB=1)
        # Convolutions of one tap: the last one has padding, where there is nothing to multiply.
        image, taps = [1, 37, extent, 50], _weights(65, 37, 1, 1)
        yield _single(f"product-taps-{label}", "Conv", image, rows, taps)
        yield _single(f"product-taps-cut-{label}", "Conv", [2, 37, 9, extent], rows, taps, dim=3)
        yield _single(f"product-taps-padded-{label}", "Conv", image, rows, taps, pads=[0, 0, 2, 3])
        for dtype in (np.float16, np.float32, np.float64, np.int64):
            name, terms = f"product-shared-{np.dtype(dtype).name}-{label}", 24 * extent
            shared = [("MatMul", (np.round(4 * _weights(terms, 40)).astype(dtype),), {})]
            sizes = [24 * each for each in rows]
            # Ranks round their parts to f16 before they are added.
            if dtype != np.float16 or len(rows) == 1:
                yield _chain(name, shared, [1, 18, terms], sizes, dtype=dtype, exact=dtype == np.int64)
        double = [("MatMul", (_weights(32, 96).astype(np.float64),), {})]
        yield _chain(f"product-double-{label}", double, [extent, 32], rows, dim=0, dtype=np.float64)
        half = [("MatMul", (_weights(24, 40).astype(np.float16),), {})]
        yield _chain(f"product-half-{label}", half, [extent, 24], rows, dim=0, dtype=np.float16)
        whole = [("MatMul", (np.arange(24 * 40).reshape(24, 40) % 7 - 3,), {})]
        yield _chain(f"product-whole-{label}", whole, [extent, 24], rows, dim=0, exact=True, dtype=np.int64)


def _large_tiles():
    """So many elements that tiles of 128 by 64 and of 128 by 128 fill a large device."""
    for rows in ((1999,), (1200, 799)):
        label = "+".join(map(str, rows))
        yield _single(f"product-large-{label}", "MatMul", [sum(rows), 33], rows, _weights(33, 2100), dim=0)
    for rows in ((130,), (50, 80)):
        label, weights = "+".join(map(str, rows)), (_weights(64, 16, 3, 3), _weights(64))
        yield _single(f"conv-large-{label}", "Conv", [1, 16, sum(rows), 260], rows, *weights, pads=[1] * 4)


def _convolutions():
    """Convolutions of several tiles, with borders and groups inside of tiles, and a rest of terms."""
    for rows in ((35,), (17, 18), (1, 0, 34)):
        label, extent = "+".join(map(str, rows)), sum(rows)

        def conv(name, shape, weights, op="Conv", dim=2, **attributes):
            return _single(f"conv-tiles-{name}-{label}", op, shape, rows, _weights(*weights), dim=dim, **attributes)

        yield conv("padded", [1, 20, extent, 13], (40, 20, 3, 3), pads=[1] * 4)
        # 32 channels fill the rows of shared memory, 37 do not.
        yield conv("near", [2, 32, extent, 7], (24, 32, 3, 3), pads=[1, 2, 0, 1])
        yield conv("strides", [2, 37, extent, 12], (70, 37, 3, 2), strides=[2, 3], pads=[1, 0, 1, 1])
        yield conv("dilations", [1, 16, 11, extent], (20, 16, 3, 3), dim=3, dilations=[2, 3], pads=[2, 3, 1, 4])
        yield conv("wide", [1, 16, extent, 5], (17, 16, 7, 5), pads=[6, 4, 5, 3])
        yield conv("first", [1, 3, extent, 20], (32, 3, 7, 7), strides=[2, 2], pads=[3] * 4)
        yield conv("line", [2, 24, extent], (33, 24, 5), pads=[2, 2])
        yield conv("space", [1, 16, extent, 3, 4], (18, 16, 3, 2, 3), pads=[1, 0, 1, 1, 1, 1])
        yield conv("batch", [extent, 16, 4, 3], (16, 16, 3, 3), dim=0, pads=[1] * 4)
        yield conv("terms", [1, extent, 8, 7], (30, extent, 3, 3), dim=1, pads=[1] * 4)
        yield conv("groups", [1, 40, extent, 5], (48, 20, 3, 3), group=2, pads=[1] * 4)
        yield conv("cut-groups", [1, extent, 6, 6], (85, 7, 3, 3), dim=1, group=5, pads=[1] * 4)
        yield conv("many", [1, 16, extent, 120], (18, 16, 2, 1), pads=[1, 0, 0, 0])
        # More is done to each element, before it is stored or when parts are added.
        for channels in (20, 96):
            operands = _weights(36, channels, 3, 3), _weights(36)
            finish = [("Mul", (_weights(36, 1, 1),), {}), ("Add", (_weights(extent, 3),), {}), ("Relu", (), {})]
            chain = [("Conv", operands, {"pads": [1] * 4}), *finish]
            yield _chain(f"conv-tiles-finish-{channels}-{label}", chain, [1, channels, extent, 3], rows)
        # Blocks share the terms of a tile.
        yield conv("shared", [1, 96, extent, 3], (40, 96, 3, 3), pads=[1] * 4)
        shared, weights = f"conv-tiles-shared-terms-{label}", _weights(24, 8 * extent, 1, 3)
        sizes = [8 * each for each in rows]
        yield _single(shared, "Conv", [1, 8 * extent, 6, 5], sizes, weights, dim=1, pads=[0, 1, 0, 1])
        yield conv("shared-groups", [1, 96, extent, 4], (34, 48, 3, 3), group=2, pads=[2, 0, 1, 1])
        yield conv("shared-transposed", [1, 96, extent, 3], (96, 20, 3, 3), "ConvTranspose", strides=[2, 1])
        # The result is cut inside of groups.
        for op, weights in {"Conv": (2 * extent, 24, 3, 2), "ConvTranspose": (48, extent, 3, 2)}.items():
            draft = Draft(np.random.default_rng(0))
            operands = draft.input(draft.values([1, 48, 9, 5]), "x"), draft.constant(_weights(*weights))
            result = draft.node(op, *operands, group=2, pads=[1, 0, 1, 1])
            sizes = [*rows[:-1], rows[-1] + extent]
            yield _cut(f"conv-tiles-{op}-inside-groups-{label}", draft, sizes, 1, tensor=result)
        for dtype in (np.float16, np.float64):
            # Sums of small whole numbers are exact, but for 3 x 3 taps in f32, by Winograd's algorithm.
            for width in (2, 3):
                weights = np.round(4 * _weights(24, 16, 3, width)).astype(dtype)
                chain = [("Round", (), {}), ("Conv", (weights,), {"pads": [1, 0, 1, 2]})]
                name = f"conv-tiles-{np.dtype(dtype).name}-3x{width}-{label}"
                exact = width == 2 or dtype == np.float64
                yield _chain(name, chain, [1, 16, extent, 9], rows, exact=exact, dtype=dtype)
        # Equal signs: with one accumulator for all terms, errors of sums add up to more than the tolerance.
        draft = Draft(np.random.default_rng(0))
        image = draft.input(np.full([1, 128, extent, 17], 0.1, np.float32), "x")
        draft.node("Conv", image, draft.constant(np.ones([16, 128, 17, 17], np.float32)))
        # That is so of oneDNN's convolutions, on some CPUs with AVX-512 too: the case is for generated kernels.
        yield dataclasses.replace(_cut(f"conv-tiles-long-{label}", draft, rows, 2), libraries=False)
        yield conv("transposed", [1, 24, extent, 6], (24, 18, 3, 3), "ConvTranspose", strides=[2, 2], pads=[1] * 4)
        # Elements of a tile have taps in common.
        yield conv("transposed-even", [1, 24, extent, 20], (24, 18, 2, 2), "ConvTranspose", strides=[2, 2])
        weights, pads = (16, 20, 4, 6), [1, 2, 1, 1]
        yield conv("transposed-thirds", [1, 16, 5, extent], weights, "ConvTranspose", dim=3, strides=[2, 3], pads=pads)
        yield conv(
            "transposed-groups", [1, 24, 7, extent], (24, 16, 2, 3), "ConvTranspose", dim=3, group=2, strides=[2, 1]
        )


def _half_sums():
    """Means and norms of so many numbers of 16 bits that their sums do not fit into 16 bits."""
    axes = {"axes": [2, 3]}
    operators = {"GlobalAveragePool": {}, "ReduceMean": axes, "ReduceL2": axes, "ReduceLogSum": axes}
    for op, attributes in operators.items():
        draft = Draft(np.random.default_rng(0))
        draft.opset = 17
        values = np.random.default_rng(1).uniform(4, 8, [1, 2, 230, 300]).astype(np.float16)
        draft.node(op, draft.input(values, "x"), **attributes)
        yield _cut(f"half-{op}", draft, (100, 0, 130), 2)


_FAMILIES = (
    _strided_windows, _transposed, _resizes, _reshapes, _others, _half_sums, _columns, _tiles, _splits, _products,
    _convolutions, _large_tiles,
)  # fmt: skip


def fixed_cases():
    """All fixed cases by name."""
    cases = {}
    for family in _FAMILIES:
        for case in family():
            cases[case.name] = case
    return cases
