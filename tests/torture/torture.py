"""GCC's torture tests, built by clang and by `memlode cc`, run plain and recorded.

    python3 tests/torture/torture.py [--every N] [--levels "-O0,-O2,-O3 -flto"] [NAME…]

Each program of gcc.c-torture/execute decides by itself whether it was compiled rightly. Whatever it says of clang's
build, with its output and its exit status, it must say of memlode's, by itself and while it is recorded; and the trace
must be whole. Programs that clang refuses, that do not end, or whose every access the optimiser has removed, are
counted. The sources are those of Debian's package of GCC.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORK = ROOT / "target" / "torture"
SOURCE = WORK / "source"
TESTS = SOURCE / "execute"
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
PACKAGE = "gcc-12"
LEVELS = "-O0,-O2,-O3 -flto"
INSIDE = re.compile(r"[^/]+/gcc/testsuite/gcc\.c-torture/execute/((?:ieee/)?[^/]+\.[ch])")
SECONDS = 60
# What GCC's own harness gives to all of them.
OPTIONS = ["-w", "-fpermissive", "-Wno-implicit-int", "-Wno-implicit-function-declaration", "-Wno-int-conversion"]
OPTIONS += ["-Wno-return-mismatch", "-fgnu89-inline", "-std=gnu17"]  # before C99, main without a value ends with any

# What these say differs from run to run, or with anything around them: the first converts a float that no int can hold,
# the second prints addresses of its stack. Of the last two clang's optimiser leaves no code in `main`, since they read
# what nobody wrote, or beyond an array: what the linker has put behind it runs.
UNDEFINED = {"20031003-1", "return-addr", "921202-1", "pr79286"}
REFUSED, ENDLESS, EMPTY, SAME = "refused by clang", "without an end", "the same, without an access", "the same"
# What `record` says of a program that touches no memory; with this status, whatever the program's own is.
NOTHING = re.compile(rb"memlode: error: trace holds (allocations and calls, but )?no accesses: ")
NOTHING_STATUS = 125


def fetch():
    """The tests, unpacked from the archive in the source package."""
    if TESTS.exists():
        return
    subprocess.run([ROOT / "tests" / "real" / "fetch.sh", SOURCE, PACKAGE], check=True)
    (archive,) = (SOURCE / PACKAGE).glob("gcc-*.tar.*")
    fresh = SOURCE / "execute.new"
    shutil.rmtree(fresh, ignore_errors=True)
    with tarfile.open(archive) as packed:
        for member in packed:
            inside = INSIDE.fullmatch(member.name)
            if inside and member.isfile():
                (fresh / inside[1]).parent.mkdir(parents=True, exist_ok=True)
                (fresh / inside[1]).write_bytes(packed.extractfile(member).read())
    fresh.rename(TESTS)
    # The rest of GCC is large and of no use here.
    for path in archive, *SOURCE.glob("download/*.tar.*"), *SOURCE.glob("*.orig.tar.*"):
        path.unlink()


def options_of(test):
    """The options that a test asks for, but for those of some targets."""
    asked = re.findall(r'dg-(?:additional-)?options "([^"]*)"\s*}', test.read_text(errors="replace"))
    return [word for line in asked for word in shlex.split(line)]


def run(words, folder, **more):
    """Status, output and errors; None if it does not end."""
    try:
        done = subprocess.run(
            words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, **more
        )
    except subprocess.TimeoutExpired:
        return None
    return done.returncode, done.stdout, done.stderr


def compare(test, level):
    """The word for what came of a test, or a sentence about the difference."""
    name = test.relative_to(TESTS).with_suffix("")
    folder = WORK / "run" / level.replace(" ", "") / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    options = [*OPTIONS, *options_of(test), *shlex.split(level), "-I", str(test.parent), str(test), "-lm"]
    linker = ["-fuse-ld=lld-22"] if "-flto" in level else []
    built = run(["clang-22", *linker, *options, "-o", "native"], folder)
    if built is None or built[0] != 0:
        shutil.rmtree(folder)
        return REFUSED
    wanted = run(["./native"], folder)
    if wanted is None:
        return ENDLESS
    built = run([MEMLODE, "cc", *options, "-o", "program"], folder)
    # Linkers warn as they do natively.
    if built is None or built[0] != 0 or b"memlode:" in built[2]:
        return f"memlode cc: {built and (built[0], built[2].decode(errors='replace')[-600:])}"
    plain = run(["./program"], folder)
    if plain is None or plain[:2] != wanted[:2]:
        return f"by itself: {plain and plain[:2]}, natively {wanted[:2]}"
    recorded = run([MEMLODE, "record", "-o", "trace", "--", "./program"], folder)
    # A shell's status stands for the signal that ended a program.
    status = wanted[0] if wanted[0] >= 0 else 128 - wanted[0]
    # As it is written every program has variables.
    if recorded and level != "-O0" and NOTHING.search(recorded[2]):
        if recorded[:2] == (NOTHING_STATUS, wanted[1]):
            shutil.rmtree(folder)
            return EMPTY
    if recorded is None or recorded[:2] != (status, wanted[1]):
        return f"recorded: {recorded}, natively {wanted[:2]}"
    check = run([MEMLODE, "check", "trace"], folder)
    if check is None or check[0] != 0:
        return f"the trace: {check and check[1].decode(errors='replace')}"
    shutil.rmtree(folder)
    return SAME


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="only each Nth test of a level, another one at each level")
    parser.add_argument("--levels", default=LEVELS, help="options of the compiler, with commas between levels")
    parser.add_argument("names", nargs="*", help="tests without .c; all if there are none")
    asked = parser.parse_args()
    fetch()
    tests = sorted(path for path in TESTS.rglob("*.c") if path.stem in (asked.names or {path.stem}))
    tests = [path for path in tests if path.stem not in UNDEFINED]
    failures = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, level in enumerate(asked.levels.split(",")):
            chosen = tests[number % asked.every :: asked.every]
            counts = {}
            for test, found in zip(chosen, pool.map(lambda test, at=level: compare(test, at), chosen)):
                word = found if found in (REFUSED, ENDLESS, EMPTY, SAME) else "different"
                counts[word] = counts.get(word, 0) + 1
                if word == "different":
                    failures.append(f"{test.stem} {level}: {found}")
                    print(f"torture: {failures[-1]}", flush=True)
            told = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
            print(f"torture: {level}: {len(chosen)} programs: {told}", flush=True)
            if not counts.get(SAME):
                failures.append(f"{level}: no program was compared")
    sys.exit(f"torture: {len(failures)} differences" if failures else None)


if __name__ == "__main__":
    main()
