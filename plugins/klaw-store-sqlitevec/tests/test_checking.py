"""Each thing that can be wrong with the file is done to a real one, found, and fixed where that loses nothing."""

import hashlib
import os
import shutil
from collections import namedtuple

import apsw
import pytest

from klaw_core import VectorSpace
from klaw_store_sqlitevec import checking
from klaw_store_sqlitevec.store import SqliteStore
from klaw_testing.store import SPACE, put, vector
from klaw_testing.values import make_document


def text_hash(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "klaw.db"


@pytest.fixture
def store(path):
    store = SqliteStore(path, busy_timeout_seconds=0.05)
    put(store, make_document("notes/a.md", "one\ntwo"), make_document("notes/b.md", "three"))
    with store.write() as transaction:
        transaction.cache_vectors(SPACE, {text_hash(word): vector(1, 2, 3, 4) for word in ("one", "two")})
    yield store
    store.close()


def names(findings):
    return [finding.check for finding in findings]


def test_an_intact_file_has_no_findings(store):
    assert list(store.check()) == []


@pytest.mark.parametrize("mode", [0o640, 0o000, 0o200, 0o604])
def test_wrong_permissions_are_found_and_fixed(store, path, mode):
    path.chmod(mode)
    assert [(finding.check, finding.where) for finding in store.check()] == [("permissions", str(path))]
    assert path.stat().st_mode & 0o777 == mode, "looking changes nothing"
    assert list(store.check(fix=True)) == []
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_index_that_misses_rows_is_damage(store, path):
    store.close()
    with apsw.Connection(str(path)) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memory_chunks_source'").get
        size = connection.pragma("page_size")
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        page = file.read(size)
        file.seek((root - 1) * size + 3)
        file.write((int.from_bytes(page[3:5]) - 1).to_bytes(2))  # one cell fewer
    with_damage = SqliteStore(path)
    (finding,) = with_damage.check(fix=True)
    assert (finding.check, finding.severity) == ("integrity", "error")
    assert "memory_chunks_source" in "".join(finding.items)
    with_damage.close()


def test_an_invalid_page_is_a_finding_and_not_an_exception(store, path):
    store.close()
    with apsw.Connection(str(path)) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memory_chunks'").get
        size = connection.pragma("page_size")
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(os.urandom(size))
    with_damage = SqliteStore(path)
    assert names(with_damage.check()) == ["integrity"]
    with_damage.close()


def test_problems_of_a_virtual_table_are_left_to_its_index(store):
    with store.write() as transaction:
        connection = transaction.resource
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1)")
        connection.execute("INSERT INTO words (rowid, text) VALUES (1, 'harbour')")
    with store.write() as transaction:
        connection = transaction.resource
        connection.execute("UPDATE words_data SET block = x'0011' WHERE id > 10")
        assert connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]
    assert list(store.check()) == []


def test_rows_with_missing_references_are_found(store, path):
    with apsw.Connection(str(path)) as other:
        other.execute("DELETE FROM documents WHERE path = 'notes/a.md'")
    other.close()
    (finding,) = store.check()
    assert (finding.check, finding.hint) == ("references", "klaw reindex")
    assert finding.what.startswith("2 rows")


@pytest.mark.parametrize(
    "bad",
    [
        *("x''", "zeroblob(8)", "x'007e007e007e007e'", "x'003c003c003c003c003c003c003c003c'"),
        *("5", "0.5", "'abcdefgh'", "CAST(x'ff' AS TEXT)"),
    ],
)
def test_a_cached_vector_that_is_damaged_is_computed_again(store, bad):
    with store.write() as transaction:
        digest = bytes.fromhex(text_hash("one"))
        transaction.resource.execute(f"UPDATE embedding_cache SET vector = {bad} WHERE hash = ?", (digest,))
    with store.read() as snapshot:
        assert list(snapshot.cached_vectors(SPACE, [text_hash("one"), text_hash("two")])) == [text_hash("two")]
    (finding,) = store.check()
    assert (finding.check, finding.what) == ("cache", "1 cached vectors are damaged")
    assert list(store.check(fix=True)) == []
    with store.read() as snapshot:
        assert list(snapshot.cached_vectors(SPACE, [text_hash("one"), text_hash("two")])) == [text_hash("two")]


def test_only_damaged_cached_vectors_are_replaced(store):
    one, two = text_hash("one"), text_hash("two")
    with store.write() as transaction:
        sql = "UPDATE embedding_cache SET vector = zeroblob(8) WHERE hash = ?"
        transaction.resource.execute(sql, (bytes.fromhex(one),))
    with store.write() as transaction:
        before = transaction.cached_vectors(SPACE, [one, two])
        transaction.cache_vectors(SPACE, dict.fromkeys([one, two], vector(4, 3, 2, 1)))
    assert list(before) == [two]
    assert list(store.check()) == []
    with store.read() as snapshot:
        after = snapshot.cached_vectors(SPACE, [one, two])
    assert after[one].tolist() == pytest.approx(vector(4, 3, 2, 1).tolist(), abs=1e-3)
    assert after[two].tolist() == before[two].tolist()


def test_the_spaces_of_the_cache_have_their_own_dimensions(store):
    with store.write() as transaction:
        transaction.cache_vectors(VectorSpace("wide", "1", 8), {text_hash("one"): vector(*range(1, 9))})
    assert list(store.check()) == []


def test_leftovers_of_an_interrupted_rebuild_are_found(store, path):
    left = [path.with_name(f"klaw.db.rebuild{suffix}") for suffix in ("", "-wal")]
    for file in left:
        file.write_bytes(b"x" * 2048)
    (finding,) = store.check()
    assert (finding.check, finding.severity, finding.items) == ("leftovers", "warning", tuple(map(str, left)))
    assert "4 KiB" in finding.what
    assert all(file.exists() for file in left)
    assert list(store.check(fix=True)) == []
    assert not any(file.exists() for file in left)


def test_a_running_rebuild_is_a_note_with_its_process(store, path):
    other = SqliteStore(path, busy_timeout_seconds=0.05)
    with other.rebuild() as fresh:
        put(fresh, make_document("notes/c.md", "four"))
        (finding,) = store.check(fix=True)
    assert (finding.check, finding.severity) == ("lock", "note")
    assert f"process {os.getpid()} is rebuilding" in finding.what
    assert list(store.check()) == []
    other.close()


def test_another_program_that_writes_is_a_note(store, path):
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    (finding,) = store.check()
    other.close()
    assert (finding.check, finding.severity) == ("lock", "note")
    assert list(store.check()) == []


def test_a_large_log_is_found(store, monkeypatch):
    monkeypatch.setattr(checking, "_LARGE_LOG_BYTES", 8192)
    put(store, *(make_document(f"notes/{number}.md", f"line {number}") for number in range(100)))
    assert names(store.check()) == ["log-size"]
    assert list(store.check(fix=True)) == []


def test_a_nearly_full_disk_is_found(store, monkeypatch):
    usage = namedtuple("usage", "free")  # noqa: PYI024  # as shutil's
    for free, severity in ((60 << 20, "error"), ((64 << 20) + 1, "warning")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage(free))
        (finding,) = store.check()
        assert (finding.check, finding.severity) == ("disk-space", severity)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1 << 40))
    assert list(store.check()) == []
