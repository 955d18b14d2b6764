"""The store: the file, its migrations, and who may read and write when."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import apsw

from klaw_core import Index, Snapshot, Transaction
from klaw_store_sqlitevec.connections import Connections, check_version
from klaw_store_sqlitevec.schema import MIGRATIONS, OWNER, Owned, check_file, migrate, pending
from klaw_store_sqlitevec.snapshot import SqliteSnapshot
from klaw_store_sqlitevec.transaction import SqliteTransaction


class SqliteStore:
    """Everything in one SQLite file.

    Readers see one snapshot each and never wait; writers follow one another. A commit is on the disk when
    it returns. Raise StoreError if the file cannot be used.
    """

    offers = apsw.Connection

    def __init__(self, path: Path, *, busy_timeout_seconds: float = 5.0) -> None:
        check_version()
        self._path = path
        self._indexes: list[Index[apsw.Connection]] = []
        self._connections = Connections(path, busy_timeout_seconds=busy_timeout_seconds, prepare=self._prepare)
        self._migrate(Owned(OWNER, MIGRATIONS))

    @property
    def location(self) -> str:
        """The path of the file."""
        return str(self._path)

    def enlist(self, owner: str, index: Index[apsw.Connection], /) -> None:
        """Let an index join: prepare every connection for it and apply its migrations under ``owner``."""
        self._connections.renew()
        self._indexes.append(index)
        try:
            self._migrate(Owned(owner, tuple(index.migrations())))
        except BaseException:
            self._indexes.remove(index)
            raise

    @contextmanager
    def read(self) -> Iterator[Snapshot[apsw.Connection]]:
        """Open a snapshot."""
        with self._connections.reader() as connection:
            yield SqliteSnapshot(connection)

    @contextmanager
    def write(self) -> Iterator[Transaction[apsw.Connection]]:
        """Begin a transaction; commit at the end of the block, roll back if it raises."""
        with self._connections.writer() as connection:
            yield SqliteTransaction(connection)

    def statistics(self) -> Mapping[str, int | str]:
        """Return the sizes of file, log and cache in bytes, and the version of SQLite."""
        log = Path(f"{self._path}-wal")
        with self.read() as snapshot:
            sql = "SELECT COUNT(*), COALESCE(SUM(LENGTH(vector)), 0) FROM embedding_cache"
            entries, size = snapshot.resource.execute(sql).get
        return {
            "database_bytes": self._path.stat().st_size,
            "log_bytes": log.stat().st_size if log.exists() else 0,
            "cached_vectors": entries,
            "cache_bytes": size,
            "sqlite_version": apsw.sqlite_lib_version(),
        }

    def close(self) -> None:
        """Close every connection; closing twice is allowed."""
        self._connections.close()

    def _prepare(self, connection: apsw.Connection) -> None:
        for index in self._indexes:
            index.prepare(connection)

    def _migrate(self, owned: Owned) -> None:
        """Bring the schema up to date; a file that is needs no write."""
        with self._connections.reader() as connection:
            if connection.pragma("application_id") and not pending(connection, owned, self.location):
                check_file(connection, self.location)
                return
        with self._connections.writer() as connection:
            check_file(connection, self.location)
            migrate(connection, owned, self.location)
