"""A journal of records in a JSON Lines file."""

from __future__ import annotations

import mmap
import operator
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from klaw_core.errors import RecordError
from klaw_core.files.atomic import keep_ranges, locked, open_regular, writing_failed
from klaw_core.files.journal_index import JournalIndex
from klaw_core.files.jsonl import JsonLines
from klaw_core.values.journals import BadLine, BrokenRecord, Replay

#: A text may have a million characters, of which JSON makes up to six bytes each.
MAX_LINE_BYTES = 8 << 20

_FORGET = "forget"
# How much of the end of an id identifies the record that a broken line was of: an id ends in a hash.
_TAIL_CHARACTERS = 12
# Up to so many ids are looked for one by one before the whole file is read.
_FEW = 16
_WORD = re.compile("[0-9A-Za-z]+")


@frozen
class FileJournal:
    """The file of a journal; implements ``RecordJournal``.

    ``check`` raises RecordError for an object that is no record of this journal. Records are appended. The file is
    rewritten only to forget: a tombstone (``{"forget": id}``) is appended first and takes effect at once; then a file
    without the record and the tombstone takes this one's place.
    """

    path: Path
    check: Callable[[Mapping[str, Any]], object] = lambda _record: None
    _index: JournalIndex = field(init=False, eq=False, repr=False)

    @_index.default
    def _make_index(self) -> JournalIndex:
        return JournalIndex(self.path, self._read)

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return self.path.exists()

    @property
    def location(self) -> str:
        """The path of the file."""
        return str(self.path)

    @property
    def version(self) -> Hashable:
        """Return which file it is, how long and of when; None if there is none."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def append(self, records: Sequence[Mapping[str, Any]], /) -> Hashable:
        """Keep records; they are on the disk when this returns. Return the version. Raise RecordError or StoreError."""
        for record in records:
            self._id(record)
        if not records:
            return self.version
        with locked(self.path.parent):
            self._lines.append(*records)
            return self.version

    def add(
        self,
        records: Sequence[Mapping[str, Any]],
        /,
        is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = operator.eq,
    ) -> frozenset[str]:
        """Keep records, but for those whose id another record has; return the ids of those."""
        ids = [self._id(record) for record in records]
        if not records:
            return frozenset()
        refused = set()
        with locked(self.path.parent):
            held = self._held(ids)
            kept = []
            for name, record in zip(ids, records, strict=True):
                here = held.setdefault(name, record)
                if here is record or is_same(here, record):
                    kept.append(record)
                else:
                    refused.add(name)
            self._lines.append(*kept)
        return frozenset(refused)

    def replay(self) -> Replay:
        """Return what the journal holds; nothing that the file can contain raises."""
        records: dict[str, Mapping[str, Any]] = {}
        broken, unfinished = [], {}
        for line in self._read():
            if isinstance(line, BadLine):
                broken.append(BrokenRecord(self.location, line.offset, line.reason, line.torn or line.cut))
            elif line.record is None:
                records.pop(line.id, None)
                unfinished[line.id] = True
            else:
                records[line.id] = line.record
        return Replay(records, tuple(broken), tuple(unfinished))

    def get(self, ids: Sequence[str], /) -> Mapping[str, Mapping[str, Any]]:
        """Return the records of these ids that there are. The first call reads the file, later ones what was added."""
        return self._index.get(ids)

    def ids(self) -> Collection[str]:
        """Return the ids of the records that there are."""
        return self._index.ids()

    def forget(self, ids: Sequence[str], /) -> int:
        """Forget records; return how many there were. A broken line stays, unless it is of one of them."""
        with locked(self.path.parent):
            if not self.exists:
                return 0
            known = self.get(ids)
            self._lines.append(*({_FORGET: name} for name in dict.fromkeys(ids)))
            keep_ranges(self.path, self._kept)
        return len(known)

    def finish(self) -> None:
        """Remove the bytes of what was forgotten just before a crash."""
        if self.replay().unfinished:
            with locked(self.path.parent):
                keep_ranges(self.path, self._kept)

    @property
    def _lines(self) -> JsonLines:
        return JsonLines(self.path, MAX_LINE_BYTES)

    def _read(self, start: int = 0) -> Iterator[_Line | BadLine]:
        for line in self._lines.read(start):
            if isinstance(line, BadLine):
                yield line
            elif isinstance(name := line.value.get(_FORGET), str):
                yield _Line(line.offset, line.end, name)
            else:
                try:
                    yield _Line(line.offset, line.end, self._id(line.value), line.value)
                except RecordError as error:
                    yield BadLine(self.location, line.offset, line.end, error.message)

    def _id(self, record: Mapping[str, Any]) -> str:
        """Return the id of a record. Raise RecordError if it is not one of this journal."""
        name = record.get("id")
        if not isinstance(name, str) or not name:
            raise RecordError("id is missing" if "id" not in record else "id is not a string")
        self.check(record)
        return name

    def _held(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Return the records of these ids that there are. Most ids are new, and the file need not be parsed."""
        try:
            with open_regular(self.path) as file:
                if os.fstat(file.fileno()).st_size == 0 or (len(ids) <= _FEW and not _has_any(file.fileno(), ids)):
                    return {}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise writing_failed(self.path, error) from error
        records = self.replay().records
        return {name: records[name] for name in ids if name in records}

    def _kept(self, descriptor: int) -> list[tuple[int, int]]:
        """Return the ranges of bytes that stay: all but the tombstones and, before each, what it is for."""
        lines = [_without_text(line) for line in self._read()]
        tombs = {line.id: line.offset for line in lines if isinstance(line, _Line) and line.record is None}
        size = os.fstat(descriptor).st_size
        kept, position = [], 0
        for line in lines:
            if isinstance(line, _Line):
                goes = line.offset <= tombs.get(line.id, -1)
                end = line.end
            else:
                end = size if line.torn else line.end
                names = [name for name, offset in tombs.items() if line.offset < offset]
                goes = _mentions(descriptor, line.offset, end, names)
            if goes:
                kept.append((position, line.offset))
                position = end
        return [*kept, (position, size)]


@frozen
class _Line:
    """A record of the journal, or (without ``record``) a tombstone, and where it stands."""

    offset: int
    end: int
    id: str
    record: Mapping[str, Any] | None = None


def _without_text(line: _Line | BadLine) -> _Line | BadLine:
    """Return a line without what its record holds: all of a file's at once would be too much."""
    return _Line(line.offset, line.end, line.id, {}) if isinstance(line, _Line) and line.record is not None else line


def _has_any(descriptor: int, ids: Sequence[str]) -> bool:
    """Return whether a file may hold any of these ids: it has the longest word of one, which no escape can hide."""
    words = [max(_WORD.findall(name), key=len, default="").encode() for name in ids]
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(word) != -1 for word in words)


def _mentions(descriptor: int, start: int, end: int, names: Sequence[str]) -> bool:
    """Return whether a broken line is of one of these records: it holds the end of the id."""
    tails = [name[-_TAIL_CHARACTERS:].encode() for name in names if len(name) >= _TAIL_CHARACTERS]
    if not tails or start == end:
        return False
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(tail, start, end) != -1 for tail in tails)
