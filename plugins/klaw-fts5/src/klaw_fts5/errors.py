"""Damaged packed postings, and SQLite's errors in a search; elsewhere its store converts them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from klaw_core import RetrievalError

_REBUILD = "rebuild the index: klaw reindex"


class DamagedError(Exception):
    """A row of the packed form is missing or damaged. FTS5 is used instead."""


#: Exceptions when reading a damaged row; the last ones if a blob has become text.
DAMAGE = (DamagedError, UnicodeDecodeError)


@contextmanager
def as_retrieval_error(collection: str) -> Iterator[None]:
    """Convert errors of a search to RetrievalError, so that the other retrievers continue."""
    try:
        yield
    except apsw.Error as error:
        hint = _REBUILD if isinstance(error, (apsw.CorruptError, apsw.SQLError)) else ""
        raise RetrievalError(f"full-text search of {collection!r} failed: {error}", hint=hint) from error
