"""The reranker ``onnx``: reads each chunk beside the question and scores the pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import frozen

from klaw_core import Candidate, Query, RerankScore, has_clear_winner
from klaw_models import CrossEncoderManifest
from klaw_rerank_onnx.pairs import PairTokenizer
from klaw_rerank_onnx.session import CrossEncoder

if TYPE_CHECKING:
    from klaw_rerank_onnx.options import OnnxRerankerOptions


@frozen(eq=False)
class OnnxReranker:
    """Scores with a cross-encoder that ONNX Runtime runs; implements ``klaw_core.Reranker``.

    Constructing reads nothing; tokenizer and model load at the first question that is not bypassed. Raise
    RetrievalError if the model cannot be run or the question fills its window, ModelCorruptError if its files are
    not what its manifest says; Klaw then leaves the order as it was.
    """

    options: OnnxRerankerOptions
    manifest: CrossEncoderManifest

    needs_vectors = False

    def rerank(self, query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore] | None:
        """Return the model's scores of the best ``top_n``, or None if the order is clear without it.

        A score is the logistic function of the model's logit, which is raw. A chunk that does not fit beside the
        question is read as far as it does.
        """
        if self.options.bypass and has_clear_winner(candidates):
            return None
        read = candidates[: self.options.max_candidates]
        pairs = self._tokenizer.pairs(query.text, [candidate.stored.chunk.embedding_text for candidate in read])
        raw = self._model.scores(pairs)
        # by the raw scores: the logistic function makes large ones equal
        ranked = sorted(zip(read, raw, strict=True), key=lambda item: -item[1])[: min(self.options.top_n, limit)]
        return [RerankScore(candidate.key, logistic(value), value) for candidate, value in ranked]

    @cached_property
    def _tokenizer(self) -> PairTokenizer:
        return PairTokenizer.load(self.manifest, self.options.max_tokens)

    @cached_property
    def _model(self) -> CrossEncoder:
        return CrossEncoder.load(self.manifest, threads=self.options.threads, batch=self.options.batch)


def logistic(logit: float) -> float:
    """Return 1 / (1 + e^-x), without overflow."""
    if logit >= 0:
        return 1.0 / (1.0 + math.exp(-logit))
    exponential = math.exp(logit)
    return exponential / (1.0 + exponential)
