"""What the cache keeps: the vectors that the hashes in the rows of chunks name, and its statistics."""

from contextlib import closing

import apsw
import pytest
from attrs import evolve

from klaw_core import SpaceRecord
from klaw_store_sqlitevec.store import SqliteStore
from klaw_testing.store_cache import SPACE, C, put, vector
from klaw_testing.values import cut_lines, make_document


@pytest.mark.parametrize("value", ["NULL", "'x'", "x'ff'", "1.5"])
def test_a_damaged_statistic_counts_from_zero(tmp_path, value):
    path = tmp_path / "klaw.db"
    with closing(SqliteStore(path)) as store, store.write() as transaction:
        transaction.tend_cache(100, found=3, computed=1)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA writable_schema = on")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'cache_counts'")
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(f"UPDATE cache_counts SET found = {value}")
    with closing(SqliteStore(path)) as store:
        assert store.statistics()["cache_hit_rate"] == "0% of 1"
        with store.write() as transaction:
            transaction.tend_cache(100, found=2, computed=1)
        with store.rebuild():
            pass
        assert store.statistics()["cache_hit_rate"] == "50% of 4"


def test_forgetting_reads_the_hashes_of_chunks_and_not_their_texts(tmp_path):
    (chunk,) = cut_lines(document := make_document("notes/a.md", "one"))
    with closing(SqliteStore(tmp_path / "klaw.db")) as store:
        put(store, document)
        with store.write() as transaction:
            transaction.set_space(C, SpaceRecord(SPACE, vector(1, 0, 0, 0)))
            transaction.cache_vectors(SPACE, {chunk.embedding_hash: vector(1, 2, 3, 4)})
            transaction.resource.execute("UPDATE memory_chunks SET content = 'two', checksum = 0")
            transaction.forget_unused()
        with store.read() as snapshot:
            assert snapshot.cached_vectors(SPACE, [chunk.embedding_hash])


def test_chunks_of_an_older_version_get_the_hashes_of_their_texts(tmp_path):
    path, tables = tmp_path / "klaw.db", ("memory_chunks", "doc_chunks", "c3_own_chunks")
    document = make_document("notes/a.md", "one\ntwo\nthree")
    documents = [evolve(document, title="A title"), evolve(document, path="notes/b.md", text="damaged")]
    for collection in ("memory", "docs", "own"):
        with closing(SqliteStore(path)) as store:
            put(store, *documents, collection=collection)
    hashes = " UNION ALL ".join(f"SELECT embedding_hash FROM {table}" for table in tables)
    with closing(apsw.Connection(str(path))) as connection:
        before = connection.execute(hashes).fetchall()
        for table in tables:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN embedding_hash")
        connection.execute("UPDATE memory_chunks SET content = CAST(x'ff' AS TEXT) WHERE content = 'damaged'")
        connection.execute("DELETE FROM klaw_migrations WHERE name = '0015-embedding-hashes'")
    SqliteStore(path).close()
    with closing(apsw.Connection(str(path))) as connection:
        after = connection.execute(hashes).fetchall()
    assert len(set(before)) > 3
    assert [(old, new) for old, new in zip(before, after, strict=True) if old != new] == [(before[3], (None,))]
