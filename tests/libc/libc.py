#!/usr/bin/env python3
"""Every function that the machine's libc and libm export is classified: it is recorded where it is called,
leaves the program's memory alone, or stands in a list with the reason why it is only counted. And every one that its
headers declare to return a pointer, or to store one where an argument says, makes blocks that are recorded, or stands
in a list with the reason why there are none.

    python3 tests/libc/libc.py [LIBRARY …]

The lists are instrument/src/find/Libc.def and LibcRecorded.def, LibcBlocks.def and blocks.txt. The libraries' symbols
come from nm, and declarations from clang.
"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LISTS = ROOT / "instrument/src/find"
HEADERS = """aliases argp argz arpa/inet dirent dlfcn envz err errno error execinfo fcntl fmtmsg fnmatch fstab fts ftw
getopt glob grp gshadow iconv ifaddrs inttypes langinfo libgen libintl link locale malloc mcheck mntent monetary mqueue
net/if netdb netinet/ether netinet/in nl_types obstack paths poll printf pthread pty pwd regex resolv rpc/netdb sched
search semaphore shadow signal spawn stdio stdio_ext stdlib string strings sys/auxv sys/mman sys/msg sys/sem sys/shm
sys/socket sys/stat sys/time sys/types sys/uio syslog termios threads time ttyent uchar ucontext unistd utmp utmpx wchar
wctype wordexp aio"""
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


def handing_out() -> set[str]:
    """The functions that headers of the machine's libc declare to return a pointer to what is not constant, or to take
    the place of one."""
    include = pathlib.Path("/usr/include")
    lines = ["#define _GNU_SOURCE"]
    for header in HEADERS.split():
        lines += [f"#if __has_include(<{header}.h>)", f"#include <{header}.h>", "#endif"]
    assert (include / "stdlib.h").exists(), f"no headers in {include}"
    compiler = ["clang-22", "-x", "c", "-", "-fsyntax-only", "-w", "-Xclang", "-ast-dump=json"]
    tree = subprocess.run(compiler, input="\n".join(lines), capture_output=True, text=True, check=True)
    found = set()
    for node in json.loads(tree.stdout)["inner"]:
        if node["kind"] != "FunctionDecl":
            continue
        result = node["type"]["qualType"].split("(")[0].strip()
        types = [each["type"] for each in node.get("inner", []) if each["kind"] == "ParmVarDecl"]
        places = [t for t in types if re.search(r"\*\s*\*", t.get("desugaredQualType", t["qualType"]))]
        if (result.endswith("*") and not result.startswith("const ")) or places:
            found.add(node["name"])
    return found


def without_blocks() -> list[str]:
    """The names in blocks.txt."""
    text = (ROOT / "tests/libc/blocks.txt").read_text()
    return " ".join(line for line in text.splitlines() if line.startswith("  ")).split()


def faults_of_blocks(exported: set[str]) -> list[str]:
    """Functions of which it is not known whether they hand out blocks."""
    told = " ".join(re.findall(r'^\s*\{"([^"]+)"', (LISTS / "LibcBlocks.def").read_text(), re.M)).split()
    allocators = " ".join(re.findall(r'\{"([a-z_0-9 ]+)"', (LISTS / "Allocators.cpp").read_text())).split()
    none = without_blocks()
    declared = handing_out() & exported
    assert len(declared) > 300, "too few declarations"
    faults = [f"{name}: does it hand out a block?" for name in sorted(declared - {*told, *allocators})
              if not any(fnmatch.fnmatchcase(name, each) for each in none)]
    faults += [f"{name} hands out blocks and stands in blocks.txt" for name in {*told, *allocators} & {*none}]
    faults += [f"{name} hands out blocks, and libc has no such function" for name in sorted({*told} - exported)]
    return faults


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
    faults += faults_of_blocks(symbols)
    print("\n".join(faults) if faults else f"{len(symbols)} functions of libc and libm are classified")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
