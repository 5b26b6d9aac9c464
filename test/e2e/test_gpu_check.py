# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/gpu-check without a GPU: up to the point where it asks for one, and beyond with programs for CPUs."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
from dovetail_models import run_onnxruntime
from harness.backend import ROOT, build_dir
from harness.compare import differences
from harness.sanitizers import sanitizers

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]

from gpucheck.package import DamagedPackage, Package, PackageWriter  # noqa: E402

pytestmark = pytest.mark.skipif(bool(sanitizers(build_dir())), reason="packages are of builds without sanitizers")

MODEL = "small-vit-encoder"


def _pack(output, *arguments):
    command = [sys.executable, ROOT / "scripts/gpu-check", "pack", "-o", output, *arguments]
    environment = dict(os.environ, DOVETAIL_BUILD_DIR=str(build_dir()))
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == 0, result.stderr
    return output


#: Nothing of the build, and no GPU if there is one.
CLEAN = {"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}


def _run(package, folder, *arguments, **environment):
    """Runs a package as it is run elsewhere; returns (the finished process, the report)."""
    report = folder / "report.json"
    command = [sys.executable, package / "gpu-check", "run", "--json", report, *arguments]
    result = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, timeout=300, cwd=folder, env=CLEAN | environment
    )
    return result, json.loads(report.read_text())


@pytest.fixture(scope="module")
def for_cpu(backend, tmp_path_factory):
    """A package of programs for CPUs."""
    folder = tmp_path_factory.mktemp("gpu-check") / "package"
    return _pack(folder, "--target", "cpu", "--models", MODEL, "--operators", "6")


@pytest.fixture
def tampered(for_cpu, tmp_path):
    """A copy to be changed: (folder, manifest, function that writes a file of the package anew)."""
    import hashlib
    import shutil

    folder = tmp_path / "package"
    shutil.copytree(for_cpu, folder)
    manifest = json.loads((folder / "manifest.json").read_text())

    def replace(name, data):
        (folder / "files" / name).write_bytes(data)
        manifest["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "holes": []}
        (folder / "manifest.json").write_text(json.dumps(manifest))

    return folder, manifest, replace


def test_without_device(backend, tmp_path):
    file = _pack(tmp_path / "check.tar.xz", "--models", MODEL, "--operators", "2")
    there = tmp_path / "there"
    there.mkdir()
    subprocess.run(["tar", "xf", file], cwd=there, check=True)
    result, report = _run(there / "gpu-check", there)
    assert result.returncode == 8, result.stderr
    (sentence,) = result.stderr.splitlines()
    assert report["parts"]["devices"]["note"] and sentence == f"gpu-check: error: {report['parts']['devices']['note']}"
    assert report["complete"] and list(report["parts"]) == ["devices"]


def test_programs_for_cpus(for_cpu, tmp_path):
    result, report = _run(for_cpu, tmp_path, "--parts", "models,operators,peers,ranks,exchanges,nccl")
    assert result.returncode == 0, result.stdout + result.stderr
    parts = report["parts"]
    assert report["complete"]
    rows = parts["models"]["rows"]
    assert all(row["status"] == "ok" and 0 < row["error"] < 1e-4 for row in rows)
    found = {(row["ranks"], row["libraries"]) for row in rows if row["style"] == "uneven"}
    assert found == {(ranks, libraries) for ranks in (1, 2, 3, 4) for libraries in (True, False)}
    assert [row["status"] for row in parts["operators"]["rows"]] == ["ok"] * 6
    assert parts["nccl"]["status"] == "skipped"
    (peer,) = (row for row in parts["peers"]["rows"] if row["how"] == "ONNX Runtime")
    assert peer["status"] == "ok" and peer["error"] < 1e-5
    (ratio,) = parts["peers"]["ratios"]
    assert ratio["best_peer_ms"] <= peer["median_ms"] and ratio["ours_ms"] > 0
    assert ratio["ratio"] == pytest.approx(ratio["ours_ms"] / ratio["best_peer_ms"])
    assert [(row["ranks"], row["status"]) for row in parts["ranks"]["rows"]] == [(n, "ok") for n in (1, 2, 4)]
    assert all(0 < row["issue_ms"] <= row["max_ms"] for row in parts["ranks"]["rows"])
    rates = {(row["name"], row["gigabytes_per_second"] > 0) for row in parts["exchanges"]["rows"]}
    assert len(rates) == 6 and all(positive for _, positive in rates)
    # Half of a matrix goes to the other of two ranks.
    (row,) = (row for row in parts["exchanges"]["rows"] if row["name"] == "all-to-all, 2 ranks")
    assert row["bytes"] == 1024 * 2048 * 4 // 2


@pytest.mark.parametrize("name", ["small-ppocr-det", "small-unet2d-transposed", "small-unet3d", "small-vit"])
def test_translation_to_pytorch(name):
    torch = pytest.importorskip("torch")
    contents, pack = (importlib.import_module(f"gpucheck.{module}") for module in ("contents", "pack"))
    torch_model = importlib.import_module("gpucheck.torch_model")
    model = contents.model_makers()[name]()
    expected = run_onnxruntime(model.proto, model.inputs)
    module, names = torch_model.build(*pack.graph_of(model.proto), model.inputs, "cpu")
    for convert in (lambda values: values, lambda values: torch_model.channels_last(module, values)):
        values = convert([torch.from_numpy(value) for value in model.inputs.values()])
        with torch.inference_mode():
            actual = {name: value.numpy() for name, value in zip(names, module(*values))}
        assert not differences(actual, expected)


def test_wrong_result(tampered, tmp_path):
    """The first operator is expected to give something else."""
    folder, manifest, replace = tampered
    name = manifest["operators"][0]["arrays"]
    with np.load(folder / "files" / name) as file:
        arrays = {key: file[key] for key in file.files}
    (output,) = (key for key in arrays if key.startswith("output/"))
    arrays[output].reshape(-1)[-1] += 1
    np.savez(tmp_path / "wrong.npz", **arrays)
    replace(name, (tmp_path / "wrong.npz").read_bytes())
    result, report = _run(folder, tmp_path, "--parts", "operators")
    assert result.returncode == 1
    wrong, *others = report["parts"]["operators"]["rows"]
    assert wrong["status"] == "differs" and "1 of " in wrong["message"]
    assert len(others) == 5 and all(row["status"] == "ok" for row in others)


def test_program_that_does_not_load(tampered, tmp_path):
    folder, manifest, replace = tampered
    replace(manifest["operators"][1]["program"], b"no program")
    result, report = _run(folder, tmp_path, "--parts", "operators")
    assert result.returncode == 1
    assert [row["status"] for row in report["parts"]["operators"]["rows"]] == ["ok", "error"] + ["ok"] * 4


def test_damaged_file(tampered, tmp_path):
    folder, manifest, _ = tampered
    name = manifest["operators"][0]["program"]
    (folder / "files" / name).write_bytes((folder / "files" / name).read_bytes()[:-1])
    result, report = _run(folder, tmp_path, "--parts", "operators")
    assert result.returncode == 1
    assert f"{name} in " in report["parts"]["operators"]["rows"][0]["message"]


def _end(package, folder, *arguments):
    """How `run` ends where there may be no report: (exit code, what it says)."""
    command = [sys.executable, package / "gpu-check", "run", *arguments]
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=folder, env=CLEAN)
    return result.returncode, result.stderr


@pytest.mark.parametrize("name", ["bin/dovetail-run", "lib/libdovetail.so"])
def test_missing_file(tampered, tmp_path, name):
    folder, _, _ = tampered
    (folder / name).unlink()
    code, message = _end(folder, tmp_path)
    assert code == 7 and message == f"gpu-check: error: {name} is missing from {folder}; unpack the package again\n"


def test_no_parts(for_cpu, tmp_path):
    code, message = _end(for_cpu, tmp_path, "--parts", ",")
    assert code == 2 and "--parts: no part is named; there are models, operators" in message


def test_nothing_to_compare(tampered, tmp_path):
    """A package without models and operators is no success."""
    folder, manifest, _ = tampered
    manifest |= {"models": [], "operators": []}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    result, report = _run(folder, tmp_path, "--parts", "models,operators")
    assert result.returncode == 1
    assert [report["parts"][part]["status"] for part in ("models", "operators")] == ["incomplete"] * 2


def test_nothing_expected():
    verdict = importlib.import_module("gpucheck.evaluate").verdict
    assert verdict({"y": np.zeros(3, np.float32)}, {}, 1e-4)["status"] == "error"


def test_out_of_time(for_cpu, tmp_path):
    """What was not reached is no success."""
    result, report = _run(for_cpu, tmp_path, "--seconds", "2", "--parts", "operators")
    assert result.returncode == 1
    assert report["parts"]["operators"]["status"] == "incomplete"


def test_interrupted(for_cpu, tmp_path):
    """A limit from outside loses nothing of what was found."""
    report = tmp_path / "report.json"
    command = [sys.executable, for_cpu / "gpu-check", "run", "--json", report]
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=CLEAN)
    rows = lambda: json.loads(report.read_text())["parts"].get("models", {}).get("rows", [])
    for _ in range(600):
        if report.exists() and rows():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 1 and b"ended by SIGTERM" in message
    assert rows() and not json.loads(report.read_text())["complete"]


#: Says that there are two GPUs, and is each of their processes.
IMITATION = """#!{python}
import json, os, sys
arguments = sys.argv[1:]
if arguments[0] == "devices":
    device = {{"kind": "cuda", "name": "imitation", "memory_bytes": 1 << 34}}
    print(json.dumps({{"devices": [device | {{"ordinal": i}} for i in range(2)], "libraries": {{}}}}))
    sys.exit(0)
if "--autotune" in arguments:
    arguments.remove("--autotune")
if "--comm" in arguments:
    at = arguments.index("--comm")
    assert arguments[at + 1] == "nccl" and os.environ["MASTER_ADDR"] and os.environ["MASTER_PORT"]
    assert int(os.environ["LOCAL_RANK"]) < int(os.environ["WORLD_SIZE"]) <= 2
    arguments[at + 1] = "local"
    if os.environ["RANK"] != "0":
        sys.exit({code})
    if {wrong_replay} and arguments[0] == "run" and int(arguments[arguments.index("--warmup") + 1]) > 1:
        arguments = [a.split("=@")[0] + "=random:1" if "=@" in a else a for a in arguments]
os.execv("{real}", ["dovetail-run", *arguments])
"""

#: Finds something with one of its tools.
SANITIZER = """#!{python}
import subprocess, sys
log = sys.argv[sys.argv.index("--log-file") + 1]
tool = sys.argv[sys.argv.index("--tool") + 1]
code = subprocess.call(sys.argv[sys.argv.index("--log-file") + 2 :])
found = tool == "racecheck"
text = "RACECHECK SUMMARY: 1 hazard displayed" if found else "ERROR SUMMARY: 0 errors"
open(log, "w").write("========= " + text)
sys.exit(86 if found else code)
"""


def _executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize(("code", "wrong_replay"), [(0, False), (8, False), (0, True)])
def test_imitated_gpus(tampered, tmp_path, code, wrong_replay):
    """The parts that need GPUs, with programs for CPUs: what they start, and what they make of it."""
    folder, manifest, _ = tampered
    manifest["target"] = "cuda"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    real = folder / "bin/real"
    (folder / "bin/dovetail-run").rename(real)
    imitation = IMITATION.format(python=sys.executable, real=real, code=code, wrong_replay=wrong_replay)
    _executable(folder / "bin/dovetail-run", imitation)
    _executable(tmp_path / "cuda/bin/compute-sanitizer", SANITIZER.format(python=sys.executable))
    cuda = {"CUDA_HOME": str(tmp_path / "cuda"), "CUDA_VISIBLE_DEVICES": "0,1"}
    result, report = _run(folder, tmp_path, "--parts", "gpus,nccl,sanitizers,peers", **cuda)
    assert result.returncode == 1
    peers = report["parts"]["peers"]
    assert [(row["how"], row["status"]) for row in peers["rows"]] == [("autotuned", "ok")]
    assert "onnxruntime is not measured" in peers["note"] and "torch is not measured" in peers["note"]
    assert [(row["ours_ms"] > 0, row["best_peer_ms"]) for row in peers["ratios"]] == [(True, None)]
    gpus, nccl, sanitizers = (report["parts"][part]["rows"] for part in ("gpus", "nccl", "sanitizers"))
    assert [(row["ranks"], row["gpus"], row["status"]) for row in gpus] == [(n, 2, "ok") for n in (2, 3, 4, 2, 4)]
    assert [row["ranks"] for row in nccl] == [2, 1]
    second = "differs" if wrong_replay else "ok"
    assert [row["status"] for row in nccl] == ["error" if code else second, second]
    assert not wrong_replay or all(row["message"].startswith("replay: ") for row in nccl)
    assert all(row["median_ms"] > 0 and row["error"] < 1e-4 for row in nccl if row["status"] == "ok")
    assert code == 0 or "exit codes [0, 8]" in nccl[0]["message"]
    without_libraries = sum(not case["libraries"] for case in manifest["operators"])
    found = [(row["tool"], row["status"], row["findings"], row["cases"]) for row in sanitizers]
    assert found == [("memcheck", "ok", 0, without_libraries), ("racecheck", "error", 1, without_libraries)]


def _check(tmp_path, seconds):
    """A check with a part that has so many seconds."""
    run, report = (importlib.import_module(f"gpucheck.{module}") for module in ("run", "report"))
    package = types.SimpleNamespace(manifest={"target": "cuda", "operators": []}, restored=tmp_path)
    check = run.Check(tmp_path, package, report.Report(tmp_path / "report.json", {}), report.Clock(seconds))
    check.report.begin("part", "a part")
    return check


@pytest.mark.parametrize(
    ("seconds", "status", "becomes", "part"),
    [(0, "late", "unfinished", "ok"), (60, "late", "error", "failed"), (0, "error", "error", "failed")],
)
def test_end_of_time(tmp_path, seconds, status, becomes, part):
    """Only what did not answer is unfinished at the end of the time: an error is one at any time."""
    check = _check(tmp_path, seconds)
    check.add({"name": "case", "status": status, "message": "no answer"})
    assert [row["status"] for row in check.report.rows] == [becomes]
    assert check.report.data["parts"]["part"]["status"] == part


class _SlowCases:
    """A process under a tool: each case takes a quarter of an hour of the check's time."""

    def __init__(self, check, log, text, replies, code):
        self.check, self.log, self.text, self.replies, self.code = check, log, text, iter(replies), code

    def __call__(self, request, timeout):
        assert timeout <= self.check.clock.part_left() + 1
        self.check.clock.end -= 900
        return next(self.replies)

    def close(self, timeout):
        self.log.write_text(self.text)
        return self.code


CLEAN_LOG = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
FOUND_LOG = "========= COMPUTE-SANITIZER\n========= Invalid __global__ read of size 4\n"
LATE = {"status": "late", "message": "no answer within 1 s"}


@pytest.mark.parametrize(
    ("replies", "code", "text", "part", "row", "cases", "left"),
    [
        ([{"status": "ok"}] * 2, 0, CLEAN_LOG, "incomplete", "ok", 2, "1 of 3"),
        ([{"status": "ok"}] * 2, 86, CLEAN_LOG.replace("0 errors", "1 error"), "failed", "error", 2, ""),
        ([{"status": "ok"}, LATE], None, CLEAN_LOG[:28], "incomplete", "unfinished", 0, "3 of 3"),
        ([{"status": "ok"}, LATE], None, FOUND_LOG, "failed", "error", 2, ""),
        ([{"status": "ok"}] * 2, None, "", "incomplete", "unfinished", 0, "3 of 3"),
    ],
)
def test_sanitizer_out_of_time(tmp_path, monkeypatch, replies, code, text, part, row, cases, left):
    """Cases that were not reached are told, and findings at the end of the time are findings."""
    exactness = importlib.import_module("gpucheck.exactness")
    check = _check(tmp_path, 1800)
    worker = _SlowCases(check, tmp_path / "memcheck.log", text, replies, code)
    monkeypatch.setattr(check, "new_worker", lambda prefix, log: worker)
    case = {"program": "", "arrays": "", "tolerance": 0, "floor": 0}
    batch = [case | {"name": f"case {number}"} for number in range(3)]
    for job in check.each([batch], lambda job: "batch", size=len):
        check.add(exactness._sanitize(check, "compute-sanitizer", "memcheck", job))
    (found,) = check.report.rows
    assert (found["status"], found["cases"]) == (row, cases)
    ended = check.report.data["parts"]["part"]
    assert ended["status"] == part and left in ended["note"] and bool(ended["note"]) == bool(left)


def test_package_shares_tensors(tmp_path):
    rng = np.random.default_rng(0)
    coarse = rng.choice(np.linspace(-1, 1, 16).astype(np.float32), 4099).tobytes()
    fine = rng.standard_normal(4099).astype(np.float32).tobytes()
    files = {"a": b"head" + coarse + b"middle" + fine, "b": fine + coarse + b"tail", "c": b"none"}
    writer = PackageWriter(tmp_path / "package")
    shared = writer.add_tensors([coarse, b"small", fine])
    for name, data in files.items():
        writer.add_file(name, data, shared)
    writer.close({})
    package = Package(tmp_path / "package", tmp_path / "restored")
    assert {name: package.path(name).read_bytes() for name in files} == files
    # 4 bits for each of the coarse values, 32 for the others, and what belongs to no tensor.
    assert (tmp_path / "package/tensors.bin").stat().st_size == (4099 + 1) // 2 + 4 * 4099
    assert (tmp_path / "package/files/a").read_bytes() == b"headmiddle"
    (tmp_path / "package/files/b").write_bytes(b"tall")
    package.forget("b")
    with pytest.raises(DamagedPackage):
        package.path("b")


def test_models_not_fetched(tmp_path):
    """Said before any model is made."""
    command = [sys.executable, ROOT / "scripts/gpu-check", "pack", "-o", tmp_path / "package"]
    environment = dict(os.environ, DOVETAIL_BUILD_DIR=str(build_dir()), DOVETAIL_DEPS=str(tmp_path))
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60, env=environment)
    assert result.returncode == 3
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith("gpu-check: error: ") and sentence.endswith(".onnx is missing: run scripts/fetch-models")
    assert not (tmp_path / "package").exists()


def test_too_large(tmp_path, monkeypatch):
    pack = importlib.import_module("gpucheck.pack")
    (tmp_path / "folder/lib").mkdir(parents=True)
    (tmp_path / "folder/lib/library").write_bytes(np.random.default_rng(0).bytes(1 << 20))
    monkeypatch.setattr(pack, "MOST_BYTES", 1 << 19)
    with pytest.raises(pack.PackError, match="lib/library 1.0 MiB"):
        pack.compress(tmp_path / "folder", tmp_path / "file.tar.xz")
    assert not list(tmp_path.glob("file*"))
