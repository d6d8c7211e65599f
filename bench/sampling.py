"""What `memlode sample` costs a program that nobody rebuilt: CPU time over the same program by itself.

    python3 bench/sampling.py [--quick] [--rounds N] [--out FILE] [NAME…]

  sampled   by a timer, 1000 times a second
  noted     the same, and its blocks of 4 KiB and more are noted by the library that is preloaded
  library   noted over sampled: what the library costs
  waiting   by itself, with the library preloaded, which waits for somebody to sample

Programs and their work are those of bench/record.py, built natively. In each round every variant runs once, in random
order. A figure is the least of all rounds over the least of all rounds: what other work on the machine costs is never
less than nothing. Writes target/bench/sampling.json.
"""

import argparse
import collections
import json
import math
import os
import pathlib
import random
import shutil
import sys

import record

LIBRARY = record.MEMLODE.parents[1] / "lib" / "libmemlode_blocks.so"
TRACE = record.WORK / "sampled"
SAMPLE = [record.MEMLODE, "sample", "--rate", "1000", "--force", "-o", TRACE]
WAYS = {
    "native": ([], {}),
    "sampled": ([*SAMPLE, "--blocks", "none", "--"], {}),
    "noted": ([*SAMPLE, "--blocks", "4096", "--"], {}),
    "waiting": ([], {"LD_PRELOAD": LIBRARY, "MEMLODE_BLOCKS": "wait"}),
}
RATIOS = ["sampled", "noted", "library", "waiting"]


def least(command, rounds):
    """The least CPU time of each way, in seconds."""
    found = collections.defaultdict(list)
    for _ in range(rounds):
        for way in random.sample(list(WAYS), len(WAYS)):
            prefix, more = WAYS[way]
            found[way].append(record.run(command, prefix, {**os.environ, **more})["cpu_s"])
    shutil.rmtree(TRACE, ignore_errors=True)
    return {way: min(costs) for way, costs in found.items()}


def ratios(cost):
    """The columns of a program."""
    row = {way: cost[way] / cost["native"] for way in ("sampled", "noted", "waiting")}
    return {"native_s": cost["native"], **row, "library": cost["noted"] / cost["sampled"]}


def line(name, row):
    native = f"{row['native_s']:8.3f}" if "native_s" in row else " " * 8
    print(f"{name:10}{native}" + "".join(f"{row[way]:10.3f}" for way in RATIOS), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", metavar="NAME", nargs="*", help=", ".join(record.PROGRAMS))
    parser.add_argument("--quick", action="store_true", help="one round: shows that it works, measures little")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--out", type=pathlib.Path, default=record.WORK / "sampling.json")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in record.PROGRAMS]
    if unknown:
        parser.error(f"no program is called {unknown[0]}; there are {', '.join(record.PROGRAMS)}")
    record.WORK.mkdir(parents=True, exist_ok=True)
    print(f"{'program':10}{'native s':>8}" + "".join(f"{way:>10}" for way in RATIOS))
    rows = {}
    for name in options.names or record.PROGRAMS:
        program, _ = record.build(name, "native")
        command = [*record.command(name, program), str(record.PROGRAMS[name]["full"])]
        rows[name] = ratios(least(command, 1 if options.quick else options.rounds))
        line(name, rows[name])
    mean = {way: math.exp(sum(math.log(row[way]) for row in rows.values()) / len(rows)) for way in RATIOS}
    line("geomean", mean)
    options.out.write_text(json.dumps({"programs": rows, "geomean": mean}, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except record.Failure as failure:
        sys.exit(f"sampling.py: {failure}")
