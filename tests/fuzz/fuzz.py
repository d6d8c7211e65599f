"""Random programs, recorded and compared with what they say of themselves: fuzz.py [--seconds N | --seeds A-B].

For each: the instrumented program prints what the native one prints; the stream of each thread is the sequence of its
calls (in the process, and through ring, collector, codec and reader); the trace passes its check; a report can be
made of it; its blocks are the objects that it says (objects.py); and the machine code did what the trace says
(machine.py, which knows nothing of the compiler's). A program that fails is made smaller and kept in
target/fuzz/failures.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import machine
import objects
from build import MEMLODE, ROOT, Build, Failure, call
from generate import generate
from program import minimise

FAILURES = ROOT / "target/fuzz/failures"
KINDS = {"load": 0, "store": 1, "update": 2, "prefetch": 0}
ENTRY = struct.Struct("<QII")
MOST_COMPARED = 400_000
STACK_BYTES = 1 << 26
PLAIN = {name: value for name, value in os.environ.items()
         if not name.startswith("MEMLODE_") or name == "MEMLODE_HOME"}
# Programs that have children make them where this says so: calls for each access cannot be compared across a fork.
WITH_CHILDREN = dict(PLAIN, FUZZ_CHILDREN="1")
# What a trace may lack of a child that a signal ends.
FOR_THE_KILLED = re.compile("segments were discarded|had been begun last")


class Unfit(Exception):
    """A program that the compiler gets wrong by itself (aligned arguments behind an alloca at -O0, for one)."""


def run(stage, arguments, expected, **options):
    """Runs the program; what it prints and how it ends must be as expected."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=600, check=False, **options)
    except subprocess.TimeoutExpired:
        raise Failure(stage, "takes more than 60 s") from None
    if expected and (done.returncode, done.stdout) != expected:
        raise Failure(stage, f"exit status {done.returncode}, expected {expected[0]}; prints\n{done.stdout[:500]}\n"
                             f"expected\n{expected[1][:500]}\n{done.stderr[-1500:]}")
    return done


def record(stage, program, out, expected, environment, options=(), killing=False):
    """Records a run, of which a child may be killed; returns what `memlode check` says, None if there is no trace."""
    run(stage, [MEMLODE, "record", "--force", "-o", out, *options, "--", program], expected, env=environment)
    if not out.exists():
        return None
    done = subprocess.run([MEMLODE, "check", "--json", out], capture_output=True, text=True, timeout=600, check=False)
    told = done.stdout and [problem["what"] for problem in json.loads(done.stdout)["problems"]]
    if done.returncode != 0 and not (killing and told and all(FOR_THE_KILLED.search(what) for what in told)):
        raise Failure(f"{stage}: check", done.stdout + done.stderr)
    return json.loads(done.stdout)


def recorded_ops(trace):
    """Accesses of the first process, by the count that a gather and a copy's side raise by one."""
    threads = json.loads((trace / "manifest.json").read_text())["threads"]
    return sum(thread["accesses"] for thread in threads if thread["process"] == 0)


def oracle_says(directory):
    """Accesses by stream: kernel thread id, and "s" for those of signal handlers."""
    found = {}
    for file in directory.iterdir():
        with file.open("rb") as data:
            count = int.from_bytes(data.read(16)[:8], "little")
            entries = data.read(min(count, MOST_COMPARED) * ENTRY.size)
        found[file.name] = count, list(ENTRY.iter_unpack(entries))
    return found


def site_number(kind, place):
    """What the oracle tells sites apart by: their kind and line."""
    line = re.search(r":(\d+):\d+$", place)
    return (int(line[1]) if line else 0) << 2 | KINDS[kind]


def trace_says(trace):
    """The same from a trace directory."""
    threads = {}
    for line in (trace / "events.ndjson").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "thread_start":
            threads[f"{event['process']}.{event['thread']}"] = event["tid"]
    found, sites = {}, {}
    dump = subprocess.Popen([MEMLODE, "dump", trace], stdout=subprocess.PIPE, text=True)
    for line in dump.stdout:
        thread, _, kind, address, size, place, function, _ = line.split("\t", 7)
        if kind in KINDS:
            stream = f"{threads[thread]}{'s' if function == 'on_signal' else ''}"
            site = sites.get((kind, place))
            if site is None:
                site = sites[kind, place] = site_number(kind, place)
            found.setdefault(stream, []).append((int(address, 16), int(size), site))
    if dump.wait() != 0:
        raise Failure("dump", f"exit status {dump.returncode}")
    return found


def compare(oracle, trace):
    """Every thread's sequence, access by access."""
    for stream in sorted(oracle.keys() | trace.keys()):
        count, calls = oracle.get(stream, (0, []))
        recorded = trace.get(stream, [])
        for number, (expected, found) in enumerate(zip(calls, recorded)):
            if expected != found:
                raise Failure("end to end", f"access {number} of {stream}: called {expected}, recorded {found} "
                                            "(address, bytes, line and kind)")
        if count != len(recorded):
            raise Failure("end to end", f"{count} accesses called, {len(recorded)} recorded")


def accounts_agree(program, build, sources, work, expected):
    """Compares what is recorded with the calls that are made for each access; returns their number."""
    recorder, oracle = build.comparing(sources, work / "both")
    done = run("run with the recorder", [recorder], expected)
    agreed = re.search(r"(\d+) accesses agree", done.stderr)
    if not agreed:
        raise Failure("stream and calls", done.stderr)
    said = work / "oracle-says"
    said.mkdir()
    record("recorded with the oracle", oracle, work / "trace", expected, dict(PLAIN, MEMLODE_FUZZ_ORACLE=str(said)))
    compare(oracle_says(said), trace_says(work / "trace"))
    called = recorded_ops(work / "trace")
    # A link that optimises may decide otherwise with other libraries; destructors of a library run after the recorder.
    if called != int(agreed[1]) and not (build.lto or build.shared):
        raise Failure("count", f"{agreed[1]} accesses called with the recorder, {called} with the oracle")
    return called


def examine(program, seed, work):
    """Raises Failure for the first thing that is wrong; returns the number of accesses."""
    sources = []
    for name, text in program.sources():
        (work / name).write_text(text)
        sources += [work / name] if name.startswith("unit") else []
    build = Build(seed, program)
    native = run("native run", [build.native(sources, work / "native")], None, env=WITH_CHILDREN)
    if native.returncode == -signal.SIGSEGV:
        raise Unfit(f"seed {seed}, {build}: the native program ends with a segmentation fault")
    if build.fidelity == "source":
        # What stays in memory there does so in the program as it is written, too.
        unoptimised = run("native run", [build.unoptimised(sources, work / "unoptimised")], None)
        if unoptimised.returncode == -signal.SIGSEGV:
            raise Unfit(f"seed {seed}, {build}: unoptimised, the native program ends with a segmentation fault")
    if native.returncode not in (0, 3) or native.stderr:
        raise Failure("native run", f"exit status {native.returncode}\n{native.stderr}")
    expected = native.returncode, native.stdout
    # Those who call and are called allocate themselves, which a recorded allocator would be in the midst of. Functions
    # of libstdc++ that are recorded make no calls.
    has_calls = not program.own_heap and not program.in_libstdcxx
    called = accounts_agree(program, build, sources, work, expected) if has_calls else None

    plain, trace = build.instrumented(sources, work / "plain"), work / "trace"
    run("run without a collector", [plain], expected, env=WITH_CHILDREN)
    account = work / "account"
    with_account = dict(WITH_CHILDREN, FUZZ_BLOCKS=str(account))
    checked = record("recorded", plain, trace, expected, with_account, killing=program.killing)
    # Who has children looks at how they ended.
    recorded = recorded_ops(trace)
    if called not in (None, recorded) and not program.forking:
        raise Failure("count", f"{called} accesses called, {recorded} recorded")
    bursts = ["--allow-empty", "--burst", "100us/200us"]
    sampled = record("recorded in bursts", plain, work / "sampled", expected, WITH_CHILDREN, bursts, program.killing)
    # Children that a signal ends come as far as they come.
    if sampled and sampled["accesses"] > checked["accesses"] and not program.killing:
        raise Failure("bursts", f"{checked['accesses']} accesses, and {sampled['accesses']} of them in bursts")
    report = call("report", [MEMLODE, "report", "--json", "--machine", "generic", trace], 120)
    report = json.loads(report.stdout)
    others_are_told(report["trace"]["notes"], program.foreign_names)
    if program.has_blocks:
        objects.compare(account, trace, report)
    if checked["accesses"] <= machine.MOST_ACCESSES:
        surroundings = work / f"surroundings.{'cpp' if program.language == 'c++' else 'c'}"
        surroundings.write_text(machine.surroundings(program))
        machine.compare(build.watched(sources, surroundings, work / "watched"), sources, expected, build.faithful)
    return checked["accesses"]


def others_are_told(notes, made):
    """Functions of other compilers stand in the notes: how many, and the names of the longest."""
    notes = [note for note in notes if note["id"] == "foreign"]
    # A static program has libc's, too.
    if any(note["has_libraries"] for note in notes):
        return
    names = {name for note in notes for name in note["names"]}
    if sum(note["functions"] for note in notes) != len(made) or not names <= set(made):
        raise Failure("foreign code", f"told are {sorted(names)}, another compiler made {made}")


def failure_of(program, seed):
    """What goes wrong, or None."""
    with tempfile.TemporaryDirectory(prefix="memlode-fuzz-") as work:
        try:
            examine(program, seed, pathlib.Path(work))
        except Unfit:
            return None
        except Failure as failure:
            return failure
    return None


def keep(seed, program, failure, seconds):
    """Makes a program smaller while it fails at the same stage, for a while, and saves it."""
    until = time.monotonic() + seconds

    def still_fails(trial):
        if time.monotonic() > until:
            return False
        found = failure_of(trial, seed)
        return found is not None and found.stage == failure.stage

    smaller = minimise(program, still_fails)
    place = FAILURES / str(seed)
    shutil.rmtree(place, ignore_errors=True)
    for name, version in (("whole", program), ("small", smaller)):
        (place / name).mkdir(parents=True)
        for file, text in version.sources():
            (place / name / file).write_text(text)
    (place / "failure.txt").write_text(f"seed {seed}, {Build(seed, program)}\n{failure}\n")
    return place


def seeds(options):
    if options.seeds:
        first, _, last = options.seeds.partition("-")
        yield from range(int(first), int(last or first) + 1)
        return
    until = time.monotonic() + options.seconds
    seed = options.start if options.start is not None else int(time.time()) * 1000
    while time.monotonic() < until:
        yield seed
        seed += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on")
    parser.add_argument("--seeds", help="these instead: N or FIRST-LAST")
    parser.add_argument("--start", type=int, help="the first seed (default: from the clock)")
    parser.add_argument("--minimise", type=float, default=120, help="seconds spent on making a failing program smaller")
    options = parser.parse_args()
    # With a call for each access, frames are many times as large, and recursion is as deep.
    resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    done = accesses = failed = unfit = 0
    for seed in seeds(options):
        program = generate(seed)
        with tempfile.TemporaryDirectory(prefix="memlode-fuzz-") as work:
            try:
                accesses += examine(program, seed, pathlib.Path(work))
            except Unfit as why:
                unfit += 1
                print(why, flush=True)
            except Failure as failure:
                failed += 1
                print(f"seed {seed}, {Build(seed, program)}\n{failure}", flush=True)
                print(f"  kept in {keep(seed, program, failure, options.minimise)}", flush=True)
        done += 1
    print(f"{done} programs, {accesses} accesses, {failed} failed, {unfit} cannot be judged")
    return 1 if failed or unfit * 10 > done or not done else 0


if __name__ == "__main__":
    sys.exit(main())
