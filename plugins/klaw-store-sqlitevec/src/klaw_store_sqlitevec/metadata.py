"""Metadata of documents: JSON in the document's row, and one row per value in ``document_metadata`` for filters.

SQLite compares these values like :meth:`klaw_core.Condition.holds`, because the column has no type: integers and floats
as numbers, booleans as 1 and 0, text, whose case is folded before, by code points. Any text is greater than any number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import apsw

from klaw_core import Condition, quoted

if TYPE_CHECKING:
    from klaw_core import Metadata, MetadataValue

TABLES = """
ALTER TABLE documents ADD COLUMN metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata));
CREATE TABLE document_metadata (
    collection TEXT NOT NULL,
    key TEXT NOT NULL,
    value NOT NULL,             -- INTEGER, REAL or TEXT
    document_id INTEGER NOT NULL,
    PRIMARY KEY (collection, key, value, document_id)
) WITHOUT ROWID;
"""

# Parameters per statement; SQLite allows some thousands.
_MAX_VALUES = 500


def to_json(metadata: Metadata) -> str | None:
    """Return metadata as JSON for the column; None if it is empty."""
    return json.dumps(dict(metadata), ensure_ascii=False, sort_keys=True) if metadata else None


def from_json(text: str | None) -> dict[str, MetadataValue]:
    """Parse the JSON of :func:`to_json`, and restore the types. Raise ValueError for a damaged one."""
    if text is None:
        return {}
    return {key: tuple(value) if isinstance(value, list) else value for key, value in parse_object(text).items()}


def parse_object(text: object) -> dict[str, Any]:
    """Parse a JSON object. Raise ValueError for anything else, such as a value that is not text."""
    found = json.loads(text) if isinstance(text, str) else None
    if isinstance(found, dict):
        return found
    raise ValueError(f"not a JSON object: {quoted(text)}")


def remove_entries(connection: apsw.Connection, collection: str, document_id: int, text: str | None) -> None:
    """Remove the rows for a document's JSON."""
    connection.executemany(
        "DELETE FROM document_metadata WHERE collection = ? AND key = ? AND value = ? AND document_id = ?",
        ((collection, key, value, document_id) for key, value in _entries(text)),
    )


def add_entries(connection: apsw.Connection, collection: str, document_id: int, text: str | None) -> None:
    """Add a row for each value of a document's JSON."""
    connection.executemany(
        "INSERT INTO document_metadata (collection, key, value, document_id) VALUES (?, ?, ?, ?)",
        ((collection, key, value, document_id) for key, value in _entries(text)),
    )


def add_compared(connection: apsw.Connection) -> None:
    """Add the rows for the values that strings are compared as, which earlier versions did not have."""
    rows: list[Any] = connection.execute(
        "SELECT collection, id, metadata FROM documents WHERE metadata IS NOT NULL"
    ).fetchall()
    for collection, document_id, text in rows:
        with suppress(ValueError):  # `klaw doctor` reports a damaged one
            connection.executemany(
                "INSERT OR IGNORE INTO document_metadata (collection, key, value, document_id) VALUES (?, ?, ?, ?)",
                [(collection, key, value, document_id) for key, value in _entries(text)],
            )


def replace_compared(connection: apsw.Connection) -> None:
    """Replace all rows, because earlier versions kept text with its case."""
    connection.execute("DELETE FROM document_metadata")
    add_compared(connection)


def _entries(text: str | None) -> Iterator[tuple[str, str | int | float]]:
    for key, value in from_json(text).items():
        yield from ((key, item) for item in Condition.compared(value))


def ranges(condition: Condition) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield SQL conditions with their values for the rows of a key that satisfy the condition.

    For ``!=``, yield those for the rows that do not satisfy it, because a document without the key has no row.
    """
    values, operator = condition.values, condition.operator
    if operator == "in":
        for first in range(0, len(values), _MAX_VALUES):
            some = values[first : first + _MAX_VALUES]
            yield f"entry.value IN ({', '.join('?' * len(some))})", some
    elif operator in ("=", "!="):
        yield "entry.value = ?", values
    elif isinstance(values[0], str):
        yield f"entry.value {operator} ? AND entry.value >= ''", values
    else:
        yield f"entry.value {operator} ? AND entry.value < ''", values
