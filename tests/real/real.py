"""Programs written by others (and some of ours), built by their own build systems with memlode's compilers, and run.

    python3 tests/real/real.py [NAME…]

Each program is built twice, by clang, which does not optimise it, and by `memlode cc` (or by cargo and by
`memlode cargo`), and runs the same workload twice. It passes when both outputs are the same, every finding has a
line and a name, the executed accesses have lines, variables and types as often as FLOORS asks, and the names that
people have judged right still stand (names.py). Writes target/bench/coverage.json.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import sys

import names

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = ROOT / "target"
WORK = TARGET / "real"
MEMLODE = TARGET / "memlode" / "bin" / "memlode"

BUILD_CPU = ".build_cpu_s"  # beside each program: what building it took
# name → Debian source package, or None for the program in our own folder
PROGRAMS = {"lua": "lua5.4", "sqlite": "sqlite3", "zstd": "libzstd", "cxx": None, "rust": None, "rust-json": None}

FLOORS = {"line": 0.95, "variable_or_type": 0.85}

COMPILERS = {
    # What a program prints, for which nobody waits. Makefiles choose -O2 -g: the last word is the script's.
    "plain": {
        "CC": f"{HERE}/unoptimised.sh clang-22",
        "CXX": f"{HERE}/unoptimised.sh clang++-22",
        "CARGO_COMMAND": "cargo",
        "CARGO_PROFILE_RELEASE_OPT_LEVEL": "0",
        "CARGO_PROFILE_RELEASE_DEBUG": "0",
    },
    "native": {"CC": "clang-22", "CXX": "clang++-22", "CARGO_COMMAND": "cargo"},
    "memlode": {"CC": f"{MEMLODE} cc", "CXX": f"{MEMLODE} c++", "CARGO_COMMAND": f"{MEMLODE} cargo"},
    "words": {
        "CC": f"{MEMLODE} cc",
        "CXX": f"{MEMLODE} c++",
        "CARGO_COMMAND": f"{MEMLODE} cargo",
        "MEMLODE_MODE": "words",
    },
    "call": {
        "CC": f"{MEMLODE} cc",
        "CXX": f"{MEMLODE} c++",
        "CARGO_COMMAND": f"{MEMLODE} cargo",
        "MEMLODE_MODE": "call",
    },
}


class Failure(Exception):
    """A check that did not hold; the message is the whole story."""


def fetch():
    packages = [package for package in PROGRAMS.values() if package]
    if any(not (WORK / "source" / package / ".unpacked").exists() for package in packages):
        subprocess.run([HERE / "fetch.sh", WORK / "source", *packages], check=True)


def source_of(name):
    package = PROGRAMS[name]
    return WORK / "source" / package if package else HERE / name


def fingerprint(name, kind):
    """Changes when a build of `name` would come out differently."""
    sources = [p for p in (HERE / name).rglob("*") if p.suffix in (".sh", ".cpp", ".rs", ".toml", ".lock")]
    inputs = sorted(p for p in sources if p.stem != "workload")
    if kind not in ("plain", "native"):
        inputs += sorted((TARGET / "memlode" / "lib").glob("lib*")) + sorted((TARGET / "memlode" / "lib").glob("*.so"))
        inputs += sorted((ROOT / "crates" / "cli" / "src" / "driver").glob("*.rs"))
        inputs += [ROOT / "crates" / "cli" / "src" / "commands" / "cargo.rs"]
    digest = hashlib.sha256(str(source_of(name)).encode())
    for path in inputs:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def children_cpu_s():
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def build(name, kind):
    """Returns the program, built if what it is made of has changed."""
    folder = WORK / kind / name
    stamp = folder / ".built"
    wanted = fingerprint(name, kind)
    if not (folder / BUILD_CPU).exists() or not stamp.exists() or stamp.read_text() != wanted:
        print(f"real: building {name} ({kind})", flush=True)
        subprocess.run(["rm", "-rf", folder], check=True)
        folder.mkdir(parents=True)
        log = WORK / f"{name}-{kind}.log"
        # Cargo cuts a crate otherwise when it compiles it in steps, and inlines less: other accesses, other names.
        fixed = {"CARGO_INCREMENTAL": "0", "MAKEFLAGS": "-j2"}
        environment = {**os.environ, **COMPILERS[kind], **fixed, "SOURCE": str(source_of(name))}
        before = children_cpu_s()
        with open(log, "w") as out:
            done = subprocess.run(
                ["bash", "-eu", HERE / name / "build.sh"], cwd=folder, env=environment, stdout=out, stderr=out
            )
        if done.returncode != 0:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise Failure(f"the {kind} build failed; {log} ends with:\n{tail}")
        (folder / BUILD_CPU).write_text(f"{children_cpu_s() - before:.3f}\n")
        stamp.write_text(wanted)
    return folder / "program"


def workload(name, program, scratch):
    """The command that runs `program` on its workload."""
    subprocess.run(["rm", "-rf", scratch], check=True)
    scratch.mkdir(parents=True)
    return ["bash", "-eu", HERE / name / "workload.sh", program, scratch, HERE / name]


def run_plain(name, program):
    command = workload(name, program, WORK / "scratch" / f"{name}-plain")
    return subprocess.run(command, check=True, capture_output=True).stdout


def run_traced(name, program):
    """Output of the traced run, and its report."""
    trace = WORK / "trace" / name
    subprocess.run(["rm", "-rf", trace], check=True)
    trace.parent.mkdir(parents=True, exist_ok=True)
    command = workload(name, program, WORK / "scratch" / f"{name}-memlode")
    done = subprocess.run(
        [MEMLODE, "run", "--no-report", "-o", trace, "--", *command], capture_output=True, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        raise Failure(f"memlode exited with {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}")
    command = [MEMLODE, "report", trace, "--machine", "generic", "--json"]
    return done.stdout, json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def examine(name):
    """Builds, runs and judges one program; returns its row of coverage.json."""
    plain = run_plain(name, build(name, "plain"))
    traced, report = run_traced(name, build(name, "memlode"))
    row = {"name": name, "output_identical": plain == traced, **report["coverage"]}
    problems = []
    if plain != traced:
        for kind, text in (("plain", plain), ("memlode", traced)):
            (WORK / f"{name}-{kind}.out").write_bytes(text)
        problems.append(f"the output differs from the plain build's: compare {WORK}/{name}-{{plain,memlode}}.out")
    for what, floor in FLOORS.items():
        if row[what] < floor:
            problems.append(f"{row[what]:.1%} of the accesses have a {what.replace('_', ' ')}, below {floor:.0%}")
    findings = report["findings"]
    wait = report["total"]["wait"]
    run = wait["cycles"] + wait["first_touch_cycles"] + wait["instruction_cycles"]
    if not findings and wait["cycles"] >= 0.05 * run:
        problems.append("there is no finding, although the program waits for data")
    if any(not (f["line"] and (f["type"] or f["variable"])) for f in findings):
        problems.append("there is a finding without a line and a name")
    if not report["fields"]:
        problems.append("the report has no field of any type")
    return row, problems + names.check(name)


def judge(name):
    """The row of a program, if there is one, and what is wrong."""
    try:
        return examine(name)
    except (Failure, subprocess.CalledProcessError) as failure:
        return None, [str(failure)]


def main(wanted):
    unknown = set(wanted) - set(PROGRAMS)
    if unknown:
        sys.exit(f"real.py: no program called {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")
    fetch()
    rows, failed = [], 0
    # In processes of their own, each of which knows what its children cost. SQLite takes longest.
    names_wanted = sorted(wanted or PROGRAMS, key=lambda name: name != "sqlite")
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, (row, problems) in zip(names_wanted, pool.map(judge, names_wanted)):
            rows += [row] if row else []
            failed += bool(problems)
            for problem in problems:
                print(f"real: {name}: FAILED: {problem}")
    print_table(rows)
    out = TARGET / "bench" / "coverage.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"floors": FLOORS, "programs": rows}, indent=2) + "\n")
    print(f"real: {len(wanted or PROGRAMS) - failed} passed, {failed} failed; figures in {out.relative_to(ROOT)}")
    return 1 if failed else 0


EVIDENCE = ("source", "debug", "tbaa", "partial")


def print_table(rows):
    """As docs/coverage.md has it."""
    print("| program | accesses | line | of them approximate | variable or type | member |", end="")
    print(" names from: source | debug | tag | partial | allocations | typed | by use |")
    print("|---" * 13 + "|")
    for row in rows:
        shares = [row["line"], row["approximate_line"], row["variable_or_type"], row["member"]]
        shares += [row["by_evidence"][kind] for kind in EVIDENCE]
        cells = [row["name"], f"{row['accesses'] / 1e6:.0f} M", *(f"{share:.1%}" for share in shares)]
        cells += [f"{row['allocations']:,}", f"{row['typed_allocations']:.1%}", f"{row['typed_by_use']:.1%}"]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
