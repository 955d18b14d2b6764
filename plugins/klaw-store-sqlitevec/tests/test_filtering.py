"""Filters keep what a look at every row would keep, whichever indexes answer, and look at no row they need not."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from klaw_core import Chunk, Condition, Document, Filters
from klaw_store_sqlitevec import filtering
from klaw_store_sqlitevec.store import SqliteStore
from klaw_testing.values import MOMENT

EAST, WEST = timezone(timedelta(hours=8)), timezone(timedelta(hours=-8))
COLLECTIONS = ("memory", "docs")
# `docs` are told apart by their file's name, which is their source, and have no chats.
PATHS = ("a/one.md", "a/two.md", "ab/one.md", "b/one.md", "b/Тетрадь.md")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = SqliteStore(tmp_path_factory.mktemp("filtering") / "klaw.db")
    with store.write() as transaction:
        for collection in COLLECTIONS:
            for number, path in enumerate(PATHS):
                document = Document(
                    path,
                    "text",
                    path.partition("/")[2],
                    path.partition("/")[0],
                    MOMENT + timedelta(hours=number),
                    f"chat_{number % 2}" if number else None,
                    metadata={"number": number, "tags": ("x", f"t{number % 2}")} if number else {},
                )
                chunks = [Chunk(f"{number:08}{i:08}", f"{path} {i}", i, i + 1, 1, 1) for i in range(3)]
                transaction.replace(collection, document, chunks)
    yield store
    store.close()


def plainly(snapshot, collection, filters):
    """Look at every chunk."""
    chunks = snapshot.chunks(collection, snapshot.keys(collection).tolist())
    return [
        chunk.key
        for chunk in chunks
        if (filters.source is None or chunk.source == filters.source)
        and (not filters.path or chunk.path.startswith(filters.path))
        and (filters.chat_id is None or chunk.chat_id == filters.chat_id)
        and (filters.since is None or chunk.created_at >= filters.since)
        and (filters.until is None or chunk.created_at < filters.until)
        and all(condition.holds(chunk.metadata) for condition in filters.metadata)
    ]


moments = st.none() | st.integers(-1, 6).map(lambda hours: MOMENT + timedelta(hours=hours))
filters = st.builds(
    Filters,
    source=st.sampled_from([None, "one.md", "two.md", "Тетрадь.md", "none"]),
    path=st.sampled_from([None, "a", "a/", "b/", "a/one.md", "c/"]),
    chat_id=st.sampled_from([None, "chat_0", "chat_1", "none"]),
    since=moments,
    until=moments,
    metadata=st.lists(
        st.sampled_from(
            [
                *(Condition("number", operator, 2) for operator in ("=", "!=", "<", ">=")),
                *(Condition("tags", operator, "t1") for operator in ("=", "!=", "<=", ">")),
                *(Condition("number", "in", (1, 3.0, "x")), Condition("none", "!=", 1), Condition("none", "=", 1)),
            ]
        ),
        max_size=3,
    ).map(tuple),
)


@example(Filters(since=MOMENT + timedelta(hours=2), until=MOMENT + timedelta(hours=3)), "memory", 1000)
@example(Filters(path="a", until=MOMENT + timedelta(hours=2)), "memory", 1000)
@example(Filters(path="a"), "memory", 0)
@example(Filters(path="a"), "memory", 1000)
@given(filters, st.sampled_from(COLLECTIONS), st.sampled_from([0, 2, 1000]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_filters_select_exactly(store, monkeypatch, filters, collection, few):
    monkeypatch.setattr(filtering, "_FEW", few)  # rows are looked at instead of the next index: never, or at once
    with store.read() as snapshot:
        assert snapshot.select(collection, filters).keys().tolist() == plainly(snapshot, collection, filters)


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        (Filters(since=datetime.min.replace(tzinfo=EAST)), len(PATHS)),
        (Filters(until=datetime.min.replace(tzinfo=EAST)), 0),
        (Filters(since=datetime.max.replace(tzinfo=WEST)), 0),
        (Filters(until=datetime.max.replace(tzinfo=WEST)), len(PATHS)),
    ],
    ids=str,
)
def test_a_moment_outside_of_utc_becomes_the_first_or_the_last(store, filters, kept):
    with store.read() as snapshot:
        found = snapshot.select("memory", filters).keys().tolist()
        assert found == plainly(snapshot, "memory", filters)
    assert len(found) == 3 * kept


def plan_of(store, collection, filters):
    """Return the steps of the statements by which chunks are selected."""
    with store.read() as snapshot:
        statements = []
        snapshot.resource.trace_v2(1, lambda event: statements.append(event["sql"]))
        try:
            snapshot.select(collection, filters)
        finally:
            snapshot.resource.trace_v2(0, None)
        return [
            row[3]
            for sql in statements
            for row in snapshot.resource.execute(f"EXPLAIN QUERY PLAN {sql}", ("x",) * sql.count("?"))
        ]


@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.parametrize(
    "filters",
    [
        Filters(source="one.md"),
        Filters(path="a/"),
        Filters(chat_id="chat_1"),
        Filters(since=MOMENT),
        Filters(until=MOMENT),
        Filters(since=MOMENT, until=MOMENT),
    ],
    ids=str,
)
def test_no_filter_reads_the_text_of_chunks(store, collection, filters):
    plan = plan_of(store, collection, filters)
    if collection == "docs" and filters.chat_id:  # no chunk of theirs has a chat: SQLite may read nothing, or all
        return
    assert plan
    assert all("COVERING INDEX" in step for step in plan), plan


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        (Condition("number", "=", 2), "value=?"),
        (Condition("number", "in", (2, 3)), "value=?"),
        (Condition("number", "<", 2), "value<?"),
        (Condition("tags", ">=", "t"), "value>?"),
    ],
    ids=str,
)
def test_a_condition_reads_only_matching_values_and_no_document(store, condition, bounds):
    steps = plan_of(store, "memory", Filters(metadata=(condition,)))
    found, joined = steps[-2:]
    assert found.startswith("SEARCH entry USING PRIMARY KEY (collection=? AND key=? AND "), steps
    assert bounds in found
    assert "COVERING INDEX memory_chunks_document" in joined


def test_strings_are_found_as_numbers_and_without_case_in_a_database_of_an_older_version(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    metadata = {"postal": "02700", "tags": ("2024", "JS"), "year": 7}
    document = Document("a/one.md", "text", "one.md", "a", MOMENT, metadata=metadata)
    with store.write() as transaction:
        transaction.replace("memory", document, [Chunk("0" * 32, "text", 0, 4, 1, 1)])
        numbers = "typeof(value) != 'text' AND key != 'year'"
        assert transaction.resource.execute(f"DELETE FROM document_metadata WHERE {numbers} RETURNING key").fetchall()
        transaction.resource.execute("UPDATE document_metadata SET value = 'JS' WHERE value = 'js'")
        later = "name IN ('0014-numbers-in-metadata', '0018-metadata-without-case')"
        transaction.resource.execute(f"DELETE FROM klaw_migrations WHERE {later}")
    store.close()
    store = SqliteStore(tmp_path / "klaw.db")
    with store.read() as snapshot:
        for key, value in (("postal", 2700), ("postal", "02700"), ("tags", 2024), ("tags", "js"), ("year", 7)):
            condition = Condition(key, "=", value)
            assert len(snapshot.select("memory", Filters(metadata=(condition,))).keys()) == 1, (key, value)
            assert condition.holds(metadata)
    with store.write() as transaction:
        transaction.delete("memory", "a/one.md")
        assert transaction.resource.execute("SELECT * FROM document_metadata").fetchall() == []
    store.close()
