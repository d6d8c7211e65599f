"""Runs the `sh` blocks of the user's guide: docs/*.md, each page's in order in a folder of its own.

    python3 -B tests/guide.py [PAGE…]

A block that fails fails its page. In a folder are a program and its source, as `program`, `prog`, `before` and `after`,
a makefile, and where the page does not record them itself, traces called `DIR` and `BEFORE`. Tests of their own run
docs/python.md (tests/python/tutorial.py) and the build systems of docs/compiling.md (tests/builds/builds.py).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "tests" / "guide"
BIN = ROOT / "target" / "memlode" / "bin"
ELSEWHERE = {"python.md", "compiling.md"}
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAKEFILE = "program: src/main.c src/items.c\n\t$(CC) -O2 -o $@ src/main.c src/items.c\n"
QUERIES = "SELECT type, member FROM members LIMIT 1;\n"


def run(command, folder):
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run(command, cwd=folder, env=environment, timeout=300, **quiet)


def prepare():
    """The folder that each page gets a copy of."""
    stage = WORK / "stage"
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.copytree(ROOT / "tests" / "builds" / "src", stage / "src")
    (stage / "Makefile").write_text(MAKEFILE)
    (stage / "queries.sql").write_text(QUERIES)
    commands = """
        CC=memlode-cc make -s
        for name in prog before after; do cp program $name; done
        for trace in DIR BEFORE; do memlode record -o $trace -- ./program; done
    """
    done = run(["bash", "-euc", commands], stage)
    if done.returncode:
        sys.exit(f"guide: nothing to try commands on: {done.stderr}")
    return stage


def fault(page, stage):
    """What is wrong with a page: the first block that fails."""
    folder = WORK / page.stem
    shutil.copytree(stage, folder)
    for commands in BLOCK.findall(page.read_text()):
        done = run(["bash", "-euo", "pipefail", "-c", commands], folder)
        if done.returncode:
            return f"{page.name}: {done.returncode} of\n{commands}{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return None


def main(names):
    pages = [page for page in sorted((ROOT / "docs").glob("*.md")) if BLOCK.search(page.read_text())]
    pages = [page for page in pages if page.name not in ELSEWHERE and (not names or page.name in names)]
    if not names and "guide.md" not in [page.name for page in pages]:
        sys.exit("guide: docs/guide.md has no commands: is it still the guide?")
    stage = prepare()
    faults = [found for page in pages if (found := fault(page, stage))]
    ran = ", ".join(page.name for page in pages)
    print("\n".join(faults) if faults else f"guide: commands of {ran} do what they say")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
