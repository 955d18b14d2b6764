"""A journal of records in a JSON Lines file."""

from __future__ import annotations

import mmap
import operator
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from attrs import field, frozen

from klaw_core import RecordError
from klaw_core.files.atomic import locked, open_regular, writing_failed
from klaw_core.files.platform import read_at
from klaw_journals.contents import BadLine, BrokenRecord, Replay
from klaw_journals.journal_index import JournalIndex
from klaw_journals.journal_lines import MAX_LINE_BYTES, TAIL_CHARACTERS, find_lines, void_lines
from klaw_journals.jsonl import JsonLines, encode
from klaw_journals.rewriting import keep_ranges, leftover_of, overwrite, replace_lines
from klaw_journals.traces import Traces

_FORGET = "forget"
# The maximum number of ids that are searched for individually before the whole file is read.
_FEW = 16
_WORD = re.compile("[0-9A-Za-z]+")


@frozen
class FileJournal:
    """The file of a journal; implements ``RecordJournal``.

    ``check`` raises RecordError for an object that is not a record of this journal. Records are appended. To forget
    some, a line is appended that voids theirs, with immediate effect; then they are overwritten with spaces. If that
    would leave more spaces than records, or if a line was not written by Klaw, a tombstone (``{"forget": id}``) is
    appended, and the file is replaced by one without the records. See ``docs/decisions/0050-forgetting-in-place.md``.
    """

    path: Path
    check: Callable[[Mapping[str, Any]], object] = lambda _record: None
    _index: JournalIndex = field(init=False, eq=False, repr=False)

    #: The version at which nothing was left to finish.
    _finished: list[Hashable] = field(factory=list, init=False, eq=False, repr=False)

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
        """Return the file's identity, size and time of modification; None if it does not exist."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def append(self, records: Sequence[Mapping[str, Any]], /) -> Hashable:
        """Append records; they are durable when this returns. Return the version. Raise RecordError or StoreError."""
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
        ask: Callable[[], object] = lambda: None,
    ) -> frozenset[str]:
        """Append records, except those whose id another record has; return the ids of these."""
        ids = [self._id(record) for record in records]
        if not records:
            return frozenset()
        refused = set()
        with locked(self.path.parent):
            ask()
            held = self._existing(ids)
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
        """Return the content of the journal. Nothing in the file raises."""
        records: dict[str, Mapping[str, Any]] = {}
        places: dict[str, int] = {}
        broken: list[BadLine] = []
        unfinished: dict[str, bool] = {}
        voided: set[int] = set()
        for line in self._read():
            if isinstance(line, BadLine):
                broken.append(line)
            elif line.record is not None:
                records[line.id], places[line.id] = line.record, line.offset
            elif not line.void:
                records.pop(line.id, None)
                unfinished[line.id] = True
            else:
                starts = {start for start, _ in line.void}
                voided |= starts
                if not line.done:
                    gone = [name for name, offset in places.items() if offset in starts and name in records]
                    gone += [f"{bad.offset:,}" for bad in broken if bad.offset in starts]
                    for name in gone:
                        records.pop(name, None)
                        unfinished[name] = True
        # A line that is being voided, now or during a power failure, is not a defect.
        left = (line for line in broken if line.offset not in voided)
        return Replay(
            records,
            tuple(BrokenRecord(self.location, line.offset, line.reason, line.torn or line.cut) for line in left),
            tuple(unfinished),
        )

    def get(self, ids: Sequence[str], /) -> Mapping[str, Mapping[str, Any]]:
        """Return the existing records with these ids. The first call reads the file, later ones only additions."""
        return self._index.get(ids)

    def ids(self) -> Collection[str]:
        """Return the ids of all records."""
        return self._index.ids()

    def forget(self, ids: Sequence[str], /) -> int:
        """Forget records; return their number. Broken lines stay, except those of these records."""
        with locked(self.path.parent):
            if not self.exists:
                return 0
            Traces(self.path.parent).note_records(self.path.stem, dict.fromkeys(ids))
            found = None if leftover_of(self.path).exists() else find_lines(self.path, ids, self._id)
            if found is not None:
                if found.lines:
                    with self._index.following():
                        self._void(found.lines)
                return found.records
            known = self.get(ids)
            self._lines.append(*({_FORGET: name} for name in dict.fromkeys(ids)))
            keep_ranges(self.path, self._kept_ranges)
        return len(known)

    def settle(self, change: Callable[[list[Mapping[str, Any]]], Sequence[Mapping[str, Any]]], /) -> bool:
        """Replace the records by those that ``change`` returns for them, in their order; return whether any differ.

        Lines that are not records stay, at the beginning. Nothing counts as forgotten. Raise RecordError, StoreError.
        """
        with locked(self.path.parent):
            replay = self.replay()
            held = [dict(record) for record in replay.records.values()]
            wanted = [*change(list(replay.records.values()))]
            for record in wanted[len(held) :] if wanted[: len(held)] == held else wanted:
                self._id(record)
            if wanted == held and not replay.unfinished:
                return False
            if wanted[: len(held)] == held and not replay.unfinished:
                self._lines.append(*wanted[len(held) :])
                return True
            bad = [line for line in self._read() if isinstance(line, BadLine) and line.end > line.offset]
            left = {broken.position for broken in replay.broken}
            kept = [(line.offset, line.end) for line in bad if line.offset in left]
            replace_lines(self.path, kept, map(encode, wanted))
            return True

    def finish(self) -> None:
        """Remove the bytes of records whose forgetting a crash interrupted."""
        version = self.version
        if version is not None and self._finished == [version]:
            return
        if self.replay().unfinished:
            with locked(self.path.parent):
                keep_ranges(self.path, self._kept_ranges)
        else:
            self._finished[:] = [version]

    def _void(self, lines: Sequence[tuple[int, int]]) -> None:
        """Overwrite lines with spaces, after appending a line that voids them, so that a crash leaves no valid part."""
        (made,) = self._lines.append(lambda offset: {_FORGET: "", "at": lines, "here": offset, "done": 0})
        overwrite(self.path, [(start, b" " * (end - start - 1)) for start, end in lines])
        # A single byte is written atomically. If the write is lost, the lines are still blank.
        overwrite(self.path, [(made.end - len(b"0}\n"), b"1")], flush=False)

    @property
    def _lines(self) -> JsonLines:
        return JsonLines(self.path, MAX_LINE_BYTES)

    def _read(self, start: int = 0) -> Iterator[_Line | BadLine]:
        for line in self._lines.read(start):
            if isinstance(line, BadLine):
                yield line
            elif isinstance(name := line.value.get(_FORGET), str):
                void = void_lines(line.value, line.offset)
                yield _Line(line.offset, line.end, name, void=void, done=line.value.get("done") == 1)
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

    def _existing(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Return the existing records with these ids. Most ids are new, so the file is usually not parsed."""
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

    def _kept_ranges(self, descriptor: int) -> list[tuple[int, int]]:
        """Return the ranges to keep: everything except tombstones and the records that they remove."""
        lines = [_without_text(line) for line in self._read()]
        tombs = {line.id: line.offset for line in lines if _is_tombstone(line)}
        size = os.fstat(descriptor).st_size
        void = {place for line in lines if isinstance(line, _Line) for place in line.void}
        gone = [place for place in void if place[1] <= size and _is_line(descriptor, *place)]
        done = {start for line in lines if isinstance(line, _Line) and line.done for start, _ in line.void}
        gone = [place for place in gone if place[0] not in done or _is_blank(descriptor, *place)]
        for line in lines:
            if isinstance(line, _Line):
                goes = bool(line.void) or line.offset <= tombs.get(line.id, -1)
                end = line.end
            else:
                end = size if line.torn else line.end
                names = [name for name, offset in tombs.items() if line.offset < offset]
                goes = _mentions(descriptor, line.offset, end, names)
            if goes:
                gone.append((line.offset, end))
        kept, position = [], 0
        for start, end in sorted(gone):
            kept.append((position, max(start, position)))
            position = max(position, end)
        return [*kept, (position, size)]


@frozen
class _Line:
    """A record of the journal, or (without ``record``) a tombstone, with its place.

    A tombstone has an ``id``, or the lines that it voids in ``void``; it is ``done`` once they are blank.
    """

    offset: int
    end: int
    id: str
    record: Mapping[str, Any] | None = None
    void: tuple[tuple[int, int], ...] = ()
    done: bool = False


def _is_tombstone(line: _Line | BadLine) -> TypeGuard[_Line]:
    return isinstance(line, _Line) and line.record is None and not line.void


def _without_text(line: _Line | BadLine) -> _Line | BadLine:
    """Return a line without the content of its record, which would use too much memory for a whole file."""
    return _Line(line.offset, line.end, line.id, {}) if isinstance(line, _Line) and line.record is not None else line


def _is_line(descriptor: int, start: int, end: int) -> bool:
    """Return whether a line begins and ends at these bytes."""
    before = start == 0 or read_at(descriptor, 1, start - 1) == b"\n"
    return before and read_at(descriptor, end - start, start).find(b"\n") == end - start - 1


def _is_blank(descriptor: int, start: int, end: int) -> bool:
    return not read_at(descriptor, end - start, start).strip()


def _has_any(descriptor: int, ids: Sequence[str]) -> bool:
    """Return whether a file may contain any of these ids, by the longest word of each, which JSON does not escape."""
    words = [max(_WORD.findall(name), key=len, default="").encode() for name in ids]
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(word) != -1 for word in words)


def _mentions(descriptor: int, start: int, end: int, names: Sequence[str]) -> bool:
    """Return whether a broken line belongs to one of these records, because it contains the end of its id."""
    tails = [name[-TAIL_CHARACTERS:].encode() for name in names if len(name) >= TAIL_CHARACTERS]
    if not tails or start == end:
        return False
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(tail, start, end) != -1 for tail in tails)
