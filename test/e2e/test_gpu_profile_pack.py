# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`gpu-check pack --profile ten-minutes`: what is in the package, and that it is right."""

import functools
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from harness.backend import ROOT, build_dir
from harness.sanitizers import sanitizers

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]

from gpucheck import inputs  # noqa: E402
from gpucheck.evaluate import verdict  # noqa: E402
from gpucheck.package import DamagedPackage, Package, PackageWriter, pack_executable  # noqa: E402

pytestmark = pytest.mark.skipif(bool(sanitizers(build_dir())), reason="packages are of builds without sanitizers")

#: One of each group.
MODELS = ("resnet50", "unet-2048", "huge-convolution", "attention-4k", "layer", "softmax", "tile-large",
          "unet512-ranks")  # fmt: skip


def _module(name):
    """A module of the packing side; it needs what only a checkout has."""
    return importlib.import_module(f"gpucheck.{name}")


def _pack(output, *arguments):
    command = [sys.executable, ROOT / "scripts/gpu-check", "pack", "--profile", "ten-minutes", "-o", output, *arguments]
    environment = dict(os.environ, DOVETAIL_BUILD_DIR=str(build_dir()))
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, env=environment)


@pytest.fixture(scope="module")
def package(backend, tmp_path_factory):
    """A package of programs for CPUs: (folder, Package)."""
    folder = tmp_path_factory.mktemp("ten-minutes") / "package"
    result = _pack(folder, "--target", "cpu", "--models", ",".join(MODELS), "--operators", "2")
    assert result.returncode == 0, result.stderr
    return folder, Package(folder, folder.parent / "restored")


def test_manifest(package):
    folder, unpacked = package
    manifest = unpacked.manifest
    assert (manifest["profile"], manifest["target"], manifest["archs"]) == ("ten-minutes", "cpu", [])
    assert [entry["name"] for entry in manifest["timed"]] == list(MODELS)
    assert len(manifest["operators"]) == 2
    for entry in manifest["timed"]:
        assert re.fullmatch("[a-z0-9-]+", entry["name"])
        assert entry["work"]["bytes"] > 0 and entry["work"]["flops"] >= 0
        variants = [program["variant"] for program in entry["programs"]]
        assert len(set(variants)) == len(variants)
        assert (entry["graph"] is None) == (entry["constants"] is None) == (entry["name"] != "resnet50")
    by_name = {entry["name"]: entry for entry in manifest["timed"]}
    assert [p["ranks"] for p in by_name["unet512-ranks"]["programs"]] == [1, 2, 4]
    assert [p["variant"] for p in by_name["tile-large"]["programs"]] == ["f32-no-libraries", "f16-no-libraries"]
    assert by_name["attention-4k"]["scale"] > 0
    assert {path.name for path in folder.parent.iterdir()} <= {"package", "restored"}


def test_programs(backend, package, tmp_path):
    """Every program gives the expected values. A wrong element is told."""
    _, unpacked = package
    for entry in unpacked.manifest["timed"]:
        expected = inputs.samples(unpacked, entry)
        for program in entry["programs"]:
            values = inputs.generate(entry, program["dtype"])
            outputs = backend.run(unpacked.path(program["file"]), values, list(expected), tmp_path)
            taken = inputs.taken(entry, outputs)
            is_exact = (program["math"], program["dtype"]) == ("f32", "f32")
            judged = functools.partial(
                verdict, expected=expected, tolerance=program["tolerance"], math="f32" if is_exact else "tf32"
            )
            assert judged(taken)["status"] == "ok", (entry["name"], program["variant"], judged(taken))
            name, vector = next(iter(taken.items()))
            vector[-1] += np.abs(vector).max()
            assert judged({**taken, name: vector})["status"] == "differs"


def test_weights_take_little(package):
    """A program's weights repeat blocks that the package has once."""
    folder, unpacked = package
    name = next(p["file"] for e in unpacked.manifest["timed"] if e["name"] == "unet512-ranks" for p in e["programs"])
    tensors = unpacked.manifest["tensors"]
    holes = [tensors[number] for _, number in unpacked.manifest["files"][name]["holes"]]
    assert holes and all("block" in tensor for tensor in holes)
    assert (folder / "files" / name).stat().st_size < unpacked.path(name).stat().st_size / 2
    # A block for each scale and type; the rest has no more bytes.
    blocks = [block for block in unpacked.manifest["blocks"] if block]
    assert len(blocks) < 30 and all(block["bytes"] <= 1 << 16 for block in blocks)
    assert (folder / "tensors.bin").stat().st_size < 2 * sum(block["bytes"] for block in blocks)


def test_gpu_programs(backend, tmp_path):
    """What a package for GPUs has by default: code of one architecture, and calls of libraries."""
    result = _pack(tmp_path / "package", "--models", "layer,halo-64k", "--operators", "0")
    assert result.returncode == 0, result.stderr
    package = Package(tmp_path / "package", tmp_path / "restored")
    assert package.manifest["archs"] == ["sm_90"]
    layer, halo = package.manifest["timed"]
    assert [p["variant"] for p in layer["programs"]] == ["f32", "tf32", "f16"]
    assert [p["variant"] for p in halo["programs"]] == ["f32-2-ranks", "f32-4-ranks"]
    assert halo["halo_bytes"] == 64 << 10
    assert sum(file.stat().st_size for file in (tmp_path / "package").rglob("*") if file.is_file()) < 20 << 20
    command = [build_dir() / "bin/dovetail", "inspect", "--json", package.path(layer["programs"][1]["file"])]
    described = json.loads(subprocess.run([str(c) for c in command], capture_output=True, check=True).stdout)
    assert (described["target"], described["math"]) == ("cuda", "tf32")
    command[-1] = package.path(halo["programs"][0]["file"])
    described = json.loads(subprocess.run([str(c) for c in command], capture_output=True, check=True).stdout)
    (exchange,) = described["exchanges"]
    assert [move["received_bytes"] for move in exchange["moves"]] == [[halo["halo_bytes"]] * 2]


def test_contents():
    """Names tell programs apart, and what is large fits a GPU of 78 GiB."""
    for target, most in (("cuda", 78 << 30), ("cpu", 1 << 20)):
        found = list(_module("timed_contents").timed(target))
        names = [timed.name for timed in found]
        assert len(set(names)) == len(names)
        groups = {"model", "large", "attention", "layer", "kernel", "tile", "rank"}
        assert {timed.group for timed in found} == groups
        for timed in found:
            ways = [way.name for way in timed.ways]
            assert len(set(ways)) == len(ways)
            assert 2 * 4 * timed.more.get("score_elements", 0) < most
        by_name = {timed.name: timed for timed in found}
        usual = ["f32", "tf32", "f16"] if target == "cuda" else ["f32", "f16"]
        for name in ("swin", "unet-2048", "unet-4096", "layer"):
            assert [way.name for way in by_name[name].ways] == usual
        # The same without a library.
        for name in ("resnet50", "unet512", "unet-1024"):
            assert [way.name for way in by_name[name].ways] == [*usual, "f32-no-libraries"]


def test_operators_in_turns():
    cases = _module("timed_contents").operator_cases()
    first = [next(cases) for _ in range(40)]
    own = sum(not case.libraries for case in first)
    assert 10 <= own <= 30 and len({case.name for case in first}) >= 25


def test_elements_of_the_huge_convolution():
    """An index of 32 bits with a sign does not reach the last one."""
    sizes = _module("timed_contents").Sizes()
    channels, _, height, width = sizes.huge
    assert channels * height * width == 1 << 31


# Inputs.


def test_inputs_never_change():
    """Results of packages are compared over years."""
    entry = {"inputs": [{"name": "x", "shape": [2, 3, 50], "dtype": "f32", "seed": 41}]}
    values = inputs.generate(entry)["x"]
    assert values.dtype == np.float32 and np.abs(values).max() <= 1
    assert (values * 64 == np.round(values * 64)).all()
    assert hashlib.sha256(values.tobytes()).hexdigest()[:16] == "5507be40e8e76f19"
    halves = inputs.generate(entry, "f16")["x"]
    assert halves.dtype == np.float16 and (halves == values).all()


def test_crops_of_inputs(monkeypatch):
    monkeypatch.setattr(inputs, "PERIOD", 101)
    item = {"name": "x", "shape": [1, 3, 20, 13], "dtype": "f32", "seed": 5}
    values = inputs.values(item)
    assert (values.reshape(-1)[:101] == values.reshape(-1)[101:202]).all()
    assert (inputs.crop(item, [0, 1, 4, 2], [1, 2, 7, 10]) == values[:, 1:, 4:11, 2:12]).all()


# Expected values.


@pytest.mark.parametrize("extents", [(320, 256), (64, 192)])
def test_crops_of_images(extents):
    """What is far enough from the border of a crop is what the whole image gives."""
    contents, expected = _module("timed_contents"), _module("expected")
    build = contents._tiled(functools.partial(contents._unet, 2))
    items = [{"name": "image", "shape": [1, 3, *extents], "dtype": "f32", "seed": 3}]
    whole = expected.run(build(*extents), inputs.generate({"inputs": items}))["mask"]
    found = expected.in_crops(build, items, extents)
    assert len(found) >= 5
    for name, (_, _, row, column), values in found:
        _, _, rows, columns = values.shape
        assert name == "mask" and (rows, columns) == (16, 32)
        np.testing.assert_allclose(values, whole[:, :, row : row + rows, column : column + columns], atol=1e-5)


def test_rows_of_attention():
    models, expected = _module("timed_models"), _module("expected")
    shape = [1, 3, 40, 8]
    items = [{"name": name, "shape": shape, "dtype": "f32", "seed": seed} for seed, name in enumerate("qkv")]
    whole = expected.run(models.attention(3, 40, 8, 2.0), inputs.generate({"inputs": items}))["y"]
    for _, starts, values in expected.attention(items, 2.0):
        box = tuple(slice(s, s + n) for s, n in zip(starts, values.shape))
        np.testing.assert_allclose(values, whole[box], atol=1e-5)


def test_instance_norms_are_expected_in_f64():
    # Far from zero, f32 loses the variance.
    expected, Graph = _module("expected"), importlib.import_module("dovetail_models.graph").Graph
    rng = np.random.RandomState(3)
    x = (1000 + rng.standard_normal((2, 3, 40, 50, 60))).astype(np.float32)
    scale, shift = (rng.standard_normal(3).astype(np.float32) for _ in range(2))
    g = Graph("norm", 17)
    y = g.op("InstanceNormalization", g.input("x", list(x.shape)), g.weight(scale), g.weight(shift), epsilon=1e-3)
    g.output(y, "y", 5)
    found = expected.run(g.build(), {"x": x})["y"]
    wide, axes = x.astype(np.float64), (2, 3, 4)
    normal = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 1e-3)
    np.testing.assert_allclose(found, normal * scale[:, None, None, None] + shift[:, None, None, None], atol=1e-6)


def test_values_that_tell_nothing():
    tells = _module("expected").tells
    ramp, constant = np.arange(9.0).reshape(3, 3), np.full((3, 3), 7.0)
    assert not tells([("y", (0, 0), ramp)])
    assert "constant" in tells([("y", (0, 0), ramp), ("z", (0, 0), constant)])
    assert "finite" in tells([("y", (0, 0), np.where(ramp, ramp, np.inf))])


def test_work():
    models = _module("timed_models")
    work = models.work(models.convolution(10, 4, 3))
    weights, image = 4 * 4 * 9 + 4, 4 * 100
    assert work == {"flops": 2 * 4 * 4 * 9 * 100, "bytes": 4 * (2 * image + weights),
                    "layer_bytes": 4 * (2 * image + weights - 4)}  # fmt: skip
    assert models.work(models.product(2, 3, 5))["flops"] == 2 * 30
    assert models.work(models.attention(2, 10, 4, 1.0))["flops"] == 4 * 10 * 10 * 4 * 2
    half = importlib.import_module("dovetail_models").with_element_type(models.product(2, 3, 5), np.float16)
    assert models.work(half)["bytes"] == 2 * (6 + 15 + 10)


# The package.


def test_tensors_that_repeat_a_block(tmp_path):
    rng = np.random.default_rng(0)
    block = rng.bytes(5000)
    long = (block * 9)[1234 : 1234 + 40000]
    short, part = (block * 2)[4000:9000], long[100:9000]
    unknown = rng.bytes(3000) * 4
    files = {"a": b"head" + long + b"middle" + short, "b": part + long + b"tail", "c": unknown + rng.bytes(100)}
    writer = PackageWriter(tmp_path / "package", packs=True)
    writer.add_blocks([rng.bytes(7000), block])
    # The part is found first, inside of the whole: it must not take the place of that.
    shared = writer.add_tensors([part, long, short, unknown])
    for name, data in files.items():
        writer.add_file(name, data, shared)
    writer.close({})
    assert (tmp_path / "package/tensors.bin").stat().st_size == 5000 + 3000
    assert (tmp_path / "package/files/b").read_bytes() == b"tail"
    assert all((tmp_path / "package/files" / name).stat().st_size < 200 for name in files)
    package = Package(tmp_path / "package", tmp_path / "restored")
    assert {name: package.path(name).read_bytes() for name in files} == files
    assert package.tensor(0) == part


def test_packed_files(tmp_path):
    writer = PackageWriter(tmp_path / "package", packs=True)
    data = b"0123456789" * 1000
    writer.add_file("text", data)
    writer.close({})
    file = tmp_path / "package/files/text"
    assert file.stat().st_size < 200
    package = Package(tmp_path / "package", tmp_path / "restored")
    assert package.path("text").read_bytes() == data
    package.forget("text")
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DamagedPackage, match="text in .* is damaged"):
        package.path("text")


def test_packed_libraries(tmp_path):
    PackageWriter(tmp_path).close({})
    library = tmp_path / "library.so"
    library.write_bytes(b"\x7fELF" * 1000)
    pack_executable(library)
    assert not library.exists()
    package = Package(tmp_path, tmp_path / "restored")
    package.require(["library.so"])
    # Nothing is written into the package, which may be read only.
    assert not library.exists() and package.runtime == tmp_path / "restored/runtime"
    unpacked = package.runtime / "library.so"
    assert unpacked.read_bytes() == b"\x7fELF" * 1000 and os.access(unpacked, os.X_OK)
    (tmp_path / "library.so.xz").write_bytes(b"no library")
    with pytest.raises(DamagedPackage, match="library.so.xz in .* is damaged"):
        package.require(["library.so"])
    assert not library.exists()


# What is refused.


@pytest.mark.parametrize(
    ("output", "arguments", "code", "message"),
    [
        ("full", (), 1, "full is not an empty folder; name another one"),
        ("file.tar.xz", (), 1, "is a folder; name one instead of "),
        ("new", ("--models", "resnet51"), 2, "no model 'resnet51' in the profile ten-minutes; there are resnet50, "),
        ("new", ("--models", "nope", "--profile", "default"), 2, "--models: there is no model 'nope'; there are "),
    ],
)
def test_refused(tmp_path, output, arguments, code, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("")
    result = _pack(tmp_path / output, *arguments)
    (sentence,) = result.stderr.splitlines()
    assert result.returncode == code and sentence.startswith("gpu-check: error: ") and message in sentence
    assert not (tmp_path / "new").exists()


def test_too_large(tmp_path, monkeypatch):
    timed_pack, pack = _module("timed_pack"), _module("pack")
    (tmp_path / "folder/files/timed").mkdir(parents=True)
    (tmp_path / "folder/files/timed/unet.dvt").write_bytes(bytes(1 << 20))
    assert timed_pack._check_size(tmp_path / "folder") == 1 << 20
    monkeypatch.setattr(timed_pack, "MOST_BYTES", 1 << 19)
    with pytest.raises(pack.PackError, match=r"would have 1.0 MiB.*files/timed/unet.dvt 1.0 MiB"):
        timed_pack._check_size(tmp_path / "folder")
