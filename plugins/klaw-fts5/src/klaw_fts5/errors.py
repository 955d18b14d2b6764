"""What SQLite's errors mean to Klaw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from klaw_core import (
    RetrievalError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
)

_REBUILD = "rebuild the index: klaw reindex"
_STORE_ERRORS: tuple[tuple[type[apsw.Error], type[StoreError], str], ...] = (
    (apsw.BusyError, StoreLockedError, ""),
    (apsw.LockedError, StoreLockedError, ""),
    (apsw.ReadOnlyError, StoreReadOnlyError, ""),
    (apsw.FullError, StoreFullError, "free some space and try again"),
    (apsw.CorruptError, StoreCorruptError, _REBUILD),
    (apsw.NotADBError, StoreCorruptError, ""),
)


@contextmanager
def as_retrieval_error(collection: str) -> Iterator[None]:
    """Turn what goes wrong while searching into RetrievalError, so that the other legs go on."""
    try:
        yield
    except apsw.Error as error:
        hint = _REBUILD if isinstance(error, (apsw.CorruptError, apsw.SQLError)) else ""
        raise RetrievalError(f"full-text search of {collection!r} failed: {error}", hint=hint) from error


@contextmanager
def as_store_error(collection: str) -> Iterator[None]:
    """Turn what goes wrong while reading or writing rows into the StoreError that says what happened."""
    try:
        yield
    except apsw.Error as error:
        message = f"the full-text index of {collection!r} failed: {error}"
        for sqlite, store, hint in _STORE_ERRORS:
            if isinstance(error, sqlite):
                raise store(message, hint=hint) from error
        raise StoreError(message) from error
