"""Names in small programs of each language: what stands behind `//=` in a line is what its accesses must be called.

    python3 -B tests/languages/languages.py [PROGRAM…]

Each program is compiled by `memlode cc`, `c++`, `cargo` or `fc`, optimised, run under `memlode run`, and every expected
name is looked for among the executed sites of its line: `kind VARIABLE : TYPE.MEMBER`, separated by `;`.
Behind a name may stand what the address comes out of: `, chased`, `, loaded` or `, computed`.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
WORK = ROOT / "target" / "languages"

MARK = "//= "
SOURCES = {
    "c": "shapes.c",
    "c++": "classes.cpp",
    "rust": "rust/src/main.rs",
    "rust-allocator": "rust/src/bin/arena.rs",
    "fortran": "shapes.f90",
}


def build(language, source, program):
    if language.startswith("rust"):
        target = WORK / "rust"
        command = [MEMLODE, "cargo", "build", "--release", "--offline", "--manifest-path", HERE / "rust/Cargo.toml"]
        variables = {**os.environ, "CARGO_BUILD_JOBS": "2", "CARGO_INCREMENTAL": "0"}
        subprocess.run([*command, "--target-dir", target], check=True, env=variables)
        return next(target.glob("*/release/" + ("shapes" if language == "rust" else source.stem)))
    compiler = {"c": ["cc"], "c++": ["c++", "-std=c++17"], "fortran": ["fc", "-module-dir", WORK]}[language]
    subprocess.run([MEMLODE, *compiler, "-O2", "-g", source, "-o", program], check=True)
    return program


def sites(program, trace):
    """Executed sites by the line of ours that they stand in or are inlined into."""
    subprocess.run(["rm", "-rf", trace], check=True)
    run = [MEMLODE, "run", "--no-report", "-o", trace, "--", program]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    listing = subprocess.run([MEMLODE, "dump", "--sites", trace], check=True, capture_output=True, text=True).stdout
    header, *rows = [line.split("\t") for line in listing.lstrip("#").splitlines()]
    return [dict(zip(header, row)) for row in rows]


def names_by_line(rows, source):
    names = {}
    for row in rows:
        name = row["type"] if row["member"] == "-" else f"{row['type']}.{row['member']}"
        name = f"{row['kind']} {row['variable']} : {name}"
        for place in (row["place"], row["inlined"]):
            match = re.fullmatch(r"~?.*?([^/]*):(\d+):\d+", place)
            if match and match[1] == source.name:
                names.setdefault(int(match[2]), set()).update({name, f"{name}, {row['dependence']}"})
    return names


def check(language, source):
    # Too large a package for everyone to install who wants to run the tests.
    if language == "fortran" and not shutil.which("flang-22"):
        print("languages: fortran: not tested, for flang-22 is not installed")
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    program = build(language, source, WORK / f"{source.stem}-{language}")
    names = names_by_line(sites(program, WORK / f"{source.stem}-{language}.trace"), source)
    expected = failed = 0
    for number, line in enumerate(source.read_text().splitlines(), 1):
        for name in filter(None, (part.strip() for part in line.partition(MARK)[2].split(";"))):
            expected += 1
            if name not in names.get(number, ()):
                failed += 1
                found = "; ".join(sorted(names.get(number, ()))) or "nothing"
                print(f"{source.relative_to(ROOT)}:{number}: expected {name}\n    found {found}")
    print(f"languages: {language}: {expected - failed} of {expected} names as expected")
    if not expected:
        sys.exit(f"languages: {source} expects nothing")
    return failed


def main(wanted):
    return 1 if sum(check(name, HERE / SOURCES[name]) for name in wanted or SOURCES) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
