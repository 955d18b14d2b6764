"""An index of the records in a journal's file, so that a few can be read without reading all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

from attrs import define, field

from klaw_core import RecordError, ThreadLock
from klaw_core.files.atomic import open_regular
from klaw_core.files.platform import read_at
from klaw_journals.contents import BadLine
from klaw_journals.jsonl import parse_json

_TAIL_BYTES = 4096

# Attempts to read the file while other processes replace it.
_ATTEMPTS = 5


class Line(Protocol):
    """A record of the journal, or (without ``record``) a tombstone, with its place."""

    @property
    def offset(self) -> int:
        """Return the first byte."""

    @property
    def end(self) -> int:
        """Return the byte after the last."""

    @property
    def id(self) -> str:
        """Return the id of the record."""

    @property
    def record(self) -> Mapping[str, Any] | None:
        """Return the record; None for a tombstone."""

    @property
    def void(self) -> Sequence[tuple[int, int]]:
        """Return the lines that a tombstone voids; none for a tombstone with an id."""


@define(eq=False)
class JournalIndex:
    """The place of each record. After the first call, only appended lines are read.

    Klaw appends to the file, including lines that void others, or replaces it; a replaced file is read again. A change
    by hand that keeps the length is detected by the time of modification. Safe for several threads.
    """

    path: Path
    read: Callable[[int], Iterator[Line | BadLine]]
    _places: dict[str, tuple[int, int]] = field(factory=dict, init=False)
    _names: dict[int, str] = field(factory=dict, init=False)
    _inode: int = field(default=-1, init=False)
    _end: int = field(default=0, init=False)
    _changed: int = field(default=0, init=False)
    _tail: int = field(default=0, init=False)
    _lock: ThreadLock = field(factory=partial(ThreadLock, "the index of a journal"), init=False)

    def ids(self) -> list[str]:
        """Return the ids of all records."""
        with self._lock.hold():
            self._catch_up()
            return list(self._places)

    def get(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Return the existing records with these ids."""
        with self._lock.hold():
            for _ in range(_ATTEMPTS):
                self._catch_up()
                wanted = {name: self._places[name] for name in ids if name in self._places}
                if not wanted:
                    return {}
                found = self._read(wanted)
                if found is not None:
                    return found
                self._forget()
            return {}

    @contextmanager
    def following(self) -> Iterator[None]:
        """Update the index after this block from the last line that it appends. The caller holds the file's lock."""
        with self._lock.hold():
            if self._end:  # otherwise nothing was read yet
                self._catch_up()
        yield
        with self._lock.hold():
            if self._end:
                self._catch_up(is_same=True)

    def _read(self, wanted: Mapping[str, tuple[int, int]]) -> dict[str, Mapping[str, Any]] | None:
        """Return the records at these places; None if they have moved."""
        found: dict[str, Mapping[str, Any]] = {}
        try:
            with open_regular(self.path) as file:
                if os.fstat(file.fileno()).st_ino != self._inode:
                    return None
                for name, (offset, end) in wanted.items():
                    record = parse_json(read_at(file.fileno(), end - offset, offset))
                    if record.get("id") != name:
                        return None
                    found[name] = record
        except (OSError, RecordError):
            return None
        return found

    def _catch_up(self, *, is_same: bool = False) -> None:
        try:
            status = self.path.stat()
        except OSError:  # a missing or unreadable file has no records
            self._forget()
            return
        is_other = status.st_ino != self._inode or status.st_size < self._end
        # The inode of a deleted file is soon reused.
        is_other = is_other or not (is_same or status.st_size == self._end or self._tail_at(self._end) == self._tail)
        if is_other or (status.st_size == self._end and status.st_mtime_ns != self._changed):
            self._forget()
        self._inode, self._changed = status.st_ino, status.st_mtime_ns
        if status.st_size == self._end:
            return
        for line in self.read(self._end):
            if isinstance(line, BadLine):
                pass  # a torn line may still be completed, so it counts as ending where it begins
            elif line.void:
                for start, _ in line.void:
                    name = self._names.pop(start, "")
                    if name in self._places and self._places[name][0] == start:
                        del self._places[name]
            elif line.record is None:
                self._places.pop(line.id, None)
            else:
                self._places[line.id] = (line.offset, line.end)
                self._names[line.offset] = line.id
            self._end = line.end
        self._tail = self._tail_at(self._end)

    def _tail_at(self, end: int) -> int:
        """Return a checksum of the bytes before an offset."""
        try:
            with open_regular(self.path) as file:
                start = max(end - _TAIL_BYTES, 0)
                return crc32(read_at(file.fileno(), end - start, start))
        except OSError:
            return -1

    def _forget(self) -> None:
        self._places.clear()
        self._names.clear()
        self._inode, self._end = -1, 0
