"""Words side by side: by packed postings they rank as by FTS5, but for pairs that share a hash."""

from __future__ import annotations

import random

import apsw
import numpy as np
import pytest

from klaw_core import Query
from klaw_fts5.index import Fts5Index
from klaw_fts5.packed.numbers import term_number
from klaw_fts5.packed.pairs import pair_number
from klaw_testing.index import stored

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


def ranked(connection: apsw.Connection, index: Fts5Index, text: str) -> dict[int, float]:
    return {hit.key: pytest.approx(hit.score, rel=1e-9) for hit in index.search(connection, Query(text), 10)}


def share(connection: apsw.Connection, exact: Fts5Index, packed: Fts5Index, texts: list[str]) -> float:
    """Return for how many questions both say the same, scores included."""
    return float(np.mean([ranked(connection, exact, text) == ranked(connection, packed, text) for text in texts]))


def test_neighbouring_words_score_as_with_fts5(filled: apsw.Connection) -> None:
    source = random.Random(3)
    assert share(filled, EXACT, PACKED, [text_of(source, 8) for _ in range(60)]) > 0.9


def test_joined_words_score_as_with_fts5(filled: apsw.Connection) -> None:
    source = random.Random(5)
    questions = [[f"w{source.randrange(2, 60)}" for _ in range(6)] for _ in range(60)]
    pairs = [f"{first}-{second} {' '.join(others)}" for first, second, *others in questions]
    assert share(filled, EXACT_WORDS, PACKED_WORDS, pairs) > 0.9
    threes = [f"{first}.{second}.{third} {' '.join(others)}" for first, second, third, *others in questions]
    assert share(filled, EXACT_WORDS, PACKED_WORDS, threes) > 0.9


def test_removed_chunks_are_not_counted(filled: apsw.Connection) -> None:
    PACKED.remove(filled, "memory", range(1, 90))
    source = random.Random(7)
    assert share(filled, EXACT, PACKED, [text_of(source, 8) for _ in range(30)]) > 0.9


def test_neighbouring_words_rank_higher(connection: apsw.Connection) -> None:
    fill(connection, "a hall in a town", "hall of that town", "an old town hall", *("nothing of this here",) * 20)
    assert [hit.key for hit in PACKED.search(connection, Query("town hall"), 5)] == [3, 2, 1]


def test_joined_words_rank_first(connection: apsw.Connection) -> None:
    fill(connection, "a hall in a town", "an old town hall", "a town", "the hall", *("nothing of this here",) * 20)
    found = PACKED_WORDS.search(connection, Query("town-hall"), 9)
    assert [hit.key for hit in found[:2]] == [2, 1]
    assert {hit.key for hit in found} == {1, 2, 3, 4}
    assert found[0].score > 1.5 * found[1].score
    assert ranked(connection, PACKED_WORDS, "town-hall") == ranked(connection, EXACT_WORDS, "town-hall")


def test_a_pair_must_be_in_one_text_and_in_order(connection: apsw.Connection) -> None:
    chunks = [stored(1, "an old town", ("hall",)), stored(2, "hall town"), stored(3, "x", ("town", "hall"))]
    chunks += [stored(key, "nothing to see") for key in range(4, 30)]
    PACKED.add(connection, "memory", chunks, None)
    assert ranked(connection, PACKED, "town hall") == ranked(connection, EXACT, "town hall")


def test_three_joined_words_are_found_exactly_if_one_is_rare(connection: apsw.Connection) -> None:
    texts = "date 2024-01-15 x", "2024-01-20 and 03-01-15 here", "x 2024 01 15"
    fill(connection, *texts, *("nothing of this here",) * 20)
    assert ranked(connection, PACKED_WORDS, "2024-01-15") == ranked(connection, EXACT_WORDS, "2024-01-15")


def test_three_frequent_joined_words_are_found_by_their_pairs(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klaw_fts5.packed.search._FEW_HOLDERS", 2)
    texts = "red green blue", "red green and green blue", "green blue red", "red then green then blue"
    fill(connection, *texts, *("nothing of this here",) * 20)
    found = {hit.key: hit.score for hit in PACKED_WORDS.search(connection, Query("red-green-blue"), 9)}
    words = {hit.key: hit.score for hit in PACKED_WORDS.search(connection, Query("red green blue"), 9)}
    assert {key for key in found if found[key] > words[key]} == {1, 2}


def test_pairs_with_equal_hashes_are_distinguished_by_their_words(connection: apsw.Connection) -> None:
    wanted = numbers("old", "town")
    shared = next(
        f"q{first}z r{second}z"
        for first in range(1000)
        for second in range(1000)
        if numbers(f"q{first}z", f"r{second}z") == wanted
    )
    fill(connection, "old town", "town old", shared, f"old {shared}", f"town {shared}", *("nothing to see",) * 30)
    for text in ("old town", "old-town", f"see old-town {shared}"):
        assert ranked(connection, PACKED, text) == ranked(connection, EXACT, text), text


def numbers(*words: str) -> int:
    first, second = (term_number(word.encode()) for word in words)
    return pair_number(first, second)


@pytest.mark.parametrize(
    "text",
    ["town-hal*", "hall-town", '"town hall" town-hall', 'town-hall "town hall"', "use-case", "its use", "城市-x"],
)
def test_joined_words_find_the_same_as_fts5(connection: apsw.Connection, text: str) -> None:
    texts = "town halls", "town halfway", "town and x", "hall townish", "hall", "town", "its use case", "case in use"
    fill(connection, *texts, "城市 x", "市城 x", *("nothing to see",) * 30)
    assert ranked(connection, PACKED, text) == ranked(connection, EXACT, text)


def test_a_rare_pair_of_frequent_words_is_informative(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klaw_fts5.packed.search._FEW_HOLDERS", 2)
    apart = ("machine and learning", "learning or machine") * 20
    fill(connection, "machine learning", *apart, "deep sea", "deep blue", *("nothing to see",) * 20)
    text = "deep machine-learning"
    assert ranked(connection, PACKED_WORDS, text) == ranked(connection, EXACT_WORDS, text)
    assert PACKED_WORDS.search(connection, Query(text), 9)[0].key == 1


@pytest.mark.parametrize("seed", range(12))
def test_a_smaller_limit_returns_the_first_hits(filled: apsw.Connection, seed: int) -> None:
    query = Query(text_of(random.Random(seed), 8))
    found = PACKED.search(filled, query, 100)
    assert {limit for limit in (1, 10, 50) if PACKED.search(filled, query, limit) != found[:limit]} == set()


def test_joined_words_of_which_one_is_a_function_word_are_looked_for_by_fts5(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klaw_fts5.packed.search._FEW_HOLDERS", 2)
    fill(connection, "a guide", "a how to of it", "how it came to be", *("nothing to see here",) * 20)
    expected = EXACT_WORDS.search(connection, Query("how-to guide"), 9)
    assert {hit.key for hit in expected} == {1, 2}
    assert PACKED_WORDS.search(connection, Query("how-to guide"), 9) == expected


def test_an_informative_word_is_enough_if_the_pair_is_slow(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klaw_fts5.packed.search._FEW_HOLDERS", 2)
    fill(connection, "in house", "a house", "the house in it", *("nothing in this here",) * 20)
    assert ranked(connection, PACKED_WORDS, "in-house") == ranked(connection, EXACT_WORDS, "house")


def test_a_compound_of_frequent_words_is_found_everywhere(connection: apsw.Connection) -> None:
    apart = ("alpha of beta", "beta of alpha") * 300
    fill(connection, f"alpha-beta {'in a long text ' * 30}", *apart, *("nothing of this here",) * 700)
    assert ranked(connection, PACKED_WORDS, "alpha-beta") == ranked(connection, EXACT_WORDS, "alpha-beta")
    assert PACKED_WORDS.search(connection, Query("alpha-beta"), 10)[0].key == 1


def test_an_index_without_pairs_is_filled_again(connection: apsw.Connection) -> None:
    fill(connection, "an old town hall", *("nothing of this here",) * 20)
    connection.execute("CREATE TABLE memory_words_sequences (key INTEGER PRIMARY KEY, data BLOB NOT NULL)")
    next(step for step in PACKED.migrations() if step.name == "pairs").apply(connection)
    for table in ("blocks", "postings", "dead"):
        assert not connection.execute(f"SELECT COUNT(*) FROM memory_words_{table}").get
    assert not connection.execute("SELECT 1 FROM sqlite_schema WHERE name GLOB '*sequences'").fetchall()
    keys = PACKED.outdated(connection, "memory").tolist()
    assert keys == list(range(1, 22))
    assert PACKED.key_digest(connection, "memory") is None
    assert [hit.key for hit in PACKED.search(connection, Query("town hall"), 5)] == [1]
    PACKED.remove(connection, "memory", keys)
    fill(connection, "an old town hall", *("nothing of this here",) * 20)
    assert not len(PACKED.outdated(connection, "memory"))
    assert PACKED.check(connection, "memory", None) == []


@pytest.mark.parametrize("name", ["letters-and-properties", "names-like-function-words"])
def test_words_of_an_earlier_form_are_added_again(connection: apsw.Connection, name: str) -> None:
    if name == "letters-and-properties":
        connection.execute("DROP TABLE outdated_words")
    fill(connection, "an old town hall", "another")
    next(step for step in PACKED.migrations() if step.name == name).apply(connection)
    assert PACKED.outdated(connection, "memory").tolist() == [1, 2]
    assert PACKED.key_digest(connection, "memory") is None
    assert [hit.key for hit in PACKED.search(connection, Query("town hall"), 5)] == [1]
    PACKED.remove(connection, "memory", [1, 2])
    fill(connection, "an old town hall", "another")
    assert not len(PACKED.outdated(connection, "memory"))
    assert PACKED.key_digest(connection, "memory") is not None


@pytest.mark.parametrize("index", [EXACT, PACKED], ids=["exact", "packed"])
@pytest.mark.parametrize("question", ["Ines", "where does Ines live", '"Ines Howe"', "inés"])
def test_a_name_with_the_stem_of_a_function_word_is_found_and_nothing_else(
    connection: apsw.Connection, index: Fts5Index, question: str
) -> None:
    fill(connection, *("a letter in a box, and how it came in",) * 20, "the house of Ines Howe")
    assert [hit.key for hit in index.search(connection, Query(question), 9)] == [21]
