"""Writes a trace of samples, version 5, from SPEC.md and the generated constants alone, and what it says.

    python3 format/golden/write_sampled.py DIRECTORY

`expected.txt` has a line for each sample: thread, time, weight, address, what it says of the stack, latency, source,
processor, page, function, line, bytes, variable, type, member, and the functions that called, the nearest first.
"""

import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "generated"))
import memlode_format as f  # noqa: E402

U64 = (1 << 64) - 1
ANCHORS_AT = 0x1000

# Name of the file, then its functions' instructions: address, symbol, frames (function, file, line, column), access
# (is a store, bytes), untyped, variable, type, member.
STATE = (0x1010, "scan", (("price", "a.c", 7, 5), ("scan", "a.c", 12, 9)), (0, 8), 0, None, "arc", "state")
COUNT = (0x1018, "scan", (("scan", "a.c", 13, 3),), (1, 4), 0, "count", "int", None)
ADDS = (0x1020, "scan", (("scan", "a.c", 12, 1),), None, f.UNTYPED_NO_MEMORY, None, None, None)
CALL = (0x1104, "main", (("main", "a.c", 30, 2),), None, f.UNTYPED_NO_MEMORY, None, None, None)
LOST = (0x40, "", (), None, f.UNTYPED_NO_MEMORY, None, None, None)
MODULES = (
    ("/bin/prog", b"\xde\xad", 1, None, (STATE, COUNT, ADDS, CALL)),
    ("/lib/gone.so", b"", 0, "No such file", (LOST,)),
)
NAMES = ("weight", "address", "on_stack", "latency", "source", "cpu", "page_bytes", "path")
PATHS = ((None, CALL), (0, CALL))
# Thread, time, instruction, and the facts of NAMES, where None is not known.
SAMPLES = (
    (0, 1000, STATE, (997, 0x555500000010, 0, 40, 0x68100142, 3, 4096, 0)),
    (0, 1500, ADDS, (3, None, None, None, None, 3, None, 1)),
    (0, 1500, STATE, (997, None, None, None, None, None, None, None)),
    (0, 2500, COUNT, (997, 0x7FFC00000000, 1, 0, 0, 0, None, 1)),
    (1, 900, LOST, (997, None, None, None, None, None, None, None)),
)


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def svarint(value):
    return varint((value << 1 ^ value >> 63) & U64)


def blob(data):
    return varint(len(data)) + data


def many(entries):
    entries = list(entries)
    return varint(len(entries)) + b"".join(entries)


def sections(parts):
    return blob(b"".join(varint(what) + blob(data) for what, data in parts))


def numbered(values):
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def some(numbers, value):
    return varint(0 if value is None else numbers[value] + 1)


def table(instructions):
    functions = numbered(
        [(at[1], None) for at in instructions] + [frame[:2] for at in instructions for frame in at[2]]
    )
    files = numbered(file for _, file in functions if file)
    types = numbered(at[6] for at in instructions if at[6])
    others = (text for at in instructions for text in (at[5], at[7]) if text)
    strings = numbered(["", *(name for name, _ in functions), *files, *types, *others])
    chains = numbered(at[2][start:] for at in instructions for start in reversed(range(len(at[2]))))

    def location(chain):
        function, file, line, column = chain[0]
        return varint(functions[function, file]) + varint(line) + varint(column) + some(chains, chain[1:] or None)

    def site(at):
        kind = f.KIND_STORE if at[3] and at[3][0] else f.KIND_LOAD
        evidence = f.EVIDENCE_DEBUG if at[4] == f.UNTYPED_TYPED else f.EVIDENCE_NONE
        numbers = varint(0) + varint(at[3][1] if at[3] else 0) + some(chains, at[2] or None)
        return bytes([kind, evidence]) + numbers + some(strings, at[5]) + some(types, at[6]) + some(strings, at[7])

    def segment(number, at):
        access = [bytes([f.OP_ACCESS]) + varint(number) + varint(0)] if at[3] else []
        return varint(functions[at[1], None]) + many([*access, bytes([f.OP_STAMP])])

    payload = many(blob(text.encode()) for text in strings)
    payload += many(varint(strings[""]) + varint(strings[file]) for file in files)
    payload += many(varint(strings[name]) * 2 + some(files, file) + varint(0) for name, file in functions)
    payload += many(map(location, chains)) + many(varint(strings[name]) + varint(0) for name in types)
    payload += many(map(site, instructions)) + many(segment(*each) for each in enumerate(instructions)) + sections([])
    header = {"magic": f.MAGIC_TABLE, "version": f.VERSION_TABLE, "flags": 0}
    return f.TABLE_HEADER.pack(**header, payload_bytes=len(payload), crc32=zlib.crc32(payload)) + payload


def sealed_block(layout, payload, **fields):
    sizes = {"payload_bytes": len(payload), "unpacked_bytes": len(payload), "payload_crc32": zlib.crc32(payload)}
    fields |= {"version": f.VERSION_SAMPLED_TRACE, "codec": f.CODEC_STORED, "header_crc32": 0} | sizes
    fields["header_crc32"] = zlib.crc32(layout.pack(**fields))
    return layout.pack(**fields) + payload


def module(path, build_id, has_debug, unread, instructions):
    tables_at = ANCHORS_AT + 8 * len(instructions)
    anchors = b"".join(
        f.ANCHOR.pack(table_rel=tables_at - ANCHORS_AT - 8 * at, segment=at) for at in range(len(instructions))
    )
    flags = has_debug * f.SAMPLED_FLAG_DEBUG | (unread is not None) * f.SAMPLED_FLAG_UNREAD
    code = bytes([flags]) + (blob(unread.encode()) if unread is not None else b"")
    before = [0, *(at[0] for at in instructions)]
    code += many(svarint(at[0] - last) + bytes([at[4]]) for last, at in zip(before, instructions, strict=False))
    payload = blob(path.encode()) + blob(build_id) + varint(ANCHORS_AT) + blob(anchors)
    payload += varint(tables_at) + blob(table(instructions)) + varint(0)
    payload += sections([(f.MODULE_SECTION_PRIVATE, b"?"), (f.MODULE_SECTION_SAMPLED, code)])
    return sealed_block(f.MODULE_HEADER, payload, magic=f.MAGIC_MODULE, flags=0)


def place(instruction):
    return next((m, group[4].index(instruction)) for m, group in enumerate(MODULES) if instruction in group[4])


def word(difference):
    """Head and tail of a word."""
    value = (difference << 1 ^ difference >> 63) & U64
    tail = next(count for count in range(9) if count == 8 or value < 1 << 7 + 7 * count)
    if tail == 8:
        return b"\xff", value.to_bytes(8, "little")
    low = 7 - tail
    return bytes([(value & (1 << low) - 1) << tail + 1 | (1 << tail) - 1]), (value >> low).to_bytes(tail, "little")


def chunk(thread, samples):
    columns = {name: [facts[at] for *_, facts in samples] for at, name in enumerate(NAMES)}
    known = {"address": f.SAMPLE_COLUMN_ADDRESS_KNOWN, "path": f.SAMPLE_COLUMN_CALL_PATH}
    parts = [(f.SAMPLE_COLUMN_PRIVATE, b"not for us")]
    for name, values in columns.items():
        number = known.get(name) or getattr(f, f"SAMPLE_COLUMN_{name.upper()}")
        values = [None if value is None else 0 if name == "address" else value for value in values]
        if any(value is not None for value in values):
            parts.append((number, b"".join(varint(0 if value is None else value + 1) for value in values)))
    calls = [varint(0 if up is None else up + 1) + varint(place(at)[0]) + varint(place(at)[1]) for up, at in PATHS]
    parts = b"".join(varint(what) + blob(column) for what, column in parts)
    payload = sections([(f.CHUNK_SECTION_SAMPLES, parts), (f.CHUNK_SECTION_CALL_PATHS, many(calls))])
    entries = numbered(at for _, _, at, _ in samples)
    payload += many(varint(place(at)[0]) + varint(place(at)[1] << 1) for at in entries) + varint(0)
    payload += blob(b"".join(varint(entries[at]) + varint(0) for _, _, at, _ in samples))
    last, heads, tails = {}, b"", b""
    accesses = 0
    for _, time, at, facts in samples:
        words = [*([facts[1] or 0] if at[3] else []), time]
        accesses += at[3] is not None
        for now, then in zip(words, last.get(at, [0] * len(words)), strict=True):
            head, tail = word(now - then)
            heads, tails = heads + head, tails + tail
        last[at] = words
    fields = {"magic": f.MAGIC_CHUNK, "stream": 0, "process": 0, "thread": thread, "sequence": 0, "flags": 0}
    counts = {"raw_words": len(samples) + len(heads), "segments": len(samples), "accesses": accesses}
    stamps = {"first_stamp": samples[0][1], "last_stamp": samples[-1][1]}
    return sealed_block(f.CHUNK_HEADER, payload + heads + tails, **fields, **counts, **stamps), counts


def sealed(body):
    return f'{body},"crc32":"{zlib.crc32(body.encode()):08x}"}}\n'


def expected(thread, time, at, facts):
    ways, way = [], facts[7]
    while way is not None:
        ways.append(PATHS[way][1][1])
        way = PATHS[way][0]
    line = at[2][0] if at[2] else (at[1], None, None, None)
    fields = [thread, time, *facts[:7], line[0], line[2], at[3] and at[3][1], at[5], at[6], at[7], ",".join(ways)]
    return "\t".join("-" if field in (None, "") else str(field) for field in fields) + "\n"


def main(directory):
    (directory / "modules").mkdir(exist_ok=True)
    (directory / "threads").mkdir(exist_ok=True)
    for number, group in enumerate(MODULES):
        (directory / f"modules/{number:04}.mlm").write_bytes(module(*group))
    totals = []
    for thread in (0, 1):
        data, counts = chunk(thread, [sample for sample in SAMPLES if sample[0] == thread])
        (directory / f"threads/p0000-t{thread:04}.mlt").write_bytes(data)
        numbers = f'"chunks":1,"bytes":{len(data)},"raw_words":{counts["raw_words"]},"accesses":{counts["accesses"]}'
        totals.append(f'{{"process":0,"thread":{thread},{numbers}}}')
    events = ['{"event":"process_start","process":0,"pid":4711,"stamp":900']
    events += [
        f'{{"event":"module_load","process":0,"module":{at},"load_bias":0,"stamp":900' for at in range(len(MODULES))
    ]
    events += [f'{{"event":"thread_start","process":0,"thread":{at},"tid":{4711 + at},"stamp":900' for at in (0, 1)]
    (directory / "events.ndjson").write_text("".join(map(sealed, events)))
    info = '"subject":"prog","events":["loads"],"is_time":false,"period_ns":0,"skid":1,"watched_ns":1600,'
    info += '"kernel":2,"lost":1,"throttled":0'
    summary = '"torn_segments":0,"unknown_words":0,"unregistered_threads":0,"finished_unix_ms":0,'
    summary += '"ticks_per_second":1000000000'
    manifest = f'{{"format":"memlode trace","version":{f.VERSION_SAMPLED_TRACE},"writer":"golden","sampled":{{{info}}},'
    manifest += f'"complete":true,"summary":{{{summary}}},"threads":[{",".join(totals)}],'
    manifest += f'"modules":{len(MODULES)},"events":{len(events)}'
    (directory / "manifest.json").write_text(sealed(manifest))
    (directory / "expected.txt").write_text("".join(expected(*sample) for sample in SAMPLES))


main(Path(sys.argv[1]))
