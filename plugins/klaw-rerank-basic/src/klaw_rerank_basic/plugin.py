"""The hook implementation of klaw-rerank-basic: three reranking stages that need no model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from klaw_core import Component, Reranker, hookimpl


@hookimpl
def klaw_rerankers() -> Iterable[Component[Any, Reranker]]:
    """Yield ``recency``, ``importance`` and ``mmr``."""
    from klaw_rerank_basic.importance import Importance, ImportanceOptions
    from klaw_rerank_basic.mmr import MaximalMarginalRelevance, MmrOptions
    from klaw_rerank_basic.recency import Recency, RecencyOptions

    yield Component(
        "recency", RecencyOptions, lambda options, _: Recency(options), api=2, summary="lower scores for older results"
    )
    summary = "weights results by source"
    yield Component("importance", ImportanceOptions, lambda options, _: Importance(options), api=2, summary=summary)
    summary = "maximal marginal relevance: lower scores for results that repeat a better one"
    yield Component("mmr", MmrOptions, lambda options, _: MaximalMarginalRelevance(options), api=2, summary=summary)
