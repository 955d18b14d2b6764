"""Find the lines of some records in a journal's file without parsing the others, and parse lines that void others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core import RecordError
from klaw_core.files.atomic import open_regular, writing_failed
from klaw_journals.jsonl import parse_json

#: The maximum size of a line: a text may have a million characters, each up to six bytes in JSON.
MAX_LINE_BYTES = 8 << 20
#: The length of an id's end that identifies the record of a broken line: an id ends in a hash.
TAIL_CHARACTERS = 12

# The beginning of every record that Klaw writes.
_BEGINNING = b'{"id":"'
# The file is never rewritten for fewer blank bytes than this.
_FEW_BYTES = 1 << 16


@frozen
class FoundLines:
    """The ranges of the lines of some records, and the number of existing ``records`` among them."""

    lines: Sequence[tuple[int, int]]
    records: int


def void_lines(value: Mapping[str, Any], offset: int) -> tuple[tuple[int, int], ...]:
    """Return the lines that a line at ``offset`` voids; none if it is another line, or was moved by hand."""
    places = value.get("at")
    if not isinstance(places, list) or value.get("here") != offset:
        return ()
    found = [tuple(place) for place in places if isinstance(place, list)]
    sound = all(len(place) == 2 and all(type(end) is int for end in place) for place in found)  # noqa: PLR2004
    if not sound or not all(0 <= start < end <= offset for start, end in found):
        return ()
    return tuple((start, end) for start, end in found)


def find_lines(path: Path, ids: Sequence[str], id_of: Callable[[Mapping[str, Any]], str]) -> FoundLines | None:
    """Return the lines of these records, including broken lines of them.

    Return None if the file should be rewritten instead: because a crash has left something in it, a line is too long,
    or more than half of it would be blank. ``id_of`` raises RecordError for an object that is not a record. Raise
    StoreError.
    """
    search = _Search(frozenset(ids), id_of)
    offset, begins, length = 0, len(_BEGINNING), MAX_LINE_BYTES + 1
    try:
        with open_regular(path) as file:
            while data := file.readline(length):
                start, offset = offset, offset + len(data)
                if not data.endswith(b"\n"):
                    return None
                if data.startswith(_BEGINNING):
                    name = data[begins : data.find(b'"', begins)]
                    # Most lines belong to other records. A line with a damaged id is recognised by the id's end.
                    if not (name in search.names or name[-TAIL_CHARACTERS:] in search.tails or b"\\" in name):
                        continue
                if not search.look(data, start):
                    return None
    except OSError as error:
        raise writing_failed(path, error) from error
    blank = search.blank + sum(end - start for start, end in search.lines)
    return None if blank > max(_FEW_BYTES, offset // 2) else FoundLines(search.lines, len(search.records))


class _Search:
    """The wanted ids, and the result: lines, the records among them, and the number of blank bytes."""

    def __init__(self, ids: frozenset[str], id_of: Callable[[Mapping[str, Any]], str]) -> None:
        self._ids = ids
        self._id_of = id_of
        self.names = {name.encode("utf-8", "surrogatepass") for name in ids}
        self.tails = {name[-TAIL_CHARACTERS:] for name in self.names if len(name) >= TAIL_CHARACTERS}
        self.lines: list[tuple[int, int]] = []
        self.records: set[str] = set()
        self.blank = 0

    def look(self, data: bytes, start: int) -> bool:
        """Check a line that may belong to one of the records; return False if the file should be rewritten."""
        if not data.strip():
            self.blank += len(data)
            return True
        value = self._parsed(data)
        if value is None:
            beginnings = tuple(_BEGINNING + name + b'"' for name in self.names)
            if data.startswith(beginnings) or any(tail in data for tail in self.tails):
                self.lines.append((start, start + len(data)))
        elif isinstance(value.get("forget"), str):
            self.blank += len(data)
            return bool(void_lines(value, start)) and value.get("done") == 1
        elif value["id"] in self._ids:
            self.lines.append((start, start + len(data)))
            self.records.add(value["id"])
        return True

    def _parsed(self, data: bytes) -> Mapping[str, Any] | None:
        """Return a record or a tombstone; None for anything else."""
        try:
            value = parse_json(data.removesuffix(b"\n"))
            if not isinstance(value.get("forget"), str):
                self._id_of(value)
        except RecordError:
            return None
        return value
