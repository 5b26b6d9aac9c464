# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries and plug-ins of other versions, and what `--version` says; docs/formats.md has the promises."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from harness.backend import ROOT, build_dir, call, tool
from harness.sanitizers import sanitizers, without_preload
from onnx import TensorProto, helper

pytestmark = pytest.mark.quick

LIBRARIES = {"dovetail": "dovetail_version", "dovetail-compiler": "dovetail_compiler_version"}
INCOMPATIBLE = 7
#: What the runtime and plug-ins of this build have in common.
PLUGIN_BUILD = build_dir() / "include/dovetail/runtime/PluginBuild.h"


@functools.cache
def _version():
    return _facts("dovetail")["version"]


def _facts(program):
    code, text, messages = call([tool(program), "--version", "--json"])
    assert code == 0, messages
    return json.loads(text)


def _build(path, code):
    """A shared library of C code."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text(code)
    subprocess.run(["clang-22", "-shared", "-fPIC", source, "-o", path], check=True, env=without_preload())
    source.unlink()
    return path


def _build_library(folder, name, version, file=None):
    """A library that says it is of a version; before there were versions, none did."""
    function = LIBRARIES[name]
    code = f'const char *{function}(void) {{ return "{version}"; }}\n' if version else "int dovetail_other;\n"
    return _build(folder / (file or f"lib{name}.so"), code)


@pytest.fixture(scope="module")
def artifact(backend, tmp_path_factory):
    """y = x + x on two ranks."""
    folder = tmp_path_factory.mktemp("versions")
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "twice", tensors[:1], tensors[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    code, _, messages = call(
        [tool("dovetail"), "compile", folder / "model.onnx", "-o", folder / "model.dvt", "--mesh", "y=2"]
    )
    assert code == 0, messages
    np.save(folder / "x.npy", np.arange(12, dtype=np.float32).reshape(4, 3))
    return folder / "model.dvt"


def _python(code, libraries=None):
    """(exit code, standard output, standard error) of Python code that uses the package."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    environment["DOVETAIL_LIBRARY_DIR"] = str(libraries or build_dir() / "lib")
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, timeout=120
    )
    return result.returncode, result.stdout, result.stderr


#: Prints the code and the message of what `load` raises.
LOAD = """
import sys, dovetail
try:
    dovetail.Program.load(sys.argv[1] if len(sys.argv) > 1 else {path!r})
    print("loaded")
except dovetail.DovetailError as error:
    print(error.code, error)
"""


# Libraries.


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("version", ["0.0.9", "99.0.0", None])
def test_libraries_of_another_build(artifact, tmp_path, name, version):
    """The folder of an older or a newer build, which Python finds."""
    for other in LIBRARIES:
        _build_library(tmp_path, other, version if other == name else _version())
    code = LOAD.format(path=str(artifact))
    if name == "dovetail-compiler":
        code = code.replace("dovetail.Program.load(", "dovetail.compile(")
    code, output, messages = _python(code, tmp_path)
    assert code == 0, messages
    found = f"Dovetail {version}" if version else "an older Dovetail"
    assert output.startswith(
        f"{INCOMPATIBLE} '{tmp_path}/lib{name}.so' is of {found}, but this Python package is of Dovetail {_version()}: "
    )
    assert "DOVETAIL_LIBRARY_DIR" in output and output.count("\n") == 1


@pytest.mark.parametrize("version", ["0.0.9", None])
def test_compiler_library_of_another_build(artifact, tmp_path, version):
    """Beside the program `dovetail`, which opens it by the name of its own minor version."""
    name = os.path.basename((build_dir() / "lib/libdovetail-compiler.so").readlink())
    (tmp_path / "bin").mkdir()
    shutil.copy(tool("dovetail"), tmp_path / "bin/dovetail")
    library = _build_library(tmp_path / "lib", "dovetail-compiler", version, name)
    code, output, messages = call([tmp_path / "bin/dovetail", "inspect", artifact])
    found = f"Dovetail {version}" if version else "an older Dovetail"
    assert (code, output) == (INCOMPATIBLE, "")
    assert messages == (
        f"dovetail: error: '{library}' is of {found}, but this program is of Dovetail {_version()}; install the two "
        "from the same release\n"
    )
    library.unlink()
    code, output, messages = call([tmp_path / "bin/dovetail", "inspect", artifact])
    assert (code, output) == (3, "") and "cannot load the compiler: " in messages and name in messages
    assert messages.count("\n") == 1
    # It is not needed to say of which version the program is.
    assert call([tmp_path / "bin/dovetail", "--version"])[0] == 0


@pytest.mark.parametrize("version, found", [("0.0.9", "Dovetail 0.0.9"), (None, "an older Dovetail")])
@pytest.mark.parametrize("file", ["libdovetail.so", "libdovetail.so.0"])
def test_two_versions_in_one_process(artifact, tmp_path, version, found, file):
    """Such as one that a program is linked with, and one that the Python package opens."""
    other = _build_library(tmp_path, "dovetail", version, file)
    code = f"import ctypes; ctypes.CDLL({str(other)!r}, ctypes.RTLD_GLOBAL)\n" + LOAD.format(path=str(artifact))
    code, output, messages = _python(code)
    assert code == 0, messages
    library = f"libdovetail.so.{_version().rpartition('.')[0]}"
    assert output == (
        f"{INCOMPATIBLE} this process has loaded {found} ('{other}') and Dovetail {_version()} "
        f"('{build_dir() / 'lib' / library}'); load one version of the library only\n"
    )


def test_the_version_that_was_used_first_stays_in_use(artifact, tmp_path):
    other = _build_library(tmp_path, "dovetail", "0.0.9")
    load = LOAD.format(path=str(artifact))
    code, output, messages = _python(f"{load}\nimport ctypes; ctypes.CDLL({str(other)!r}){load}")
    assert code == 0, messages
    assert output == "loaded\nloaded\n"


@pytest.mark.skipif(bool(sanitizers(build_dir())), reason="a sanitizer takes each library once")
def test_two_copies_of_one_version(artifact, tmp_path):
    """They do not take each other's calls, whatever the first one shows to all."""
    copy = tmp_path / "libdovetail.so"
    shutil.copy(build_dir() / "lib/libdovetail.so", copy)
    code, output, messages = _python(f"""
        import ctypes
        other = ctypes.CDLL({str(copy)!r}, ctypes.RTLD_GLOBAL)
        import dovetail, numpy as np
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        program = ctypes.c_void_p()
        assert other.dovetail_program_load({os.fsencode(artifact)!r}, ctypes.byref(program)) == 0
        np.testing.assert_array_equal(dovetail.Program.load({str(artifact)!r}).run({{"x": x}})["y"], x + x)
        print(other.dovetail_program_num_ranks(program))
    """)
    assert code == 0, messages
    assert output == "2\n"


# Plug-ins.


@pytest.mark.parametrize("version", [0, 10_000])
def test_plugins_of_another_version(artifact, tmp_path, monkeypatch, version):
    """They begin with their version; nothing behind it is looked at."""
    code = "#include <stdint.h>\nstatic const uint32_t plugin[] = {%d};\nconst void *%s(void) { return plugin; }\n"
    _build(tmp_path / "libdovetail_transport_other.so", code % (version, "dovetailTransportPlugin"))
    _build(tmp_path / "libdovetail_other.so", code % (version, "dovetailDevicePlugin"))
    monkeypatch.setenv("DOVETAIL_PLUGINS", str(tmp_path))
    for program in ("dovetail", "dovetail-run"):
        run = [tool(program), "run", artifact, "--comm", "other", "--output", tmp_path / "y.npz"]
        for command, name in ((run, "transport_other"), ([tool(program), "devices", "--target", "other"], "other")):
            code, _, messages = call(command)
            assert code == INCOMPATIBLE, f"{command}: exit code {code}: {messages}"
            assert f"the plug-in libdovetail_{name}.so has version {version} of its interface, but this" in messages
            assert "install the two from the same release" in messages and messages.count("\n") == 1
    assert not (tmp_path / "y.npz").exists()
    # Who does not ask for them is not concerned.
    assert call([tool("dovetail-run"), "devices", "--target", "cpu"])[0] == 0


def test_plugins_of_another_build(artifact, tmp_path, monkeypatch):
    """A plug-in of the same version whose headers, or whose compiler, were others."""
    libraries = {path.name: path for path in build_dir().glob("lib/libdovetail_*.so")}
    own = re.search('"([0-9a-f]{12})"', PLUGIN_BUILD.read_text())[1]
    for source, name in (("transport_sockets", "transport_other"), ("emulated", "other")):
        code = libraries[f"libdovetail_{source}.so"].read_bytes()
        assert code.count(own.encode()) == 1
        (tmp_path / f"libdovetail_{name}.so").write_bytes(code.replace(own.encode(), b"0123456789ab"))
    monkeypatch.setenv("DOVETAIL_PLUGINS", str(tmp_path))
    for program in ("dovetail", "dovetail-run"):
        run = [tool(program), "run", artifact, "--comm", "other", "--output", tmp_path / "y.npz"]
        for command, name in ((run, "transport_other"), ([tool(program), "devices", "--target", "other"], "other")):
            code, _, messages = call(command)
            assert code == INCOMPATIBLE, f"{command}: exit code {code}: {messages}"
            said = f"the plug-in libdovetail_{name}.so is of another build (0123456789ab) than this runtime ({own})"
            assert said in messages and "install the two from the same release" in messages
            assert messages.count("\n") == 1
    assert not (tmp_path / "y.npz").exists()


def test_plugin_build_tells_headers_apart(tmp_path):
    """Comments and other files do not matter, so that plug-ins need not be built again for them."""

    def digest(toolchain="clang", **edits):
        include = tmp_path / "include"
        shutil.rmtree(include, ignore_errors=True)
        shutil.copytree(ROOT / "runtime/include/dovetail", include)
        for name, (old, new) in edits.items():
            path = include / "runtime" / f"{name}.h"
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new, 1))
        values = {"SOURCE": include, "TOOLCHAIN": toolchain, "OUTPUT": tmp_path / "build.h"}
        command = ["cmake", *(f"-D{key}={value}" for key, value in values.items())]
        code, _, messages = call([*command, "-P", ROOT / "cmake/PluginBuild.cmake"])
        assert code == 0, messages
        return re.search('"([0-9a-f]{12})"', (tmp_path / "build.h").read_text())[1]

    own = digest()
    assert digest(Device=("///", "/// Note:")) == own
    assert digest(ProgramRunner=("struct ", "struct Other;\nstruct ")) == own
    assert digest(toolchain="gcc") != own
    # `Stream.h` is included by both.
    for name in ("Device", "Transport", "Stream"):
        assert digest(**{name: ("virtual ", "virtual int added();\n  virtual ")}) != own


# What --version says.


@pytest.mark.parametrize("program", ["dovetail", "dovetail-run"])
def test_version(program, tmp_path, monkeypatch):
    (tmp_path / "libdovetail_transport_pigeons.so").write_text("no library")
    monkeypatch.setenv("DOVETAIL_PLUGINS", str(tmp_path))
    facts = _facts(program)
    assert facts["version"] == _version()
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    # A build is of a commit before, or of none where git is missing.
    assert facts["commit"] == "unknown" or (len(facts["commit"]) == 40 and int(facts["commit"], 16) >= 0), commit
    assert facts["oldest_read_format"] <= facts["artifact_format"]
    assert facts["targets"][0] == "cpu"
    plugins = {plugin["name"]: plugin for plugin in facts["plugins"]}
    assert {"cuda", "mpi_mpich", "mpi_openmpi", "transport_mpi", "transport_nccl", "transport_pigeons"} <= set(plugins)
    assert not [target for target in facts["targets"] if "mpi" in target]
    assert plugins["transport_pigeons"]["file"] == str(tmp_path / "libdovetail_transport_pigeons.so")
    for name, plugin in plugins.items():
        assert os.path.exists(plugin["file"]) if "file" in plugin else f"libdovetail_{name}.so" in plugin["missing"]
    code, text, messages = call([tool(program), "--version"])
    assert code == 0 and text.startswith(f"{program} {_version()}\n"), messages
    for fact in ("version", "commit", "onednn"):
        assert facts[fact] in text
    if program == "dovetail":
        assert facts["llvm"] in text
        assert f"What to compile for: {', '.join(facts['targets'])}" in call([tool(program), "compile", "--help"])[1]
    else:
        assert "llvm" not in facts


@pytest.mark.skipif(bool(sanitizers(build_dir())), reason="sanitizers take time and memory")
@pytest.mark.parametrize("program", ["dovetail", "dovetail-run"])
def test_version_takes_little(program):
    """0.1 s on a machine that is not busy meanwhile, and 60 MB."""
    # The system counts what a process had before it became the program: this one has more, a fresh one has less.
    code = """
        import resource, subprocess, sys, time
        seconds = []
        for _ in range(5):
            begin = time.monotonic()
            subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
            seconds.append(time.monotonic() - begin)
        print(min(seconds), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
    """
    measure = [sys.executable, "-I", "-S", "-c", textwrap.dedent(code), tool(program), "--version"]
    seconds, memory = map(float, subprocess.run(measure, capture_output=True, text=True, check=True).stdout.split())
    assert seconds <= 0.1
    assert memory <= 60e6


def test_json_belongs_to_version():
    for program in ("dovetail", "dovetail-run"):
        code, text, messages = call([tool(program), "--json"])
        assert (code, text) == (2, "") and "--version" in messages


def test_package_version(artifact):
    code, output, messages = _python("import dovetail; print(dovetail.__version__)")
    assert (code, output) == (0, f"{_version()}\n"), messages


def test_artifacts_do_not_name_the_commit(artifact, tmp_path):
    """The program knows of what commit it is, the library does not: what they make is the same."""
    commit = _facts("dovetail")["commit"]
    content = artifact.read_bytes()
    assert f"dovetail {_version()}".encode() in content
    for library in LIBRARIES:
        assert commit == "unknown" or commit.encode() not in (build_dir() / f"lib/lib{library}.so").read_bytes()
    assert commit.encode() not in content
    code, _, messages = _python(f"""
        import dovetail
        dovetail.compile({str(artifact.with_name("model.onnx"))!r}, mesh="y=2").save({str(tmp_path / "again.dvt")!r})
    """)
    assert code == 0, messages
    assert (tmp_path / "again.dvt").read_bytes() == content
