"""Pages of `memlode html`, opened as a reader opens them.

    target/python/bin/python tests/html/html.py [PAGE…]

Each view of each page is opened in Debian's Chromium, in both themes and on a phone's width, by clicks, by keys and by
address. No page may ask for anything, write to the console, be wider than the screen, or have what axe-core calls a
serious fault. Names are those that a browser would obey. Screenshots are left in target/tests/html.
"""

import json
import math
import re
import shutil
import sys

import naive
import odd
import programs
from browser import CHROMIUM, FLAGS, MEMLODE, ROOT, WIDTHS, WORK, Reader, build, held, page, record, run
from playwright.sync_api import sync_playwright


def by_keys(reader, wanted, kind):
    """Search, by keys alone."""
    reader.page.keyboard.press("/")
    reader.page.keyboard.type(wanted)
    first = reader.page.locator("#hits a").first.inner_text()
    if not first.startswith(kind):
        reader.faults.append(f"searching for {wanted} finds {first}")
    reader.page.keyboard.press("ArrowDown")
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_function("!document.getElementById('search').open")
    reader.check(f"what {wanted} leads to")
    return reader.hash()


def themes(reader):
    """The button changes the theme, and it stays."""
    colour = "getComputedStyle(document.body).backgroundColor"
    before = reader.page.evaluate(colour)
    reader.page.click("#theme")
    after = reader.page.evaluate(colour)
    reader.page.reload()
    reader.page.wait_for_selector("body[data-ready]")
    if before == after or reader.page.evaluate(colour) != after:
        reader.faults.append(f"the theme does not change and stay: {before}, {after}")
    reader.page.click("#theme")


def count(value):
    """Three digits and a unit, as a page writes them."""
    for unit in ("", " k", " M", " G"):
        if value < 999.5:
            break
        value /= 1000
    digits = 0 if unit == "" or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f}{unit}"


def layout(reader, path, said):
    """Members lie where the compiler says, and have the numbers of the report."""
    offsets = {name: int(at) for name, at in re.findall(r"offset (\S+) (\d+)", said)}
    size = int(re.search(r"size (\d+)", said).group(1))
    reader.open(path, "#structures/record")
    if f"{size} bytes" not in reader.page.locator("#main").inner_text():
        reader.faults.append(f"the structure has not {size} bytes")
    drawn = reader.page.evaluate("""[...document.querySelectorAll('.record .cacheline')].flatMap((line, number) =>
        [...line.querySelectorAll('a')].map(cell => [decodeURIComponent(cell.hash.split('/')[2]),
            number * 64 + parseInt(cell.style.gridColumn) - 1]))""")
    at = {}
    for name, byte in drawn:
        at.setdefault(name, byte)
    for name, byte in offsets.items():
        if at.get(name) != byte:
            reader.faults.append(f"{name} is drawn at byte {at.get(name)}, and lies at {byte}")
    report = json.loads(run(MEMLODE, "report", "hostile-trace", "--machine", "generic", "--json").stdout)
    row = next(row for row in report["fields"] if row["type"] == "record" and row["member"] == "hot")
    cells = reader.page.locator("#main tr", has=reader.page.locator("a", has_text=re.compile("^hot$"))).first
    if count(row["accesses"]) not in cells.inner_text():
        reader.faults.append(f"hot has {count(row['accesses'])} accesses, and its row says {cells.inner_text()}")


def hostile(open_page):
    path = page("hostile", "--with", "rows,advise")
    words = held(path)["words"]
    if not words["edits"] or not words["gain"].startswith(("One edit buys", "Of ")):
        sys.exit(f"edits were tried, and the page says: {words['gain']}")
    if "<img src=x" in path.read_text():
        sys.exit("a name stands in the page as it is")
    reader = open_page("light", "wide")
    layout(reader, path, record_hostile.said)
    reader.open(path)
    by_keys(reader, "record hot", "")
    reader.views("hostile", False)
    return [reader]


def whole(path):
    """Intervals of the time line are the run, and times are those of the command that prints them."""
    data = held(path)
    total = data["report"]["total"]
    line = next(table for table in data["tables"] if table["id"] == "timeline")["rows"]
    faults = []
    if sum(row["accesses"] for row in line) != total["accesses"]:
        faults.append(f"the time line has not the {total['accesses']} accesses of the run")
    drawn, run_cycles = sum(part["cycles"] for part in data["words"]["bar"]), data["report"]["run_cycles"]
    if not math.isclose(drawn, run_cycles, rel_tol=0.001):
        faults.append(f"the bar has {drawn} cycles, and the run {run_cycles}")
    last = data["report"]["machine"]["levels"][-1]
    lines = {"fetched_bytes": last["read_misses"] + last["write_misses"], "written_bytes": last["write_backs"]}
    for column, moved in lines.items():
        if sum(row[column] for row in line) != moved * last["line_bytes"]:
            faults.append(f"{column} of the time line are not those of the {moved} lines of the report")
    if not 20 <= len(line) <= 130:
        faults.append(f"the time line has {len(line)} intervals")
    timing = json.loads(run(MEMLODE, "sim", "pricing-trace", "--machine", "generic", "--time", "--json").stdout)
    if data["timing"]["total"] != timing["total"]:
        faults.append("times are not those of memlode sim --time")
    return faults


def cured(open_page):
    """The cured program beside the sick one: what no longer waits is better."""
    path = page("cured", "--compare", "pricing-trace")
    reader = open_page("light", "wide")
    reader.open(path, "#compare")
    reader.check("compare")
    reader.accessible("compare")
    reader.page.screenshot(path=WORK / "cured-compare.png", full_page=True)
    said = run(MEMLODE, "diff", "pricing-trace", "cured-trace", "--machine", "generic", "--json")
    difference = json.loads(said.stdout)
    held_here = held(path)["comparison"]
    for side in ("before", "after"):
        if held_here[side]["run_cycles"] != difference[side]["run_cycles"]:
            reader.faults.append(f"the cycles {side} are not those of memlode diff")
    first = reader.page.locator("#main tbody tr", has_text=re.compile(r"arcs?\.state")).first.inner_text()
    if not first.startswith(("better", "gone")):
        reader.faults.append(f"arc.state was cured, and the page says {first}")
    return [reader]


def pricing(open_page):
    path = page("pricing", "--with", "rows,time,asm")
    readers = []
    for theme in ("light", "dark"):
        for width in WIDTHS:
            reader = open_page(theme, width)
            reader.open(path)
            title = reader.page.locator("h1").inner_text()
            if "wait for data" not in title or "arc.state" not in title:
                reader.faults.append(f"the first sentence is {title}")
            reader.views("pricing", width == "wide" or theme == "light")
            readers.append(reader)
    reader = readers[0]
    reader.faults += whole(path)
    reader.open(path)
    if by_keys(reader, "arc.state", "member") != "#structures/arc/state":
        reader.faults.append(f"searching for arc.state leads to {reader.hash()}")
    together(reader)
    themes(reader)
    reader.open(path, "#source/price_block/51")
    if not reader.page.locator("tr.target").count():
        reader.faults.append("an address with a line does not show it")
    assembly(reader)
    reader.open(path, "#source/price_block/51")
    reader.page.keyboard.press("Tab")
    if reader.page.evaluate("document.activeElement.id") != "skip":
        reader.faults.append("the first thing that Tab reaches is not the way past the navigation")
    return readers


def assembly(reader):
    """Instructions appear when asked for, and that which reads the member has the accesses that annotate counts."""
    hidden = reader.page.locator("tr.asm:visible").count()
    reader.page.check("#asm")
    rows = reader.page.locator("tr.asm:visible")
    said = run(MEMLODE, "annotate", "pricing-trace", "before.c:51", "--machine", "generic", "--asm", "--json").stdout
    line = next(line for line in json.loads(said)["parts"][0]["lines"] if line["line"] == 51)
    exact = [one for one in line["instructions"] if one["counted"] == "exact"]
    if hidden or not exact:
        reader.faults.append(f"{hidden} instructions before they are asked for, {len(exact)} with numbers")
    for one in exact:
        text = rows.filter(has_text=f"{one['address']:x}").first.inner_text()
        if count(one["numbers"]["accesses"]) not in text or one["text"] not in text:
            reader.faults.append(f"the page says {text!r} of {one}")
    reader.check("instructions")
    reader.accessible("instructions")
    reader.page.screenshot(path=WORK / "pricing-asm.png", full_page=True)


def threads(open_page):
    path = page("threads")
    readers = [open_page("light", "wide"), open_page("dark", "phone")]
    for reader in readers:
        reader.open(path)
        if "Threads lose" not in reader.page.locator("h1").inner_text():
            reader.faults.append("what matters most of a program whose threads share is not said first")
        reader.views("threads", reader is readers[0])
        reader.open(path, "#threads")
        if "slots" not in reader.page.locator("#main").inner_text():
            reader.faults.append("what the threads share is not named")
    return readers


def cells(open_page):
    """Filters show what the accesses, one by one, add up to."""
    path = page("cells")
    replay = ("replay", "cells-trace", "--machine", "generic", "--rows", "hits", "--format", "ndjson")
    lines = run(MEMLODE, *replay).stdout.splitlines()
    reader = open_page("light", "wide")
    data = held(path)
    reader.faults += naive.faults(data, lines)
    of_cells = data["cells"]
    middle = of_cells["stretches"] // 2
    kept = list(naive.cells_of(data).items())
    for options, passes in (
        ("thread=1", lambda key, stretch: key[0] == 1),
        (f"time=0-{middle}", lambda key, stretch: stretch < middle),
        (f"thread=0&member=weight&type=node&time={middle}-{of_cells['stretches']}",
         lambda key, stretch: key[0] == 0 and key[3:5] == ("node", "weight") and stretch >= middle),
    ):
        reader.open(path, f"#structures/node/weight?{options}")
        wanted = sum(sums[0] for (key, stretch), sums in kept
                     if passes(key, stretch) and key[3] == "node" and key[4] == "weight")
        row = reader.page.locator("table tr.chosen").first.inner_text().split("\t")
        if count(wanted) not in row:
            reader.faults.append(f"{options}: {count(wanted)} accesses to node.weight pass, and the page says {row}")
        reader.check(options)
        reader.accessible(options)
    reader.page.screenshot(path=WORK / "cells-filtered.png", full_page=True)
    # A filter goes to other views, and back again.
    reader.click(reader.page.locator("#views a", has_text="Objects"))
    if "thread=0" not in reader.hash():
        reader.faults.append(f"the filters are lost on the way to {reader.hash()}")
    reader.click(reader.page.locator(".chip", has_text="thread"))
    if "thread" in reader.hash():
        reader.faults.append(f"a filter stays when it is removed: {reader.hash()}")
    return [reader, *call_tree(open_page, path), *object_ranges(open_page, path)]


CAUSES = ("cold", "capacity", "conflict")
SHARED = ("held_elsewhere", "true_sharing", "false_sharing")
LINE = ("file", "line", "linkage_name", "type", "member", "variable")


def causes(open_page):
    """The misses of each cause are those of memlode sim, by line, unless threads share it; a filter shows them."""
    path = page("causes", "--with", "rows,sim")
    data = held(path)
    said = json.loads(run(MEMLODE, "sim", "causes-trace", "--machine", "generic", "--json").stdout)
    levels = [level["name"] for level in data["report"]["machine"]["levels"]]
    shared = {tuple(row.get(name) for name in LINE) for row in said["lines"]
              if any(of[cause] for of in row["causes"] for cause in SHARED)}
    expected = {(at, cause.replace("_", " "), tuple(row.get(name) for name in LINE)): of[cause]
                for row in said["lines"] for at, of in enumerate(row["causes"]) for cause in CAUSES if of[cause]}
    cells = data["cells"]
    groups = [sum(cells["group_steps"][:at + 1]) for at in range(len(cells["group_steps"]))]
    found = {}
    for cause in cells["causes"]:
        for at, group in enumerate(groups):
            row = data["report"]["lines"][cells["groups"]["line"][group]]
            key = (cause["level"], cause["name"], tuple(row.get(name) for name in LINE))
            found[key] = found.get(key, 0) + cells["misses"][cause["level"]][at] * cause["share"][group]
    reader = open_page("light", "wide")
    # Small cells are in none.
    for key in expected.keys() | {key for key in found if found[key] > 0.5}:
        if key[2] not in shared and abs(expected.get(key, 0) - found.get(key, 0)) > 1 + 0.005 * sum(expected.values()):
            reader.faults.append(f"memlode sim has {expected.get(key)} misses of {key}, and the page {found.get(key)}")
    kinds = {(level, name) for level, name, _ in expected}
    if {name for _, name in kinds} != set(CAUSES) or len(shared) != 1:
        reader.faults.append(f"the program misses for {kinds} alone")
    for level, name in sorted(kinds):
        reader.open(path, f"#source?cause={levels[level]}+{name.replace(' ', '+')}")
        reader.check(name)
        if f"{name} misses of {levels[level]}" not in reader.page.locator(".chip").inner_text():
            reader.faults.append(f"{name} misses of {levels[level]} cannot be chosen")
    reader.accessible("causes")
    reader.open(path, "#objects?cause=L1d+conflict")
    wanted = sum(misses for (level, name, _), misses in expected.items() if (level, name) == (0, "conflict"))
    row = reader.page.locator("table[aria-label=Objects] tbody tr, [aria-label=Objects] tbody tr").first.inner_text()
    if count(wanted) not in row.split("\t"):
        reader.faults.append(f"{wanted} conflicts in L1d, and the page says {row}")
    reader.page.screenshot(path=WORK / "causes-objects.png", full_page=True)
    return [reader]


def call_tree(open_page, path):
    """Boxes of the call tree, those of one function, and functions that are collapsed."""
    reader = open_page("dark", "wide")
    reader.open(path, "#calls")
    weigh = reader.page.locator("a.flame", has_text="weigh").first
    if not weigh.count():
        reader.faults.append("the call tree has no weigh")
        return [reader]
    reader.click(weigh)
    text = reader.page.locator("#main").inner_text()
    if "main" not in text or "again" not in text:
        reader.faults.append("the callers of weigh are not shown")
    reader.check("sandwich")
    reader.accessible("sandwich")
    reader.page.screenshot(path=WORK / "cells-sandwich.png", full_page=True)
    reader.click(reader.page.locator("a", has_text="Collapse into its callers"))
    if reader.page.locator("a.flame", has_text="weigh").count():
        reader.faults.append("a collapsed function is still there")
    reader.click(reader.page.locator(".choices a", has_text="callees first"))
    if "invert=1" not in reader.hash() or "without=weigh" not in reader.hash():
        reader.faults.append(f"the address does not hold how calls are shown: {reader.hash()}")
    reader.open(path, "#calls/L1d")
    data = held(path)
    misses = data["report"]["total"]["misses"]["L1d"]
    if sum(data["calls"]["misses"][0]) != misses:
        reader.faults.append(f"paths have not the {misses} misses of the run")
    waits = data["report"]["total"]["wait"]
    cycles = waits["cycles"] + waits["instruction_cycles"] + waits["first_touch_cycles"]
    if abs(sum(data["calls"]["cycles"]) - cycles) > 1e-3 * cycles:
        reader.faults.append(f"paths have {sum(data['calls']['cycles'])} cycles, the run {cycles}")
    return [reader]


def object_ranges(open_page, path):
    """The picture of an object has its accesses."""
    reader = open_page("light", "phone")
    data = held(path)
    of = data["ranges"][0]
    accesses = data["report"]["objects"][of["object"]]["accesses"]
    if sum(map(sum, of["bins"])) != accesses or sum(thread["accesses"] for thread in of["threads"]) != accesses:
        reader.faults.append(f"the pictures of object {of['object']} have not its {accesses} accesses")
    reader.open(path, f"#objects/{of['object']}")
    reader.check("an object")
    reader.page.screenshot(path=WORK / "cells-object.png", full_page=True)
    return [reader]


def heap(open_page):
    """Memory is what the program's text says: nodes stay, each buffer goes, and a table makes the peak in round 100."""
    path = page("heap")
    memory = held(path)["memory"]
    faults = []
    for name, expected in {"made": 401, "freed": 201, "peak_bytes": 101 * 16 + 2000 * 8, "left_out": 0}.items():
        if memory[name] != expected:
            faults.append(f"the page says {name} {memory[name]}, and the program {expected}")
    ends = [sum(of["at_ends"][at] for of in memory["objects"]) for at in range(len(memory["first_access"]))]
    if ends != memory["at_ends"] or ends[-1] != 200 * 16 or max(memory["most"]) != memory["peak_bytes"]:
        faults.append(f"allocations have {ends} bytes at the ends of stretches, all together {memory['at_ends']}")
    reader = open_page("dark", "wide")
    reader.faults += faults
    reader.open(path, "#objects")
    reader.check("memory")
    reader.accessible("memory")
    reader.page.screenshot(path=WORK / "heap-objects.png", full_page=True)
    legend = reader.page.locator(".legend li")
    functions = ("grown", "tabled", "buffered")
    named = [next((name for name in functions if name in text), text) for text in legend.all_inner_texts()]
    if named != ["tabled", "grown", "buffered"]:
        reader.faults.append(f"the legend says {named}")
    if legend.first.get_attribute("data-tip") != memory["objects"][0]["name"]:
        reader.faults.append("the whole path is not told")
    reader.click(reader.page.locator("#main a", has_text="tabled").first)
    if not reader.comes(reader.page.locator("h2", has_text="tabled")):
        reader.faults.append("an allocation does not lead to its objects")
    return [reader]


def together(reader):
    """The members that are used together are those of the report's finding."""
    report = json.loads(run(MEMLODE, "report", "pricing-trace", "--machine", "generic", "--json").stdout)
    found = next(found for found in report["findings"] if found["member"] == "state")
    density = next(one for one in found["evidence"] if one["kind"] == "density")
    drawn = reader.page.evaluate("""[...document.querySelectorAll('.together .warm')]
        .map(cell => decodeURIComponent(cell.hash.split('/')[2]))""")
    if set(drawn) != set(density["used_with"]):
        reader.faults.append(f"with arc.state are drawn {drawn}, and used {density['used_with']}")


def clean(open_page):
    path = page("clean")
    reader = open_page("light", "wide")
    reader.open(path)
    title = reader.page.locator("h1").inner_text()
    if "another layout would gain little" not in title:
        reader.faults.append(f"a program with nothing to gain hears: {title}")
    reader.views("clean", False)
    return [reader]


def empty(_open_page):
    """A trace of nothing is refused, and leaves no page."""
    made = WORK / "empty.html"
    done = run(MEMLODE, "html", "empty-trace", "-o", made, check=False)
    if done.returncode != 1 or made.exists() or "memlode: " not in done.stderr:
        sys.exit(f"the page of an empty trace: {done.returncode} {done.stderr}")
    return []


class record_hostile:
    """What the program says of its own layout."""
    said = ""


def prepare():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    record("pricing", build("pricing", ROOT / "gallery" / "pricing-scan" / "before.c"))
    record("cured", build("cured", ROOT / "gallery" / "pricing-scan" / "after.c"))
    program = build("hostile", programs.HOSTILE)
    record_hostile.said = record("hostile", program, "</script><script>alert('argument')</script>", "\u202e\x1b[31m")
    record("threads", build("threads", programs.THREADS, "-pthread"))
    record("clean", build("clean", programs.CLEAN))
    record("cells", build("cells", ROOT / "crates" / "analyses" / "fixtures" / "cells" / "program.c", "-pthread"))
    record("causes", build("causes", programs.CAUSES, "-pthread"))
    record("heap", build("heap", ROOT / "crates" / "analyses" / "fixtures" / "heap" / "program.c"))
    shutil.copytree(WORK / "clean-trace", WORK / "empty-trace")
    for chunks in (WORK / "empty-trace").rglob("*"):
        if chunks.is_file() and chunks.suffix != ".json":
            chunks.write_bytes(b"")


def main(wanted):
    pages = {"pricing": pricing, "cured": cured, "hostile": hostile, "threads": threads, "cells": cells,
             "heap": heap, "causes": causes, "clean": clean, "empty": empty, "many": odd.many, "sampled": odd.sampled}
    prepare()
    odd.prepare()
    faults = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for name in wanted or pages:
            readers = pages[name](lambda theme, width: Reader(browser, theme, width))
            found = [fault for reader in readers for fault in reader.faults]
            print("\n".join([f"{name}: {len(readers)} browsers, {len(found)} faults", *found]), flush=True)
            faults += found
        browser.close()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
