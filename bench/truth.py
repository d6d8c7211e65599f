"""How far the models' rankings are those of a clock: every program is recorded, and timed without us.

    python3 bench/truth.py [--quick] [--machine M] [--resamples N] [NAME…]

Each program is built by clang and by `memlode cc` (Lua, SQLite and zstd as in tests/real), recorded, and compared by
`memlode validate`: the share of each line that touches memory, by the models and by a timer, which runs twice. Writes
target/bench/truth.json:

  models    by model (`lru`, `report`, `sim_time` where it exists, `timer2`: the timer a second time)
            mean       means over the programs: spearman, slowest_first, first_good, in_three, misplaced, and the
                       geometric mean of the factor between predicted and measured seconds (time_factor)
            programs   name, spearman, slowest_line_rank, first_good, misplaced_share, predicted_over_measured
            cures      factor: the geometric mean of the factor between predicted and measured speed-up;
                       pairs: name, measured, predicted
  to_lru    by model: the mean difference to `lru` in each figure, program by program, with its 95% bootstrap interval
            over programs
  machine, host, date, load

Traces are kept in target/bench/truth/trace until the program or a compiler plug-in changes. Nothing else should run
meanwhile: what shares a processor shares its caches.
"""

import argparse
import datetime
import hashlib
import json
import math
import os
import pathlib
import platform
import random
import shlex
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "tests" / "real")]
import real  # noqa: E402  Lua, SQLite and zstd are those of `make real`

WORK = ROOT / "target" / "bench" / "truth"
MEMLODE = real.MEMLODE
FIGURES = ["spearman", "slowest_first", "first_good", "in_three", "misplaced"]

# Name → source, arguments, and arguments for --quick.
TRUTH = {
    "list": ("list both 40", "both 8"),
    "list-shuffled": ("list shuffled 30", "shuffled 6"),
    "list-ordered": ("list ordered 300", "ordered 60"),
    "list-together": ("list together 150", "together 30"),
    "tree-scattered": ("tree scattered 300", "scattered 60"),
    "tree-levels": ("tree levels 400", "levels 80"),
    "join": ("join plain 40", "plain 8"),
    "join-prefetch": ("join prefetch 60", "prefetch 12"),
    "graph-rank": ("graph rank 120", "rank 24"),
    "graph-search": ("graph search 100", "search 20"),
    "sort-merge": ("sort merge 16", "merge 3"),
    "sort-digits": ("sort digits 100", "digits 20"),
    "sort-heap": ("sort heap 14", "heap 3"),
    "transpose": ("transpose plain 30", "plain 6"),
    "transpose-tiled": ("transpose tiled 80", "tiled 16"),
    "transpose-padded": ("transpose padded 80", "padded 16"),
    "particles": ("particles whole 500", "whole 100"),
    "particles-columns": ("particles columns 1500", "columns 300"),
    "gather": ("gather random 80", "random 16"),
    "gather-sorted": ("gather sorted 200", "sorted 40"),
    "gather-counting": ("gather counting 50", "counting 10"),
    "search": ("search sorted 800", "sorted 160"),
    "search-eytzinger": ("search eytzinger 1000", "eytzinger 200"),
    "recent": ("recent all 1200", "all 300"),
    "words": ("words all 60", "all 10"),
    "routes": ("routes all 20", "all 4"),
    "sparse-random": ("sparse random 150", "random 30"),
    "sparse-banded": ("sparse banded 300", "banded 60"),
    "skip": ("skip all 400", "all 80"),
    "log": ("log all 40", "all 24"),
    "distance": ("distance all 200", "all 40"),
    "sets": ("sets all 14", "all 3"),
    "scan": ("scan all 150", "all 30"),
    "accounts": ("accounts whole 200", "whole 40"),
    "accounts-split": ("accounts split 600", "split 120"),
    "nearest": ("nearest all 900", "all 180"),
    "boxes": ("boxes all 150", "all 30"),
    "blur": ("blur all 40", "all 8"),
    "fresh": ("fresh all 60", "all 12"),
}
KERNELS = {"pricing": (60, 12), "stencil": (150, 30), "matmul": (10, 2), "hash": (10, 2), "tree": (16, 3)}
GALLERY = {
    "gallery-pricing": "pricing-scan/before.c",
    "gallery-pricing-cured": "pricing-scan/after.c",
    "gallery-grid": "grid-walk/before.cpp",
    "gallery-grid-cured": "grid-walk/after.cpp",
}
REAL = ["lua", "sqlite", "zstd"]
# Programs that take no number of rounds, and end too early for a timer: how often they are timed, and with --quick.
# Each run is like the others, and one is recorded.
REPEATED = {**dict.fromkeys(GALLERY, (40, 12)), "sqlite": (30, 8), "zstd": (60, 40)}

# Cure → what is cured and the cured program, each with the function whose time counts. The number that a program is
# given is its work.
CURES = {
    "order of nodes": (("list-shuffled", "walk_one"), ("list-ordered", "walk_one")),
    "interleaved chains": (("list-shuffled", "walk_one"), ("list-together", "walk_together")),
    "order of a tree": (("tree-scattered", "find"), ("tree-levels", "find")),
    "prefetch": (("join", "probe"), ("join-prefetch", "probe_ahead")),
    "tiling": (("transpose", "transpose"), ("transpose-tiled", "transpose_tiled")),
    "padding": (("transpose", "transpose"), ("transpose-padded", "transpose")),
    "structure of arrays": (("particles", "reach_whole"), ("particles-columns", "reach_split")),
    "sorted indices": (("gather", "gather"), ("gather-sorted", "gather")),
    "Eytzinger": (("search", "find_sorted"), ("search-eytzinger", "find_levels")),
    "split": (("accounts", "scan_whole"), ("accounts-split", "scan_split")),
    "split (gallery)": (("gallery-pricing", "price_block"), ("gallery-pricing-cured", "price_block")),
}


class Program:
    """One program of the list: how it is built, and what it is given."""

    def __init__(self, name, is_quick):
        self.name = name
        self.input = None
        self.work = 1
        self.runs = REPEATED.get(name, (1, 1))[is_quick]
        if name in TRUTH:
            full, quick = TRUTH[name]
            source, arguments = full.split(" ", 1)
            self.source = HERE / "truth" / f"{source}.c"
            self.arguments = (quick if is_quick else arguments).split()
            self.work = int(self.arguments[-1])
        elif name in KERNELS:
            self.source = HERE / "kernels" / f"{name}.c"
            self.arguments = [str(KERNELS[name][is_quick])]
        elif name in GALLERY:
            self.source = ROOT / "gallery" / GALLERY[name]
            self.arguments = []
        else:
            self.source = None
            self.arguments = self.real_arguments(is_quick)

    def real_arguments(self, is_quick):
        if self.name == "lua":
            return [str(real.HERE / "lua" / "mix.lua"), "4" if is_quick else "16"]
        if self.name == "sqlite":
            self.input = real.HERE / "sqlite" / "workload.sql"
            return [":memory:"]
        corpus = WORK / "corpus"
        if not corpus.exists():
            WORK.mkdir(parents=True, exist_ok=True)
            subprocess.run([sys.executable, real.HERE / "zstd" / "corpus.py", corpus], check=True)
        return ["-q", "-f", "-3" if is_quick else "-9", str(corpus), "-o", str(WORK / "corpus.zst")]

    def build(self, kind):
        """The program as `kind`, native or memlode."""
        if self.source is None:
            real.fetch()
            return real.build(self.name, kind)
        program = WORK / kind / self.name
        program.parent.mkdir(parents=True, exist_ok=True)
        compiler = real.COMPILERS[kind]["CXX" if self.source.suffix == ".cpp" else "CC"].split()
        headers = "".join(path.read_text() for path in sorted(self.source.parent.glob("*.h")))
        plugins = sorted((MEMLODE.parent.parent / "lib").glob("memlode-pass-*.so")) if kind == "memlode" else []
        digest = hashlib.sha256((self.source.read_text() + headers).encode())
        for plugin in plugins:
            digest.update(plugin.read_bytes())
        stamp = program.with_suffix(".built")
        if not stamp.exists() or stamp.read_text() != digest.hexdigest():
            subprocess.run([*compiler, "-O2", "-g", "-pthread", self.source, "-o", program, "-lm"], check=True)
            stamp.write_text(digest.hexdigest())
        return program

    def repeated(self, program):
        """What runs `program` as often as a timer needs: it, or a script."""
        if self.runs == 1:
            return program
        given = shlex.quote(str(self.input or os.devnull))
        script = WORK / f"{self.name}.sh"
        loop = f'for run in $(seq {self.runs}); do {shlex.quote(str(program))} "$@" <{given}; done'
        script.write_text(f"#!/bin/sh -e\n{loop}\n")
        script.chmod(0o755)
        return script

    def record(self, program):
        """The trace of one run of the program, recorded unless it is there."""
        digest = hashlib.sha256(program.read_bytes() + str(self.arguments).encode())
        trace = WORK / "trace" / self.name
        stamp = trace.with_suffix(".of")
        if not stamp.exists() or stamp.read_text() != digest.hexdigest():
            trace.parent.mkdir(parents=True, exist_ok=True)
            with open(self.input or os.devnull) as given:
                command = [MEMLODE, "record", "--force", "-o", trace, "--", program, *self.arguments]
                done = subprocess.run(command, stdin=given, capture_output=True)
            if done.returncode != 0:
                raise Failure(f"recording ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
            stamp.write_text(digest.hexdigest())
        return trace

    def validate(self, machine):
        """What `memlode validate` says of it."""
        native, recorded = self.build("native"), self.build("memlode")
        command = [MEMLODE, "validate", "--json", "--machine", machine, "--trace", self.record(recorded)]
        command += ["--native", self.repeated(native), *(["--input", self.input] if self.input else [])]
        done = subprocess.run([*command, "--", recorded, *self.arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(done.stderr.strip())
        found = json.loads(done.stdout)
        # The trace is of one run, the time of all.
        for judged in found["models"]:
            if judged["model"] != "timer2" and judged["predicted_s"] is not None:
                judged["predicted_s"] *= self.runs
                judged["predicted_over_measured"] *= self.runs
        return found


class Failure(Exception):
    """A program that could not be compared."""


def figures(judged):
    """The figures of one program by one model, as they are averaged."""
    return {
        "spearman": judged["spearman"],
        "slowest_first": judged["slowest_line_rank"] == 1,
        "first_good": judged["first_good"],
        "in_three": judged["slowest_line_rank"] <= 3,
        "misplaced": judged["misplaced_share"],
    }


def mean(values):
    values = [value for value in values if value is not None]
    return statistics.fmean(values) if values else None


def geometric_factor(ratios):
    """By what factor ratios are off 1, in the geometric mean."""
    off = [abs(math.log(ratio)) for ratio in ratios if ratio and ratio > 0]
    return math.exp(statistics.fmean(off)) if off else None


def seconds_of(found, function, model=None):
    """Seconds of a function's own lines: by the timer, or as a model predicts."""
    if model is None:
        return sum(row["seconds"] for row in found["functions"] if row["function"].split("(")[0] == function)
    predicted = next(judged["predicted_s"] for judged in found["models"] if judged["model"] == model)
    rows = [row for row in found["lines"] if (row["function"] or "").split("(")[0] == function]
    return predicted * sum(row["models"][model] for row in rows) if predicted is not None else None


def cures(found, programs, model):
    """Predicted and measured speed-ups of the cures whose programs were both compared."""
    pairs = []
    for name, sides in CURES.items():
        if any(program not in found for program, _ in sides):
            continue

        def speed_up(by):
            before, after = (seconds_of(found[p], function, by) / programs[p].work for p, function in sides)
            return before / after if after else math.inf

        pairs.append({"name": name, "measured": speed_up(None), "predicted": speed_up(model)})
    return {"factor": geometric_factor([pair["predicted"] / pair["measured"] for pair in pairs]), "pairs": pairs}


def interval(differences, resamples):
    """The mean of differences, and its 95% bootstrap interval over programs."""
    differences = [difference for difference in differences if difference is not None]
    if not differences:
        return None
    chance = random.Random(1)
    means = sorted(statistics.fmean(chance.choices(differences, k=len(differences))) for _ in range(resamples))
    low, high = means[int(0.025 * resamples)], means[int(0.975 * resamples)]
    return {"mean": statistics.fmean(differences), "low": low, "high": high, "programs": len(differences)}


def compare(judged, other, resamples):
    """Mean paired differences of one model's figures to another's."""

    def difference(figure, name):
        mine, theirs = figures(judged[name])[figure], figures(other[name])[figure]
        return None if mine is None or theirs is None else float(mine) - float(theirs)

    names = [name for name in judged if name in other]
    return {figure: interval([difference(figure, name) for name in names], resamples) for figure in FIGURES}


def summary(found, programs, resamples):
    """truth.json without what it was made on."""
    models = list(dict.fromkeys(judged["model"] for one in found.values() for judged in one["models"]))
    by_model = {
        model: {name: judged for name, one in found.items() for judged in one["models"] if judged["model"] == model}
        for model in models
    }
    out = {"models": {}, "to_lru": {}}
    for model, judged in by_model.items():
        means = {figure: mean([figures(one)[figure] for one in judged.values()]) for figure in FIGURES}
        means["time_factor"] = geometric_factor([one["predicted_over_measured"] for one in judged.values()])
        keys = ["spearman", "slowest_line_rank", "first_good", "misplaced_share", "predicted_over_measured"]
        rows = [{"name": name, **{key: one[key] for key in keys}} for name, one in judged.items()]
        out["models"][model] = {"mean": means, "programs": rows}
        if model != "timer2":
            out["models"][model]["cures"] = cures(found, programs, model)
        if model != "lru":
            out["to_lru"][model] = compare(judged, by_model["lru"], resamples)
    return out


def number(value):
    return "–" if value is None else f"{value:.2f}"


def show(truth):
    """The tables for people."""
    print(f"\n{'':10} {'spearman':>9} {'first':>6} {'good':>6} {'in 3':>6} {'misplaced':>10} {'time':>6} {'cures':>6}")
    for model, one in truth["models"].items():
        means = one["mean"]
        shares = " ".join(f"{100 * means[key]:5.0f}%" for key in ("slowest_first", "first_good", "in_three"))
        factor = number(one.get("cures", {}).get("factor"))
        print(
            f"{model:10} {number(means['spearman']):>9} {shares} {number(means['misplaced']):>10}"
            f" {number(means['time_factor']):>6} {factor:>6}"
        )
    for model, figures_of in truth["to_lru"].items():
        for figure, one in figures_of.items():
            if one:
                print(f"{model} − lru, {figure}: {one['mean']:+.2f} ({one['low']:+.2f} to {one['high']:+.2f})")
    for model, one in truth["models"].items():
        for pair in one.get("cures", {}).get("pairs", []):
            print(f"{model}: {pair['name']}: measured {pair['measured']:.2f}×, predicted {pair['predicted']:.2f}×")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="shorter runs: figures are rough")
    parser.add_argument("--machine", default="host", help="machine that is simulated")
    parser.add_argument("--resamples", type=int, default=2000, help="resamples of the bootstrap")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs (default: all)")
    options = parser.parse_args()
    known = [*TRUTH, *KERNELS, *GALLERY, *REAL]
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"there is no program {unknown[0]}; there are {', '.join(known)}")
    load = os.getloadavg()
    programs = {name: Program(name, options.quick) for name in options.names or known}
    found, failures = {}, []
    for name, program in programs.items():
        try:
            found[name] = program.validate(options.machine)
        except (Failure, real.Failure, subprocess.CalledProcessError) as failure:
            failures.append(f"{name}: {failure}")
            print(failures[-1], flush=True)
            continue
        judged = {one["model"]: one for one in found[name]["models"]}
        row = "; ".join(
            f"{model} ρ {number(one['spearman'])}, slowest no. {one['slowest_line_rank']}, "
            f"{100 * one['misplaced_share']:.0f}% misplaced"
            for model, one in judged.items()
        )
        print(f"{name:22} {found[name]['measured_s']:5.2f} s  {row}", flush=True)
    if not found:
        sys.exit("truth: nothing was compared")
    truth = {
        "date": datetime.date.today().isoformat(),
        "host": platform.processor() or platform.machine(),
        "machine": next(iter(found.values()))["machine"],
        "load": {"before": load, "after": os.getloadavg()},
        "quick": options.quick,
        "failures": failures,
        **summary(found, programs, options.resamples),
    }
    out = WORK.parent / "truth.json"
    out.write_text(json.dumps(truth, indent=1) + "\n")
    details = WORK / "details.json"
    details.write_text(json.dumps(found, indent=1) + "\n")
    show(truth)
    print(f"\n{len(found)} programs; {out} written, by line {details}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
