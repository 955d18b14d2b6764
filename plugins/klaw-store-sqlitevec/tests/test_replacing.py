"""A damaged database is replaced; the vectors that can be read are copied."""

import errno
import shutil
from contextlib import closing, suppress

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import StoreError, StoreFullError, StoreLockedError, VectorSpace
from klaw_core.values.text import text_hash
from klaw_store_sqlitevec import copies, replacing
from klaw_store_sqlitevec.salvage import PAGE_BYTES, CachedVector, cached_vectors
from klaw_store_sqlitevec.store import SqliteStore
from klaw_store_sqlitevec.vectors import VectorIndex
from klaw_testing.store_cache import put
from klaw_testing.values import make_document

SMALL = VectorSpace("small", "1", 4)
# A vector of the second is longer than a page, and its row continues on others.
LARGE = VectorSpace("large", "1", 5000)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "klaw.db"


def unit(space, number):
    rows = np.random.default_rng(number).standard_normal(space.dimension).astype(np.float32)
    return rows / np.linalg.norm(rows)


def cache(path, spaces, count=40):
    """Create a database with cached vectors."""
    with closing(SqliteStore(path)) as store, store.write() as transaction:
        for space in spaces:
            vectors = {text_hash(f"{space} {number}"): unit(space, number) for number in range(count)}
            transaction.cache_vectors(space, vectors)


def in_database(path):
    with closing(apsw.Connection(str(path))) as connection:
        rows = connection.execute(
            "SELECT model, hash, vector FROM embedding_cache AS c JOIN vector_spaces AS s ON s.id = c.space_id"
        )
        return set(rows)


def salvaged(path):
    return {(found.space.model, found.digest, found.stored) for found in cached_vectors(path)}


def pages_of(path, table):
    with closing(apsw.Connection(str(path))) as connection:
        sql = "SELECT pageno, pagetype FROM dbstat WHERE name = ? ORDER BY pageno"
        return connection.execute(sql, (table,)).fetchall()


def overwrite(path, number, content):
    with path.open("r+b") as file:
        file.seek((number - 1) * PAGE_BYTES)
        file.write(content)


@pytest.mark.parametrize("spaces", [[SMALL], [LARGE], [SMALL, LARGE]], ids=["small", "large", "both"])
def test_the_pages_have_the_vectors_that_sqlite_reads(path, spaces):
    cache(path, spaces)
    assert len(in_database(path)) == 40 * len(spaces)
    assert salvaged(path) == in_database(path)


def test_the_newest_vectors_are_in_the_log(path, tmp_path):
    cache(path, [SMALL])
    copy = tmp_path / "copy.db"
    with closing(SqliteStore(path)) as store:
        with store.write() as transaction:
            transaction.resource.execute("DELETE FROM embedding_cache WHERE id <= 10")
            transaction.cache_vectors(LARGE, {text_hash("new"): unit(LARGE, 1)})
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
        expected = in_database(path)
    assert len(expected) == 31
    assert salvaged(copy) == expected
    log = copy.with_name("copy.db-wal")
    for size in range(log.stat().st_size, 0, -997):  # a torn log
        with log.open("r+b") as file:
            file.truncate(size)
        assert len(salvaged(copy)) >= 30


@pytest.mark.parametrize("spaces", [[SMALL], [LARGE]], ids=["small", "large"])
def test_a_damaged_page_costs_only_its_own_vectors(path, tmp_path, spaces):
    cache(path, spaces)
    whole, total = in_database(path), path.stat().st_size // PAGE_BYTES
    on_page = 40 if spaces == [SMALL] else 4
    spaces_page = pages_of(path, "vector_spaces")[0][0]
    copy = tmp_path / "copy.db"
    assert len(whole) == 40
    for number in range(1, total + 1):
        shutil.copy(path, copy)
        overwrite(copy, number, bytes(PAGE_BYTES))
        found = salvaged(copy)
        assert found <= whole
        if number != spaces_page:
            assert len(found) >= 40 - on_page, number


@given(data=st.data())
def test_no_content_of_a_file_raises(tmp_path_factory, data):
    directory = tmp_path_factory.mktemp("any")
    path = directory / "klaw.db"
    cache(path, [SMALL, LARGE], 3)
    raw = bytearray(path.read_bytes())
    cached = [number for table in ("embedding_cache", "vector_spaces") for number, _ in pages_of(path, table)]
    for _ in range(data.draw(st.integers(1, 30))):
        page = data.draw(st.sampled_from([1, *cached])) - 1
        place = data.draw(st.one_of(st.integers(0, 110), st.integers(0, PAGE_BYTES - 1)))
        raw[page * PAGE_BYTES + place] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.one_of(st.just(len(raw)), st.integers(0, len(raw))))])
    path.with_name("klaw.db-wal").write_bytes(data.draw(st.binary(max_size=100)))
    assert {type(vector) for vector in cached_vectors(path)} <= {CachedVector}
    shutil.rmtree(directory)


def opened(path, **options):
    store = SqliteStore(path, busy_timeout_seconds=0.1, **options)
    store.enlist("sqlite-vec", VectorIndex())
    return store


def test_the_vectors_of_an_interrupted_rebuild_are_copied(path):
    cache(path, [SMALL], 5)
    store = opened(path)
    with pytest.raises(KeyboardInterrupt), store.rebuild() as fresh:  # noqa: PT012  # the block is the subject
        with fresh.write() as transaction:
            transaction.cache_vectors(SMALL, {text_hash("paid for"): unit(SMALL, 99)})
        raise KeyboardInterrupt
    store.close()
    overwrite(path, 1, bytes(PAGE_BYTES))
    with closing(opened(path, replace_damaged=True)) as store:
        assert any("6 cached vectors" in notice for notice in store.replaced)
        assert store.check() == [finding for finding in store.check() if finding.check == "damaged-copy"]


@pytest.mark.promise("D13", "D14")
def test_an_interrupted_replacement_changes_nothing_and_can_be_repeated(path, monkeypatch):
    cache(path, [SMALL])
    opened(path).close()
    overwrite(path, pages_of(path, "documents")[0][0], b"\xff" * PAGE_BYTES)
    before = path.read_bytes()
    for name in ("salvage", "overwrite"):
        with monkeypatch.context() as patch, closing(opened(path)) as store:
            patch.setattr(replacing, name, _interrupt)
            with pytest.raises(KeyboardInterrupt):
                store.replace_damaged()
        assert path.read_bytes() == before
    with closing(opened(path)) as store:
        assert store.replace_damaged()[0] == f"{path} was damaged; {path}.broken-1 is a copy of it"
    assert path.with_name("klaw.db.broken-1").read_bytes() == before
    assert [item.name for item in copies.copies(path)] == ["klaw.db.broken-1"], "equal copies are made once"
    assert not path.with_name("klaw.db.fresh").exists()


def _interrupt(*_arguments):
    raise KeyboardInterrupt


def test_a_full_disk_changes_nothing(path, monkeypatch):
    cache(path, [SMALL])
    opened(path).close()
    before = path.read_bytes()

    def fail(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(copies, "_copy", fail)
    with closing(opened(path)) as store, pytest.raises(StoreFullError, match="copy of the damaged"):
        store.replace_damaged()
    assert path.read_bytes() == before
    assert not copies.copies(path)


def test_a_reader_keeps_its_snapshot(path):
    with closing(opened(path)) as reading, closing(opened(path)) as store:
        put(store, make_document("notes/a.md", "one"))
        with reading.read() as snapshot:
            store.replace_damaged()
            assert list(snapshot.manifest("memory", "notes")) == ["notes/a.md"]
        with reading.read() as snapshot:
            assert not snapshot.manifest("memory", "notes")


@pytest.mark.promise("D39")
def test_a_file_that_sqlite_cannot_open_is_overwritten_if_nobody_has_it_open(path, monkeypatch):
    """As long as the header can be repaired this does not happen, so the repair is left out here."""
    monkeypatch.setattr(replacing, "_repair_header", lambda _database: None)
    cache(path, [SMALL])
    opened(path).close()
    with closing(opened(path)) as other:
        overwrite(path, 1, bytes(PAGE_BYTES))
        with pytest.raises(StoreLockedError, match="another program has it open"):
            opened(path, replace_damaged=True)
        with suppress(StoreError):
            other.close()
    with closing(opened(path, replace_damaged=True)) as store:
        put(store, make_document("notes/a.md", "one"))
        assert [finding.check for finding in store.check()] == ["damaged-copy"]
    assert len(in_database(path)) == 40


@pytest.mark.parametrize("value", ["NULL", "'x'", "x'ff'"])
def test_damaged_times_of_use_prevent_neither_a_rebuild_nor_a_replacement(path, value):
    cache(path, [SMALL], 3)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA writable_schema = on")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'cache_uses'")
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(f"UPDATE cache_uses SET used_at = {value}")
    with closing(SqliteStore(path)) as store:
        with store.rebuild():
            pass
        assert store.statistics()["cached_vectors"] == 3
    with closing(apsw.Connection(str(path))) as connection:
        assert {kind for (kind,) in connection.execute("SELECT typeof(used_at) FROM cache_uses")} == {"integer"}
    with closing(SqliteStore(path)) as store:
        assert any("3 cached vectors" in notice for notice in store.replace_damaged())
