"""Select the chunks that pass a search's filters.

Each filter alone is one range of a covering index, so that no row of text is read. If SQLite joined them, it would read
the whole table whenever it considers a filter broad, and it cannot know which one is. So the filters are evaluated one
after another, usually narrowest first, and intersected. Once few chunks are left, their rows are checked instead of the
next index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import apsw
from attrs import frozen

from klaw_core import Condition, Filters, Keys, KeySelection
from klaw_store_sqlitevec.metadata import from_json, ranges
from klaw_store_sqlitevec.schema import ChunkTable
from klaw_store_sqlitevec.timestamps import to_text

LAST_CHARACTER = "\U0010ffff"
# Greater than any path, because SQLite orders blobs after text.
_BEYOND = b""
_SURROGATES = (0xD800, 0xE000)

# Operators that usually keep few rows.
_NARROW = ("=", "in")

# Chunks. With at most this many, their rows are checked; reading a row costs as much as dozens of index entries.
_FEW = 1000


@frozen(eq=False)
class FilteredSelection(KeySelection):
    """The keys of the chunks that pass filters, and these filters, for retrievers that apply some of them."""

    filters: Filters


@frozen(eq=False, repr=False)
class _ColumnFilter:
    """A filter in SQL: its tables, its condition, and the values of its parameters."""

    tables: str
    where: str
    values: tuple[object, ...]

    def keys(self, connection: apsw.Connection) -> Keys:
        """Return the keys of all chunks that pass."""
        return read_keys(connection, f"{self.tables} WHERE {self.where}", self.values)


@frozen(eq=False, repr=False)
class _MetadataFilter:
    """A condition on the metadata of a collection's documents; the chunks are in ``table``."""

    table: str
    collection: str
    condition: Condition

    def keys(self, connection: apsw.Connection) -> Keys:
        """Return the keys of all chunks that pass."""
        import numpy as np

        # CROSS JOIN makes SQLite begin with the entries instead of all chunks.
        joined = f"document_metadata AS entry CROSS JOIN {self.table} AS chunk ON chunk.document_id = entry.document_id"
        found = [
            read_keys(
                connection,
                f"{joined} WHERE entry.collection = ? AND entry.key = ? AND {where}",
                (self.collection, self.condition.key, *values),
            )
            for where, values in ranges(self.condition)
        ]
        if self.condition.operator == "=":
            return found[0]
        keys = np.unique(np.concatenate(found)) if found else no_keys()  # a list of tags may match several times
        if self.condition.operator == "!=":
            return np.setdiff1d(read_keys(connection, f"{self.table} AS chunk"), keys, assume_unique=True)
        return keys


def select(connection: apsw.Connection, table: ChunkTable, collection: str, filters: Filters) -> Keys:
    """Return the keys of the collection's chunks that pass all filters, ascending."""
    import numpy as np

    steps = list(_steps(table, collection, filters))
    if not steps:
        return read_keys(connection, f"{table.name} AS chunk")
    found: Keys | None = None
    for number, step in enumerate(steps):
        if found is not None and found.size <= _FEW:
            return _among(connection, table, found, steps[number:])
        keys = step.keys(connection)
        found = keys if found is None else found[np.isin(found, keys, assume_unique=True)]
    assert found is not None
    return found


def read_keys(connection: apsw.Connection, clauses: str, values: Sequence[object] = ()) -> Keys:
    """Return ``chunk.id`` of the rows of ``FROM clauses``, ascending.

    The keys are read as one string, because a Python row for each key takes twice the time.
    """
    import numpy as np

    text = connection.execute(f"SELECT group_concat(chunk.id) FROM {clauses}", values).get
    keys: Keys = np.fromstring(text or "", np.int64, sep=",")
    keys.sort()
    return keys


def no_keys() -> Keys:
    """Return an empty array of keys."""
    import numpy as np

    return np.empty(0, np.int64)


def path_range(prefix: str) -> tuple[str, str | bytes]:
    """Return the range of texts that begin with ``prefix``, the end excluded."""
    kept = prefix.rstrip(LAST_CHARACTER)
    if not kept:
        return prefix, _BEYOND
    following = ord(kept[-1]) + 1
    return prefix, kept[:-1] + chr(_SURROGATES[1] if following == _SURROGATES[0] else following)


def _steps(table: ChunkTable, collection: str, filters: Filters) -> Iterator[_ColumnFilter | _MetadataFilter]:
    """Yield the filters, usually narrowest first."""
    chunks = f"{table.name} AS chunk"
    if filters.chat_id is not None:
        yield _ColumnFilter(chunks, f"{table.chat} = ?", (filters.chat_id,))
    if filters.source is not None:
        yield _ColumnFilter(chunks, f"{table.source} = ?", (filters.source,))
    if filters.path:
        # CROSS JOIN makes SQLite begin with the documents instead of all chunks.
        joined = f"documents AS document CROSS JOIN {chunks} ON chunk.document_id = document.id"
        where = "document.collection = ? AND document.path >= ? AND document.path < ?"
        yield _ColumnFilter(joined, where, (collection, *path_range(filters.path)))
    described = [_MetadataFilter(table.name, collection, condition) for condition in filters.metadata]
    yield from (step for step in described if step.condition.operator in _NARROW)
    dates = [("chunk.created_at >= ?", filters.since), ("chunk.created_at < ?", filters.until)]
    if given := [(where, to_text(moment)) for where, moment in dates if moment is not None]:
        wheres, moments = zip(*given, strict=True)
        yield _ColumnFilter(chunks, " AND ".join(wheres), moments)
    yield from (step for step in described if step.condition.operator not in _NARROW)


def _among(
    connection: apsw.Connection, table: ChunkTable, keys: Keys, steps: Sequence[_ColumnFilter | _MetadataFilter]
) -> Keys:
    """Return the keys that pass, by checking their rows."""
    columns = [step for step in steps if isinstance(step, _ColumnFilter)]
    if columns and keys.size:  # carray raises an error for an empty array
        where = " AND ".join(step.where for step in columns)
        values = (value for step in columns for value in step.values)
        keys = read_keys(connection, f"{_rows_of(table)} AND {where}", (apsw.carray(keys), *values))
    conditions = [step.condition for step in steps if isinstance(step, _MetadataFilter)]
    return _described(connection, table, keys, conditions) if conditions and keys.size else keys


def _described(connection: apsw.Connection, table: ChunkTable, keys: Keys, conditions: Sequence[Condition]) -> Keys:
    """Return those of the keys (at least one) whose documents satisfy the conditions."""
    import numpy as np

    @cache
    def satisfies(text: str | None) -> bool:
        metadata = from_json(text)
        return all(condition.holds(metadata) for condition in conditions)

    sql = f"SELECT chunk.id, document.metadata FROM {_rows_of(table)} ORDER BY chunk.id"
    rows = connection.execute(sql, (apsw.carray(keys),))
    return np.fromiter((key for key, metadata in rows if satisfies(metadata)), np.int64)


def _rows_of(table: ChunkTable) -> str:
    joined = f"{table.name} AS chunk JOIN documents AS document ON document.id = chunk.document_id"
    return f"{joined} WHERE chunk.id IN (SELECT value FROM carray(?))"
