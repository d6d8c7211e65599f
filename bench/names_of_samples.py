"""What samples of plain programs know of their data, and whether it is true: python3 bench/names_of_samples.py [NAME…]

The programs of tests/real are built without memlode, by clang-22 and by gcc with -O2 -g (Rust by cargo), and sampled
at their workloads. Of the samples at the program's own memory instructions, `stack` is the part that saves or
restores registers and return addresses, which have no type; `typed` is the part with a type or variable, `of able`
the same of those that are not `stack`, and `member` the part with a member. The truth are the site tables of the same
sources built with memlode: a sample agrees if a site of its line, kind and size, of clang's also of its column, has
its type and member. `agreement` is the part of the samples that do, of those where both say something; `compared` is
how many these are. Writes target/bench/typing.json.
"""

import argparse
import collections
import csv
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "real"))
import names  # noqa: E402
import real  # noqa: E402
import record  # noqa: E402

WORK = ROOT / "target" / "bench" / "typing"
RATE = 20000
ROUNDS = 20
OPTIMISED = {"CARGO_COMMAND": "cargo", "CARGO_PROFILE_RELEASE_DEBUG": "2"}
real.COMPILERS["typing-clang"] = {"CC": "clang-22", "CXX": "clang++-22", **OPTIMISED}
real.COMPILERS["typing-gcc"] = {"CC": "gcc", "CXX": "g++", **OPTIMISED}


def base(name):
    """A type without the names of what it is in, and C's plain types in one spelling."""
    name = re.sub(r"\(anonymous namespace\)::", "", name)
    while "<" in name and (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    name = re.sub(r"\b(short|long) int\b", r"\1", name).split("::")[-1]
    return {"long unsigned": "unsigned long", "short unsigned": "unsigned short"}.get(name, name)


def is_same(claim, known):
    """The same member of the same type; of a union any that lies there, or all of it; of a type in another, either."""
    pairs = [(own, other) for own in claim[1].split("|") for other in known[1].split("|")]
    for pair in pairs:
        outer, inner = sorted(pair, key=len, reverse=True)
        if base(claim[0]) == base(known[0]) and (outer == inner or outer.startswith(inner + ".")):
            return True
        if base(claim[0]) != base(known[0]) and inner != "-" and f".{outer}.".find(f".{inner}.") > 0:
            return True
    return False


def sites(name, has_columns):
    """Type and member of a trace's sites, by place, kind and size."""
    if not (real.WORK / "trace" / name).exists():
        real.run_traced(name, real.build(name, "memlode"))
    dumped = [names.MEMLODE, "dump", "--sites", real.WORK / "trace" / name]
    done = subprocess.run(dumped, check=True, capture_output=True, text=True)
    found = collections.defaultdict(set)
    for row in names.read_tsv(done.stdout.lstrip("#").splitlines()):
        kinds = {"load": ["load"], "store": ["store"], "update": ["store"]}.get(row["kind"], [])
        place = row["place"].lstrip("~").rsplit(":", 2)
        if len(place) == 3 and (row["type"], row["member"]) != ("-", "-"):
            key = (pathlib.PurePath(place[0]).name, place[1], place[2] if has_columns else "", row["bytes"])
            for kind in kinds:
                found[(*key, kind)].add((row["type"], row["member"]))
    return found


def sampled(name, kind):
    """Samples at memory instructions of the program itself."""
    program = real.build(name, kind)
    own = str(program.resolve())
    command = real.workload(name, program, WORK / "scratch")
    again = ["bash", "-euc", f'for round in $(seq {ROUNDS}); do "$@"; done', "rounds", *command]
    sample = [names.MEMLODE, "sample", "--blocks", "none", "--rate", str(RATE), "--force", "-o", WORK / "kept", "--"]
    subprocess.run([*sample, *again], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    table = WORK / f"{name}-{kind}.csv"
    subprocess.run([names.MEMLODE, "export", WORK / "kept", "--to", table], check=True, capture_output=True)
    with open(table) as file:
        rows = [row for row in csv.DictReader(file) if row["image"] == own and row["bytes"]]
    if not rows:
        raise real.Failure(f"no sample is in {own}")
    return rows


def measure(name, kind, differences):
    has_columns = kind == "typing-clang"
    truth = sites(name, has_columns)
    rows = sampled(name, kind)
    typed = member = stack = compared = agree = 0
    for row in rows:
        is_typed = bool(row["type"] or row["variable"])
        typed += is_typed
        member += bool(row["member"])
        stack += row["untyped"] == "Stack"
        column = row["column"] if has_columns else ""
        claim = (row["type"] or "-", row["member"] or "-")
        key = (pathlib.PurePath(row["file"]).name, row["line"], column, row["bytes"], row["kind"])
        known = truth.get(key)
        if known and row["type"]:
            compared += 1
            is_agreed = any(is_same(claim, one) for one in known)
            agree += is_agreed
            if not is_agreed:
                differences[(name, kind, ":".join(key[:2]), claim, tuple(sorted(known))[:3])] += 1
    return {
        "samples": len(rows),
        "stack": stack / len(rows),
        "typed": typed / len(rows),
        "typed_of_able": typed / max(1, len(rows) - stack),
        "member": member / len(rows),
        "compared": compared,
        "agreement": agree / compared if compared else None,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--differences", type=int, default=0, metavar="N", help="show the N most frequent ones")
    parser.add_argument("names", nargs="*", default=["lua", "sqlite", "zstd", "cxx", "rust"], metavar="NAME")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    real.fetch()
    found, differences = {}, collections.Counter()
    heads = f"{'program':10}{'compiler':10}{'samples':>9}{'stack':>8}{'typed':>8}{'of able':>9}{'member':>8}"
    print(f"{heads}{'compared':>10}{'agreement':>11}")
    for name in options.names:
        for kind in ("typing-clang", "typing-gcc")[: 1 if name.startswith("rust") else 2]:
            row = measure(name, kind, differences)
            compiler = "rustc" if name.startswith("rust") else kind.removeprefix("typing-")
            found[f"{name} {compiler}"] = row
            agreement = "-" if row["agreement"] is None else f"{row['agreement']:.1%}"
            print(
                f"{name:10}{compiler:10}{row['samples']:9}{row['stack']:8.1%}{row['typed']:8.1%}"
                f"{row['typed_of_able']:9.1%}{row['member']:8.1%}{row['compared']:10}{agreement:>11}",
                flush=True,
            )
    for difference, count in differences.most_common(options.differences):
        print(count, *difference)
    result = {"machine": record.machine(), "programs": found}
    (ROOT / "target" / "bench" / "typing.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
