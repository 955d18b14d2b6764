"""The names of a collection's tables: the only names that are ever formatted into a statement.

The tables of ``memory`` and ``docs`` have names of their own. Those of any other collection are called ``c``, how many
characters its name has, the name, and what is in them: ``c5_facts_chunks``. The number says where the name ends. So
no table of a collection has the name of another collection's, nor of one that vec0 makes (``c5_facts_vec_chunks``),
whatever the other is called (``facts_vec``). No other table begins with a c and a digit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from klaw_core import check_collection_name

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
    """Return the name of one of a collection's tables. Raise QueryError for a name that no collection can have."""
    standard = _STANDARD.get((collection, content))
    return standard or f"c{len(collection)}_{check_collection_name(collection)}_{content}"


def is_standard(collection: str) -> bool:
    """Return whether the tables of a collection are made with the file; others come with what is first written."""
    return (collection, "chunks") in _STANDARD


def has_table(connection: apsw.Connection, name: str) -> bool:
    """Return whether there is a table of this name."""
    connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()  # here SQLite sees if others changed tables
    return connection.table_exists("main", name)
