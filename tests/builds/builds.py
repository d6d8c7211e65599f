"""Small projects with the build systems that people have, built as docs/compiling.md says, recorded and reported.

    python3 -B tests/builds/builds.py [NAME…]

The commands are the page's own, one `sh` block for each build system. Of each program, the first finding must be the
member and the line that wait; C projects share their sources, which lie in a library but for `main`.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "target" / "tests" / "builds"
PAGE = ROOT / "docs" / "compiling.md"
BIN = ROOT / "target" / "memlode" / "bin"
MARK = "// <-- hot"
PRINTED = "14999850000\n"
# The finding of each: its type and member.
FOUND = {"make": "item.key", "cmake": "item.key", "autotools": "item.key", "meson": "item.key", "cargo": "Item.key"}


def blocks():
    """The page's commands, by build system."""
    section = PAGE.read_text().split("\n## Build systems\n", 1)[1].split("\n## ", 1)[0]
    return {name.lower(): text for name, text in re.findall(r"^### (\w+)\n.*?^```sh\n(.*?)^```$", section, re.M | re.S)}


def run(command, folder):
    """Runs a command as a user does; its output, if it succeeds."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"builds: {folder.name}: {command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def line_of(folder):
    """The file and the line that wait."""
    for path in sorted([*folder.glob("src/*.c"), *folder.glob("src/*.rs")]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if MARK in line:
                return path.name, number
    sys.exit(f"builds: {folder.name}: no line has {MARK}")


def check(name, commands):
    """Builds a project, records it, and compares the first finding with the sources."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / name, folder)
    if not (folder / "src").exists():  # all but Rust share them
        shutil.copytree(HERE / "src", folder / "src")
    printed = run(["bash", "-euc", commands], folder)
    first = json.loads(run(["memlode", "report", "--machine", "generic", "--json"], folder))["findings"][0]
    found = (f"{first['type'].split('::')[-1]}.{first['member']}", pathlib.Path(first["file"]).name, first["line"])
    wanted = (FOUND[name], *line_of(folder))
    if not printed.endswith(PRINTED):
        return f"{name}: the program prints {printed!r}"
    return f"{name}: the first finding is {found}, and should be {wanted}" if found != wanted else None


def main(names):
    of_page = blocks()
    if set(of_page) != set(FOUND):
        sys.exit(f"builds: {PAGE} has commands for {sorted(of_page)}, and projects are {sorted(FOUND)}")
    faults = [fault for name in names or FOUND if (fault := check(name, of_page[name]))]
    print("\n".join(faults) if faults else f"builds: {len(names or FOUND)} projects have the finding that they should")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
