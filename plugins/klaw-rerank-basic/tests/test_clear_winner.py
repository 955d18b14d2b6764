"""When the order is so clear that reading the best again would be wasted."""

import pytest

from klaw_core import Candidate, Contribution, Hit, StoredChunk
from klaw_rerank_basic.winner import has_clear_winner
from klaw_testing.values import cut_lines, make_document


def candidate(key, **retrievers):
    """Return a candidate with a (rank, raw) or (rank, raw, weight) in each of these retrievers."""
    document = make_document("notes/a.md", "a text")
    stored = StoredChunk(key, cut_lines(document)[0], document.path, document.source, document.created_at)
    parts = tuple(
        Contribution(retriever, rank, raw, *(weight or (1.0,)), 0.1)
        for retriever, (rank, raw, *weight) in retrievers.items()
    )
    return Candidate(stored, Hit(key, 1.0 / key, parts))


def test_the_first_in_every_retriever_is_clear_if_far_ahead_in_one():
    found = [candidate(1, fts5=(1, 10.0), vec=(1, 0.6)), candidate(2, fts5=(2, 7.0), vec=(2, 0.59))]
    assert has_clear_winner(found)


def test_the_first_in_every_retriever_is_not_clear_if_others_are_close():
    found = [candidate(1, fts5=(1, 10.0), vec=(1, 0.6)), candidate(2, fts5=(2, 7.1), vec=(2, 0.59))]
    assert not has_clear_winner(found)
    assert has_clear_winner(found, margin=0.29)


@pytest.mark.parametrize("vec", [{"vec": (2, 0.5)}, {}])
def test_a_winner_is_not_clear_if_another_chunk_is_first_in_a_retriever(vec):
    assert not has_clear_winner([candidate(1, fts5=(1, 10.0), **vec), candidate(2, fts5=(2, 1.0), vec=(1, 0.6))])


def test_a_retriever_with_weight_zero_is_ignored():
    assert has_clear_winner([candidate(1, fts5=(1, 10.0)), candidate(2, fts5=(2, 1.0), vec=(1, 0.9, 0.0))])


def test_the_only_hit_of_a_retriever_is_clear():
    assert has_clear_winner([candidate(1, fts5=(1, 3.0), vec=(1, 0.5)), candidate(2, vec=(2, 0.49))])
    assert has_clear_winner([candidate(1, fts5=(1, 3.0))])


@pytest.mark.parametrize("raw", [0.0, -1.0])
def test_a_winner_without_a_positive_score_is_never_clear(raw):
    assert not has_clear_winner([candidate(1, vec=(1, raw)), candidate(2, vec=(2, raw - 5))])


def test_an_empty_result_has_no_winner():
    assert not has_clear_winner([])
    assert not has_clear_winner([candidate(1)])


def test_the_best_other_score_counts_at_any_position():
    found = [candidate(1, vec=(1, 0.9)), candidate(2, vec=(3, 0.1)), candidate(3, vec=(2, 0.85))]
    assert not has_clear_winner(found)


def test_contributions_of_earlier_stages_are_ignored():
    first = candidate(1, fts5=(1, 10.0))
    second = candidate(2, fts5=(2, 2.0))
    aged = Hit(2, 0.1, (*second.hit.contributions, Contribution("recency", 1, 400.0, 1.0, -0.4)))
    found = [first, Candidate(second.stored, aged, fused=second.hit)]
    assert has_clear_winner(found)
