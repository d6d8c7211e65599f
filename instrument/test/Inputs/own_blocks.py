"""Compares what a program says of its blocks with what was recorded of them: own_blocks.py STREAM.

STREAM is what a program prints whose recorder prints its stream with addresses, and which says itself, by lines

    own given BASE USED BYTES
    own gone BASE

which blocks it was given and ended, in their order. Recorded is each of them and no other, with at least the bytes
that are used, and at most those that the allocator was asked for.
"""

import re
import sys

RECORDED = re.compile(r"(alloc|realloc|free) \w+(?: (\d+))?.* (\w+):(\d+) @([0-9a-f]+) @([0-9a-f]+)")
OWN = re.compile(r"own (given|gone) (?:0x)?([0-9a-f]+)(?: (\d+) (\d+))?$")


def main():
    own, recorded = [], []
    with open(sys.argv[1], encoding="utf-8") as stream:
        for line in stream:
            if said := OWN.match(line):
                own.append((said[1], int(said[2], 16), said[3], said[4]))
            elif found := RECORDED.match(line):
                kind, old = found[1], int(found[6], 16)
                if kind == "realloc" and old:
                    recorded.append(("gone", old, 0, found[0]))
                if int(found[5], 16):
                    recorded.append(("gone" if kind == "free" else "given", int(found[5], 16), found[2], found[0]))
    if not own:
        sys.exit("the program says nothing of itself")
    for number, (said, found) in enumerate(zip(own, recorded)):
        if said[:2] != found[:2]:
            sys.exit(f"block {number}: {said[0]} {said[1]:x}, but recorded is '{found[3]}'")
        if said[0] == "given" and not int(said[2]) <= int(found[2]) <= int(said[3]):
            sys.exit(f"block {number}: {said[2]} bytes of {said[3]} are used, but recorded is '{found[3]}'")
    if len(own) != len(recorded):
        sys.exit(f"{len(own)} times a block was given or ended, recorded {len(recorded)} times")
    print(f"{len(own)} times a block was given or ended, as the program says")


if __name__ == "__main__":
    main()
