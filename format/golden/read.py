"""Reads a memlode trace with the standard library alone and prints it as text.

    python3 format/golden/read.py DIRECTORY

Written from SPEC.md: if this reader and the one in crates/trace print the same, the specification suffices. It reads
what golden traces hold (payloads that are stored, not packed) and refuses everything that is not valid.
"""

import json
import struct
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "generated"))
import memlode_format as f  # noqa: E402

U64 = (1 << 64) - 1
SYNCS = ("acquire", "release", "lock", "unlock", "wait", "signal", "leave", "arrive", "join", "create")
KINDS = {f.KIND_LOAD: "load", f.KIND_STORE: "store", f.KIND_UPDATE: "update"}


class Reader:
    """Takes values from the front of a buffer."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def take(self, length):
        assert length <= self.left(), "the data end too early"
        self.at += length
        return self.data[self.at - length : self.at]

    def u8(self):
        return self.take(1)[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                assert value <= U64, "more than 64 bits"
                return value

    def svarint(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def words(self, count):
        """As many words as there are heads, whose tails follow them all."""
        for head in self.take(count):
            tail = next(bit for bit in range(9) if not head >> bit & 1)
            high = int.from_bytes(self.take(tail), "little")
            value = high << max(7 - tail, 0) | head >> tail + 1
            yield value >> 1 ^ -(value & 1)

    def blob(self):
        return self.take(self.varint())

    def text(self):
        return self.blob().decode("utf-8", "replace")

    def optional(self):
        return self.varint() - 1 if self.data[self.at] != 0 else (self.u8(), None)[1]

    def sections(self):
        """What each section holds, by its number."""
        found, r = {}, Reader(self.blob())
        while r.left():
            what = r.varint()
            found[what] = r.blob()
        return found

    def list(self, entry):
        return [entry() for _ in range(self.varint())]


def unsealed(line):
    """The object in a line, once its checksum is proved."""
    body, _, seal = line.rstrip().rpartition(',"crc32":')
    assert int(json.loads(seal.rstrip("}")), 16) == zlib.crc32(body.encode()), "checksum of a JSON object"
    return json.loads(line)


def block(layout, magic, data, at):
    """Header and payload of a chunk or a module at an offset."""
    header = layout.unpack(data, at)
    assert header.magic == magic and 1 <= header.version <= f.VERSION_TRACE, "magic or version"
    assert zlib.crc32(layout.pack(**header._replace(header_crc32=0)._asdict())) == header.header_crc32, "header"
    payload = data[at + layout.size : at + layout.size + header.payload_bytes]
    assert zlib.crc32(payload) == header.payload_crc32, "payload"
    assert header.codec == f.CODEC_STORED and len(payload) == header.unpacked_bytes, "only stored payloads"
    return header, Reader(payload)


class Table:
    """One translation unit's site table."""

    def __init__(self, section, at):
        header = f.TABLE_HEADER.unpack(section, at)
        assert header.magic == f.MAGIC_TABLE and 1 <= header.version <= f.VERSION_TABLE
        payload = section[at + f.TABLE_HEADER.size :][: header.payload_bytes]
        assert zlib.crc32(payload) == header.crc32
        r = Reader(payload)
        self.strings = r.list(r.text)
        self.files = r.list(lambda: (r.varint(), r.varint()))
        self.functions = r.list(lambda: (r.varint(), r.varint(), r.optional(), r.varint()))
        self.locations = r.list(lambda: (r.varint(), r.varint(), r.varint(), r.optional()))
        self.types = r.list(lambda: (r.varint(), r.varint()))
        self.sites = r.list(
            lambda: (r.u8(), r.u8(), r.varint(), r.varint(), r.optional(), r.optional(), r.optional(), r.optional())
        )
        self.segments = r.list(lambda: (r.varint(), r.list(lambda: self.op(r))))
        sections = r.sections() if header.version > 1 else {}
        assert r.left() == 0
        if f.TABLE_SECTION_TYPES in sections:
            self.described = self.types_of(Reader(sections[f.TABLE_SECTION_TYPES]))
        if f.TABLE_SECTION_INSTRUCTIONS in sections:
            r = Reader(sections[f.TABLE_SECTION_INSTRUCTIONS])
            assert r.varint() == len(self.segments)
            self.instructions = [([r.varint() for _ in ops], r.varint()) for _, ops in self.segments]
        if f.TABLE_SECTION_FEEDS in sections:
            r = Reader(sections[f.TABLE_SECTION_FEEDS])
            self.feeds = r.list(lambda: self.feeds_of(r, 2))
        if f.TABLE_SECTION_LEFT_OUT in sections:
            r = Reader(sections[f.TABLE_SECTION_LEFT_OUT])
            self.left_out = dict(r.list(lambda: (r.u8(), r.varint())))
            assert r.left() == 0
        if f.TABLE_SECTION_ASKED in sections:
            r = Reader(sections[f.TABLE_SECTION_ASKED])
            self.asked = {self.strings[r.varint()]: bool(r.u8()) for _ in range(r.varint())}
            assert r.left() == 0
        if f.TABLE_SECTION_UNRECORDED in sections:
            r = Reader(sections[f.TABLE_SECTION_UNRECORDED])
            place = lambda: (r.u8(), r.optional(), r.optional())  # noqa: E731
            self.unrecorded = r.list(lambda: (r.varint(), r.list(place)))
            self.silent = r.list(lambda: self.strings[r.varint()])
            assert r.left() == 0
            assert all(segment < len(self.segments) for segment, _ in self.unrecorded)
        if f.TABLE_SECTION_BRANCHES in sections:
            r = Reader(sections[f.TABLE_SECTION_BRANCHES])
            self.branches = r.list(lambda: self.feeds_of(r, 1))
            assert r.left() == 0
        if f.TABLE_SECTION_EARLIER in sections:
            r = Reader(sections[f.TABLE_SECTION_EARLIER])
            self.earlier = r.list(lambda: (r.varint(), r.varint(), r.list(r.varint)))
            assert r.left() == 0
            loads = {}
            for segment, op, *kinds in [*self.feeds, *self.branches]:
                loads[segment, op] = loads.get((segment, op), 0) + sum(len(group) for of in kinds for group in of)
            assert all(number < loads[segment, op] for segment, op, numbers in self.earlier for number in numbers)

    def types_of(self, r):
        """What types are made of, which of them the table's own are, and which the variables."""
        types = []

        def type_():
            form, name, size, flags = r.u8(), r.optional(), r.varint(), r.varint()
            parts = None
            if form == f.TYPE_FORM_ARRAY:
                parts = contained(r.optional()), r.list(r.varint)
            elif form in (f.TYPE_FORM_STRUCTURE, f.TYPE_FORM_CLASS, f.TYPE_FORM_UNION, f.TYPE_FORM_VARIANTS):
                parts = r.list(member)
            types.append((form, name, size, flags, parts))

        def contained(number):
            assert number is None or number < len(types), "what is contained comes first"
            return number

        def member():
            kind, name, bit, bits = r.u8(), r.optional(), r.varint(), r.varint()
            kind_and_flags = kind, name, bit, bits, contained(r.optional()), r.varint()
            value = r.varint() if kind == f.MEMBER_KIND_VARIANT and r.varint() else None
            return *kind_and_flags, value

        r.list(type_)
        listed = r.list(r.optional)
        assert len(listed) == len(self.types)
        return types, listed, r.list(lambda: (self.strings[r.varint()], types[r.varint()]))

    def feeds_of(self, r, kinds):
        """The op, and for its address and what it stores, or for the branches behind it, groups of ops."""
        segment, op = r.varint(), r.varint()

        def one():
            found = segment - r.svarint(), r.varint()
            assert found[1] < len(self.segments[found[0]][1])
            return found

        return segment, op, *(r.list(lambda: r.list(one)) for _ in range(kinds))

    @staticmethod
    def op(r):
        """Code, site, lanes, derived address (ops back, distance; or segments back, word, distance), length (back).

        A stride's address has its step behind it.
        """
        code = r.u8()
        without = (f.OP_REPEAT, f.OP_ENTER, f.OP_EXIT, f.OP_RESUME, f.OP_VALUE, f.OP_STAMP, f.OP_SYNC)
        site = r.varint() if code not in without else None
        # What a sync does stands where masked and gather have their lanes.
        lanes = r.varint() if code in (f.OP_MASKED, f.OP_GATHER, f.OP_SYNC) else None
        address = length = None
        if code in (f.OP_ACCESS, f.OP_RANGE, f.OP_MASKED, f.OP_SYNC):
            back = r.varint()
            address = (back, r.svarint() if back else 0)
        if code == f.OP_DERIVED:
            address = (r.varint(), r.varint(), r.svarint())
        if code == f.OP_STRIDE:
            back = r.varint()
            address = (back, r.svarint() if back else 0, r.svarint())
        if code == f.OP_RANGE:
            length = r.varint()
        return code, site, lanes, address, length

    def place(self, function, line, column=None):
        file = self.functions[function][2]
        if file is None:
            return "-"
        name = f"{self.strings[self.files[file][1]]}:{line}"
        return name if column is None else f"{name}:{column}"

    def name(self, function):
        return self.strings[self.functions[function][0]]

    def site_columns(self, site, holder):
        _, _, _, _, location, variable, kind, member = self.sites[site]
        function, place = holder, "-"
        if location is not None:
            function, line, column, _ = self.locations[location]
            place = self.place(function, line, column)
        names = [self.strings[self.types[kind][0]]] if kind is not None else []
        names += [self.strings[member]] if member is not None else []
        variable = self.strings[variable] if variable is not None else "-"
        return f"{place}\t{self.name(function)}\t{variable}\t{'.'.join(names) or '-'}"

    def value_words(self, op):
        """Words of the value of an op, and how often: what was in memory before an update, and after."""
        _, site, lanes, _, _ = op
        kind, _, _, size = self.sites[site][:4]
        return (size * (lanes or 1) + 7) // 8, 2 if kind == f.KIND_UPDATE else 1

    def words(self, ops):
        count = 0
        for number, (code, _, lanes, address, length) in enumerate(ops):
            if code == f.OP_VALUE:
                each, copies = self.value_words(ops[number - 1])
                count += each * copies
            count += {f.OP_ENTER: 1, f.OP_RESUME: 1, f.OP_ALLOC: 2, f.OP_ALLOC_ARRAY: 3, f.OP_REALLOC: 3}.get(code, 0)
            count += {f.OP_REPEAT: 1, f.OP_FREE: 1, f.OP_UNMAP: 2, f.OP_MASKED: 1}.get(code, 0)
            count += {f.OP_STAMP: 1, f.OP_SYNC: 1}.get(code, 0)
            count += lanes + 1 if code == f.OP_GATHER else 0
            count += (address is not None and address[0] == 0 and code != f.OP_DERIVED) + (length == 0)
        return count


def module(data):
    """The segments of a module: for each anchor its table and index, None for a hole."""
    header, r = block(f.MODULE_HEADER, f.MAGIC_MODULE, data, 0)
    r.text(), r.blob()
    (anchors_at, anchors), (tables_at, tables) = (r.varint(), r.blob()), (r.varint(), r.blob())
    address = 0
    for _ in range(r.varint()):
        r.text()
        address += r.svarint()
        r.varint()
    sections = r.sections() if header.version > 3 else {}
    if f.MODULE_SECTION_FOREIGN in sections:
        s = Reader(sections[f.MODULE_SECTION_FOREIGN])
        assert s.u8() & f.FOREIGN_FLAG_LIBRARIES
        foreign = s.list(lambda: (s.u8() & f.FOREIGN_FLAG_LOCAL, s.text(), s.varint()))
        assert foreign == [(0, "grind", 300), (f.FOREIGN_FLAG_LOCAL, "w", 40)], foreign
        assert s.left() == 0
    assert r.left() == 0
    parsed, segments = {}, []
    for offset in range(0, len(anchors), f.ANCHOR.size):
        anchor = f.ANCHOR.unpack(anchors, offset)
        at = anchors_at + offset + anchor.table_rel - tables_at
        if anchor.table_rel and at not in parsed:
            parsed[at] = Table(tables, at)
        segments.append((parsed[at], anchor.segment) if anchor.table_rel else None)
    return segments


def told(value, is_float):
    """A value in a dump."""
    if is_float and len(value) in (4, 8):
        return repr(struct.unpack("<f" if len(value) == 4 else "<d", value)[0])
    return "0x" + value[::-1].hex()


def with_values(table, op, words, accesses, mask):
    """The accesses of an op, told what they moved."""
    _, site, lanes, _, _ = op
    _, _, flags, size = table.sites[site][:4]
    each, copies = table.value_words(op)
    memory = [b"".join(next(words).to_bytes(8, "little") for _ in range(each)) for _ in range(copies)]
    labels = ("before", "after") if copies == 2 else ("value",)
    touched = [lane for lane in range(lanes or 1) if mask >> lane & 1]
    for (*event, _), lane in zip(accesses, touched, strict=True):
        values = [told(copy[lane * size :][:size], flags & f.FLAG_FLOAT) for copy in memory]
        yield *event, " ".join(f"{label}={value}" for label, value in zip(labels, values, strict=True))


def events(table, segment, words, earlier):
    """The events of one execution, once those of each op are told what they moved.

    `earlier` has the words of other segments.
    """
    words, ops = iter(words), table.segments[segment][1]
    if ops[0][0] == f.OP_REPEAT:
        yield from repeated(table, segment, words)
        return
    made = []
    for number, (mask, found) in enumerate(plain_events(table, segment, words, earlier)):
        if ops[number][0] == f.OP_VALUE:
            made = list(with_values(table, ops[number - 1], words, made, before))
        else:
            yield from made
            made = found
        before = mask
    yield from made


def repeated(table, segment, words):
    """The accesses of strides, by turns."""
    function, [_, *strides] = table.segments[segment]
    iterations, first = next(words), []
    for _, _, _, (back, distance, _), _ in strides:
        first.append((first[-back] + distance) & U64 if back else next(words))
    for iteration in range(iterations):
        for (_, site, _, (_, _, step), _), address in zip(strides, first, strict=True):
            kind, _, _, size = table.sites[site][:4]
            yield KINDS[kind], (address + iteration * step) & U64, size, table.site_columns(site, function), "-"


def plain_events(table, segment, words, earlier):
    """For each op: the mask of its lanes, and kind, address, bytes, names and detail of its events."""
    function, ops = table.segments[segment]
    history = []
    home = f"{table.place(function, table.functions[function][3])}\t{table.name(function)}\t-\t-"
    for code, site, lanes, derived, back in ops:
        address = length = None
        mask, made = 1, []
        names = table.site_columns(site, function) if site is not None else home
        size = table.sites[site][3] if site is not None else None
        kind = KINDS.get(table.sites[site][0]) if site is not None else None
        if code == f.OP_DERIVED:
            address = (earlier[segment - derived[0]][derived[1]] + derived[2]) & U64
        elif derived is not None:
            address = (history[-derived[0]][0] + derived[1]) & U64 if derived[0] else next(words)
        if code in (f.OP_ACCESS, f.OP_DERIVED):
            made = [(kind, address, size, names, "-")]
        elif code == f.OP_RANGE:
            length = history[-back][1] if back else next(words)
            for start in range(0, length, 0xFFFFFFFF):
                made.append((kind, address + start, min(length - start, 0xFFFFFFFF), names, "-"))
        elif code in (f.OP_MASKED, f.OP_GATHER):
            masked = code == f.OP_MASKED
            places = [address + lane * size if masked else next(words) for lane in range(lanes)]
            mask = next(words)
            made = [(kind, place, size, names, "-") for lane, place in enumerate(places) if mask >> lane & 1]
        elif code in (f.OP_ENTER, f.OP_RESUME):
            made = [("enter" if code == f.OP_ENTER else "resume", next(words), None, names, "-")]
        elif code == f.OP_EXIT:
            made = [("exit", None, None, names, "-")]
        elif code == f.OP_ALLOC:
            made = [("alloc", next(words), next(words), names, "-")]
        elif code == f.OP_ALLOC_ARRAY:
            base, count, element = next(words), next(words), next(words)
            made = [("alloc", base, count * element, names, f"count={count}")]
        elif code == f.OP_REALLOC:
            made = [("realloc", next(words), next(words), names, f"old={next(words):#x}")]
        elif code == f.OP_FREE:
            made = [("free", next(words), None, names, "-")]
        elif code == f.OP_UNMAP:
            made = [("unmap", next(words), next(words), names, "-")]
        elif code == f.OP_SYNC:
            made = [("sync", address, None, "-\t-\t-\t-", f"{SYNCS[lanes]} stamp={next(words)}")]
        elif code == f.OP_STAMP:
            made = [("stamp", None, None, "-\t-\t-\t-", f"stamp={next(words)}")]
        history.append((address, length))
        yield mask, made


def chunk(header, r, modules):
    """The executions of a chunk: table, segment, words. The snapshot of the stack is skipped."""
    dictionary, history = [], {}
    if header.version > 3:
        r.sections()
    for _ in range(r.varint()):
        number, word = r.varint(), r.varint()
        table, segment = modules[number][word >> 1]
        dictionary.append((table, segment))
        if word & 1:
            history[table, segment] = before = []
            for _ in range(table.words(table.segments[segment][1])):
                before.append(((before[-1] if before else 0) + r.svarint()) & U64)
    r.list(lambda: (r.varint(), r.svarint()))
    control = Reader(r.blob())
    order, successor = [], {}
    while control.left():
        named = control.varint()
        if order:
            successor[order[-1]] = named
        order.append(named)
        for _ in range(control.varint()):
            order.append(successor[order[-1]])
    assert len(order) == header.segments
    total, count = 0, header.raw_words - header.segments
    differences = r.words(count) if header.version > 2 else (r.svarint() for _ in range(count))
    for entry in order:
        table, segment = dictionary[entry]
        count = table.words(table.segments[segment][1])
        words = [(word + next(differences)) & U64 for word in history.get((table, segment), [0] * count)]
        history[table, segment], total = words, total + 1 + count
        yield table, segment, words, {of: words for (holder, of), words in history.items() if holder is table}
    assert total == header.raw_words and next(differences, None) is None and r.left() == 0


def main(directory):
    manifest = unsealed((directory / "manifest.json").read_text())
    assert manifest["format"] == "memlode trace" and manifest["version"] <= f.VERSION_TRACE
    lines = [unsealed(line) for line in (directory / "events.ndjson").read_text().splitlines()]
    assert len(lines) == manifest["events"]
    files = [directory / f"modules/{number:04}.mlm" for number in range(manifest["modules"])]
    modules = [module(path.read_bytes()) for path in files]
    print("#thread\tevent\tkind\taddress\tbytes\tplace\tfunction\tvariable\tmember\tdetail")
    for totals in manifest["threads"]:
        process, thread = totals["process"], totals["thread"]
        data = (directory / f"threads/p{process:04}-t{thread:04}.mlt").read_bytes()
        assert len(data) == totals["bytes"]
        at = number = 0
        for sequence in range(totals["chunks"]):
            header, payload = block(f.CHUNK_HEADER, f.MAGIC_CHUNK, data, at)
            assert (header.process, header.thread, header.sequence) == (process, thread, sequence)
            at += f.CHUNK_HEADER.size + header.payload_bytes
            if header.flags & f.CHUNK_FLAG_DORMANT:
                print(f"{process}.{thread}\t{number}\tdormant" + "\t-" * 7)
                number += 1
            for execution in chunk(header, payload, modules):
                for kind, address, size, names, detail in events(*execution):
                    address = "-" if address is None else f"{address:#x}"
                    size = "-" if size is None else size
                    print(f"{process}.{thread}\t{number}\t{kind}\t{address}\t{size}\t{names}\t{detail}")
                    number += 1
        assert at == len(data)


main(Path(sys.argv[1]))
