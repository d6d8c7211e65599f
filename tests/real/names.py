"""Are the names in traces of the real programs right? Samples of sites, judged by reading the source lines.

    python3 -B tests/real/names.py draw SAMPLE      draws a sample of the program's last trace into judged/SAMPLE.tsv
    python3 -B tests/real/names.py show SAMPLE      prints the sample, each site with its source line
    python3 -B tests/real/names.py check PROGRAM    fails if a name that was judged right is now another
    python3 -B tests/real/names.py table            accuracy of all judged samples, with 95% confidence intervals

A sample is called as its program, or PROGRAM.2, PROGRAM.3, …: further ones, of sites that no earlier one has.
`real.py` (`make real`) makes the traces and runs `check`. A sample has 50 sites drawn by how often they were executed
and 50 drawn evenly from all executed ones. A verdict is right, wrong, partly (part of a true answer), missing (the
source has a name where the claim has `-`) or unclear (the source does not decide it).
"""

import csv
import html
import math
import pathlib
import random
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = ROOT / "target"
MEMLODE = TARGET / "memlode" / "bin" / "memlode"
JUDGED = HERE / "judged"

ASPECTS = ("line", "variable", "type", "member")
SITE = ("place", "kind", "bytes", "inlined")
CLAIM = ("variable", "type", "member")
COLUMNS = (*SITE, "drawn", *CLAIM, *(f"{aspect}?" for aspect in ASPECTS), "note")
HALF = 50
SEED = 20


def short(place):
    """The place without the folders that differ between machines."""
    return "/".join(re.sub(r"/[^/]+/\.\.(?=/)", "", place).split("/")[-3:]).lstrip("~")


def read_tsv(lines):
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def sites(name):
    """Executed access sites of the last trace; those that nothing tells apart are one."""
    done = subprocess.run(
        [MEMLODE, "dump", "--sites", TARGET / "real" / "trace" / name], check=True, capture_output=True, text=True
    )
    merged = {}
    for row in read_tsv(done.stdout.lstrip("#").splitlines()):
        if row["kind"] in ("load", "store", "update"):
            row["full"] = row["place"]
            row["place"], row["inlined"] = short(row["place"]), short(row["inlined"])
            key = tuple(row[column] for column in (*SITE, *CLAIM))
            known = merged.setdefault(key, {**row, "events": 0})
            known["events"] += int(row["events"])
    return sorted(merged.values(), key=lambda row: [row[column] for column in (*SITE, *CLAIM)])


def draw(name):
    """By Efraimidis and Spirakis: the sites with the largest u^(1/weight)."""
    program, _, number = name.partition(".")
    numbers = random.Random(SEED + int(number or 0))
    earlier = [row for path in samples(program) if path.stem < name for row in judged(path.stem)]
    seen = {(row["place"], row["inlined"]) for row in earlier}
    left = [row for row in sites(program) if (row["place"], row["inlined"]) not in seen]
    drawn = []
    for how, weight in (("executed", lambda row: row["events"]), ("evenly", lambda row: 1)):
        left.sort(key=lambda row: math.log(numbers.random()) / weight(row), reverse=True)
        drawn += [{**row, "drawn": how} for row in left[:HALF]]
        left = sorted(left[HALF:], key=lambda row: [row[column] for column in (*SITE, *CLAIM)])
    with open(JUDGED / f"{name}.tsv", "w") as file:
        file.write("\t".join(COLUMNS) + "\n")
        for row in drawn:
            file.write("\t".join(str(row.get(column, "")) for column in COLUMNS) + "\n")


def samples(program):
    return [path for path in sorted(JUDGED.glob("*.tsv")) if path.stem.partition(".")[0] == program]


def judged(name):
    with open(JUDGED / f"{name}.tsv") as file:
        return read_tsv(file)


def source_lines(path):
    """The text of a source file, if there is one; the standard library's is in the toolchain's documentation."""
    library = re.match(r"/rustc/[0-9a-f]+/library/(.*)", path)
    if not library:
        return pathlib.Path(path).read_text(errors="replace").splitlines()
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()
    page = pathlib.Path(sysroot, "share/doc/rust/html/src", library[1].replace("/src/", "/", 1) + ".html")
    if not page.exists():
        return []
    code = re.search(r"<code[^>]*>(.*?)</code>", page.read_text(), re.S)
    return html.unescape(re.sub(r"<[^>]*>", "", code[1])).splitlines()


def clip(text, columns=70):
    """Long template arguments say little to a reader."""
    text = re.sub(r"<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>", lambda found: found[0] if len(found[0]) < 28 else "<…>", text)
    return text if len(text) <= columns else text[:columns] + "…"


def show(name):
    columns = (*SITE, *CLAIM)
    full = {tuple(row[column] for column in columns): row for row in sites(name.partition(".")[0])}
    for number, row in enumerate(judged(name), 1):
        known = full.get(tuple(row[column] for column in columns))
        verdicts = " ".join(row[f"{aspect}?"] or "-" for aspect in ASPECTS)
        claim = " | ".join(clip(row[column]) for column in CLAIM)
        print(f"{number:3} {row['kind']} {row['bytes']}  {claim}  [{verdicts}]  {row['note']}")
        where = f"in {clip(known['function'])} ({known['evidence']})" if known else "(not in the last trace)"
        print(f"      {'~' if known and known['full'].startswith('~') else ''}{row['place']} {where}")
        if row["inlined"] != "-":
            print(f"      inlined into {row['inlined']}")
        match = re.match(r"~?(.*):(\d+):(\d+)$", known["full"]) if known else None
        if match:
            lines, line = source_lines(match[1]), int(match[2])
            for at in range(max(1, line - 1), line + 1):
                print(f"      {at:6} {lines[at - 1][:150]}" if at <= len(lines) else "      ?")
            print(" " * (12 + int(match[3])) + "^")


def check(name):
    """What is wrong with today's names, by the judged sample; empty if nothing is, or there is no sample."""
    if not samples(name):
        return []
    now = {}
    for row in sites(name):
        now.setdefault(tuple(row[column] for column in SITE), []).append(row)
    problems, gone, rows = [], 0, [row for path in samples(name) for row in judged(path.stem)]
    for row in rows:
        claims = now.get(tuple(row[column] for column in SITE))
        right = [aspect for aspect in CLAIM if row[f"{aspect}?"] == "right"]
        gone += claims is None
        if claims and not any(all(claim[aspect] == row[aspect] for aspect in right) for claim in claims):
            wanted = ", ".join(f"{aspect} {row[aspect]}" for aspect in right)
            found = " or ".join(" | ".join(claim[aspect] for aspect in CLAIM) for claim in claims[:4])
            problems.append(f"{row['kind']} at {row['place']}: {wanted} was judged right; now it is {found}")
    if gone > len(rows) // 4:
        problems.append(f"{gone} of the {len(rows)} judged sites are not in the trace: draw and judge a new sample")
    return problems


def wilson(right, number):
    """95% confidence interval of a part of a whole."""
    z, part = 1.96, right / number
    middle = part + z * z / (2 * number)
    reach = z * math.sqrt(part * (1 - part) / number + z * z / (4 * number * number))
    return [(middle + sign * reach) / (1 + z * z / number) for sign in (-1, 1)]


def table():
    print("| program | sites | " + " | ".join(ASPECTS) + " |")
    print("|---|---" * 1 + "|---" * len(ASPECTS) + "|")
    for path in sorted(JUDGED.glob("*.tsv")):
        cells = []
        rows = judged(path.stem)
        for aspect in ASPECTS:
            verdicts = [row[f"{aspect}?"] for row in rows if row[f"{aspect}?"] not in ("", "unclear")]
            right = sum(verdict == "right" for verdict in verdicts)
            low, high = wilson(right, len(verdicts)) if verdicts else (0, 1)
            cells.append(f"{right} of {len(verdicts)} ({low:.0%}–{high:.0%})")
        print(f"| {path.stem} | {len(rows)} | " + " | ".join(cells) + " |")


def main(arguments):
    match arguments:
        case ["draw", name]:
            draw(name)
        case ["show", name]:
            show(name)
        case ["check", name]:
            problems = check(name)
            print("\n".join(problems))
            return 1 if problems else 0
        case ["table"]:
            table()
        case _:
            sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
