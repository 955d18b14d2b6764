"""The cache keeps the vectors of an unfinished reindex, which may have been paid for, for thirty days."""

import time
from contextlib import closing

import pytest

from klaw_core import SpaceRecord
from klaw_core.testing.store_cache import OTHER, SPACE, C, vector
from klaw_core.values.text import text_hash
from klaw_store_sqlitevec.store import SqliteStore

DAY = 24 * 3600 * 10**9


@pytest.mark.parametrize(("days", "is_kept"), [(0, True), (1, True), (29.9, True), (30.1, False), (400, False)])
def test_vectors_of_an_unfinished_reindex_are_kept_for_thirty_days(tmp_path, monkeypatch, days, is_kept):
    digest, now = text_hash("x"), time.time_ns()
    with closing(SqliteStore(tmp_path / "klaw.db")) as store:
        with store.write() as transaction:
            transaction.set_space(C, SpaceRecord(SPACE, vector(1, 0, 0, 0)))
            for space in (SPACE, OTHER):
                transaction.cache_vectors(space, {digest: vector(1, 2, 3, 4)})
        monkeypatch.setattr(time, "time_ns", lambda: now + round(days * DAY))
        with store.write() as transaction:
            transaction.tend_cache(10)
        with store.read() as snapshot:
            assert bool(snapshot.cached_vectors(OTHER, [digest])) == is_kept
            assert snapshot.cached_vectors(SPACE, [digest]), "those in use are kept for ever"
