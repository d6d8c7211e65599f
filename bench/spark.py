"""What the same analyses of a trace cost: one pass, processes of this machine, and Spark.

    python3 -P bench/spark.py TRACE [--parts N] [--rounds N]

CPU seconds of all processes together, the JVM and Python's workers among them; the start of the session stands apart.
Writes target/bench/spark.json. It runs in the environment that `make python` makes.
"""

import argparse
import json
import os
import pathlib
import sys
import time

import memlode
import memlode.spark
from pyspark.sql import SparkSession

OUT = pathlib.Path(__file__).parents[1] / "target" / "bench" / "spark.json"
QUESTIONS = ["accesses", "shared:rule=source", "reuse"]


def ticks(pid):
    """Clock ticks that a process and those it waited for have used, and its parent."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0, 0
    return sum(map(int, fields[11:15])), int(fields[1])


def cpu_seconds():
    """CPU seconds of this process and all that it started."""
    known = {int(name): ticks(name) for name in os.listdir("/proc") if name.isdigit()}
    mine, found = {os.getpid()}, 0
    while len(mine) != found:
        found = len(mine)
        mine |= {pid for pid, (_, parent) in known.items() if parent in mine}
    return sum(known[pid][0] for pid in mine) / os.sysconf("SC_CLK_TCK")


def measured(rounds, act):
    """The least CPU seconds, and the elapsed ones beside them."""
    best = None
    for _ in range(rounds):
        cpu, began = cpu_seconds(), time.monotonic()
        act()
        spent = cpu_seconds() - cpu, time.monotonic() - began
        best = min(best or spent, spent)
    return best


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("trace")
    options.add_argument("--parts", type=int, default=os.cpu_count())
    options.add_argument("--rounds", type=int, default=3)
    options = options.parse_args()
    path, parts, rounds = options.trace, options.parts, options.rounds
    table = memlode.run(path, "accesses", parts=1, machine="generic")["accesses_by_variable"]
    accesses = sum(row["accesses"] for row in table.rows)

    # Spark's workers have this package, too.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    began = cpu_seconds()
    spark = SparkSession.builder.master(f"local[{parts}]").config("spark.ui.enabled", "false").getOrCreate()
    spark.range(1).count()
    session = cpu_seconds() - began
    trace = memlode.spark.read(spark, path, parts=parts)
    trace.run(QUESTIONS[0])

    found = {"trace": path, "accesses": accesses, "parts": parts, "session_cpu_s": session, "questions": {}}
    print(f"{accesses / 1e6:.1f} M accesses, {parts} parts; the session's start takes {session:.1f} s of CPU")
    print(f"{'CPU s (elapsed s)':20} {'one pass':>15} {'processes':>15} {'Spark':>15}  M/s of CPU; processes/Spark")
    for question in QUESTIONS:
        one = measured(rounds, lambda: memlode.run(path, question, parts=1, machine="generic"))
        pool = measured(rounds, lambda: memlode.run(path, question, parts=parts, machine="generic"))
        there = measured(rounds, lambda: trace.run(question))
        row = {"one_pass": one, "processes": pool, "spark": there}
        found["questions"][question] = row
        texts = " ".join(f"{cpu:7.2f} ({wall:5.2f})" for cpu, wall in row.values())
        print(f"{question:20} {texts}  {accesses / 1e6 / there[0]:6.1f}  {pool[0] / there[0]:.0%}")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
