"""The indexes keep the contract: vectors one by one and by HNSW, words by postings."""

from uuid import uuid4

import numpy as np
import pytest

from klaw_core import Query, VectorSpace
from klaw_testing.index import SPACE, IndexContract, crowd, stored, unit_vector, unit_vectors
from klaw_testing.values import cut_lines, make_document

AGENT = "agent-of-indexes"


class OnPostgres(IndexContract):
    """What both share: a session inside a transaction, of which a part is undone."""

    is_scanned = True

    @pytest.fixture
    def connection(self, options):
        import psycopg

        from klaw_store_postgres.session import Session
        from klaw_store_postgres.store import PostgresStore

        store = PostgresStore(options, agent=f"{AGENT}-{uuid4().hex}")
        connection = psycopg.connect(options.dsn)
        connection.execute(f"SET search_path = {options.schema}, public")
        connection.execute(f"SELECT set_config('klaw.tenant', '{store._tenant}', false)")
        connection.execute(f"SET enable_seqscan = {self.is_scanned}")
        yield Session(connection, store._tenant, 1)
        connection.rollback()
        connection.close()
        store.close()

    @pytest.fixture
    def migrated(self, index, connection):
        index.prepare(connection)
        for migration in index.migrations():
            if connection.value("SELECT to_regclass('vectors')") is None:
                migration.apply(connection)
        return connection

    def begin(self, resource):
        resource.run("SAVEPOINT undone")

    def rollback(self, resource):
        resource.run("ROLLBACK TO SAVEPOINT undone")


class TestVectors(OnPostgres):
    @pytest.fixture
    def index(self):
        from klaw_store_postgres.vectors import VectorIndex

        return VectorIndex()


class TestVectorsByHnsw(OnPostgres):
    """Every collection has an index, and PostgreSQL uses it however small the collection is."""

    @pytest.fixture
    def index(self):
        from klaw_store_postgres.options import PgVectorOptions
        from klaw_store_postgres.vectors import VectorIndex

        return VectorIndex(PgVectorOptions(exact_up_to=0))

    is_scanned = False


class TestWords(OnPostgres):
    @pytest.fixture
    def index(self):
        from klaw_store_postgres.words.index import WordIndex

        return WordIndex()


@pytest.fixture
def large(options, agent):
    """A store with 5,000 vectors, of which 4,000 are allowed without an index."""
    from klaw_store_postgres.options import PgVectorOptions
    from klaw_store_postgres.store import PostgresStore
    from klaw_store_postgres.vectors import VectorIndex

    random = np.random.default_rng(3)
    groups = random.standard_normal((250, 48))
    rows = groups[random.integers(0, 250, 5_000)] + 0.6 * random.standard_normal((5_000, 48))
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    store, index = PostgresStore(options, agent=agent), VectorIndex(PgVectorOptions(exact_up_to=4_000))
    store.enlist("pgvector", index)
    with store.write() as transaction:
        index.reset(transaction.resource, "memory", VectorSpace("test", "1", 48))
        for first in range(0, 5_000, 1_000):
            chunks = [stored(key, f"text {key}") for key in range(first + 1, first + 1_001)]
            index.add(transaction.resource, "memory", chunks, vectors[first : first + 1_000])
    yield store, index
    store.close()


def test_a_collection_that_grew_keeps_its_rows_and_can_be_emptied(large):
    store, index = large
    with store.read() as snapshot:
        assert index.keys(snapshot.resource, "memory").tolist() == list(range(1, 5_001))
        assert list(index.check(snapshot.resource, "memory", VectorSpace("test", "1", 48))) == []
        assert list(index.check(snapshot.resource, "memory", SPACE)) != []
    with store.write() as transaction:
        index.remove(transaction.resource, "memory", [1, 5_000])
        assert len(index.keys(transaction.resource, "memory")) == 4_998
    with store.write() as transaction:
        index.reset(transaction.resource, "memory", SPACE)
        index.add(transaction.resource, "memory", crowd(3), unit_vectors(crowd(3)))
        assert index.keys(transaction.resource, "memory").tolist() == [1, 2, 3]
        tables = "SELECT COUNT(*) FROM pg_class WHERE relname ~ %s"
        assert transaction.resource.value(tables, (f"^vectors_{transaction.resource.tenant}_[0-9]+$",)) == 0
    with store.read() as snapshot:
        (hit,) = index.search(snapshot.resource, Query("", "memory", unit_vector("lantern")), 1)
        assert hit.key in {1, 2, 3}


@pytest.mark.parametrize("exact_up_to", [0, 20_000])
def test_chunks_without_a_vector_are_counted(open_store, exact_up_to):
    from klaw_store_postgres.options import PgVectorOptions
    from klaw_store_postgres.vectors import VectorIndex

    store, index = open_store(), VectorIndex(PgVectorOptions(exact_up_to=exact_up_to))
    store.enlist("pgvector", index)

    def lacking():
        with store.read() as snapshot:
            return index.lacking(snapshot.resource, "memory", lambda: pytest.fail("it counts by itself"))

    def write(name, text):
        document = make_document(f"notes/{name}.md", text)
        with store.write() as transaction:
            transaction.replace("memory", document, cut_lines(document))

    def embed(count):
        with store.write() as transaction:
            held = set(index.keys(transaction.resource, "memory").tolist())
            keys = [key for key in transaction.keys("memory").tolist() if key not in held][:count]
            chunks = transaction.chunks("memory", keys)
            index.add(transaction.resource, "memory", chunks, unit_vectors(chunks))

    assert lacking() == 0
    with store.write() as transaction:
        index.reset(transaction.resource, "memory", SPACE)
    write("a", "one\ntwo\nthree")
    write("b", "four\nfive")
    embed(3)
    assert lacking() == 2
    embed(2)
    assert lacking() == 0
    write("a", "one\nsix\nseven")
    assert lacking() == 2, "chunks that are newer than those it has counted"
    embed(9)
    assert lacking() == 0


def test_the_options_of_the_index_of_vectors_reach_the_server(options, agent):
    from klaw_store_postgres.options import PgVectorOptions
    from klaw_store_postgres.store import PostgresStore
    from klaw_store_postgres.vectors import VectorIndex

    chosen = PgVectorOptions(exact_up_to=0, m=5, ef_construction=44, ef_search=33)
    store, index = PostgresStore(options, agent=agent), VectorIndex(chosen)
    store.enlist("pgvector", index)
    with store.write() as transaction:
        index.reset(transaction.resource, "memory", SPACE)
        chunks = [stored(1, "text")]
        index.add(transaction.resource, "memory", chunks, unit_vectors(chunks))
        table = index._own_table(transaction.resource, "memory")
        made = transaction.resource.value("SELECT indexdef FROM pg_indexes WHERE tablename = %s AND indexdef LIKE %s",
                                          (table, "%hnsw%"))  # fmt: skip
    assert "m='5'" in made
    assert "ef_construction='44'" in made
    with store.read() as snapshot:
        assert len(index.search(snapshot.resource, Query("text", vector=unit_vector("text")), 3)) == 1
        assert snapshot.resource.value("SELECT current_setting('hnsw.ef_search')") == "33"
    store.close()


@pytest.mark.parametrize(
    ("weights", "first"),
    [
        ({"heading_weight": 9.0, "text_weight": 0.1, "context_weight": 0.1}, "heading"),
        ({"heading_weight": 0.1, "text_weight": 9.0, "context_weight": 0.1}, "text"),
        ({"heading_weight": 0.1, "text_weight": 0.1, "context_weight": 9.0}, "context"),
    ],
)
def test_the_weights_of_words_decide_the_order(options, agent, weights, first):
    from klaw_store_postgres.options import PgWordsOptions
    from klaw_store_postgres.store import PostgresStore
    from klaw_store_postgres.words.index import WordIndex

    store, index = PostgresStore(options, agent=agent), WordIndex(PgWordsOptions(**weights))
    store.enlist("pgwords", index)
    chunks = {
        "heading": stored(1, "other", heading=("lantern",)),
        "text": stored(2, "lantern"),
        "context": stored(3, "other", context="lantern"),
    }
    with store.write() as transaction:
        index.reset(transaction.resource, "memory", None)
        index.add(transaction.resource, "memory", list(chunks.values()), None)
    with store.read() as snapshot:
        hits = index.search(snapshot.resource, Query("lantern"), 3)
    assert hits[0].key == chunks[first].key
    store.close()


@pytest.mark.parametrize(("weight", "first"), [(0.0, 1), (1.0, 2)])
def test_neighbouring_words_rank_higher_by_the_weight_of_pairs(options, agent, weight, first):
    from klaw_store_postgres.options import PgWordsOptions
    from klaw_store_postgres.store import PostgresStore
    from klaw_store_postgres.words.index import WordIndex

    store, index = PostgresStore(options, agent=agent), WordIndex(PgWordsOptions(pair_weight=weight))
    store.enlist("pgwords", index)
    with store.write() as transaction:
        index.reset(transaction.resource, "memory", None)
        chunks = [stored(1, "lantern kiln tide"), stored(2, "kiln lantern tide")]
        index.add(transaction.resource, "memory", chunks, None)
    with store.read() as snapshot:
        assert index.search(snapshot.resource, Query("lantern tide"), 2)[0].key == first
    store.close()
