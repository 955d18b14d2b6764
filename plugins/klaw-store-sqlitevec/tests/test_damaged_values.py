"""Any value in the tables of vectors may have become any other: what is wrong is said, and can be fixed."""

from contextlib import suppress

import apsw
import numpy as np
import pytest

from klaw_core import KlawError, Query, RetrievalError, VectorSpace
from klaw_store_sqlitevec.vectors import VectorIndex
from klaw_testing.index import stored

SPACE = VectorSpace("test", "1", 32)
MANY = 300

QUANTIZED = {
    "quantized_forms": "collection dimension centre",
    "quantized_segments": "id collection made stamp used dead",
    "quantized_codes": "segment codes",
    "quantized_keys": "segment keys",
    "quantized_memory": "place key vector",
}
EXACT = {
    "vec_memory_chunks": "chunk_id size validity rowids",
    "vec_memory_rowids": "rowid id chunk_id chunk_offset",
    "vec_memory_vector_chunks00": "rowid vectors",
}
#: What a value may have become; of a row with all bits set ``~`` makes another.
VALUES = (
    *("{0} + 1", "{0} - 1", "-{0}", "NULL", "'abc'", "1.5", "1 << 62", "x''", "x'00ff'", "CAST(x'ff' AS TEXT)"),
    *("CAST({0} AS TEXT)", "zeroblob(length({0}))", "substr({0}, 2)"),
)
FORMS = {"quantized": QUANTIZED, "exact": EXACT}
CASES = [
    (form, table, column, value)
    for form, tables in FORMS.items()
    for table, columns in tables.items()
    for column in columns.split()
    for value in VALUES
]


@pytest.fixture(scope="module")
def vectors():
    rows = np.random.default_rng(7).standard_normal((MANY, SPACE.dimension))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def databases(vectors):
    """A database of each form of vectors, some of which were removed."""
    made = {}
    for form in FORMS:
        index, connection = VectorIndex(form), apsw.Connection(":memory:")
        index.prepare(connection)
        for migration in index.migrations():
            migration.apply(connection)
        index.reset(connection, "memory", SPACE)
        index.add(connection, "memory", [stored(key, "") for key in range(1, MANY + 1)], vectors)
        index.remove(connection, "memory", [3, 4, 50])
        made[form] = connection
    yield made
    for connection in made.values():
        connection.close()


def answers(index, connection, vectors):
    """Return what is found near some vectors, or None if it says that it cannot be and what fixes that."""
    queries = [Query("", vector=vector) for vector in vectors[:5]]
    try:
        found = [index.search(connection, query, 10) for query in queries]
    except RetrievalError as error:
        if error.hint != "klaw reindex":
            pytest.fail(f"it does not say what fixes it: {error}")
        return None
    return [[(hit.key, round(hit.score, 5)) for hit in hits] for hits in found]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("case", CASES, ids=map(" ".join, CASES))
def test_every_changed_value_is_detected(databases, vectors, case):
    form, table, column, value = case
    connection = databases[form]
    expected = answers(VectorIndex(form), connection, vectors)
    connection.execute("BEGIN")
    try:
        with suppress(apsw.ConstraintError, apsw.MismatchError):  # SQLite itself does not keep it
            connection.execute(
                f"UPDATE {table} SET {column} = {value.format(column)} WHERE rowid = (SELECT MIN(rowid) FROM {table})"
                if table != "quantized_forms"
                else f"UPDATE {table} SET {column} = {value.format(column)}"
            )
        found = answers(VectorIndex(form), connection, vectors)
        problems = VectorIndex(form).check(connection, "memory", SPACE)
        assert found in (expected, None) or problems, "it answers wrongly, and nothing says so"
        assert found is not None or problems, "it cannot be searched, and the check finds nothing"
        for act in ("keys", "key_digest", "outdated"):
            with suppress(apsw.Error, KlawError, TypeError, ValueError):  # the core contains what they raise
                getattr(VectorIndex(form), act)(connection, "memory")
        index = VectorIndex(form)
        index.reset(connection, "memory", SPACE)
        index.add(connection, "memory", [stored(key, "") for key in range(1, MANY + 1)], vectors)
        index.remove(connection, "memory", [3, 4, 50])
        assert index.check(connection, "memory", SPACE) == []
        assert answers(index, connection, vectors) == expected
    finally:
        connection.execute("ROLLBACK")
