"""What threads lose to lines that they take from each other: measured, and as `memlode report` says.

    python3 bench/sharing.py [--quick] [--machine M] [--runs N] [NAME…]

  measured    processor time of both threads as the program is, less that of its twin whose data are padded into
              lines of their own, native, in turn; the median
  predicted   what `memlode report` says is lost, of a trace of the program
  one CPU     the same of a trace that was recorded on one processor
  twin        what the report says is lost in the padded program

Processors must be free, or threads do not meet. How far the two are from each other is measured before and
after the runs of a program (`memlode machine calibrate`), unless a machine is named. Writes
target/bench/sharing.json.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = ROOT / "target" / "bench" / "sharing"
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
# Turns for a second or more as the program is, native.
PROGRAMS = {
    "slots": 60_000_000,
    "words": 60_000_000,
    "sweep": 300_000,
    "locks": 25_000_000,
    "atomic": 40_000_000,
    "stream": 40_000,
}
# Of these the schedule decides nothing, and what is shared is of this kind.
KINDS = {"stream": "true_sharing", "atomic": "true_sharing"}
QUICK = 20


def build(name, how, compiler):
    program = WORK / f"{name}-{how}-{pathlib.Path(compiler[0]).name}"
    flags = ["-DPADDED"] if how == "padded" else []
    source = HERE / "sharing" / f"{name}.c"
    subprocess.run([*compiler, "-O2", "-g", "-pthread", *flags, source, "-o", program], check=True)
    return program


def first():
    """In front of others, if that is allowed: threads that do not run at the same time lose nothing to each other."""
    with contextlib.suppress(PermissionError):
        os.nice(-20)


def processor_ms(program, turns):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, str(turns)], check=True, stdout=subprocess.DEVNULL, preexec_fn=first)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime)


def measured(name, turns, runs):
    shared, padded = (build(name, how, ["clang-22"]) for how in ("shared", "padded"))
    lost, whole = [], []
    for _ in range(runs):
        whole.append(processor_ms(shared, turns))
        lost.append(whole[-1] - processor_ms(padded, turns))
    return statistics.median(lost), statistics.median(whole)


def sharing(program, turns, machine, cpus=None):
    """What the report says of sharing."""
    trace = WORK / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    pinned = ["taskset", "-c", str(cpus)] if cpus is not None else []
    record = [*pinned, MEMLODE, "record", "-o", trace, "--", program, str(turns)]
    subprocess.run(record, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report = [MEMLODE, "report", trace, "--json", "--machine", machine]
    found = json.loads(subprocess.run(report, check=True, capture_output=True, text=True).stdout)["sharing"]
    shutil.rmtree(trace)
    return found


def machine_of(options):
    """The machine as it is now: what a transfer costs changes with where the host puts processors."""
    if options.machine:
        return options.machine
    machine = WORK / "now.toml"
    subprocess.run([MEMLODE, "machine", "calibrate", "-o", machine], check=True, capture_output=True, preexec_fn=first)
    return str(machine)


def kind(found):
    sums = {kind: sum(row["ms"] for row in found[kind]) for kind in ("false_sharing", "true_sharing")}
    return max(sums, key=sums.get) if any(sums.values()) else "none"


def examine(name, options):
    turns = PROGRAMS[name] // (QUICK if options.quick else 1)
    machine = machine_of(options)
    lost, whole = measured(name, turns, options.runs)
    shared, padded = (build(name, how, [MEMLODE, "cc"]) for how in ("shared", "padded"))
    found, twin = sharing(shared, turns, machine), sharing(padded, turns, machine)
    one = sharing(shared, turns, machine, cpus=min(os.sched_getaffinity(0)))
    ratio = found["ms"] / lost if lost > 0 else None
    return {
        "name": name,
        "turns": turns,
        "native_ms": whole,
        "measured_ms": lost,
        "predicted_ms": found["ms"],
        "predicted_over_measured": ratio,
        "predicted_far_ms": found["far_ms"],
        "one_cpu_predicted_ms": one["ms"],
        "twin_predicted_ms": twin["ms"],
        "kind": kind(found),
        "expected_kind": KINDS.get(name, "false_sharing"),
        "transfers": found["transfers"],
        "times_measured": found["measured"],
        "order": found["order"],
    }


def print_row(row):
    ratio = row["predicted_over_measured"]
    print(
        f"{row['name']:8}{row['native_ms']:10.0f}{row['measured_ms']:10.0f}{row['predicted_ms']:11.0f}"
        + ("      –" if ratio is None else f"{ratio:7.2f}")
        + f"{row['one_cpu_predicted_ms']:10.0f}{row['twin_predicted_ms']:8.1f}  {row['kind']}"
        + ("" if row["kind"] == row["expected_kind"] else f" (expected {row['expected_kind']})")
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="a twentieth of the turns")
    parser.add_argument("--machine", help="the machine whose times are used [default: this one, as it is now]")
    parser.add_argument("--runs", type=int, default=5, help="native runs of each program and its twin")
    parser.add_argument("names", nargs="*", choices=[[], *PROGRAMS], metavar="NAME")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    print("program native ms  lost ms  predicted  ratio  one CPU    twin  kind")
    rows = []
    for name in options.names or PROGRAMS:
        rows.append(examine(name, options))
        print_row(rows[-1])
    ratios = [row["predicted_over_measured"] for row in rows if (row["predicted_over_measured"] or 0) > 0]
    result = {
        "date": datetime.date.today().isoformat(),
        "geometric_mean": statistics.geometric_mean(ratios) if ratios else None,
        "programs": rows,
    }
    (WORK.parent / "sharing.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
