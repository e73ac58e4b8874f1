"""A ZIP file in one canonical form: stored members one after another, then their directory, nothing else.

    header · data    header · data    …    entry · entry · …    end
    └─ one member ─┘                       └──── directory ────┘

Every byte follows from the names and the data. A reader can therefore compute what the file must be and
refuse any other file, and every ZIP program can unpack it. No member is compressed, so that none can expand.
PKWARE, APPNOTE.TXT 6.3.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

_LOCAL = struct.Struct("<4s5H3L2H")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_VERSION, _NO_FLAGS, _STORED, _MIDNIGHT = 20, 0, 0, 0
_FIRST_DAY = 1 << 5 | 1
"""1 January 1980, the first day that a ZIP file can name."""
MOST_BYTES = 2**31 - 1
"""Largest container; larger ones would need fields of 64 bits."""


def header(name: str, data: bytes) -> bytes:
    """Compute the header of a member, which stands before its data."""
    fields = (_VERSION, _NO_FLAGS, _STORED, _MIDNIGHT, _FIRST_DAY, *_sizes(data), len(name), 0)
    return _LOCAL.pack(b"PK\x03\x04", *fields) + name.encode("ascii")


def directory(members: Mapping[str, bytes]) -> bytes:
    """Compute the directory of some members, which stands after the last one."""
    entries, offset = [], 0
    for name, data in members.items():
        entries.append(_entry(name, data, offset))
        offset += len(header(name, data)) + len(data)
    size = sum(map(len, entries))
    end = _END.pack(b"PK\x05\x06", 0, 0, len(entries), len(entries), size, offset, 0)
    return b"".join([*entries, end])


def container(members: Mapping[str, bytes]) -> bytes:
    """Return the whole file of some members, in their order."""
    parts = [part for name, data in members.items() for part in (header(name, data), data)]
    return b"".join([*parts, directory(members)])


def first_data(data: bytes, name: str) -> bytes:
    """Return the data of the first member, which must have this name and the header of its data.

    Raise `ValueError` for any other beginning.
    """
    start = _LOCAL.size + len(name)
    if len(data) < start:
        raise ValueError("the file is shorter than its header")
    size = _LOCAL.unpack_from(data)[8]
    found = data[start : start + size]
    if data[:start] != header(name, found):
        raise ValueError("its header is not that of its data")
    return found


def _entry(name: str, data: bytes, offset: int) -> bytes:
    fields = (_VERSION, _VERSION, _NO_FLAGS, _STORED, _MIDNIGHT, _FIRST_DAY, *_sizes(data), len(name))
    return _ENTRY.pack(b"PK\x01\x02", *fields, 0, 0, 0, 0, 0, offset) + name.encode("ascii")


def _sizes(data: bytes) -> tuple[int, int, int]:
    return zlib.crc32(data), len(data), len(data)
