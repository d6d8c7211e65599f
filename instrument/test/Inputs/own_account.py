"""Compares what a program says of its accesses with what was recorded of them: own_account.py STREAM.

STREAM is what a program prints whose recorder prints its stream with addresses, and which says itself, by lines

    own KIND BYTES ADDRESS

what its functions that are called by_hand… have accessed, in their order. They call none. Masks are taken apart into
lanes.
"""

import re
import sys

RECORDED = re.compile(r"(load|store|update) (\d+)(?: mask ([0-9a-f]+) of \d+)? \S+ @([0-9a-f]+)")
OWN = re.compile(r"own (load|store|update) (\d+) (?:0x)?([0-9a-f]+)$")


def main():
    own, recorded, is_by_hand = [], [], False
    with open(sys.argv[1], encoding="utf-8") as stream:
        for line in stream:
            if found := OWN.match(line):
                own.append((found[1], int(found[2]), int(found[3], 16)))
            elif line.startswith(("enter ", "exit ")):
                is_by_hand = line.startswith("enter by_hand")
            elif is_by_hand and (found := RECORDED.match(line)):
                kind, size, mask, address = found[1], int(found[2]), found[3], int(found[4], 16)
                lanes = [i for i in range(64) if int(mask, 16) >> i & 1] if mask else [0]
                recorded += [(kind, size, address + i * size) for i in lanes]
    if not own:
        sys.exit("the program says nothing of itself")
    for number, (said, found) in enumerate(zip(own, recorded)):
        if said != found:
            sys.exit(f"access {number} is {said[0]} {said[1]} {said[2]:x}, "
                     f"recorded as {found[0]} {found[1]} {found[2]:x}")
    if len(own) != len(recorded):
        sys.exit(f"{len(own)} accesses, {len(recorded)} recorded")
    print(f"{len(own)} accesses are as the program says")


if __name__ == "__main__":
    main()
