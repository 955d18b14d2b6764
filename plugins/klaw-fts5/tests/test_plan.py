"""What the plan of a question finds in an index: telling words first, pairs of neighbours, corrections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import apsw
import pytest

from klaw_core import Query
from klaw_fts5.index import Fts5Index
from klaw_testing.index import selection, stored

Find = Callable[..., list[int]]


def test_neighbouring_words_of_the_question_rank_higher(find: Find) -> None:
    texts = ("a hall in a town", "hall of that town", "an old town hall", *("nothing of this here",) * 20)
    assert find("town hall", *texts) == [3, 2, 1]


def test_pairs_can_be_left_out(connection: apsw.Connection) -> None:
    chunks = [stored(1, "green and lantern"), stored(2, "and green lantern")]
    Fts5Index().add(connection, "memory", chunks, None)
    scores = {
        weight: [hit.score for hit in Fts5Index(pair_weight=weight).search(connection, Query("green lantern"), 2)]
        for weight in (0.0, 0.25)
    }
    assert scores[0.0][0] == scores[0.0][1] == scores[0.25][1] < scores[0.25][0]


def test_a_filter_with_only_frequent_words_still_finds_chunks(connection: apsw.Connection) -> None:
    index = Fts5Index()
    chunks = [stored(number, f"the ship in harbour {number}") for number in range(1, 40)] + [stored(40, "the lantern")]
    index.add(connection, "memory", chunks, None)
    within = selection([3, 5])
    assert [hit.key for hit in index.search(connection, Query("the lantern"), 5)] == [40]
    assert [hit.key for hit in index.search(connection, Query("the lantern", within=within), 5)] == [3, 5]


def test_in_a_small_collection_no_word_is_frequent(find: Find) -> None:
    texts = ["old ship"] * 18 + ["a lantern"]
    assert len(find("old lantern", *texts, limit=30)) == 19
    assert find("old lantern", *texts, "a ship", limit=30) == [19]


def test_words_that_join_others_find_nothing_while_a_chunk_shares_more(find: Find) -> None:
    texts = [*(f"part {number} | shelf" for number in range(30)), "yields of herring"]
    assert find("price of part 7", *texts)[0] == 8
    assert find("sum of", *texts) == [31]


@pytest.mark.parametrize("limit", [1, 3, 20])
def test_a_smaller_limit_returns_the_first_hits(connection: apsw.Connection, limit: int) -> None:
    index = Fts5Index()
    texts = (
        f"{'green lantern' if number % 7 == 3 else 'lantern in green'} {'sand ' * (number % 5)}" for number in range(60)
    )
    index.add(connection, "memory", [stored(number, text) for number, text in enumerate(texts)], None)
    everything = index.search(connection, Query("green lantern sand"), 60)
    assert index.search(connection, Query("green lantern sand"), limit) == everything[:limit]


@pytest.fixture(params=["exact", "packed"])
def index(request: pytest.FixtureRequest) -> Fts5Index:
    return Fts5Index(search_by=request.param)


def test_of_too_many_words_the_rare_existing_ones_are_searched(index: Fts5Index, connection: apsw.Connection) -> None:
    everywhere = " ".join(f"often{number}" for number in range(80))
    texts = [f"{everywhere} filler{number}" for number in range(30)]
    texts[7] += " errtls42"
    index.reset(connection, "memory", None)
    index.add(connection, "memory", [stored(key, text) for key, text in enumerate(texts, start=1)], None)
    nowhere = " ".join(f"zq{number}" for number in range(64))
    for question in (f"{nowhere} ERRTLS42", f"{everywhere} {nowhere} ERRTLS42"):
        assert index.search(connection, Query(question), 1)[0].key == 8
        (notice,) = index.notices(connection, Query(question))
        assert "searched for the 64 most informative" in notice
    assert not index.notices(connection, Query("ERRTLS42 often1")), "nothing was left out"


def test_an_unknown_word_is_corrected_from_the_existing_ones(connection: apsw.Connection) -> None:
    texts = {1: "Lifetime elision leaves lifetimes out.", 2: "The borrow checker knows.", 3: "Правила аренды квартиры."}
    index = Fts5Index()
    index.reset(connection, "memory", None)
    index.add(connection, "memory", [stored(key, text) for key, text in texts.items()], None)

    def suggested(text: str) -> str | None:
        return index.suggest(connection, Query(text), lambda keys: [texts[key] for key in keys])

    assert suggested("lieftime elison?") == "lifetime elision?"
    assert suggested("the borow cheker") == "the borrow checker"
    assert suggested("правила арнеды") == "правила аренды"
    assert suggested("lifetime elision") is None
    assert suggested("pizza in Naples") is None
    assert suggested("the borow cheker of Naplesia") is None, "one word is near to none: another language, or subject"
    assert suggested("的 lifetime 終身") is None


@pytest.mark.parametrize("search_by", ["exact", "packed"])
@pytest.mark.parametrize(("right", "suggestion"), [(12, "lifetime elision"), (9, "lifetime elison")])
def test_a_typo_that_a_chunk_has_too_is_corrected_if_the_right_word_is_frequent(
    connection: apsw.Connection, search_by: Literal["exact", "packed"], right: int, suggestion: str
) -> None:
    texts = {key: f"lifetime elision of number {key}" for key in range(1, right + 1)} | {99: "the elison of a type"}
    index = Fts5Index(search_by=search_by)
    index.reset(connection, "memory", None)
    index.add(connection, "memory", [stored(key, text) for key, text in texts.items()], None)

    def suggested(text: str) -> str | None:
        return index.suggest(connection, Query(text), lambda keys: [texts[key] for key in keys])

    assert suggested("lieftime elison") == suggestion
    assert suggested("elison") is None, "the index has the word, and the question no other typo"


@pytest.mark.parametrize("search_by", ["exact", "packed"])
def test_relevance_is_the_share_of_the_question_in_a_chunk(
    connection: apsw.Connection, search_by: Literal["exact", "packed"]
) -> None:
    index = Fts5Index(search_by=search_by)
    texts = ["violin strings are tuned in fifths", *(f"stock number {number} of the shop" for number in range(30))]
    index.reset(connection, "memory", None)
    index.add(connection, "memory", [stored(key, text) for key, text in enumerate(texts, start=1)], None)

    def best(text: str) -> float:
        relevance = index.search(connection, Query(text), 5)[0].relevance
        assert relevance is not None
        return relevance

    assert best("how are violin strings tuned") > 0.8
    assert best("violin of a famous collector sold in Vienna") < 0.4
    assert 0 <= best("stock") <= 1


def test_a_word_that_is_missing_weighs_in_a_small_index_as_in_a_larger_one(connection: apsw.Connection) -> None:
    index = Fts5Index()
    texts = ["the ferry leaves Split at nine", "bring the jacket to the ferry", *("gulls cry" for _ in range(28))]
    found = {}
    for size in (2, 30):
        index.reset(connection, f"size{size}", None)
        chosen = [stored(key, text) for key, text in enumerate(texts[:size], 1)]
        index.add(connection, f"size{size}", chosen, None)
        found[size] = index.search(connection, Query("does the ferry sell coffee", f"size{size}"), 5)[0].relevance
    assert found[2] == pytest.approx(found[30], rel=0.3)
    assert found[2] > 0.1


def test_corrected_words_count_half(connection: apsw.Connection) -> None:
    index = Fts5Index()
    texts = [*(f"gulls number {number}" for number in range(50)), "it warrants bikeshedding", "a bicycle"]
    index.add(connection, "memory", [stored(key, text) for key, text in enumerate(texts, 1)], None)

    def relevance(text: str) -> float:
        found = index.search(connection, Query(text), 5)[0].relevance
        assert found is not None
        return found

    assert relevance("bikeshedding") > 0.7
    assert 0.2 < relevance("bike") <= 0.5


@pytest.mark.parametrize(("question", "key"), [("US tariffs", 51), ("gold mine tariffs", 52)])
def test_ambiguous_function_words_are_informative(connection: apsw.Connection, question: str, key: int) -> None:
    index = Fts5Index()
    texts = [*(f"tariffs number {number}" for number in range(50)), "tariffs of the US", "tariffs of a gold mine"]
    index.add(connection, "memory", [stored(number, text) for number, text in enumerate(texts, 1)], None)
    assert index.search(connection, Query(question), 5)[0].key == key


def test_pronouns_of_the_question_are_not_informative(connection: apsw.Connection) -> None:
    index = Fts5Index()
    texts = [*(f"gulls number {number}" for number in range(50)), "my_macro my own", "the bicycle is in the cellar"]
    index.add(connection, "memory", [stored(key, text) for key, text in enumerate(texts, 1)], None)
    hits = index.search(connection, Query("where is my bicycle"), 5)
    assert [hit.key for hit in hits] == [52]
    (unknown, *_) = index.search(connection, Query("where is my xylophone"), 5)
    assert unknown.relevance == 0.0
