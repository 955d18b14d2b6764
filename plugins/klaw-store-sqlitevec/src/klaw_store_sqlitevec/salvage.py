"""Read the embedding cache of a damaged database from its pages, without the trees that lead to them.

Only the vectors on a damaged page are lost, whichever page it is: without the first page SQLite can read nothing, and
without the root of a table no row of it. A row is recognised by the types of its columns, and its vector is checked.
The format of the file and of its log: https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import apsw
from attrs import define, field, frozen

from klaw_core import Closing, VectorSpace
from klaw_store_sqlitevec.vector_codec import decode_vector

#: The page size of a database that Klaw has created.
PAGE_BYTES = 4096
_HEADER_BYTES = 100
_MIN_PAGE_BYTES, _MAX_PAGE_BYTES = 512, 65536
_LEAF = 0x0D
_HASH_BYTES = 32
_MAX_DIMENSION = 1 << 16
_METRIC = b"cosine"

_LOG_MAGIC = (0x377F0682, 0x377F0683)
_LOG_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24

# Serial types of a record's columns. A column that is the row id is NULL.
_NULL = 0
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}
_ONE = 9
_FIRST_BLOB = 12
_HASH = _FIRST_BLOB + 2 * _HASH_BYTES
_VECTOR_COLUMNS = 4  # id, space_id, hash, vector
_SPACE_COLUMNS = 6  # id, model, revision, dimension, metric, pooling
_DIMENSION_COLUMN = 3
_MAX_VARINT_BYTES = 9
_MORE = 0x80

_Value: TypeAlias = "int | bytes | None"


@frozen
class CachedVector:
    """A vector of the embedding cache: its space, the hash of its text, and its bytes as they are stored."""

    space: VectorSpace
    digest: bytes
    stored: bytes


def cached_vectors(database: Path) -> Iterator[CachedVector]:
    """Yield every cached vector that can be read, in no order; none if there is no file. No damage raises."""
    with _opened(database, apsw.SQLITE_OPEN_MAIN_DB) as file:
        if file is None:
            return
        with _opened(Path(f"{database}-wal"), apsw.SQLITE_OPEN_WAL) as log:
            pages = _Pages(file, log)
            spaces = {key: space for key, row in _rows(pages) if (space := _space(row)) is not None}
            for _, row in _rows(pages):
                if (vector := _vector(row, spaces)) is not None:
                    yield vector


@define(eq=False)
class _Pages:
    """The pages of a database: the committed ones of its log, and for all others those of the file."""

    _file: apsw.VFSFile
    _log: apsw.VFSFile | None
    size: int = field(init=False)
    count: int = field(init=False)
    _logged: Mapping[int, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.size = page_size(_read(self._file, 0, _HEADER_BYTES))
        self._logged = {} if self._log is None else dict(_frames(self._log, self.size))
        self.count = max([self._file.xFileSize() // self.size, *self._logged])

    def page(self, number: int) -> bytes:
        """Return a page; fewer bytes, or none, if it cannot be read."""
        if self._log is not None and number in self._logged:
            return _read(self._log, self._logged[number], self.size)
        return _read(self._file, (number - 1) * self.size, self.size) if 0 < number <= self.count else b""


class DatabaseFile(Closing[apsw.VFSFile]):
    """A database or its log, during a block. Raise apsw.Error, OSError.

    It is opened as SQLite does it, because the file may be open in this process, and closing another handle of it would
    release SQLite's locks (https://sqlite.org/howtocorrupt.html, 2.2).
    """

    __slots__ = ()

    def __init__(self, path: Path, flags: int) -> None:
        super().__init__(partial(apsw.VFSFile, "", str(path), [flags, 0]))

    def close(self, made: apsw.VFSFile) -> None:
        """Close it."""
        made.xClose()


@contextmanager
def _opened(path: Path, kind: int) -> Iterator[apsw.VFSFile | None]:
    """Open a file for reading; yield None if it cannot be opened."""
    with ExitStack() as stack:
        file = None
        with suppress(apsw.Error, OSError):
            if path.is_file():
                file = stack.enter_context(DatabaseFile(path, apsw.SQLITE_OPEN_READONLY | kind))
        yield file


def _read(file: apsw.VFSFile, start: int, size: int) -> bytes:
    """Return bytes of a file, fewer at its end; none if the disk cannot read them."""
    try:
        return bytes(file.xRead(size, start))
    except apsw.Error:
        return b""


def page_size(header: bytes) -> int:
    """Return the page size that the beginning of a database names; that of Klaw's if it names none."""
    size = int.from_bytes(header[16:18], "big")
    size = _MAX_PAGE_BYTES if size == 1 else size  # a power of two that does not fit two bytes
    return size if _MIN_PAGE_BYTES <= size <= _MAX_PAGE_BYTES and size.bit_count() == 1 else PAGE_BYTES


def _frames(log: apsw.VFSFile, size: int) -> Iterator[tuple[int, int]]:
    """Yield the number and the offset of each page in the committed frames of a log, the newest last."""
    header = _read(log, 0, _LOG_HEADER_BYTES)
    if len(header) < _LOG_HEADER_BYTES or int.from_bytes(header[:4], "big") not in _LOG_MAGIC:
        return
    waiting: list[tuple[int, int]] = []
    for start in range(_LOG_HEADER_BYTES, log.xFileSize(), _FRAME_HEADER_BYTES + size):
        frame = _read(log, start, _FRAME_HEADER_BYTES)
        if frame[8:16] != header[16:24]:  # written before the log was last reset
            return
        waiting.append((int.from_bytes(frame[:4], "big"), start + _FRAME_HEADER_BYTES))
        if any(frame[4:8]):  # the last frame of a transaction
            yield from waiting
            waiting = []


def _rows(pages: _Pages) -> Iterator[tuple[int, Sequence[_Value]]]:
    """Yield the row id and the values of every row that may be a vector space or a cached vector."""
    for number in range(1, pages.count + 1):
        page = pages.page(number)
        start = _HEADER_BYTES if number == 1 else 0
        if len(page) < pages.size or page[start] != _LEAF:
            continue
        for cell in range(int.from_bytes(page[start + 3 : start + 5], "big")):
            at = start + 8 + 2 * cell
            with suppress(IndexError):  # damaged: it leads out of the page
                key, payload = _cell(pages, page, int.from_bytes(page[at : at + 2], "big"))
                if payload:
                    yield key, _values(payload)


def _cell(pages: _Pages, page: bytes, at: int) -> tuple[int, bytes]:
    """Return the row id and the record at an offset of a page, of which the rest may be on other pages.

    The record is empty if it is none of those looked for. Raise IndexError for a damaged one.
    """
    size, at = _varint(page, at)
    key, at = _varint(page, at)
    local = _local_bytes(size, pages.size)
    payload = page[at : at + local]
    if not _is_wanted(_kinds(payload)[0]):
        return key, b""
    following = int.from_bytes(page[at + local : at + local + 4], "big") if local < size else 0
    while len(payload) < size:
        more = pages.page(following)
        following = int.from_bytes(more[:4], "big")
        if len(more) < pages.size:
            raise IndexError
        payload += more[4 : 4 + size - len(payload)]
    return key, payload


def _local_bytes(size: int, page: int) -> int:
    """Return how many bytes of a record of this size are on the leaf itself."""
    if size <= page - 35:
        return size
    least = (page - 12) * 32 // 255 - 23
    most = least + (size - least) % (page - 4)
    return most if most <= page - 35 else least


def _kinds(payload: bytes) -> tuple[Sequence[int], int]:
    """Return the serial types of a record's columns, and the offset of their values."""
    end, at = _varint(payload, 0)
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    return kinds, end


def _is_wanted(kinds: Sequence[int]) -> bool:
    if len(kinds) == _VECTOR_COLUMNS:
        return kinds[0] == _NULL and kinds[1] in _INTEGER_BYTES and kinds[2] == _HASH and _is_bytes(kinds[3])
    if len(kinds) != _SPACE_COLUMNS or kinds[0] != _NULL or kinds[_DIMENSION_COLUMN] not in _INTEGER_BYTES:
        return False
    return all(_is_bytes(kind) for place, kind in enumerate(kinds) if place not in (0, _DIMENSION_COLUMN))


def _is_bytes(kind: int) -> bool:
    return kind >= _FIRST_BLOB


def _values(payload: bytes) -> Sequence[_Value]:
    kinds, at = _kinds(payload)
    values: list[_Value] = []
    for kind in kinds:
        size = (kind - _FIRST_BLOB) // 2 if _is_bytes(kind) else _INTEGER_BYTES.get(kind, 0)
        content = payload[at : at + size]
        if len(content) < size:
            raise IndexError
        at += size
        if _is_bytes(kind):
            values.append(content)
        else:
            values.append(None if kind == _NULL else int(kind == _ONE) or int.from_bytes(content, "big", signed=True))
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an integer of variable length, and the offset after it. Raise IndexError if it is cut."""
    value = 0
    for length in range(1, _MAX_VARINT_BYTES):
        byte = data[at + length - 1]
        value = value << 7 | byte & ~_MORE
        if byte < _MORE:
            return value, at + length
    return value << 8 | data[at + _MAX_VARINT_BYTES - 1], at + _MAX_VARINT_BYTES


def _space(row: Sequence[_Value]) -> VectorSpace | None:
    """Return the vector space of a row of ``vector_spaces``; None for other rows."""
    match row:
        case [None, bytes(model), bytes(revision), int(dimension), metric, bytes(pooling)] if metric == _METRIC:
            with suppress(UnicodeDecodeError):
                if 0 < dimension < _MAX_DIMENSION:
                    return VectorSpace(model.decode(), revision.decode(), dimension, pooling=pooling.decode())
    return None


def _vector(row: Sequence[_Value], spaces: Mapping[int, VectorSpace]) -> CachedVector | None:
    """Return the vector of a row of ``embedding_cache``; None for other rows, and for a damaged vector."""
    match row:
        case [None, int(space_id), bytes(digest), bytes(stored)] if space_id in spaces:
            space = spaces[space_id]
            if decode_vector(stored, space.dimension) is not None:
                return CachedVector(space, digest, stored)
    return None
