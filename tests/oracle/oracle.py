"""Two accounts of one run: the stream that a program writes, and a call for each of its accesses.

    python3 tests/oracle/oracle.py [NAME…]

Programs are compiled with MEMLODE_MODE=both, so that both accounts are of one code at one place. Each is linked with
the recorder of the compiler's tests, which keeps words and calls in memory and compares them when the program ends:
table, site, address, and length or mask, thread by thread. Programs of the corpus are also recorded to a file, beside
an oracle that writes its calls down: address, bytes, line and kind must be what `memlode dump` prints.

Without names: all but SQLite, whose compilation takes longer than everything else.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "target" / "oracle"
sys.path[:0] = [str(ROOT / "tests" / each) for each in ("fuzz", "real")]
import fuzz  # noqa: E402  what the oracle says, and what a trace says
import real  # noqa: E402  how the programs of others are built
from build import MEMLODE, Failure, call, helper  # noqa: E402

KERNELS = ROOT / "bench" / "kernels"
# Rounds: some ten million accesses, each of which is 24 bytes of memory here.
ROUNDS = {"pricing": 1, "stencil": 1, "matmul": 1, "hash": 1, "tree": 1, "counters": 1}
# What is run of the programs that are built by their own build systems; $0 is the program, $1 its folder in tests/real.
REAL = {
    "sqlite": '"$0" :memory: <"$1/workload.sql"',
    "lua": '"$0" "$1/mix.lua" 1',
    "zstd": 'python3 "$1/corpus.py" corpus && "$0" -q -3 corpus -o packed && "$0" -q -d packed -o unpacked',
    "cxx": '"$0"',
    "rust": '"$0"',
    "rust-json": '"$0"',
}
LANGUAGES = ROOT / "tests" / "languages"
CORPUS = {"c": LANGUAGES / "shapes.c", "c++": LANGUAGES / "classes.cpp"}
CRATES = {"rust-shapes": LANGUAGES / "rust", "rust-corpus": HERE / "rust"}
NAMES = [*REAL, *ROUNDS, *CORPUS, *CRATES]


def environment(kind):
    """For building programs that give both accounts; `kind` is what they are linked with."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("MEMLODE_")},
        "MEMLODE": str(MEMLODE),
        "MEMLODE_MODE": "both",
        # A build may run what it has built, and read what that prints.
        "MEMLODE_TEST_QUIET": "1",
        "ORACLE": str(helper(kind)),
        "RUSTFLAGS": f"-Clink-arg={helper(kind)} -Clink-arg=-lstdc++",
    }


def compile_one(source, kind, place):
    """One C or C++ source, optimised."""
    language = ["c++", "-std=c++17"] if source.suffix == ".cpp" else ["cc"]
    program = place / f"{source.stem}-{kind}"
    options = ["-O2", "-g", "-pthread", source, "-o", program]
    call("compile", [HERE / "compiler.sh", *language, *options], 600, env=environment(kind))
    return program


def compile_crate(crate, kind):
    """All programs of a crate."""
    target = WORK / f"{crate.parent.name}-{kind}"
    # The linker is told of an object that cargo does not know.
    shutil.rmtree(target, ignore_errors=True)
    options = ["--release", "--offline", "--manifest-path", crate / "Cargo.toml", "--target-dir", target]
    call("compile", [MEMLODE, "cargo", "build", *options], 600, env=environment(kind))
    (release,) = target.glob("*/release")
    return sorted(each for each in release.iterdir() if each.is_file() and os.access(each, os.X_OK))


def compile_real(name):
    """A program of others, by its own build system."""
    compilers = {"CC": f"{HERE}/compiler.sh cc", "CXX": f"{HERE}/compiler.sh c++", "CARGO_COMMAND": f"{MEMLODE} cargo"}
    real.COMPILERS["recorder"] = {**environment("recorder"), **compilers}
    built = real.WORK / "recorder" / name / ".built"
    if built.exists() and built.stat().st_mtime < helper("recorder").stat().st_mtime:
        built.unlink()
    return real.build(name, "recorder")


def in_process(command, place):
    """Runs a program with the recorder in it; returns how many accesses agree, and what it printed."""
    done = call("run with the recorder", command, 600, cwd=place)
    agreed = re.search(r"recorder: (\d+) accesses agree", done.stderr)
    if not agreed or not int(agreed[1]):
        raise Failure("stream and calls", done.stderr[-2000:])
    return sum(map(int, re.findall(r"recorder: (\d+) accesses agree", done.stderr))), done.stdout


def end_to_end(program, place, printed):
    """Records a program with the oracle in it, and compares the two access by access."""
    trace, said = place / f"{program.name}.trace", place / f"{program.name}.said"
    said.mkdir()
    variables = {**os.environ, "MEMLODE_FUZZ_ORACLE": str(said)}
    fuzz.record("recorded with the oracle", program, trace, (0, printed), variables)
    fuzz.compare(fuzz.oracle_says(said), fuzz.trace_says(trace))


def examine(name, place):
    """Returns the number of accesses, or raises Failure."""
    if name in REAL:
        return in_process(["bash", "-euc", REAL[name], compile_real(name), real.HERE / name], place)[0]
    if name in ROUNDS:
        return in_process([compile_one(KERNELS / f"{name}.c", "recorder", place), str(ROUNDS[name])], place)[0]
    if name in CORPUS:
        pairs = [[compile_one(CORPUS[name], kind, place) for kind in ("recorder", "oracle")]]
    else:
        pairs = zip(*(compile_crate(CRATES[name], kind) for kind in ("recorder", "oracle")))
    total = 0
    for with_recorder, with_oracle in pairs:
        accesses, printed = in_process([with_recorder], place)
        end_to_end(with_oracle, place, printed)
        total += accesses
    return total


def judge(name):
    """The number of accesses and None, or what is wrong."""
    with tempfile.TemporaryDirectory(prefix="memlode-oracle-") as place:
        try:
            return examine(name, pathlib.Path(place)), None
        except (Failure, real.Failure) as failure:
            return 0, str(failure)


def main(wanted):
    unknown = set(wanted) - set(NAMES)
    if unknown:
        sys.exit(f"oracle.py: no program called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    WORK.mkdir(parents=True, exist_ok=True)
    for kind in ("recorder", "oracle"):
        helper(kind)
    names = wanted or [name for name in NAMES if name != "sqlite"]
    if set(names) & set(REAL):
        real.fetch()
    total = failed = 0
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, (accesses, failure) in zip(names, pool.map(judge, names)):
            print(f"oracle: {name}: {f'FAILED: {failure}' if failure else f'{accesses:,} accesses agree'}", flush=True)
            total += accesses
            failed += bool(failure)
    print(f"oracle: {len(names) - failed} passed, {failed} failed; {total:,} accesses agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
