"""Overwrite a damaged database, and read what is left of it.

The file stays the same file, so SQLite's locks protect other programs that have it open. As long as SQLite can open it,
the new content is a transaction, and readers keep their snapshots. Otherwise nobody else may have it open.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from klaw_core import Closing, StoreLockedError
from klaw_store_sqlitevec.cache_transfer import salvage_cache
from klaw_store_sqlitevec.connections import back_up, create_privately
from klaw_store_sqlitevec.salvage import PAGE_BYTES, DatabaseFile

if TYPE_CHECKING:
    from klaw_store_sqlitevec.transaction import SqliteTransaction

# Parts of the header that are the same in every database that Klaw creates, by offset: the magic string, the page size
# and the constants after it; the format of the schema; no auto-vacuum, and UTF-8.
_HEADER = {
    0: b"SQLite format 3\0" + PAGE_BYTES.to_bytes(2, "big") + bytes([2, 2, 0, 64, 32, 32]),
    44: bytes([0, 0, 0, 4]),
    52: bytes([0, 0, 0, 0, 0, 0, 0, 1]),
    64: bytes([0, 0, 0, 0]),
}


@contextmanager
def what_is_left(database: Path) -> Iterator[apsw.Connection | None]:
    """Open a damaged database that was set aside; yield None if SQLite cannot read its schema.

    A damaged header is repaired first.
    """
    with ExitStack() as stack:
        connection = _readable(database, stack)
        if connection is None and database.is_file():
            _repair_header(database)
            connection = _readable(database, stack)
        yield connection


def _readable(database: Path, stack: ExitStack) -> apsw.Connection | None:
    with suppress(apsw.Error):
        connection = stack.enter_context(_Opened(database))
        connection.execute("SELECT name FROM sqlite_schema").fetchall()
        return connection
    return None


def salvage(transaction: SqliteTransaction, database: Path, rebuild: Path) -> list[str]:
    """Copy what only a damaged database has, and can be read; return what to tell.

    The files of an interrupted rebuild may have vectors too.
    """
    with what_is_left(database) as old:
        salvage_cache(transaction, database, old)
    salvage_cache(transaction, rebuild, None)
    count = int(transaction.resource.execute("SELECT COUNT(*) FROM embedding_cache").get)
    return [f"{count:,} cached vectors were copied from it"] if count else []


def overwrite(database: Path, source: apsw.Connection, busy_timeout_ms: int) -> None:
    """Replace the content of a database, or of a file that is none, by that of another database.

    Raise StoreLockedError if another program has it open and cannot go on with it, apsw.Error.
    """
    create_privately(database)
    with suppress(apsw.CorruptError, apsw.NotADBError, apsw.ReadOnlyError):  # ReadOnlyError: of another page size
        with _Opened(database, busy_timeout_ms) as target:
            target.pragma("journal_mode", "wal")
            back_up(source, target)
        return
    with _Opened(database, busy_timeout_ms) as target:
        _ignore_content(target)
        try:
            back_up(source, target)
        except apsw.BusyError as error:
            raise StoreLockedError(
                f"{database} is damaged, and another program has it open",
                hint="end the programs that use it (klaw serve, watch, mcp), then `klaw reindex`",
            ) from error


class _Opened(Closing[apsw.Connection]):
    """A database of which pages may be missing at the end (https://sqlite.org/pragma.html#pragma_writable_schema)."""

    __slots__ = ("_busy_timeout_ms",)

    def __init__(self, database: Path, busy_timeout_ms: int = 0) -> None:
        super().__init__(partial(apsw.Connection, str(database), flags=apsw.SQLITE_OPEN_READWRITE))
        self._busy_timeout_ms = busy_timeout_ms

    def take(self) -> apsw.Connection:
        """Open it."""
        connection = super().take()
        connection.set_busy_timeout(self._busy_timeout_ms)
        connection.execute("PRAGMA writable_schema = ON")
        return connection

    def close(self, made: apsw.Connection) -> None:
        """Close it; errors are ignored."""
        with suppress(apsw.Error):
            made.close(True)  # also its cursors


def _ignore_content(connection: apsw.Connection) -> None:
    """Treat the file as an empty database (https://sqlite.org/c3ref/c_dbconfig_defensive.html, RESET_DATABASE)."""
    connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    with suppress(apsw.Error):
        connection.execute("SELECT name FROM sqlite_schema").fetchall()


def _repair_header(database: Path) -> None:
    """Write the constant parts of the header."""
    with DatabaseFile(database, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB) as file:
        for offset, content in _HEADER.items():
            file.xWrite(content, offset)
        file.xSync(apsw.SQLITE_SYNC_FULL)
