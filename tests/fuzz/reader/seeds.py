"""Makes the first inputs of the fuzz targets: seeds.py OUT. The golden traces in parts, the machines."""

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


def main(out):
    for golden in sorted((ROOT / "format/golden").glob("v*")):
        (out / "trace").mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(trace(golden)):
            (out / "trace" / f"{golden.name}-{number}").write_bytes(data)
    (out / "machine").mkdir(parents=True, exist_ok=True)
    for machine in (ROOT / "machines").glob("*.toml"):
        shutil.copy(machine, out / "machine")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
