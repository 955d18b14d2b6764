"""The reranker ``onnx``: scores each chunk together with the question."""

from __future__ import annotations

import math
from collections.abc import Sequence

from klaw_core import Candidate, Lazy, Query, RerankScore
from klaw_models import CrossEncoderManifest
from klaw_rerank_basic.winner import has_clear_winner
from klaw_rerank_onnx.cross_encoder import CrossEncoder
from klaw_rerank_onnx.options import OnnxRerankerOptions
from klaw_rerank_onnx.pairs import PairTokenizer


class OnnxReranker:
    """Scores with a cross-encoder in ONNX Runtime; implements ``klaw_core.Reranker``.

    Safe to use from several threads. The constructor reads nothing; tokenizer and model load at the first question that
    is not bypassed. Raise RetrievalError if the model cannot run or the question fills its window, and
    ModelCorruptError if its files do not match its manifest; Klaw then keeps the order.
    """

    needs_vectors = False

    def __init__(self, options: OnnxRerankerOptions, manifest: CrossEncoderManifest) -> None:
        self.options = options
        self.manifest = manifest
        self._tokenizer = Lazy(lambda: PairTokenizer.load(manifest, options.max_tokens))
        self._model = Lazy(lambda: CrossEncoder.load(manifest, threads=options.threads, batch=options.batch))

    def rerank(self, query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore] | None:
        """Return the model's scores of the best ``top_n``, or None if the first result is clearly the best.

        ``raw`` is the logit, and the score its logistic function. The part of a chunk that does not fit in the window
        together with the question is ignored.
        """
        if self.options.bypass and has_clear_winner(candidates):
            return None
        read = candidates[: self.options.max_candidates]
        pairs = self._tokenizer.get().pairs(query.text, [candidate.stored.chunk.embedding_text for candidate in read])
        raw = self._model.get().scores(pairs)
        # sorted by logits, because the logistic function of large ones is equal
        ranked = sorted(zip(read, raw, strict=True), key=lambda item: -item[1])[: min(self.options.top_n, limit)]
        return [RerankScore(candidate.key, logistic(value), value) for candidate, value in ranked]


def logistic(logit: float) -> float:
    """Return 1 / (1 + e^-logit) without overflow."""
    if logit >= 0:
        return 1.0 / (1.0 + math.exp(-logit))
    exponential = math.exp(logit)
    return exponential / (1.0 + exponential)
