"""Segments: files of versions and traces, which are never changed, and whose names contain the hash of their content.

line 1  {"klaw":"segment","v":1,"memory":…,"machine":…,"n":…,"z":"zlib","crypt":"xchacha20","size":…,"covers":[…],
        "key":…}  "key" is the name of the key, unless it is the first one
rest    the encrypted (or authenticated), compressed lines
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from attrs import evolve, frozen

from klaw_core import RecordError
from klaw_journals import parse_json
from klaw_journals.jsonl import encode
from klaw_sync.errors import SegmentError
from klaw_sync.keys import MemoryKey
from klaw_sync.values import MACHINE, REMOVAL, TRACE, Removal, Trace, Version

SUFFIX = ".kseg"
FORMAT = 1
MAX_FILE_BYTES = 24 << 20
#: The limits of the lines in one file.
MAX_BYTES = 64 << 20
MAX_LINES = 100_000
#: A file is full once it has this many bytes or lines, so that the last one always fits.
_FULL_BYTES = 16 << 20
_FULL_LINES = 50_000

_NAME = re.compile(rf"[0-9a-f]{{16}}/[0-9a-f]{{16}}-[0-9a-f]{{8}}-[0-9a-f]{{16}}{re.escape(SUFFIX)}", re.ASCII)
_MAX_HEAD = 1 << 20


@frozen
class Segment:
    """The content of a segment. ``others`` are lines of kinds that this version of Klaw does not know.

    ``is_plain``: it is not encrypted, so its machine writes no records of private kinds.
    """

    name: str
    machine: str
    number: int
    covers: tuple[str, ...] = ()
    versions: tuple[Version, ...] = ()
    traces: tuple[Trace, ...] = ()
    removals: tuple[Removal, ...] = ()
    others: tuple[Mapping[str, Any], ...] = ()
    host: str = ""
    bad: int = 0
    is_plain: bool = False


@frozen
class Writer:
    """Writes segments of one machine."""

    key: MemoryKey
    machine: str
    host: str
    encrypt: bool = True

    def pack(
        self, number: int, lines: Iterable[Mapping[str, Any]], covers: Sequence[str] = ()
    ) -> list[tuple[str, bytes]]:
        """Return the names and the bytes of the segments of these lines, numbered from ``number`` on."""
        made: list[tuple[str, bytes]] = []
        batch: list[bytes] = []
        size = 0
        for line in lines:
            data = encode(line)
            if len(data) >= MAX_BYTES - _MAX_HEAD:
                raise RecordError(f"a record has {len(data):,} bytes, too many for a segment")
            if batch and (size + len(data) > _FULL_BYTES or len(batch) >= _FULL_LINES):
                made.append(self._seal(number + len(made), batch, covers))
                batch, size = [], 0
            batch.append(data)
            size += len(data)
        if batch:
            made.append(self._seal(number + len(made), batch, covers))
        return made

    def _seal(self, number: int, batch: Sequence[bytes], covers: Sequence[str]) -> tuple[str, bytes]:
        data = b"".join([encode({"k": MACHINE, "name": self.host}), *batch])
        head = encode(
            {
                "klaw": "segment",
                "v": FORMAT,
                "memory": self.key.memory,
                "machine": self.machine,
                "n": number,
                "z": "zlib",
                "crypt": "xchacha20" if self.encrypt else "none",
                "size": len(data),
                "covers": list(covers),
                **({"key": self.key.name} if self.key.name else {}),
            }
        )
        protect = self.key.seal if self.encrypt else self.key.sign
        whole = head + protect(head, zlib.compress(data))
        return name_of(self.machine, number, whole), whole


def name_of(machine: str, number: int, data: bytes) -> str:
    """Return the name of a segment, with its directory."""
    return f"{machine}/{machine}-{number:08x}-{sha256(data).hexdigest()[:16]}{SUFFIX}"


def is_name(name: str) -> bool:
    """Return whether a file is named like a segment; anything else is not read under this name."""
    return _NAME.fullmatch(name) is not None and name[:16] == name[17:33]


def place_of(name: str) -> tuple[str, int]:
    """Return the machine and the number in the name of a segment."""
    return name[:16], int(name[34:42], 16)


def read(key: MemoryKey, data: bytes) -> Segment:
    """Return the segment in a file, whatever the file's name. Raise SegmentError.

    A line that is not valid is counted, and left out.
    """
    head, whole = _head(data)
    memory, machine, number, size = (head.get(name) for name in ("memory", "machine", "n", "size"))
    if memory != key.memory:
        raise SegmentError("it belongs to another memory")
    if head.get("v") != FORMAT or head.get("z") != "zlib":
        raise SegmentError("a newer version of Klaw wrote it", hint="update Klaw on this machine")
    if type(number) is not int or type(size) is not int or not 0 <= size <= MAX_BYTES or not 0 <= number < 1 << 32:
        raise SegmentError("its first line is not valid")
    name = name_of(str(machine), number, data)
    if not is_name(name):
        raise SegmentError("its first line does not name a machine")
    sealed = data[len(whole) :]
    is_plain = head.get("crypt") != "xchacha20"
    unlock = key.verify if is_plain else key.open
    compressed = unlock(whole, sealed, head.get("key", ""))
    found = head.get("covers")
    covers = tuple(item for item in found if isinstance(item, str) and is_name(item)) if isinstance(found, list) else ()
    return evolve(_parsed(Segment(name, str(machine), number, covers), _unpacked(compressed, size)), is_plain=is_plain)


def _head(data: bytes) -> tuple[Mapping[str, Any], bytes]:
    end = data.find(b"\n", 0, _MAX_HEAD) + 1
    try:
        head = parse_json(data[: end - 1]) if end else {}
    except RecordError:
        head = {}
    if head.get("klaw") != "segment":
        raise SegmentError("it is not a segment, or not complete")
    return head, data[:end]


def _unpacked(data: bytes, size: int) -> bytes:
    unpack = zlib.decompressobj()
    try:
        found = unpack.decompress(data, size + 1)
    except zlib.error as error:
        raise SegmentError("its lines cannot be decompressed") from error
    if len(found) != size or not unpack.eof:
        raise SegmentError("it has another size than its first line says")
    return found


def _parsed(segment: Segment, data: bytes) -> Segment:
    lines = data.split(b"\n")
    if len(lines) > MAX_LINES + 2:
        raise SegmentError(f"it has over {MAX_LINES:,} lines")
    versions, traces, removals, others, host, bad = [], [], [], [], "", 0
    for line in filter(None, lines):
        try:
            value = parse_json(line)
            if value.get("k") == TRACE:
                traces.append(Trace.parse(value))
            elif value.get("k") == REMOVAL:
                removals.append(Removal.parse(value))
            elif value.get("k") == MACHINE:
                host = str(value.get("name", ""))[:100]
            elif "v" in value and "b" in value:
                versions.append(Version.parse(value))
            else:
                others.append(value)
        except RecordError:
            bad += 1
    return Segment(
        *(segment.name, segment.machine, segment.number, segment.covers),
        *(tuple(versions), tuple(traces), tuple(removals), tuple(others)),
        host="".join(filter(str.isprintable, host)),
        bad=bad,
    )
