# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attacks on the tools: good files and command lines, and random damage to them."""

import dataclasses
import functools
import io

import numpy as np
import onnx
from cases import random_case
from onnx import AttributeProto, TensorProto

#: Numbers that programs get wrong.
NUMBERS = (0, 1, -1, 2, 3, 7, -2, 127, 255, 2**16, 2**31 - 1, -(2**31), 2**31, 2**32, 2**40, 2**53, 2**62, 2**63 - 1, -(2**63))
#: Seeds of random operators that attacks on models begin with.
SEEDS = 2000


@dataclasses.dataclass
class Attack:
    """Commands to run one after the other in the folder of the attack, as long as they succeed."""

    kind: str
    commands: list


def damage_bytes(rng, data):
    """A copy with bits flipped, bytes overwritten, cut off, removed, repeated or inserted."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        if not data:
            break
        at = int(rng.integers(len(data)))
        length = int(min(2 ** rng.integers(0, 6), len(data) - at))
        kind = rng.integers(8)
        if kind == 0:
            data[at] ^= 1 << rng.integers(8)
        elif kind == 1:
            data[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
        elif kind == 2:
            data[at : at + length] = rng.bytes(length)
        elif kind == 3:
            data[at : at + length] = b"\xff" * length
        elif kind == 4 and rng.random() < 0.3:
            del data[at:]
        elif kind == 5:
            del data[at : at + length]
        elif kind == 6:
            data[at:at] = data[at : at + length]
        else:
            data[at:at] = rng.bytes(length)
    return bytes(data)


def _damage_text(rng, text, words=()):
    """A copy with characters or tokens replaced, removed, repeated or inserted."""
    tokens = _tokens(text)
    for _ in range(rng.integers(1, 4)):
        if not tokens:
            break
        at = int(rng.integers(len(tokens)))
        kind = rng.integers(6)
        if kind == 0:
            tokens[at] = str(rng.choice(NUMBERS))
        elif kind == 1:
            del tokens[at]
        elif kind == 2:
            tokens.insert(at, tokens[int(rng.integers(len(tokens)))])
        elif kind == 3:
            tokens[at] = tokens[int(rng.integers(len(tokens)))]
        elif kind == 4 and words:
            tokens[at] = str(rng.choice(words))
        else:
            tokens[at] = "".join(chr(rng.integers(32, 127)) for _ in range(rng.integers(1, 5))).replace("/", "|")
    return "".join(tokens)


def _tokens(text):
    tokens, word = [], ""
    for character in text:
        if character.isalnum() or character == "_":
            word += character
            continue
        tokens += [word, character] if word else [character]
        word = ""
    return tokens + ([word] if word else [])


# Models.


def _number(rng, old=None):
    if old is not None and rng.random() < 0.4:
        return int(old) + int(rng.integers(-2, 3))
    return int(rng.choice(np.array(NUMBERS, object)))


def _clip(value, bits=64):
    return max(-(2 ** (bits - 1)), min(2 ** (bits - 1) - 1, value))


def _damage_dims(rng, dims):
    """Of an initializer: the numbers of dimensions and elements need not agree any more."""
    kind = rng.integers(4)
    if kind == 0 or not dims:
        dims.insert(int(rng.integers(len(dims) + 1)), _clip(_number(rng)))
    elif kind == 1:
        del dims[int(rng.integers(len(dims)))]
    else:
        at = int(rng.integers(len(dims)))
        dims[at] = _clip(_number(rng, dims[at]))


def _damage_shape(rng, shape):
    kind = rng.integers(4)
    if kind == 0 or not shape.dim:
        shape.dim.add().dim_value = _clip(_number(rng))
    elif kind == 1:
        del shape.dim[int(rng.integers(len(shape.dim)))]
    else:
        dim = shape.dim[int(rng.integers(len(shape.dim)))]
        if rng.random() < 0.1:
            dim.dim_param = "N"
        else:
            dim.dim_value = _clip(_number(rng, dim.dim_value))


def _damage_attribute(rng, node):
    if not node.attribute or rng.random() < 0.15:
        names = sorted(onnx.defs.get_schema(node.op_type).attributes) if onnx.defs.has(node.op_type) else []
        if not names:
            return
        attribute = node.attribute.add(name=str(rng.choice(names)))
        attribute.type = int(rng.choice([AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.STRING]))
        attribute.i = _clip(_number(rng))
        attribute.ints.extend(_clip(_number(rng)) for _ in range(rng.integers(4)))
        return
    attribute = node.attribute[int(rng.integers(len(node.attribute)))]
    kind = rng.integers(8)
    if kind == 0:
        node.attribute.remove(attribute)
    elif kind == 1:
        attribute.type = int(rng.integers(0, 15))
    elif kind == 2:
        attribute.ref_attr_name = "other"
    elif attribute.type == AttributeProto.INTS:
        values = list(attribute.ints)
        _damage_dims(rng, values)
        attribute.ClearField("ints")
        attribute.ints.extend(values)
    elif attribute.type == AttributeProto.INT:
        attribute.i = _clip(_number(rng, attribute.i))
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = float(rng.choice([0.0, -1.0, np.inf, np.nan, 1e38, 1e-45]))
    elif attribute.type == AttributeProto.STRING:
        attribute.s = rng.choice([b"", b"nearest", b"linear", b"SAME_UPPER", b"\xff\0", b"reflect", b"half_pixel"])
    elif attribute.type == AttributeProto.TENSOR:
        _damage_tensor(rng, attribute.t)


def _damage_tensor(rng, tensor):
    kind = rng.integers(6)
    if kind <= 1:
        _damage_dims(rng, tensor.dims)
    elif kind == 2:
        tensor.data_type = int(rng.integers(0, 27))
    elif kind == 3:
        tensor.raw_data = damage_bytes(rng, tensor.raw_data)
    elif tensor.data_type == TensorProto.INT64 and tensor.raw_data and len(tensor.raw_data) % 8 == 0:
        # Shapes, axes, starts, pads: constants that decide what an operator does.
        values = np.frombuffer(tensor.raw_data, np.int64).copy()
        at = int(rng.integers(values.size))
        values[at] = _clip(_number(rng, values[at]))
        tensor.raw_data = values.tobytes()
    elif tensor.data_type == TensorProto.FLOAT and tensor.raw_data and len(tensor.raw_data) % 4 == 0:
        values = np.frombuffer(tensor.raw_data, np.float32).copy()
        values[int(rng.integers(values.size))] = rng.choice([0, -1, np.inf, -np.inf, np.nan, 3e38, 1e-45, 1e9])
        tensor.raw_data = values.tobytes()
    else:
        tensor.ClearField("raw_data")


def _damage_wires(rng, graph):
    names = [n for node in graph.node for n in (*node.input, *node.output)]
    names += [value.name for value in (*graph.input, *graph.output, *graph.initializer)] + ["", "nowhere"]
    node = graph.node[int(rng.integers(len(graph.node)))]
    wires = node.input if rng.random() < 0.7 else node.output
    kind = rng.integers(4)
    if kind == 0 or not wires:
        wires.append(str(rng.choice(names)))
    elif kind == 1:
        del wires[int(rng.integers(len(wires)))]
    else:
        wires[int(rng.integers(len(wires)))] = str(rng.choice(names))


def damage_model(rng, model):
    """A copy that is still a readable file, but says something else in one place or a few."""
    damaged = onnx.ModelProto()
    damaged.CopyFrom(model)
    graph = damaged.graph
    for _ in range(rng.integers(1, 4)):
        kind = rng.integers(11)
        node = graph.node[int(rng.integers(len(graph.node)))] if graph.node else None
        if kind <= 2 and graph.initializer:
            _damage_tensor(rng, graph.initializer[int(rng.integers(len(graph.initializer)))])
        elif kind <= 5 and node is not None:
            _damage_attribute(rng, node)
        elif kind == 6 and graph.input:
            value = graph.input[int(rng.integers(len(graph.input)))]
            if rng.random() < 0.25:
                value.type.tensor_type.elem_type = int(rng.integers(0, 27))
            else:
                _damage_shape(rng, value.type.tensor_type.shape)
        elif kind == 7 and node is not None:
            _damage_wires(rng, graph)
        elif kind == 8 and node is not None:
            # Another operator, on the same operands.
            node.op_type = str(rng.choice(_operators()))
        elif kind == 9 and damaged.opset_import:
            damaged.opset_import[0].version = int(rng.integers(1, 28))
        elif node is not None:
            duplicate = graph.node.add()
            duplicate.CopyFrom(node)
            for i in range(len(duplicate.output)):
                duplicate.output[i] += "-again"
            if rng.random() < 0.5 and len(duplicate.input):
                duplicate.input[0] = node.output[0] if node.output else ""
            if duplicate.output and graph.output and rng.random() < 0.5:
                graph.output.add(name=duplicate.output[0])
    return damaged


@functools.cache
def _operators():
    return sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})


def _base(rng):
    return random_case(int(rng.integers(SEEDS)))


def _compile(rng, case, model):
    # Requests name what the good model has: now and then they fit no more, which is an attack, too.
    flags = case.partition.flags() if rng.random() < 0.5 else []
    libraries = [] if rng.random() < 0.5 else ["--no-libraries"]
    return ["compile", model, "-o", "model.dvt", *flags, *libraries]


def _random_run(model):
    """Runs the artifact on random inputs if they are not too large to be had."""
    names = [value.name for value in model.graph.input if value.name not in {t.name for t in model.graph.initializer}]
    if not all(name and "=" not in name and name.isprintable() for name in names):
        return []
    elements = 1
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            elements *= max(1, dim.dim_value)
    if elements > 10**7:
        return []
    return [["run", "model.dvt", *(f"--input={name}=random:1" for name in names), "--timeout", "30"]]


def _attack_model(rng, folder):
    case = _base(rng)
    model = damage_model(rng, case.model)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return [_compile(rng, case, "model.onnx"), *_random_run(model)]


def _attack_bytes(rng, folder):
    case = _base(rng)
    (folder / "model.onnx").write_bytes(damage_bytes(rng, case.model.SerializeToString()))
    return [_compile(rng, case, "model.onnx")]


def _attack_text(rng, folder):
    case = _base(rng)
    text = _damage_text(rng, onnx.printer.to_text(case.model), _operators())
    (folder / "model.onnxtxt").write_text(text)
    return [_compile(rng, case, "model.onnxtxt")]


def _attack_external(rng, folder):
    case = _base(rng)
    onnx.save(
        case.model, folder / "model.onnx", save_as_external_data=True, all_tensors_to_one_file=True,
        location="weights.bin", size_threshold=0,
    )  # fmt: skip
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    weights = folder / "weights.bin"
    kind = rng.integers(5)
    if kind == 0 and weights.exists():
        weights.write_bytes(damage_bytes(rng, weights.read_bytes()))
    elif kind == 1 and weights.exists():
        weights.unlink()
        if rng.random() < 0.5:
            weights.symlink_to(str(rng.choice(["weights.bin", "/dev/zero", "/etc/hostname", ".", "model.onnx"])))
    else:
        for tensor in model.graph.initializer:
            for entry in tensor.external_data:
                if rng.random() < 0.3:
                    words = (str(_number(rng)), "", "../weights.bin", "weights.bin", ".", "1e3", "0x10", " 8", "/dev/zero")
                    entry.value = str(rng.choice(words))
            if rng.random() < 0.2:
                _damage_dims(rng, tensor.dims)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return [_compile(rng, case, "model.onnx"), *_random_run(model)]


# Arrays and command lines.


def _add_model():
    """z = x + y, of which an array can be wrong in many ways."""
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "y"], ["z"])],
        "add",
        [value("x", TensorProto.FLOAT, [2, 8, 6]), value("y", TensorProto.FLOAT, [8, 1])],
        [value("z", TensorProto.FLOAT, [2, 8, 6])],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


_GOOD = ["compile", "add.onnx", "-o", "add.dvt", "--mesh", "y=2,x=2", "--shard", "x=_,y,x", "--sizes", "x:1=3,5"]


def _arrays(folder):
    rng = np.random.default_rng(0)
    (folder / "add.onnx").write_bytes(_add_model().SerializeToString())
    return {"x": rng.normal(size=(2, 8, 6)).astype(np.float32), "y": rng.normal(size=(8, 1)).astype(np.float32)}


def _attack_npy(rng, folder):
    arrays = _arrays(folder)
    for name, array in arrays.items():
        file = io.BytesIO()
        np.lib.format.write_array(file, np.asfortranarray(array) if rng.random() < 0.3 else array, version=(int(rng.integers(1, 4)), 0))
        data = file.getvalue()
        if name == "x":
            # The header is small, and what matters is in it.
            header = len(data) - array.nbytes
            text = data[10:header].decode("latin1")
            if rng.random() < 0.5:
                text = _damage_text(rng, text, ("True", "False", "<f8", ">f4", "|b1", "O", "(", ")", "None"))
                data = data[:10] + text.encode("latin1") + data[header:]
            else:
                data = damage_bytes(rng, data[:header]) + data[header:]
        (folder / f"{name}.npy").write_bytes(data)
    return [_GOOD, ["run", "add.dvt", "--input", "x=@x.npy", "--input", "y=@y.npy", "--output", "z=z.npy"]]


def _attack_npz(rng, folder):
    arrays = _arrays(folder)
    file = io.BytesIO()
    (np.savez_compressed if rng.random() < 0.5 else np.savez)(file, **arrays)
    (folder / "all.npz").write_bytes(damage_bytes(rng, file.getvalue()))
    return [_GOOD, ["run", "add.dvt", "--input", "@all.npz", "--output", "z.npz"]]


_COMPILE_FLAGS = (
    "--mesh y=2,x=2", "--mesh y=4", "--shard x=_,y,x", "--shard y=y,_", "--shard z=_,x+y,_", "--sizes x:1=3,5",
    "--sizes x:1=chunk", "--sizes x:2=balanced", "--sizes x:2=0,6", "--dim N=1", "--shape x=2,8,6", "--target cpu",
    "--cpu native", "--cpu x86-64-v3", "--math tf32", "--no-libraries", "--no-index-checks", "--report r.json", "--report r.html", "--compile-to partition",
    "--compile-to codegen", "--dump-phases dump", "--print-constants", "--timing", "--remarks", "-o other.dvt",
)  # fmt: skip
_RUN_FLAGS = (
    "--input x=random:0", "--input y=random:1", "--input x=@x.npy", "--input @all.npz", "--threads 4", "--comm local",
    "--timeout 5", "--output z=z.npy", "--output z.npz", "--trace t.json", "--timing",
)  # fmt: skip


def _flags(rng, flags):
    words = []
    for flag in rng.choice(flags, rng.integers(0, 5)):
        flag = str(flag)
        if rng.random() < 0.5:
            option, _, value = flag.partition(" ")
            flag = f"{option} {_damage_text(rng, value)}" if value else _damage_text(rng, flag)
        words += flag.split(" ", 1) if rng.random() < 0.8 else [flag.replace(" ", "=", 1)]
    return [word for word in words if "\0" not in word]


def _attack_flags(rng, folder):
    arrays = _arrays(folder)
    np.save(folder / "x.npy", arrays["x"])
    np.savez(folder / "all.npz", **arrays)
    if rng.random() < 0.7:
        return [["compile", "add.onnx", *_flags(rng, _COMPILE_FLAGS)]]
    return [_GOOD, ["run", "add.dvt", "--input", "y=random:1", *_flags(rng, _RUN_FLAGS)]]


KINDS = {
    "model": (_attack_model, 10),
    "bytes": (_attack_bytes, 3),
    "text": (_attack_text, 3),
    "external": (_attack_external, 2),
    "npy": (_attack_npy, 1),
    "npz": (_attack_npz, 1),
    "flags": (_attack_flags, 3),
}


def make(seed, kind, folder):
    """The attack of `seed`, with its files in `folder`; `kind` restricts it (which makes another attack of the seed)."""
    rng = np.random.default_rng([seed, 0 if kind is None else 1])
    if kind is None:
        weights = np.array([weight for _, weight in KINDS.values()], float)
        kind = str(rng.choice(list(KINDS), p=weights / weights.sum()))
    return Attack(kind, KINDS[kind][0](rng, folder))
