"""The three rerankers satisfy the contract, and their own laws."""

import math
from datetime import UTC, timedelta

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core import Candidate, Hit, Query, StoredChunk
from klaw_rerank_basic.importance import Importance
from klaw_rerank_basic.mmr import MaximalMarginalRelevance
from klaw_rerank_basic.options import ImportanceOptions, MmrOptions, RecencyOptions
from klaw_rerank_basic.recency import Recency
from klaw_testing.laws import scaled
from klaw_testing.reranker import RerankerContract, candidates
from klaw_testing.values import MOMENT, cut_lines, make_document

NOW = MOMENT + timedelta(days=365)
QUERY = Query("which pet ran")


class TestRecency(RerankerContract):
    @pytest.fixture
    def reranker(self):
        return Recency(now=lambda: NOW)


class TestImportance(RerankerContract):
    @pytest.fixture
    def reranker(self):
        return Importance(ImportanceOptions({"manual": 1.5, "notes/3/": 0.0, "conversation": 0.5}))


class TestMmr(RerankerContract):
    @pytest.fixture
    def reranker(self):
        return MaximalMarginalRelevance()


def one(path, label, *, key=1, text="a text"):
    document = make_document(path, text)
    (chunk,) = cut_lines(document)
    return Candidate(StoredChunk(key, chunk, path, label, document.created_at), Hit(key, 1.0))


def scores(reranker, given_candidates):
    return {item.key: item.score for item in reranker.rerank(QUERY, given_candidates, len(given_candidates))}


def order(reranker, given_candidates, limit=100):
    return [item.key for item in reranker.rerank(QUERY, given_candidates, limit)]


floors = st.floats(0, 1)
half_lives = st.floats(0.01, 10_000)


@settings(max_examples=scaled(400))
@given(candidates(min_size=1), floors, half_lives)
def test_age_lowers_a_score_at_most_to_the_floor(found, floor, half_life):
    recency = Recency(RecencyOptions(half_life, floor, ()), lambda: NOW)
    for candidate in found:
        after = scores(recency, found)[candidate.key]
        assert floor * candidate.hit.score <= after + 1e-9
        assert after <= candidate.hit.score


@given(candidates(min_size=1), floors, half_lives, st.integers(1, 10_000))
def test_a_higher_age_never_raises_a_score(found, floor, half_life, days):
    recency = Recency(RecencyOptions(half_life, floor, ()), lambda: NOW)
    first, *rest = found
    older = evolve(first, stored=evolve(first.stored, created_at=first.stored.created_at - timedelta(days=days)))
    assert scores(recency, [older, *rest])[first.key] <= scores(recency, found)[first.key]


def test_half_of_the_age_penalty_applies_at_the_half_life():
    recency = Recency(RecencyOptions(half_life_days=30, floor=0.6))
    assert recency.factor(0) == 1
    assert recency.factor(30) == pytest.approx(0.8)
    assert recency.factor(60) == pytest.approx(0.7)
    assert recency.factor(100_000) == pytest.approx(0.6)


@given(candidates(min_size=1), half_lives)
def test_evergreen_sources_and_paths_never_age(found, half_life):
    marks = {mark for candidate in found for mark in (candidate.stored.source, f"notes/{candidate.key}/")}
    before = {candidate.key: candidate.hit.score for candidate in found}
    by_path = tuple(mark for mark in marks if "/" in mark)
    for evergreen in (by_path, tuple(marks - set(by_path))):
        assert scores(Recency(RecencyOptions(half_life, 0.0, evergreen), lambda: NOW), found) == before


@given(candidates(min_size=1))
def test_a_date_in_the_future_counts_as_today(found):
    early = MOMENT.astimezone(UTC) - timedelta(days=1)
    assert scores(Recency(now=lambda: early), found) == {item.key: item.hit.score for item in found}


@given(candidates(min_size=1), st.floats(0, 3))
def test_importance_multiplies_only_matching_chunks(found, factor):
    after = scores(Importance(ImportanceOptions({"manual": factor})), found)
    for candidate in found:
        expected = candidate.hit.score * (factor if candidate.stored.source == "manual" else 1)
        assert math.isclose(after[candidate.key], expected, abs_tol=1e-9)


@given(candidates(min_size=1), st.floats(0, 0.9))
def test_a_factor_below_one_lowers_a_negative_score_too(found, factor):
    negative = [evolve(item, hit=evolve(item.hit, score=item.hit.score - 1_000)) for item in found]
    after = scores(Importance(ImportanceOptions({"notes/": factor})), negative)
    assert all(after[item.key] < item.hit.score for item in negative)


def test_the_longest_path_takes_precedence_over_labels():
    factors = {"notes/": 2.0, "notes/1/": 3.0, "a.md": 5.0, "notes/1/a": 4.0}
    importance = Importance(ImportanceOptions(factors))
    assert scores(importance, [one("notes/1/a.md", "a.md")]) == {1: 4.0}
    assert scores(importance, [one("notes/1/b.md", "a.md")]) == {1: 3.0}
    assert scores(importance, [one("saved/1", "a.md")]) == {1: 5.0}


@pytest.mark.parametrize("factor", [-0.1, math.nan, math.inf, 1e9])
def test_an_invalid_factor_is_rejected(factor):
    with pytest.raises(ValueError, match="factors: expected a number from 0 to 1000 for 'manual'"):
        ImportanceOptions({"manual": factor})


@given(candidates(min_size=1))
def test_mmr_with_lambda_one_keeps_the_order(found):
    mmr = MaximalMarginalRelevance(MmrOptions(1.0))
    assert scores(mmr, found) == {item.key: item.hit.score for item in found}
    assert order(mmr, found) == [item.key for item in found]


@given(candidates(min_size=1), st.floats(0.01, 1))
def test_mmr_keeps_the_first_and_raises_no_score(found, relevance):
    after = scores(MaximalMarginalRelevance(MmrOptions(relevance)), found)
    assert next(iter(after)) == found[0].key
    assert after[found[0].key] == found[0].hit.score
    assert all(after[item.key] <= item.hit.score for item in found)


@given(candidates(min_size=1), st.sampled_from([0.2, 0.5, 0.7, 0.9]), st.integers(1, 8))
def test_mmr_agrees_with_the_formula_of_the_paper(found, relevance, limit):
    vectors = [item.vector for item in found]
    if any(vector is None for vector in vectors):
        return
    raw = np.array([item.hit.score for item in found])
    span = np.ptp(raw) or raw[0]
    relevances = (raw - raw.min()) / span
    similarities = np.clip(np.array(vectors, float) @ np.array(vectors, float).T, 0, 1)
    picked = []
    mmr = MaximalMarginalRelevance(MmrOptions(relevance))
    for item in mmr.rerank(QUERY, found, limit):
        nearest = similarities[:, picked].max(axis=1, initial=0)
        marginal = relevance * relevances - (1 - relevance) * nearest
        pick = next(place for place, candidate in enumerate(found) if candidate.key == item.key)
        assert marginal[pick] >= max(np.delete(marginal, picked)) - 1e-9
        assert math.isclose(item.raw, nearest[pick], abs_tol=1e-9)
        picked.append(pick)
    assert len(picked) == min(limit, len(found))


@given(candidates(min_size=3))
def test_mmr_ranks_a_copy_after_an_equally_relevant_new_chunk(found):
    first, second, third = found[:3]
    vectors = np.eye(3, dtype=np.float32)
    same = evolve(second, vector=vectors[0], hit=evolve(second.hit, score=1.0))
    new = evolve(third, vector=vectors[1], hit=evolve(third.hit, score=1.0))
    first = evolve(first, vector=vectors[0], hit=evolve(first.hit, score=2.0))
    assert order(MaximalMarginalRelevance(), [first, same, new]) == [first.key, new.key, same.key]


@pytest.mark.parametrize("texts", [("the cat sat", "the cat sat!", "a dog"), ("猫在睡觉", "猫在睡觉。", "狗跑了")])
def test_without_vectors_mmr_compares_words(texts):
    found = [one(f"notes/{place}.md", "a.md", key=place, text=text) for place, text in enumerate(texts)]
    assert order(MaximalMarginalRelevance(), found) == [0, 2, 1]
