"""What the file says of a collection's packed form; read before every question, so without numpy."""

from __future__ import annotations

import apsw
from attrs import field, frozen

from klaw_fts5.sql import READ_STATE, WRITE_STATE


@frozen
class PackedState:
    """What a collection's packed form holds: ``rows`` that live, and how many of FTS5's it is ``lacking``."""

    rows: int
    lacking: int
    stamp: bytes = field(repr=False)


def read_state(connection: apsw.Connection, collection: str) -> PackedState | None:
    """Return the state of a collection's packed form, None if it has none, or none that can be read."""
    try:
        row = connection.execute(READ_STATE, (collection,)).fetchone()
    except UnicodeDecodeError:
        return None
    return None if row is None or tuple(map(type, row)) != (int, int, bytes) else PackedState(*row)


def write_state(connection: apsw.Connection, collection: str, rows: int, lacking: int) -> None:
    """Note what a collection's packed form holds now, under a new stamp."""
    connection.execute(WRITE_STATE, (collection, rows, lacking))
