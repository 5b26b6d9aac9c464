"""The lit suite: *.mlir, *.onnxtxt and *.test below this folder."""

import os
import sys

import lit.formats

config.name = "Dovetail"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".onnxtxt", ".test"]
config.excludes = ["Inputs", "unit", "e2e", "conformance", "CMakeLists.txt"]
config.test_source_root = os.path.join(config.dovetail_source_dir, "test")
config.test_exec_root = os.path.join(config.dovetail_build_dir, "test")

venv_python = os.path.join(config.dovetail_source_dir, ".venv", "bin", "python")
python = venv_python if os.path.exists(venv_python) else sys.executable
config.substitutions.append(("%python", python))

# Full paths, so that a program from elsewhere on PATH is never the one tested. The look-arounds keep a name from
# being replaced inside a longer name, a path or a flag. Longer names come first.
programs = [(config.dovetail_tools_dir, name) for name in ("dovetail-opt", "dovetail-run", "dovetail")]
programs += [(config.llvm_tools_dir, name) for name in ("FileCheck", "not", "split-file", "count")]
for folder, name in programs:
    config.substitutions.append((r"(?<![\w./%-])" + name + r"(?![\w./-])", os.path.join(folder, name)))

# Tests compare what tools say, however long they take on a busy machine.
config.environment["DOVETAIL_PROGRESS"] = "never"

variables = ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "HOME", "DOVETAIL_MAX_CPU", "GLIBC_TUNABLES")
for variable in variables:
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
