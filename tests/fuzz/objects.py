"""What a program says of its blocks (blocks.py) against the objects of its trace.

Each thread's account is the sequence of what its functions took, made longer and gave back: in the trace, these and no
others stand between the entry and the exit of such a function. In the report, each block belongs to the user's line
that took it, and no other line of the account; the blocks, their bytes and at least two accesses of each are there.
"""

import collections
import json
import re
import subprocess

from build import MEMLODE, Failure

EVENT = re.compile(r"^\S+\t\d+\t(enter|exit|alloc|alloc_array|realloc|free)\t")
BELONGS = re.compile(r"blocks_\d+(\(|$)")
# It takes no blocks. Its calls have chunks of their own, which may begin and end between any two events of others.
HANDLER = "on_signal"


def said(path):
    """The account of each thread, by its kernel's number: ("took", address, bytes, line) and the like."""
    found = collections.defaultdict(list)
    for line in path.read_text().splitlines() if path.exists() else []:
        tid, kind, at, old, size, file, number = line.split(" ")
        found[int(tid)].append((kind, *(int(word, 16) if word != "(nil)" else 0 for word in (at, old)), int(size),
                                f"{file}:{number}"))
    return found


def once(events, event):
    """Adds an event; who calls an allocator and is one himself, as a memory resource, tells of the block once more."""
    kind, at = event[:2]
    before = events[-1] if events else (None, None)
    if at == before[1] and (kind, before[0]) in (("alloc", "alloc"), ("alloc", "realloc"), ("free", "free")):
        events.pop()
    events.append(event)


def recorded(trace):
    """Objects that were made and ended inside of functions of blocks.py, in the order of each thread."""
    tids = {}
    for line in (trace / "events.ndjson").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "thread_start" and event["process"] == 0:
            tids[f"{event['process']}.{event['thread']}"] = event["tid"]
    found, stacks = collections.defaultdict(list), collections.defaultdict(list)
    with subprocess.Popen([MEMLODE, "dump", trace], stdout=subprocess.PIPE, text=True) as dump:
        for line in dump.stdout:
            if not EVENT.match(line):
                continue
            thread, _, kind, address, size, _, function, _, _, detail = line.rstrip("\n").split("\t")
            if function.partition("(")[0] == HANDLER:
                continue
            stack = stacks[thread]
            if kind == "enter":
                stack.append(function)
            elif kind == "exit":
                stack.pop()
            elif thread in tids and any(BELONGS.match(each) for each in stack):
                once(found[tids[thread]], (kind, int(address, 16), detail, size))
    if dump.returncode != 0:
        raise Failure("dump", f"exit status {dump.returncode}")
    return found


def sequences_agree(account, trace):
    """Every block once, at its address and with its bytes."""
    for tid in account.keys() | trace.keys():
        expected, found = account.get(tid, []), trace.get(tid, [])
        for number, (own, event) in enumerate(zip(expected, found)):
            kind, at, old, size, line = own
            same = {"took": event[0] in ("alloc", "alloc_array", "realloc") and event[3] == str(size),
                    "moved": event[0] == "realloc" and event[3] == str(size) and f"{old:x}" in event[2],
                    "gave": event[0] == "free"}[kind]
            if not same or at != event[1]:
                raise Failure("blocks", f"number {number} of {tid}: {kind} {at:x} {old:x} {size} at {line}, "
                                        f"recorded {event}")
        if len(expected) != len(found):
            raise Failure("blocks", f"{len(expected)} by the account of {tid}, {len(found)} recorded; behind it "
                                    f"{(expected[len(found):] or found[len(expected):])[0]}")


def lines_agree(account, report):
    """The report's objects by the user's line that took them."""
    expected = collections.defaultdict(lambda: [0, 0])
    for kind, _, _, size, line in (entry for entries in account.values() for entry in entries):
        if kind != "gave":
            expected[line][0] += 1
            expected[line][1] += size
    found = collections.defaultdict(lambda: [0, 0])
    touched, unsure = collections.Counter(), 0
    for row in report["objects"]:
        if row["kind"] != "heap":
            continue
        places = [row["allocated_at"], *row["inlined_through"], *(call for calls in row["called_at"] for call in calls)]
        places += [place["inlined_into"] for place in places if "inlined_into" in place]
        lines = {f"{place['file'].rpartition('/')[2]}:{place['line']}" for place in places} & expected.keys()
        # Which of several calls it was is not known where the callee called another one last.
        callers = zip(row["path"][1:], row["called_at"][1:])
        if not lines and any(BELONGS.match(name) and not calls for name, calls in callers):
            unsure += row["count"]
        if len(lines) > 1:
            raise Failure("lines of blocks", f"one object of {sorted(lines)}: {json.dumps(row)}")
        for line in lines:
            found[line][0] += row["count"]
            found[line][1] += row["bytes"]
            touched[line] += row["accesses"]
    for line, (count, size) in sorted(expected.items()):
        if found[line][0] < count <= found[line][0] + unsure:
            unsure -= count - found[line][0]
        elif found[line] != [count, size] or touched[line] < 2 * count:
            raise Failure("lines of blocks", f"{line}: {count} blocks of {size} bytes, in the report {found[line]}, "
                                             f"touched {touched[line]} times")


def compare(path, trace, report):
    """Raises Failure for the first block that is not as the program says; returns how many events there are."""
    account = said(path)
    sequences_agree(account, recorded(trace))
    lines_agree(account, report)
    return sum(map(len, account.values()))
