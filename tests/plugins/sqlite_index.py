"""The contract of an index in a database of SQLite."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest

from klaw_testing.checked import CheckedIndexContract


class SqliteIndexTests(CheckedIndexContract[apsw.Connection]):
    """The tests of an index; its class of tests has the fixture ``index``."""

    @pytest.fixture
    def connection(self) -> Iterator[apsw.Connection]:
        opened = apsw.Connection(":memory:")
        yield opened
        opened.close()

    def begin(self, resource: apsw.Connection) -> None:
        resource.execute("BEGIN IMMEDIATE")

    def rollback(self, resource: apsw.Connection) -> None:
        resource.execute("ROLLBACK")
