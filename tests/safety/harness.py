"""Programs built with and without memlode, their runs, and checks of what was recorded of them."""

import collections
import functools
import json
import os
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "target" / "safety"
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
FLAGS = ["-O2", "-pthread", "-I", str(HERE)]
KINDS = {"native": (["clang-22"], ["clang++-22"]), "memlode": ([MEMLODE, "cc"], [MEMLODE, "c++"])}
EMBEDDED = {"embedded": ([MEMLODE, "cc", "--static-runtime"], [MEMLODE, "c++", "--static-runtime"])}
ALLOCATORS = {
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
    "mimalloc": "libmimalloc.so.2",
}


# Of the lines of `memlode dump`: kind, address, bytes, variable, and how many there are.
COUNT_ACCESSES = [
    "awk",
    r'BEGIN { FS = OFS = "\t" } NF > 8 { told[$3 FS $4 FS $5 FS $8]++ } END { for (key in told) print key, told[key] }',
]


class Failure(Exception):
    """A check that did not hold; the message is the whole story."""


def expect(condition, message):
    if not condition:
        raise Failure(message)


def compile_program(kind, name, sources, *flags):
    """Builds target/safety/KIND/NAME, once: several cases run the same program."""
    return compiled(kind, name, tuple(sources), flags)


@functools.cache
def compiled(kind, name, sources, flags):
    out = WORK / kind / name
    out.parent.mkdir(parents=True, exist_ok=True)
    compiler = {**KINDS, **EMBEDDED}[kind][any(str(source).endswith(".cpp") for source in sources)]
    paths = [HERE / source if isinstance(source, str) else source for source in sources]
    done = subprocess.run([*compiler, *FLAGS, *paths, "-o", out, *flags], capture_output=True, text=True)
    expect(done.returncode == 0, f"{name} ({kind}) does not compile:\n{done.stderr}")
    return out


def both(name, sources, *flags):
    return {kind: compile_program(kind, name, sources, *flags) for kind in KINDS}


class Run:
    """A program's run under memlode."""

    def __init__(self, name, command, prefix=(), environment=None):
        self.directory = WORK / f"{name}.trace"
        record = [*prefix, MEMLODE, "record", "-o", self.directory, "--force", "--", *command]
        self.done = run(record, environment)
        self.stdout, self.status = self.done.stdout, self.done.returncode
        manifest = self.directory / "manifest.json"
        self.manifest = json.loads(manifest.read_text()) if manifest.exists() else {"summary": {}, "threads": []}
        self.summary = self.manifest["summary"]
        self.accesses = sum(thread["accesses"] for thread in self.manifest["threads"])

    def check_unrecorded(self, expected):
        """The program ran as ever, and memlode says that it saw nothing of it."""
        expect(self.stdout == expected, f"output differs: {expected!r} natively, now {self.done}")
        expect(self.accesses == 0, "it was recorded")
        expect("holds no accesses" in self.done.stderr and self.status == 125, f"that goes unsaid: {self.done}")

    def check_sound(self, told=()):
        """Nothing is wrong with the trace, but for the kinds of loss in `told`."""
        check = run([MEMLODE, "check", self.directory])
        problems = [line for line in check.stdout.splitlines()[:-1] if not any(words in line for words in told)]
        expect(not problems and check.returncode in (0, 3), f"the trace is not sound:\n{check.stdout}{check.stderr}")

    def check_whole(self, torn=0, unfinished=0):
        """Nothing is lost, but for at most `torn` segments whose code was left for good in their middle, and what
        the `unfinished` loops or copies of a killed program would have done."""
        self.check_sound(["segments were discarded"] * (torn > 0) + ["had been begun last"] * (unfinished > 0))
        lost = {name: self.summary.get(name) for name in ("unknown_words", "unregistered_threads")}
        expect(not any(lost.values()), f"lost: {lost}")
        for what, most in (("torn_segments", torn), ("unfinished", unfinished)):
            expect(self.summary.get(what, 0) <= most, f"{what}: {self.summary.get(what)}")

    def processes(self):
        """The events of processes that began."""
        events = map(json.loads, (self.directory / "events.ndjson").read_text().splitlines())
        return [event for event in events if event["event"] == "process_start"]

    def by_function(self):
        """Accesses by function, and by function and variable."""
        found = collections.Counter()
        dump = subprocess.run([MEMLODE, "dump", self.directory], capture_output=True, text=True, check=True)
        for line in dump.stdout.splitlines():
            _, _, kind, _, _, _, function, variable, *_ = line.split("\t")
            if kind in ("load", "store", "update"):
                found[function] += 1
                found[function, re.match(r"\w*", variable)[0]] += 1
        return found

    def objects(self):
        told = re.findall(r"^object (\w+) 0x([0-9a-f]+) 0x([0-9a-f]+)$", self.done.stderr, re.MULTILINE)
        return {name: (int(low, 16), int(high, 16)) for name, low, high in told}

    def check_addresses(self):
        """Accesses said to be of a global array are inside it. Returns how many there were by array."""
        objects = self.objects()
        expect(objects, f"the program told of no objects: {self.done.stderr}")
        found = dict.fromkeys(objects, 0)
        dump = subprocess.Popen([MEMLODE, "dump", self.directory], stdout=subprocess.PIPE)
        # Millions of lines, of which few differ in kind, address, bytes and variable.
        told = subprocess.run(COUNT_ACCESSES, stdin=dump.stdout, capture_output=True, text=True, check=True).stdout
        for kind, start, size, what, count in (line.split("\t") for line in told.splitlines()):
            variable = re.match(r"\w+", what)
            if kind in ("load", "store", "update") and variable and variable[0] in objects:
                low, high = objects[variable[0]]
                address = int(start, 16)
                inside = low <= address and address + int(size) <= high
                expect(inside, f"not in {variable[0]} ({low:#x} to {high:#x}): {kind} of {size} bytes at {start}")
                found[variable[0]] += int(count)
        expect(dump.wait() == 0, "dump failed")
        missing = [name for name, count in found.items() if not count]
        expect(not missing, f"no access recorded of {missing}")
        return found


def run(command, environment=None, timeout=600):
    variables = {**os.environ, **(environment or {})}
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=timeout, env=variables, cwd=WORK
    )


def compare(name, programs, *arguments, torn=0, unfinished=0, prefix=(), environment=None):
    """Runs both builds; what must be equal is, and the trace is whole."""
    native = run([*prefix, programs["native"], *arguments], environment)
    traced = Run(name, [programs["memlode"], *arguments], prefix, environment)
    story = f"{traced.stdout}{traced.done.stderr[-2000:]}"
    expect(traced.stdout == native.stdout, f"output differs: {native.stdout!r} natively, {story}")
    status = native.returncode if native.returncode >= 0 else 128 - native.returncode
    expect(traced.status == status, f"status {native.returncode} natively, now {traced.status}: {story}")
    traced.check_whole(torn, unfinished)
    traced.check_addresses()
    return traced
