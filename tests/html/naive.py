"""Sums of every access, one by one, beside the cells of a page and what its filters show."""

import collections
import json


def summed(lines, stretch_accesses, levels):
    """The accesses and misses by thread, line, data, object and stretch, from rows of `memlode replay --rows hits`."""
    sums = collections.defaultdict(lambda: [0] * (1 + len(levels)))
    served = [*levels, "memory"]
    for line in lines:
        row = json.loads(line)
        key = (row["thread"], row["function"], row.get("line"), row.get("type"), row.get("member"), row.get("object"))
        sum_of = sums[key, row["sequence"] // stretch_accesses]
        sum_of[0] += 1
        for level in range(served.index(row["level"])):
            sum_of[1 + level] += 1
    return sums


def cells_of(held):
    """The same from the data of a page, without the cells that it does not tell apart."""
    report, cells, names = held["report"], held["cells"], held["names"]
    sums = collections.defaultdict(lambda: [0] * (1 + len(cells["misses"])))
    group = 0
    for at, step in enumerate(cells["group_steps"]):
        group += step
        thread, line, thing = (cells["groups"][name][group] for name in ("thread", "line", "object"))
        row = report["lines"][line]
        kind = report["objects"][thing]["kind"]
        name = None if kind == "unknown" else names["objects"][thing]
        key = (report["threads"][thread]["thread"], row["function"], row["line"], row["type"], row["member"], name)
        sum_of = sums[key, cells["stretch"][at]]
        sum_of[0] += cells["accesses"][at]
        for level, misses in enumerate(cells["misses"]):
            sum_of[1 + level] += misses[at]
    return sums


def faults(held, lines):
    """What cells and the accesses one by one do not agree in. Names of objects are compared by their beginning."""
    cells, report = held["cells"], held["report"]
    levels = [level["name"] for level in report["machine"]["levels"]]
    naive = summed(lines, cells["stretch_accesses"], levels)
    short = lambda key: (*key[0][:5], (key[0][5] or "").split(" ← ")[0], key[1])
    found, wanted = ({short(key): numbers for key, numbers in sums.items()} for sums in (cells_of(held), naive))
    wrong = [f"{key}: the page has {numbers}, the accesses are {wanted.get(key)}"
             for key, numbers in found.items() if numbers != wanted.get(key)]
    others = cells["others"]
    missing = [numbers for key, numbers in wanted.items() if key not in found]
    rest = [sum(column) for column in zip([0] * (1 + len(levels)), *missing)]
    if rest != [others["accesses"], *others["misses"]]:
        wrong.append(f"others are {others}, and should be {rest}")
    total = [report["total"]["accesses"], *(report["total"]["misses"][level] for level in levels)]
    if [sum(column) for column in zip(*wanted.values())] != total:
        wrong.append("the accesses one by one are not those of the report")
    return wrong + priced(held)


def priced(held):
    """Cycles: those of cells and of the others are the report's."""
    cells, total = held["cells"], held["report"]["total"]["wait"]
    wait, whole, group = cells["others"]["wait_cycles"], cells["others"]["cycles"], 0
    for at, step in enumerate(cells["group_steps"]):
        group += step
        misses = [level[at] for level in cells["misses"]] + [0]
        served = [this - following for this, following in zip(misses, misses[1:])]
        waits = sum(price[group] * accesses for price, accesses in zip(cells["groups"]["wait"], served))
        wait += waits
        whole += waits + cells["accesses"][at] * cells["groups"]["instructions"][group]
        whole += misses[-2] * cells["groups"]["first_touch"][group]
    wanted = (total["cycles"], total["cycles"] + total["instruction_cycles"] + total["first_touch_cycles"])
    # Prices have seven digits in a page.
    return [f"cells cost {found} cycles, the report {should}" for found, should in zip((wait, whole), wanted)
            if abs(found - should) > 1e-5 * max(1, should)]
