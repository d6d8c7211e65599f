"""What `memlode dump --types` says against the debug information of the same programs, which pyelftools reads.

    python3 -B tests/layouts/layouts.py [PROGRAM…]

Without arguments, small programs of each language are built, run and compared. A PROGRAM is one that was built by
`memlode cc` or its like, started as it is. Every record that memlode describes must have the size and the members, with
offset and size in bits, of one that has its name in the debug information.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from elftools.elf.elffile import ELFFile

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
WORK = ROOT / "target" / "layouts"
SMALL = {
    "c": HERE / "languages/shapes.c",
    "c++": HERE / "languages/classes.cpp",
    "fortran": HERE / "languages/shapes.f90",
    "rust": HERE / "languages/rust",
    "pricing": ROOT / "gallery/pricing-scan/before.c",
    "layouts": HERE / "layouts/layouts.cpp",
}

RECORDS = {"DW_TAG_structure_type": "struct", "DW_TAG_class_type": "class", "DW_TAG_union_type": "union"}
TRANSPARENT = {
    "DW_TAG_typedef",
    "DW_TAG_const_type",
    "DW_TAG_volatile_type",
    "DW_TAG_restrict_type",
    "DW_TAG_atomic_type",
}
POINTERS = {"DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type"}


class Debug:
    """The types of a program's debug information."""

    def __init__(self, path):
        self.records = {}
        with path.open("rb") as file:
            for unit in ELFFile(file).get_dwarf_info().iter_CUs():
                self.walk(unit.get_top_DIE(), "")

    def walk(self, die, scope):
        for child in die.iter_children():
            name = text(child)
            if child.tag in RECORDS and "DW_AT_declaration" not in child.attributes:
                if name:
                    self.records.setdefault(scope + name, []).append(shape(child))
                self.walk(child, f"{scope}{name}::")
            elif child.tag == "DW_TAG_namespace":
                self.walk(child, f"{scope}{name or '(anonymous namespace)'}::")
            elif child.tag == "DW_TAG_typedef":
                target = child.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in child.attributes else None
                if target is not None and target.tag in RECORDS and not text(target):
                    self.records.setdefault(scope + name, []).append(shape(target))
            elif child.has_children:
                self.walk(child, "")


def text(die):
    value = die.attributes.get("DW_AT_name")
    return value.value.decode() if value else ""


def number(die, attribute):
    value = die.attributes.get(attribute)
    return value.value if value else 0


def whole(die):
    """The bytes of a type: flang leaves out those behind the last member, and says how members are aligned."""
    most = max((number(child, "DW_AT_alignment") for child in die.iter_children()), default=0) or 1
    return -(-number(die, "DW_AT_byte_size") // most) * most


def bits(die):
    """The size of what an attribute DW_AT_type leads to."""
    if "DW_AT_type" not in die.attributes:
        return 0
    die = die.get_DIE_from_attribute("DW_AT_type")
    if die.tag in POINTERS:
        return 64
    if die.tag in TRANSPARENT:
        return bits(die)
    if die.tag == "DW_TAG_ptr_to_member_type":
        return 128 if die.get_DIE_from_attribute("DW_AT_type").tag == "DW_TAG_subroutine_type" else 64
    if die.tag != "DW_TAG_array_type" or "DW_AT_byte_size" in die.attributes:
        return whole(die) * 8
    if "DW_AT_data_location" in die.attributes:
        # A descriptor: 24 bytes, as many for each dimension, and 16 that say which derived type the elements have.
        derived = die.get_DIE_from_attribute("DW_AT_type").tag in RECORDS
        return 8 * (24 + 24 * len(list(die.iter_children())) + 16 * derived)
    size = bits(die)
    for range_ in die.iter_children():
        if "DW_AT_upper_bound" in range_.attributes:
            size *= number(range_, "DW_AT_upper_bound") - number(range_, "DW_AT_lower_bound") + 1
        else:
            size *= number(range_, "DW_AT_count")
    return size


def variants(part):
    """The discriminant of an enum, and what its values mean."""
    if "DW_AT_discr" in part.attributes:
        tag = part.get_DIE_from_attribute("DW_AT_discr")
        yield "discriminant", text(tag), number(tag, "DW_AT_data_member_location") * 8, bits(tag), None
    for variant in part.iter_children():
        if variant.tag == "DW_TAG_variant":
            value = variant.attributes.get("DW_AT_discr_value")
            value = value.value & 0xFFFFFFFFFFFFFFFF if value and not isinstance(value.value, list) else None
            for member in variant.iter_children():
                if member.tag == "DW_TAG_member":
                    first = number(member, "DW_AT_data_member_location") * 8
                    yield "variant", text(member), first, bits(member), value


def members(die):
    """Kind, name, first bit and size in bits of each member, and what is in it if that has no name."""
    for child in die.iter_children():
        if child.tag == "DW_TAG_variant_part":
            yield "variants", "", 0, number(die, "DW_AT_byte_size") * 8, tuple(variants(child))
        if child.tag not in ("DW_TAG_member", "DW_TAG_inheritance") or "DW_AT_external" in child.attributes:
            continue
        if "DW_AT_declaration" in child.attributes:
            continue
        first = number(child, "DW_AT_data_bit_offset") or number(child, "DW_AT_data_member_location") * 8
        size = number(child, "DW_AT_bit_size") or bits(child)
        kind = "field"
        if child.tag == "DW_TAG_inheritance":
            kind = "virtual base" if "DW_AT_virtuality" in child.attributes else "base"
            first = 0 if kind == "virtual base" else first
        elif text(child).startswith("_vptr"):
            kind = "vptr"
        yield kind, text(child), first, size, ()


def shape(die):
    return RECORDS[die.tag], whole(die), tuple(members(die))


def described(program, arguments, name):
    """What memlode says of a program that it records."""
    trace = WORK / f"{name}.trace"
    shutil.rmtree(trace, ignore_errors=True)
    run = [MEMLODE, "record", "-o", trace, "--", program, *arguments]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600)
    dump = subprocess.run([MEMLODE, "dump", "--types", "--json", trace], check=True, capture_output=True, text=True)
    for line in dump.stdout.splitlines():
        record = json.loads(line)
        parts = tuple((*part(m), inside(m)) for m in record["members"])
        yield record["type"], (record["form"], record["bytes"], parts), record


def part(member):
    return member["kind"], member.get("name", ""), member["first_bit"], member["bits"]


def inside(member):
    found = member["inside"]["members"] if member["kind"] == "variants" else ()
    return tuple((*part(m), m.get("value")) for m in found)


def compare(name, program, arguments=()):
    """How many records differ."""
    debug = Debug(program)
    equal = unknown = wrong = 0
    for type_, found, record in described(program, arguments, name):
        candidates = debug.records.get(type_)
        if record.get("incomplete") or not candidates:
            unknown += 1
        elif found in candidates:
            equal += 1
        else:
            wrong += 1
            print(f"layouts: {name}: {type_}\n    memlode {found}\n    debug   {candidates[0]}")
    print(f"layouts: {name}: {equal} records agree, {wrong} differ, {unknown} are not in the debug information by name")
    return wrong + (equal == 0)


def expected_uses(source):
    """What the marks of a source say: (record, member), or (record, None) of the record itself."""
    nest, marked = [], set()
    for line in source.read_text().splitlines():
        code, _, mark = line.partition("//= ")
        opens = re.match(r"\s*(?:struct|class|union)(?: \w+\([^)]*\))? (\w+)[^;]*{\s*$", code)
        if opens:
            nest.append(opens[1])
        elif re.match(r"\s*}", code) and nest:
            nest.pop()
        if mark:
            member = re.search(r"(\w+)(?:\[\w+\])?;", code)
            marked.add((nest[-1], member[1] if member else None))
    return marked


def check_uses(name, program, source):
    """Whether addresses escape, and records are cast, where the source says so, and nowhere else in what it marks."""
    expected, found = expected_uses(source), set()
    records = {record for record, _ in expected}
    for type_, _, record in described(program, (), name):
        plain = type_.rpartition("::")[2]
        if plain in records:
            found |= {(plain, m["name"]) for m in record["members"] if m.get("escapes")}
            found |= {(plain, None)} if record.get("cast") else set()
    for what in expected ^ found:
        print(f"layouts: {name}: {what} is {'not ' if what in expected else ''}said to escape or to be cast")
    print(f"layouts: {name}: {len(expected & found)} of {len(expected)} uses of addresses found")
    return len(expected ^ found) + (not expected)


def build(name, source):
    if name == "rust":
        command = [MEMLODE, "cargo", "build", "--release", "--offline", "--manifest-path", source / "Cargo.toml"]
        environment = {**os.environ, "CARGO_BUILD_JOBS": "2"}
        subprocess.run([*command, "--target-dir", WORK / "rust"], check=True, env=environment)
        return next((WORK / "rust").glob("*/release/shapes"))
    compiler = {".c": ["cc"], ".cpp": ["c++", "-std=c++17"], ".f90": ["fc", "-module-dir", WORK]}[source.suffix]
    program = WORK / name
    subprocess.run([MEMLODE, *compiler, "-O2", "-g", source, "-o", program], check=True)
    return program


def main(programs):
    WORK.mkdir(parents=True, exist_ok=True)
    if programs:
        program, *arguments = programs
        return 1 if compare(pathlib.Path(program).name, pathlib.Path(program), arguments) else 0
    wrong = 0
    for name, source in SMALL.items():
        if name == "fortran" and not shutil.which("flang-22"):
            print("layouts: fortran: not tested, for flang-22 is not installed")
            continue
        program = build(name, source)
        wrong += compare(name, program)
        if name == "layouts":
            wrong += check_uses(name, program, source)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
