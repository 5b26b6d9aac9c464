# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The wheel and what `cmake --install` installs, as their users have them: away from the build and the checkout."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import zipfile

import numpy as np
import onnxruntime
import pytest
from harness.backend import ROOT, build_dir, call, tool
from harness.sanitizers import sanitizers
from onnx import TensorProto, helper
from PIL import Image

pytestmark = pytest.mark.skipif(
    bool(sanitizers(build_dir())) or tool("dovetail") is None, reason="wheels are made of builds for users"
)

CELLS = ROOT / "python/dovetail/demo/cells.onnx"
INCOMPATIBLE = 7
#: Each library is once the first, and once the last.
ORDERS = [["dovetail", "onnxruntime", "jax"], ["jax", "dovetail", "onnxruntime"], ["onnxruntime", "jax", "dovetail"]]


def _run(command, **options):
    """Runs a command of an installation, without what leads to the checkout; returns the finished process."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DOVETAIL_") and name not in ("PYTHONPATH", "LD_LIBRARY_PATH")
    }
    environment |= options.pop("env", {})
    command = [str(part) for part in command]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, **options)


def _checked(command, **options):
    result = _run(command, **options)
    assert result.returncode == 0, result.stderr or result.stdout
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, worker_id):
    """The wheel of the build, made once for all workers. `scripts/make-wheel` checks tag, size and paths inside."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if worker_id != "master" else folder) / "wheel"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("*.whl")):
            _checked([sys.executable, ROOT / "scripts/make-wheel", build_dir(), "--out", folder])
        if not (folder / "site").exists():
            command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
            _checked([*command, "--target", folder / "site", *folder.glob("*.whl")])
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel):
    """The folder that the wheel is installed in."""
    return wheel.parent / "site"


def _python(site, code, *arguments, **options):
    """Runs code in a Python that has the installed package, and the packages of the tests."""
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return _run(command, env={"PYTHONPATH": str(site)}, **options)


def test_wheel_has_licences_and_no_tests(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    licences = {name.rpartition("/")[2] for name in names if "licenses/third-party" in name}
    assert {"libdnnl2.txt", "libmlir-22-dev.txt", "onnx.txt", "nvidia-libdevice.txt", "GPL-3.txt"} <= licences
    # Debian's packages are named after the libraries: libabsl_strings.so.20220623 is of libabsl20220623.
    for library in {name.rpartition("/")[2].split("-")[0].split("_")[0] for name in names if ".libs/" in name}:
        short = library.removeprefix("lib").lower().rstrip("0123456789.")
        found = {"crypto": "ssl", "opencl": "ocl-icd"}.get(short, short)
        assert any(found in licence for licence in licences), library
    assert not [name for name in names if "emulated" in name or "sockets" in name or re.search("mpi_(parts|late)", name) or name.endswith(".so")
                and "/lib/libdovetail.so" in name]  # fmt: skip


def test_demo_is_that_of_the_source_build(site, tmp_path):
    """`python -m dovetail.demo`: five lines, a picture, and the bits of the build that the wheel was made of."""
    command = [sys.executable, "-m", "dovetail.demo", "--save"]
    shown = _run([*command, "mask.npy"], cwd=tmp_path, env={"PYTHONPATH": str(site)})
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["compiled", "cuts", "memory", "ran", "verified"]
    image = Image.open(tmp_path / "dovetail-demo.png")
    assert image.size[0] > 1000 and len(image.getcolors(2**24)) > 1000

    source = {"PYTHONPATH": str(ROOT / "python"), "DOVETAIL_LIBRARY_DIR": str(build_dir() / "lib")}
    _checked([*command, "source.npy", "--out", "source.png"], cwd=tmp_path, env=source)
    mask = np.load(tmp_path / "mask.npy")
    assert mask.tobytes() == np.load(tmp_path / "source.npy").tobytes()
    session = onnxruntime.InferenceSession(CELLS)
    picture = _checked(
        [sys.executable, "-c", "import sys, numpy; from dovetail.demo import __main__ as demo, _picture; "
         "numpy.save('picture.npy', _picture.draw(demo.SEED, sum(demo.ROWS), demo.WIDTH, demo.CELLS)[0])"],
        cwd=tmp_path, env={"PYTHONPATH": str(site)},
    )  # fmt: skip
    picture = np.load(tmp_path / "picture.npy")
    expected = session.run(None, {"picture": picture[None, None]})[0]
    np.testing.assert_allclose(mask, expected, rtol=0, atol=2e-5)


def test_demo_model_finds_cells():
    """The model that the package carries, on a picture that its weights were not fitted to."""
    sys.path.insert(0, str(ROOT / "python"))
    try:
        from dovetail.demo._picture import draw
    finally:
        sys.path.pop(0)
    picture, mask = draw(5, 200, 240, 30)
    found = onnxruntime.InferenceSession(CELLS).run(None, {"picture": picture[None, None]})[0][0, 0] > 0.5
    assert (found & mask).sum() > 0.85 * (found | mask).sum()


def test_commands(site, tmp_path):
    """Both commands start, quickly and small, and do their work."""
    command = ["/usr/bin/time", "-f", "%e %M"] if shutil.which("/usr/bin/time") else []
    for name in ("dovetail", "dovetail-run"):
        shown = _run([*command, sys.executable, site / "bin" / name, "--version", "--json"], env={"PYTHONPATH": str(site)})
        assert shown.returncode == 0, shown.stderr
        assert json.loads(shown.stdout)["version"]
        if command:
            assert float(shown.stderr.split()[-1]) < 60_000, "kilobytes of memory"
    environment = {"PYTHONPATH": str(site)}
    assert _checked([sys.executable, "-m", "dovetail", "--version"], env=environment).startswith("dovetail 0.")
    missing = _run([sys.executable, "-m", "dovetail.demo", "--out", tmp_path / "no-folder/x.png"], env=environment)
    assert missing.returncode == 1
    assert missing.stderr.startswith("dovetail.demo: error: ") and len(missing.stderr.splitlines()) == 1
    artifact = tmp_path / "cells.dvt"
    _checked([sys.executable, site / "bin/dovetail", "compile", CELLS, "--dim", "height=40", "--dim", "width=48",
              "--mesh", "y=2", "-o", artifact], env=environment)  # fmt: skip
    _checked([sys.executable, site / "bin/dovetail-run", "bench", artifact, "--iterations", "2"], env=environment)


@pytest.fixture
def open_folder():
    """A temporary folder that every user reaches."""
    with tempfile.TemporaryDirectory(prefix="dovetail-wheel-") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


def test_read_only_and_moved_packages(site, open_folder):
    """A package works in a folder that nobody may write to, wherever it was moved."""
    moved = open_folder / "moved"
    shutil.copytree(site, moved)
    for path in [moved, *moved.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    code = """
        import dovetail, numpy, sys
        program = dovetail.compile(sys.argv[1], mesh={"y": 3}, dims={"height": 32, "width": 24})
        print(float(program.run({"picture": numpy.zeros((1, 1, 32, 24), "float32")})["mask"].max()) < 1)
    """
    # Root may write anywhere.
    user = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    shutil.copy(CELLS, open_folder)
    (open_folder / "cells.onnx").chmod(0o644)
    if user and _run([*user, sys.executable, "-c", "import numpy"]).returncode != 0:
        pytest.skip("ordinary users do not reach this Python")
    command = [*user, sys.executable, "-B", "-c", textwrap.dedent(code), open_folder / "cells.onnx"]
    assert _checked(command, env={"PYTHONPATH": str(moved)}, cwd="/") == "True\n"
    for path in [moved, *moved.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)


@pytest.mark.parametrize("order", ORDERS)
def test_beside_other_libraries(site, order):
    """ONNX Runtime and JAX bring LLVM, protobuf and oneDNN of their own; all three work in one process."""
    result = _python(
        site,
        """
        import importlib, sys
        import numpy
        sys.dont_write_bytecode = True
        path, *order = sys.argv[1:]
        modules = {name: importlib.import_module(name) for name in order}
        picture = numpy.random.RandomState(3).rand(1, 1, 40, 36).astype("float32")

        def dovetail(module):
            program = module.compile(path, mesh={"y": 2}, dims={"height": 40, "width": 36})
            return program.run({"picture": picture})["mask"]

        def onnxruntime(module):
            return module.InferenceSession(path).run(None, {"picture": picture})[0]

        def jax(module):
            return numpy.asarray(module.jit(lambda x: module.numpy.tanh(x) @ x.T)(picture[0, 0]))

        functions = dict(dovetail=dovetail, onnxruntime=onnxruntime, jax=jax)
        for name in order:
            functions[name](modules[name])
        # Again, with all of them started.
        results = {name: functions[name](modules[name]) for name in reversed(order)}
        numpy.testing.assert_allclose(results["dovetail"], results["onnxruntime"], atol=2e-5)
        numpy.testing.assert_allclose(results["jax"], numpy.tanh(picture[0, 0]) @ picture[0, 0].T, rtol=1e-4)
        """,
        CELLS, *order,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


def test_needed_python():
    """What `requires-python` says is what the package's code needs."""
    text = (ROOT / "pyproject.toml").read_text()
    needed = text.split('requires-python = ">=')[1].split('"')[0]
    _checked([ROOT / ".venv/bin/vermin", f"-t={needed}-", "--no-tips", "--violations", ROOT / "python/dovetail"])


@pytest.mark.parametrize("cpu, works", [("Nehalem", True), ("core2duo", False)])
def test_lowest_cpu(site, tmp_path, cpu, works):
    """The lowest CPU that the package runs on, x86-64-v2, and one below it, both imitated."""
    if not shutil.which("qemu-x86_64"):
        pytest.skip("the package qemu-user is not installed")
    artifact = tmp_path / "cells.dvt"
    programs = site / "dovetail/bin"
    compiled = _run(["qemu-x86_64", "-cpu", cpu, programs / "dovetail", "compile", CELLS, "-o", artifact,
                     "--dim", "height=24", "--dim", "width=16", "--mesh", "y=2"])  # fmt: skip
    if works:
        assert compiled.returncode == 0, compiled.stderr
        picture = np.random.RandomState(3).rand(1, 1, 24, 16).astype(np.float32)
        np.save(tmp_path / "picture.npy", picture)
        _checked(["qemu-x86_64", "-cpu", cpu, programs / "dovetail-run", "run", artifact,
                  "--input", f"picture=@{tmp_path / 'picture.npy'}", "--output", f"mask={tmp_path / 'mask.npy'}"])  # fmt: skip
        expected = onnxruntime.InferenceSession(CELLS).run(None, {"picture": picture})[0]
        np.testing.assert_allclose(np.load(tmp_path / "mask.npy"), expected, atol=2e-5)
        return
    assert compiled.returncode == INCOMPATIBLE
    assert "needs an x86-64-v2 CPU" in compiled.stderr and len(compiled.stderr.splitlines()) == 1
    assert not artifact.exists()
    run = _run(["qemu-x86_64", "-cpu", cpu, programs / "dovetail-run", "inspect", artifact])
    assert run.returncode == INCOMPATIBLE and "needs an x86-64-v2 CPU" in run.stderr


PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(Outside LANGUAGES CXX)
find_package(Dovetail 0.1 REQUIRED COMPONENTS runtime compiler)
add_executable(run_artifact run_artifact.cpp)
target_link_libraries(run_artifact PRIVATE dovetail::runtime)
add_executable(version version.cpp)
target_link_libraries(version PRIVATE dovetail::compiler)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What `cmake --install` installs below DESTDIR."""
    folder = tmp_path_factory.mktemp("installed")
    _checked(["cmake", "--install", build_dir(), "--prefix", "/opt/dovetail"], env={"DESTDIR": str(folder)})
    return folder / "opt/dovetail"


@pytest.mark.parametrize("place", ["installed", "site"])
def test_outside_project(place, request, tmp_path):
    """A project that knows `find_package(Dovetail)` alone builds and runs examples/run_artifact.cpp."""
    prefix = request.getfixturevalue(place)
    prefix = prefix / "dovetail" if place == "site" else prefix
    source = tmp_path / "source"
    source.mkdir()
    shutil.copy(ROOT / "examples/run_artifact.cpp", source)
    (source / "CMakeLists.txt").write_text(PROJECT)
    (source / "version.cpp").write_text(
        '#include <dovetail/compiler.h>\n#include <cstdio>\nint main() { std::puts(dovetail_compiler_version()); }\n'
    )
    _checked(["cmake", "-G", "Ninja", "-S", source, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"])
    _checked(["cmake", "--build", tmp_path / "build"])
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Mul", ["x", "x"], ["y"])], "square", tensors[:1], tensors[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "square.onnx").write_bytes(model.SerializeToString())
    artifact = tmp_path / "square.dvt"
    code, _, messages = call([tool("dovetail"), "compile", tmp_path / "square.onnx", "-o", artifact, "--mesh", "y=2"])
    assert code == 0, messages
    ranks, values = _checked([tmp_path / "build/run_artifact", artifact]).splitlines()
    assert ranks == "2 ranks"
    # The program's inputs are ramps from 0 to 1.
    np.testing.assert_allclose(np.array(values.split()[1:], float), (np.arange(8) / 8) ** 2)
    assert _checked([tmp_path / "build/version"]) == json.loads(call([tool("dovetail"), "--version", "--json"])[1])[
        "version"
    ] + "\n"  # fmt: skip
    if place == "installed":
        flags = _checked(
            ["pkg-config", "--cflags", "--libs", "dovetail"], env={"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
        ).split()
        program = tmp_path / "by-pkg-config"
        _checked(["c++", "-std=c++17", source / "run_artifact.cpp", "-o", program, *flags])
        environment = {"LD_LIBRARY_PATH": str(prefix / "lib")}
        assert _checked([program, artifact], env=environment).startswith("2 ranks")


def test_installation_names_no_folder_of_the_build(installed):
    """Programs and libraries may be moved; none looks for libraries in LLVM's or the current folder. Nor in the build."""
    names = {path.name for path in [*installed.glob("bin/*"), *installed.glob("lib/*.so*")]}
    assert {"dovetail", "dovetail-run", "libdovetail.so", "libdovetail-compiler.so"} <= names
    for folder in (installed, build_dir()):
        for path in [folder / part / name for part in ("bin", "lib") for name in names]:
            if not path.exists():
                continue
            paths = [line for line in _checked(["readelf", "-d", path]).splitlines() if "PATH" in line]
            for entry in [entry for line in paths for entry in line.split("[")[1].split("]")[0].split(":")]:
                assert entry.startswith("$ORIGIN"), f"{path}: '{entry}'"


def test_programs_are_built_before_they_are_installed(installed):
    """`make wheel` and `pip wheel .` build one target, in a checkout in which nothing is built."""
    built = _checked(["ninja", "-C", build_dir(), "-t", "query", "DovetailPrograms"])
    built = {pathlib.Path(line.strip()).name for line in built.splitlines()}
    names = {path.name for path in [*installed.glob("bin/*"), *installed.glob("lib/*.so")]}
    assert len(names) >= 4 and names <= built


def test_packages_to_install_are_named(tmp_path):
    """Without what scripts/setup makes, CMake says that it is to be run."""
    command = ["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", f"-DDOVETAIL_ONNX_PREFIX={tmp_path / 'none'}"]
    result = _run([*command, "-DCMAKE_CXX_COMPILER=clang++-22"])
    assert result.returncode != 0 and "run scripts/setup in the checkout" in " ".join(result.stderr.split())


def test_programs_do_not_look_in_the_current_folder(site, tmp_path):
    """A file of a program's name in the current folder is not taken for the program, whose libraries are beside it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "bin/dovetail").write_text("")
    (tmp_path / "bin/dovetail-run").write_text("")
    (tmp_path / "lib/libdovetail-compiler.so.0.1").write_text("no library")
    for folder in (site / "dovetail/bin", build_dir() / "bin"):
        for program, arguments in (("dovetail", ["operators"]), ("dovetail-run", ["devices"])):
            command = ["bash", "-c", f"exec -a {program} {folder / program} {' '.join(arguments)}"]
            shown = _checked(command, cwd=tmp_path / "bin")
            assert "in none of these folders" not in shown


def test_nvidia_packages_beside(site, tmp_path):
    """NVIDIA's assembler and libraries are found in the Python environment, without a variable."""
    imitations = build_dir() / "test/unit/Cuda"
    if not (imitations / "cudnn").exists():
        pytest.skip("the plug-in for CUDA is not built")
    beside = tmp_path / "site"
    shutil.copytree(site, beside, copy_function=os.link)
    for name in ("driver", "cudnn", "cublaslt"):
        shutil.copytree(imitations / name, beside / "nvidia" / name / "lib")
    programs = beside / "dovetail/bin"
    devices = _checked([programs / "dovetail-run", "devices"])
    assert "Fake 9000" in devices, "the imitated device"

    assembler = beside / "nvidia/cu13/bin/ptxas"
    assembler.parent.mkdir(parents=True)
    assembler.write_text("#!/bin/sh\necho no such instruction\nexit 3\n")
    assembler.chmod(0o755)
    compiled = _run([programs / "dovetail", "compile", CELLS, "-o", tmp_path / "cells.dvt", "--target", "cuda",
                     "--dim", "height=24", "--dim", "width=16", "--arch", "sm_90"])  # fmt: skip
    assert compiled.returncode != 0
    assert f"'{assembler}' cannot assemble kernels for sm_90 (exit code 3): no such instruction" in compiled.stderr
