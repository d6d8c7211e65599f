"""Holds advice against programs whose answer is known: python3 tests/corpus/corpus.py [NAME…]

Of clean/*.c nothing may be advised. sick/*.c have a disease that is known by its cure, which must be advised first,
and well/*.c are the same programs cured, of which nothing may be. remedies/*.c each need one of the remedies of
docs/remedies.md, which must be advised first. edits/*.c have edits that look good and are not.
answers.toml says which. Every folder's programs must have an answer, and every answer a program.
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


def recorded(program, options=("-O2",)):
    """The trace of a program, compiled and recorded."""
    name = f"{program.parent.name}-{program.stem}"
    memlode("cc", *options, "-g", "-pthread", "-Wall", "-Wextra", "-Werror", program, "-o", name)
    memlode("record", "-o", f"{name}.trace", "--", f"./{name}")
    return f"{name}.trace"


def json_of(*words, machine="generic"):
    simulated = ["--sim"] if machine.endswith(".toml") else []
    machine = HERE / machine if simulated else machine
    return json.loads(memlode(*words, *simulated, "--machine", machine, "--json"))


def nothing_is_advised(name, folder="clean", machine="generic"):
    found = json_of("advise", recorded(HERE / folder / f"{name}.c"), machine=machine)
    if found["worth_it"]:
        advised = [f"{'; '.join(item['edits'])} ({item['gain']:.1%})" for item in found["worth_it"]]
        raise Wrong(f"advised: {', '.join(advised)}")
    if found["aliased"]:
        raise Wrong(f"told of aliasing: {found['aliased']}")
    return f"nothing advised, {len(found['rejected'])} rejected"


def the_cure_is_advised(name, answer, folder="sick"):
    trace = recorded(HERE / folder / f"{name}.c", answer.get("options", ["-O2"]))
    found = json_of("advise", trace, machine=answer.get("machine", "generic"))
    if "aliased" in answer:
        told = found["aliased"][0] if found["aliased"] else None
        if not told or not told["edit"].startswith(tuple(answer["aliased"])):
            raise Wrong(f"told of aliasing: {told}, not {' or '.join(answer['aliased'])}")
        return f"{told['edit']}: {told['conflicts']:,} of {told['accesses']:,}, then {told['conflicts_left']:,}"
    advised = ["; ".join(item["edits"]) for item in found["worth_it"]]
    if not advised or not any(advised[0].startswith(cure) for cure in answer["cures"]):
        raise Wrong(f"advised first: {advised[:1] or 'nothing'}, not {' or '.join(answer['cures'])}")
    return f"{advised[0]} ({found['worth_it'][0]['gain']:+.1%})"


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
    checks += [(f"sick/{name}", the_cure_is_advised, (name, answer)) for name, answer in answers["sick"].items()]
    for name, answer in answers["sick"].items():
        machine = answer.get("machine", "generic")
        checks.append((f"well/{name}", nothing_is_advised, (name, "well", machine)))
    for name, answer in answers["remedies"].items():
        checks.append((f"remedies/{name}", the_cure_is_advised, (name, answer, "remedies")))
    checks += [(f"edits/{name}", verdicts_are_right, (name, edits)) for name, edits in answers["edits"].items()]
    folders = ("clean", "sick", "well", "remedies", "edits")
    programs = {f"{folder}/{file.stem}" for folder in folders for file in (HERE / folder).glob("*.c")}
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
