"""What the same analyses of a trace cost: one pass, processes of this machine, and Spark.

    python3 -P bench/spark.py TRACE [--parts N] [--rounds N] [--rows FILE.parquet] [--question Q…]

CPU seconds of all processes together, the JVM and Python's workers among them; the start of the session stands apart.
Processes are measured twice: the first time, and when tables of what came before each part are there.
Behind these, one question (accesses by variable and thread) is asked in every way that there is, each in a process of
its own: CPU seconds from the process's start to its end, and peak memory, where a page that several processes have
counts once. --rows is what `memlode export TRACE --to FILE.parquet` wrote; if there is none, it is written first, and
measured.

Writes target/bench/spark.json. It runs in the environment that `make python` makes.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

import memlode
import memlode.spark
from pyspark.sql import SparkSession

OUT = pathlib.Path(__file__).parents[1] / "target" / "bench" / "spark.json"
QUESTIONS = ["accesses", "shared:rule=source", "reuse"]


QUERY = "SELECT process, thread, type, member, variable, count(*) AS accesses FROM accesses GROUP BY ALL"
# Programs that ask it; each prints the accesses that it counted. Their arguments: trace, rows, parts.
HEAD = "import sys; trace, rows, parts = sys.argv[1], sys.argv[2], int(sys.argv[3]); "
TABLE = "print(sum(row['accesses'] for row in found['accesses_by_variable'].rows))"
WAYS = {
    "local engine": f"import memlode; found = memlode.run(trace, 'accesses', parts=1, machine='generic'); {TABLE}",
    "process pool": f"import memlode; found = memlode.run(trace, 'accesses', parts=parts, machine='generic'); {TABLE}",
    "Spark": (
        "import memlode.spark; from pyspark.sql import SparkSession; "
        "spark = SparkSession.builder.master(f'local[{parts}]').config('spark.ui.enabled', 'false').getOrCreate(); "
        f"found = memlode.spark.read(spark, trace, parts=parts).run('accesses'); {TABLE}; spark.stop()"
    ),
    "DuckDB, replayed": (
        f"import memlode; found = memlode.open(trace).sql('{QUERY}', 'generic'); "
        "print(sum(row[-1] for row in found.fetchall()))"
    ),
    "DuckDB, Parquet": (
        "from memlode.query import Session; "
        f"print(sum(row[-1] for row in Session(None, rows=rows).sql('{QUERY}').fetchall()))"
    ),
    "Polars, Parquet": (
        "import polars; names = ['process', 'thread', 'type', 'member', 'variable']; "
        "found = polars.scan_parquet(rows).group_by(names).len().collect(engine='streaming'); print(found['len'].sum())"
    ),
}
EXPORT = "from memlode import parquet; import memlode; "
EXPORT += "print(parquet.write_accesses(memlode.open(trace), rows, 'generic').rows)"


def ticks(pid):
    """Clock ticks that a process and those it waited for have used, and its parent."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0, 0
    return sum(map(int, fields[11:15])), int(fields[1])


def family(first):
    """A process and all that it started, with the clock ticks of each."""
    known = {int(name): ticks(name) for name in os.listdir("/proc") if name.isdigit()}
    mine, found = {first} & set(known), 0
    while len(mine) != found:
        found = len(mine)
        mine |= {pid for pid, (_, parent) in known.items() if parent in mine}
    return {pid: known[pid][0] for pid in mine}


def cpu_seconds(first=None):
    """CPU seconds of a process, or this one, and all that it started."""
    return sum(family(first or os.getpid()).values()) / os.sysconf("SC_CLK_TCK")


def resident(pid):
    """Bytes of a process that are in memory; a page that several have is divided among them."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def watched(program, *words):
    """Runs a Python program: CPU seconds and peak memory with all that it starts, looked at 20 times a second."""
    command = [sys.executable, "-P", "-c", HEAD + program, *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    cpu = memory = 0
    while process.poll() is None:
        cpu = max(cpu, cpu_seconds(process.pid))
        memory = max(memory, sum(map(resident, family(process.pid))))
        time.sleep(0.05)
    if process.returncode != 0:
        sys.exit(f"{program}: exit status {process.returncode}")
    return cpu, memory, int(process.stdout.read())


def ways(path, rows, parts, accesses):
    """Asks one question in every way; returns a row for each."""
    programs = WAYS if rows.exists() else {"export to Parquet": EXPORT, **WAYS}
    found = []
    print(f"\n{'accesses by variable':20} {'CPU s':>8} {'peak MiB':>9}")
    for name, program in programs.items():
        cpu, peak, counted = watched(program, path, rows, parts)
        if counted != accesses:
            sys.exit(f"{name} counts {counted} accesses instead of {accesses}")
        print(f"{name:20} {cpu:8.1f} {peak / 2**20:9.0f}", flush=True)
        found.append({"name": name, "cpu_s": round(cpu, 2), "peak_mib": round(peak / 2**20, 1)})
    return found


def used():
    """CPU seconds of this process and of those that it waited for."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def measured(rounds, act, clock=used):
    """The least CPU seconds, and the elapsed ones beside them."""
    best = None
    for _ in range(rounds):
        cpu, began = clock(), time.monotonic()
        act()
        spent = clock() - cpu, time.monotonic() - began
        best = min(best or spent, spent)
    return best


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("trace")
    options.add_argument("--parts", type=int, default=os.cpu_count())
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rows", type=pathlib.Path)
    options.add_argument("--question", action="append", help="one of these alone, and not the ways to ask")
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

    found = {"trace": path, "accesses": accesses, "parts": parts, "session_cpu_s": session, "questions": {}}
    print(f"{accesses / 1e6:.1f} M accesses, {parts} parts; the session's start takes {session:.1f} s of CPU")
    columns = " ".join(f"{name:>15}" for name in ("one pass", "the first time", "processes", "Spark"))
    print(f"{'CPU s (elapsed s)':20} {columns}  M/s of CPU; processes/Spark; one pass/processes")
    for question in options.question or QUESTIONS:
        one = measured(rounds, lambda: memlode.run(path, question, parts=1, machine="generic"))
        for table in pathlib.Path(path, "results").glob("past-*"):
            table.unlink()
        first = measured(1, lambda: memlode.run(path, question, parts=parts, machine="generic"))
        pool = measured(rounds, lambda: memlode.run(path, question, parts=parts, machine="generic"))
        # Workers that were idle for a minute end now, and not while others are measured.
        spark.range(0, parts, 1, parts).mapInArrow(lambda batches: batches, "id long").count()
        there = measured(rounds, lambda: trace.run(question), cpu_seconds)
        row = {"one_pass": one, "first_time": first, "processes": pool, "spark": there}
        found["questions"][question] = row
        texts = " ".join(f"{cpu:7.2f} ({wall:5.2f})" for cpu, wall in row.values())
        ratios = f"{pool[0] / there[0]:.0%}  {one[0] / pool[0]:.0%}"
        print(f"{question:20} {texts}  {accesses / 1e6 / there[0]:6.1f}  {ratios}", flush=True)
    spark.stop()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    if not options.question:
        rows = options.rows or OUT.with_name(pathlib.Path(path).name + ".parquet")
        found["programs"] = ways(path, rows, parts, accesses)
    OUT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
