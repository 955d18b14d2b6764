"""The embedding cache: vectors by vector space and hash of the text, inside the store's transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from klaw_core.values.vectors import Vector, VectorSpace


class VectorCacheReader(Protocol):
    """The cached vectors that one snapshot sees."""

    def cached_vectors(self, space: VectorSpace, hashes: Sequence[str], /) -> Mapping[str, Vector]:
        """Return the cached vectors among these chunk hashes: of unit length, in at least half precision."""


class VectorCacheWriter(VectorCacheReader, Protocol):
    """Changes to the cache in one transaction."""

    def retire_space(self, space: VectorSpace, /) -> None:
        """Change the revision of a vector space, its collections and its vectors to ``replaced-`` and the old one.

        This is for a model that changed under its name: its earlier vectors no longer belong to the space of any
        embedder.
        """

    def cache_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector], /) -> None:
        """Put vectors in the embedding cache, by chunk hash."""

    def use_vectors(self, space: VectorSpace, hashes: Sequence[str], /) -> None:
        """Record that these cached vectors were used now; the least recently used are removed first."""

    def tend_cache(self, max_entries: int, /, *, found: int = 0, computed: int = 0) -> int:
        """Keep the ``max_entries`` most recently used vectors of the collections' spaces; return the number removed.

        A space without a collection is being built: it stays, unless none of its vectors was used for 30 days.
        ``found`` and ``computed`` are added to the statistics: the numbers of vectors that were in the cache, and that
        were not.
        """

    def note_documents(self, space: VectorSpace, documents: Mapping[tuple[str, str], Sequence[str]], /) -> None:
        """Record which cached vectors, by chunk hash, were computed for which documents, by collection and path.

        For the new space of a reindex: its chunks of a document may differ from those in the index, so the hashes
        cannot be derived from the index.
        """

    def forget_documents(self, collection: str, paths: Sequence[str], /) -> None:
        """Remove the cached vectors that were recorded for these documents."""

    def forget_unused(self) -> None:
        """Remove the cached vectors of the collections' spaces whose text no chunk has."""

    def forget_vectors(self, hashes: Sequence[str], /) -> None:
        """Remove these chunk hashes from the embedding cache, in every space."""
