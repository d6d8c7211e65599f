"""Prints each function of a program that the list of functions covers: listed.py LLVM-BIN PROGRAM

Addresses are those that nm and readelf show.
"""

import re
import struct
import subprocess
import sys

tools, program = sys.argv[1:]


def run(tool, *options):
    return subprocess.run([f"{tools}/{tool}", *options, program], check=True, capture_output=True, text=True).stdout


covered = set()
for section, entry in ("memlode_fun", "<iI"), ("memlode_fun_far", "<qI"):
    found = re.search(rf" {section} +PROGBITS +(\w+) ", run("llvm-readelf", "-SW"))
    if found is None:
        continue
    dump = run("llvm-readelf", f"--hex-dump={section}")
    rows = re.findall(r"^0x\w+ (.{35})", dump, re.MULTILINE)
    data = bytes.fromhex("".join(row.replace(" ", "") for row in rows))
    assert len(data) % struct.calcsize(entry) == 0, "half an entry"
    for number, (place, length) in enumerate(struct.iter_unpack(entry, data)):
        start = int(found[1], 16) + number * struct.calcsize(entry) + place
        covered.add((start, length))

functions = {}
for line in run("llvm-nm", "-S", "--defined-only").splitlines():
    address, *length, kind, name = line.split()
    if kind in "tTwW" and length:
        functions[name] = (int(address, 16), int(length[0], 16))
places = set(functions.values())
# Code that was not linked has no entry: the list says nothing of what is not there.
assert covered <= places, f"entries of no function: {covered - places}"
for name in sorted(name for name, place in functions.items() if place in covered):
    print(name)
