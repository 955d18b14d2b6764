"""The contract of a fusion.

class TestMine(FusionContract):
    @pytest.fixture
    def fusion(self):
        return MyFusion()
"""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from klaw_core import Fusion, Hit, Ranking
from klaw_testing.laws import law

# Multiples of 1/8, which are exact in binary, so that rounding does not hide differences between scores.
_SCORES = st.integers(-400, 400).map(lambda eighths: eighths / 8)


@st.composite
def rankings(draw: st.DrawFn, *, min_retrievers: int = 0) -> list[Ranking]:
    """Draw the rankings of up to four retrievers, each with distinct keys, finite descending scores, and a weight."""
    retrievers = draw(st.lists(st.sampled_from("abcd"), unique=True, min_size=min_retrievers))
    drawn = []
    for retriever in retrievers:
        keys = draw(st.lists(st.integers(1, 12), unique=True, max_size=8))
        scores = draw(st.lists(_SCORES, min_size=len(keys), max_size=len(keys)))
        hits = (Hit(key, score) for key, score in zip(keys, sorted(scores, reverse=True), strict=True))
        drawn.append(Ranking(retriever, tuple(hits), draw(st.floats(0.1, 10))))
    return drawn


class FusionContract:
    """The laws of a fusion; the subclass defines the fixture ``fusion``."""

    @pytest.fixture
    def fusion(self) -> Any:
        """Return the fusion under test."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    @given(given_rankings=rankings(), limit=st.integers(1, 20))
    @law
    def test_hits_are_distinct_ordered_and_within_the_limit(
        self, fusion: Fusion, given_rankings: list[Ranking], limit: int
    ) -> None:
        hits = fusion.fuse(given_rankings, limit)
        assert len(hits) <= limit
        assert len({hit.key for hit in hits}) == len(hits)
        assert list(hits) == sorted(hits, key=lambda hit: (-hit.score, hit.key))
        known = {hit.key for ranking in given_rankings for hit in ranking.hits}
        assert {hit.key for hit in hits} <= known
        assert len(hits) == min(limit, len(known)), "every key that a retriever found must take part"

    @given(given_rankings=rankings(), limit=st.integers(1, 20))
    @law
    def test_contributions_add_up_to_the_score(self, fusion: Fusion, given_rankings: list[Ranking], limit: int) -> None:
        fused = fusion.fuse(given_rankings, limit)
        assert bool(fused) == any(ranking.hits for ranking in given_rankings)
        for hit in fused:
            assert hit.contributions
            assert math.isclose(hit.score, sum(part.value for part in hit.contributions), abs_tol=1e-9)
            for part in hit.contributions:
                ranking = next(ranking for ranking in given_rankings if ranking.retriever == part.component)
                assert ranking.hits[part.rank - 1].key == hit.key
                assert ranking.hits[part.rank - 1].score == part.raw

    @given(given_rankings=rankings(), limit=st.integers(1, 20), random=st.randoms(use_true_random=False))
    @law
    def test_the_order_of_the_retrievers_does_not_matter(
        self, fusion: Fusion, given_rankings: list[Ranking], limit: int, random: Any
    ) -> None:
        shuffled = list(given_rankings)
        random.shuffle(shuffled)
        assert fusion.fuse(shuffled, limit) == fusion.fuse(given_rankings, limit)

    @given(given_rankings=rankings(min_retrievers=1), limit=st.integers(1, 20))
    @law
    def test_an_empty_ranking_does_not_change_the_result(
        self, fusion: Fusion, given_rankings: list[Ranking], limit: int
    ) -> None:
        with_empty = [*given_rankings, Ranking("empty", (), 3.0)]
        assert fusion.fuse(with_empty, limit) == fusion.fuse(given_rankings, limit)

    @given(given_rankings=rankings(min_retrievers=1), data=st.data(), exponent=st.integers(-20, 20))
    @law
    def test_scaling_the_scores_of_a_retriever_does_not_change_the_result(
        self, fusion: Fusion, given_rankings: list[Ranking], data: st.DataObject, exponent: int
    ) -> None:
        number = data.draw(st.integers(0, len(given_rankings) - 1))
        ranking = given_rankings[number]
        scaled = tuple(Hit(hit.key, math.ldexp(hit.score, exponent)) for hit in ranking.hits)  # exact in binary
        in_other_units = [*given_rankings]
        in_other_units[number] = evolve(ranking, hits=scaled)
        assert _scored(fusion.fuse(in_other_units, 20)) == _scored(fusion.fuse(given_rankings, 20))

    @given(given_rankings=rankings(), limit=st.integers(1, 20))
    @law
    def test_a_smaller_limit_returns_the_first_hits(
        self, fusion: Fusion, given_rankings: list[Ranking], limit: int
    ) -> None:
        assert list(fusion.fuse(given_rankings, limit)) == list(fusion.fuse(given_rankings, 1000))[:limit]

    @given(given_rankings=rankings(min_retrievers=1), data=st.data())
    @law
    def test_a_better_rank_never_lowers_a_score(
        self, fusion: Fusion, given_rankings: list[Ranking], data: st.DataObject
    ) -> None:
        number = data.draw(st.integers(0, len(given_rankings) - 1))
        ranking = given_rankings[number]
        assume(len(ranking.hits) > 1)
        place = data.draw(st.integers(1, len(ranking.hits) - 1))
        keys = [hit.key for hit in ranking.hits]
        keys[place - 1], keys[place] = keys[place], keys[place - 1]
        swapped = tuple(Hit(key, hit.score) for key, hit in zip(keys, ranking.hits, strict=True))
        better = [*given_rankings]
        better[number] = evolve(ranking, hits=swapped)
        risen = ranking.hits[place].key
        assert _score(fusion, better, risen) >= _score(fusion, given_rankings, risen) - 1e-12

    @given(given_rankings=rankings())
    @law
    def test_a_single_ranking_keeps_its_order(self, fusion: Fusion, given_rankings: list[Ranking]) -> None:
        for ranking in given_rankings:
            raw = {hit.key: hit.score for hit in ranking.hits}
            fused = fusion.fuse([ranking], 20)
            values = [raw[hit.key] for hit in fused]
            assert values == sorted(values, reverse=True)

    @given(limit=st.integers(1, 1000))
    @law
    def test_the_depth_covers_the_limit(self, fusion: Fusion, limit: int) -> None:
        assert fusion.depth(limit) >= limit

    def test_empty_rankings_give_no_hits(self, fusion: Fusion) -> None:
        assert list(fusion.fuse([], 10)) == []
        assert list(fusion.fuse([Ranking("a", ())], 10)) == []


def _scored(hits: Sequence[Hit]) -> list[tuple[int, float]]:
    return [(hit.key, hit.score) for hit in hits]


def _score(fusion: Fusion, given_rankings: list[Ranking], key: int) -> float:
    return next(hit.score for hit in fusion.fuse(given_rankings, 1000) if hit.key == key)
