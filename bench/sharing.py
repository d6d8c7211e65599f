"""What threads lose to lines that they take from each other: measured, and as `memlode report` says.

    python3 bench/sharing.py [--quick] [--machine M] [--runs N] [NAME…]

  measured    processor time of both threads as the program is, less that of its twin whose data are padded into
              lines of their own, native, in turn, for a second or more; the median
  predicted   what `memlode report` says is lost, of a trace of a fiftieth of the turns, times fifty
  ratio       predicted over measured; a loss below a tenth of the twin's time counts as that tenth
  one CPU     the same of a trace that was recorded on one processor
  twin        what the report says is lost in the padded program

The programs are those of bench/sharing/; those of its kernels.c go by the kernels' names. Processors must be free,
or threads do not meet. How far the two are from each other is measured anew after a minute
(`memlode machine calibrate`), unless a machine is named. Writes target/bench/sharing.json.
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
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = ROOT / "target" / "bench" / "sharing"
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
STARTED = time.time()
PROGRAMS = ["slots", "words", "sweep", "locks", "atomic", "stream"]
# Of these what is shared is of this kind; of all others it is false sharing.
KINDS = {"stream": "true_sharing", "atomic": "true_sharing", "one_atomic": "true_sharing", "handed_512": "true_sharing"}
# Milliseconds of processor time of a native run, as the program is; and the part of its turns that is recorded.
LEAST_MS = 1000
RECORDED_PART = 50
# A loss below this part of the twin's time counts as that.
TRIFLE = 0.1
# Seconds after which the distance of the processors is measured anew.
STALE = 60


class Program:
    """A program and its twin, built by a compiler."""

    def __init__(self, name, compiler):
        source = name if name in PROGRAMS else "kernels"
        self.arguments = [] if name in PROGRAMS else [name]
        self.paths = {}
        for how, flags in (("shared", []), ("padded", ["-DPADDED"])):
            self.paths[how] = WORK / f"{source}-{how}-{pathlib.Path(compiler[0]).name}"
            file = HERE / "sharing" / f"{source}.c"
            flags = ["-O2", "-g", "-pthread", "-D_GNU_SOURCE", *flags]
            if not self.paths[how].exists() or self.paths[how].stat().st_mtime < STARTED:
                subprocess.run([*compiler, *flags, file, "-o", self.paths[how]], check=True)

    def command(self, how, turns):
        return [self.paths[how], *self.arguments, str(turns)]


def kernels():
    """The names of the kernels, as the program lists them."""
    program = Program("kernels", ["clang-22"]).paths["shared"]
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()


def first():
    """In front of others, if that is allowed: threads that do not run at the same time lose nothing to each other."""
    with contextlib.suppress(PermissionError):
        os.nice(-20)


def processor_ms(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, preexec_fn=first)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime)


def enough(program, least_ms):
    """So many turns that a run takes so long."""
    turns = 100
    while (took := processor_ms(program.command("shared", turns))) < 50:
        turns *= 4
    return max(1, int(turns * 1.1 * least_ms / took))


def measured(program, turns, runs):
    """What is lost, the whole, and the twin's time: medians, in milliseconds."""
    whole, twin = [], []
    for _ in range(runs):
        whole.append(processor_ms(program.command("shared", turns)))
        twin.append(processor_ms(program.command("padded", turns)))
    lost = statistics.median(one - other for one, other in zip(whole, twin, strict=True))
    return lost, statistics.median(whole), statistics.median(twin)


def sharing(command, machine, cpus=None):
    """What the report says of sharing."""
    trace = WORK / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    pinned = ["taskset", "-c", str(cpus)] if cpus is not None else []
    record = [*pinned, MEMLODE, "record", "-o", trace, "--", *command]
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
    if not machine.exists() or time.time() - machine.stat().st_mtime > STALE:
        calibrate = [MEMLODE, "machine", "calibrate", "-o", machine]
        subprocess.run(calibrate, check=True, capture_output=True, preexec_fn=first)
    return str(machine)


def kind(found):
    sums = {kind: sum(row["ms"] for row in found[kind]) for kind in ("false_sharing", "true_sharing")}
    return max(sums, key=sums.get) if any(sums.values()) else "none"


def examine(name, options):
    machine = machine_of(options)
    native, recorded = Program(name, ["clang-22"]), Program(name, [MEMLODE, "cc"])
    turns = enough(native, LEAST_MS / (4 if options.quick else 1))
    lost, whole, padded = measured(native, turns, options.runs)
    few = max(turns // RECORDED_PART, min(turns, 20))
    times = turns / few
    found = sharing(recorded.command("shared", few), machine)
    twin = sharing(recorded.command("padded", few), machine)
    one = sharing(recorded.command("shared", few), machine, cpus=min(os.sched_getaffinity(0)))
    trifle = TRIFLE * padded
    return {
        "name": name,
        "turns": turns,
        "native_ms": whole,
        "twin_ms": padded,
        "measured_ms": lost,
        "predicted_ms": times * found["ms"],
        "predicted_over_measured": max(times * found["ms"], trifle) / max(lost, trifle),
        "predicted_far_ms": found["far_ms"] and times * found["far_ms"],
        "one_cpu_predicted_ms": times * one["ms"],
        "twin_predicted_ms": times * twin["ms"],
        "kind": kind(found) if times * found["ms"] > trifle else "none",
        "expected_kind": KINDS.get(name, "false_sharing") if lost > trifle else "none",
        "transfers": found["transfers"] * times,
        "times_measured": found["measured"],
        "order": found["order"],
    }


def print_row(row):
    ratio = row["predicted_over_measured"]
    print(
        f"{row['name']:18}{row['native_ms']:10.0f}{row['measured_ms']:10.0f}{row['predicted_ms']:11.0f}{ratio:7.2f}"
        + f"{row['one_cpu_predicted_ms']:10.0f}{row['twin_predicted_ms']:8.1f}  {row['kind']}"
        + ("" if row["kind"] == row["expected_kind"] else f" (expected {row['expected_kind']})")
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="native runs of a quarter of a second")
    parser.add_argument("--machine", help="the machine whose times are used [default: this one, as it is now]")
    parser.add_argument("--runs", type=int, default=5, help="native runs of each program and its twin")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    names = [*PROGRAMS, *kernels()]
    if unknown := set(options.names) - set(names):
        parser.error(f"no program is called {unknown.pop()}; there are {', '.join(names)}")
    print("program           native ms  lost ms  predicted  ratio  one CPU    twin  kind")
    rows = []
    for name in options.names or names:
        rows.append(examine(name, options))
        print_row(rows[-1])
    ratios = [row["predicted_over_measured"] for row in rows]
    off = [max(ratio, 1 / ratio) for ratio in ratios]
    result = {
        "date": datetime.date.today().isoformat(),
        "geometric_mean_off": statistics.geometric_mean(off),
        "within_2": sum(ratio <= 2 for ratio in off),
        "within_3": sum(ratio <= 3 for ratio in off),
        "programs": rows,
    }
    print(
        f"{len(rows)} programs: {result['geometric_mean_off']:.2f} times off in the geometric mean, "
        f"{result['within_2']} within 2 times, {result['within_3']} within 3"
    )
    (WORK.parent / "sharing.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
