"""What recording costs: CPU time over native -O2 of the same round, for every way there is to record.

    python3 bench/record.py [--quick] [--no-peers] [--rounds N] [NAME…]

  discard     instrumented: the trace is written and thrown away
  words       the words of the trace alone, stored to one place over and over: no room looked for, no chunk handed
              over, nothing read; what discard costs at least
  dormant     instrumented, and nobody records it
  burst       recorded in bursts, 1% of the time, to a file: the program's CPU time
  call        instrumented with a call per access to an empty function, for comparison
  cachegrind  valgrind --tool=cachegrind on the native program (once, on a smaller input); memcheck likewise
  lackey      the same, which prints every access, here to /dev/null; left out where a run of the program takes
              longer than a round of the others
  file        under `memlode record`: the program's CPU and wall time while a trace is written
  ram         the same to a RAM disk, where there is one with room for a trace
  compile     processor time of building it, over that of the native build
  text        bytes of code, over those of the native program

In each round every variant runs once, in random order, with native before and after; a ratio is to the mean of
the two (to the faster one, noise would be a cost). Figures are medians over the rounds. Writes
target/bench/record.json.

`large` is no program: it is the compile time of the files of large.py, whose functions are as large as generators
make them.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = ROOT / "target" / "bench"
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
sys.path[:0] = [str(ROOT / "tests" / "real")]
import large  # noqa: E402  HERE is where Python looks first
import real  # noqa: E402  the Lua builds are those of `make real`

MEASURE = [sys.executable, str(HERE / "measure.py")]

# Rounds of each program for: the usual measurement (1 to 2 s native), tracing to a file, Valgrind's tools (lackey takes
# thousands of times the native time), --quick.
PROGRAMS = {
    "pricing": {"full": 120, "file": 40, "cachegrind": 12, "lackey": 6, "quick": 10},
    "stencil": {"full": 300, "file": 300, "cachegrind": 30, "lackey": 10, "quick": 30},
    "matmul": {"full": 14, "file": 14, "cachegrind": 1, "lackey": 1, "quick": 1},
    "hash": {"full": 18, "file": 18, "cachegrind": 3, "lackey": 1, "quick": 2},
    "tree": {"full": 30, "file": 30, "cachegrind": 4, "lackey": 1, "quick": 3},
    "counters": {"full": 160, "file": 24, "cachegrind": 4, "lackey": 4, "quick": 8},
    "lua": {"full": 60, "file": 20, "cachegrind": 3, "lackey": 1, "quick": 4},
    "sqlite": {"full": 4, "file": 1, "cachegrind": 1},
    "zstd": {"full": 6, "file": 2, "cachegrind": 1},
    "cxx": {"full": 12, "file": 4, "cachegrind": 1},
    "rust": {"full": 12, "file": 4, "cachegrind": 1},
}
# What one run of a program that takes no number of rounds is.
REPEATED = {
    "sqlite": '"$PROGRAM" :memory: <"$REAL/sqlite/workload.sql"',
    "zstd": '"$PROGRAM" -q -f -6 "$SCRATCH/corpus" -o "$SCRATCH/corpus.zst"',
    "cxx": '"$PROGRAM"',
    "rust": '"$PROGRAM"',
}
# Valgrind's tools, and what they are told.
PEERS = {
    "cachegrind": ["--cache-sim=yes", "--cachegrind-out-file=/dev/null"],
    "lackey": ["--trace-mem=yes", "--log-file=/dev/null"],
    "memcheck": [],
}
RAM_DISK = pathlib.Path("/dev/shm")
LARGEST_TRACE = 1 << 30
OURS = ["discard", "words", "dormant", "burst", "call"]
OURS += ["file_cpu", "file_wall", "ram_cpu", "ram_wall", "compile", "text"]
WAYS = [*OURS, *PEERS]
RATIOS = [f"{way}_ratio" for way in WAYS]


class Failure(Exception):
    """A measurement that could not be made."""


def command(name, program):
    """What runs a program; the number of rounds is to follow."""
    if name == "lua":
        return [str(program), str(real.HERE / "lua" / "mix.lua")]
    if name not in REPEATED:
        return [str(program)]
    scratch = WORK / "scratch"
    if name == "zstd" and not (scratch / "corpus").exists():
        scratch.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, real.HERE / "zstd" / "corpus.py", scratch / "corpus"], check=True)
    loop = f"for round in $(seq $0); do {REPEATED[name]}; done"
    return ["env", f"PROGRAM={program}", f"REAL={real.HERE}", f"SCRATCH={scratch}", "bash", "-euc", loop]


def build(name, kind):
    """The program `name` as `kind` (native, memlode or call), and the processor time of building it."""
    if name in real.PROGRAMS:
        real.fetch()
        program = real.build(name, kind)
        return program, float((program.parent / real.BUILD_CPU).read_text())
    program = WORK / kind / name
    program.parent.mkdir(parents=True, exist_ok=True)
    compiler = real.COMPILERS[kind]
    compile_it = [*compiler["CC"].split(), "-O2", "-g", "-pthread", HERE / "kernels" / f"{name}.c", "-o", program]
    costs = []
    for _ in range(3):
        before = real.children_cpu_s()
        subprocess.run(compile_it, check=True, env={**os.environ, **compiler})
        costs.append(real.children_cpu_s() - before)
    return program, min(costs)


def text_bytes(program):
    sections = subprocess.run(["size", "-A", program], check=True, capture_output=True, text=True).stdout
    return next(int(line.split()[1]) for line in sections.splitlines() if line.startswith(".text "))


def run(command, prefix=(), environment=None):
    """Cost of one run of `command`, seen from inside `prefix`."""
    out = WORK / "measured.json"
    out.unlink(missing_ok=True)
    done = subprocess.run(
        [*prefix, *MEASURE, out, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    cost = json.loads(out.read_text()) if out.exists() else {"status": done.returncode}
    if cost["status"] != 0:
        raise Failure(f"{' '.join(map(str, command))} ended with {cost['status']}: {done.stderr.decode()[-500:]}")
    return cost


def without_collector():
    return {key: value for key, value in os.environ.items() if key != "MEMLODE_COLLECTOR"}


def trace_to(trace, command):
    """Cost of the program under `memlode record`, with what the trace holds and the collector's CPU time."""
    shutil.rmtree(trace, ignore_errors=True)
    before = real.children_cpu_s()
    cost = run(command, prefix=[MEMLODE, "record", "-o", trace, "--"])
    cost["collector_cpu_s"] = real.children_cpu_s() - before - cost["cpu_s"]
    cost["bytes"] = sum(path.stat().st_size for path in trace.rglob("*") if path.is_file())
    manifest = json.loads((trace / "manifest.json").read_text())
    cost["accesses"] = sum(thread["accesses"] for thread in manifest["threads"])
    cost["words"] = sum(thread["raw_words"] for thread in manifest["threads"])
    shutil.rmtree(trace)
    return cost


def one_round(commands, sizes, shuffler):
    """Ratios of one round, and the native CPU time they are to."""
    environment = without_collector()
    native = {size: [run([*commands["native"], size])] for size in {sizes["full"], sizes["file"]}}
    figures = {}

    def measure_discard():
        discarding = {**environment, "MEMLODE_COLLECTOR": "discard"}
        figures["discard"] = run([*commands["memlode"], sizes["full"]], environment=discarding)

    def measure_words():
        figures["words"] = run([*commands["words"], sizes["full"]], environment=environment)

    def measure_dormant():
        figures["dormant"] = run([*commands["memlode"], sizes["full"]], environment=environment)

    def measure_burst():
        trace = WORK / "trace"
        shutil.rmtree(trace, ignore_errors=True)
        record = [MEMLODE, "record", "--burst", "1%", "--allow-empty", "-o", trace, "--"]
        figures["burst"] = run([*commands["memlode"], sizes["full"]], prefix=record)
        shutil.rmtree(trace, ignore_errors=True)

    def measure_call():
        figures["call"] = run([*commands["call"], sizes["full"]], environment=environment)

    def measure_file():
        figures["file"] = trace_to(WORK / "trace", [*commands["memlode"], sizes["file"]])

    def measure_ram():
        with tempfile.TemporaryDirectory(prefix="memlode-bench-", dir=RAM_DISK) as directory:
            figures["ram"] = trace_to(pathlib.Path(directory) / "trace", [*commands["memlode"], sizes["file"]])

    steps = [measure_discard, measure_words, measure_dormant, measure_burst, measure_call, measure_file]
    if RAM_DISK.is_dir() and shutil.disk_usage(RAM_DISK).free >= LARGEST_TRACE:
        steps.append(measure_ram)
    for step in shuffler.sample(steps, len(steps)):
        step()
    for size, costs in native.items():
        costs.append(run([*commands["native"], size]))
    base = {
        size: {key: statistics.mean(c[key] for c in costs) for key in ("cpu_s", "wall_s")}
        for size, costs in native.items()
    }
    full, file = base[sizes["full"]], base[sizes["file"]]
    ram = figures.get("ram", {})
    return {
        "native_cpu_s": full["cpu_s"],
        "discard_ratio": figures["discard"]["cpu_s"] / full["cpu_s"],
        "words_ratio": figures["words"]["cpu_s"] / full["cpu_s"],
        "dormant_ratio": figures["dormant"]["cpu_s"] / full["cpu_s"],
        "burst_ratio": figures["burst"]["cpu_s"] / full["cpu_s"],
        "call_ratio": figures["call"]["cpu_s"] / full["cpu_s"],
        "file_cpu_ratio": figures["file"]["cpu_s"] / file["cpu_s"],
        "file_wall_ratio": figures["file"]["wall_s"] / file["wall_s"],
        **{f"ram_{kind}_ratio": ram[f"{kind}_s"] / file[f"{kind}_s"] for kind in ("cpu", "wall") if ram},
        "codec_maccess_s": figures["file"]["accesses"] / figures["file"]["collector_cpu_s"] / 1e6,
        "bytes_per_access": figures["file"]["bytes"] / max(1, figures["file"]["accesses"]),
        "words_per_access": figures["file"]["words"] / max(1, figures["file"]["accesses"]),
        "accesses": figures["file"]["accesses"],
    }


def native_and_peers(name, native, size, peers):
    """Cost of the native program, the least of three runs, and of the same under each of some of Valgrind's tools."""
    # Valgrind 3.19 gives up on clang 22's debug information.
    stripped = WORK / "stripped"
    subprocess.run(["strip", "--strip-debug", "-o", stripped, native], check=True)
    runs = [run([*command(name, stripped), size]) for _ in range(3)]
    base = {key: min(cost[key] for cost in runs) for key in ("cpu_s", "wall_s")}
    costs = {}
    for peer in peers:
        # The program alone runs under the tool, not the shell that repeats it: Valgrind that is told to skip a shell
        # does not follow what the shell starts.
        under = WORK / f"under-{peer}"
        words = ["exec", "valgrind", f"--tool={peer}", "-q", *PEERS[peer], str(stripped)]
        under.write_text(f'#!/bin/sh\n{shlex.join(words)} "$@"\n')
        under.chmod(0o755)
        costs[peer] = run([*command(name, under), size])
    return base, costs


def examine(name, options):
    built = {kind: build(name, kind) for kind in ("native", "memlode", "words", "call")}
    commands = {kind: command(name, program) for kind, (program, _) in built.items()}
    sizes = {key: str(value) for key, value in PROGRAMS[name].items()}
    if options.quick:
        sizes = dict.fromkeys(sizes, sizes.get("quick", "1"))
    shuffler = random.Random(name)
    rounds = [one_round(commands, sizes, shuffler) for _ in range(options.rounds)]
    row = {"name": name, **{key: statistics.median(r[key] for r in rounds) for key in rounds[0]}}
    (native, native_cpu_s), (memlode, memlode_cpu_s) = built["native"], built["memlode"]
    peers = {"cachegrind": ["cachegrind", "memcheck"], "lackey": ["lackey"]}
    if options.quick:
        peers = {"cachegrind": ["cachegrind"]}
    if options.no_peers:
        peers = {}
    for size in peers.keys() & sizes.keys():
        base, costs = native_and_peers(name, native, sizes[size], peers[size])
        row |= {f"{peer}_ratio": cost["cpu_s"] / base["cpu_s"] for peer, cost in costs.items()}
    row["compile_ratio"] = memlode_cpu_s / native_cpu_s
    row["text_ratio"] = text_bytes(memlode) / text_bytes(native)
    return row


def compile_large(rounds):
    """Processor time of compiling each large file, over that of clang alone: the least of a few rounds of both."""
    rows = []
    for shape in large.SHAPES:
        source = WORK / f"large-{shape}.c"
        source.write_text(large.text(shape))
        costs = {"native": [], "memlode": []}
        for kind in sorted(costs) * min(rounds, 3):
            compiler = real.COMPILERS[kind]
            compile_it = [*compiler["CC"].split(), "-O2", "-g", "-w", "-c", source, "-o", WORK / "large.o"]
            before = real.children_cpu_s()
            subprocess.run(compile_it, check=True, env={**os.environ, **compiler})
            costs[kind].append(real.children_cpu_s() - before)
        native, memlode = min(costs["native"]), min(costs["memlode"])
        rows.append({"name": shape, "native_cpu_s": native, "compile_ratio": memlode / native})
        print(f"{shape:10}{native:9.3f} s to compile, with memlode {memlode / native:.2f} times that", flush=True)
    return rows


def machine():
    cpu = next(
        (line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown"
    )
    compiler = subprocess.run(["clang-22", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "compiler": compiler,
        "load_before": os.getloadavg()[0],
    }


def print_row(row):
    print(
        f"{row['name']:10}{row.get('native_cpu_s', ''):{'9.3f' if 'native_cpu_s' in row else '9'}}"
        + "".join(f"{row[key]:11.2f}" if key in row else " " * 11 for key in RATIOS)
        + (f"{row['codec_maccess_s']:9.0f}{row['bytes_per_access']:10.3f}" if "accesses" in row else "")
        + (f"{row['accesses']:15,.0f}" if "accesses" in row else ""),
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs: shows that it works, measures little")
    parser.add_argument("--no-peers", action="store_true", help="without Valgrind's tools, which take most of the time")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, default=WORK / "record.json")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*PROGRAMS, "large"]))
    options = parser.parse_args()
    unknown = set(options.names) - {*PROGRAMS, "large"}
    if unknown or options.rounds < 1:
        parser.error(f"no program called {', '.join(sorted(unknown))}" if unknown else "--rounds must be at least 1")
    WORK.mkdir(parents=True, exist_ok=True)
    result = {
        "machine": machine(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": "python3 bench/record.py " + " ".join(sys.argv[1:]),
        "rounds": options.rounds,
        "programs": [],
    }
    heads = "".join(f"{key.removesuffix('_ratio'):>11}" for key in RATIOS)
    print(f"{'program':10}{'native s':>9}{heads}{'M acc/s':>9}{'B/access':>10}{'accesses':>15}")
    failed = False
    everything = [name for name, sizes in PROGRAMS.items() if "quick" in sizes or not options.quick]
    for name in options.names or [*everything, "large"]:
        if name == "large":
            result["large"] = compile_large(1 if options.quick else options.rounds)
            options.out.write_text(json.dumps(result, indent=2) + "\n")
            continue
        try:
            row = examine(name, options)
        except (Failure, real.Failure, subprocess.CalledProcessError) as failure:
            print(f"record.py: {name}: {failure}", file=sys.stderr)
            failed = True
            continue
        print_row(row)
        result["programs"].append(row)
        means = {key: [row[key] for row in result["programs"]] for key in RATIOS if key in row}
        result["geomean"] = {key: statistics.geometric_mean(values) for key, values in means.items()}
        # Written as it grows: an hour's figures outlive an interruption.
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    if result["programs"]:
        print_row({"name": "geomean", **result["geomean"]})
        print(f"figures in {options.out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
