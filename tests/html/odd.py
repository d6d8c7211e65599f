"""Pages of odd traces: one whose tables have 10⁵ rows, and one that is a sample."""

import base64
import json
import re
import zlib

import programs
from browser import MEMLODE, WORK, build, held, page, record, run

# Bytes that a page may have, and that its cells may take of it.
PAGE_BYTES, CELL_BYTES = 3 << 20, 3 << 19


def prepare():
    record("many", build("many", programs.many(), "-fno-optimize-sibling-calls"))
    program = build("sampled", programs.SAMPLED)
    run(MEMLODE, "record", "-o", WORK / "sampled-trace", "--force", "--burst", "1ms/20ms", "--", program)


def packed_bytes(part):
    """Bytes of a part of the data as a page would hold it alone."""
    return len(base64.b64encode(zlib.compress(json.dumps(part, separators=(",", ":")).encode(), 9)))


def many(open_page):
    """What is left out is told, and nothing is lost: rows and what stands below them are the report's."""
    path = page("many")
    report = json.loads(run(MEMLODE, "report", "many-trace", "--machine", "generic", "--top", "0", "--json").stdout)
    data = held(path)
    reader = open_page("light", "wide")
    rows = {name: len(report[name]) for name in ("objects", "lines", "types")}
    if rows["objects"] < 100_000 or rows["lines"] < 600 or rows["types"] < 300:
        reader.faults.append(f"the report has {rows} rows: the program is not what it should be")
    left_out = {left["table"]: left for left in data["left_out"]}
    for name, of_report in rows.items():
        left = left_out.get(name, {"rows": 0, "accesses": 0})
        if len(data["report"][name]) + left["rows"] != of_report:
            reader.faults.append(f"{name}: {len(data['report'][name])} rows and {left['rows']} left out of {of_report}")
        accesses = sum(row["accesses"] for row in data["report"][name]) + left["accesses"]
        if accesses != sum(row["accesses"] for row in report[name]):
            reader.faults.append(f"{name}: {accesses} accesses with those that are left out are not the report's")
    if (size := path.stat().st_size) > PAGE_BYTES:
        reader.faults.append(f"the page has {size} bytes")
    if (size := packed_bytes(data["cells"])) > CELL_BYTES:
        reader.faults.append(f"cells have {size} bytes")
    reader.open(path)
    reader.views("many", False)
    reader.open(path, "#objects")
    text = reader.page.locator("#main").inner_text()
    if f"{left_out['objects']['rows']} smaller rows are left out" not in text:
        reader.faults.append("the objects that are left out are not told")
    shown = reader.page.locator("#main tbody tr").count()
    reader.page.locator("#main button", has_text=re.compile("^Show more")).last.click()
    if not shown < reader.page.locator("#main tbody tr").count() <= shown + 500:
        reader.faults.append("more rows are not shown")
    reader.accessible("many rows")
    return [reader]


def sampled(open_page):
    """A page of a sample says so, and has ± where the report has."""
    path = page("sampled", "--with", "rows,time")
    report = json.loads(run(MEMLODE, "report", "sampled-trace", "--machine", "generic", "--json").stdout)
    readers = [open_page("dark", "wide"), open_page("light", "phone")]
    for reader in readers:
        reader.open(path)
        text = reader.page.locator("#main").inner_text()
        if "every 20 ms" not in text:
            reader.faults.append("the summary does not say that it is a sample")
        reader.views("sampled", reader is readers[0])
        reader.open(path, "#structures")
        text = reader.page.locator("#main").inner_text()
        if report["types"][0].get("standard_errors", {}).get("wait_share") and "±" not in text:
            reader.faults.append("shares of the wait have no ±")
        reader.open(path, "#waits")
        if "To fill it" not in reader.page.locator("#main").inner_text():
            reader.faults.append("a sample has times, which nobody can know")
    return readers
