"""Where the locks of a store are."""

import pytest

from klaw_store_sqlitevec.store import SqliteStore


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    yield store
    store.close()


def test_the_embedding_locks_are_where_older_versions_expect_them(store, tmp_path):
    for name, place in (
        ("embedding", "embedding.lock"),
        ("embedding-moving", "embedding.lock/moving"),
        ("facts", "locks/facts"),
    ):
        with store.lock(name):
            assert (tmp_path / place).is_dir()
