"""The relevance of a hit: what words and vectors say together, and what each says alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core.searching.relevance import combine_relevance, is_unreachable
from klaw_core.values.search import WEAK_RELEVANCE, Hit, Query, Ranking

beliefs = st.floats(0.0, 1.0)


def words(*relevances):
    return Ranking("words", tuple(Hit(key, value, relevance=value) for key, value in enumerate(relevances)))


def vectors(*relevances):
    return Ranking("vectors", tuple(Hit(key, value, relevance=value) for key, value in enumerate(relevances)))


def test_relevance_comes_from_vectors_if_words_find_nothing():
    relevance = combine_relevance([words()], [vectors(0.14, 0.02)], 1.0, whole=False)

    assert relevance(0) == pytest.approx(combine_relevance([], [vectors(0.14, 0.02)], 1.0)(0))
    assert relevance(0) > WEAK_RELEVANCE > relevance(1)


def test_relevance_comes_from_vectors_if_words_find_only_common_words():
    relevance = combine_relevance([words(*[0.035] * 9)], [vectors(0.14, 0.02)], 1.0)

    assert relevance(0) > WEAK_RELEVANCE > relevance(1)


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_retrievers_the_one_that_is_most_certain_counts(order):
    relevance = combine_relevance([words(0.9), words(0.1, 0.2)][::order], [vectors(0.1)], 1.0)

    assert relevance(0) == pytest.approx(combine_relevance([words(0.9, 0.2)], [vectors(0.1)], 1.0)(0))


def test_vectors_are_ignored_if_the_model_does_not_know_the_script():
    assert combine_relevance([words()], [vectors(0.3)], 0.0)(0) < WEAK_RELEVANCE


def test_a_score_that_many_chunks_reach_gives_less_relevance():
    few = combine_relevance([words(0.5, 0.4)], [vectors()], 1.0)
    many = combine_relevance([words(0.5, 0.4, 0.4, 0.4, 0.4)], [vectors()], 1.0)

    assert few(0) > many(0)


def test_a_hit_without_estimates_has_no_relevance():
    assert combine_relevance([words(0.5)], [vectors(0.1)], 1.0)(7) is None


@given(st.lists(beliefs, max_size=9), st.lists(beliefs, max_size=9), beliefs)
def test_relevance_is_between_0_and_1(said, alike, known):
    relevance = combine_relevance([words(*said)], [vectors(*alike)], known)

    keys = range(max(len(said), len(alike)))
    assert [key for key in keys if 0.0 <= relevance(key) <= 1.0] == list(keys)


@pytest.mark.parametrize(
    "text", ["harbours", "harbour_master", "(harbour)", "harbour2", "2harbour", "rharbour", "HARBOUR", ""]
)
@pytest.mark.parametrize("around", ["{}", "a {} b", "{}\n{}", "rharbour {}"])
def test_finding_a_word_agrees_with_tokenizing_the_text(text: str, around: str) -> None:
    question = "harbour pier lantern ship quay"
    whole = around.format(text, text)
    shared = set(question.split()) & set(re.findall(r"[^\W\d_]+", whole.casefold()))
    assert is_unreachable(question, f"1 {whole} xyz") is not bool(shared)


def test_the_relevance_of_few_vectors_is_their_excess_over_a_sentence_about_nothing():
    found = [(1, 0.6), (2, 0.2), (3, 0.1)]
    assert [hit.relevance for hit in Query("x").hits(found)] == [None] * 3
    near, far, last = (hit.relevance for hit in Query("x", unrelated=0.2).hits(found))
    assert (near > 0.13, 0 < far < 0.05, last) == (True, True, 0.0)
    near, far, last = (hit.relevance for hit in Query("x", unrelated=0.9).hits(found, 0.2))
    assert (near > 0.13, far, last) == (True, 0.0, 0.0), "the index knows better"
    assert Query("x", unrelated=0.2).hits([]) == []
    assert [hit.score for hit in Query("x", unrelated=0.2).hits(found)] == [0.6, 0.2, 0.1]


def test_the_same_hit_is_more_likely_right_in_a_small_collection():
    small, filtered = (combine_relevance([words(0.2)], [vectors(0.1)], 1.0, whole=whole) for whole in (True, False))
    large = combine_relevance([words(0.2)], [vectors(0.1, *[0.0] * 40)], 1.0)

    assert small(0) > filtered(0) == large(0)


def test_words_alone_are_no_more_likely_right_in_a_small_collection():
    """Few texts can be a wrong answer, but one that only frequent words find is; a model may not know the script."""
    for near, familiar, is_added in ((0.0, 1.0, False), (0.1, 1.0, True), (0.0, 0.0, True)):
        rankings = [words(0.3)], [vectors(near)]
        small, filtered = (combine_relevance(*rankings, familiar, whole=whole)(0) for whole in (True, False))
        assert (small > filtered) == is_added


def test_a_topic_that_many_chunks_share_makes_a_sure_hit_less_sure():
    few = combine_relevance([words(0.9, 0.1)], [vectors(*[0.2] * 5, *[0.0] * 30)], 1.0)
    many = combine_relevance([words(*[0.9] * 6)], [vectors(*[0.2] * 5, *[0.0] * 30)], 1.0)

    assert few(0) > 0.9
    assert many(0) < 0.6


@given(
    st.lists(st.floats(0, 1), max_size=12),
    st.lists(st.floats(0, 0.3), min_size=1, max_size=40),
    st.floats(0, 1),
    st.booleans(),
)
def test_law_a_relevance_is_a_probability(by_words, by_vectors, familiar, whole):
    relevance = combine_relevance([words(*by_words)], [vectors(*by_vectors)], familiar, whole=whole)

    found = [relevance(key) for key in range(max(len(by_words), len(by_vectors)))]
    assert 0 <= min(found) <= max(found) <= 1


def test_where_words_cannot_judge_a_chunk_that_stands_out_among_the_nearest_is_not_weak():
    said = words(*[0.05] * 9)
    alone = combine_relevance([said], [vectors(0.12, *[0.03] * 39)], 1.0)
    among_others = combine_relevance([said], [vectors(*[0.12] * 40)], 1.0)

    assert alone(0) > WEAK_RELEVANCE > among_others(0)
    assert alone(1) < WEAK_RELEVANCE


def test_where_words_judge_the_nearest_chunks_do_not_count():
    said = [words(0.3, 0.1)]
    near, far = (combine_relevance(said, [vectors(0.12, *[0.03] * 4, *[rest] * 35)], 1.0) for rest in (0.0, 0.03))

    assert near(0) == pytest.approx(far(0))


def test_the_relevance_does_not_depend_on_the_number_of_hits_that_were_asked_for():
    said, nearest = [words(*[0.05] * 9)], (0.12, *[0.03] * 49)
    few, many = (combine_relevance(said, [vectors(*nearest, *more)], 1.0) for more in ((), (0.01,) * 200))

    assert few(0) == pytest.approx(many(0))
