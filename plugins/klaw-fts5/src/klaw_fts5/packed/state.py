"""The stored state of a collection's packed form. It is read before every search, so it needs no numpy."""

from __future__ import annotations

import apsw
from attrs import frozen

from klaw_fts5.sql import READ_STATE, WRITE_STATE


@frozen(eq=False, repr=False)
class PackedState:
    """The state of a collection's packed form: live ``rows``, and the number of FTS5's rows that it is ``lacking``."""

    rows: int
    lacking: int
    stamp: bytes


def read_state(connection: apsw.Connection, collection: str) -> PackedState | None:
    """Return the state of a collection's packed form; None if it has none, or if it cannot be read."""
    try:
        row = connection.execute(READ_STATE, (collection,)).fetchone()
    except UnicodeDecodeError:
        return None
    return None if row is None or tuple(map(type, row)) != (int, int, bytes) else PackedState(*row)


def write_state(connection: apsw.Connection, collection: str, rows: int, lacking: int) -> None:
    """Store the state of a collection's packed form, with a new stamp."""
    connection.execute(WRITE_STATE, (collection, rows, lacking))
