"""What threads lose to lines that they take from each other: programs whose answer is known, recorded on all
processors and on one.

    python3 tests/sharing.py

The programs are those of bench/sharing/, with few turns. What is measured here is no time: kinds, names,
numbers that follow from the program, and that a trace of one processor says the same.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "tests" / "sharing"
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
TURNS = {"slots": 50_000, "words": 50_000, "sweep": 400, "locks": 10_000, "atomic": 20_000, "stream": 20}
# Kind, a part of the name of what is shared, and the least and most transfers.
EXPECTED = {
    "slots": ("false_sharing", "hits", 10_000, 100_000),
    "words": ("false_sharing", "counts", 10_000, 100_000),
    # A line may go while the store that follows its load waits, and has to come twice.
    "sweep": ("false_sharing", "cells", 400 * 256 // 2, 4 * 400 * 256),
    "locks": ("false_sharing", "hits", 1_000, 20_000),
    "atomic": ("true_sharing", "count", 10_000, 40_000),
    # Each of 2,048 lines goes to the reader, which calls them `from`, once a round, and back.
    "stream": ("true_sharing", " from", 20 * 2048, 3 * 20 * 2048),
}


def report(name, how, cpus):
    program = WORK / f"{name}-{how}"
    flags = ["-DPADDED"] if how == "padded" else []
    if not program.exists():
        source = ROOT / "bench" / "sharing" / f"{name}.c"
        flags = ["-O2", "-g", "-pthread", "-D_GNU_SOURCE", *flags]
        subprocess.run([MEMLODE, "cc", *flags, source, "-o", program], check=True)
    trace = WORK / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    # A machine of which times are known whatever this one is.
    command = [*cpus, MEMLODE, "record", "-o", trace, "--", program, str(TURNS[name])]
    subprocess.run(command, check=True, capture_output=True)
    said = subprocess.run([MEMLODE, "report", trace, "--json", "-m", "generic"], check=True, capture_output=True)
    return json.loads(said.stdout)["sharing"]


def name_of(row):
    return " ".join(str(row["missed"].get(part)) for part in ("type", "member", "variable"))


def shared(name, found):
    kind, what, least, most = EXPECTED[name]
    problems = []
    if found["order"] != "parallel" or found["unknown_starts"] or found["unmet"]:
        problems.append(f"order {found['order']}, {found['unknown_starts']} unknown, {found['unmet']} unmet")
    rows = found[kind]
    if not rows or what not in name_of(rows[0]):
        problems.append(f"{kind} is of {[name_of(row) for row in rows[:3]]}, expected {what}")
    transfers = sum(row["transfers"] for row in rows)
    if not least <= transfers <= most:
        problems.append(f"{transfers} transfers, expected {least} to {most}")
    other = "true_sharing" if kind == "false_sharing" else "false_sharing"
    wrong = sum(row["transfers"] for row in found[other])
    if wrong * 50 > transfers:
        problems.append(f"{wrong} transfers of the other kind")
    if rows and not rows[0]["written"]:
        problems.append("nobody is named who took the line")
    return problems


def padded(found):
    whole = found["ms"] + found["rest_ms"]
    return [] if found["ms"] <= 0.05 * whole else [f"{found['ms']} of {whole} ms lost in the padded twin"]


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    one = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    failed = 0
    for name in EXPECTED:
        found = {where: report(name, "shared", cpus) for where, cpus in (("all", []), ("one", one))}
        problems = [f"{where}: {what}" for where in found for what in shared(name, found[where])]
        losses = [found[where]["ms"] for where in found]
        if max(losses) > 1.1 * min(losses):
            problems.append(f"{losses[0]} ms lost, on one processor {losses[1]}")
        # Of the others the twin shares nothing but what the threads begin with.
        problems += padded(report(name, "padded", []))
        print(f"{name:8}{losses[0]:8.2f} ms  {'; '.join(problems) or 'right'}")
        failed += bool(problems)
    if failed:
        sys.exit(f"{failed} programs have wrong answers")


if __name__ == "__main__":
    main()
