"""Compares every number that two builds of memlode print: same_numbers.py OLD NEW [--names FILE] [--quick] [NAME…]

OLD and NEW are `memlode` binaries. Both read the same traces: of the gallery, of the benchmarks' kernels with small
inputs, of random programs, and of some of these recorded in bursts. For each trace, on one core and on two, the JSON of
`report`, `sim`, `timeline`, each analysis, and `replay --annotate` is compared leaf by leaf. NEW also simulates
some programs live, and is compared with what OLD, or NEW if OLD cannot read the trace, reports of what was kept.

Traces are recorded by OLD once, and kept in target/same-numbers; `--record` makes them anew. A difference that is meant
is said in a TOML file, with `*` for any one step of a path:

    ignore = ["findings.*.text"]                         # not compared, whichever side has it
    [rename]
    "levels.*.asked" = "levels.*.lookups"                # where the old build's value now is

Ends with a list of exceptions: the paths that differ, how often, and the first case. Exit status 1 if there is any.
"""

import argparse
import collections
import dataclasses
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

# What is compared is what is computed, not what was kept.
os.environ["MEMLODE_RESULTS"] = "off"
ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "same-numbers"
INSTALLED = ROOT / "target" / "memlode" / "bin" / "memlode"
sys.path[:0] = [str(ROOT / "tests" / "fuzz")]
from build import Build, Failure  # noqa: E402
from generate import generate  # noqa: E402

GALLERY = {
    f"{folder.name}-{when}": folder for folder in sorted((ROOT / "gallery").iterdir()) if folder.is_dir()
    for when in ("before", "after")
}
KERNELS = {"pricing": 1, "stencil": 2, "matmul": 1, "hash": 1, "tree": 1, "counters": 1}
SEEDS = range(1, 13)
BURSTS = {"hash": "2ms/6ms", "counters": "1ms/3ms", "fuzz-3": "100us/200us"}
LIVE = ["pricing-scan-before", "counters", "hash", "fuzz-2", "fuzz-5"]
QUICK = ["pricing-scan-before", "stencil", "counters", "hash-bursts", *(f"fuzz-{seed}" for seed in range(1, 5))]

REPLAY = ["--format", "ndjson", "--limit", "20000"]
ANALYSES = ["shared", "shared:least=1", "reuse", "strides", "working-set"]
VIEWS = {
    "report": ["report", "--json", "--top", "1000", "-m", "generic"],
    "report skylake-sp": ["report", "--json", "--top", "1000", "-m", "skylake-sp"],
    "sim skylake-sp": ["sim", "--json", "--top", "1000", "-m", "skylake-sp"],
    "sim zen4": ["sim", "--json", "--top", "1000", "-m", "zen4", "--pages", "4KiB,2MiB@heap"],
    "sim neoverse-n1": ["sim", "--json", "--top", "1000", "-m", "neoverse-n1", "--cores", "0,1"],
    "sim lru": ["sim", "--json", "--top", "1000", "-m", "skylake-sp", "--rules", "lru"],
    "sim generic": ["sim", "--json", "--top", "1000", "-m", "generic"],
    "timeline": ["timeline", "--json", "--every", "100k", "-m", "skylake-sp"],
    **{f"analyse {name}": ["replay", "--json", "--analyse", name, "-m", "generic"] for name in ANALYSES},
    "annotate hits": ["replay", "--annotate", "hits", *REPLAY, "-m", "generic"],
    "annotate causes": ["replay", "--annotate", "causes", *REPLAY, "-m", "skylake-sp"],
    "annotate causes lru": ["replay", "--annotate", "causes", "--rules", "lru", *REPLAY, "-m", "generic"],
}
LIVE_VIEWS = {"report": [], "sim skylake-sp": ["--sim"], "sim lru": ["--sim", "--rules", "lru"]}
# How `run --live` is asked for what a view says.
MACHINES = {"report": "generic", "sim skylake-sp": "skylake-sp", "sim lru": "skylake-sp"}

Exceptions = collections.defaultdict(list)


@dataclasses.dataclass
class Names:
    """Which values went elsewhere, and which need not agree."""

    rename: list
    ignore: list

    @staticmethod
    def read(path):
        said = tomllib.loads(path.read_text()) if path else {}
        step = lambda pattern: re.compile(re.escape(pattern).replace(r"\*", r"([^.]+)") + r"(?=\.|$)")  # noqa: E731
        return Names([(step(old), new) for old, new in said.get("rename", {}).items()],
                     [step(pattern) for pattern in said.get("ignore", [])])

    def is_ignored(self, path):
        return any(pattern.match(path) for pattern in self.ignore)

    def now(self, path):
        """Where the new build has the old one's value."""
        for pattern, new in self.rename:
            found = pattern.match(path)
            if found:
                steps = iter(found.groups())
                return "".join(next(steps) if c == "*" else c for c in new) + path[found.end():]
        return path


def leaves(value, path=""):
    """Every number, text and empty container of a document, with its path."""
    if isinstance(value, dict | list) and value:
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        for step, part in steps:
            yield from leaves(part, f"{path}.{step}" if path else str(step))
    else:
        yield path, value


def about(row):
    """What a row of a table is about: its texts, in the order of their paths, and the number of its thread."""
    parts = sorted(leaves(row), key=lambda leaf: leaf[0])
    return [(path, str(value)) for path, value in parts if isinstance(value, str) or path == "thread"]


def in_order_of_names(value, path, orders):
    """The same document, its tables in the order of what their rows are about; adds the order that these had."""
    if isinstance(value, dict):
        return {key: in_order_of_names(part, f"{path}.{key}" if path else key, orders) for key, part in value.items()}
    if not isinstance(value, list):
        return value
    parts = [in_order_of_names(part, f"{path}.{number}", orders) for number, part in enumerate(value)]
    if not parts or not all(isinstance(part, dict) for part in parts):
        return parts
    order = [about(part) for part in parts]
    orders[general(path)].append(order)
    return [part for _, part in sorted(zip(order, parts), key=lambda pair: pair[0])]


def compare(where, old, new, names, exceptions):
    """Adds what differs to the exceptions. Rows of tables are compared by what they are about: where two cost the same,
    either may be the first. Another order is an exception of its own."""
    if old == new:
        return
    orders = collections.defaultdict(list), collections.defaultdict(list)
    old, new = (in_order_of_names(document, "", found) for document, found in zip((old, new), orders))
    for path, before in orders[0].items():
        if before != orders[1].get(path, before) and not names.is_ignored(path):
            exceptions[f"{path}, order"].append((where, path, "one order", "another"))
    there = {path: value for path, value in leaves(new) if not names.is_ignored(path)}
    for path, value in leaves(old):
        if names.is_ignored(path):
            continue
        found = there.pop(names.now(path), "nothing")
        if found != value or type(found) is not type(value):
            exceptions[general(path)].append((where, path, value, found))
    for path, value in there.items():
        exceptions[general(path)].append((where, path, "nothing", value))


def general(path):
    return re.sub(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.|$)", "*", path)


def say(binary, view, trace, cores):
    """What a build prints as JSON; as text where it prints many documents."""
    command = ["taskset", "-c", cores, binary, *VIEWS[view], trace]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        return {"exit status": done.returncode, "error": done.stderr}
    return done.stdout if "annotate" in view else version_2(json.loads(done.stdout))


def version_2(document):
    """A document of JSON version 1 with its findings in the shape of version 2."""
    if document["version"] == 1 and "findings" in document:
        document["findings"] = [finding(old) for old in document["findings"]]
    return document


def finding(old):
    old = dict(old)
    facts = {"together": old.pop("also"), "objects": old.pop("objects")}
    evidence = [{"kind": "together", "lines": facts["together"]}] if facts["together"] else []
    evidence.append({"kind": "objects", "objects": facts["objects"]})
    source, density = old.pop("dependence"), old.pop("density")
    evidence += [{"kind": "addresses", "from": source}] if source else []
    evidence += [{"kind": "density", **density}] if density else []
    cost = {"stall_share": old.pop("whole_share")}
    if "whole_share_standard_error" in old:
        cost["standard_error"] = old.pop("whole_share_standard_error")
    lead, change = old.pop("lead", None), old.pop("suggestion")
    doubt = [{"kind": "lead", **lead}] if lead else []
    edit = {**change, "kind": "split"} if change else None
    return {**old, "cost": cost, "evidence": evidence, "edit": edit, "doubt": doubt}


def compare_rows(where, old, new, names, exceptions):
    """The same for a document a line."""
    if old == new:
        return
    rows = ([json.loads(line) for line in text.splitlines()] for text in (old, new))
    compare(where, *rows, names, exceptions)


def build(name):
    """The program of that name, built by memlode, and its arguments."""
    work = WORK / "programs" / name
    program = work / "program"
    if name.startswith("fuzz-"):
        seed = int(name.removeprefix("fuzz-"))
        if not program.exists():
            work.mkdir(parents=True, exist_ok=True)
            source = generate(seed)
            paths = []
            for file, text in source.sources():
                (work / file).write_text(text)
                paths += [work / file] if not file.endswith(".h") else []
            Build(seed, source).instrumented(paths, program)
        return [program]
    if name in GALLERY:
        source, arguments = next(GALLERY[name].glob(f"{name.rpartition('-')[2]}.c*")), []
    else:
        source, arguments = ROOT / "bench" / "kernels" / f"{name}.c", [str(KERNELS[name])]
    if not program.exists():
        work.mkdir(parents=True, exist_ok=True)
        compiler = "c++" if source.suffix == ".cpp" else "cc"
        subprocess.run([INSTALLED, compiler, "-O2", "-g", "-pthread", source, "-o", program], check=True)
    return [program, *arguments]


def record(binary, name, options):
    """The trace of that name, which may be there already."""
    trace = WORK / "traces" / name
    if not trace.exists() or options.record:
        program = name.removesuffix("-bursts")
        bursts = ["--burst", BURSTS[program], "--allow-empty"] if program != name else []
        command = [binary, "record", "--force", "-o", trace, *bursts, "--", *build(program)]
        trace.parent.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ, MEMLODE_HOME=str(INSTALLED.parent.parent))
        subprocess.run(command, capture_output=True, env=environment, timeout=300, check=False)
    return trace if trace.exists() else None


def live(name, options, names, exceptions):
    """What the new build finds while a program runs, and what is found of the trace that was kept."""
    for view, how in LIVE_VIEWS.items():
        trace, found = WORK / "live" / name, WORK / "live" / f"{name}.json"
        trace.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(trace, ignore_errors=True)
        command = [options.new, "run", "--live", "-o", trace, "--json", "--top", "1000", "--report-to", found,
                   "-m", MACHINES[view], *how, "--", *build(name)]
        environment = dict(os.environ, MEMLODE_HOME=str(INSTALLED.parent.parent))
        subprocess.run(command, capture_output=True, env=environment, timeout=300, check=False)
        judges = [say(binary, view, trace, "0") for binary in (options.old, options.new)]
        judge = judges[1] if "error" in judges[0] else judges[0]
        own = names if judge is judges[0] else Names([], names.ignore)
        new = json.loads(found.read_text())
        # What threads lose to each other is found of a whole trace, so live reports say nothing of it.
        both = [{key: value for key, value in one.items() if key != "sharing"} if view == "report" else one
                for one in (judge, new)]
        compare(f"{name}, live, {view}", *both, own, exceptions)
    return len(LIVE_VIEWS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--names", type=pathlib.Path, help="TOML file that says what may differ")
    parser.add_argument("--quick", action="store_true", help=f"these traces only: {', '.join(QUICK)}")
    parser.add_argument("--record", action="store_true", help="record all traces anew")
    parser.add_argument("--views", help=f"these only, separated by commas: {', '.join(VIEWS)}")
    parser.add_argument("--no-live", action="store_true", help="stored traces only")
    parser.add_argument("traces", nargs="*", metavar="NAME", help="these traces only")
    options = parser.parse_intermixed_args()
    options.old, options.new = options.old.resolve(), options.new.resolve()
    names, exceptions, count = Names.read(options.names), Exceptions, 0
    fuzz = [f"fuzz-{seed}" for seed in SEEDS]
    everything = [*GALLERY, *KERNELS, *fuzz, *(f"{name}-bursts" for name in BURSTS)]
    wanted = options.traces or (QUICK if options.quick else everything)
    unknown = set(wanted) - set(everything)
    views = options.views.split(",") if options.views else list(VIEWS)
    unknown |= set(views) - set(VIEWS)
    if unknown:
        parser.error(f"no trace or view called {', '.join(sorted(unknown))}; there are {', '.join(everything)}")
    for name in wanted:
        try:
            trace = record(options.old, name, options)
        except Failure as failure:
            sys.exit(f"{name} cannot be built: {failure}")
        if trace is None:
            print(f"{name}: nothing was recorded", flush=True)
            continue
        for view, cores in itertools.product(views, ("0", "0,1")):
            where = f"{name}, {view}, {1 + cores.count(',')} cores"
            old, new = (say(binary, view, trace, cores) for binary in (options.old, options.new))
            if isinstance(old, dict) and "error" in old:
                sys.exit(f"{where}: {options.old} fails: {old['error']}")
            are_rows = isinstance(old, str) and isinstance(new, str)
            (compare_rows if are_rows else compare)(where, old, new, names, exceptions)
            count += 1
        print(f"{name}: {sum(map(len, exceptions.values()))} exceptions so far", flush=True)
    for name in LIVE if not options.no_live else []:
        if name in wanted:
            count += live(name, options, names, exceptions)
    for path, found in sorted(exceptions.items()):
        where, exact, old, new = found[0]
        print(f"{path}: {len(found)} differ, first {exact} of {where}: {old!r} is {new!r}")
    print(f"{count} documents compared, {sum(map(len, exceptions.values()))} exceptions")
    return 1 if exceptions or not count else 0


if __name__ == "__main__":
    sys.exit(main())
