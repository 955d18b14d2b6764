"""Both fusions satisfy the contract, and agree with their formulas."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import Hit, Ranking
from klaw_core.builtin.fusion import ReciprocalRankFusion, WeightedFusion
from klaw_testing.fusion import FusionContract


class TestReciprocalRankFusion(FusionContract):
    @pytest.fixture(params=[{}, {"pool": 3}, {"min_confidence": 1.0}], ids=str)
    def fusion(self, request):
        return ReciprocalRankFusion(**request.param)


class TestWeightedFusion(FusionContract):
    @pytest.fixture
    def fusion(self):
        return WeightedFusion()


WORDS = Ranking("fts5", (Hit(1, 9.0), Hit(2, 5.0), Hit(3, 1.0)), weight=1.0)
VECTORS = Ranking("sqlite-vec", (Hit(2, 0.9), Hit(4, 0.5)), weight=0.5)


def test_rrf_without_confidence_is_the_weighted_sum_of_reciprocal_ranks():
    scores = {hit.key: hit.score for hit in ReciprocalRankFusion(k=60, min_confidence=1.0).fuse([WORDS, VECTORS], 10)}
    assert scores == pytest.approx({2: 1 / 62 + 0.5 / 61, 1: 1 / 61, 3: 1 / 63, 4: 0.5 / 62})
    assert next(iter(scores)) == 2, "found by both retrievers, it outranks each retriever's own first"


def test_a_weight_depends_on_the_height_above_the_end_of_the_pool():
    hits = ReciprocalRankFusion(k=60, pool=3, min_confidence=0.1).fuse([WORDS, VECTORS], 10)
    weights = {(part.component, hit.key): part.weight for hit in hits for part in hit.contributions}
    assert weights == pytest.approx(
        {
            ("fts5", 1): 0.1 + 0.9 * 8 / 9,
            ("fts5", 2): 0.1 + 0.9 * 4 / 9,
            ("fts5", 3): 0.1,
            # two of three: what the retriever did not find has 0
            ("sqlite-vec", 2): 0.5,
            ("sqlite-vec", 4): 0.5 * (0.1 + 0.9 * 5 / 9),
        }
    )
    parts = [part for hit in hits for part in hit.contributions]
    assert [part.value for part in parts] == [part.weight / (60 + part.rank) for part in parts]


def test_hits_after_the_pool_have_the_minimum_confidence():
    tail = Ranking("a", tuple(Hit(key, 10.0 - key) for key in range(1, 7)))
    weights = [part.weight for hit in ReciprocalRankFusion(pool=2).fuse([tail], 10) for part in hit.contributions]
    assert weights[1:] == [0.3] * 5


def test_a_retriever_with_similar_scores_has_a_low_weight():
    """A model that never learned a language: fifty cosines between .70 and .75, against one chunk with the words."""
    guesses = Ranking("vectors", tuple(Hit(100 + rank, 0.75 - rank / 1000) for rank in range(50)))
    finds = Ranking("words", tuple(Hit(key, 20.0 / key) for key in range(1, 51)))
    assert [hit.key for hit in ReciprocalRankFusion().fuse([guesses, finds], 3)] == [1, 2, 3]
    plain = ReciprocalRankFusion(min_confidence=1.0).fuse([guesses, finds], 4)
    assert [hit.key for hit in plain] == [1, 100, 2, 101], "by rank alone every second result is a guess"


@pytest.mark.parametrize("scores", [(0.0,), (0.0, 0.0), (7.0,), (5.0, 5.0, 5.0)])
def test_few_hits_with_equal_scores_have_full_weight(scores):
    ranking = Ranking("a", tuple(Hit(key, score) for key, score in enumerate(scores)))
    hits = ReciprocalRankFusion().fuse([ranking], 5)
    assert [part.weight for hit in hits for part in hit.contributions] == [1.0] * len(scores)


def test_negative_cosines_keep_the_weight_within_bounds():
    ranking = Ranking("a", tuple(Hit(key, 0.2 - key / 50) for key in range(60)))
    weights = [part.weight for hit in ReciprocalRankFusion().fuse([ranking], 60) for part in hit.contributions]
    assert weights[0] == pytest.approx(1.0)
    assert all(0.3 <= weight <= 1.0 for weight in weights)


def test_weighted_is_the_convex_combination_of_scaled_scores():
    scores = {hit.key: hit.score for hit in WeightedFusion().fuse([WORDS, VECTORS], 10)}
    assert scores == pytest.approx({1: 2 / 3, 2: 1 / 3 + 2 / 3 * 0.5, 3: 0.0, 4: 0.0})
    assert all(0 <= score <= 1 for score in scores.values())


def test_weighted_scales_equal_scores_to_one():
    (hit,) = WeightedFusion().fuse([Ranking("a", (Hit(7, -3.5),))], 5)
    assert math.isclose(hit.score, 1.0)


def test_ties_are_broken_by_key():
    tied = [Ranking("a", (Hit(9, 1.0),)), Ranking("b", (Hit(4, 1.0),))]
    assert [hit.key for hit in ReciprocalRankFusion().fuse(tied, 10)] == [4, 9]


@pytest.mark.parametrize(("options", "limit", "depth"), [({"pool": 10}, 3, 10), ({"pool": 10}, 25, 25)])
def test_the_depth_is_the_larger_of_pool_and_limit(options, limit, depth):
    assert ReciprocalRankFusion(**options).depth(limit) == depth


def believed(retriever: str, *hits: Hit) -> Ranking:
    return Ranking(retriever, hits)


def test_a_weight_depends_on_the_relevance():
    guesses = believed("words", Hit(1, 9.0, relevance=0.04), Hit(2, 8.0, relevance=0.04))
    knows = believed("vectors", Hit(3, 0.86, relevance=0.3), Hit(4, 0.8, relevance=0.1))
    hits = ReciprocalRankFusion().fuse([guesses, knows], 4)
    assert hits[0].key == 3, "what shares only small words with a question stands behind what means the same"
    weights = {hit.key: hit.contributions[0].weight for hit in hits}
    assert weights[3] == pytest.approx(math.sqrt(0.3))
    assert weights[1] == pytest.approx(0.2)


def test_the_order_of_the_only_answering_retriever_is_kept():
    alone = believed("words", Hit(1, 9.0, relevance=0.2), Hit(2, 8.0, relevance=0.9))
    for rankings in ([alone], [alone, Ranking("vectors", ())]):
        assert [hit.key for hit in ReciprocalRankFusion().fuse(rankings, 5)] == [1, 2]


def test_an_unreached_hit_has_a_larger_weight():
    english = believed("words", Hit(1, 9.0, relevance=0.3), Hit(2, 8.0, relevance=0.25))
    nearest = (Hit(3, 0.85, relevance=0.15), Hit(1, 0.8, relevance=0.05))
    first = ReciprocalRankFusion().fuse([english, believed("vectors", *nearest)], 1)[0]
    assert first.key == 1
    foreign = (Hit(3, 0.85, relevance=0.15, unreached=True), nearest[1])
    first = ReciprocalRankFusion().fuse([english, believed("vectors", *foreign)], 1)[0]
    assert first.key == 3


@given(relevance=st.floats(0, 1), more=st.floats(0, 1), unreached=st.booleans())
def test_a_higher_relevance_never_lowers_a_score(relevance, more, unreached):
    other = believed("words", Hit(1, 9.0, relevance=0.5), Hit(2, 8.0, relevance=0.4))

    def score(value):
        hits = ReciprocalRankFusion().fuse([other, believed("v", Hit(2, 0.5, relevance=value, unreached=unreached))], 9)
        return next(hit.score for hit in hits if hit.key == 2)

    low, high = sorted((relevance, more))
    assert score(low) <= score(high)


def test_the_defaults_of_rrf_are_those_of_the_paper_and_of_the_decision():
    rrf = ReciprocalRankFusion()
    assert (rrf.k, rrf.pool, rrf.min_confidence) == (60, 50, 0.3)
    (hit,) = rrf.fuse([Ranking("words", (Hit(1, 2.0),))], 1)
    assert hit.score == pytest.approx(1 / 61)


def test_the_range_of_weighted_scores_covers_a_multiple_of_the_limit():
    assert [WeightedFusion(multiplier=factor).depth(10) for factor in (1, 2, 4)] == [10, 20, 40]
