"""Both fusions keep the laws, and score as their formulas say."""

import math

import pytest

from klaw_core import Hit, Ranking
from klaw_core.builtin.fusion import ReciprocalRankFusion, WeightedFusion
from klaw_core.testing.fusion import FusionContract


class TestReciprocalRankFusion(FusionContract):
    @pytest.fixture
    def fusion(self):
        return ReciprocalRankFusion()


class TestWeightedFusion(FusionContract):
    @pytest.fixture
    def fusion(self):
        return WeightedFusion()


WORDS = Ranking("fts5", (Hit(1, 9.0), Hit(2, 5.0), Hit(3, 1.0)), weight=1.0)
VECTORS = Ranking("sqlite-vec", (Hit(2, 0.9), Hit(4, 0.5)), weight=0.5)


def test_rrf_is_the_weighted_sum_of_reciprocal_ranks():
    scores = {hit.key: hit.score for hit in ReciprocalRankFusion(k=60).fuse([WORDS, VECTORS], 10)}
    assert scores == pytest.approx({2: 1 / 62 + 0.5 / 61, 1: 1 / 61, 3: 1 / 63, 4: 0.5 / 62})
    assert next(iter(scores)) == 2, "found by both legs, it outranks each leg's own first"


def test_weighted_is_the_convex_combination_of_scaled_scores():
    scores = {hit.key: hit.score for hit in WeightedFusion().fuse([WORDS, VECTORS], 10)}
    assert scores == pytest.approx({1: 2 / 3, 2: 1 / 3 + 2 / 3 * 0.5, 3: 0.0, 4: 0.0})
    assert all(0 <= score <= 1 for score in scores.values())


def test_equal_scores_of_a_leg_count_fully():
    (hit,) = WeightedFusion().fuse([Ranking("a", (Hit(7, -3.5),))], 5)
    assert math.isclose(hit.score, 1.0)


def test_ties_are_broken_by_key():
    tied = [Ranking("a", (Hit(9, 1.0),)), Ranking("b", (Hit(4, 1.0),))]
    assert [hit.key for hit in ReciprocalRankFusion().fuse(tied, 10)] == [4, 9]


@pytest.mark.parametrize(("options", "limit", "depth"), [({"pool": 10}, 3, 10), ({"pool": 10}, 25, 25)])
def test_the_pool_is_how_deep_each_leg_is_read(options, limit, depth):
    assert ReciprocalRankFusion(**options).depth(limit) == depth
