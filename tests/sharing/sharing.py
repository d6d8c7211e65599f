"""What threads lose to lines that they take from each other: programs whose answer is known, recorded on all
processors and on one.

    python3 tests/sharing/sharing.py [PROGRAM…]

The programs are those beside this file and in bench/sharing/, with few turns. What is measured here is no time: kinds,
names, places, numbers that follow from the program, that twins whose data lie apart are silent, and that a trace of one
processor says the same.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "target" / "tests" / "sharing"
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
KINDS = ("false_sharing", "true_sharing")


@dataclasses.dataclass
class Expected:
    """What a report must say of a program."""

    source: str
    turns: int
    # Of which kind nearly all transfers are; none if nothing is shared.
    kind: str | None
    # Patterns in the names of the data that cost most, and a part of that of the object they lie in.
    data: tuple[str, ...] = ()
    object: str = ""
    # Marks in the source, `// <-- mark`: lines where accesses of the first row may stand, and those that it may name
    # as the others.
    waits: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    transfers: tuple[int, int] = (1, 1 << 40)
    # Lines handed over, and a mark where one that is handed over most often is used.
    handed_over: tuple[int, int] = (0, 1 << 40)
    receives: str = ""
    flags: tuple[str, ...] = ()
    has_twin: bool = True
    # Transfers of the other kind, at most, as a part of those of this kind.
    wrong: float = 0.02
    # They lie on the stack of the thread that the row names as the other.
    is_on_stack: bool = False
    # A mark where the parallel loop begins in which they wait.
    loop: str = ""
    # How far a trace of one processor may be from one of all, in times; none where the schedule decides.
    spread: float | None = 1.1
    # A program that does the same in other words, and so loses as much within 1.5 times.
    agrees_with: str = ""


FALSE, TRUE = KINDS
PROGRAMS = {
    "slots": Expected("slots.c", 50_000, FALSE, ("slot", "hits"), "slots.c", transfers=(10_000, 100_000)),
    "words": Expected("words.c", 50_000, FALSE, ("counts",), "counts", transfers=(10_000, 100_000)),
    # A line may go while the store that follows its load waits, and has to come twice.
    "sweep": Expected("sweep.c", 400, FALSE, ("cells",), transfers=(400 * 256 // 2, 4 * 400 * 256)),
    "locks": Expected("locks.c", 10_000, FALSE, ("hits",), transfers=(1_000, 20_000)),
    "atomic": Expected("atomic.c", 20_000, TRUE, ("count",), transfers=(10_000, 40_000)),
    # Each of 2,048 lines goes to the reader, which calls them `from`, once a round, and back.
    "stream": Expected("stream.c", 20, TRUE, ("from",), transfers=(20 * 2048, 3 * 20 * 2048)),
    # Who is next at the lock, and so who counts beside whom, is as it was recorded.
    "cleared": Expected(
        "cleared.c", 20_000, FALSE, ("slot", "hits"), "cleared.c", ("hit",), ("hit",), wrong=0.2, spread=None
    ),
    "tickets": Expected("tickets.c", 20_000, FALSE, ("tickets",), "tickets", ("sold",), ("sold",)),
    "tally": Expected("tally.c", 50_000, FALSE, ("tally", "votes"), "tally", ("vote",), ("vote",)),
    # Two transfers a round: the letter to the reader, and the line back to the writer.
    "letter": Expected(
        "letter.c", 2_000, TRUE, ("post",), "post", ("read", "envelope"), ("write", "read"), transfers=(3_900, 4_100),
        has_twin=False,
    ),
    # The line of the words goes from each thread to the next, and to the one who adds up.
    "phases": Expected("phases.c", 200, None, handed_over=(200, 4_000), receives="count", has_twin=False),
    # The form is true sharing, and what lies there in between is not.
    "frame": Expected(
        "frame.c", 2_000, TRUE, ("form",), "", ("fill",), ("ask",), handed_over=(1_900, 2_200), receives="note",
        has_twin=False, is_on_stack=True,
    ),
    **{
        # A transfer a turn of each of three threads, who want the line for writing at once; two where a flag is taken.
        name: Expected(
            "baton.c", 500, TRUE, (data,), data if data == "baton" else "seats", ("look", "pass"), ("look", "pass"),
            transfers=transfers, flags=flags, has_twin=False,
        )
        for name, data, flags, transfers in (
            # 1,500 and 3,000 turns. Where processors are so busy that threads wait for long, some of the looks in vain
            # count as well: how many, the schedule decides. Were all to count, it would be one a turn at least.
            ("baton", "baton", (), (1_480, 2_250)),
            ("baton-atomic", "baton", ("-DATOMIC",), (1_480, 2_250)),
            ("baton-flag", "busy", ("-DFLAG",), (2_980, 4_500)),
        )
    },
    # A library makes the threads, and calls them for each loop.
    "teams": Expected(
        "teams.c", 50_000, FALSE, ("slot", "hits"), "slots", ("hit",), ("hit",), transfers=(10_000, 100_000),
        flags=("-fopenmp",), loop="loop",
    ),
    "ring": Expected("ring.c", 20_000, TRUE, ("ends|items",), has_twin=False, wrong=1e9, spread=None),
    "ring-fence": Expected(
        "ring.c", 20_000, TRUE, ("ends|items",), flags=("-DFENCE",), has_twin=False, wrong=1e9, spread=None,
        agrees_with="ring",
    ),
    "ledgers": Expected("ledgers.c", 2_000, FALSE, ("ledger",), "ledgers", wrong=0.5),
    "gate": Expected(
        "gate.cpp", 20_000, FALSE, ("Gate", "waiting|passed"), "gate.cpp", ("wait", "pass"), ("wait", "pass")
    ),
    "board": Expected(
        "board", 20_000, FALSE, ("Board", "home|guest"), "board.rs", ("home", "guest"), ("home", "guest")
    ),
    # The member is known by its address alone. An atomic addition holds its line until it is done.
    "totals": Expected(
        "totals", 20_000, FALSE, ("Totals", "words|lines"), "totals.rs", ("add",), ("add",), transfers=(10_000, 41_000)
    ),
}


def path_of(source):
    if "." not in source:
        return HERE / "rust" / "src" / "bin" / f"{source}.rs"
    beside = HERE / source
    return beside if beside.exists() else ROOT / "bench" / "sharing" / source


def build(name, expected, is_padded):
    """Builds a program, or its twin."""
    if "." not in expected.source:
        target = WORK / f"rust-{'padded' if is_padded else 'shared'}"
        features = ["--features", "padded"] if is_padded else []
        manifest = HERE / "rust" / "Cargo.toml"
        command = [MEMLODE, "cargo", "build", "--release", "--offline", "--manifest-path", manifest, *features]
        subprocess.run([*command, "--target-dir", target], check=True, capture_output=True)
        return next(target.glob(f"*/release/{expected.source}"))
    program = WORK / f"{name}-{'padded' if is_padded else 'shared'}"
    language = "c++" if expected.source.endswith(".cpp") else "cc"
    flags = ["-O2", "-g", "-pthread", "-D_GNU_SOURCE", *expected.flags, *(["-DPADDED"] if is_padded else [])]
    subprocess.run([MEMLODE, language, *flags, path_of(expected.source), "-o", program], check=True)
    return program


def report(program, turns, cpus=()):
    """What a report says of sharing."""
    trace = WORK / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    command = [*cpus, MEMLODE, "record", "-o", trace, "--", program, str(turns)]
    subprocess.run(command, check=True, capture_output=True)
    # A machine of which times are known whatever this one is.
    said = subprocess.run([MEMLODE, "report", trace, "--json", "-m", "generic"], check=True, capture_output=True)
    return json.loads(said.stdout)["sharing"]


def name_of(side):
    return " ".join(str(side.get(part)) for part in ("variable", "type", "member"))


def marked(source, marks):
    lines = path_of(source).read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) for mark in marks if line.endswith(f"// <-- {mark}")}


def wrong_places(expected, row):
    """What is wrong about the places and the names of a row."""
    problems = []
    for side, marks in (("missed", expected.waits), ("written", expected.others)):
        where = row[side] or {}
        # What a library does for a line of ours is inlined there.
        lines = {at.get("line") for at in (where, where.get("inlined_into") or {})}
        if marks and not lines & marked(expected.source, marks):
            problems.append(f"{side} at line {where.get('line')}, expected {' or '.join(marks)}")
    names = name_of(row["missed"])
    if missing := [part for part in expected.data if not re.search(part, names)]:
        problems.append(f"{names!r} without {', '.join(missing)}")
    if expected.object not in json.dumps(row["object"]):
        problems.append(f"in {row['object']}, expected {expected.object}")
    if expected.loop:
        (line,) = marked(expected.source, (expected.loop,))
        if row["missed"]["function"] != f"main, parallel region at line {line}":
            problems.append(f"in {row['missed']['function']}, expected the loop of line {line}")
    if expected.is_on_stack and [row["stack_of"]] != (row["written"] or {}).get("threads"):
        problems.append(f"on the stack of thread {row['stack_of']}, written by {row['written']}")
    if not row["written"]:
        problems.append("nobody is named who took the line")
    return problems


def wrong_hand_overs(expected, rows):
    problems = []
    least, most = expected.handed_over
    lines = sum(row["transfers"] for row in rows)
    if not least <= lines <= most:
        problems.append(f"{lines} lines handed over, expected {least} to {most}")
    places = [row["missed"].get("line") for row in sorted(rows, key=lambda row: -row["transfers"])]
    if expected.receives and places[:1] != list(marked(expected.source, (expected.receives,))):
        problems.append(f"lines handed over to line {places[:1]}, expected {expected.receives}")
    return problems


def judge(expected, found):
    """What is wrong about a report."""
    problems = []
    if found["order"] != "parallel" or found["unknown_starts"] or found["unmet"]:
        problems.append(f"order {found['order']}, {found['unknown_starts']} unknown, {found['unmet']} unmet")
    problems += wrong_hand_overs(expected, found["handed_over"])
    if expected.kind is None:
        wrong = sum(row["transfers"] for row in found[FALSE])
        return [*problems, f"{wrong} transfers of false sharing"] if wrong else problems
    rows = found[expected.kind]
    if not rows:
        return [*problems, f"no {expected.kind}"]
    transfers = sum(row["transfers"] for row in rows)
    least, most = expected.transfers
    if not least <= transfers <= most:
        problems.append(f"{transfers} transfers, expected {least} to {most}")
    other = TRUE if expected.kind == FALSE else FALSE
    wrong = sum(row["transfers"] for row in found[other])
    if wrong > expected.wrong * transfers:
        problems.append(f"{wrong} transfers of the other kind beside {transfers}")
    return problems + wrong_places(expected, rows[0])


def twin(expected, found):
    """What is wrong about the report of the twin: next to nothing of the kind may be lost."""
    whole = found["ms"] + found["rest_ms"]
    lost = sum(row["ms"] for row in found[expected.kind])
    return [] if lost <= 0.05 * whole else [f"{lost} of {whole} ms lost in the twin"]


def check(name, expected):
    program = build(name, expected, is_padded=False)
    one = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    runs = [("all", []), ("one", one)]
    found = {where: report(program, expected.turns, cpus) for where, cpus in runs}
    problems = [f"{where}: {what}" for where in found for what in judge(expected, found[where])]
    losses = [found[where]["ms"] for where in found]
    if expected.kind and expected.spread and max(losses) > expected.spread * min(losses):
        problems.append(f"{losses[0]} ms lost, on one processor {losses[-1]}")
    if expected.agrees_with:
        other = PROGRAMS[expected.agrees_with]
        others = report(build(expected.agrees_with, other, is_padded=False), other.turns)["ms"]
        if max(losses[0], others) > 1.5 * min(losses[0], others):
            problems.append(f"{losses[0]} ms lost, {expected.agrees_with} loses {others}")
    if expected.has_twin:
        problems += twin(expected, report(build(name, expected, is_padded=True), expected.turns))
    print(f"{name:12}{losses[0]:8.2f} ms  {'; '.join(problems) or 'right'}", flush=True)
    return bool(problems)


def main(wanted):
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    failed = sum(check(name, PROGRAMS[name]) for name in wanted or PROGRAMS)
    if failed:
        sys.exit(f"{failed} programs have wrong answers")


if __name__ == "__main__":
    main(sys.argv[1:])
