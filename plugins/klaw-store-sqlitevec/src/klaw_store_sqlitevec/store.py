"""The store: the file, its migrations, its readers and writers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from klaw_core import (
    Closing,
    DatabaseCorruptError,
    Hold,
    RepairableStore,
    StoreError,
    StoreLockedError,
    StoreReadOnlyError,
    own_directory,
    quoted,
    require_own_link,
    sync_directory,
)
from klaw_store_sqlitevec.cache import cache_statistics
from klaw_store_sqlitevec.connections import (
    Connections,
    back_up,
    check_version,
    is_erasing_due,
    lacking_room,
    make_erasing_due,
)
from klaw_store_sqlitevec.erasing import ErasingOnce, Forgetting
from klaw_store_sqlitevec.errors import damaged, store_errors
from klaw_store_sqlitevec.forking import InsideSqlite
from klaw_store_sqlitevec.links import resolved
from klaw_store_sqlitevec.rebuild_lock import SIDE_FILES, RebuildLock, others
from klaw_store_sqlitevec.schema import (
    MIGRATIONS,
    OWNER,
    ForeignFileError,
    OwnedMigrations,
    check_file,
    migrate,
    pending,
)
from klaw_store_sqlitevec.snapshot import SqliteSnapshot

if TYPE_CHECKING:
    from klaw_core import Finding, Index, Snapshot, Store, Transaction

# Seconds that a lock is waited for: a run may embed that long.
_LOCK_SECONDS = 3600.0
# Suffix of the file in which the database is rebuilt.
_REBUILD_SUFFIX = ".rebuild"
# Suffix of the file that replaces the content of a damaged database.
_FRESH_SUFFIX = ".fresh"
_LOCK_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")
# The places of these locks must not change, because other versions of Klaw may be running.
_OLDER_LOCKS = {"embedding": "embedding.lock", "embedding-moving": "embedding.lock/moving"}


class SqliteStore(RepairableStore):
    """Everything in one SQLite file.

    Each reader sees one snapshot and never waits; writers wait for each other. A commit is on the disk when it returns.
    With ``compress``, the texts of new chunks are compressed; both forms can be read. With ``replace_damaged``, a file
    that turns out to be damaged when a migration is looked for or applied is replaced. Raise StoreError if the file
    cannot be used.
    """

    offers = apsw.Connection
    #: A database belongs to one data directory, which belongs to one agent.
    isolates = True

    def __init__(
        self, path: Path, *, busy_timeout_seconds: float = 5.0, compress: bool = False, replace_damaged: bool = False
    ) -> None:
        check_version()
        with store_errors(str(path)):
            _refuse_planted(path)
        self._path = path = resolved(path)
        self._busy_timeout_seconds = busy_timeout_seconds
        self._compress = compress
        self._replaces_damaged = replace_damaged
        self._replaced: tuple[str, ...] = ()
        self._indexes: dict[str, Index[apsw.Connection]] = {}
        self._forgetting = Forgetting()
        self._connections = Connections(path, busy_timeout_seconds=busy_timeout_seconds, prepare=self._prepare)
        try:
            self._migrate(OwnedMigrations(OWNER, MIGRATIONS))
        except BaseException:
            self.close()
            raise

    @property
    def location(self) -> str:
        """The path of the file."""
        return str(self._path)

    @property
    def erases_later(self) -> str:
        """Something while a program reads an older snapshot, because the log has what was forgotten, too."""
        with self._connections.reader() as connection:
            is_due = is_erasing_due(connection)
        return "at the next change after another program has finished reading an older state" if is_due else ""

    def enlist(self, owner: str, index: Index[apsw.Connection], /) -> None:
        """Register an index: prepare every connection for it, and apply its migrations under ``owner``."""
        self._connections.renew()
        self._indexes[owner] = index
        try:
            self._migrate(OwnedMigrations(owner, tuple(index.migrations())))
        except BaseException:
            del self._indexes[owner]
            raise

    def lock(self, name: str, /, on_wait: Callable[[], None] = lambda: None) -> AbstractContextManager[None]:
        """Hold the lock of this name, a directory next to the database, during a block. Raise StoreError."""
        if not _LOCK_NAME.fullmatch(name):
            raise StoreError(f"invalid lock name: {quoted(name)}", hint="use a-z, 0-9 and hyphens")
        from klaw_core import locked

        names = _OLDER_LOCKS.get(name, f"locks/{name}").split("/")
        return locked(own_directory(self._path.parent, *names), on_wait, limit_seconds=_LOCK_SECONDS)

    @contextmanager
    def read(self) -> Iterator[Snapshot[apsw.Connection]]:
        """Open a snapshot."""
        with self._connections.reader() as connection:
            yield SqliteSnapshot(connection)

    @contextmanager
    def write(self) -> Iterator[Transaction[apsw.Connection]]:
        """Begin a transaction; commit at the end of the block, roll back if it raises.

        Forgotten texts are also erased from the bytes of the files. While another program reads an older snapshot, they
        stay in the log until that program has finished and the log is emptied again.
        """
        from klaw_store_sqlitevec.transaction import SqliteTransaction  # a search needs none

        with self._connections.writer() as connection:
            transaction = SqliteTransaction(connection, compress=self._compress)
            yield transaction
            if transaction.erasing:
                self._remove_leftovers()  # no rebuild can be running during this transaction
            erases = bool(transaction.erasing) and not self._connections.is_clear(connection)
            if erases:
                make_erasing_due(connection)
            is_due = is_erasing_due(connection)
        if self._forgetting.blocks:
            self._forgetting.blocks[0].is_due |= erases
        elif erases:
            self._connections.erase()
        elif is_due:
            with suppress(StoreError):  # of an earlier forgetting, and not of this change
                self._connections.erase(wait=False)

    def erasing_once(self) -> Hold[None]:
        """Erase at the end of the block what this thread forgets in several transactions: each time, all is read."""
        return ErasingOnce(self._forgetting, self._connections.erase)

    @contextmanager
    def rebuild(self) -> Iterator[Store[apsw.Connection]]:
        """Yield a store that atomically replaces this one at the end of the block.

        It starts with this store's cached vectors, and keeps those that its chunks need and those of spaces without a
        collection. Readers continue, and see the new content in their next snapshot; writers get StoreLockedError. If
        the block raises or the process dies, this store is unchanged, and the next attempt continues the rebuild,
        unless a model has changed under its name since, or the file of the rebuild cannot be read.
        """
        from klaw_store_sqlitevec.cache_pruning import prune_cache, used_spaces
        from klaw_store_sqlitevec.cache_transfer import copy_cache, copy_counts
        from klaw_store_sqlitevec.transaction import SqliteTransaction

        with RebuildLock(self._path, exclusive=True, wait_seconds=self._busy_timeout_seconds):
            self._discard_outdated()
            with Closing(self._open_rebuild) as fresh:
                writer = fresh._connections.writer  # noqa: SLF001  # a store of the same class
                with self.read() as snapshot, writer() as connection:
                    copy_cache(SqliteTransaction(connection), snapshot.resource, self.location)
                    copy_counts(SqliteTransaction(connection), snapshot.resource, self.location)
                yield fresh
                with self.read() as snapshot:
                    left = used_spaces(SqliteSnapshot(snapshot.resource))
                with writer() as connection:
                    prune_cache(SqliteTransaction(connection), left)
                    make_erasing_due(connection)  # the mark is copied with the content
                self._replace_content(fresh)
            _remove_databases(self._rebuild_path)
            with suppress(apsw.Error):  # a full disk: the content is replaced, and the log is emptied later
                self._connections.erase()  # the file still has the old pages, and what was forgotten in them

    def tidy(self) -> None:
        """Take over the vectors of an interrupted rebuild, and remove it: what it contains may have been forgotten.

        Complete an interrupted forgetting. Raise StoreError, StoreLockedError if the rebuild is running.
        """
        if self._leftovers():
            self._take_over_rebuild()
        elif not self.erases_later:
            return
        self._connections.erase()

    def _take_over_rebuild(self) -> None:
        from klaw_store_sqlitevec.cache_transfer import has_other_weights, sample_weights, take_over_cache
        from klaw_store_sqlitevec.transaction import SqliteTransaction

        with self._connections.writer() as connection:  # no rebuild can be running during this transaction
            transaction = SqliteTransaction(connection)
            with (
                suppress(DatabaseCorruptError, ForeignFileError),
                Closing(self._open_rebuild) as left,
                left.read() as snapshot,
            ):
                if not has_other_weights(SqliteSnapshot(snapshot.resource), sample_weights(transaction)):
                    take_over_cache(transaction, SqliteSnapshot(snapshot.resource), left.location)
            make_erasing_due(connection)
            self._remove_others()

    def is_damaged(self) -> bool:
        """Let SQLite check every page and reference."""
        from klaw_store_sqlitevec.checking import check_rows

        try:
            with self.read() as snapshot:
                return any(check_rows(snapshot.resource, self.location))
        except DatabaseCorruptError:
            return True

    @property
    def replaced(self) -> Sequence[str]:
        """What :meth:`replace_damaged` has said when the store was built."""
        return self._replaced

    def replace_damaged(self) -> Sequence[str]:
        """Set a copy of the damaged file aside, and replace its content by empty tables with what only it had."""
        from klaw_store_sqlitevec.copies import move_others

        moved = move_others(self._path)
        with RebuildLock(self._path, exclusive=True, wait_seconds=self._busy_timeout_seconds), InsideSqlite():
            self._connections.renew()
            return [*moved, *self._begin_again()]

    def _begin_again(self) -> Sequence[str]:
        from klaw_store_sqlitevec.copies import set_aside
        from klaw_store_sqlitevec.replacing import overwrite, salvage
        from klaw_store_sqlitevec.transaction import SqliteTransaction

        copy = set_aside(self._path)
        _remove_databases(self._fresh_path)
        with store_errors(self.location), Closing(partial(self._open_beside, self._fresh_path)) as fresh:
            with fresh._connections.writer() as connection:  # noqa: SLF001  # a store of the same class
                notices = salvage(SqliteTransaction(connection), self._path, self._rebuild_path)
            fresh._connections.erase()  # noqa: SLF001
            source = fresh._connections.overwriter()  # noqa: SLF001
            with source as connection, lacking_room(self._path, self._fresh_path):
                overwrite(self._path, connection, round(self._busy_timeout_seconds * 1000))
        self._remove_others()
        with suppress(apsw.Error, StoreError):
            self._connections.erase()
        return [f"{self._path} was damaged; {copy} is a copy of it", *notices] if copy is not None else notices

    def _discard_outdated(self) -> None:
        """Remove the files of an interrupted rebuild that cannot be continued.

        That is the case if its vectors come from other weights than those cached here, if it is damaged, or if a newer
        version has written it. Raise StoreError, and remove nothing, if this store is damaged, or if one of them cannot
        be read at the moment.
        """
        from klaw_store_sqlitevec.cache_transfer import has_other_weights, sample_weights

        if not self._rebuild_path.exists():
            return
        with self.read() as snapshot:  # before the `try`, because damage here does not concern the rebuild
            sample = sample_weights(SqliteSnapshot(snapshot.resource))
        try:
            with Closing(self._open_rebuild) as left, left.read() as snapshot:
                outdated = has_other_weights(SqliteSnapshot(snapshot.resource), sample)
        except (DatabaseCorruptError, ForeignFileError):
            outdated = True
        if outdated:
            _remove_databases(self._rebuild_path)

    def _open_rebuild(self) -> SqliteStore:
        """Open the store for a rebuild, new or left by an earlier one."""
        return self._open_beside(self._rebuild_path)

    def _open_beside(self, path: Path) -> SqliteStore:
        """Open another store with the same indexes."""
        fresh = SqliteStore(path, busy_timeout_seconds=self._busy_timeout_seconds, compress=self._compress)
        try:
            for owner, index in self._indexes.items():
                fresh.enlist(owner, index)
        except BaseException:
            fresh.close()
            raise
        return fresh

    def _replace_content(self, other: SqliteStore) -> None:
        """Replace all content by that of the other store, in one transaction of SQLite's online backup."""
        with (
            self._connections.overwriter() as target,
            other._connections.overwriter() as source,  # a store of the same class
            store_errors(self.location),  # an error of a backup contains neither the file nor the system's error
            lacking_room(self._path, other._path),
        ):
            self._connections.patiently(target, partial(back_up, source, target))

    def statistics(self) -> Mapping[str, int | str]:
        """Return the sizes of file, log and cache in bytes, the cache's hit rate, and the version of SQLite."""
        with self.read() as snapshot:
            cache = cache_statistics(snapshot.resource)
        return {
            "database_bytes": _size(self._path),
            "log_bytes": _size(Path(f"{self._path}-wal")),
            **cache,
            "sqlite_version": apsw.sqlite_lib_version(),
        }

    def check(self, *, fix: bool = False) -> Sequence[Finding]:
        """Return the problems of files, rows and locks; with ``fix``, first repair what is safe to repair.

        It repairs permissions, files left by an interrupted rebuild, a log that was not checkpointed, the words of
        messages, and damaged cached vectors (they are computed again). Every page is read.
        """
        from klaw_store_sqlitevec import checking

        problem = self._writing_problem()
        if fix and problem is None:
            self._fix_files()
        findings = [*checking.check_modes(self._path, fix=fix), *checking.check_space(self._path)]
        findings += [*checking.check_log(self._path), *checking.check_copies(self._path)]
        if problem is None:
            findings += checking.check_leftovers(self._path, self._leftovers())
            with suppress(StoreLockedError), self._connections.writer() as connection:
                findings += checking.check_messages(connection, self.location)
        else:
            findings.append(problem)
        with self.read() as snapshot:
            findings += checking.check_rows(snapshot.resource, self.location)
            if not any(finding.check == "integrity" for finding in findings):
                findings += checking.check_cache(snapshot.resource, self.location)
                findings += checking.check_chunks(SqliteSnapshot(snapshot.resource), self.location)
        return findings

    def _writing_problem(self) -> Finding | None:
        """Return why this process cannot write now: another process writes, or the file is read-only."""
        from klaw_core import Finding

        try:
            with self._connections.writer():
                return None
        except StoreLockedError as error:
            return Finding("lock", "note", error.message, self.location, error.hint)
        except StoreError as error:
            return Finding("writing", "error", error.message, self.location, error.hint)

    def _fix_files(self) -> None:
        from klaw_store_sqlitevec.checking import bad_cache_rows, check_messages, renew_damaged
        from klaw_store_sqlitevec.conversations import refill_words

        with suppress(StoreError):
            if self._leftovers():
                with RebuildLock(self._path, exclusive=True):  # so that no other process uses them
                    self._remove_others()
            with self._connections.writer() as connection:
                make_erasing_due(connection)  # versions that did not clear it may have left something
                renew_damaged(SqliteSnapshot(connection))
                bad = bad_cache_rows(connection)
                connection.executemany("DELETE FROM embedding_cache WHERE id = ?", ((key,) for key in bad))
                if any(check_messages(connection, self.location)):
                    refill_words(connection)
            self._connections.erase()

    def _leftovers(self) -> list[Path]:
        names = itertools.product((self._rebuild_path, self._fresh_path), SIDE_FILES)
        return [path for path in (Path(f"{path}{suffix}") for path, suffix in names) if path.exists()]

    def _remove_leftovers(self) -> None:
        """Remove what may contain forgotten texts: the files of interrupted rebuilds, and copies of damaged files."""
        from klaw_store_sqlitevec.copies import remove_copies

        remove_copies(self._path)
        self._remove_others()  # the last, because it makes both durable

    def _remove_others(self) -> None:
        """Remove the files of a rebuild and of a replacement."""
        _remove_databases(self._rebuild_path, self._fresh_path)

    @property
    def _rebuild_path(self) -> Path:
        return Path(f"{self._path}{_REBUILD_SUFFIX}")

    @property
    def _fresh_path(self) -> Path:
        return Path(f"{self._path}{_FRESH_SUFFIX}")

    def close(self) -> None:
        """Close every connection; closing twice is allowed."""
        self._connections.close()

    def _prepare(self, connection: apsw.Connection) -> None:
        for index in self._indexes.values():
            index.prepare(connection)

    def _migrate(self, owned: OwnedMigrations) -> None:
        """Apply pending migrations. A damaged file is replaced before that, if it may be."""
        try:
            self._apply(owned)
        except DatabaseCorruptError:
            if not self._replaces_damaged:
                raise
            self._replaced += tuple(self.replace_damaged())
            self._apply(owned)

    def _apply(self, owned: OwnedMigrations) -> None:
        """Apply pending migrations. An up-to-date file is not written."""
        for path in others(self._path):
            raise damaged(self.location, f"cannot be used: {path.name} is not a regular file")
        with self._connections.reader() as connection:
            made = bool(connection.pragma("application_id"))
            if made and not pending(connection, owned, self.location):
                check_file(connection, self.location)
                return
        try:
            with self._connections.writer() as connection:
                check_file(connection, self.location)
                migrate(connection, owned, self.location)
        except StoreReadOnlyError as error:
            if not made:
                raise
            raise StoreReadOnlyError(
                f"{self.location} lacks tables of this version or configuration, and cannot be written here",
                hint="open it once with this configuration where it can be written, e.g. with `klaw status`",
            ) from error


def _refuse_planted(path: Path) -> None:
    """Raise CantOpenError if the database, or a file next to it, is a link that another user may have created."""
    try:
        for suffix in SIDE_FILES:
            require_own_link(Path(f"{path}{suffix}"))
    except OSError as error:
        raise apsw.CantOpenError(error.strerror) from error


def _remove_databases(*paths: Path) -> None:
    """Remove databases and the files next to them. It is durable, even if an earlier call was killed before it was.

    Raise StoreReadOnlyError.
    """
    for path, suffix in itertools.product(paths, SIDE_FILES):
        file = Path(f"{path}{suffix}")
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise StoreReadOnlyError(f"{file} cannot be removed: {error.strerror}", hint="move it away") from error
    sync_directory(paths[0].parent)


def _size(path: Path) -> int:
    """Return the size of a file; 0 if it does not exist, or not any more."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
