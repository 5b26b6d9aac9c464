# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`gpu-check run --profile ten-minutes` on the imitations of NVIDIA's driver and libraries, and where PyTorch is."""

import sys

import pytest
import timed_package
from harness.backend import ROOT, build_dir
from harness.sanitizers import sanitizers
from timed_package import lines_of, run

sys.path.insert(0, str(ROOT / "scripts"))

from gpucheck import profiler  # noqa: E402
from gpucheck.package import Package  # noqa: E402

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
             "CUDA_VISIBLE_DEVICES": "0", "PYTHONPATH": str(tmp_path)}  # fmt: skip
    process, result = run(for_cuda, tmp_path, **found)
    # The imitation of cuDNN fails with TF32 unless algorithms are measured, and the sanitizer finds something.
    assert process.returncode == 1, process.stderr
    modes = {
        (line["name"], line["variant"]): line for line in lines_of(result, "B") if "engines" not in line["variant"]
    }
    for name in ("resnet50", "unet512", "swin"):
        for variant in ("f32", "f32 autotuned", "tf32 autotuned"):
            line = modes[name, variant]
            assert line["status"] == "ok" and line["ms"] > 0 and line["device_bytes"] >= 0, line
        assert modes[name, "f32"]["error"] < 1e-4
    assert "a fake error" in modes["resnet50", "tf32"]["message"] and "ms" not in modes["resnet50", "tf32"]
    engines = lines_of(result, "B", variant="f32 autotuned: engines")
    assert len(engines) == 4 and all(line["implementations"] for line in engines)
    (first,) = lines_of(result, "A", name="resnet50", variant="f32")
    assert first["joined"] == "joined" and first["reason"] == "kernels one by one, by nsight compute"
    assert [(step["step"], step["us"]) for step in first["steps"]] == [("conv0", 3.0), ("conv1", 3.0)]
    assert all(step["engine"] and step["implementation"] for step in first["steps"])
    (other,) = lines_of(result, "A", name="swin")
    assert other["joined"] == "not joined" and "2 events, 1 nodes" in other["reason"]
    (counters,) = lines_of(result, "F", variant="f32: ncu")
    assert len(counters["ncu"]) == 2 and set(counters["ncu"][0].values()) == {3.0}
    assert all("not in this test" in line["message"] for line in lines_of(result, "E"))
    nccl = {line["variant"]: line["status"] for line in lines_of(result, "G", name="NCCL")}
    assert nccl == {"1 rank": "ok", "1 rank: abort": "skipped", "2 ranks": "skipped"}
    tools = {line["tool"]: (line["status"], line["findings"]) for line in lines_of(result, "H")}
    assert tools == {"memcheck": ("ok", 0), "racecheck": ("error", 1)}


def test_lost_rank(for_cuda, tmp_path):
    """Rank 0 has to end when rank 1 is lost while graphs are replayed."""
    from gpucheck import several_ranks
    from gpucheck.journal import Journal
    from gpucheck.report import Clock
    from gpucheck.timed_check import TimedCheck

    package = Package(for_cuda, tmp_path)
    check = TimedCheck(for_cuda, package, Journal(tmp_path / "result.json", {}), Clock(60))
    folders = ":".join(str(FAKES / name) for name in ("driver", "cublaslt", "cudnn", "nccl"))
    (entry,) = (entry for entry in package.manifest["timed"] if entry["name"] == "unet512-ranks")
    program = next(program for program in entry["programs"] if program["ranks"] == 2)
    environment = {"DOVETAIL_CUDA_PATH": folders}
    found = several_ranks._abort(check, entry, program, environment, settle=2)
    assert found["status"] == "ok" and "rank 0 exits with 8" in found["message"], found


# What is done where PyTorch is.


class _Asked:
    """A check that was asked, with replies that are made up."""

    smoke = False
    fresh_traces = False

    def __init__(self, *replies):
        self.replies, self.requests = iter(replies), []

    def iterations(self, count):
        return count

    def ask(self, do, seconds, environment=None, **request):
        self.requests.append((do, environment or None))
        return next(self.replies)


STEPS = [{"step": "a", "kind": "kernel", "kernels": 2}]
SEEN = [["kernel0", 0.0, 5.0, 7, "kernels", [], [], 1], ["kernel1", 6.0, 5.0, 7, "kernels", [], [], 1]]


def _reply(events, status="ok", alike=True):
    return {"status": status, "message": "", "events": events, "replays_alike": alike}


def test_profiler_that_sees_no_nodes():
    """Without nodes of graphs, a run without graphs tells."""
    fresh, synchronous = {"GPU_CHECK_FRESH": "1"}, {"DOVETAIL_CUDA_SYNCHRONOUS": "1"}
    check = _Asked(_reply([]), _reply([]), _reply(SEEN))
    found, _ = profiler.joined_replay(check, {}, {}, STEPS)
    assert found["status"] == "joined" and found["reason"] == "run without graphs"
    assert [environment for _, environment in check.requests] == [None, fresh, synchronous]
    # A process that sees nothing any more is one reason.
    check = _Asked(_reply([]), _reply(SEEN), _reply(SEEN))
    for _ in range(2):
        found, _ = profiler.joined_replay(check, {}, {}, STEPS)
        assert found["status"] == "joined" and found["reason"] == ""
    assert [environment for _, environment in check.requests] == [None, fresh, fresh]
    check = _Asked(_reply(SEEN))
    assert profiler.joined_replay(check, {}, {}, STEPS)[0]["status"] == "joined" and len(check.requests) == 1
    check = _Asked(_reply(SEEN, alike=False))
    assert "replays differ" in profiler.joined_replay(check, {}, {}, STEPS)[0]["reason"]
    check = _Asked({"status": "absent", "message": "no PyTorch"})
    assert profiler.joined_replay(check, {}, {}, STEPS)[1]["status"] == "absent" and len(check.requests) == 1


def test_turns():
    from gpucheck import timed_peers

    said = []
    sides = [(lambda: said.append("ours"), lambda: None), (lambda: said.append("peer"), lambda: None)]
    ours, peer = timed_peers.turns(sides, rounds=2, runs=3)
    assert len(ours) == len(peer) == 6
    assert said == (["ours"] * 4 + ["peer"] * 4) * 2


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_translations(backend, tmp_path, library):
    """Peers compute the same, and a model's steps compute what the model does."""
    pytest.importorskip(library)
    if library == "jax":
        pytest.importorskip("jax.numpy")
    from gpucheck import inputs, peers, probe

    package = Package(timed_package.pack(tmp_path / "package", "cpu", operators=0), tmp_path / "restored")
    for entry in package.manifest["timed"]:
        if not entry["graph"]:
            continue
        graph, constants = peers.read_graph(package, entry)
        values = inputs.generate(entry)
        if library == "torch":
            _, _, outputs, _ = peers.pytorch(graph, constants, values, "cpu", {})
        else:
            from gpucheck import jax_model

            _, _, outputs, _ = jax_model.runner(graph, constants, values, "f32")
        assert probe.compare(package, entry, outputs(), entry["programs"][0])["status"] == "ok"


def test_cells_in_order():
    """The package's cells come in the order that is written down."""
    from gpucheck import timed_peers

    entries = [
        {"name": name, "programs": [{"variant": variant} for variant in ("f32", "tf32", "f16")]}
        for name in ("swin", "unet512", "resnet50")
    ]
    found = [(entry["name"], how, variant) for entry, how, variant in timed_peers.cells(entries)]
    assert found == list(timed_peers.CELLS) and 12 <= len(found) <= 16
    assert [variant for _, how, variant in timed_peers.cells(entries[:1])] == ["f32", "tf32", "f16"]
