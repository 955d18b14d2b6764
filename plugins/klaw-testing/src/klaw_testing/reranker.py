"""The contract of a reranker.

class TestMine(RerankerContract):
    @pytest.fixture
    def reranker(self):
        return MyReranker()
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core import Candidate, Contribution, Hit, Query, Reranker, RerankScore, StoredChunk
from klaw_core.searching.reranking import rerank
from klaw_core.searching.stages import Stage
from klaw_testing.laws import law, scaled
from klaw_testing.memory_store import MemoryStore
from klaw_testing.values import cut_lines, make_document

_TEXTS = (
    "the cat sat on the mat",
    "the dog ran",
    "SQLite keeps one writer",
    "кошка спит",
    "猫在睡觉",
    "which pet ran?",
)
_LABELS = ("MEMORY.md", "conversation", "manual", "a.md")
# A reranker may call a server or a model for each example, so there are few examples.
_few = settings(law, max_examples=scaled(40))
_QUESTIONS = ("which pet ran", "кошка", "x", 'C++ "quoted"')


@st.composite
def candidates(draw: st.DrawFn, *, min_size: int = 0) -> list[Candidate]:
    """Draw the results of a fusion, best first: distinct keys, two retrievers, and sometimes 3-dimensional vectors."""
    scores = sorted(draw(st.lists(st.integers(1, 400), min_size=min_size, max_size=8)), reverse=True)
    keys = draw(st.permutations(range(1, len(scores) + 1)))
    vectors = draw(st.booleans())
    return [
        _candidate(draw, place, key, score / 8, with_vector=vectors)
        for place, (key, score) in enumerate(zip(keys, scores, strict=True), start=1)
    ]


def _candidate(draw: st.DrawFn, place: int, key: int, score: float, *, with_vector: bool) -> Candidate:
    label = draw(st.sampled_from(_LABELS))
    document = make_document(f"notes/{key}/{label}", draw(st.sampled_from(_TEXTS)), hours=draw(st.integers(0, 10_000)))
    (chunk,) = cut_lines(document)
    stored = StoredChunk(key, chunk, document.path, label, document.created_at)
    parts = (
        Contribution("fts5", place, score, 1.0, score / 4),
        Contribution("vectors", place, score, 0.5, score * 3 / 4),
    )
    vector = np.array(draw(st.tuples(*[st.integers(-3, 3)] * 3).filter(any)), np.float32)
    vector /= np.linalg.norm(vector)
    return Candidate(stored, Hit(key, score, parts), vector=vector if with_vector else None)


def _ask(
    reranker: Reranker, text: str, given_candidates: Sequence[Candidate], limit: int
) -> Sequence[RerankScore] | None:
    return reranker.rerank(Query(text), given_candidates, limit)


class RerankerContract:
    """The laws of a reranker; the subclass defines the fixture ``reranker``, which must work."""

    @pytest.fixture
    def reranker(self) -> Any:
        """Return the reranker under test."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    @given(given_candidates=candidates(min_size=1), limit=st.integers(1, 10), text=st.sampled_from(_QUESTIONS))
    @_few
    def test_scores_are_distinct_ordered_finite_and_within_the_limit(
        self, reranker: Reranker, given_candidates: list[Candidate], limit: int, text: str
    ) -> None:
        scored = _ask(reranker, text, given_candidates, limit)
        if scored is None:
            return
        keys = [item.key for item in scored]
        assert 1 <= len(keys) <= limit
        assert len(set(keys)) == len(keys)
        assert set(keys) <= {candidate.key for candidate in given_candidates}
        scores = [item.score for item in scored]
        assert scores == sorted(scores, reverse=True)
        assert all(map(math.isfinite, scores))
        assert [item for item in scored if item.raw is not None and not math.isfinite(item.raw)] == []

    @given(given_candidates=candidates(min_size=1), limit=st.integers(1, 10), text=st.sampled_from(_QUESTIONS))
    @_few
    def test_as_a_stage_it_keeps_all_candidates_and_explains_scores(
        self, reranker: Reranker, given_candidates: list[Candidate], limit: int, text: str
    ) -> None:
        found = [(candidate.stored, candidate.hit) for candidate in given_candidates]
        stage = Stage("mine", lambda: _GivenCandidates(reranker, given_candidates))
        after, notices = rerank([stage], MemoryStore(), Query(text), found, limit)
        assert not notices
        assert {stored.key for stored, _ in after} == {stored.key for stored, _ in found}
        assert all(first.score >= second.score for (_, first), (_, second) in pairwise(after))
        before = {hit.key: hit for _, hit in found}
        for _, hit in after:
            *earlier, own = hit.contributions
            assert tuple(earlier) == before[hit.key].contributions
            assert own.component == "mine"
            assert math.isclose(hit.score, sum(part.value for part in hit.contributions), abs_tol=1e-9)

    @given(given_candidates=candidates(min_size=1), text=st.sampled_from(_QUESTIONS))
    @_few
    def test_it_is_deterministic(self, reranker: Reranker, given_candidates: list[Candidate], text: str) -> None:
        assert _ask(reranker, text, given_candidates, 8) == _ask(reranker, text, given_candidates, 8)


class _GivenCandidates:
    """Passes the drawn candidates with their vectors to a reranker, so that no store is needed."""

    needs_vectors = False

    def __init__(self, reranker: Reranker, drawn: Sequence[Candidate]) -> None:
        self._reranker = reranker
        self._drawn = {candidate.key: candidate for candidate in drawn}

    def rerank(self, query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore] | None:
        drawn = [self._drawn[candidate.key] for candidate in candidates]
        return self._reranker.rerank(query, drawn, limit)
