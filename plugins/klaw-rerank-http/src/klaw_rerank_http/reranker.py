"""The reranker ``http``: its requests and the parsing of answers.

The protocol is that of Jina (https://jina.ai/reranker), Cohere (https://docs.cohere.com/reference/rerank), vLLM and
llama.cpp: ``POST /rerank {model, query, documents, top_n}`` returns ``{"results": [{"index", "relevance_score"}]}``.
Text Embeddings Inference (https://huggingface.github.io/text-embeddings-inference/) has other names: ``{query, texts}``
returns ``[{"index", "score"}]``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from klaw_core import Candidate, Query, RerankScore
from klaw_http import BodyError, HttpClient, NoAnswerError, StatusError
from klaw_rerank_basic.winner import has_clear_winner

if TYPE_CHECKING:
    from klaw_rerank_http.options import HttpRerankerOptions

_NOT_FOUND = 404
_REFUSED = frozenset({401, 403})


@frozen(eq=False)
class HttpReranker:
    """Reranks with the scores of a server; implements ``klaw_core.Reranker``.

    Raise HttpError if the server does not answer, rejects the request, or sends an invalid answer; Klaw then keeps the
    order.
    """

    options: HttpRerankerOptions
    client: HttpClient

    needs_vectors = False

    def rerank(self, query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore] | None:
        """Return the server's scores of the best ``top_n``, or None if the first result is clearly the best."""
        if self.options.bypass and has_clear_winner(candidates):
            return None
        sent = candidates[: self.options.max_candidates]
        wanted = min(self.options.top_n, limit, len(sent))
        documents = [candidate.stored.chunk.embedding_text for candidate in sent]
        if self.options.dialect == "tei":  # it has no top_n, and returns a list
            body: dict[str, object] = {"query": query.text, "texts": documents, "truncate": True}
        else:
            body = {"model": self.options.model, "query": query.text, "documents": documents, "top_n": wanted}
        scores = self._ask(body, len(sent))
        if len(scores) < wanted:
            raise BodyError(f"{self._where} returned {len(scores)} scores, expected {wanted}")
        # in the original order, so that equal scores keep it
        scored = [RerankScore(candidate.key, scores[index]) for index, candidate in enumerate(sent) if index in scores]
        return sorted(scored, key=lambda item: -item.score)[:wanted]

    def _ask(self, body: Mapping[str, object], count: int) -> dict[int, float]:
        """Return the server's scores by the index of the document."""
        try:
            answer = self.client.ask("/rerank", body)
        except NoAnswerError as error:
            hint = "is it running? check the url in [[memory.reranking]]"
            raise NoAnswerError(error.message, hint=hint) from error
        except StatusError as error:
            hint = _hint(error.status)
            raise StatusError(error.message, hint=hint, status=error.status, detail=error.detail) from error
        try:
            return read_scores(answer, count)
        except BodyError as error:
            raise BodyError(f"{self._where}: {error.message}") from error

    @property
    def _where(self) -> str:
        return f"{self.client.base_url}/rerank ({self.options.model})"


def _hint(status: int) -> str:
    if status == _NOT_FOUND:
        return "url in [[memory.reranking]] must be the address without /rerank"
    return "api_key in [[memory.reranking]] is missing or wrong" if status in _REFUSED else ""


def read_scores(answer: object, count: int) -> dict[int, float]:
    """Return the scores of an answer by index, from 0 to ``count`` - 1. Raise BodyError.

    The formats of servers differ: ``results``, ``data`` or a list; ``relevance_score`` or ``score``. Other keys are
    ignored.
    """
    entries = answer
    if isinstance(answer, Mapping):
        entries = next((answer[key] for key in ("results", "data") if key in answer), None)
    if not isinstance(entries, list):
        raise BodyError("the answer has no list of results")
    scores: dict[int, float] = {}
    for entry in entries:
        index, score = _entry(entry)
        if not 0 <= index < count:
            raise BodyError(f"the answer scores document {index}, but only {count} were sent")
        if index in scores:
            raise BodyError(f"the answer scores document {index} twice")
        scores[index] = score
    return scores


def _entry(entry: object) -> tuple[int, float]:
    if not isinstance(entry, Mapping):
        raise BodyError("the answer has a result that is not an object")
    index = entry.get("index")
    score = entry.get("relevance_score", entry.get("score"))
    if not isinstance(index, int) or isinstance(index, bool):
        raise BodyError("the answer has a result without an index")
    if not isinstance(score, int | float) or isinstance(score, bool):
        raise BodyError(f"the answer has no score for document {index}")
    try:
        number = float(score)
    except OverflowError:  # an integer that is too large for a float
        number = math.inf
    if not math.isfinite(number):
        raise BodyError(f"the answer's score for document {index} is not a finite number")
    return index, number
