"""Which chunks pass a search's filters.

Each filter by itself is one range of a covering index, so that no row of text is read. Left to join and sort them,
SQLite reads the whole table wherever it takes a filter for a broad one, and it cannot know which is. Here they are
asked one after the other, the usually narrowest first, and intersected; once few chunks are left, the rows of those
are looked at instead of the next index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apsw
from attrs import frozen

from klaw_core import Filters, Keys
from klaw_store_sqlitevec.schema import ChunkTable
from klaw_store_sqlitevec.timestamps import to_text

LAST_CHARACTER = "\U0010ffff"

# To look at a row of text costs as much as some dozens of entries of an index.
_FEW = 1000


@frozen(eq=False, repr=False)
class _Condition:
    """A filter in SQL: what it reads from, which rows it keeps, and the values of its parameters."""

    tables: str
    where: str
    values: tuple[object, ...]


def select(connection: apsw.Connection, table: ChunkTable, collection: str, filters: Filters) -> Keys:
    """Return the keys of the collection's chunks that pass all filters, ascending."""
    import numpy as np

    conditions = list(_conditions(table, collection, filters))
    if not conditions:
        return read_keys(connection, f"{table.name} AS chunk")
    found: Keys | None = None
    for number, condition in enumerate(conditions):
        if found is not None and found.size <= _FEW:
            return _among(connection, table, found, conditions[number:])
        keys = read_keys(connection, f"{condition.tables} WHERE {condition.where}", condition.values)
        found = keys if found is None else found[np.isin(found, keys, assume_unique=True)]
    assert found is not None
    return found


def read_keys(connection: apsw.Connection, clauses: str, values: Sequence[object] = ()) -> Keys:
    """Return ``chunk.id`` of what ``FROM clauses`` finds, ascending.

    As one text: to make a row of each key for Python takes twice the time.
    """
    import numpy as np

    text = connection.execute(f"SELECT group_concat(chunk.id) FROM {clauses}", values).get
    keys: Keys = np.fromstring(text or "", np.int64, sep=",")
    keys.sort()
    return keys


def _conditions(table: ChunkTable, collection: str, filters: Filters) -> Iterator[_Condition]:
    """Yield the conditions, the usually narrowest first."""
    chunks = f"{table.name} AS chunk"
    if filters.chat_id is not None:
        yield _Condition(chunks, f"{table.chat} = ?", (filters.chat_id,))
    if filters.source is not None:
        yield _Condition(chunks, f"{table.source} = ?", (filters.source,))
    if filters.path:
        # CROSS: the documents first, or SQLite may begin with all the chunks.
        joined = f"documents AS document CROSS JOIN {chunks} ON chunk.document_id = document.id"
        where = "document.collection = ? AND document.path >= ? AND document.path < ?"
        yield _Condition(joined, where, (collection, filters.path, filters.path + LAST_CHARACTER))
    dates = [("chunk.created_at >= ?", filters.since), ("chunk.created_at < ?", filters.until)]
    if given := [(where, to_text(moment)) for where, moment in dates if moment is not None]:
        wheres, moments = zip(*given, strict=True)
        yield _Condition(chunks, " AND ".join(wheres), moments)


def _among(connection: apsw.Connection, table: ChunkTable, keys: Keys, conditions: Sequence[_Condition]) -> Keys:
    """Return which of these keys pass the conditions, by looking at their rows."""
    if not keys.size:  # of which carray makes an error
        return keys
    where = " AND ".join(condition.where for condition in conditions)
    values = (value for condition in conditions for value in condition.values)
    clauses = f"""
        {table.name} AS chunk JOIN documents AS document ON document.id = chunk.document_id
        WHERE chunk.id IN (SELECT value FROM carray(?)) AND {where}
    """
    return read_keys(connection, clauses, (apsw.carray(keys), *values))
