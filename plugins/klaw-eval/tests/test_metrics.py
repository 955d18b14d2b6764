"""The arithmetic, held against ir-measures and against what must be so."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from klaw_eval.bootstrap import interval, resampled_over
from klaw_eval.metrics import METRICS, distinct, score


def named(ranked, gold) -> dict[str, float]:
    return dict(zip(METRICS, score(ranked, gold).tolist(), strict=True))


def test_metrics_agree_with_ir_measures_on_random_rankings():
    ir = pytest.importorskip("ir_measures")
    same = {
        "any@5": ir.Success @ 5,
        "any@10": ir.Success @ 10,
        "frac@5": ir.R @ 5,
        "frac@10": ir.R @ 10,
        "mrr": ir.RR @ 10,
        "ndcg@10": ir.nDCG @ 10,
    }
    chance = random.Random(7)
    documents = [f"d{number}" for number in range(40)]
    qrels, run, ours = [], [], {}
    for number in range(300):
        question = f"q{number}"
        gold = {name: chance.choice((1, 1, 2, 3)) for name in chance.sample(documents, chance.randint(1, 14))}
        ranked = chance.sample(documents, chance.randint(0, 25))
        qrels += [ir.Qrel(question, name, grade) for name, grade in gold.items()]
        # A run without an answer cannot be written down: a document that nobody judged stands for it.
        listed = ranked or ["nothing"]
        run += [ir.ScoredDoc(question, name, float(len(listed) - rank)) for rank, name in enumerate(listed)]
        ours[question] = named(ranked, gold)

    compared = 0
    for metric, measure in same.items():
        for found in ir.iter_calc([measure], qrels, run):
            assert ours[found.query_id][metric] == pytest.approx(found.value, abs=1e-12), (metric, found.query_id)
            compared += 1
    assert compared == len(same) * 300


def test_the_definitions_by_hand():
    found = named(["x", "a", "y", "z", "w", "b"], {"a": 1.0, "b": 2.0, "c": 1.0})

    assert found["any@5"] == found["any@10"] == 1
    assert found["frac@5"] == pytest.approx(1 / 3)
    assert found["frac@10"] == pytest.approx(2 / 3)
    assert found["all@10"] == 0
    assert found["mrr"] == 1 / 2
    ideal = 2 + 1 / math.log2(3) + 1 / math.log2(4)
    assert found["ndcg@10"] == pytest.approx((1 / math.log2(3) + 2 / math.log2(7)) / ideal)


def test_all_is_one_only_if_everything_is_found():
    assert named(["a", "b"], {"a": 1, "b": 1})["all@5"] == 1
    assert named(["a", "1", "2", "3", "4", "b"], {"a": 1, "b": 1})["all@5"] == 0
    assert named(["a", "1", "2", "3", "4", "b"], {"a": 1, "b": 1})["all@10"] == 1


def test_nothing_found_and_nothing_relevant_found_are_zero():
    assert not score([], {"a": 1}).any()
    assert not score(["b"] * 1, {"a": 1}).any()


def test_duplicate_ids_are_removed_before_the_cut():
    assert distinct(["a", "b", "a", "c", "b"]) == ["a", "b", "c"]


def test_the_interval_contains_the_mean_and_shrinks_with_more_questions():
    generator = np.random.default_rng(1)
    few, many = generator.random((30, 2)), generator.random((3_000, 2))
    for values in (few, many):
        found = interval(values)
        assert np.all(found.low < found.mean)
        assert np.all(found.mean < found.high)
    assert np.all(interval(many).high - interval(many).low < (interval(few).high - interval(few).low) / 3)


def test_the_interval_agrees_with_the_normal_distribution():
    values = np.random.default_rng(2).normal(0.5, 0.2, (1_000, 1))

    found = interval(values)

    half = 1.96 * values.std() / math.sqrt(1_000)
    assert found.high[0] - found.low[0] == pytest.approx(2 * half, rel=0.1)


def test_the_interval_is_the_same_every_time():
    values = np.random.default_rng(3).random((50, 8))
    first, second = interval(values), interval(values)

    assert np.array_equal(first.low, second.low)
    assert np.array_equal(first.high, second.high)


def test_conversations_are_resampled_as_a_whole():
    # Within a conversation every question goes alike: forty questions are worth four.
    values = np.repeat([0.0, 1.0, 0.0, 1.0], 10)[:, None]
    groups = [f"talk {number // 10}" for number in range(40)]

    alone, together = interval(values), interval(values, groups)

    assert together.mean == alone.mean
    assert together.high - together.low > 2 * (alone.high - alone.low)
    assert resampled_over(groups) == "conversations"


def test_one_conversation_is_resampled_by_question():
    values = np.random.default_rng(4).random((20, 1))

    assert resampled_over(["only"] * 20) == "questions"
    assert interval(values, ["only"] * 20).low < interval(values, ["only"] * 20).high


def test_a_paired_interval_is_narrower_than_the_two_it_compares():
    generator = np.random.default_rng(5)
    hard = generator.random((200, 1))
    better = np.clip(hard + 0.05 + generator.normal(0, 0.01, (200, 1)), 0, None)

    paired = interval(better - hard)

    assert paired.low[0] > 0
    assert interval(hard).high[0] > interval(better).low[0]
