#!/usr/bin/env python3
"""Every function that the machine's libc and libm export is classified: it is recorded where it is called,
leaves the program's memory alone, or stands in a list with the reason why it is only counted.

    python3 tests/libc/libc.py [LIBRARY …]

The lists are instrument/src/find/Libc.def and LibcRecorded.def. The libraries' symbols come from nm.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LISTS = ROOT / "instrument/src/find"
TYPES = ("f128", "f64x", "f32x", "f64", "f32", "f16", "f", "l", "")


def listed(text: str, macro: str) -> list[str]:
    """The names in all entries of a macro. The last string literals of each are names."""
    found = []
    for entry in re.findall(rf"^{macro}\((.*?)\)$", text, re.M | re.S):
        strings = re.findall(r'"([^"]*)"', entry)
        names = strings if macro == "MATH" else strings[1:]
        found += " ".join(names).split()
    return found


def functions(library: str) -> set[str]:
    """The functions that a library exports, without their versions."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    rows = [line.split() for line in out.stdout.splitlines()]
    return {row[2].split("@")[0] for row in rows if len(row) == 3 and row[1] in "TWit"}


def libraries() -> list[str]:
    """The machine's libc and libm, as a C compiler finds them."""
    paths = []
    for name in ("libc.so.6", "libm.so.6"):
        out = subprocess.run(["cc", f"-print-file-name={name}"], check=True, capture_output=True, text=True)
        paths.append(out.stdout.strip())
    return paths


def main() -> int:
    text = (LISTS / "Libc.def").read_text()
    quiet, told, math = (listed(text, macro) for macro in ("QUIET", "TOLD", "MATH"))
    recorded = " ".join(re.findall(r'^\s*\{"([^"]+)"', (LISTS / "LibcRecorded.def").read_text(), re.M)).split()
    copies = re.findall(r'\.Case\("([^"]+)"', (LISTS / "CallEffects.cpp").read_text())
    allocators = re.findall(r'\{"([a-z_]+)"', (LISTS / "Allocators.cpp").read_text())
    known = set(recorded) | set(copies) | set(allocators)
    stars = tuple(name[:-1] for name in quiet + told if name.endswith("*"))
    exact = known | {name for name in quiet + told if not name.endswith("*")}

    def is_math(name: str) -> bool:
        stem = name.removeprefix("__").removesuffix("_finite")
        return any(stem.endswith(end) and stem[: len(stem) - len(end)] in math for end in TYPES)

    faults = []
    for name in quiet + told:
        if "*" in name[:-1]:
            faults.append(f"{name}: a star stands at the end of a name")
    for name in sorted((set(quiet) & set(told)) | (set(recorded + copies) & set(quiet))):
        faults.append(f"{name} stands in two lists")
    symbols = set()
    for library in sys.argv[1:] or libraries():
        symbols |= functions(library)
    assert len(symbols) > 3000, "too few functions: is this glibc?"
    for name in sorted(symbols):
        if not (name in exact or is_math(name) or name.startswith(stars)):
            faults.append(f"{name} is in no list")
    print("\n".join(faults) if faults else f"{len(symbols)} functions of libc and libm are classified")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
