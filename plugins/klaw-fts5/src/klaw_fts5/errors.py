"""What SQLite's errors mean to a search. Elsewhere they pass: the store whose connection it is says what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from klaw_core import RetrievalError

_REBUILD = "rebuild the index: klaw reindex"


@contextmanager
def as_retrieval_error(collection: str) -> Iterator[None]:
    """Turn what goes wrong while searching into RetrievalError, so that the other retrievers go on."""
    try:
        yield
    except apsw.Error as error:
        hint = _REBUILD if isinstance(error, (apsw.CorruptError, apsw.SQLError)) else ""
        raise RetrievalError(f"full-text search of {collection!r} failed: {error}", hint=hint) from error
