"""The index keeps the contract of every index, in each form; vec0 answers exactly."""

import sys
from collections.abc import Iterator

import apsw
import numpy as np
import pytest
from sqlite_index import SqliteIndexTests

from klaw_core import KeySelection, Query, RetrievalError, VectorSpace, reinstall_command
from klaw_store_sqlitevec.vectors import VectorIndex, _extension
from klaw_testing.index import SPACE, stored, unit_vector, unit_vectors

#: vec0 as it is installed.
SOUND = _extension()


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    with apsw.Connection(":memory:") as opened:
        yield opened
    opened.close()


class TestVectorIndex(SqliteIndexTests):
    @pytest.fixture(
        params=[
            ("exact", 0),
            ("quantized", 0),
            ("auto", 7),
            pytest.param(("auto", 0), marks=pytest.mark.one_of(3)),
            pytest.param(("auto", 10_000), marks=pytest.mark.one_of(3)),
        ],
        ids=lambda param: f"{param[0]}-{param[1]}",
    )
    def index(self, request) -> VectorIndex:
        search, exact_up_to = request.param
        return VectorIndex(search, exact_up_to)


@pytest.mark.one_of(3)
class TestVectorIndexWithoutVec0(TestVectorIndex):
    """The same laws where the SQLite extension does not load."""

    @pytest.fixture(autouse=True)
    def extension(self, monkeypatch, tmp_path):
        monkeypatch.setattr("klaw_store_sqlitevec.vectors._extension", lambda: tmp_path / "vec0")

    @pytest.fixture
    def index(self) -> VectorIndex:
        return VectorIndex("exact")


@pytest.fixture
def ready(connection) -> tuple[VectorIndex, apsw.Connection]:
    index = VectorIndex()
    make_ready(index, connection)
    index.reset(connection, "memory", SPACE)
    return index, connection


def make_ready(index, connection):
    index.prepare(connection)
    for migration in index.migrations():
        migration.apply(connection)


def test_scores_are_cosine_similarities_and_the_order_is_exact(ready):
    index, connection = ready
    chunks = [stored(key, " ".join(["harbour"] * (key % 3) + [f"gull{key}"])) for key in range(1, 60)]
    vectors = unit_vectors(chunks)
    index.add(connection, "memory", chunks, vectors)
    question = unit_vector("harbour gull7")
    hits = index.search(connection, Query("", vector=question), 10)
    exact = vectors @ question
    assert [hit.key for hit in hits] == [int(row) + 1 for row in np.argsort(-exact, kind="stable")[:10]]
    assert [hit.score for hit in hits] == pytest.approx(sorted(exact.tolist(), reverse=True)[:10], abs=1e-6)


def test_the_sql_function_that_loads_extensions_stays_off(ready):
    _, connection = ready
    with pytest.raises(apsw.Error, match=r"not authorized|no such function"):
        connection.execute("SELECT load_extension('anything')")


class TestWithoutVec0:
    """A package ``sqlite_vec`` without the extension comes first on the path, after an index was made with vec0."""

    CHUNKS = tuple(stored(key, f"harbour gull{key} boat{key % 5}") for key in range(1, 40))

    @pytest.fixture
    def file(self, tmp_path):
        connection = apsw.Connection(str(tmp_path / "vectors.db"))
        index = VectorIndex()
        make_ready(index, connection)
        index.reset(connection, "memory", SPACE)
        index.add(connection, "memory", self.CHUNKS, unit_vectors(self.CHUNKS))
        connection.close()
        return tmp_path / "vectors.db"

    @pytest.fixture
    def crippled(self, file, monkeypatch, tmp_path):
        package = tmp_path / "path" / "sqlite_vec"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("def loadable_path():\n    return '/nonexistent/vec0'\n")
        monkeypatch.syspath_prepend(str(package.parent))
        monkeypatch.delitem(sys.modules, "sqlite_vec", raising=False)
        index = VectorIndex()
        connection = apsw.Connection(str(file))
        index.prepare(connection)
        yield index, connection
        connection.close()

    def test_a_missing_vec0_is_reported(self, crippled):
        index, _ = crippled
        assert "vec0, which does not load" in index.limitation
        assert index.limitation.endswith(f"; fix: {reinstall_command('sqlite-vec')}")

    def test_vectors_of_vec0_are_found_exactly(self, crippled, file):
        index, connection = crippled
        for within in (None, KeySelection(np.array([3, 9, 17]))):
            question = Query("", vector=unit_vector("harbour gull9"), within=within)
            hits = index.search(connection, question, 10)
            sound = VectorIndex()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("klaw_store_sqlitevec.vectors._extension", lambda: SOUND)
                other = apsw.Connection(str(file))
                sound.prepare(other)
                expected = sound.search(other, question, 10)
            assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], abs=1e-5)
            assert within is None or {hit.key for hit in hits} == set(within.keys().tolist())

    def test_changes_without_vec0_are_found_with_it_later(self, crippled, file):
        index, connection = crippled
        more = [stored(100, "the lighthouse")]
        index.remove(connection, "memory", [9])
        index.add(connection, "memory", more, unit_vectors(more))
        assert index.keys(connection, "memory").tolist() == [key for key in range(1, 40) if key != 9] + [100]
        assert index.search(connection, Query("", vector=unit_vector("the lighthouse")), 1)[0].key == 100
        assert not index.check(connection, "memory", SPACE)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("klaw_store_sqlitevec.vectors._extension", lambda: SOUND)
            for search in ("auto", "exact"):
                other, sound = apsw.Connection(str(file)), VectorIndex(search)
                sound.prepare(other)
                assert not sound.limitation
                assert sound.search(other, Query("", vector=unit_vector("the lighthouse")), 1)[0].key == 100
                again = [stored(100 + len(search), f"the {search} mole")]
                sound.add(other, "memory", again, unit_vectors(again))
                assert (
                    sound.search(other, Query("", vector=unit_vector(f"the {search} mole")), 1)[0].key == again[0].key
                )
                assert not sound.check(other, "memory", SPACE)
                other.close()

    def test_a_new_space_replaces_the_old_one(self, crippled, file):
        index, connection = crippled
        wider = VectorSpace("other", "1", 16)
        index.reset(connection, "memory", wider)
        assert not index.keys(connection, "memory").size
        assert not index.check(connection, "memory", wider)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("klaw_store_sqlitevec.vectors._extension", lambda: SOUND)
            other, sound = apsw.Connection(str(file)), VectorIndex("exact")
            sound.prepare(other)
            sound.add(other, "memory", [stored(1, "a")], np.eye(1, 16, dtype=np.float32))
            assert not sound.check(other, "memory", wider)
            other.close()


def test_adding_without_a_space_is_rejected(connection):
    index = VectorIndex()
    make_ready(index, connection)
    with pytest.raises(RetrievalError, match="no table for vectors"):
        index.add(connection, "memory", [stored(1, "a")], unit_vectors([stored(1, "a")]))


def test_the_table_has_the_documented_name_and_dimension(ready):
    _, connection = ready
    sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'vec_memory'").get
    assert "vec0(embedding float[8])" in sql


def test_a_removed_vector_leaves_the_pages(tmp_path):
    path, index = tmp_path / "klaw.db", VectorIndex()
    connection = apsw.Connection(str(path))
    connection.pragma("secure_delete", 1)  # as the store has it
    make_ready(index, connection)
    index.reset(connection, "memory", SPACE)
    chunks = [stored(key, f"gull{key}") for key in range(1, 30)]
    vectors = unit_vectors(chunks)
    index.add(connection, "memory", chunks, vectors)
    assert vectors[6].tobytes() in path.read_bytes()
    index.remove(connection, "memory", [7])
    assert vectors[6].tobytes() not in path.read_bytes()
    assert vectors[7].tobytes() in path.read_bytes()
    connection.close()
