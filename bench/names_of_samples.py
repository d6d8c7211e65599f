"""What samples of plain programs know of their data, and whether it is true: python3 bench/names_of_samples.py [NAME…]

The programs of tests/real are built without memlode, by clang-22 and by gcc with -O2 -g (Rust by cargo), and sampled
at their workloads. Of the samples at the program's own memory instructions, `stack` is the part that saves or
restores registers and return addresses, which have no type; `typed` is the part with a type or variable, `of able`
the same of those that are not `stack`, and `member` the part with a member. The truth are the site tables of the same
sources built with memlode: a sample agrees if a site of its line, kind and size, of clang's also of its column, has
its type, and its member where both have one. Where one names a plain value alone, and the other the member that it
is, the member's type decides, as the layouts say that memlode's compiler wrote. Sites of fewer bytes count where
compilers join neighbours. `agreement` is the part of the samples that do, of those where both say something;
`compared` is how many these are. Left out, and counted, are samples whose line has another access:

    kept    objdump has the stack pointer in the operand, and no site has the variable: a value that was kept there
    bytes   several bytes at once, through a pointer to bytes: sites name the number that the source makes of them
    moved   sites that the optimiser moved there from another line have no place of their own

Writes target/bench/typing.json.
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


def plain(name):
    """A type's name as all compilers write it: without `const`, and integers in one spelling."""
    name = re.sub(r"\b(long|short)( unsigned)? int\b", r"\2 \1", re.sub(r"\bconst\b", "", name))
    name = re.sub(r"\b(long|short) unsigned\b", r"unsigned \1", name)
    return re.sub(r"\s+", "", re.sub(r"\[\d*\]", "", name))


def leaf(layouts, kind, path):
    """The type of a member, by the layouts of memlode's compiler: of `_M_storage.first` what `first` is."""
    kind = plain(kind)
    for part in path.replace("[]", "").split("."):
        # Bytes for an object of the type that it is a template of.
        stored = re.fullmatch(r"(?:__gnu_cxx::)?__aligned_(?:membuf|buffer)<(.*)>", kind)
        members = layouts.get(stored[1] if stored else kind, [])
        found = next((member["type"] for member in members if member.get("name") == part), None)
        if found is None:
            return None
        kind = plain(found)
    return kind


def is_plain_value_of(layouts, one, other):
    """One names a value by its type alone, and the other the member that it is."""
    return one[1] == "-" != other[1] and any(
        leaf(layouts, other[0], path) == plain(one[0]) for path in other[1].split("|")
    )


def is_same(layouts, claim, known):
    """The same member of the same type; of a union any that lies there, or all of it; of a type in another, either."""
    if base(claim[0]) == base(known[0]) and "-" in (claim[1], known[1]):
        return True
    if is_plain_value_of(layouts, claim, known) or is_plain_value_of(layouts, known, claim):
        return True
    pairs = [(own, other) for own in claim[1].split("|") for other in known[1].split("|")]
    for pair in pairs:
        outer, inner = sorted(pair, key=len, reverse=True)
        if base(claim[0]) == base(known[0]) and (outer == inner or outer.startswith(inner + ".")):
            return True
        if base(claim[0]) != base(known[0]) and inner != "-" and f".{outer}.".find(f".{inner}.") > 0:
            return True
    return False


def dumped(name, what):
    """What memlode says of the program's trace."""
    if not (real.WORK / "trace" / name).exists():
        real.run_traced(name, real.build(name, "memlode"))
    command = [names.MEMLODE, "dump", *what, real.WORK / "trace" / name]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def sites(name, has_columns):
    """Type, member and variable of a trace's sites, by place and kind, and then by size."""
    found = collections.defaultdict(lambda: collections.defaultdict(set))
    for row in names.read_tsv(dumped(name, ["--sites"]).lstrip("#").splitlines()):
        kinds = {"load": ["load"], "store": ["store"], "update": ["store"]}.get(row["kind"], [])
        place = row["place"].rsplit(":", 2)
        is_moved = place[0].startswith("~")
        if len(place) == 3 and not is_moved and (row["type"], row["member"]) != ("-", "-"):
            for kind in kinds:
                key = (pathlib.PurePath(place[0]).name, place[1], place[2] if has_columns else "", kind)
                found[key][int(row["bytes"])].add((row["type"], row["member"], row["variable"]))
    return found


def layouts_of(name):
    """Members of the program's types, by the types' names."""
    types = map(json.loads, dumped(name, ["--types", "--json"]).splitlines())
    return {plain(one["type"]): one["members"] for one in types}


def at_stack_pointer(program):
    """Addresses of the instructions that name memory by the stack pointer, as binutils read them."""
    command = ["objdump", "-d", "--no-show-raw-insn", "-M", "intel", program]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {int(at, 16) for at in re.findall(r"^ *([0-9a-f]+):.*\[rsp", text, re.MULTILINE)}


def judge(row, known, layouts, on_stack):
    """Whether a sample with a type agrees with the sites of its place; the reason if it is not compared."""
    size, claim = int(row["bytes"]), (row["type"], row["member"] or "-")
    exact = known.get(size, set())
    if not exact:
        return None
    if int(row["instruction"]) in on_stack and all(site[2].split(".")[0] != row["variable"] for site in exact):
        return "kept"
    narrower = [site for bytes_, all_ in known.items() if bytes_ < size for site in all_]
    if any(is_same(layouts, claim, site) for site in [*exact, *narrower]):
        return True
    is_number = all(site[1] == "-" and plain(site[0]) not in layouts for site in exact)
    if claim[1] == "-" and base(claim[0]) in ("char", "unsigned char", "signed char", "u8") and size > 1 and is_number:
        return "bytes"
    return False


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
    truth, layouts = sites(name, has_columns), layouts_of(name)
    on_stack = at_stack_pointer(real.build(name, kind))
    rows = sampled(name, kind)
    count = collections.Counter()
    for row in rows:
        count["typed"] += bool(row["type"] or row["variable"])
        count["member"] += bool(row["member"])
        count["stack"] += row["untyped"] == "Stack"
        key = (pathlib.PurePath(row["file"]).name, row["line"], row["column"] if has_columns else "", row["kind"])
        if not row["type"] or key not in truth:
            continue
        verdict = judge(row, truth[key], layouts, on_stack)
        if isinstance(verdict, str):
            count[verdict] += 1
        elif verdict is not None:
            count["compared"] += 1
            count["agree"] += verdict
            if not verdict:
                known = tuple(sorted(truth[key][int(row["bytes"])]))[:3]
                differences[(name, kind, ":".join(key[:2]), (row["type"], row["member"] or "-"), known)] += 1
    part = {share: count[share] / len(rows) for share in ("stack", "typed", "member", "kept", "bytes")}
    return {
        "samples": len(rows),
        **part,
        "typed_of_able": count["typed"] / max(1, len(rows) - count["stack"]),
        "compared": count["compared"],
        "agreement": count["agree"] / count["compared"] if count["compared"] else None,
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
    print(f"{heads}{'compared':>10}{'kept':>7}{'bytes':>7}{'agreement':>11}")
    for name in options.names:
        for kind in ("typing-clang", "typing-gcc")[: 1 if name.startswith("rust") else 2]:
            row = measure(name, kind, differences)
            compiler = "rustc" if name.startswith("rust") else kind.removeprefix("typing-")
            found[f"{name} {compiler}"] = row
            agreement = "-" if row["agreement"] is None else f"{row['agreement']:.1%}"
            print(
                f"{name:10}{compiler:10}{row['samples']:9}{row['stack']:8.1%}{row['typed']:8.1%}"
                f"{row['typed_of_able']:9.1%}{row['member']:8.1%}{row['compared']:10}"
                f"{row['kept']:7.1%}{row['bytes']:7.1%}{agreement:>11}",
                flush=True,
            )
    for difference, count in differences.most_common(options.differences):
        print(count, *difference)
    result = {"machine": record.machine(), "programs": found}
    (ROOT / "target" / "bench" / "typing.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
