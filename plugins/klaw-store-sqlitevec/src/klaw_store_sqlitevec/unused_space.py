"""Clear the unused space of a database's pages, where SQLite leaves copies of rows that it has moved.

``secure_delete`` overwrites a row where it is when it is deleted. But SQLite moves rows, within a page and to others,
and leaves copies in the space between them, which no row uses. Nothing reads that space. So zeros are written to the
file itself, without a transaction: a part of them, after a crash, changes nothing either. Overflow pages and free pages
have no such copies, and the first page has only rows of the schema. The format: https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from struct import Struct

import apsw

from klaw_store_sqlitevec.salvage import DatabaseFile, page_size

_HEADER_BYTES = 100
_RESERVED, _AUTO_VACUUM = 20, slice(52, 56)
_POINTER_BYTES = 5  # an entry of a pointer map, of databases with auto-vacuum
_READ_BYTES = 1 << 18
_ZEROS = bytes(1 << 16)

# The kind of a page of a tree, its first freeblock, how many cells it has, where they begin, its fragmented bytes.
_TREE = Struct(">BHHHB")
_PAIR = Struct(">HH")
_INNER_INDEX, _INNER_TABLE, _LEAF_INDEX, _LEAF_TABLE = _KINDS = (2, 5, 10, 13)
_BLOCK_BYTES = 4  # of the header of a freeblock, and the least size of a cell
_MORE = 0x80
_LAST = 8  # the ninth byte of a varint has eight bits


def clear_unused_space(database: Path) -> int:
    """Write zeros over the unused space of all pages, and flush them; return how many pages had something else there.

    The caller prevents every other write to the file: the log is empty, and the write lock is held.
    """
    with DatabaseFile(database, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB) as file:
        header = bytes(file.xRead(_HEADER_BYTES, 0))
        size = page_size(header)
        usable = size - header[_RESERVED]
        group = usable // _POINTER_BYTES + 1 if any(header[_AUTO_VACUUM]) else 0
        changed = 0
        for first in range(size, file.xFileSize() // size * size, _READ_BYTES):
            held = bytes(file.xRead(min(_READ_BYTES, file.xFileSize() // size * size - first), first))
            for start in range(0, len(held), size):
                number = (first + start) // size + 1
                page = held[start : start + usable]
                if page[0] in _KINDS and (not group or (number - 2) % group) and (spans := _dirty(page)):
                    changed += 1
                    for begin, end in spans:
                        file.xWrite(_ZEROS[: end - begin], first + start + begin)
        if changed:
            file.xSync(apsw.SQLITE_SYNC_FULL)
        return changed


def _dirty(page: bytes) -> list[tuple[int, int]]:
    """Return the unused spans of a page that are not zeros; none if the page is damaged."""
    kind, block, count, cells, fragmented = _TREE.unpack_from(page)
    begin = (8 if kind in (_LEAF_INDEX, _LEAF_TABLE) else 12) + 2 * count
    cells = cells or len(_ZEROS)
    if begin > cells or cells > len(page):
        return []
    if not fragmented and page[begin:cells] == _ZEROS[: cells - begin] and not _has_content(page, block):
        return []
    return [(start, end) for start, end in _unused(page, begin) if page[start:end] != _ZEROS[: end - start]]


def _has_content(page: bytes, block: int) -> bool:
    return any(
        page[start + _BLOCK_BYTES : end] != _ZEROS[: end - start - _BLOCK_BYTES] for start, end in _blocks(page, block)
    )


def _blocks(page: bytes, block: int) -> Iterator[tuple[int, int]]:
    """Yield where the freeblocks of a page begin and end, until one is damaged."""
    last = 0
    while last < block <= len(page) - _BLOCK_BYTES:
        following, length = _PAIR.unpack_from(page, block)
        if length < _BLOCK_BYTES or block + length > len(page):
            return
        yield block, block + length
        block, last = following, block + length


def _unused(page: bytes, begin: int) -> list[tuple[int, int]]:
    """Return what neither the header, the pointers, a cell nor the header of a freeblock uses.

    Return nothing unless the page's own counts agree: then it is damaged, or no page of a tree.
    """
    kind, first, count, cells, fragmented = _TREE.unpack_from(page)
    pointers = Struct(f">{count}H").unpack_from(page, begin - 2 * count)
    try:
        used = sorted((start, start + _cell_bytes(page, kind, start)) for start in pointers)
    except IndexError:
        return []
    blocks = list(_blocks(page, first))
    gaps = [(end, start) for (_, end), (start, _) in pairwise(((0, begin), *used, (len(page), 0)))]
    free = sum(end - start for start, end in blocks) + (cells or len(_ZEROS)) - begin + fragmented
    if any(end < start for start, end in gaps) or sum(end - start for start, end in gaps) != free:
        return []
    return list(_without_headers(gaps, [start for start, _ in blocks]))


def _without_headers(gaps: list[tuple[int, int]], headers: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the gaps without the headers of freeblocks in them."""
    for start, end in gaps:
        inside = [header for header in headers if start <= header < end]
        yield from zip((start, *(header + _BLOCK_BYTES for header in inside)), (*inside, end), strict=True)


def _cell_bytes(page: bytes, kind: int, start: int) -> int:
    """Return how many bytes a cell has on its page."""
    at = start + (4 if kind in (_INNER_INDEX, _INNER_TABLE) else 0)
    payload, at = _varint(page, at)
    if kind == _INNER_TABLE:  # it was the row id
        return at - start
    if kind == _LEAF_TABLE:
        _, at = _varint(page, at)
    most, least = _local_limits(len(page), kind)
    local = payload
    if payload > most:
        local = least + (payload - least) % (len(page) - 4)
        local = 4 + (local if local <= most else least)
    return max(at + local - start, _BLOCK_BYTES)


@lru_cache(maxsize=8)
def _local_limits(usable: int, kind: int) -> tuple[int, int]:
    """Return how many bytes of a payload are at most on the page of its cell, and at least if some are elsewhere."""
    most = usable - 35 if kind == _LEAF_TABLE else (usable - 12) * 64 // 255 - 23
    return most, (usable - 12) * 32 // 255 - 23


def _varint(page: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where the next one begins."""
    value = 0
    for index in range(_LAST):
        byte = page[at + index]
        value = value << 7 | byte & ~_MORE
        if not byte & _MORE:
            return value, at + index + 1
    return value << 8 | page[at + _LAST], at + _LAST + 1
