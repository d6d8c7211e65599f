"""Runs the gallery's stories: python3 tests/gallery.py [FOLDER…]

A story is gallery/*/story.md. Its ```sh blocks run in order in a copy of the folder, with target/memlode/bin
on the path; a command that fails fails the story. Its ```toml expect blocks say what must hold by then:

    [first_finding]     trace, type, member, line: what the report's first finding names
    [line_falls]        before, after: {trace, line}; level, by_at_least: misses at a line, as a share
    [total_falls]       before, after: a trace each; level, by_at_least: misses of the whole program

A line is written "FILE MARKER": the one line of FILE that contains MARKER.
"""

import json
import os
import pathlib
import re
import shutil
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
        self.reports = {}

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


EXPECTATIONS = {check.__name__: check for check in (first_finding, line_falls, total_falls)}


def play(story):
    """Runs one story to its end."""
    stage = Stage(story)
    checks = 0
    for kind, text in BLOCK.findall(story.read_text()):
        if kind == "sh":
            stage.run(text)
            continue
        for name, facts in tomllib.loads(text).items():
            if name not in EXPECTATIONS:
                raise Broken(f"no expectation is called {name}; there are {', '.join(EXPECTATIONS)}")
            print(f"  {EXPECTATIONS[name](stage, **facts)}", flush=True)
            checks += 1
    if not checks:
        raise Broken("the story expects nothing")


def main(names):
    stories = [ROOT / "gallery" / name / "story.md" for name in names] or sorted(ROOT.glob("gallery/*/story.md"))
    failed = 0
    for story in stories:
        print(f"gallery/{story.parent.name}", flush=True)
        try:
            play(story)
        except (Broken, OSError, subprocess.CalledProcessError) as broken:
            failed += 1
            print(f"  FAILED: {broken}")
    print(f"gallery: {len(stories) - failed} passed, {failed} failed")
    return 1 if failed or not stories else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
