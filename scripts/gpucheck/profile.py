# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`run --profile ten-minutes`: a smoke, then timed parts with a deadline each, and an end that no process can delay."""

import sys
import tempfile
import time
import traceback

from .ceilings import clocks
from .journal import Journal, titled
from .package import DamagedPackage, Package
from .parts import TIMED_PARTS
from .processes import Watchdog
from .report import FOR_CPUS, Clock
from .run import NO_DEVICE, Interrupted, find_devices, handle_signals, ignore_signals, machine
from .timed_check import TimedCheck

#: Seconds of the smoke in all, of one of its parts at most and at least, and for writing the result.
SMOKE_SECONDS, SMOKE_PART_SECONDS, LEAST_SMOKE_SECONDS, RESERVE_SECONDS = 60, 20, 4, 6


class SmokeReport:
    """What a part says while it is only tried."""

    def __init__(self, journal):
        self.data, self._journal = journal.data, journal
        self.rows, self.notes = [], []

    def add(self, row):
        self.rows.append(row)

    def say(self, status, note):
        self.notes.append(f"{status}: {note}")

    def add_log(self, name, text):
        self._journal.add_log(name, text)

    def failure(self):
        """Why the part cannot run, or nothing. A part with wrong numbers can run."""
        errors = [row for row in self.rows if row["status"] == "error"]
        if not errors or any(row["status"] in ("ok", "differs") for row in self.rows):
            return ""
        return f"{titled(errors[0])}: {errors[0]['message']}"


def check_files(package):
    """DamagedPackage unless all files are there, as large as `pack` wrote them. Contents are verified when read."""
    tensors = package.manifest["tensors"]
    store = package.folder / "tensors.bin"
    if not store.exists():
        raise DamagedPackage(f"tensors.bin is missing from {package.folder}; unpack the package again")
    entries = [entry for entry in (*tensors, *package.manifest["blocks"]) if entry and "stored" in entry]
    if store.stat().st_size < max((entry["offset"] + entry["stored"] for entry in entries), default=0):
        raise DamagedPackage(f"tensors.bin in {package.folder} is damaged; unpack the package again")
    for name, entry in package.manifest["files"].items():
        expected = entry["bytes"] - sum(tensors[number]["bytes"] for _, number in entry["holes"])
        path = package.folder / "files" / name
        if not path.exists():
            raise DamagedPackage(f"{name} is missing from {package.folder}; unpack the package again")
        if "packing" not in entry and path.stat().st_size != expected:
            raise DamagedPackage(f"{name} in {package.folder} is damaged; unpack the package again")


#: Seconds in which clocks are read and processes end, between two parts.
BETWEEN_SECONDS = 10


def _settle(check, watchdog):
    """After a part: its deadline is over, and processes that the watchdog has ended start again when they are asked."""
    watchdog.watch(time.monotonic() + BETWEEN_SECONDS)
    if watchdog.fired:
        check.end_all()
        watchdog.fired = 0


def _try(check, name, part):
    """Runs a part once, with one iteration; returns why it failed, or nothing."""
    report = SmokeReport(check.report)
    journal, check.report, check.smoke = check.report, report, True
    start, damage = time.monotonic(), check.damage
    try:
        part.run(check)
        failure = report.failure() if check.damage == damage else check.damage
    except (Interrupted, DamagedPackage):
        raise
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    finally:
        check.report, check.smoke = journal, False
    seconds = round(time.monotonic() - start, 2)
    by_status = {row["status"]: row for row in reversed(report.rows)}
    status = "error" if failure else next((s for s in ("differs", "unfinished") if s in by_status), "ok")
    wrong = f"{titled(by_status['differs'])}: {by_status['differs']['message']}" if status == "differs" else ""
    message = failure or wrong or "; ".join(report.notes)
    rows = [{key: row.get(key) for key in ("name", "variant", "status", "message")} for row in report.rows]
    journal.add({"name": name, "status": status, "message": message, "seconds": seconds, "rows": rows})
    return failure


def _smoke(check, chosen, watchdog):
    """{part: why it failed} of those that cannot run here. A part that takes long leaves time for each later one."""
    check.report.begin("smoke", "every part once")
    start = time.monotonic()
    end = time.monotonic() + min(SMOKE_SECONDS, check.clock.left() / 4)
    failed = {}
    chosen = {name: part for name, part in chosen.items() if check.on_gpu or not part.needs_gpu}
    for later, (name, part) in zip(reversed(range(len(chosen))), chosen.items()):
        left = end - time.monotonic()
        if left < 0.5:
            check.report.say("incomplete", f"{name} was not tried: time is over")
            continue
        share = max(left / (later + 1), left - LEAST_SMOKE_SECONDS * later)
        check.clock.limit(min(SMOKE_PART_SECONDS, share))
        watchdog.watch(time.monotonic() + check.clock.part_left())
        if failure := _try(check, name, part):
            failed[name] = failure
        _settle(check, watchdog)
    # Processes go on: they take seconds to start, and what was tried in them has given its memory back.
    check.report.data["parts"]["smoke"]["seconds"] = round(time.monotonic() - start, 2)
    return failed


#: Parts that had too little time go on where so many seconds are left.
LEAST_AGAIN_SECONDS = 2


def _run_parts(check, chosen, failed, watchdog):
    """All parts in their order, each for its share of time. Then those go on that had too little."""
    _one_after_another(check, chosen, failed, watchdog)
    parts, check.again = chosen, True
    while not check.damage and check.clock.left() > LEAST_AGAIN_SECONDS:
        entries = check.report.data["parts"]
        goes_on = lambda name: name in check.unfinished and "trace" not in entries[name]
        parts = {name: part for name, part in parts.items() if goes_on(name)}
        ended = check.ended_jobs
        check.unfinished.clear()
        _one_after_another(check, parts, {}, watchdog)
        if check.ended_jobs == ended:
            break


def _one_after_another(check, parts, failed, watchdog):
    journal, clock = check.report, check.clock
    weights = {name: part.weight for name, part in parts.items() if name not in failed}
    before = clocks(check) if parts else None
    for name, part in parts.items():
        if check.again and clock.left() < LEAST_AGAIN_SECONDS:
            # The part keeps its note.
            break
        if check.again:
            journal.resume(name)
        else:
            journal.begin(name, part.title)
        if name in failed:
            journal.say("failed", f"in the smoke: {failed[name]}")
            continue
        entry = journal.data["parts"][name]
        clock.enter(weights[name], sum(weights.values()))
        del weights[name]
        watchdog.watch(clock.part_end)
        start = time.monotonic()
        _run_part(check, part, entry)
        _settle(check, watchdog)
        entry["seconds"] = round(entry.get("seconds", 0) + time.monotonic() - start, 2)
        after = clocks(check)
        entry["clocks"], before = {"before": before, "after": after}, after
        journal.tell()


def _run_part(check, part, entry):
    """One part, whatever becomes of it."""
    journal = check.report
    try:
        if not check.on_gpu and part.needs_gpu:
            journal.say("skipped", "it needs a GPU")
        elif check.clock.left() < 1:
            check.unfinished.add(journal.part)
            journal.say("incomplete", "time is over: nothing of it was reached")
        else:
            part.run(check)
    except Interrupted:
        journal.say("failed", "the check was ended from outside")
        raise
    except DamagedPackage as error:
        check.damage = str(error)
        journal.say("failed", str(error))
    except Exception as error:
        entry["trace"] = traceback.format_exc()
        journal.say("failed", f"{type(error).__name__}: {error}")


def _logs(check):
    for file in sorted(check.package.restored.glob("*.log")):
        check.report.add_log(file.name, file.read_bytes())


def run(folder, arguments):
    """The command `run` with the profile ten-minutes; returns the exit code."""
    handle_signals()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpu-check-", ignore_cleanup_errors=True) as restored:
        package = Package(folder, restored)
        package.require(package.manifest["runtime"])
        heading = {"profile": "ten-minutes", "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        heading |= {"arguments": vars(arguments), "machine": {}, "devices": {}}
        heading |= {key: package.manifest[key] for key in ("target", "archs", "dovetail", "packed")}
        journal = Journal(arguments.json, heading)
        clock = Clock(max(0.0, arguments.seconds - min(RESERVE_SECONDS, arguments.seconds / 20)))
        check = TimedCheck(folder, package, journal, clock)
        check.warm_up([*arguments.parts, *arguments.tried])
        watchdog = Watchdog(check.processes, begin + arguments.seconds)
        ended = ""
        if not check.on_gpu:
            print(FOR_CPUS, flush=True)
        try:
            journal.begin("devices", "devices")
            check_files(package)
            journal.data["machine"] = machine()
            if reason := find_devices(check):
                journal.say("failed", reason)
                journal.finish()
                print(f"gpu-check: error: {reason}", file=sys.stderr)
                return NO_DEVICE
            journal.tell()
            check.wait_for_warm_up()
            named = lambda *names: {name: TIMED_PARTS[name] for name in TIMED_PARTS if name in names}
            chosen = named(*arguments.parts)
            failed = _smoke(check, named(*arguments.parts, *arguments.tried), watchdog)
            _run_parts(check, chosen, failed, watchdog)
        except Interrupted as error:
            ended = str(error)
            print(f"gpu-check: error: ended by {error}", file=sys.stderr)
        except DamagedPackage as error:
            check.damage = str(error)
        finally:
            ignore_signals()
            watchdog.stop()
            check.end_all()
        _logs(check)
        journal.finish(complete=not ended)
        return _end(journal, check, ended)


def _end(journal, check, ended):
    """Prints how each part ended; returns the exit code."""
    print("\n== Summary")
    for name, part in journal.data["parts"].items():
        note = f" ({part['note'][:300]})" if part["note"] else ""
        print(f"  {name:<8}{part['status']}{note}, {part.get('seconds', 0):.0f} s")
    print(f"  {journal.path}: all of it; `gpu-check report {journal.path}` makes a page of it")
    if check.damage:
        print(f"gpu-check: error: {check.damage}", file=sys.stderr)
        return 7
    if not any(line["status"] == "ok" and line["part"] in TIMED_PARTS for line in journal.data["measurements"]):
        print("gpu-check: error: nothing was compared: no measurement of any part is ok", file=sys.stderr)
        return 1
    return 1 if ended or any(part["status"] == "failed" for part in journal.data["parts"].values()) else 0
