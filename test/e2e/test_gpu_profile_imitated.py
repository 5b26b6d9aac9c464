# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`gpu-check run --profile ten-minutes` on the imitations of NVIDIA's driver and libraries, and where PyTorch is."""

import importlib.util
import json
import shutil
import signal
import sys

import pytest
import timed_package
from harness import fake_torch
from harness.backend import ROOT, build_dir
from harness.sanitizers import sanitizers
from timed_package import lines_of, run, statuses

sys.path.insert(0, str(ROOT / "scripts"))

from gpucheck.package import Package  # noqa: E402
from gpucheck.report import Clock  # noqa: E402

pytestmark = pytest.mark.skipif(bool(sanitizers(build_dir())), reason="packages are of builds without sanitizers")

FAKES = build_dir() / "test/unit/Cuda"


@pytest.fixture(scope="module")
def for_cuda(backend, tmp_path_factory):
    if not (FAKES / "driver/libcuda.so.1").exists():
        pytest.skip("the imitations of CUDA are not built")
    return timed_package.pack(tmp_path_factory.mktemp("timed") / "package", "cuda", operators=0)


def test_no_device(for_cuda, tmp_path):
    process, result = run(for_cuda, tmp_path)
    assert process.returncode == 8
    (sentence,) = process.stderr.splitlines()
    assert sentence == f"gpu-check: error: {result['parts']['devices']['note']}"
    assert result["complete"] and list(result["parts"]) == ["devices"]


#: Finds something with one of its tools.
SANITIZER = """#!{python}
import subprocess, sys
log = sys.argv[sys.argv.index("--log-file") + 1]
found = sys.argv[sys.argv.index("--tool") + 1] == "racecheck"
code = subprocess.call(sys.argv[sys.argv.index("--log-file") + 2 :], stdout=subprocess.DEVNULL)
text = "RACECHECK SUMMARY: 1 hazard displayed" if found else "ERROR SUMMARY: 0 errors"
open(log, "w").write("========= " + text)
sys.exit(86 if found else code)
"""


#: Sees two kernels in each of three runs.
NCU = """#!{python}
import sys
metrics = sys.argv[sys.argv.index("--metrics") + 1].split(",")
print("==PROF== Connected")
print(",".join(f'"{{name}}"' for name in ("ID", "Kernel Name", "Grid Size", *metrics)))
print(",".join(["", "", "", "us", *["inst"] * (len(metrics) - 1)]))
for run in range(3):
    for kernel in range(2):
        print(f'"0","xmma_fprop{{kernel}}","(4, 1, 1)"' + "".join(f',"{{run + 1}}"' for _ in metrics))
"""


def test_imitated_gpu(for_cuda, tmp_path):
    """Tensors on the device, autotuning, candidates, NCCL and tools of CUDA; without PyTorch."""
    for name, text in (("compute-sanitizer", SANITIZER), ("ncu", NCU)):
        tool = tmp_path / "cuda/bin" / name
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.write_text(text.format(python=sys.executable))
        tool.chmod(0o755)
    folders = ":".join(str(FAKES / name) for name in ("driver", "cublaslt", "cudnn", "nccl"))
    (tmp_path / "torch.py").write_text("raise ImportError('not in this test')\n")
    found = {"DOVETAIL_CUDA_PATH": folders, "LD_LIBRARY_PATH": folders, "CUDA_HOME": str(tmp_path / "cuda"),
             "CUDA_VISIBLE_DEVICES": "0", "PYTHONPATH": str(tmp_path), "FAKE_CUDNN_OFFERS": "chains"}  # fmt: skip
    process, result = run(for_cuda, tmp_path, **found)
    # The imitation of cuDNN fails with TF32 unless algorithms are measured, and the sanitizer finds something.
    assert process.returncode == 1, process.stderr
    found = lines_of(result, "B") + lines_of(result, "T")
    modes = {(line["name"], line["variant"]): line for line in found if "engines" not in line["variant"]}
    for name in ("resnet50", "unet512", "swin"):
        for variant in ("f32", "f32 autotuned", "tf32 autotuned"):
            line = modes[name, variant]
            assert line["status"] == "ok" and line["ms"] > 0 and line["device_bytes"] >= 0, line
        assert modes[name, "f32"]["error"] < 1e-4
    assert "a fake error" in modes["resnet50", "tf32"]["message"] and "ms" not in modes["resnet50", "tf32"]
    engines = lines_of(result, "T", variant="f32 autotuned: engines")
    assert len(engines) == 4 and all(line["implementations"] for line in engines)
    (first,) = lines_of(result, "A", name="resnet50", variant="f32")
    assert first["joined"] == "joined" and first["reason"].startswith("kernels one by one, by nsight compute")
    assert [(step["step"], step["us"]) for step in first["steps"]] == [("conv0", 3.0), ("conv1", 3.0)]
    assert all(step["engine"] and step["implementation"] for step in first["steps"])
    (other,) = lines_of(result, "A", name="swin")
    assert other["joined"] == "not joined" and "2 events, 1 nodes" in other["reason"]
    (counters,) = lines_of(result, "F", variant="f32: ncu")
    assert len(counters["ncu"]) == 2 and set(counters["ncu"][0].values()) == {3.0}
    assert all("not in this test" in line["message"] for line in lines_of(result, "E"))
    nccl = {line["variant"]: line["status"] for line in lines_of(result, "G", name="NCCL")}
    assert nccl == {"1 rank": "ok", "1 rank: abort": "ok", "2 ranks": "skipped"}
    assert lines_of(result, "G", variant="1 rank")[0]["error"] < 1e-4
    tools = {line["tool"]: (line["status"], line["findings"]) for line in lines_of(result, "H")}
    assert tools == {"memcheck": ("ok", 0), "racecheck": ("error", 1)}


@pytest.mark.parametrize(("ranks", "code"), [(1, -signal.SIGTERM), (2, 8)])
def test_lost_rank(for_cuda, tmp_path, ranks, code):
    """Rank 0 has to end when it, or rank 1, is lost while graphs are replayed."""
    from gpucheck import several_ranks
    from gpucheck.journal import Journal
    from gpucheck.timed_check import TimedCheck

    package = Package(for_cuda, tmp_path)
    check = TimedCheck(for_cuda, package, Journal(tmp_path / "result.json", {}), Clock(60))
    folders = ":".join(str(FAKES / name) for name in ("driver", "cublaslt", "cudnn", "nccl"))
    (entry,) = (entry for entry in package.manifest["timed"] if entry["name"] == "unet512-ranks")
    programs = {program["ranks"]: program for program in entry["programs"]}
    found = several_ranks._abort(check, entry, programs[ranks], {"DOVETAIL_CUDA_PATH": folders} | several_ranks.SHARED)
    assert found["status"] == "ok" and f"rank 0 exits with {code}:" in found["message"], found


def _trace_of(*kernels):
    """A trace as Kineto writes it, of three replays: kernels in a graph, copies of an input and an output in none."""
    copy, events = ("Memcpy DtoD (Device -> Device)", "gpu_memcpy", 80, 0), []
    for replay in range(3):
        at = 20000 * replay
        for name, category, duration, graph in (copy, *((name, "kernel", 10, 5) for name in kernels), copy):
            events.append(
                {"ph": "X", "cat": category, "name": name, "ts": at, "dur": duration, "tid": 7,
                 "args": {"stream": 7, "graph id": graph, "grid": [4, 1, 1], "block": [128, 1, 1]}}
            )  # fmt: skip
            at += duration + 1
    return json.dumps({"traceEvents": [{"ph": "M", "name": "process_name"}, *events]})


@pytest.fixture
def with_torch(for_cuda, tmp_path):
    """(a copy of the package in which PyTorch's work is small, variables for a run of it)."""
    package = shutil.copytree(for_cuda, tmp_path / "package")
    for module, old, new in (
        ("modes", "LAYER = (1, 512, 512, 7, 3)", "LAYER = (1, 8, 8, 3, 3)"),
        # The imitation of cuDNN fails with TF32 unless algorithms are measured.
        ("timed_peers", '("resnet50", "compile, CUDA graph", "tf32")', '("resnet50", "compile, CUDA graph", "f32")'),
        ("ceilings", "COPY_BYTES, PRODUCT = 2 << 30, 8192", "COPY_BYTES, PRODUCT = 1 << 10, 64"),
    ):
        file = package / "gpucheck" / f"{module}.py"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
    shutil.copy(fake_torch.__file__, tmp_path / "torch.py")
    (tmp_path / "trace.json").write_text(_trace_of("xmma_fprop0", "xmma_fprop1"))
    folders = ":".join(str(FAKES / name) for name in ("driver", "cublaslt", "cudnn", "nccl"))
    return package, {"DOVETAIL_CUDA_PATH": folders, "LD_LIBRARY_PATH": folders, "CUDA_VISIBLE_DEVICES": "0",
                     "PYTHONPATH": str(tmp_path), "FAKE_TORCH_TRACE": str(tmp_path / "trace.json"),
                     "FAKE_CUDNN_OFFERS": "chains"}  # fmt: skip


def test_imitated_torch(with_torch, tmp_path):
    """Every measurement that needs PyTorch, on an imitation of it: traces, ceilings, layers, cells of peers."""
    package, found = with_torch
    process, result = run(package, tmp_path, "--parts", "0,A,B,E,C,T,F,G", **found)
    text = process.stdout + process.stderr
    assert set(result["ceilings"]) == {"copy", "f32", "tf32", "f16", "bf16"}, text
    assert result["versions"]["processors"] == 132 and result["versions"]["nccl"] == "2.30.4"
    (engines,) = lines_of(result, "A", name="resnet50", variant="f32")
    assert engines["joined"] == "joined" and [step["us"] for step in engines["steps"]] == [10.0, 10.0], text
    assert (engines["device_ms"], engines["shares_us"]) == (0.02, {"convolution": 20.0})
    assert all(step["work"]["flops"] > 0 and step["percent"] > 0 for step in engines["steps"])
    (other,) = lines_of(result, "A", name="swin", variant="f32")
    assert other["joined"] == "not joined" and other["device_ms"] == 0.02 and other["implementations"]
    layers = lines_of(result, "B", peer=True)
    assert [line["status"] for line in layers] == ["ok"] * 4 and all(line["ms"] > 0 for line in layers)
    assert lines_of(result, "B", name="layer", variant="f32")[0]["device_us"] == 20.0
    alone = lines_of(result, "B", name="unet512", variant="f32")[0]
    assert alone["ms"] > 0 and alone["start_s"] > 0 and alone["error"] < 1e-4
    assert lines_of(result, "C", name="unet-1024", variant="f32")[0]["status"] == "ok"
    assert lines_of(result, "T", name="swin", variant="f32: engines")[0]["implementations"]
    cells = {(line["name"], line["how"], line["program"]): line for line in lines_of(result, "E")}
    for cell in (("resnet50", "CUDA graph, NCHW", "f32"), ("swin", "CUDA graph", "tf32"), ("unet512", "eager", "f32"),
                 ("resnet50", "compile, CUDA graph", "f32")):  # fmt: skip
        line = cells[cell]
        assert line["status"] == "ok" and line["ratio"] > 0 and line["autotuned"] is False, line
        assert line["upload_ms"] > 0 and line["ours_error"] < 1e-2 and "Dovetail" in line["libraries"]
    # JAX is among the packages of tests, and sees no GPU on a machine that only imitates one.
    missing = "finds no GPU" if importlib.util.find_spec("jax") else "JAX is not here"
    assert missing in cells["resnet50", "JAX", "f32"]["message"]
    assert {line["device_us"] for line in lines_of(result, "F", status="ok")} == {20.0}
    assert lines_of(result, "G", variant="f32-2-ranks")[0]["overlap"]["copies"] == 0


def test_profiler_that_crashes(with_torch, tmp_path):
    """What is known without the profiler is there, and no part is left out."""
    package, found = with_torch
    process, result = run(package, tmp_path, "--parts", "A,F,G", **found | {"FAKE_TORCH_TRACE": "abort"})
    assert process.returncode == 0, process.stdout
    assert {statuses(result)[part] for part in "AFG"} == {"ok"}
    for line in lines_of(result, "A", variant="f32"):
        assert line["status"] == "ok" and line["joined"] == "by steps" and "killed by signal 6" in line["reason"]
        assert line["implementations"] and line["start_s"] > 0 and line["bench_ms"] > 0
    own = lines_of(result, "F", status="ok", name="softmax")
    assert own and all(line["ms"] > 0 and "killed by signal 6" in line["profiler"] for line in own)


def test_attention_of_torch(backend, tmp_path, monkeypatch):
    """The peers of part D, whose results are compared."""
    from gpucheck import attention

    for name, module in fake_torch.MODULES.items():
        monkeypatch.setitem(sys.modules, name, module)
    package = Package(timed_package.pack(tmp_path / "package", "cpu", operators=0), tmp_path / "restored")
    (entry,) = (entry for entry in package.manifest["timed"] if entry["name"] == "attention-4k")
    for program in entry["programs"]:
        request = {"entry": entry, "program": program, "repetitions": 2}
        for backend_of_torch in attention.BACKENDS[program["dtype"]]:
            found = attention.sdpa(package, request | {"backend": backend_of_torch})
            assert found["status"] == "ok" and found["ms"] > 0 and found["device_bytes"] == 200
