"""How words are kept: in blocks of terms, of what is added and of what earlier versions kept."""

import random
from contextlib import closing, suppress

import apsw
import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core import Query
from klaw_fts5.index import Fts5Index
from klaw_journals import StoredMessage
from klaw_testing.index import stored
from klaw_testing.laws import law, scaled
from klaw_testing.values import MOMENT


@settings(law, max_examples=scaled(100))
@given(
    postings=st.dictionaries(
        st.binary(min_size=1, max_size=9),
        st.sets(st.tuples(st.integers(0, 200_000), st.integers(0, 1 << 21)), min_size=1, max_size=40),
        max_size=200,
    ),
    often=st.booleans(),
)
def test_law_of_blocks(postings, often):
    """What blocks are made of is found in them, term by term, whatever lies between."""
    from klaw_store_postgres.words.blocks import Block, Postings, blocks, holders

    if often:
        postings[b"of"] = {(row, row % 7) for row in range(0, 200_000, 9)}
    terms = sorted(postings)
    places = [sorted(postings[term]) for term in terms]
    whole = np.array([place for some in places for place in some], np.int64).reshape(-1, 2)
    counts = np.array([len(some) for some in places], np.int64)
    made = list(blocks(Postings(terms, counts, whole[:, 0].astype(np.int32), whole[:, 1].astype(np.uint32))))
    assert [first for first, _, _ in made] == sorted({first for first, _, _ in made})
    found = []
    for number, (first, held, blob) in enumerate(made):
        block = Block.read(blob)
        assert block.terms[0] == first
        assert held is None or (list(block.terms), held) == ([first], holders(block.rows()))
        assert number + 1 == len(made) or block.terms[-1] < made[number + 1][0]
        assert len(block.rows()) == len(block.spots)
        for term in block.terms:
            stands = block.find(term)
            found.append((term, list(zip(stands.rows().tolist(), stands.spots.tolist(), strict=True))))
        assert block.find(first + b"\0") is None or first + b"\0" in postings
    assert found == list(zip(terms, places, strict=True))
    assert not often or any(held == len(range(0, 200_000, 9)) for _, held, _ in made)


def test_words_of_earlier_versions_are_found(options, monkeypatch):
    from klaw_store_postgres import store as module
    from klaw_store_postgres.store import PostgresStore
    from klaw_store_postgres.words.index import WordIndex

    own = evolve(options, schema="earlier_words")
    with monkeypatch.context() as patch:
        patch.setattr(module, "MIGRATIONS", module.MIGRATIONS[:4])
        for agent in ("a", "b"):
            store = PostgresStore(own, agent=agent)
            with store.write() as transaction:
                _write_as_before(transaction.resource, f"harbour {agent}")
            store.close()
    for agent, other in (("a", "b"), ("b", "a")):
        store, index = PostgresStore(own, agent=agent), WordIndex()
        store.enlist("pgwords", index)
        with store.read() as snapshot:
            questions = ("harbour", f'"harbour {agent}"', f'"{agent} harbour"', other)
            found = [[hit.key for hit in index.search(snapshot.resource, Query(text), 9)] for text in questions]
            assert found == [[2, 1], [1], [], []]  # a heading counts more
            assert index.check(snapshot.resource, "memory", None) == ()
        with store.write() as transaction:
            index.add(transaction.resource, "memory", [stored(3, "harbour")], None)
            index.remove(transaction.resource, "memory", [1])
            index.erase(transaction.resource, "memory")
        with store.read() as snapshot:
            assert {hit.key for hit in index.search(snapshot.resource, Query("harbour"), 9)} == {2, 3}
            assert index.search(snapshot.resource, Query(agent), 9) == ()
        store.close()


def test_words_of_an_earlier_form_are_outdated_for_every_agent(options, monkeypatch):
    from klaw_store_postgres import store as module
    from klaw_store_postgres.store import PostgresStore
    from klaw_store_postgres.words.index import WordIndex

    own = evolve(options, schema="names_like_function_words")
    index = WordIndex()
    with monkeypatch.context() as patch:
        patch.setattr(module, "MIGRATIONS", module.MIGRATIONS[:10])
        for agent in ("a", "b"):
            with closing(PostgresStore(own, agent=agent)) as store, store.write() as transaction:
                index.add(transaction.resource, "memory", [stored(1, "Ines in the harbour")], None)
                assert not len(index.outdated(transaction.resource, "memory"))
    for agent in ("a", "b"):
        with closing(PostgresStore(own, agent=agent)) as store, store.write() as transaction:
            assert index.outdated(transaction.resource, "memory").tolist() == [1]
            index.remove(transaction.resource, "memory", [1])
            index.add(transaction.resource, "memory", [stored(1, "Ines in the harbour"), stored(2, "in")], None)
            assert not len(index.outdated(transaction.resource, "memory"))
            assert [hit.key for hit in index.search(transaction.resource, Query("Ines"), 9)] == [1]


def test_a_segment_of_any_size_is_written_again(options, monkeypatch):
    """Earlier versions merged segments without a limit of rows; a row's number may need more bits than a new one's."""
    from klaw_store_postgres import store as module
    from klaw_store_postgres.store import PostgresStore
    from klaw_store_postgres.words.index import WordIndex

    count = (1 << 18) + 1_000
    own = evolve(options, schema="large_segment")
    with monkeypatch.context() as patch:
        patch.setattr(module, "MIGRATIONS", module.MIGRATIONS[:4])
        store = PostgresStore(own, agent="a")
        with store.write() as transaction:
            session = transaction.resource
            place = (*session.scope, "memory", session.value("SELECT nextval('word_segment_ids')"))
            session.run(
                """INSERT INTO word_segments (tenant, generation, collection, id, rows, tokens, keys, lengths)
                   VALUES (%s, %s, %s, %s, %s, %s, %s, %s)""",
                (*place, count, count, np.arange(1, count + 1, dtype="<i8").tobytes(), np.ones(count, "<u4").tobytes()),
            )
            sql = "INSERT INTO word_rows SELECT %s, %s, %s, key, %s FROM generate_series(1, %s) key"
            session.run(sql, (*place, count))
            rows = np.arange(count)
            for term, some in ((b"first", rows[:100]), (b"middle", rows[100:-50]), (b"zuletzt", rows[-50:])):
                values = (*place[:3], term, place[3], len(some), (some.astype("<i8") << 22).tobytes())
                session.run("INSERT INTO word_postings VALUES (%s, %s, %s, %s, %s, %s, %s)", values)
        store.close()
    store, index = PostgresStore(own, agent="a"), WordIndex()
    store.enlist("pgwords", index)
    with store.write() as transaction:
        index.remove(transaction.resource, "memory", [1])
        index.erase(transaction.resource, "memory")
    with store.read() as snapshot:
        for word, keys in (("first", range(2, 101)), ("zuletzt", range(count - 49, count + 1))):
            assert {hit.key for hit in index.search(snapshot.resource, Query(word), 200)} == set(keys)
    store.close()


def _write_as_before(session, text):
    """Write a segment of two chunks: one has the text, the other its first word as a heading."""
    first, second = text.split()
    place = (*session.scope, "memory", session.value("SELECT nextval('word_segment_ids')"))
    session.run(
        """INSERT INTO word_segments (tenant, generation, collection, id, rows, tokens, keys, lengths)
           VALUES (%s, %s, %s, %s, 2, 4, %s, %s)""",
        (*place, np.array([1, 2], "<i8").tobytes(), np.array([2, 2], "<u4").tobytes()),
    )
    for key in (1, 2):
        session.run("INSERT INTO word_rows VALUES (%s, %s, %s, %s, %s)", (*place[:3], key, place[3]))
    postings = {first: [0, 1 << 22 | 1 << 20], second: [1], "else": [1 << 22]}
    for term, places in postings.items():
        held = len({one >> 22 for one in places})
        values = (*place[:3], term.encode(), place[3], held, np.array(places, "<i8").tobytes())
        session.run("INSERT INTO word_postings VALUES (%s, %s, %s, %s, %s, %s, %s)", values)


@pytest.mark.parametrize("text", ["har*", "harb*", "harbour*"])
def test_beginnings_are_found_in_every_block(open_store, text):
    from klaw_store_postgres.words.index import WordIndex

    store, index = open_store(), WordIndex()
    store.enlist("pgwords", index)
    chunks = [stored(key, f"harbour{key} " + " ".join(f"pier{key}x{n}" for n in range(60))) for key in range(1, 60)]
    with store.write() as transaction:
        index.add(transaction.resource, "memory", chunks[:40], None)
        index.add(transaction.resource, "memory", chunks[40:], None)
    with store.read() as snapshot:
        assert len(index.search(snapshot.resource, Query(text), 99)) == 59
        assert index.search(snapshot.resource, Query("lighthouse*"), 99) == ()


@pytest.fixture
def many(open_store):
    """Both indexes with 4,000 chunks of words that are ever rarer, some of them removed."""
    from klaw_store_postgres.words.index import WordIndex

    chance, store, index = random.Random(5), open_store(), WordIndex()
    store.enlist("pgwords", index)
    names = [f"w{rank}" for rank in range(1_000)]
    weights = [1 / (rank + 5) for rank in range(1_000)]
    chunks = [
        stored(key, " ".join(chance.choices(names, weights, k=chance.randrange(5, 40))), (names[key % 300],))
        for key in range(1, 4_001)
    ]
    connection, exact = apsw.Connection(":memory:"), Fts5Index(search_by="exact")
    for migration in exact.migrations():
        migration.apply(connection)
    for first in range(0, len(chunks), 500):
        exact.add(connection, "memory", chunks[first : first + 500], None)
        with store.write() as transaction:
            index.add(transaction.resource, "memory", chunks[first : first + 500], None)
    with store.write() as transaction:
        for some, resource in ((exact, connection), (index, transaction.resource)):
            some.remove(resource, "memory", list(range(7, 4_000, 97)))
    yield store, index, connection, exact
    connection.close()


def test_answers_of_many_segments_are_those_of_fts5(many):
    store, index, connection, exact = many
    chance = random.Random(6)
    with store.read() as snapshot:
        for _ in range(40):
            text = " ".join(f"w{int(chance.paretovariate(0.5)) % 1_000}" for _ in range(4))
            found, expected = (
                some.search(resource, Query(text), 100)
                for some, resource in ((index, snapshot.resource), (exact, connection))
            )
            assert [hit.key for hit in found] == [hit.key for hit in expected]
            assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected])
            assert [hit.relevance for hit in found] == pytest.approx([hit.relevance for hit in expected])


def test_a_filter_that_many_chunks_pass_gives_what_the_list_of_their_keys_gives(options, monkeypatch):
    from klaw_core import Chunk, Document, Filters
    from klaw_store_postgres.filtering import SqlSelection
    from klaw_store_postgres.store import PostgresStore
    from klaw_store_postgres.words import index as module
    from klaw_store_postgres.words.index import WordIndex

    rng = random.Random(3)
    store, index = PostgresStore(evolve(options, schema="wide_filters"), agent="a"), WordIndex()
    store.enlist("pgwords", index)
    words = [f"w{number}" for number in range(30)]
    with store.write() as transaction:
        for number in range(1_500):
            text = " ".join(rng.choices(words, [1 / (rank + 1) for rank in range(30)], k=rng.randint(1, 9)))
            source = rng.choice(("often", "often", "often", "rarely" if number % 90 == 0 else "often"))
            document = Document(f"notes/{number}.md", text, source, "notes", MOMENT)
            chunk = Chunk(f"{number:032x}", text, 0, len(text), 1, 1)
            added = transaction.replace("memory", document, [chunk]).added
            index.add(transaction.resource, "memory", added, None)

    def answers(source):
        with store.read() as snapshot:
            for text in ("w0", "w3 w7", "w1 w2 w29", "w0 w28", "absent"):
                selection = snapshot.select("memory", Filters(source=source))
                yield list(index.search(snapshot.resource, Query(text, within=selection), 7)), selection

    for source in ("often", "rarely", "never"):
        listed = [hits for hits, _ in answers(source)]
        with monkeypatch.context() as patch:
            patch.setattr(module, "_MAX_LISTED_KEYS", 1)
            patch.setattr(module, "_MAX_LISTED_SHARE", 0)
            found = list(answers(source))
            assert [[hit.key for hit in hits] for hits, _ in found] == [[hit.key for hit in hits] for hits in listed]
            if source == "often":
                patch.setattr(SqlSelection, "keys", None)  # is not asked
                assert [hits for hits, _ in answers(source)] == [hits for hits, _ in found]
                assert [len(hits) for hits in listed[:4]] == [7] * 4
    store.close()


def test_messages_with_equal_scores_come_in_order_of_chat_and_position(options):
    from klaw_store_postgres.store import PostgresStore

    store = PostgresStore(evolve(options, schema="equal_scores"), agent="a")
    day = MOMENT.date()
    with store.write() as transaction:
        for chat in ("b", "a"):  # their keys are in another order
            for position in range(20):
                message = StoredMessage(f"{position}", "x", chat, "user", "the harbour", MOMENT, day, position)
                transaction.messages.insert([message])
        transaction.messages.insert([StoredMessage("best", "x", "z", "user", "harbour", MOMENT, day, 0)])
    with store.read() as snapshot:
        found = [(one.chat_id, one.position) for one in snapshot.messages.search("harbour", 4)]
        assert found == [("z", 0), ("a", 0), ("a", 1), ("a", 2)]
        assert snapshot.messages.chats() == ["a", "b", "z"]
    store.close()


def test_cached_scores_do_not_change_answers(open_store):
    """Whatever was added, removed, merged or rolled back: the caches of a process answer as empty ones do."""
    from klaw_store_postgres.words.index import WordIndex
    from klaw_words.caching import Kept

    chance, store, index = random.Random(7), open_store(), WordIndex()
    store.enlist("pgwords", index)
    words = ("harbour", "lantern", "pier", "the", "green lantern", "数据库", "архитектура")
    questions = ("green lantern at the pier", '"green lantern"', "harb*", "数据", "архитектуры", "the")
    kept, answered = list[int](), 0

    class RolledBackError(Exception):
        pass

    for step in range(1, 41):
        gone = chance.choice(kept) if kept and chance.random() < 0.3 else None
        rolled_back = chance.random() < 0.2
        changed = kept
        with suppress(RolledBackError), store.write() as transaction:
            if gone is None:
                text = " ".join(chance.choices(words, k=6))
                index.add(transaction.resource, "memory", [stored(step, text)], None)
                changed = [*kept, step]
            else:
                index.remove(transaction.resource, "memory", [gone])
                index.erase(transaction.resource, "memory")
                changed = [key for key in kept if key != gone]
            index.search(transaction.resource, Query(questions[0]), 50)
            if rolled_back:
                changed = kept
                raise RolledBackError
        kept = changed
        with store.read() as snapshot:
            found = [index.search(snapshot.resource, Query(text), 50) for text in questions]
            snapshot.resource.kept = Kept()
            assert found == [index.search(snapshot.resource, Query(text), 50) for text in questions]
            assert {hit.key for hits in found for hit in hits} <= set(kept)
            answered += sum(map(bool, found))
    assert answered > 100
