"""The reranker ``onnx``: reads each chunk with the question and scores the pair."""

from __future__ import annotations

import math
from collections.abc import Sequence

from klaw_core import Candidate, Lazy, Query, RerankScore, has_clear_winner
from klaw_models import CrossEncoderManifest
from klaw_rerank_onnx.cross_encoder import CrossEncoder
from klaw_rerank_onnx.options import OnnxRerankerOptions
from klaw_rerank_onnx.pairs import PairTokenizer


class OnnxReranker:
    """Scores with a cross-encoder that ONNX Runtime runs; implements ``klaw_core.Reranker``.

    Safe to use from several threads. Constructing reads nothing; tokenizer and model load at the first question that
    is not bypassed. Raise RetrievalError if the model cannot be run or the question fills its window,
    ModelCorruptError if its files are not what its manifest says; Klaw then leaves the order as it was.
    """

    needs_vectors = False

    def __init__(self, options: OnnxRerankerOptions, manifest: CrossEncoderManifest) -> None:
        self.options = options
        self.manifest = manifest
        self._tokenizer = Lazy(lambda: PairTokenizer.load(manifest, options.max_tokens))
        self._model = Lazy(lambda: CrossEncoder.load(manifest, threads=options.threads, batch=options.batch))

    def rerank(self, query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore] | None:
        """Return the model's scores of the best ``top_n``, or None if the order is clear without it.

        A score is the logistic function of the model's logit, which is raw. The end of a chunk
        that does not fit into the window with the question is not read.
        """
        if self.options.bypass and has_clear_winner(candidates):
            return None
        read = candidates[: self.options.max_candidates]
        pairs = self._tokenizer.get().pairs(query.text, [candidate.stored.chunk.embedding_text for candidate in read])
        raw = self._model.get().scores(pairs)
        # by the raw scores: the logistic function makes large ones equal
        ranked = sorted(zip(read, raw, strict=True), key=lambda item: -item[1])[: min(self.options.top_n, limit)]
        return [RerankScore(candidate.key, logistic(value), value) for candidate, value in ranked]


def logistic(logit: float) -> float:
    """Return 1 / (1 + e^-x), without overflow."""
    if logit >= 0:
        return 1.0 / (1.0 + math.exp(-logit))
    exponential = math.exp(logit)
    return exponential / (1.0 + exponential)
