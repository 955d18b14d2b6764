"""A small full-text index to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import apsw
import pytest

from klaw_core import Query
from klaw_fts5.index import Fts5Index
from klaw_testing.index import stored

Find = Callable[..., list[int]]


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    index = Fts5Index()
    index.prepare(connection)
    for migration in index.migrations():
        migration.apply(connection)
    yield connection
    connection.close()


@pytest.fixture
def find(connection: apsw.Connection) -> Find:
    """Return ``find(query, *texts)``: index the texts under keys from 1, and return the keys found, best first."""

    def find(query: str, *texts: str, limit: int = 20) -> list[int]:
        index = Fts5Index()
        index.reset(connection, "memory", None)
        index.add(connection, "memory", [stored(key, text) for key, text in enumerate(texts, start=1)], None)
        return [hit.key for hit in index.search(connection, Query(query), limit)]

    return find
