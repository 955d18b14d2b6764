"""The laws of a reranker, as a test class to inherit; the subclass gives the fixture ``reranker``."""

from typing import Any

import pytest

from klaw_core.interfaces import Reranker
from klaw_core.testing.values import cut_lines, make_document
from klaw_core.values import StoredChunk


def _chunks() -> list[StoredChunk]:
    document = make_document("notes/a.md", "the cat sat\nthe dog ran\nSQLite keeps one writer")
    return [
        StoredChunk(number, chunk, document.path, document.source, document.created_at)
        for number, chunk in enumerate(cut_lines(document), start=5)
    ]


class RerankerContract:
    """The laws of a reranker."""

    @pytest.fixture
    def reranker(self) -> Any:
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    def test_it_orders_only_what_it_was_given(self, reranker: Reranker) -> None:
        hits = reranker.rerank("which pet ran", _chunks(), 10)
        assert {hit.key for hit in hits} <= {5, 6, 7}
        assert len({hit.key for hit in hits}) == len(hits)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)

    def test_it_respects_the_limit_and_the_empty_list(self, reranker: Reranker) -> None:
        assert len(reranker.rerank("pet", _chunks(), 2)) <= 2
        assert list(reranker.rerank("pet", [], 2)) == []

    def test_it_is_deterministic(self, reranker: Reranker) -> None:
        assert list(reranker.rerank("pet", _chunks(), 3)) == list(reranker.rerank("pet", _chunks(), 3))
