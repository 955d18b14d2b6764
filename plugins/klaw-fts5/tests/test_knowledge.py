"""What is kept between questions never outlives a change, and suggestions are those of plain look-ups."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_core import Query
from klaw_fts5.exact import ExactSearch
from klaw_fts5.index import Fts5Index
from klaw_fts5.knowledge import KnowledgeCache, TermHits, WordKnowledge
from klaw_fts5.packed.state import PackedState, read_state
from klaw_fts5.sql import statements
from klaw_fts5.vocabulary import Vocabulary
from klaw_testing.index import stored
from klaw_testing.laws import scaled
from klaw_words.query import Term
from klaw_words.searching import Weights

WORDS = ("lifetime", "lifetimes", "closure", "closures", "clothes", "жизнь", "object", "objects", "the", "a", "数据")
QUESTIONS = ("the closure of a lifetime", "objects", "clothes object", "absent lifetime", "数据 жизни")
SLIPS = ("clsoures", "obejct lifetme")

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
changes = st.lists(st.one_of(texts, st.integers(1, 30)), min_size=1, max_size=12)


def answers(index: Fts5Index, connection: apsw.Connection) -> list[object]:
    found: list[object] = [index.search(connection, Query(question), 10) for question in QUESTIONS]
    return found + [index.suggest(connection, Query(slip), lambda _keys: WORDS) for slip in SLIPS]


@given(changes=changes)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=scaled(40), deadline=None)
def test_cached_knowledge_does_not_change_answers(connection: apsw.Connection, changes: list[str | int]) -> None:
    """A text is added, a number is the key of what is removed; after each change everything is asked."""
    asked = Fts5Index()
    asked.reset(connection, "memory", None)
    for key, change in enumerate(changes, start=1):
        if isinstance(change, str):
            asked.add(connection, "memory", [stored(key, change)], None)
        else:
            asked.remove(connection, "memory", [change])
        assert answers(asked, connection) == answers(Fts5Index(), connection)


def test_knowledge_of_a_rolled_back_change_is_dropped(connection: apsw.Connection) -> None:
    index = Fts5Index()
    index.add(connection, "memory", [stored(1, "a closure")], None)
    before = answers(index, connection)
    connection.execute("BEGIN")
    index.add(connection, "memory", [stored(2, "the lifetime of a closure")], None)
    assert answers(index, connection) != before
    connection.execute("ROLLBACK")
    assert answers(index, connection) == before


def test_a_word_is_read_once(connection: apsw.Connection) -> None:
    index = Fts5Index()
    index.add(connection, "memory", [stored(key, "the lifetime of a closure") for key in range(1, 30)], None)
    seen: list[str] = []
    connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: seen.append(event["sql"]))
    answers(index, connection)
    first = len(seen)
    answers(index, connection)
    assert len(seen) - first < first


def test_the_size_of_cached_knowledge_is_limited() -> None:
    from array import array

    known = WordKnowledge()
    for number in range(20_001):
        known.keep_count(Term((f"w{number}",)), 1, 1)
    assert known.counted(Term(("w20000",))) == (1, 1)
    assert known.counted(Term(("w0",))) == (0, 0)
    for number in range(3):
        keys = array("q", range(200_000))
        known.keep_hits(Term((f"w{number}",)), TermHits(keys, array("d", keys)))
    assert known.hits(Term(("w0",))) is None
    assert known.hits(Term(("w2",))) is not None


def test_a_new_stamp_drops_all_knowledge() -> None:
    cache = KnowledgeCache()
    known = cache.of("memory", PackedState(1, 0, b"one"))
    assert cache.of("memory", PackedState(1, 0, b"one")) is known
    assert cache.of("memory", PackedState(1, 0, b"two")) is not known
    assert cache.of("memory", None) is not cache.of("memory", None)


@given(held=st.lists(texts, min_size=1, max_size=8), asked=st.text("lifetmcosur", min_size=4, max_size=9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=scaled(40), deadline=None)
def test_stems_are_present_exactly_if_a_chunk_has_them(
    connection: apsw.Connection, held: list[str], asked: str
) -> None:
    index = Fts5Index()
    index.reset(connection, "memory", None)
    index.add(connection, "memory", [stored(key, text) for key, text in enumerate(held, start=1)], None)
    sql = statements("memory")
    words = Vocabulary(ExactSearch(connection, sql, Weights(), 0), lambda _term: False)
    stems = {"", "lifetim", "closur", "cloth", "object", "жизн", "zzz", asked, asked[:3], "数据"}
    connection.execute(sql.vocabulary)
    terms = {term for (term,) in connection.execute("SELECT term FROM temp.memory_words_vocabulary")}
    assert words._present(stems) == terms & stems
    connection.execute(sql.drop_vocabulary)


def test_without_packed_words_all_terms_are_read(connection: apsw.Connection) -> None:
    index = Fts5Index()
    index.add(connection, "memory", [stored(1, "the lifetime of a closure")], None)
    state = read_state(connection, "memory")
    assert state is not None
    assert (state.rows, state.lacking) == (0, 1)
    assert index.suggest(connection, Query("lifetme"), lambda _keys: WORDS) == "lifetime"
    assert index._knowledge.of("memory", state).terms is not None


@pytest.mark.parametrize("text", ["lifetme of a clsoure", "lifetimee", "obejct"])
def test_a_suggestion_leaves_no_table_behind(connection: apsw.Connection, text: str) -> None:
    index = Fts5Index()
    index.add(connection, "memory", [stored(key, "the lifetime of a closure object") for key in range(1, 30)], None)
    meant = index.suggest(connection, Query(text), lambda keys: ["the lifetime of a closure object" for _ in keys])
    assert meant in {"lifetime of a closure", "lifetime", "object"}
    assert connection.execute("SELECT COUNT(*) FROM temp.sqlite_schema").get == 0
