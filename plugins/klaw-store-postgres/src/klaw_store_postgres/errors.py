"""PostgreSQL's errors as Klaw's, each with the server it concerns and what fixes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import psycopg_pool
from psycopg import errors

from klaw_core import (
    RetryableStoreError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
)

# What another transaction has caused, that made or removed the same at the same time: tried again, it passes.
_RETRYABLE = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.UniqueViolation,
    errors.ForeignKeyViolation,
)

# Which errors are what, how that is said, and what fixes it; the first that fits.
_MEANINGS: tuple[tuple[tuple[type[Exception], ...], type[StoreError], str, str], ...] = (
    (
        (errors.LockNotAvailable,),
        StoreLockedError,
        "is being written by another process",
        "wait for it to finish, then try again",
    ),
    (_RETRYABLE, RetryableStoreError, "was written by another process at the same time", "try again"),
    (
        (psycopg_pool.PoolTimeout,),
        StoreLockedError,
        "did not give a connection in time",
        "check that the server runs, or raise memory.store.pool_size",
    ),
    ((errors.DiskFull,), StoreFullError, "has no space left; nothing was changed", "free some space, then try again"),
    (
        (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction),
        StoreReadOnlyError,
        "may not be written",
        "see docs/how-to/postgres.md, Roles",
    ),
    ((errors.DataCorrupted, errors.IndexCorrupted), StoreCorruptError, "is damaged", "restore a backup of the server"),
    (
        (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName),
        StoreCorruptError,
        "is not what Klaw made",
        "klaw reindex",
    ),
    ((UnicodeEncodeError,), StoreError, "cannot hold a text with unpaired surrogates", ""),
)


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is gone: the server has stopped, or the network has."""
    if isinstance(error, errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow):
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


@contextmanager
def store_errors(location: str) -> Iterator[None]:
    """Raise the StoreError that an error of psycopg inside the block means."""
    try:
        yield
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise as_store_error(location, error) from error


def as_store_error(location: str, error: Exception) -> StoreError:
    """Return what an error of psycopg means."""
    said = str(error).strip().partition("\n")[0]
    for kinds, meant, what, hint in _MEANINGS:
        if isinstance(error, kinds):
            return meant(f"{location} {what}: {said}", hint=hint)
    if is_lost(error):
        return RetryableStoreError(
            f"{location}: the connection was lost: {said}; nothing of this transaction was kept",
            hint="check that the server runs, then try again",
        )
    return StoreError(f"{location}: {type(error).__name__}: {said}")
