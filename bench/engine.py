"""How fast traces are replayed: million accesses a second of one core's processor time, for each program of record.py
and a walk through a list of which every access misses.

    python3 bench/engine.py [--quick] [--machine M] [--over MEMLODE] [NAME…]

  decode     the trace's chunks to accesses
  L1 … L3    a hierarchy of one, two, three levels alone
  engine     decode, all levels, and attribution to thread, site and object class: what `memlode report` does
  causes     time with causes of misses, use of lines, translations and 4K aliasing (`memlode sim --rules lru`), over
             that of engine
  rules      the same with the rules of the machine's caches, prefetchers among them: what `memlode sim` does
  time       the same with a model of the core: what `memlode sim --time` does
  what if    `memlode whatif` with one edit over `memlode report`; what placement alone changes, found out once a
             trace, is left out
  html       `memlode html`, with the replay of rows that it makes by itself, over `memlode report`
  closing    `memlode run`, without the time of `memlode record`, over `memlode report`: a report and its last line
  reuse      exact reuse distances alone
  two cores  elapsed time of engine on one thread over that on two
  live       elapsed time of `memlode run --live`, its report included, over that of the native program
  grind/live elapsed time under Cachegrind, which simulates two levels, over that of live
  MB         most memory, for engine and with causes, and million lines that the program touched
  over       with --over: time of `memlode report` over that of another build's on the same trace, in turns

Each program is recorded once and its trace replayed in a process of its own. Writes target/bench/engine.json.

Programs of two threads that take lines from each other, those of bench/sharing/, have a table of their own:

  engine     as above
  report     time of `memlode report`, which says what the threads lose to each other, over that of engine
  padded     time of that report over that of the twin whose threads have lines of their own, a million accesses each
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import record

# What is timed is what is computed, not what was kept.
os.environ["MEMLODE_RESULTS"] = "off"
ROOT, WORK = record.ROOT, record.WORK
ENGINE = ROOT / "target" / "release" / "examples" / "engine"
# Turns: one in which each thread writes the other's line in a loop, and one in which it reads what the other wrote.
SHARING = {"slots": {"full": 8_000_000, "quick": 400_000}, "stream": {"full": 400, "quick": 40}}
# Programs that are replayed alone, beside those of record.py.
PROGRAMS = {**record.PROGRAMS, "walk": {"file": 80, "cachegrind": 2, "quick": 2}}
MEANS = [
    "decode_maccess_s",
    "engine_maccess_s",
    "causes_time_ratio",
    "rules_time_ratio",
    "time_time_ratio",
    "whatif_time_ratio",
    "html_time_ratio",
    "closing_wall_ratio",
    "reuse_maccess_s",
    "two_core_speedup",
    "live_wall_ratio",
    "live_over_cachegrind",
    "over_ratio",
]


def live(name, program, options):
    """Simulating while the program runs, beside native and Cachegrind, on Cachegrind's smaller input."""
    native, _ = record.build(name, "native")
    size = str(PROGRAMS[name]["quick" if options.quick else "cachegrind"])
    base, peers = record.native_and_peers(name, native, size, ["cachegrind"])
    run = [record.MEMLODE, "run", "--live", "-m", options.machine, "--report-to", "/dev/null", "--"]
    cost = min(record.run([*run, *record.command(name, program), size])["wall_s"] for _ in range(3))
    return {
        "live_wall_ratio": cost / base["wall_s"],
        "live_over_cachegrind": peers["cachegrind"]["wall_s"] / cost,
    }


def least(words):
    """The cost of a command of memlode's: the shortest of three runs."""
    return min((record.run([record.MEMLODE, *words]) for _ in range(3)), key=lambda cost: cost["wall_s"])


def over_report(name, program, rounds, trace, options):
    """What is made beside a report: one edit of the type that is waited for most, of those that can be moved; the page
    for a browser; and the line that ends a report."""
    on = [trace, "-m", options.machine]
    report = least(["report", *on])
    found = subprocess.run([record.MEMLODE, "report", *on, "--json"], check=True, capture_output=True)
    page = WORK / "report.html"
    ratios = {"html_time_ratio": least(["html", *on, "-o", page])["cpu_s"] / report["cpu_s"]}
    page.unlink()
    for row in json.loads(found.stdout)["types"]:
        edit = ["whatif", *on, "--edit", f'align "{row["type"]}" to 64']
        # The first one finds out what placement alone changes.
        if subprocess.run([record.MEMLODE, *edit], capture_output=True).returncode == 0:
            ratios["whatif_time_ratio"] = least(edit)["cpu_s"] / report["cpu_s"]
            break
    work = [*record.command(name, program), str(rounds)]
    again = WORK / "again"
    keeping = ["--force", "-o", again]
    recorded = least(["record", *keeping, "--", *work])
    run = least(["run", *keeping, "-m", options.machine, "--", *work])
    shutil.rmtree(again)
    ratios["closing_wall_ratio"] = max(run["wall_s"] - recorded["wall_s"], 0.0) / report["wall_s"]
    return ratios


def over(trace, options):
    """A report's time over that of another build's: the least of five each, in turns."""
    builds = [record.MEMLODE, options.over]
    words = ["report", trace, "-m", options.machine]
    turns = [[record.run([build, *words])["cpu_s"] for build in builds] for _ in range(5)]
    ours, theirs = (min(costs) for costs in zip(*turns, strict=True))
    return {"over_ratio": ours / theirs}


def examine(name, options):
    program, _ = record.build(name, "memlode")
    sizes = PROGRAMS[name]
    # A trace is replayed some twenty times, with rules at tens of accesses' cost: a part of what record.py records.
    rounds = max(1, sizes["file"] // (32 if options.quick else 8))
    trace = WORK / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    recording = [record.MEMLODE, "record", "-o", trace, "--", *record.command(name, program), str(rounds)]
    subprocess.run(recording, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = subprocess.run([ENGINE, trace, options.machine], check=True, capture_output=True, text=True)
    ratios = over_report(name, program, rounds, trace, options)
    if options.over:
        ratios |= over(trace, options)
    shutil.rmtree(trace)
    return {"name": name, **json.loads(done.stdout), **ratios, **live(name, program, options)}


def threads(name, options):
    """What it costs to say what threads lose to each other."""
    turns = str(SHARING[name]["quick" if options.quick else "full"])
    seconds, row = {}, {"name": name}
    for twin in ("shared", "padded"):
        program, trace = WORK / f"{name}-{twin}", WORK / "trace"
        flags = ["-O2", "-g", "-pthread", "-D_GNU_SOURCE", *(["-DPADDED"] if twin == "padded" else [])]
        source = ROOT / "bench" / "sharing" / f"{name}.c"
        subprocess.run([record.MEMLODE, "cc", *flags, source, "-o", program], check=True)
        shutil.rmtree(trace, ignore_errors=True)
        recording = [record.MEMLODE, "record", "-o", trace, "--", program, turns]
        subprocess.run(recording, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        engine = subprocess.run([ENGINE, trace, options.machine], check=True, capture_output=True, text=True)
        found = json.loads(engine.stdout)
        millions = found["accesses"] / 1e6
        seconds[twin] = least(["report", trace, "-m", options.machine])["cpu_s"] / millions
        if twin == "shared":
            row |= {"accesses": found["accesses"], "engine_maccess_s": found["engine_maccess_s"]}
            row["report_time_ratio"] = seconds[twin] * found["engine_maccess_s"]
        shutil.rmtree(trace)
    return {**row, "padded_time_ratio": seconds["shared"] / seconds["padded"]}


def print_row(row):
    levels = row.get("simulate_maccess_s", [])
    print(
        f"{row['name']:10}{row['decode_maccess_s']:9.0f}"
        + ("/".join(f"{level:.0f}" for level in levels)).rjust(18)
        + f"{row['engine_maccess_s']:9.0f}{row['causes_time_ratio']:9.2f}"
        + f"{row['rules_time_ratio']:9.2f}{row['time_time_ratio']:9.2f}"
        + f"{row.get('whatif_time_ratio', math.nan):9.2f}{row['html_time_ratio']:7.1f}"
        + f"{row['closing_wall_ratio']:9.2f}{row['reuse_maccess_s']:9.0f}"
        + f"{row['two_core_speedup']:11.2f}{row['live_wall_ratio']:7.1f}{row['live_over_cachegrind']:12.2f}"
        + (f"{row['peak_mb']:8.0f}{row['peak_with_causes_mb']:8.0f}{row['lines'] / 1e6:9.2f}" if levels else " " * 25)
        + (f"{row['over_ratio']:8.2f}" if "over_ratio" in row else ""),
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs: shows that it works, measures little")
    parser.add_argument("--machine", default="skylake-sp", help="whose caches are simulated (default: skylake-sp)")
    parser.add_argument("--over", type=pathlib.Path, metavar="MEMLODE", help="another build, to compare reports with")
    parser.add_argument("--out", type=pathlib.Path, default=WORK / "engine.json")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*PROGRAMS, *SHARING]))
    options = parser.parse_args()
    unknown = set(options.names) - set(PROGRAMS) - set(SHARING)
    if unknown:
        parser.error(f"no program called {', '.join(sorted(unknown))}")
    WORK.mkdir(parents=True, exist_ok=True)
    build = ["cargo", "build", "--quiet", "--release", "--package", "memlode-attribute", "--example", "engine"]
    subprocess.run(build, check=True, cwd=ROOT)
    result = {
        "machine": record.machine(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": "python3 bench/engine.py " + " ".join(sys.argv[1:]),
        "simulated": options.machine,
        "programs": [],
        "threads": [],
    }
    print(
        f"{'program':10}{'decode':>9}{'L1/L2/L3 alone':>18}{'engine':>9}{'causes':>9}"
        f"{'rules':>9}{'time':>9}{'what if':>9}{'html':>7}{'closing':>9}{'reuse':>9}"
        f"{'two cores':>11}{'live':>7}{'grind/live':>12}{'MB':>8}{'causes':>8}{'M lines':>9}"
        + (f"{'over':>8}" if options.over else "")
    )
    everything = [name for name, sizes in PROGRAMS.items() if "quick" in sizes or not options.quick]
    for name in [name for name in options.names or everything if name in PROGRAMS]:
        row = examine(name, options)
        print_row(row)
        result["programs"].append(row)
        rows = {key: [row[key] for row in result["programs"] if row.get(key)] for key in MEANS}
        result["geomean"] = {key: statistics.geometric_mean(values) for key, values in rows.items() if values}
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    if result["programs"]:
        print_row({"name": "geomean", **result["geomean"]})
    print(f"\n{'threads':10}{'M accesses':>12}{'engine':>9}{'report':>9}{'padded':>9}")
    for name in [name for name in SHARING if not options.names or name in options.names]:
        row = threads(name, options)
        print(
            f"{name:10}{row['accesses'] / 1e6:12.1f}{row['engine_maccess_s']:9.0f}{row['report_time_ratio']:9.2f}"
            f"{row['padded_time_ratio']:9.2f}",
            flush=True,
        )
        result["threads"].append(row)
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(f"figures in {options.out}")


if __name__ == "__main__":
    sys.exit(main())
