"""The index keeps the contract of every index, with everything in klaw.db, with everything in LanceDB, and between."""

import pytest
from sqlite_index import SqliteIndexTests

from klaw_lancedb.index import LanceIndex
from klaw_lancedb.options import LanceOptions

NEVER = 10**9


class TestLanceIndex(SqliteIndexTests):
    @pytest.fixture(
        params=[
            (7, NEVER),
            *(pytest.param(form, marks=pytest.mark.one_of(3)) for form in ((1, NEVER), (1_000, NEVER), (7, 300))),
        ],
        ids=lambda param: f"buffer {param[0]}, approximate from {param[1]}",
    )
    def index(self, request, tmp_path) -> LanceIndex:
        buffer, approximate_from = request.param
        return LanceIndex(LanceOptions(buffer=buffer, approximate_from=approximate_from), tmp_path)
