"""Connections to the file: private, configured for durability, and used by one thread at a time."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

import apsw

from klaw_core import Closing, Descriptor, Hold, StoreError, ThreadLock
from klaw_store_sqlitevec.errors import damaged, store_errors
from klaw_store_sqlitevec.forking import InsideSqlite
from klaw_store_sqlitevec.read_only import may_be_written, open_for_reading, refuse_changes
from klaw_store_sqlitevec.rebuild_lock import RebuildLock
from klaw_store_sqlitevec.schema import OLDEST_SQLITE

_JOURNAL_LIMIT_BYTES = 64 * 1024 * 1024
_CACHE_KIB = 16 * 1024
# Milliseconds that emptying the log waits for readers of older snapshots.
_EMPTYING_MS = 1000
_RETRY_SECONDS = 0.01
# How fast a slow disk is read: a writer waits so long for another process that clears unused space.
_CLEARED_BYTES_A_SECOND = 20 * 1024 * 1024
_LOG_BYTES = 256 * 1024
#: The errors of the operating system that mean a full disk or quota.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Connections:
    """One writer, and a reader for each thread that reads at the same time. Readers are reused.

    ``prepare`` is called with every new connection.
    """

    def __init__(self, path: Path, *, busy_timeout_seconds: float, prepare: Callable[[apsw.Connection], None]) -> None:
        self._path = path
        self._busy_timeout_ms = round(busy_timeout_seconds * 1000)
        self._prepare = prepare
        self._idle: list[apsw.Connection] = []
        self._writer: apsw.Connection | None = None
        # What the writing connection has seen and written when the unused space was last cleared.
        self._cleared: tuple[int, ...] = ()
        self._writing = ThreadLock(str(path))
        self._process = os.getpid()
        self._closed = False
        # Device and inode of the file, once it was opened.
        self._file: tuple[int, int] | None = None

    @contextmanager
    def reader(self) -> Iterator[apsw.Connection]:
        """Yield a connection in a read transaction: everything read in the block is one snapshot."""
        self._check_usable()
        # A reused connection was opened for writing, so SQLite notices all changes of what it reads.
        unchanged = nullcontext() if self._idle else refuse_changes(self._path)
        with InsideSqlite(), store_errors(str(self._path)), unchanged, _Lent(self) as connection:
            connection.execute("BEGIN")
            # A deferred transaction takes its snapshot on the first read.
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
            yield connection

    @contextmanager
    def writer(self) -> Iterator[apsw.Connection]:
        """Yield the writing connection in an immediate transaction; commit at the end, roll back on any error.

        apsw's ``with connection`` is not used, because it holds the GIL while it waits for the lock, and replaces the
        error of a full disk by that of its rollback.
        """
        self._check_usable()
        with self._writing.hold(), InsideSqlite(), store_errors(str(self._path)):
            if self._writer is not None and self._writer.in_transaction:
                raise StoreError(f"{self._path}: a transaction was started inside another one")
            with RebuildLock(self._path), self._transaction() as connection:
                yield connection

    @contextmanager
    def overwriter(self) -> Iterator[apsw.Connection]:
        """Yield the writing connection outside any transaction, as the target of SQLite's backup."""
        self._check_usable()
        with (
            self._writing.hold(),
            InsideSqlite(),
            store_errors(str(self._path)),
            Writing(self) as connection,
            full_disks(connection),
        ):
            yield connection

    def is_clear(self, connection: apsw.Connection) -> bool:
        """Return whether nobody has changed anything since the unused space was cleared, in a transaction to write."""
        return self._cleared == (*_seen(connection), *_written(connection))

    def erase(self, *, wait: bool = True) -> None:
        """Move everything from the log into the file, and clear its unused space if that is due.

        If readers of older snapshots prevent it for too long (without ``wait``, at all), it stays due.
        """
        limit = min(_EMPTYING_MS, self._busy_timeout_ms) / 1000 if wait else 0.0
        deadline = time.monotonic() + limit
        with self.overwriter() as connection:
            while not self._erase(connection) and time.monotonic() < deadline:
                time.sleep(_RETRY_SECONDS)

    def _erase(self, connection: apsw.Connection) -> bool:
        """Erase once; return whether nobody prevented it."""
        if not _empty_log(connection):
            return False
        # This connection must not write again what it keeps of the pages. The others keep none after its commit. The
        # first page, which every transaction reads, has only rows of the schema.
        connection.execute("PRAGMA shrink_memory")
        connection.set_busy_timeout(self._busy_timeout_ms)
        with suppress(apsw.BusyError):
            connection.execute("BEGIN IMMEDIATE")
        if not connection.in_transaction or Path(f"{self._path}-wal").stat().st_size:
            _is_at_rest(connection)
            return False  # somebody has written after the log was emptied
        seen: tuple[int, ...] = ()
        if is_erasing_due(connection):
            from klaw_store_sqlitevec.unused_space import clear_unused_space

            clear_unused_space(self._path)
            make_erasing_due(connection, due=False)
            seen = _seen(connection)  # after the commit, another process may write
        connection.execute("COMMIT")
        if seen:
            self._cleared = *seen, *_written(connection)
        return _empty_log(connection)

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        with Writing(self) as connection:
            self.patiently(connection, partial(connection.execute, "BEGIN IMMEDIATE"))
            with full_disks(connection):
                yield connection
                connection.execute("COMMIT")

    def patiently(self, connection: apsw.Connection, write: Callable[[], object]) -> None:
        """Begin to write. Wait longer while the unused space of a large file is cleared, as its header says."""
        deadline = time.monotonic() + self._path.stat().st_size / _CLEARED_BYTES_A_SECOND
        while True:
            try:
                write()
            except apsw.BusyError:
                if time.monotonic() >= deadline or not is_erasing_due(connection):
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return

    def take_idle(self) -> apsw.Connection:
        """Return a connection for reading."""
        with suppress(IndexError):
            return self._idle.pop()
        return self._open()

    def put_back(self, taken: list[apsw.Connection]) -> None:
        """Empty the list: keep its connection for the next reader, unless it is read-only or cannot be reused."""
        if not _is_at_rest(taken[0]) or taken[0].readonly("main"):  # it may have been opened as immutable
            _close(taken[0])
            taken.clear()
        else:
            self._idle.append(taken.pop())
            if self._closed:
                self._close_idle()

    def put_writer_back(self, connection: apsw.Connection) -> None:
        """End what the writing connection does; close it if it cannot be reused."""
        if _is_at_rest(connection):
            connection.set_busy_timeout(self._busy_timeout_ms)
        else:
            if self._writer is connection:
                self._writer = None
            _close(connection)

    def open_writer(self) -> apsw.Connection:
        """Return the writing connection. Check that it can write, because SQLite would still begin a transaction."""
        if self._writer is None:
            connection = self._open()
            if connection.readonly("main"):
                _close(connection)
                if may_be_written(self._path):
                    raise damaged(str(self._path), "has a damaged header: it may not be written")
                raise apsw.ReadOnlyError("it is read-only")
            self._writer, self._cleared = connection, ()
        return self._writer

    def renew(self) -> None:
        """Close idle connections, so that new ones are opened and prepared."""
        with self._writing.hold(), InsideSqlite():
            self._close_all()

    def close(self) -> None:
        """Close all connections, those in use when they are returned. A forked child leaves its parent's alone."""
        self._closed = True
        if self._process == os.getpid():
            with self._writing.hold(), InsideSqlite():
                self._close_all()

    def _close_idle(self) -> None:
        with suppress(IndexError):  # another thread may take the last one
            while self._idle:
                _close(self._idle.pop())

    def _close_all(self) -> None:
        self._close_idle()
        if self._writer is not None:
            _close(self._writer)
            self._writer = None

    def _open(self) -> apsw.Connection:
        connection = self._open_for_writing() if may_be_written(self._path) else open_for_reading(self._path)
        try:
            self._configure(connection)
        except BaseException:
            _close(connection)
            raise
        return connection

    def _configure(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(self._busy_timeout_ms)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        if not connection.readonly("main"):
            self._enter_wal(connection)
            # FULL, because after a power cut NORMAL may lose the last acknowledged commits.
            connection.pragma("synchronous", "full")
            connection.pragma("secure_delete", "on")
            connection.pragma("journal_size_limit", _JOURNAL_LIMIT_BYTES)
        connection.pragma("foreign_keys", "on")
        connection.pragma("temp_store", "memory")
        connection.pragma("cache_size", -_CACHE_KIB)
        self._prepare(connection)
        if self._file is None:
            self._file = _identity(self._path)

    def _open_for_writing(self) -> apsw.Connection:
        create_privately(self._path)
        return apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)

    def _enter_wal(self, connection: apsw.Connection) -> None:
        """Switch to write-ahead mode; wait here while others do the same to a new file, because SQLite does not."""
        deadline = time.monotonic() + self._busy_timeout_ms / 1000
        while True:
            try:
                connection.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreError(f"{self._path} is closed")
        if self._process != os.getpid():
            raise StoreError(
                f"{self._path} was opened by process {self._process}, this is process {os.getpid()}",
                hint="open a new Memory after the fork",
            )
        # SQLite would go on with the old file, which nobody else reads or writes any more.
        if self._file is not None and _identity(self._path) != self._file:
            raise StoreError(
                f"{self._path} was moved, deleted or replaced while it was open",
                hint="close this memory and open it again; `klaw index` fills a new file from yours",
            )


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file; None if it does not exist, or nothing can be known about it."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def create_privately(path: Path) -> None:
    """Create the file, because SQLite gives the log and shared memory the same permissions. Raise CantOpenError."""
    if not path.exists():
        try:
            with Descriptor(path, os.O_RDWR | os.O_CREAT):
                pass
        except OSError as error:
            raise apsw.CantOpenError(error.strerror) from error


@contextmanager
def full_disks(*connections: apsw.Connection) -> Iterator[None]:
    """Raise FullError for other errors that mean a full disk, because SQLite recognises only ENOSPC as one."""
    try:
        yield
    except apsw.IOError as error:
        if any(connection.system_errno in NO_SPACE for connection in connections):
            raise apsw.FullError(str(error)) from error
        raise


@contextmanager
def lacking_room(path: Path, source: Path) -> Iterator[None]:
    """Raise FullError for an unspecific I/O error if ``source`` does not fit next to ``path``."""
    try:
        yield
    except apsw.IOError as error:
        # Each page in the log has a header, and the log may already have content.
        if not _has_room(path.parent, source.stat().st_size * 21 // 20 + _LOG_BYTES):
            raise apsw.FullError(str(error)) from error
        raise


def _has_room(directory: Path, size: int) -> bool:
    """Return whether a file of this size can be created, within disk and quota."""
    from tempfile import TemporaryFile

    try:
        with TemporaryFile(dir=directory) as file:
            if sys.platform == "linux":  # elsewhere there is no such call
                os.posix_fallocate(file.fileno(), 0, max(size, 1))
    except OSError as error:
        return error.errno not in NO_SPACE
    return True


def back_up(source: apsw.Connection, target: apsw.Connection) -> None:
    """Replace all content of a database by that of another one, in one transaction."""
    with _Backup(partial(target.backup, "main", source, "main")) as backup:
        backup.step(-1)  # all pages at once, because a backup in steps restarts at every change
        backup.finish()


class _Backup(Closing[apsw.Backup]):
    """A backup, which ends with the block."""

    __slots__ = ()

    def close(self, made: apsw.Backup) -> None:
        """Close it."""
        with suppress(SystemError):  # if the file still fails, it would hide the original error
            made.close(force=True)


class _Lent(Hold[apsw.Connection]):
    """A connection for reading, which is put back at the end of the block."""

    __slots__ = ("_of", "_taken")

    def __init__(self, of: Connections) -> None:
        self._of = of
        self._taken: list[apsw.Connection] = []

    def take(self) -> apsw.Connection:
        self._taken.append(self._of.take_idle())
        return self._taken[0]

    def give_back(self) -> None:
        if self._taken:
            self._of.put_back(self._taken)


class Writing(Hold[apsw.Connection]):
    """The writing connection; its transaction ends with the block."""

    __slots__ = ("_of", "_taken")

    def __init__(self, of: Connections) -> None:
        self._of = of
        self._taken: list[apsw.Connection] = []

    def take(self) -> apsw.Connection:
        """Take the connection."""
        self._taken.append(self._of.open_writer())
        return self._taken[0]

    def give_back(self) -> None:
        """End the transaction, and put the connection back."""
        for connection in self._taken:
            self._of.put_writer_back(connection)
        self._taken.clear()


def _is_at_rest(connection: apsw.Connection) -> bool:
    """End the transaction; return whether nothing is left of it.

    An exception that somebody keeps may keep a cursor that is not read to its end, and so an old snapshot.
    """
    try:
        if connection.in_transaction:  # otherwise SQLite has ended it (a full disk, an I/O error)
            connection.execute("ROLLBACK")
        return connection.txn_state() == apsw.SQLITE_TXN_NONE
    except apsw.Error:
        return False


def _close(connection: apsw.Connection) -> None:
    """Close a connection. On a full disk, content that cannot be copied from the log stays in the log."""
    with suppress(apsw.Error):
        connection.close(True)  # also its cursors


def _empty_log(connection: apsw.Connection) -> bool:
    """Move everything from the log into the file, and return whether no reader of an older snapshot prevents it."""
    connection.set_busy_timeout(0)  # waiting inside SQLite would hold its write lock
    return not next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))[0]  # the column "busy"


def is_erasing_due(connection: apsw.Connection) -> bool:
    """Return whether something was forgotten since the unused space was last cleared."""
    return bool(connection.pragma("user_version"))


def make_erasing_due(connection: apsw.Connection, *, due: bool = True) -> None:
    """Record it in the header of the file, within a transaction, so that it is done even after a crash."""
    connection.pragma("user_version", int(due))


def _seen(connection: apsw.Connection) -> tuple[int, ...]:
    """Return numbers that differ after any commit of another connection, in this process or another one."""
    return (connection.pragma("data_version"),)


def _written(connection: apsw.Connection) -> tuple[int, ...]:
    """Return numbers that differ after any commit of this connection, and after any change in its transaction."""
    pages = connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)[0]
    return pages, connection.total_changes(), connection.pragma("schema_version")


def check_version() -> None:
    """Raise StoreError if this SQLite is too old to write safely."""
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        from klaw_core import update_command

        oldest = ".".join(map(str, OLDEST_SQLITE))
        message = f"apsw contains SQLite {version}; at least {oldest} is needed"
        raise StoreError(message, hint=update_command("apsw"))
