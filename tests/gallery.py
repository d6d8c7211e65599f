"""Runs the gallery's stories: python3 tests/gallery.py [--out FILE] [FOLDER…]

A story is gallery/*/story.md. Its ```sh blocks run in order in a copy of the folder, with target/memlode/bin
on the path; a command that fails fails the story. Its ```toml expect blocks say what must hold by then:

    [first_finding]     trace, type, member, line: what the report's first finding names
    [line_falls]        before, after: {trace, line}; level, by_at_least: misses at a line, as a share
    [total_falls]       before, after: a trace each; level, by_at_least: misses of the whole program
    [advised]           trace, edits: what `memlode advise` puts first begins with one of these, and is worth it; with
                        verdict (a list), none of them is worth it, and the best of them has one of these
    [silent]            trace: of which `memlode advise` advises nothing
    [what_if]           before, after: a trace each; edit, verdict: what `memlode whatif` predicts of the one, and
                        says of it (a list: either of these). The misses of each level are within 10% of those
                        of the other, or within 0.1% of the accesses where they are less than 10,000
    [analysed]          trace, analysis; then by table, what its rows are about, in any order: a line, or
                        "TYPE.MEMBER: KIND"
    [locks]             trace; taken: how often each lock that several threads take was taken; came: the lines of code
                        that data came over to with one, in any order
    [ratios]            files: what `memlode stat -o` wrote; then by ratio, the simulated value of each file, to 2%
                        or 0.0005
    [ratio_falls]       before, after: a trace each; ratio, by_at_least: the ratio that is simulated

A line is written "FILE MARKER": the one line of FILE that contains MARKER.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "gallery"
BIN = ROOT / "target" / "memlode" / "bin"

BLOCK = re.compile(r"^```(sh|toml expect)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Broken(Exception):
    """A story that does not hold; the message is the whole story."""


class Stage:
    """The folder a story plays in."""

    def __init__(self, story):
        self.folder = WORK / story.parent.name
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(story.parent, self.folder)
        self.reports, self.advices, self.stats = {}, {}, {}
        self.prediction = None

    def run(self, commands):
        environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", commands],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.returncode != 0:
            raise Broken(f"a command ended with {done.returncode}:\n{done.stdout.decode(errors='replace')[-3000:]}")

    def report(self, trace):
        if trace not in self.reports:
            command = [BIN / "memlode", "report", self.folder / trace, "--json", "--machine", "generic"]
            self.reports[trace] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return self.reports[trace]

    def ratio(self, trace, name):
        if trace not in self.stats:
            command = [BIN / "memlode", "stat", "--trace", self.folder / trace, "--json", "--machine", "generic"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise Broken(f"stat --trace {trace}: {done.stderr}")
            self.stats[trace] = {row["ratio"]: row.get("value") for row in json.loads(done.stdout)["ratios"]}
        return self.stats[trace][name]

    def advice(self, trace):
        if trace not in self.advices:
            command = [BIN / "memlode", "advise", self.folder / trace, "--json", "--machine", "generic"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise Broken(f"advise {trace}: {done.stderr}")
            self.advices[trace] = json.loads(done.stdout)
        return self.advices[trace]

    def line(self, place):
        """(file, line number) of "FILE MARKER"."""
        name, marker = place.split(" ", 1)
        lines = (self.folder / name).read_text().splitlines()
        found = [number for number, text in enumerate(lines, 1) if marker in text]
        if len(found) != 1:
            raise Broken(f"{len(found)} lines of {name} contain {marker!r}, not one")
        return name, found[0]

    def misses_at(self, where, level):
        name, number = self.line(where["line"])
        rows = self.report(where["trace"])["lines"]
        return sum(
            row["misses"][level] for row in rows if row["line"] == number and pathlib.Path(row["file"]).name == name
        )

    def misses(self, trace, level):
        return self.report(trace)["total"]["misses"][level]


def first_finding(stage, trace, line, **names):
    findings = stage.report(trace)["findings"]
    if not findings:
        raise Broken(f"{trace}: no finding")
    first = findings[0]
    found = {key: first.get(key) for key in names}
    found["line"] = (pathlib.Path(first["file"] or "?").name, first["line"])
    wanted = {**names, "line": stage.line(line)}
    if found != wanted:
        raise Broken(f"{trace}: the first finding names {found}, not {wanted}")
    return f"first finding: {first['type']}.{first['member']} at {':'.join(map(str, found['line']))}"


def fall(what, before, after, by_at_least):
    share = 1 - after / before if before else 0.0
    story = f"{what}: {before:,} → {after:,} (−{share:.1%})"
    if share < by_at_least:
        raise Broken(f"{story}, not −{by_at_least:.0%}")
    return story


def line_falls(stage, before, after, level, by_at_least):
    misses = [stage.misses_at(where, level) for where in (before, after)]
    return fall(f"{level} misses of the line", *misses, by_at_least)


def total_falls(stage, before, after, level, by_at_least):
    misses = [stage.misses(trace, level) for trace in (before, after)]
    return fall(f"{level} misses of the program", *misses, by_at_least)


def what_if(stage, before, after, edit, verdict):
    command = [BIN / "memlode", "whatif", stage.folder / before, "--edit", edit, "--json", "--machine", "generic"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Broken(f"whatif --edit '{edit}': {done.stderr}")
    found = json.loads(done.stdout)
    sides = found["comparison"]["before"]["levels"], found["comparison"]["after"]["levels"]
    real = stage.report(after)
    missed = [[level["read_misses"] + level["write_misses"] for level in side] for side in sides]
    levels = []
    for level, was, predicted in zip(sides[0], *missed):
        actual = real["total"]["misses"][level["name"]]
        levels.append({"level": level["name"], "before": was, "predicted": predicted, "actual": actual})
    cycles = [found["comparison"][side]["run_cycles"] for side in ("before", "after")]
    stage.prediction = {
        "edit": edit,
        "levels": levels,
        "time_ratio_predicted": cycles[1] / cycles[0],
        "time_ratio_measured": None,
        "verdict": found["verdict"],
    }
    wrong = [level for level in levels if not is_close(level, real["total"]["accesses"])]
    story = ", ".join(f"{level['level']} {level['predicted']:,} for {level['actual']:,}" for level in levels)
    expected = [verdict] if isinstance(verdict, str) else verdict
    if wrong or found["verdict"] not in expected:
        raise Broken(f"{edit} is called {found['verdict']}, and predicts {story}")
    return f"{edit} is {found['verdict'].replace('_', ' ')}, and predicts {story}"


def advised(stage, trace, edits, verdict=None):
    found = stage.advice(trace)
    begins = tuple(edits)
    if verdict is None:
        first = proposed(found["worth_it"][:1])
        if not first.startswith(begins):
            raise Broken(f"{trace}: advised first is {first or 'nothing'}, not {' or '.join(edits)}")
        return f"advised first is {first}"
    if any(proposed([item]).startswith(begins) for item in found["worth_it"]):
        raise Broken(f"{trace}: advised is {proposed(found['worth_it'])}")
    best = next((item for item in found["rejected"] if item["edit"].startswith(begins)), None)
    if best is None or best["verdict"] not in verdict:
        raise Broken(f"{trace}: none of {' and '.join(edits)} is called {' or '.join(verdict)}, but {best}")
    return f"{best['edit']} is not advised: {best['verdict']} ({best['gain']:+.1%})"


def silent(stage, trace):
    found = stage.advice(trace)
    if found["worth_it"]:
        raise Broken(f"{trace}: advised is {proposed(found['worth_it'])}")
    return f"{trace}: nothing is advised, {len(found['rejected'])} changes are rejected"


def ratios(stage, files, **expected):
    found = [json.loads((stage.folder / name).read_text())["ratios"] for name in files]
    for name, values in expected.items():
        simulated = [next(ratio for ratio in of if ratio["ratio"] == name).get("value") for of in found]
        apart = [a is None or abs(a - b) > max(0.02 * abs(b), 0.0005) for a, b in zip(simulated, values, strict=True)]
        if any(apart):
            raise Broken(f"{name} is {simulated}, not {values}")
    return f"{len(expected)} ratios of {len(files)} runs are as told"


def ratio_falls(stage, before, after, ratio, by_at_least):
    values = [stage.ratio(trace, ratio) for trace in (before, after)]
    if None in values or values[1] > values[0] * (1 - by_at_least):
        raise Broken(f"{ratio} is {values[0]} in {before} and {values[1]} in {after}")
    return f"{ratio} falls from {values[0]:.4g} to {values[1]:.4g}"


def analysed(stage, trace, analysis, **expected):
    command = [BIN / "memlode", "replay", stage.folder / trace, "--analyse", analysis, "--json", "--machine", "generic"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    def about(row):
        if line := row.get("line"):
            return f"{pathlib.Path(line['file']).name}:{line['line']}"
        return f"{row['data']['type']}.{row['data']['member']}: {row['kind']}"

    for table in found["tables"]:
        wanted = expected[table["table"]]
        told = [subject if ": " in subject else "{}:{}".format(*stage.line(subject)) for subject in wanted]
        rows = [about(row) for row in table["rows"]]
        if sorted(rows) != sorted(told):
            raise Broken(f"{trace}: {table['table']} has {rows}, not {told}")
    return f"{trace}: {analysis} has the rows that are told"


def locks(stage, trace, taken, came):
    command = [BIN / "memlode", "replay", stage.folder / trace, "--analyse", "locks", "--json", "--machine", "generic"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    rows = {table["table"]: table["rows"] for table in found["tables"]}
    times = [row["takes"] for row in rows["locks"]]
    lines = {f"{pathlib.Path(row['line']['file']).name}:{row['line']['line']}" for row in rows["locks_lines"]}
    told = {"{}:{}".format(*stage.line(subject)) for subject in came}
    if sorted(times) != sorted(taken) or lines != told:
        raise Broken(f"{trace}: locks are taken {times} times, and lines come over at {lines}")
    return f"{trace}: {len(times)} of its locks are taken by several threads, {sum(times)} times"


def proposed(items):
    return ", ".join(f"{'; '.join(item['edits'])} ({item['gain']:+.1%})" for item in items)


def is_close(level, accesses):
    apart = abs(level["predicted"] - level["actual"])
    return apart <= 0.1 * level["actual"] if level["actual"] >= 10_000 else apart <= 0.001 * accesses


CHECKS = (first_finding, line_falls, total_falls, advised, silent, what_if, analysed, locks, ratios, ratio_falls)
EXPECTATIONS = {check.__name__: check for check in CHECKS}


def measure(stage, rounds):
    """CPU time of the cured program by that of the sick one, built without memlode: the median of paired rounds."""
    for name in ("before", "after"):
        source = next(stage.folder.glob(f"{name}.c*"))
        compiler = "clang-22" if source.suffix == ".c" else "clang++-22"
        subprocess.run([compiler, "-O2", source, "-o", stage.folder / f"{name}.plain"], check=True)
    ratios = []
    for number in range(rounds):
        order = ("before", "after") if number % 2 else ("after", "before")
        times = {name: cpu_time(stage.folder / f"{name}.plain") for name in order}
        ratios.append(times["after"] / max(times["before"], 1e-6))
    return statistics.median(ratios)


def cpu_time(program):
    child = subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def play(story, rounds):
    """Runs one story to its end."""
    stage = Stage(story)
    held = []
    checks = 0
    for kind, text in BLOCK.findall(story.read_text()):
        if kind == "sh":
            stage.run(text)
            continue
        for name, facts in tomllib.loads(text).items():
            if name not in EXPECTATIONS:
                raise Broken(f"no expectation is called {name}; there are {', '.join(EXPECTATIONS)}")
            print(f"  {EXPECTATIONS[name](stage, **facts)}", flush=True)
            held.append(name)
            checks += 1
    if not checks:
        raise Broken("the story expects nothing")
    if stage.prediction is None:
        return None
    if rounds:
        stage.prediction["time_ratio_measured"] = measure(stage, rounds)
    kept = {"finding_first": "advised" in held or "first_finding" in held, "silent_twin": "silent" in held}
    return {"name": story.parent.name, **kept, **stage.prediction}


def table(programs):
    """Predicted and actual misses, and the mean of the errors where there are 10,000 at least."""
    print(f"\n{'program':18} {'level':6} {'before':>12} {'predicted':>12} {'actual':>12} {'error':>7}")
    errors = []
    for program in programs:
        for level in program["levels"]:
            error = (level["predicted"] - level["actual"]) / max(level["actual"], 1)
            is_counted = level["actual"] >= 10_000
            errors += [abs(error)] if is_counted else []
            shown = f"{error:+.1%}" if is_counted else "–"
            numbers = "".join(f" {level[key]:12,}" for key in ("before", "predicted", "actual"))
            print(f"{program['name']:18} {level['level']:6}{numbers} {shown:>7}")
    mean = sum(errors) / max(len(errors), 1)
    measured = [program for program in programs if program["time_ratio_measured"]]
    for program in measured:
        ratios = program["time_ratio_predicted"], program["time_ratio_measured"]
        print(f"{program['name']:18} time of the cure: {ratios[0]:.2f} predicted, {ratios[1]:.2f} measured")
    print(f"{len(programs)} pairs; the mean error is {mean:.2%} at {len(errors)} levels with 10,000 misses or more")
    return mean


def main(arguments):
    parser = argparse.ArgumentParser(description="Runs the gallery's stories.")
    parser.add_argument("--out", type=pathlib.Path, help="write predictions and truth to this file, as JSON")
    parser.add_argument("--rounds", type=int, default=0, help="measure CPU time, too, in so many rounds of both")
    parser.add_argument("names", nargs="*", metavar="FOLDER")
    options = parser.parse_args(arguments)
    names = options.names
    stories = [ROOT / "gallery" / name / "story.md" for name in names] or sorted(ROOT.glob("gallery/*/story.md"))
    failed = 0
    programs = []
    for story in stories:
        print(f"gallery/{story.parent.name}", flush=True)
        try:
            prediction = play(story, options.rounds)
            programs += [prediction] if prediction else []
        except (Broken, OSError, subprocess.CalledProcessError) as broken:
            failed += 1
            print(f"  FAILED: {broken}")
    mean = table(programs) if programs else 0.0
    if mean > 0.05:
        failed += 1
        print(f"  FAILED: predictions are {mean:.1%} off in the mean, not 5%")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"programs": programs}, indent=2) + "\n")
    print(f"gallery: {len(stories) - failed} passed, {failed} failed")
    return 1 if failed or not stories else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
