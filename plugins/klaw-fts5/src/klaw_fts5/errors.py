"""Convert SQLite's errors in a search. Elsewhere they pass, and the store that owns the connection converts them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from klaw_core import RetrievalError

_REBUILD = "rebuild the index: klaw reindex"


@contextmanager
def as_retrieval_error(collection: str) -> Iterator[None]:
    """Convert errors of a search to RetrievalError, so that the other retrievers continue."""
    try:
        yield
    except apsw.Error as error:
        hint = _REBUILD if isinstance(error, (apsw.CorruptError, apsw.SQLError)) else ""
        raise RetrievalError(f"full-text search of {collection!r} failed: {error}", hint=hint) from error
