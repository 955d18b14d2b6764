"""The index keeps the contract of every index, with everything in klaw.db, with everything on the server, and between.

With ``KLAW_TEST_QDRANT_URL`` a real server answers.
"""

from collections.abc import Iterator

import pytest
from attrs import evolve
from sqlite_index import SqliteIndexTests

from klaw_qdrant.plugin import vectors
from klaw_store_sqlitevec.outside import OutsideVectors


class TestQdrant(SqliteIndexTests):
    @pytest.fixture(params=[7, *(pytest.param(size, marks=pytest.mark.one_of(2)) for size in (1, 1_000))])
    def index(self, request, tmp_path, options) -> Iterator[OutsideVectors]:
        made = vectors(evolve(options, buffer=request.param), tmp_path)
        yield made
        for name in made.outside.names():  # a real server outlives the test
            if name.startswith(made._prefix):
                made.outside.drop(name)
