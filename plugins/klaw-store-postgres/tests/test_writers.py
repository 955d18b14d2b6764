"""Several writers of one agent at once: rows and indexes agree, and nobody waits for what concerns others."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from attrs import evolve

from klaw_core import Chat, Memory, Message
from klaw_core.config.load import load_config
from klaw_core.embedding.run import EmbeddingRun
from klaw_core.indexing.backfill import Backfill
from klaw_core.indexing.collection import Collection
from klaw_core.values.vectors import VectorSpace
from klaw_testing.store import put
from klaw_testing.values import MOMENT, cut_lines, make_document

WRITERS, ROUNDS = 4, 12


class HashEmbedder:
    """Gives each text a vector of its own."""

    max_tokens = 99
    texts_per_call = 16
    space = VectorSpace("hashes", "1", 8)

    def embed_query(self, text):
        vector = np.random.default_rng(sum(text.encode()) + len(text)).standard_normal(8)
        return np.asarray(vector / np.linalg.norm(vector), np.float32)

    def embed_documents(self, texts):
        return np.stack([self.embed_query(text) for text in texts])

    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]


@pytest.fixture
def collections(open_store):
    """One collection for each writer, on a store of its own; the vectors outgrow the shared table meanwhile."""
    from klaw_store_postgres.options import PgVectorOptions
    from klaw_store_postgres.vectors import VectorIndex
    from klaw_store_postgres.words.index import WordIndex

    made = []
    for _ in range(WRITERS):
        store = open_store()
        indexes = [("pgvector", VectorIndex(PgVectorOptions(exact_up_to=30))), ("pgwords", WordIndex())]
        for name, index in indexes:
            store.enlist(name, index)
        made.append(Collection(store, HashEmbedder(), indexes))
    return made


def test_rows_and_indexes_agree_after_many_writers(collections):
    gate = threading.Barrier(WRITERS)

    def write(number):
        collection, chance = collections[number], random.Random(number)
        gate.wait()
        for turn in range(ROUNDS):
            documents = []
            for name in chance.sample(range(6), 3):
                document = make_document(f"notes/{name}.md", f"one\nthe pier {name}\nline {number} {turn}")
                documents.append((document, cut_lines(document)))
            written = collection.replace(documents)
            Backfill(collection, EmbeddingRun()).embed(collection.lacking_of(written))
            gone = f"notes/{chance.randrange(6)}.md"
            collection.remove([gone], forget=turn % 6 == 0)
            if turn % 4 == 0:
                Backfill(collection, EmbeddingRun()).fill()

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    collection = collections[0]
    assert "pgwords" in dict(collection.indexes)
    for _ in range(2):  # also what a run repairs agrees
        with collection.store.read() as snapshot:
            keys = snapshot.keys("memory").tolist()
            paths = snapshot.manifest("memory", "notes")
            assert len(keys) == 3 * len(paths)
            for name, index in collection.indexes:
                assert list(index.check(snapshot.resource, "memory", HashEmbedder.space)) == []
                held = index.keys(snapshot.resource, "memory").tolist()
                assert set(held) <= set(keys), name
                if name == "pgwords":
                    assert held == keys
        Backfill(collection, EmbeddingRun()).fill()
    with collection.store.read() as snapshot:
        for _, index in collection.indexes:
            assert index.keys(snapshot.resource, "memory").tolist() == keys


def test_writers_of_other_documents_do_not_wait(collections):
    first, second, *_ = (collection.store for collection in collections)
    put(first, *(make_document(f"notes/{name}.md", "one") for name in "ab"))
    words = dict(collections[0].indexes)["pgwords"]
    with first.write() as transaction:
        document = make_document("notes/a.md", "two")
        change = transaction.replace("memory", document, cut_lines(document))
        words.add(transaction.resource, "memory", change.added, None)
        transaction.messages.chats()
        with second.write() as other:
            other.resource.run("SET LOCAL lock_timeout = '1s'")
            document = make_document("notes/b.md", "three")
            change = other.replace("memory", document, cut_lines(document))
            words.add(other.resource, "memory", change.added, None)
    with first.read() as snapshot:
        assert len(words.keys(snapshot.resource, "memory")) == len(snapshot.keys("memory")) == 2


def test_forgetting_waits_for_writers_of_the_document(collections):
    first, second, *_ = collections
    put(first.store, make_document("notes/b.md", "one"))
    document = make_document("notes/a.md", "the lantern")
    with ThreadPoolExecutor(1) as pool:
        with first.store.write() as transaction:
            transaction.replace("memory", document, cut_lines(document))
            forgotten = pool.submit(second.remove, [document.path], forget=True)
            pids = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            while not transaction.resource.value(pids):
                time.sleep(0.01)
        assert forgotten.result(300).chunks == 1
    with first.store.read() as snapshot:
        assert not snapshot.outline("memory", document.path)


def test_two_writers_can_remove_words_of_one_segment(collections):
    first, second, *_ = collections
    words = dict(first.indexes)["pgwords"]
    documents = [make_document(f"notes/{name}.md", f"the pier {name}") for name in "abcdefgh"]
    first.replace([(document, cut_lines(document)) for document in documents])
    with ThreadPoolExecutor(1) as pool:
        with first.store.write() as transaction:
            words.remove(transaction.resource, "memory", transaction.delete("memory", "notes/a.md"))
            other = pool.submit(second.remove, ["notes/b.md"])
            waiting = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted"
            while not transaction.resource.value(waiting) and not other.done():
                time.sleep(0.01)
        other.result(300)
    with first.store.read() as snapshot:
        assert list(words.check(snapshot.resource, "memory", None)) == []
        assert words.keys(snapshot.resource, "memory").tolist() == snapshot.keys("memory").tolist()
        assert len(snapshot.keys("memory")) == 6


def test_a_writer_merges_no_words_that_another_has_just_merged(collections, monkeypatch):
    from klaw_store_postgres.session import Session
    from klaw_store_postgres.words import segments

    first, second, *_ = collections
    documents = [make_document(f"notes/{name}.md", f"the pier {name}") for name in "abcdefgh"]
    for document in documents[:-1]:
        first.replace([(document, cut_lines(document))])
    try_lock = Session.try_lock

    def be_late(session, name):
        monkeypatch.setattr(Session, "try_lock", try_lock)
        with second.store.write() as other:
            numbers = [head.id for head in segments.heads(other.resource, "memory")]
            other.resource.lock(name)
            segments.merge(other.resource, "memory", numbers)
        return try_lock(session, name)

    monkeypatch.setattr(Session, "try_lock", be_late)
    first.replace([(documents[-1], cut_lines(documents[-1]))])
    assert Session.try_lock is try_lock, "the merge was due"
    words = dict(first.indexes)["pgwords"]
    with first.store.read() as snapshot:
        assert list(words.check(snapshot.resource, "memory", None)) == []
        assert words.keys(snapshot.resource, "memory").tolist() == snapshot.keys("memory").tolist()
        assert len(segments.heads(snapshot.resource, "memory")) == 2


def test_more_threads_than_connections_append_and_none_takes_a_second_connection(server, agent, tmp_path, monkeypatch):
    """With a second one, the threads could hold all connections while each of them waits for one more."""
    from psycopg_pool import ConnectionPool

    held, most = threading.local(), []

    def taking(pool, *args, getconn=ConnectionPool.getconn, **kwargs):
        held.now = getattr(held, "now", 0) + 1
        most.append(held.now)
        return getconn(pool, *args, **kwargs)

    def giving(pool, *args, putconn=ConnectionPool.putconn, **kwargs):
        held.now = getattr(held, "now", 1) - 1  # the main thread takes and gives in threads of their own
        return putconn(pool, *args, **kwargs)

    monkeypatch.setattr(ConnectionPool, "getconn", taking)
    monkeypatch.setattr(ConnectionPool, "putconn", giving)
    store = {"type": "postgres", "dsn": server.dsn, "pool_size": 4}
    tables = {"store": store, "embedding": {"type": "none"}}
    config = load_config(data_dir=tmp_path, environment={"KLAW_CONFIG": "/dev/null"}, overrides={"memory": tables})
    with Memory.open(evolve(config, agent=agent)) as memory, ThreadPoolExecutor(16) as pool:

        def append(thread):
            chat = Chat("telegram", str(thread))
            for number in range(4):
                memory.conversations.append(Message("user", f"lantern {number}", MOMENT, meta=chat.meta))
            memory.save(f"the lantern of {thread}")
            return [found.content for found in memory.conversations.search("lantern", chat=chat)]

        assert [len(found) for found in pool.map(append, range(16))] == [4] * 16
        assert max(most) == 1


def test_a_transaction_that_ends_in_another_thread_is_no_longer_read_from(open_store):
    store = open_store()
    records = store.journals.records("notes")
    records.append([{"id": "a"}])
    writing = store.write()
    writing.__enter__()
    assert set(records.get(["a"])) == {"a"}
    with ThreadPoolExecutor(1) as pool:
        pool.submit(writing.__exit__, None, None, None).result()
    assert set(records.get(["a"])) == {"a"}


@pytest.mark.parametrize("texts", [["the xylophone"], ["the lantern", "the xylophone", "the pier"]])
def test_a_message_that_is_forgotten_while_its_day_is_read_for_the_first_time(
    server, agent, tmp_path, monkeypatch, texts
):
    store = {"type": "postgres", "dsn": server.dsn}
    tables = {"store": store, "embedding": {"type": "none"}}
    config = load_config(data_dir=tmp_path, environment={"KLAW_CONFIG": "/dev/null"}, overrides={"memory": tables})
    config = evolve(config, agent=agent)
    with Memory.open(config) as memory, Memory.open(config) as beside:
        chat = Chat("telegram", "1")
        messages = [Message("user", text, MOMENT, id=text[4:], meta=chat.meta) for text in texts]
        memory.conversations.append_many(messages)
        original, pending = Collection.replace, [lambda: beside.conversations.forget(chat, "xylophone")]

        def replace(self, *arguments, **options):
            if pending:
                pending.pop()()
            return original(self, *arguments, **options)

        monkeypatch.setattr(Collection, "replace", replace)
        memory.index()
        assert not memory.search("xylophone")
        assert len(memory.search("the lantern")) == (len(texts) > 1)
        assert memory.index().changed == 0
        assert memory.doctor().findings == ()
