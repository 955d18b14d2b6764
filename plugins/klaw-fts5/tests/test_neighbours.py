"""Words side by side rank higher by packed postings, nearly as by FTS5, and few sequences are read for it."""

from __future__ import annotations

import random

import apsw
import numpy as np
import pytest

from klaw_core import Query
from klaw_core.testing.index import stored
from klaw_fts5.index import Fts5Index

EXACT, PACKED = Fts5Index(search_by="exact"), Fts5Index(search_by="packed")
EXACT_WORDS, PACKED_WORDS = Fts5Index(search_by="exact", pair_weight=0), Fts5Index(search_by="packed", pair_weight=0)


def text_of(source: random.Random, words: int) -> str:
    """Return words of which the first are frequent and the last rare, as in any language."""
    return " ".join(f"w{min(int(source.paretovariate(0.7)), 200)}" for _ in range(words))


def fill(connection: apsw.Connection, *texts: str) -> None:
    PACKED.add(connection, "memory", [stored(key, text) for key, text in enumerate(texts, start=1)], None)


@pytest.fixture
def filled(connection: apsw.Connection) -> apsw.Connection:
    source = random.Random(1)
    fill(connection, *(text_of(source, source.randrange(1, 60)) for _ in range(700)))
    return connection


def share(connection: apsw.Connection, exact: Fts5Index, packed: Fts5Index, text: str) -> float:
    """Return how many of the ten that FTS5 finds the packed form finds."""
    expected = {hit.key for hit in exact.search(connection, Query(text), 10)}
    return len(expected & {hit.key for hit in packed.search(connection, Query(text), 10)}) / len(expected)


def test_neighbouring_words_rank_nearly_as_with_fts5(filled: apsw.Connection) -> None:
    source = random.Random(3)
    shares = [share(filled, EXACT, PACKED, text_of(source, 8)) for _ in range(60)]
    assert np.mean(shares) > 0.85  # of 200 words; in English text .98


def test_phrases_of_frequent_words_rank_nearly_as_with_fts5(
    filled: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klaw_fts5.packed.answering._FEW_HOLDERS", 5)
    source = random.Random(5)
    questions = [[f"w{source.randrange(2, 60)}" for _ in range(6)] for _ in range(40)]
    shares = [
        share(filled, EXACT_WORDS, PACKED_WORDS, f"{first}-{second} {' '.join(others)}")
        for first, second, *others in questions
    ]
    assert np.mean(shares) > 0.85


def test_words_side_by_side_rank_higher(connection: apsw.Connection) -> None:
    fill(connection, "a hall in a town", "hall of that town", "an old town hall", *("nothing of this here",) * 20)
    assert [hit.key for hit in PACKED.search(connection, Query("town hall"), 5)] == [3, 2, 1]


def test_a_phrase_of_frequent_words_ranks_first(connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klaw_fts5.packed.answering._FEW_HOLDERS", 2)
    fill(connection, "a hall in a town", "an old town hall", "a town", "the hall", *("nothing of this here",) * 20)
    found = PACKED_WORDS.search(connection, Query("town-hall"), 9)
    assert [hit.key for hit in found[:2]] == [2, 1]
    assert {hit.key for hit in found} == {1, 2, 3, 4}
    assert found[0].score > 1.5 * found[1].score


@pytest.mark.parametrize("seed", range(12))
def test_a_smaller_limit_cuts_the_end_off(filled: apsw.Connection, seed: int) -> None:
    query = Query(text_of(random.Random(seed), 8))
    found = PACKED.search(filled, query, 200)
    assert {limit for limit in (1, 10, 50) if PACKED.search(filled, query, limit) != found[:limit]} == set()


def test_a_phrase_is_looked_for_everywhere_where_none_of_its_telling_words_is_asked_for(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klaw_fts5.packed.answering._FEW_HOLDERS", 2)
    fill(connection, "a guide", "a how to of it", "how it came to be", *("nothing to see here",) * 20)
    expected = EXACT_WORDS.search(connection, Query("how-to guide"), 9)
    assert {hit.key for hit in expected} == {1, 2}
    assert PACKED_WORDS.search(connection, Query("how-to guide"), 9) == expected


def test_a_compound_of_words_that_many_chunks_hold_is_found_wherever_it_stands(connection: apsw.Connection) -> None:
    apart = ("alpha of beta", "beta of alpha") * 300
    fill(connection, f"alpha-beta {'in a long text ' * 30}", *apart, *("nothing of this here",) * 700)
    expected = EXACT_WORDS.search(connection, Query("alpha-beta"), 10)
    assert expected[0].key == 1
    assert PACKED_WORDS.search(connection, Query("alpha-beta"), 10)[0].key == 1


def test_of_chunks_that_cannot_hold_a_pair_no_sequence_is_read(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = ("a town without one",) * 9
    fill(connection, "an old town hall", "a hall in a town", *town, *("nothing of this here",) * 20)
    found = PACKED.search(connection, Query("town hall"), 11)
    assert [hit.key for hit in found[:2]] == [1, 2]
    assert found[0].score > PACKED_WORDS.search(connection, Query("town hall"), 11)[0].score
    connection.execute("UPDATE memory_words_sequences SET data = 'damaged' WHERE key > 2")
    monkeypatch.delattr("klaw_fts5.index.Exact")  # who would answer if a damaged sequence were read
    again = PACKED.search(connection, Query("town hall"), 11)
    assert [(hit.key, hit.score) for hit in again] == [(hit.key, hit.score) for hit in found]
