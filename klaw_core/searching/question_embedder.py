"""Embed the question of a search in the vector space of each collection.

The spaces of the last search are cached, so that the next one embeds its question without a snapshot of the store. If a
space has changed since then, the search starts again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from klaw_core.errors import QueryError, as_klaw_error
from klaw_core.searching.relevance import familiarity
from klaw_redaction import Redactor

if TYPE_CHECKING:
    from klaw_core.embedding.query_vectors import QueryVectors
    from klaw_core.interfaces.components import Embedder
    from klaw_core.interfaces.store import Snapshot, Store
    from klaw_core.searching.retrievers import ConfiguredRetriever
    from klaw_core.values.vectors import SpaceRecord, Vector

NOTHING_EMBEDDED = "searched without vectors: nothing is embedded yet: run `klaw embed`"
_UNIT_TOLERANCE = 1e-3


class SpaceChangedError(Exception):
    """The vector space of a collection has changed since the last search of this process."""


@frozen(eq=False, repr=False)
class QuestionEmbedder:
    """Embeds questions for searches of one store. ``get_embedder`` is called only if a retriever needs a vector."""

    store: Store[Any]
    get_embedder: Callable[[], Embedder]
    redactor: Redactor = field(factory=Redactor)

    @cached_property
    def _query_vectors(self) -> QueryVectors:
        from klaw_core.embedding.query_vectors import QueryVectors

        return QueryVectors()

    @cached_property
    def _cached_familiarity(self) -> Callable[[str], float]:
        """Computes how well the model knows the script of a question; caches as many questions as query vectors."""
        from klaw_core.embedding.query_vectors import MAX_CACHED

        return lru_cache(MAX_CACHED)(lambda text: familiarity(text, self.get_embedder()))

    @cached_property
    def _last_spaces(self) -> dict[tuple[int, str], SpaceRecord]:
        """The vector space of each collection in the last search, by process id and collection.

        A forked process finds no entry, so it opens the store before it uses the embedder: the store reports the fork,
        but an embedder whose threads are missing may hang.
        """
        return {}

    def take_last_spaces(self, collections: Sequence[str]) -> dict[str, SpaceRecord]:
        """Remove and return the spaces of collections in the last search; :meth:`is_in` stores them again."""
        popped = {name: self._last_spaces.pop((os.getpid(), name), None) for name in collections}
        return {name: record for name, record in popped.items() if record is not None}

    def embed(
        self,
        question: str | Vector,
        retrievers: list[ConfiguredRetriever],
        collection: str,
        notices: list[str],
        last_spaces: Mapping[str, SpaceRecord],
    ) -> tuple[Vector | None, SpaceRecord | None]:
        """Return the question's vector and its space if a retriever needs it; otherwise, or on failure, None.

        On failure the retrievers that need vectors are removed from ``retrievers``. A question that is already a vector
        is only checked. With ``last_spaces``, the spaces of the last search, no snapshot is needed to find the space.
        """
        needing = [configured for configured in retrievers if configured.retriever.needs_vectors]
        if not needing:
            return None, None
        record = last = last_spaces.get(collection)
        if record is None:
            with self.store.read() as snapshot:
                record = snapshot.space(collection)
        if record is None:  # nothing is embedded, so the model is not loaded
            leave_out(needing, retrievers)
            notices.append(NOTHING_EMBEDDED)
            return None, None
        if not isinstance(question, str):
            return _checked_vector(question, record), record
        try:
            text = self.redactor.text(question)
            return self._query_vectors.embed(text, self.get_embedder(), record, collection), record
        except Exception as error:  # an embedder may raise anything; the other retrievers can still answer
            if last is not None:
                with self.store.read() as snapshot:
                    if not self.is_in(snapshot, collection, last):
                        raise SpaceChangedError from error
            leave_out(needing, retrievers)
            problem = as_klaw_error(error)
            if not retrievers:
                raise problem from error
            notices.append(f"searched without vectors: {problem}")
            return None, None

    def familiarity(self, text: str, embedded: Sequence[Vector | None]) -> float:
        """Return how well the model knows the script of a question; 1 if the question was not embedded."""
        if all(vector is None for vector in embedded):
            return 1.0
        try:
            return self._cached_familiarity(self.redactor.text(text))
        except Exception:  # noqa: BLE001  # an embedder may raise anything; its vectors can still be used
            return 1.0

    def is_in(self, snapshot: Snapshot[Any], collection: str, space: SpaceRecord) -> bool:
        """Return whether a collection is in a space, with the same weights; save its space for the next search."""
        record = snapshot.space(collection)
        if record is not space:
            from klaw_core.embedding.query_vectors import record_identity

            if record is None or record_identity(record) != record_identity(space):
                return False
        self._last_spaces[os.getpid(), collection] = record
        return True

    def nearest(self, question: str, texts: Sequence[str]) -> int | None:
        """Return the index of the text that is nearest to a question of the last search.

        Return None if the embedder is remote or fails, or if the last search used no vector.
        """
        records = [record for (process, _), record in self._last_spaces.items() if process == os.getpid()]
        if not records or not texts:
            return None
        from klaw_core.embedding.abilities import is_remote

        with suppress(Exception, SystemExit):  # an embedder may raise anything; the answer is optional
            embedder = self.get_embedder()
            if not is_remote(embedder):
                vector = self._query_vectors.embed(self.redactor.text(question), embedder, records[0], "")
                return int((embedder.embed_documents(texts) @ vector).argmax())
        return None


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
