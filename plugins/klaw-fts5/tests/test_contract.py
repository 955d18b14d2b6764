"""The whole contract, on a real SQLite: in a file and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from klaw_core.testing.checked import CheckedIndexContract
from klaw_fts5.index import Fts5Index


class TestInMemory(CheckedIndexContract[apsw.Connection]):
    @pytest.fixture
    def index(self) -> Fts5Index:
        return Fts5Index()

    @pytest.fixture
    def connection(self) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(":memory:")
        yield connection
        connection.close()

    def begin(self, resource: apsw.Connection) -> None:
        resource.execute("BEGIN IMMEDIATE")

    def rollback(self, resource: apsw.Connection) -> None:
        resource.execute("ROLLBACK")


class TestInAFile(TestInMemory):
    @pytest.fixture
    def connection(self, tmp_path: Path) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(tmp_path / "klaw.db"))
        connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")
        yield connection
        connection.close()
