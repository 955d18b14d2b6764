"""The words find what fts5 finds, in its order and with its scores."""

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core import KeySelection, Query
from klaw_fts5.index import Fts5Index
from klaw_testing.index import stored
from klaw_testing.laws import law, scaled

_words = st.sampled_from(
    [
        *("harbour", "harbours", "lantern", "pier", "the", "of", "what", "snake_case", "C++", "cat's", "x1", "archit"),
        *(
            "память",
            "памяти",
            "内存布局",
            "数据",
            "ไทยแลนด์",
            "Ünïcödé",
            "architecture",
            '"the pier"',
            "har*",
            "a-b",
            ".",
        ),
    ]
)
_texts = st.lists(_words, max_size=12).map(" ".join)
_chunks = st.lists(st.tuples(_texts, _texts, _texts), min_size=1, max_size=12)


@pytest.fixture
def search(open_store):
    """Fill both indexes in steps, remove rows, and return what both find."""
    from klaw_store_postgres.words.index import WordIndex

    store, words = open_store(), WordIndex()
    store.enlist("pgwords", words)

    def run(chunks, removed, questions, within):
        made = [
            stored(key, text, (heading,) if heading else (), context)
            for key, (text, heading, context) in enumerate(chunks, start=1)
        ]
        connection, exact = apsw.Connection(":memory:"), Fts5Index(search_by="exact")
        for migration in exact.migrations():
            migration.apply(connection)
        with store.write() as transaction:
            words.reset(transaction.resource, "memory", None)
            for first in range(0, len(made), 3):
                exact.add(connection, "memory", made[first : first + 3], None)
                words.add(transaction.resource, "memory", made[first : first + 3], None)
            for index, resource in ((exact, connection), (words, transaction.resource)):
                index.remove(resource, "memory", sorted(removed))
        found = []
        with store.read() as snapshot:
            for text in questions:
                query = Query(text, "memory", within=within)
                found.append([index.search(resource, query, 20) for index, resource in (
                    (exact, connection), (words, snapshot.resource))])  # fmt: skip
        connection.close()
        return found

    return run


@settings(law, max_examples=scaled(60))
@given(
    chunks=_chunks,
    removed=st.sets(st.integers(1, 12), max_size=4),
    questions=st.lists(_texts, min_size=1, max_size=4),
    kept=st.none() | st.sets(st.integers(1, 12)),
)
def test_law_of_agreement(search, chunks, removed, questions, kept):
    within = None if kept is None else KeySelection(np.array(sorted(kept), np.int64))
    answers = list(search(chunks, removed, questions, within))
    assert len(answers) == len(questions)
    for expected, found in answers:
        assert [hit.key for hit in found] == [hit.key for hit in expected]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected])
        assert [hit.relevance for hit in found] == [
            relevance if relevance is None else pytest.approx(relevance)
            for relevance in (hit.relevance for hit in expected)
        ]


def test_merged_segments_answer_as_before(search):
    texts = [(f"lantern tide{number} {'harbour ' * (number % 5)}", "pier" * (number % 2), "") for number in range(200)]
    questions = ["lantern", "tide42 harbour", '"harbour harbour"', "tid*"]
    answers = list(search(texts, {3, 77, 199}, questions, None))
    assert len(answers) == len(questions)
    for expected, found in answers:
        assert len(expected) > 0
        assert [hit.key for hit in found] == [hit.key for hit in expected]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected])


def test_corrected_words_are_those_of_fts5(texts, open_store):
    from klaw_store_postgres.words.index import WordIndex

    connection, ours, theirs = apsw.Connection(":memory:"), WordIndex(), Fts5Index()
    theirs.prepare(connection)
    for migration in theirs.migrations():
        migration.apply(connection)
    theirs.reset(connection, "memory", None)
    chunks = [stored(key, text) for key, text in texts.items()]
    theirs.add(connection, "memory", chunks, None)
    with open_store().write() as transaction:
        assert ours.suggest(transaction.resource, Query("lantren"), lambda _keys: ()) is None
        ours.add(transaction.resource, "memory", chunks, None)
        found = {}
        for text in (
            "lantren",
            "the borow cheker",
            "lifetime elison?",
            "a harbour",
            "qwertyuiop",
            "фонрь",
            "lantern zzzzz",
        ):
            read = lambda keys: [texts[key] for key in keys]  # noqa: E731
            found[text] = ours.suggest(transaction.resource, Query(text), read)
            assert found[text] == theirs.suggest(connection, Query(text), read)
        asked, plain = Query("ERR_TLS_43 and a lantern"), Query("a lantern")
        assert ours.absent(transaction.resource, asked) == theirs.absent(connection, asked) == ["ERR_TLS_43"]
        assert not ours.absent(transaction.resource, plain)
    assert found["lantren"] == "lantern"
    assert found["the borow cheker"] == "the borrow checker"
    assert found["фонрь"] == "фонарь"


@pytest.fixture
def texts():
    texts = ["the lantern hangs at the harbour", "lifetime elision and the borrow checker", "фонарь на пирсе"]
    return dict(enumerate(texts, 1))
