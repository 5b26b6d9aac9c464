# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of `gpu-check run --profile ten-minutes` that use PyTorch or JAX, with replies that are made up."""

import sys

import pytest
import timed_package
from harness.backend import ROOT, build_dir
from harness.sanitizers import sanitizers

sys.path.insert(0, str(ROOT / "scripts"))

from gpucheck import profiler  # noqa: E402
from gpucheck.package import Package  # noqa: E402
from gpucheck.report import Clock  # noqa: E402


class _Asked:
    """A check that was asked, with replies that are made up."""

    smoke = False
    fresh_traces = False

    def __init__(self, *replies):
        self.replies, self.requests, self.trace_failures = iter(replies), [], []
        self.clock = Clock(60)

    def iterations(self, count):
        return count

    def ask(self, do, seconds, environment=None, **request):
        self.requests.append((do, environment or None))
        return next(self.replies)


STEPS = [{"step": "a", "kind": "kernel", "kernels": 2}]
SEEN = [["kernel0", 0.0, 5.0, 7, "kernels", [], [], 1], ["kernel1", 6.0, 5.0, 7, "kernels", [], [], 1]]
#: The same in no graph, between copies of an input and an output.
SEPARATE = [
    ["Memcpy DtoD (Device -> Device)", -9.0, 8.0, 7, "copies", [], [], 0],
    *(event[:7] + [0] for event in SEEN),
    ["Memcpy DtoD (Device -> Device)", 12.0, 8.0, 7, "copies", [], [], 0],
]


def _reply(events, status="ok", alike=True):
    return {"status": status, "message": "", "events": events, "replays_alike": alike}


def test_profiler_that_sees_no_nodes():
    """Without nodes of graphs, a run without graphs tells."""
    fresh, synchronous = {"GPU_CHECK_FRESH": "1"}, {"DOVETAIL_CUDA_SYNCHRONOUS": "1"}
    check = _Asked(_reply([]), _reply([]), _reply(SEPARATE))
    found, _ = profiler.joined_replay(check, {}, {}, STEPS)
    assert found["status"] == "joined" and found["reason"] == "run without graphs"
    assert (found["us"], found["span_us"]) == (10.0, 11.0)
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


@pytest.mark.parametrize("status", ["error", "late", "absent"])
def test_profiler_that_fails(status):
    """The host measures instead, with the reason. After two failures the profiler is left alone."""
    check = _Asked(*({"status": status, "message": f"made up {i}"} for i in range(3)))
    check.on_gpu, check.measure = True, lambda *_, **options: {"status": "ok", "ms": 1.0, **options}
    for number in range(3):
        reply, events = profiler.traced(check, {"group": "kernel"}, {}, 30, warm_up=3)
        assert (reply["status"], reply["ms"], reply["warm_up"], events) == ("ok", 1.0, 3, [])
        assert f"made up {number if status == 'absent' else min(number, 1)}" in reply["profiler"]
    assert len(check.requests) == (3 if status == "absent" else 2)
    # What the runtime itself says is no failure of the profiler.
    check = _Asked(*[{"status": "error", "message": "no memory", "code": 6}] * 3)
    assert [profiler.ask_trace(check, {}, {})[0]["code"] for _ in range(3)] == [6] * 3


def test_turns():
    from gpucheck import timed_peers

    said = []
    sides = [(lambda: said.append("ours"), lambda: None), (lambda: said.append("peer"), lambda: None)]
    ours, peer = timed_peers.turns(sides, rounds=2, runs=3)
    assert len(ours) == len(peer) == 6
    assert said == (["ours"] * 4 + ["peer"] * 4) * 2


@pytest.mark.skipif(bool(sanitizers(build_dir())), reason="packages are of builds without sanitizers")
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
    # Each precision of all models comes before other ways to run a peer.
    models = ("resnet50", "unet512", "swin")
    firsts = [(name, variant) for name, _, variant in found[:9]]
    assert firsts == [(name, variant) for variant in ("f32", "tf32", "f16") for name in models]
    assert [variant for _, how, variant in timed_peers.cells(entries[:1])] == ["f32", "tf32", "f16"]
