# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`gpu-check run --profile ten-minutes` on programs for CPUs: what it finds, and how it ends when something fails."""

import hashlib
import io
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import timed_package
from harness.backend import ROOT, build_dir
from harness.sanitizers import sanitizers
from timed_package import CLEAN, command, lines_of, run, statuses

sys.path.insert(0, str(ROOT / "scripts"))

from gpucheck import page, processes  # noqa: E402
from gpucheck.package import Package, pack_executable  # noqa: E402
from gpucheck.report import FOR_CPUS  # noqa: E402

pytestmark = pytest.mark.skipif(bool(sanitizers(build_dir())), reason="packages are of builds without sanitizers")

PARTS = list("0ABECTDFGH")


@pytest.fixture(scope="module")
def for_cpu(backend, tmp_path_factory):
    return timed_package.pack(tmp_path_factory.mktemp("timed") / "package", "cpu")


@pytest.fixture
def changed(for_cpu, tmp_path):
    """A copy of the package, to be changed."""
    return shutil.copytree(for_cpu, tmp_path / "package")


def test_programs_for_cpus(for_cpu, tmp_path):
    start = time.monotonic()
    process, result = run(for_cpu, tmp_path)
    assert process.returncode == 0, process.stdout + process.stderr
    assert time.monotonic() - start < 60
    assert list(result["parts"]) == ["devices", "smoke", *PARTS] and result["complete"]
    right = {name: "ok" for name in ("devices", "smoke", *"ABECDFG")}
    assert statuses(result) == right | {"0": "skipped", "T": "skipped", "H": "incomplete"}
    # A line for each measurement, as it came.
    lines = [json.loads(line) for line in (tmp_path / "ten-minutes.jsonl").read_text().splitlines()]
    assert lines[0]["heading"] and lines[0]["dovetail"] == result["dovetail"]
    lines = [line for line in lines if "heading" not in line]
    assert lines == result["measurements"]
    assert process.stdout.startswith(FOR_CPUS) and "A : " not in process.stdout
    assert [line["at_s"] for line in lines] == sorted(line["at_s"] for line in lines)
    assert [line["name"] for line in lines_of(result, "smoke")] == PARTS
    names = {"A": "resnet50", "B": "unet512", "C": "unet-1024", "D": "attention-4k", "F": "tile-small"}
    for part, name in names.items():
        (line,) = lines_of(result, part, name=name, variant="f32")
        assert line["status"] == "ok" and line["ms"] > 0 and line["error"] < 1e-4, (part, name)
    for part in "AB":
        (own,) = lines_of(result, part, name="resnet50", variant="f32-no-libraries")
        assert own["status"] == "ok" and own["ms"] > 0
    (engines,) = lines_of(result, "A", name="resnet50", variant="f32")
    assert engines["joined"] == "by steps" and [step["kind"] for step in engines["steps"]] == ["convolution"] * 2
    assert all(step["us"] > 0 and step["implementation"] for step in engines["steps"])
    # What needs PyTorch or a GPU says so.
    skipped = lines_of(result, "E") + lines_of(result, "B", layout="NHWC") + lines_of(result, "G", name="NCCL")
    assert len(skipped) > 4 and all(line["status"] == "skipped" and "GPU" in line["message"] for line in skipped)
    assert [line["ranks"] for line in lines_of(result, "G", status="ok")] == [1, 2, 2, 4]
    assert [line["status"] for line in lines_of(result, "H")] == ["ok", "ok"]
    lzma.decompress((tmp_path / "ten-minutes.log.xz").read_bytes())
    _check_page(for_cpu, tmp_path)


def _check_page(package, folder):
    command = [sys.executable, package / "gpu-check", "report", folder / "ten-minutes.json", "-o", folder / "page.md"]
    subprocess.run(list(map(str, command)), check=True, env=CLEAN)
    text = (folder / "page.md").read_text()
    assert text.startswith("# Ten minutes on ") and FOR_CPUS in text
    assert "undecided: part A: no kernels were seen" in text and "| resnet50 |" in text


def test_wrong_profile(for_cpu, tmp_path):
    command = [sys.executable, str(for_cpu / "gpu-check"), "run"]
    process = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=CLEAN)
    assert process.returncode == 2 and "add --profile ten-minutes" in process.stderr
    process, _ = run(for_cpu, tmp_path, "--parts", "A,models")
    assert process.returncode == 2 and "there is no part 'models'; there are 0, A, B, E" in process.stderr
    assert process.stderr.startswith("usage: gpu-check run")
    process = subprocess.run([*command, "--try", "models"], capture_output=True, text=True, cwd=tmp_path, env=CLEAN)
    assert process.returncode == 2 and "--try: the profile default does not try its parts" in process.stderr


def test_parts_that_are_only_tried(for_cpu, tmp_path):
    process, result = run(for_cpu, tmp_path, "--parts", "F", "--try", "D,G")
    assert process.returncode == 0 and set(statuses(result)) == {"devices", "smoke", "F"}
    assert [(line["name"], line["status"]) for line in lines_of(result, "smoke")] == [
        ("D", "ok"), ("F", "ok"), ("G", "ok")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("--seconds nan", 2, "nan is not a number of at least 10"),
        ("--seconds inf", 2, "inf is not"),
        ("--seconds -1", 2, "-1 is not"),
        ("--seconds 3", 2, "3 is not"),
        ("--try X", 2, "--try: there is no part 'X'; there are 0, A, B, E, C, T"),
        ("--json other.jsonl", 2, "the name has to end in .json"),
        ("--json .", 3, ". is a folder"),
        ("--json folder", 3, "folder is a folder"),
        ("--json missing/result.json", 3, "the folder missing does not exist"),
        ("--json there.json", 3, "there.jsonl is there already: name another file with --json"),
    ],
)
def test_wrong_options(for_cpu, tmp_path, arguments, code, message):
    """At once, before anything is tried."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "there.jsonl").write_text("of a run that was killed")
    process, _ = run(for_cpu, tmp_path, *arguments.split())
    assert process.returncode == code and message in process.stderr and not process.stdout
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "there.jsonl"]


def test_earlier_result(for_cpu, tmp_path):
    """It is replaced only where that is wanted."""
    (tmp_path / "ten-minutes.json").write_text("{}")
    assert run(for_cpu, tmp_path, "--parts", "F")[1] == {}
    process, result = run(for_cpu, tmp_path, "--parts", "F", "--force")
    assert process.returncode == 0 and statuses(result)["F"] == "ok"


def test_wrong_expectation(changed, tmp_path):
    """A program that computes something else is not ranked: it has no time."""
    package = Package(changed, tmp_path / "restored")
    with np.load(package.path("timed/unet512.npz")) as file:
        arrays = {key: file[key] for key in file.files}
    arrays["0/values"] = arrays["0/values"] + np.float32(1)
    data = io.BytesIO()
    np.savez(data, **arrays)
    manifest = package.manifest
    (changed / "files/timed/unet512.npz").write_bytes(data.getvalue())
    digest = hashlib.sha256(data.getvalue()).hexdigest()
    manifest["files"]["timed/unet512.npz"] = {"bytes": len(data.getvalue()), "sha256": digest, "holes": []}
    (changed / "manifest.json").write_text(json.dumps(manifest))
    process, result = run(changed, tmp_path, "--parts", "A,B")
    assert process.returncode == 1 and statuses(result)["B"] == statuses(result)["A"] == "failed"
    for part in "AB":
        (wrong,) = lines_of(result, part, name="unet512")
        assert wrong["status"] == "differs" and "ms" not in wrong and wrong["message"].startswith("first replay: ")
        assert lines_of(result, part, name="resnet50")[0]["status"] == "ok"


def test_part_that_raises(changed, tmp_path):
    """It is left out after the smoke, with its reason; all others run."""
    (changed / "gpucheck/attention.py").write_text("def attention(check):\n    raise ValueError('made up')\n")
    process, result = run(changed, tmp_path, "--parts", "B,D,F")
    assert process.returncode == 1
    assert statuses(result)["D"] == "failed" and "in the smoke: ValueError: made up" in result["parts"]["D"]["note"]
    assert statuses(result)["B"] == statuses(result)["F"] == "ok" and not lines_of(result, "D")


def test_part_that_raises_later(changed, tmp_path):
    """What a part has found before stays."""
    text = (changed / "gpucheck/attention.py").read_text()
    late = (
        "def attention(check):\n    _attention(check)\n    if not check.smoke:\n        raise ValueError('made up')\n"
    )
    (changed / "gpucheck/attention.py").write_text(text.replace("def attention(", "def _attention(") + "\n\n" + late)
    process, result = run(changed, tmp_path, "--parts", "D,F")
    assert process.returncode == 1 and statuses(result)["D"] == "failed" and statuses(result)["F"] == "ok"
    assert result["parts"]["D"]["note"] == "ValueError: made up" and "made up" in result["parts"]["D"]["trace"]
    assert lines_of(result, "D", status="ok")


#: Seconds that tell the processes of these tests from those of other workers.
SLEEP = f"1000.{os.getpid()}"


def _slow_tool(package, condition):
    """A dovetail-run that starts a process and does not end, where `condition`, Python about `arguments`, is true."""
    real = package / "bin/real"
    (package / "bin/dovetail-run").rename(real)
    (package / "bin/dovetail-run").write_text(
        f"#!{sys.executable}\nimport os, subprocess, sys\narguments = sys.argv[1:]\n"
        f"if {condition}:\n    subprocess.run(['sleep', '{SLEEP}'])\n"
        f"os.execv({str(real)!r}, ['dovetail-run', *arguments])\n"
    )
    (package / "bin/dovetail-run").chmod(0o755)


def _sleepers():
    """Processes of `_slow_tool`."""
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listing.splitlines() if line == f"sleep {SLEEP}"]


def test_program_that_hangs(changed, tmp_path):
    """A deadline ends a program with all that it started, and other parts have their time."""
    _slow_tool(changed, "arguments[0] == 'bench' and 'unet512-f32.dvt' in arguments[1]")
    start = time.monotonic()
    process, result = run(changed, tmp_path, "--seconds", 20, "--parts", "A,F")
    assert time.monotonic() - start < 90 and process.returncode == 0, process.stdout
    # What was not reached at first has the time that is left.
    found = {line["name"]: line["status"] for line in lines_of(result, "A")}
    assert found == {"resnet50": "ok", "unet512": "unfinished", "swin": "ok"} and len(lines_of(result, "A")) == 4
    assert statuses(result)["A"] == "incomplete" and statuses(result)["F"] == "ok"
    assert not _sleepers()


def test_measurement_that_hangs(changed, tmp_path):
    """So does one in the process that measures."""
    text = (changed / "gpucheck/probe.py").read_text()
    condition = 'request["entry"]["name"] == "swin" and request["repetitions"] > 1'
    hang = f"    if {condition}:\n        time.sleep(1000)\n    import dovetail\n"
    (changed / "gpucheck/probe.py").write_text(text.replace("    import dovetail\n", hang, 1))
    start = time.monotonic()
    process, result = run(changed, tmp_path, "--seconds", 20, "--parts", "B,F")
    assert time.monotonic() - start < 60 and process.returncode == 0, process.stdout
    assert [line["status"] for line in lines_of(result, "B", name="swin")] == ["unfinished"]
    assert statuses(result)["F"] == "ok"


def test_process_that_dies(changed, tmp_path):
    """The next measurement has a new process."""
    text = (changed / "gpucheck/probe.py").read_text()
    dying = '    if request["entry"]["name"] == "unet512":\n        os.abort()\n    import dovetail\n'
    (changed / "gpucheck/probe.py").write_text("import os\n" + text.replace("    import dovetail\n", dying, 1))
    process, result = run(changed, tmp_path, "--parts", "B")
    assert process.returncode == 1
    found = {line["name"]: line for line in lines_of(result, "B", variant="f32")}
    assert found["unet512"]["status"] == "error" and "killed by signal 6" in found["unet512"]["message"]
    assert found["resnet50"]["status"] == found["swin"]["status"] == "ok"


def test_out_of_time(for_cpu, tmp_path):
    """Where nothing was compared, nothing is right."""
    process, result = run(for_cpu, tmp_path, "--seconds", "1", GPU_CHECK_LEAST_SECONDS="1")
    assert process.returncode == 1 and result["complete"] and "nothing was compared" in process.stderr
    assert set(statuses(result).values()) <= {"ok", "skipped", "incomplete"}
    assert statuses(result)["H"] == "incomplete"


def test_package_that_is_only_read(changed, tmp_path):
    """A packed runtime is unpacked elsewhere, and works there."""
    manifest = json.loads((changed / "manifest.json").read_text())
    for name in manifest["runtime"]:
        if "dovetail" in name:
            pack_executable(changed / name)
    files = lambda: {f.relative_to(changed) for f in changed.rglob("*") if f.is_file() and f.suffix != ".pyc"}
    before = files()
    process, result = run(changed, tmp_path, "--parts", "A,F")
    assert process.returncode == 0, process.stdout + process.stderr
    assert statuses(result)["A"] == statuses(result)["F"] == "ok" and files() == before


#: Files of the script, which are all in the manifest.
LOST = ("gpucheck/rules.py", "gpucheck/__init__.py", "harness/compare.py", "python/dovetail/__init__.py")


@pytest.mark.parametrize("damage", ["missing", "short", "changed", "runtime", "no manifest", "tensors", *LOST])
def test_damaged_package(changed, tmp_path, damage):
    """Exit code 7, before anything is measured where sizes tell."""
    name = next(
        name for name in json.loads((changed / "manifest.json").read_text())["files"] if name.endswith("f32.dvt")
    )
    file = changed / "files" / name
    if damage == "missing":
        file.unlink()
    elif damage == "short":
        file.write_bytes(file.read_bytes()[:-9])
    elif damage == "changed":
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0xFF
        file.write_bytes(data)
    elif damage == "tensors":
        (changed / "tensors.bin").unlink()
    elif damage in LOST:
        (changed / damage).unlink()
    elif damage == "runtime":
        (changed / "bin/dovetail-run").unlink()
    else:
        (changed / "manifest.json").write_text("{}")
    process, _ = run(changed, tmp_path, "--parts", "B")
    assert process.returncode == 7
    assert ("run the script of the package itself" if damage == "no manifest" else "unpack") in process.stderr
    if damage in (*LOST, "tensors"):
        lost = "tensors.bin" if damage == "tensors" else damage
        assert process.stderr.startswith(f"gpu-check: error: {lost} is missing from")


@pytest.mark.parametrize("number", [0, 1])
def test_damaged_operator(changed, tmp_path, number):
    """The reason is the damage, whether the smoke finds it or the part."""
    file = changed / "files" / json.loads((changed / "manifest.json").read_text())["operators"][number]["arrays"]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    process, result = run(changed, tmp_path, "--parts", "H")
    assert process.returncode == 7
    assert f"H       failed ({'in the smoke: ' if number == 0 else ''}operators/{number}.npz in" in process.stdout
    assert f"error: operators/{number}.npz in {changed} is damaged" in process.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_interrupted(changed, tmp_path, number):
    """A limit from outside loses nothing of what was found, and leaves no process behind."""
    _slow_tool(changed, "arguments[0] == 'bench' and 'unet512-f32.dvt' in arguments[1]")
    started = command(changed, "--parts", "B,A")
    process = subprocess.Popen(started, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=tmp_path, env=CLEAN)
    lines = tmp_path / "ten-minutes.jsonl"
    for _ in range(300):
        if lines.exists() and '"part": "A"' in lines.read_text() and _sleepers():
            break
        time.sleep(0.1)
    process.send_signal(number)
    _, message = process.communicate(timeout=30)
    assert process.returncode == 1 and f"ended by {number.name}" in message.decode()
    result = json.loads((tmp_path / "ten-minutes.json").read_text())
    assert not result["complete"] and lines_of(result, "A", name="resnet50")[0]["status"] == "ok"
    assert not _sleepers()


def test_killed(for_cpu, tmp_path):
    """The lines say what the run was."""
    started = command(for_cpu, "--parts", "A,B")
    environment = CLEAN | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(started, stdout=subprocess.DEVNULL, cwd=tmp_path, env=environment)
    lines = tmp_path / "ten-minutes.jsonl"
    for _ in range(600):
        if lines.exists() and '"part": "A"' in lines.read_text():
            break
        time.sleep(0.05)
    process.kill()
    process.wait()
    result = page.read(lines)
    assert result["dovetail"] and result["target"] == "cpu" and result["devices"] and not result["complete"]
    assert FOR_CPUS in page.page(result) and "The run was ended before its end." in page.page(result)


def test_output_that_goes_away(for_cpu, tmp_path):
    """Nobody has to read what a run prints."""
    started = command(for_cpu, "--parts", "A,F")
    process = subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=CLEAN)
    process.stdout.close()
    process.stderr.close()
    assert process.wait(60) == 0
    result = json.loads((tmp_path / "ten-minutes.json").read_text())
    assert result["complete"] and statuses(result)["A"] == statuses(result)["F"] == "ok"


def test_watchdog(tmp_path):
    """It ends what nobody waits for."""
    running = processes.Processes()
    dog = processes.Watchdog(running, time.monotonic() + 60)
    dog.GRACE = 0
    sleeper = running.start(["sleep", "1000.5"])
    dog.watch(time.monotonic() + 0.1)
    assert sleeper.wait(10) == -signal.SIGKILL and dog.fired
    dog.stop()
    code, output, said = running.run(["sh", "-c", "echo one; echo two >&2; exit 3"], 10)
    assert (code, output, said) == (3, "one\n", "two\n")
    assert running.run(["sleep", "1000.75"], 0.2)[0] is None
