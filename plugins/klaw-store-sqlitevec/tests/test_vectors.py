"""The index keeps the contract of every index, in each form; vec0 answers exactly."""

from collections.abc import Iterator

import apsw
import numpy as np
import pytest

from klaw_core import Query, RetrievalError
from klaw_core.testing.checked import CheckedIndexContract
from klaw_core.testing.index import SPACE, stored, unit_vector, unit_vectors
from klaw_store_sqlitevec.vectors import VectorIndex


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    with apsw.Connection(":memory:") as opened:
        yield opened
    opened.close()


class TestVectorIndex(CheckedIndexContract[apsw.Connection]):
    @pytest.fixture(
        params=[("exact", 0), ("quantized", 0), ("auto", 0), ("auto", 7), ("auto", 10_000)],
        ids=lambda param: f"{param[0]}-{param[1]}",
    )
    def index(self, request) -> VectorIndex:
        search, exact_up_to = request.param
        return VectorIndex(search, exact_up_to)

    @pytest.fixture
    def connection(self) -> Iterator[apsw.Connection]:
        opened = apsw.Connection(":memory:")
        yield opened
        opened.close()

    def begin(self, resource: apsw.Connection) -> None:
        resource.execute("BEGIN IMMEDIATE")

    def rollback(self, resource: apsw.Connection) -> None:
        resource.execute("ROLLBACK")


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


def test_an_extension_that_does_not_load_is_named_with_what_mends_it(connection, monkeypatch, tmp_path):
    monkeypatch.setattr("klaw_store_sqlitevec.vectors._extension", lambda: tmp_path / "vec0")
    with pytest.raises(RetrievalError, match="vec0 does not load") as caught:
        VectorIndex().prepare(connection)
    assert "pip install" in caught.value.hint


def test_adding_before_there_is_a_space_is_refused(connection):
    index = VectorIndex()
    make_ready(index, connection)
    with pytest.raises(RetrievalError, match="no vector space"):
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
