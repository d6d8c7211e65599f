"""How far a trace in bursts is from the whole one: python3 bench/bursts.py [--quick] [--rounds N] [NAME…]

Each program is recorded whole once, and with --burst 1% some times, on the same input. Of each table of
`memlode report`, the rows that make 1% or more of the whole trace's accesses are compared: the error is the mean of
|share in bursts - share in the whole| / share in the whole, in per cent, once for shares of accesses and once for
shares of the wait. Figures are medians over the rounds; a row that no burst has is wrong by 100%. Writes
target/bench/bursts.json.
"""

import argparse
import datetime
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

import record

WORK = record.ROOT / "target" / "bench" / "bursts"
# Rounds of each program: long enough for some ten bursts or more, short enough to be replayed whole.
SIZES = {"pricing": 40, "stencil": 100, "matmul": 6, "hash": 12, "tree": 20, "counters": 24, "lua": 12, "zstd": 12}
# Table of the report, and what tells a row from others of it.
TABLES = {
    "line": ("lines", ("file", "line", "function", "type", "member", "variable")),
    "member": ("fields", ("type", "member")),
    "type": ("types", ("type",)),
    "object": ("objects", ("kind", "allocated_at", "path", "symbol", "variable", "function")),
    "function": ("functions", ("linkage_name",)),
}
LEAST_SHARE = 0.01
SHARES = ("accesses", "wait")


def shares(report, table):
    """Shares by row: of the accesses, and of the wait."""
    rows, names = TABLES[table]
    sums = {}
    for row in report[rows]:
        key = tuple(str(row.get(name)) for name in names)
        before = sums.get(key, (0, 0.0))
        sums[key] = (before[0] + row["accesses"], before[1] + row["wait"]["cycles"])
    whole = [max(sum(part[at] for part in sums.values()), 1e-9) for at in range(2)]
    return {key: tuple(part[at] / whole[at] for at in range(2)) for key, part in sums.items()}


def error(whole, sampled, of):
    """Mean absolute error of the shares of the rows that count, in per cent of these; none if no row does."""
    rows = [key for key, share in whole.items() if share[0] >= LEAST_SHARE and share[of] >= LEAST_SHARE]
    if not rows:
        return None
    return 100 * statistics.mean(abs(sampled.get(key, (0, 0))[of] - whole[key][of]) / whole[key][of] for key in rows)


def report(command, options=()):
    """The report of a new trace of a command; none if nothing was recorded."""
    trace = WORK / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    recording = [record.MEMLODE, "record", *options, "--allow-empty", "-o", trace, "--", *command]
    subprocess.run(recording, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = subprocess.run(
        [record.MEMLODE, "report", trace, "--json", "--machine", "generic"], capture_output=True, text=True
    )
    shutil.rmtree(trace)
    return json.loads(done.stdout) if done.returncode == 0 else None


def examine(name, options):
    program, _ = record.build(name, "memlode")
    size = max(1, SIZES[name] // 10) if options.quick else SIZES[name]
    command = [*record.command(name, program), str(size)]
    whole = report(command)
    tables = {table: shares(whole, table) for table in TABLES}
    found = {f"{table}_{share}": [] for table in TABLES for share in SHARES}
    bursts, covered = [], []
    for _ in range(options.rounds):
        sampled = report(command, ["--burst", "1%"])
        if sampled is None:
            continue
        bursts.append(sampled["trace"]["sample"]["runs"])
        covered.append(sampled["total"]["accesses"] / whole["total"]["accesses"])
        for table, rows in tables.items():
            others = shares(sampled, table)
            for at, share in enumerate(SHARES):
                found[f"{table}_{share}"].append(error(rows, others, at))
    row = {"name": name, "accesses": whole["total"]["accesses"], "rounds": len(bursts)}
    if bursts:
        row |= {"bursts": statistics.median(bursts), "covered_percent": 100 * statistics.median(covered)}
    for key, errors in found.items():
        known = [error for error in errors if error is not None]
        row |= {f"{key}_error_percent": statistics.median(known)} if known else {}
    return row


def mean(rows):
    """The mean of each figure over the programs that have it."""
    columns = {key for row in rows for key in row if key.endswith("_percent")}
    return {key: statistics.mean(row[key] for row in rows if key in row) for key in sorted(columns)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the input: shows that it works")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, default=record.WORK / "bursts.json")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SIZES))
    options = parser.parse_args()
    unknown = set(options.names) - SIZES.keys()
    if unknown or options.rounds < 1:
        parser.error(f"no program called {', '.join(sorted(unknown))}" if unknown else "--rounds must be at least 1")
    WORK.mkdir(parents=True, exist_ok=True)
    result = {
        "machine": record.machine(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": "python3 bench/bursts.py " + " ".join(sys.argv[1:]),
        "rounds": options.rounds,
        "programs": [],
    }
    for name in options.names or SIZES:
        row = examine(name, options)
        result["programs"].append(row)
        told = ", ".join(f"{table} {row.get(f'{table}_accesses_error_percent', float('nan')):.1f}%" for table in TABLES)
        print(f"{name:10} {row['accesses']:15,} accesses, {row.get('bursts', 0):.0f} bursts: {told}", flush=True)
        result["mean"] = mean(result["programs"])
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
