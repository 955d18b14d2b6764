"""Embed the question of a search in the vector space of each collection."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from attrs import define, field

from klaw_core.errors import QueryError, as_klaw_error
from klaw_core.searching.relevance import familiarity

if TYPE_CHECKING:
    from klaw_core.embedding.query_vectors import QueryVectors
    from klaw_core.interfaces.components import Embedder
    from klaw_core.interfaces.store import Snapshot
    from klaw_core.searching.retrievers import ConfiguredRetriever
    from klaw_core.values.vectors import SpaceRecord, Vector

NOTHING_EMBEDDED = "searched without vectors: nothing is embedded yet: run `klaw embed`"
_UNIT_TOLERANCE = 1e-3


@define(eq=False, repr=False)
class QuestionEmbedder:
    """Embeds questions without secrets, for searches of one store.

    ``get_embedder`` is called only if a retriever needs a vector.
    """

    get_embedder: Callable[[], Embedder]
    #: The process of the last question that was embedded, and its space. The embedder of another process, which a
    #: forked one has copied, may hang, because its threads are missing.
    _last: tuple[int, SpaceRecord] | None = field(default=None, init=False)

    @cached_property
    def _query_vectors(self) -> QueryVectors:
        from klaw_core.embedding.query_vectors import QueryVectors

        return QueryVectors()

    @cached_property
    def _cached_familiarity(self) -> Callable[[str], float]:
        """Computes how well the model knows the script of a question; caches as many questions as query vectors."""
        from klaw_core.embedding.query_vectors import MAX_CACHED

        return lru_cache(MAX_CACHED)(lambda text: familiarity(text, self.get_embedder()))

    def embed(
        self,
        question: str | Vector,
        retrievers: list[ConfiguredRetriever],
        collection: str,
        record: SpaceRecord | None,
        notices: list[str],
    ) -> tuple[Vector | None, SpaceRecord | None]:
        """Return the question's vector and its space if a retriever needs it; otherwise, or on failure, None.

        ``record`` is the space of the collection. On failure the retrievers that need vectors are removed from
        ``retrievers``. A question that is already a vector is only checked.
        """
        needing = [configured for configured in retrievers if configured.retriever.needs_vectors]
        if not needing:
            return None, None
        if record is None:  # nothing is embedded, so the model is not loaded
            leave_out(needing, retrievers)
            notices.append(NOTHING_EMBEDDED)
            return None, None
        if not isinstance(question, str):
            return _checked_vector(question, record), record
        try:
            vector = self._query_vectors.embed(question, self.get_embedder(), record, collection)
        except Exception as error:  # an embedder may raise anything; the other retrievers can still answer
            leave_out(needing, retrievers)
            problem = as_klaw_error(error)
            if not retrievers:
                raise problem from error
            notices.append(f"searched without vectors: {problem}")
            return None, None
        self._last = os.getpid(), record
        return vector, record

    def familiarity(self, question: str, embedded: Sequence[Vector | None]) -> float:
        """Return how well the model knows the script of a question; 1 if the question was not embedded."""
        with suppress(Exception):  # an embedder may raise anything; its vectors can still be used
            if any(vector is not None for vector in embedded):
                return self._cached_familiarity(question)
        return 1.0

    def mistaken(self, question: str, corrected: Iterable[str]) -> Sequence[str]:
        """Return the corrections of a question, without those of words that are one token to the local model."""
        words, known = question.split(), set[str]()
        with suppress(Exception, SystemExit):  # as above; then every word may be a mistake
            if (embedder := self._local()) is not None:
                bare = [word.strip(".,;:!?()'") for word in words]
                counts = embedder.count_tokens([*bare, *(f"{word} {word}" for word in bare)])
                known = {word for at, word in enumerate(words) if counts[at + len(words)] - counts[at] == 1}
        pairs = (zip(words, text.split(), strict=False) for text in corrected)
        kept = (" ".join(word if word in known else meant for word, meant in each) for each in pairs)
        return [text for text in dict.fromkeys(kept) if text != " ".join(words)]

    def _local(self) -> Embedder | None:
        """Return the embedder of the last question; None if it is remote, or has embedded none in this process."""
        from klaw_core.embedding.abilities import is_remote

        embedder = self.get_embedder() if self._last is not None and self._last[0] == os.getpid() else None
        return None if embedder is None or is_remote(embedder) else embedder

    def nearest(self, question: str, texts: Sequence[str]) -> int | None:
        """Return the index of the text that is nearest to a question of the last search.

        Return None if the embedder is remote or fails, or if the last search used no vector.
        """
        with suppress(Exception, SystemExit):  # an embedder may raise anything; the answer is optional
            if self._last is not None and texts and (embedder := self._local()) is not None:
                vector = self._query_vectors.embed(question, embedder, self._last[1], "")
                return int((embedder.embed_documents(texts) @ vector).argmax())
        return None


def is_in(snapshot: Snapshot[Any], collection: str, space: SpaceRecord) -> bool:
    """Return whether a collection is in a space, with the same weights."""
    record = snapshot.space(collection)
    if record is space:
        return True
    from klaw_core.embedding.query_vectors import record_identity

    return record is not None and record_identity(record) == record_identity(space)


def _checked_vector(vector: Vector, record: SpaceRecord) -> Vector:
    """Return the caller's vector as float32. Raise QueryError unless it has unit length and the space's dimension."""
    import numpy as np

    given = np.asarray(vector, dtype=np.float32)
    wanted = (record.space.dimension,)
    if given.shape != wanted or not abs(float(np.linalg.norm(given)) - 1.0) <= _UNIT_TOLERANCE:
        raise QueryError(f"the vector must be of unit length and of shape {wanted}, got shape {given.shape}")
    return given


def leave_out(these: Sequence[ConfiguredRetriever], retrievers: list[ConfiguredRetriever]) -> None:
    """Remove some retrievers from a list."""
    for configured in these:
        retrievers.remove(configured)
