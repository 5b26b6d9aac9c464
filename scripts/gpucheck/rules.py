# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a result decides about the next work on GPUs. Pure functions over the result of a run."""

from .journal import titled

HOLDS, DOES_NOT, UNDECIDED = "holds", "does not", "undecided"
#: The variant of a program that calls no library.
OWN = "f32-no-libraries"
#: Why a measurement that is there has no time, by its status.
_REASONS = {"unfinished": "late", "skipped": "skipped", "refused": "skipped"}
#: The models that consist of convolutions.
CONVOLUTIONAL = ("resnet50", "unet512")

FASTER, POST_OPS, NEAR, STARVED = 1.5, 0.10, 1.1, 0.70
#: Percent of the ceiling below which a step is said to waste the card.
WASTED = 10


def lines(result, part, **wanted):
    """The measurements of a part with these values."""
    matches = lambda line: all(line.get(key) == value for key, value in wanted.items())
    return [m for m in result["measurements"] if m["part"] == part and matches(m)]


def timed(found):
    """The measurements that are right and have a time."""
    return [line for line in found if line["status"] == "ok" and line.get("ms")]


def undecided(result, part, found=(), reason=""):
    """Why a part does not say: "part X late", "failed" or "skipped"; or what it lacks, where it ran."""
    status = result["parts"].get(part, {}).get("status", "skipped")
    missing = next((line for line in found if line["status"] != "ok"), None)
    if missing and missing["status"] == "skipped" and status != "skipped":
        is_peer = missing.get("peer") or missing.get("how")
        lacks = ("JAX" if missing.get("how") == "JAX" else "PyTorch") if is_peer else titled(missing)
        detail = f" ({missing['message']})" if missing["message"] else ""
        return UNDECIDED, f"part {part}: no {lacks}{detail}"
    state = missing and _REASONS.get(missing["status"], "failed")
    if state is None and status == "ok" and result.get("complete", True):
        return UNDECIDED, f"part {part}: {reason or 'not measured'}"
    if state is None:
        state = {"incomplete": "late", "failed": "failed", "ok": "late"}.get(status, "skipped")
    detail = f" ({reason})" if reason else ""
    return UNDECIDED, f"part {part} {state}{detail}"


def _verdict(holds, reason):
    return HOLDS if holds else DOES_NOT, reason


def nchw_is_faster(result):
    """R1."""
    layers = lines(result, "B", layer=True)
    of_torch = [line for line in layers if line.get("layout")]
    nchw = [line for line in of_torch if line["layout"] == "NCHW" and line["deterministic"]]
    nhwc = [line for line in of_torch if line["layout"] == "NHWC"]
    if not timed(nchw) or not timed(nhwc):
        return undecided(result, "B", nchw if not timed(nchw) else nhwc)
    fast, slow = min(line["ms"] for line in timed(nchw)), min(line["ms"] for line in timed(nhwc))
    return _verdict(slow >= FASTER * fast, f"NCHW deterministic {1000 * fast:.1f} µs, NHWC {1000 * slow:.1f} µs")


def post_operations(result):
    """R2."""
    found = {}
    for name in CONVOLUTIONAL:
        for line in timed(lines(result, "A", name=name, variant="f32")):
            if line.get("joined", "by steps") != "by steps" and line.get("device_ms"):
                found[name] = line["shares_us"].get("post-operations", 0) / (1000 * line["device_ms"])
    said = ", ".join(f"{name} {100 * share:.1f} %" for name, share in found.items())
    if any(share > POST_OPS for share in found.values()):
        return HOLDS, said
    if len(found) == len(CONVOLUTIONAL):
        return DOES_NOT, said
    missing = [name for name in CONVOLUTIONAL if name not in found]
    known = [line for name in missing for line in lines(result, "A", name=name, variant="f32")]
    reason = "no kernels were seen" if timed(known) else f"{' and '.join(missing)} not measured"
    return undecided(result, "A", known, reason)


def starved(result):
    """R4."""
    found = lines(result, "A", name="resnet50", variant="f32")
    if not timed(found):
        return undecided(result, "A", found)
    line = timed(found)[0]
    if line.get("joined", "by steps") == "by steps":
        return undecided(result, "A", reason="no kernels were seen")
    share = line["shares_us"].get("convolution", 0) / (1000 * line["ms"])
    said = f"convolutions take {100 * share:.0f} % of {line['ms']:.3g} ms"
    known = [s for s in line.get("steps", []) if s.get("kind") == "convolution" and s.get("percent") is not None]
    if wasted := [step["us"] for step in known if step["percent"] < WASTED]:
        said += f"; {len(wasted)} below {WASTED} % of the ceiling take {sum(wasted) / 1000:.3g} ms"
    return _verdict(share >= STARVED, said)


def all_peer_cells(result, name, math):
    """The measurements of part E against a peer in this mode, the fastest first."""
    return sorted(timed(lines(result, "E", name=name, program=math)), key=lambda line: line["ms"])


def peer_cells(result, name, math):
    """Those of `all_peer_cells` in which both sides use the same libraries."""
    return [line for line in all_peer_cells(result, name, math) if not line.get("not_comparable")]


def alone(result, name, modes):
    """The times of ours alone in these modes, each in a process of its own: parts B and T."""
    return [line["ms"] for mode in modes for line in timed(of_modes(result, name=name, variant=mode))]


def of_modes(result, **wanted):
    """The measurements of models in their modes. Part B had those with algorithms measured, too, in older results."""
    return lines(result, "B", layer=None, **wanted) + lines(result, "T", **wanted)


def near_peers(result, math, modes):
    """Whether ours is at most NEAR times as slow as the best peer, for each model of convolutions.

    Both times are of one cell of part E, in which the two sides take turns. A program of ours whose algorithms were not
    measured may be near. That it is not near says nothing, unless it is not near alone either with these measured.
    """
    ratios, said, unknown = [], [], []
    for name in CONVOLUTIONAL:
        cells = peer_cells(result, name, math)
        if not cells or not cells[0].get("ours_ms"):
            found = lines(result, "E", name=name, program=math)
            different = [line for line in found if line.get("not_comparable")]
            reason = f"not comparable: {different[0]['not_comparable']}" if different else f"no peer of {name}"
            reason = f"ours was not measured beside {cells[0]['how']}" if cells else reason
            unknown.append(undecided(result, "E", found, reason))
            continue
        best = cells[0]
        ratio = best["ours_ms"] / best["ms"]
        own, autotuned = alone(result, name, modes), alone(result, name, (f"{math} autotuned",))
        text = f"{name} {ratio:.2f} × {best['how']}{f' (alone: {min(own):.3g} ms)' if own else ''}"
        is_known = best.get("autotuned") is not False or (autotuned and min(autotuned) > NEAR * best["ms"])
        if ratio > NEAR and not is_known:
            unknown.append(undecided(result, "E", reason=f"{text}, algorithms of ours not measured"))
            continue
        ratios.append(ratio)
        said.append(text)
    if any(ratio > NEAR for ratio in ratios):
        return DOES_NOT, ", ".join(said)
    return unknown[0] if unknown else (HOLDS, ", ".join(said))


def own_kernels(result):
    """R6."""
    ratios, missing = {}, []
    for part, name in (("B", "resnet50"), ("B", "unet512"), ("C", "unet-1024")):
        own, library = (timed(lines(result, part, name=name, variant=v)) for v in (OWN, "f32"))
        if own and library:
            ratios[name] = own[0]["ms"] / library[0]["ms"]
        else:
            found = lines(result, part, name=name, variant=OWN) + lines(result, part, name=name, variant="f32")
            missing.append(undecided(result, part, found, f"{name} not measured"))
    said = ", ".join(f"{name} {ratio:.2f} ×" for name, ratio in ratios.items())
    if missing and all(ratio < 1 for ratio in ratios.values()):
        verdict, reason = missing[0]
        return verdict, f"{reason}{'; ' if said else ''}{said}"
    return _verdict(all(ratio < 1 for ratio in ratios.values()), said)


#: (name, question, function, what follows if it holds, and if not).
RULES = (
    ("R1", f"A 3×3 convolution of 512 channels at 7×7 is {FASTER} times as fast in NCHW, deterministic, as in NHWC",
     nchw_is_faster, "NCHW staging and autotune first", "the layout is not the cause: see the largest losses"),
    ("R2", f"Post-operations take more than {100 * POST_OPS:.0f} % of a convolutional model",
     post_operations, "generated post-operations first", "kernels of post-operations can wait"),
    ("R3", f"Autotuned TF32 is at most {NEAR} times as slow as the best peer",
     lambda result: near_peers(result, "tf32", ("tf32 autotuned",)),
     "leave TF32 to cuDNN; the mapping aims at f32 and few channels", "the mapping aims at TF32, too"),
    ("R4", f"ResNet-50's f32 time is starved engines: convolutions are at least {100 * STARVED:.0f} % of a replay",
     starved, "better engines for convolutions help most", "what is between convolutions counts as well"),
    ("R5", f"The fastest f32 of ours is at most {NEAR} times as slow as the best f32 peer",
     lambda result: near_peers(result, "f32", ("f32", "f32 autotuned")),
     "f32 needs no work before other modes", "f32 convolutions come first"),
    ("R6", "Our own kernels take less time in f32 than the libraries, in each model of convolutions",
     own_kernels, "our own kernels by default in f32", "a choice for each convolution"),
)  # fmt: skip


def decide(result):
    """[{"rule", "question", "verdict", "reason", "then"}]; "then" is empty where nothing is decided."""
    decisions = []
    for name, question, function, yes, no in RULES:
        verdict, reason = function(result)
        then = {HOLDS: yes, DOES_NOT: no}.get(verdict, "")
        decisions.append({"rule": name, "question": question, "verdict": verdict, "reason": reason, "then": then})
    return decisions
