#!/usr/bin/env python3
"""Holds the event codes of machines/events/ against libpfm4, which others wrote from the same manuals.

A table names its table of libpfm4, and each event its name there; an event without one is listed as unchecked.
With names of libpfm4 as arguments, prints the codes of each instead, one event a line."""

import ctypes
import os
import sys
import tomllib
from pathlib import Path

EVENTS = Path(__file__).resolve().parent.parent / "machines" / "events"
# What libpfm4 adds to a code: user space, kernel, enabled, and an interrupt on overflow. A counter mask is ours, too.
PRIVILEGES = 0x730000
SUCCESS = 0


def library() -> ctypes.CDLL:
    """libpfm4, which encodes events of processors that are not this one."""
    os.environ["LIBPFM_ENCODE_INACTIVE"] = "1"
    pfm = ctypes.CDLL("libpfm.so.4")
    pfm.pfm_strerror.restype = ctypes.c_char_p
    if pfm.pfm_initialize() != SUCCESS:
        sys.exit("libpfm4 cannot be used here")
    return pfm


def encode(pfm: ctypes.CDLL, name: str) -> list[int] | str:
    """The code of an event, and others that its parameters take; or why there are none."""
    codes, count = ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_int(0)
    user = ctypes.c_int(8)
    refused = pfm.pfm_get_event_encoding(
        name.encode(), user, None, None, ctypes.byref(codes), ctypes.byref(count)
    )
    if refused != SUCCESS:
        return pfm.pfm_strerror(refused).decode()
    return [codes[0] & ~PRIVILEGES, *codes[1 : count.value]]


def main() -> int:
    """Fails if a code differs, or if nothing could be held against anything."""
    pfm = library()
    if sys.argv[1:]:
        for name in sys.argv[1:]:
            codes = encode(pfm, name)
            if isinstance(codes, str):
                sys.exit(f"{name}: {codes}")
            print(*codes)
        return 0
    wrong, held, unchecked = [], 0, []
    for path in sorted(EVENTS.glob("*.toml")):
        table = tomllib.loads(path.read_text())
        for name, event in table["event"].items():
            if "libpfm" not in table or "libpfm" not in event:
                unchecked.append(f"{table['name']}: {name}")
                continue
            codes = encode(pfm, f"{table['libpfm']}::{event['libpfm']}")
            code = codes if isinstance(codes, str) else codes[0]
            held += 1
            if code != event["code"]:
                shown = code if isinstance(code, str) else hex(code)
                wrong.append(f"{path.name}: {name} is {event['code']:#x}, and libpfm4 says {shown}")
    for line in wrong:
        print(line)
    print(f"{held} event codes held against libpfm4, {len(wrong)} differ; {len(unchecked)} it does not know")
    return 1 if wrong or held < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
