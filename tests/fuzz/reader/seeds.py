"""Makes the first inputs of the fuzz targets: seeds.py OUT.

The golden traces in parts, traces that were made to hurt their reader, the machines, recordings of perf.
"""

import pathlib
import shutil
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "format/generated"))
import memlode_format as fmt  # noqa: E402


def part(tag, body=b""):
    return tag + struct.pack("<H", len(body)) + body


def unsealed(json):
    """JSON without its checksum, which the target adds."""
    return json[: json.rindex(b'"crc32"')].rstrip().rstrip(b",") + b"}"


def chunks(data):
    while data:
        end = fmt.CHUNK_HEADER.size + fmt.CHUNK_HEADER.unpack(data).payload_bytes
        yield data[:end]
        data = data[end:]


def trace(directory):
    """The parts of a whole trace, and of one without each."""
    parts = [part(b"m", unsealed((directory / "manifest.json").read_bytes()))]
    parts += [part(b"e", unsealed(line)) for line in (directory / "events.ndjson").read_bytes().splitlines()]
    for module in sorted((directory / "modules").iterdir()):
        parts.append(part(b"o", module.read_bytes()[fmt.MODULE_HEADER.size:]))
    for number, thread in enumerate(sorted((directory / "threads").iterdir())):
        parts += [part(b"t")] * bool(number)
        parts += [part(b"c", chunk) for chunk in chunks(thread.read_bytes())]
    yield b"".join(parts)
    for missing in range(len(parts)):
        yield b"".join(parts[:missing] + parts[missing + 1:])
    yield b"".join(parts[:-1]) + part(b"r", parts[-1][3:])


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def blob(data):
    return varint(len(data)) + data


def nested_tables(count):
    """A module of anchors to as many site tables, each of which lies in the one before, as a string of it."""
    table = b""
    for _ in range(count):
        # One string; one function, named by it; nothing else but one segment without ops.
        body = varint(1) + blob(table) + bytes([0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0])
        table = struct.pack("<IHHII", fmt.MAGIC_TABLE, fmt.VERSION_TABLE, 0, len(body), 0) + body
    magic = struct.pack("<I", fmt.MAGIC_TABLE)
    at = [offset for offset in range(len(table)) if table.startswith(magic, offset)]
    rel = [0x9000 + there - (0x4000 + 8 * anchor) for anchor, there in enumerate(at)]
    anchors = b"".join(struct.pack("<iI", each, 0) for each in rel)
    return module(anchors, table)


def module(anchors, tables):
    sections = varint(0x4000) + blob(anchors) + varint(0x9000) + blob(tables)
    return blob(b"/bin/program") + blob(b"") + sections + bytes([0, 0])


def bomb(mebibytes):
    """A zstd frame of nothing but blocks that are one byte repeated."""
    blocks = 8 * mebibytes
    block = [(1 << 17) << 3 | 1 << 1 | (number == blocks - 1) for number in range(blocks)]
    packed = b"".join(struct.pack("<I", header)[:3] + b"\0" for header in block)
    return struct.pack("<I", mebibytes << 20) + struct.pack("<IBB", 0xFD2FB528, 0, 7 << 3) + packed


def hostile(directory):
    """Traces that once cost their reader far more than they are, by name."""
    manifest = part(b"m", unsealed((directory / "manifest.json").read_bytes()))
    events = [part(b"e", unsealed(line)) for line in (directory / "events.ndjson").read_bytes().splitlines()]
    golden = (directory / "modules/0000.mlm").read_bytes()[fmt.MODULE_HEADER.size:]
    own = list(chunks((directory / "threads/p0000-t0000.mlt").read_bytes()))
    thread = [part(b"c", chunk) for chunk in own]
    head = manifest + b"".join(events)
    yield "nested-tables", head + part(b"o", nested_tables(60)) + b"".join(thread)
    yield "bomb", head + part(b"z", bomb(256)) + b"".join(thread)
    yield "copies", head + part(b"o", golden) + b"".join(thread) + thread[0] * 300
    yield "threads-and-damage", head + part(b"o", golden) + (part(b"r", b"damage") + thread[0] + part(b"t")) * 60
    yield "lines-of-rubbish", head + part(b"e", b"x") * 500 + part(b"o", golden) + b"".join(thread)
    yield "loads-and-unloads", head + (events[1] + events[1].replace(b"module_load", b"module_unload")) * 100
    for name in range(4):
        for kind in range(3):
            irregular = part(b"i", bytes([name, kind]))
            yield f"irregular-{name}-{kind}", head + part(b"o", golden) + b"".join(thread) + irregular
    # Names that command a terminal. What is as long as before leaves a table a table.
    named = golden
    for name in (b"pricing", b"arc", b"cost", b"main"):
        named = named.replace(name, (b"\x1b[2J\x07\r\n\xc2\x9b")[: len(name)])
    yield "names", head + part(b"o", named) + b"".join(thread)


def main(out):
    for golden in sorted((ROOT / "format/golden").glob("v*")):
        (out / "trace").mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(trace(golden)):
            (out / "trace" / f"{golden.name}-{number}").write_bytes(data)
        for name, data in hostile(golden):
            (out / "trace" / f"{golden.name}-{name}").write_bytes(data)
    (out / "machine").mkdir(parents=True, exist_ok=True)
    for machine in (ROOT / "machines").glob("*.toml"):
        shutil.copy(machine, out / "machine")
    (out / "perf").mkdir(parents=True, exist_ok=True)
    for recording in (ROOT / "crates/sample/tests/perf_data").glob("*.data"):
        shutil.copy(recording, out / "perf")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
