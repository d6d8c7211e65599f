"""Holds advice against programs whose answer is known: python3 tests/corpus/corpus.py [NAME…]

Of clean/*.c nothing may be advised. edits/*.c have edits that look good and are not; answers.toml says which.
Every folder's programs must have an answer, and every answer a program.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "target" / "corpus"
BIN = pathlib.Path(os.environ.get("MEMLODE_BIN", ROOT / "target" / "memlode" / "bin" / "memlode"))


class Wrong(Exception):
    """An answer that is not the right one."""


def memlode(*words):
    done = subprocess.run([BIN, *words], cwd=WORK, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise Wrong(f"memlode {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def recorded(program):
    """The trace of a program, compiled and recorded."""
    name = program.stem
    memlode("cc", "-O2", "-g", "-Wall", "-Wextra", "-Werror", program, "-o", name)
    memlode("record", "-o", f"{name}.trace", "--", f"./{name}")
    return f"{name}.trace"


def json_of(*words):
    return json.loads(memlode(*words, "--machine", "generic", "--json"))


def nothing_is_advised(name):
    found = json_of("advise", recorded(HERE / "clean" / f"{name}.c"))
    if found["worth_it"]:
        advised = [f"{'; '.join(item['edits'])} ({item['gain']:.1%})" for item in found["worth_it"]]
        raise Wrong(f"advised: {', '.join(advised)}")
    return f"nothing advised, {len(found['rejected'])} rejected"


def verdicts_are_right(name, edits):
    trace = recorded(HERE / "edits" / f"{name}.c")
    told = []
    for wanted in edits:
        found = json_of("whatif", trace, "--edit", wanted["edit"])
        verdict = f"{wanted['edit']}: {found['verdict']} ({found['gain']:+.1%})"
        if found["verdict"] not in wanted["verdicts"]:
            raise Wrong(f"{verdict}, not {' or '.join(wanted['verdicts'])}")
        told.append(verdict)
    return "; ".join(told)


def main(names):
    answers = tomllib.loads((HERE / "answers.toml").read_text())
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    failed = 0
    checks = [(f"clean/{name}", nothing_is_advised, (name,)) for name in answers["clean"]]
    checks += [(f"edits/{name}", verdicts_are_right, (name, edits)) for name, edits in answers["edits"].items()]
    programs = {f"{folder}/{file.stem}" for folder in ("clean", "edits") for file in (HERE / folder).glob("*.c")}
    without = programs ^ {name for name, _, _ in checks}
    if without:
        failed += 1
        print(f"FAILED: program or answer alone: {', '.join(sorted(without))}")
    for name, check, arguments in checks:
        if names and name not in names and name.split("/")[1] not in names:
            continue
        try:
            print(f"{name}: {check(*arguments)}", flush=True)
        except Wrong as wrong:
            failed += 1
            print(f"{name}: FAILED: {wrong}", flush=True)
    print(f"corpus: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
