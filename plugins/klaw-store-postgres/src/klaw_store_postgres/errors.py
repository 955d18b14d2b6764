"""Convert PostgreSQL's errors to Klaw's, each with its server and a fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
import psycopg_pool
from psycopg import errors

from klaw_core import (
    DatabaseCorruptError,
    RetrievalError,
    RetryableStoreError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
)

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

T = TypeVar("T")

# Conflicts with another transaction that created or removed the same row at the same time; a retry succeeds.
_RETRYABLE = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.UniqueViolation,
    errors.ForeignKeyViolation,
)

# Time limits of the server that end a connection, and their settings.
_LIMITS: dict[type[Exception], str] = {
    errors.IdleSessionTimeout: "idle_session_timeout",
    errors.IdleInTransactionSessionTimeout: "idle_in_transaction_session_timeout",
    errors.TransactionTimeout: "transaction_timeout",
}

# The server has ended the connection, or a time limit of the server has.
_LOST: tuple[type[Exception], ...] = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    *_LIMITS,
)

# The error classes, their message and their fix; the first that fits counts.
_MEANINGS: tuple[tuple[tuple[type[Exception], ...], type[StoreError], str, str], ...] = (
    (
        (errors.LockNotAvailable,),
        StoreLockedError,
        "is being written by another process",
        "wait for it to finish, then try again",
    ),
    (
        (errors.ConnectionException, errors.ConnectionFailure, errors.SqlclientUnableToEstablishSqlconnection),
        RetryableStoreError,
        "has a node that does not answer; nothing was changed",
        "check that every worker of the cluster runs, then try again",
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
    ((errors.DataCorrupted, errors.IndexCorrupted), DatabaseCorruptError, "is damaged", "klaw reindex"),
    (
        (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName, errors.DuplicateTable),
        DatabaseCorruptError,
        "is not what Klaw made",
        "klaw reindex",
    ),
    (
        (errors.QueryCanceled,),
        StoreError,
        "stopped a statement, and nothing was changed",
        "if its time was over: ALTER ROLE … SET statement_timeout = 0, for the role of memory.store.dsn",
    ),
    (
        (errors.UntranslatableCharacter, errors.CharacterNotInRepertoire),
        StoreError,
        "cannot hold every text, because its encoding is not UTF8",
        "use a database that was created with ENCODING 'UTF8'",
    ),
    ((errors.InFailedSqlTransaction,), StoreError, "did not go on after an error", "klaw doctor"),
    (
        (UnicodeEncodeError,),
        StoreError,
        "cannot hold a text with unpaired surrogates",
        "remove the characters U+D800 to U+DFFF from the text",
    ),
)


class UnknownCommitError(StoreError):
    """The answer to a COMMIT was lost: the changes are stored, or not."""


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is lost, because the server or the network failed."""
    if isinstance(error, _LOST):
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


@contextmanager
def store_errors(location: str) -> Iterator[None]:
    """Convert errors of psycopg inside the block to StoreError."""
    try:
        yield
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise as_store_error(location, error) from error


def retrieval_errors(method: Callable[..., T]) -> Callable[..., T]:
    """Convert errors of psycopg in a question to an index, whose first argument is a session, to RetrievalError."""

    @wraps(method)
    def asked(index: Any, resource: Session, *arguments: Any) -> T:
        try:
            return method(index, resource, *arguments)
        except psycopg.Error as error:
            meant = as_store_error(resource.location, error)
            raise RetrievalError(meant.message, hint=meant.hint) from error

    return asked


def as_store_error(location: str, error: Exception) -> StoreError:
    """Return the StoreError for an error of psycopg."""
    said = str(error).strip().partition("\n")[0]
    for kinds, meant, what, hint in _MEANINGS:
        if isinstance(error, kinds):
            return meant(f"{location} {what}: {said}", hint=hint)
    if is_lost(error):
        limit = _LIMITS.get(type(error))
        return RetryableStoreError(
            f"{location}: the connection was lost: {said}; nothing was changed",
            hint=f"ALTER ROLE … SET {limit} = 0, for the role of memory.store.dsn"
            if limit
            else "check that the server runs, then try again",
        )
    return StoreError(f"{location}: {type(error).__name__}: {said}")
