"""A checksum for each chunk's row, so that a damaged row is detected when it is read.

It covers the chunk's text, id and position. A CRC-32 detects every burst of errors of up to 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    import apsw

#: The columns that the checksum covers, in the order of the values.
COLUMNS = (
    *("content", "chunk_id", "start_offset", "end_offset", "start_line", "end_line"),
    *("heading", "continues", "context"),
)


def checksum(values: Sequence[Any]) -> int:
    """Return the checksum of a row's values, given in the order of :data:`COLUMNS`."""
    content, chunk_id, start, end, first, last, heading, continues, context = values
    place = f"{start},{end},{first},{last}"
    return crc32("\x1f".join((content, chunk_id, place, heading, continues or "", context)).encode())


def add_checksums(connection: apsw.Connection, table: str) -> None:
    """Add the column to a table, and fill it. A text that is not valid UTF-8 gets a wrong checksum."""

    def of_bytes(*values: Any) -> int:
        content, chunk_id, start, end, first, last, heading, continues, context = values
        try:
            texts = [b"" if value is None else value for value in (content, chunk_id, heading, continues, context)]
            content, chunk_id, heading, continues, context = (bytes(value).decode() for value in texts)
        except UnicodeDecodeError:
            return -1
        return checksum((content, chunk_id, start, end, first, last, heading, continues, context))

    places = ("start_offset", "end_offset", "start_line", "end_line")
    # Read as bytes, because a text that cannot be decoded would stop the migration.
    given = ", ".join(name if name in places else f"CAST({name} AS BLOB)" for name in COLUMNS)
    connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER")
    connection.create_scalar_function("klaw_checksum", of_bytes, len(COLUMNS))
    try:
        connection.execute(f"UPDATE {table} SET checksum = klaw_checksum({given})")
    finally:
        connection.create_scalar_function("klaw_checksum", None, len(COLUMNS))
