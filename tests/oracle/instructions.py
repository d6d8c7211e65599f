"""What a trace says of the instructions between accesses, against Callgrind's count of the program without us.

    python3 -B tests/oracle/instructions.py

Of each function of `instructions.c`, the executed sites' instructions are added up. They are the compiler's
estimate, not a count: each sum has to be within a factor of 1.5 of what Callgrind counts.
"""

import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
WORK = ROOT / "target" / "instructions"
FUNCTIONS = ["chase", "scatter", "search", "settle", "one", "calls"]
FACTOR = 1.5


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout


def said():
    """Instructions of each function by the trace."""
    program, trace = WORK / "recorded", WORK / "trace"
    run(MEMLODE, "cc", "-O2", HERE / "instructions.c", "-o", program)
    shutil.rmtree(trace, ignore_errors=True)
    run(MEMLODE, "record", "-o", trace, "--", program)
    header, *rows = [line.split("\t") for line in run(MEMLODE, "dump", "--sites", trace).lstrip("#").splitlines()]
    sums = dict.fromkeys(FUNCTIONS, 0.0)
    for row in rows:
        site = dict(zip(header, row, strict=True))
        if site["function"] in sums and site["instructions"] != "-":
            sums[site["function"]] += int(site["events"]) * float(site["instructions"])
    return sums


def counted():
    """Instructions of each function by Callgrind."""
    program, out = WORK / "native", WORK / "callgrind.out"
    run("clang-22", "-O2", "-g", HERE / "instructions.c", "-o", program)
    run("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program)
    text = run("callgrind_annotate", "--threshold=100", out)
    found = re.findall(r"^ *([\d,]+) \([ \d.]+%\)  \S*:(\w+) \[", text, re.MULTILINE)
    return {function: int(count.replace(",", "")) for count, function in found}


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    ours, theirs = said(), counted()
    wrong = 0
    for function in FUNCTIONS:
        ratio = ours[function] / theirs[function]
        wrong += not 1 / FACTOR <= ratio <= FACTOR
        print(f"instructions: {function}: {ours[function]:.0f} by the trace, {theirs[function]} counted: {ratio:.2f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
