"""The names of a collection's tables: the only names that are ever formatted into a statement.

The tables of ``memory`` and ``docs`` have fixed names. Those of any other collection consist of ``c``, the length of
the collection's name, the name, and the content: ``c5_facts_chunks``. The length marks the end of the name. So no two
collections share a table name, not even with a table that vec0 creates (``c5_facts_vec_chunks``) for a collection such
as ``facts_vec``. No other table name begins with a c and a digit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from klaw_core import QueryError, check_collection_name

if TYPE_CHECKING:
    import apsw

_STANDARD = {
    ("memory", "chunks"): "memory_chunks",
    ("memory", "vec"): "vec_memory",
    ("memory", "quantized"): "quantized_memory",
    ("docs", "chunks"): "doc_chunks",
    ("docs", "vec"): "vec_docs",
    ("docs", "quantized"): "quantized_docs",
}


@lru_cache(maxsize=256)
def table_name(collection: str, content: Literal["chunks", "vec", "quantized"]) -> str:
    """Return the name of one of a collection's tables. Raise QueryError for an invalid collection name."""
    standard = _STANDARD.get((collection, content))
    return standard or f"c{len(collection)}_{check_collection_name(collection)}_{content}"


def is_collection_name(value: object) -> bool:
    """Return whether a value is a valid name of a collection."""
    try:
        return isinstance(value, str) and bool(check_collection_name(value))
    except QueryError:
        return False


def is_standard(collection: str) -> bool:
    """Return whether the tables of a collection are created with the file; others are created at the first write."""
    return (collection, "chunks") in _STANDARD


def has_table(connection: apsw.Connection, name: str) -> bool:
    """Return whether a table of this name exists."""
    connection.execute(
        "SELECT 1 FROM sqlite_schema LIMIT 1"
    ).fetchone()  # makes SQLite notice tables that other connections have created or dropped
    return connection.table_exists("main", name)
