"""Retrievers, and the indexes among them that keep rows of their own in the store's transactions.

A retriever inherits :class:`Retriever`, an index inherits :class:`Index`. The methods with a body are optional.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from klaw_core.values.key_digest import KeyDigest
    from klaw_core.values.migrations import Migration
    from klaw_core.values.search import Hit, Query
    from klaw_core.values.text import StoredChunk
    from klaw_core.values.vectors import Keys, Matrix, VectorSpace

R = TypeVar("R")


class Retriever(Generic[R]):
    """Finds the keys of chunks for a query. Works in any store that offers a resource of type ``joins``."""

    __slots__ = ()

    if TYPE_CHECKING:  # attributes or properties

        @property
        def joins(self) -> type[R]:
            """Return the type of resource this retriever reads through."""

        @property
        def needs_vectors(self) -> bool:
            """Return whether ``search`` needs ``query.vector``."""

        @property
        def limitation(self) -> str:
            """Return what is missing for the full mode, and the fix, in one line; empty if nothing is missing."""

    else:
        limitation = ""

    @abstractmethod
    def search(self, resource: R, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, keys distinct, only keys in ``query.within`` if given.

        Every text is a valid query. An index that is empty or was never filled answers ``()``.
        """

    def notices(self, _resource: R, _query: Query, /) -> Sequence[str]:
        """Return notices for the user about the search for ``query``, one line each."""
        return ()

    def absent(self, _resource: R, _query: Query, /) -> Sequence[str]:
        """Return names in the question that are spelled exactly, such as an error code, and that no chunk contains."""
        return ()

    def suggest(self, _resource: R, _query: Query, _read: Callable[[Sequence[int]], Sequence[str]], /) -> str | None:
        """Return the corrected question, or None. Called only if there is no good match.

        ``read`` returns the texts of chunks by their keys.
        """
        return None


class Index(Retriever[R]):
    """A retriever that keeps rows of its own, derived from the chunks, in the store's transactions.

    Exceptions of the resource's library may propagate: the store that owns the snapshot or transaction translates them.
    """

    __slots__ = ()

    @abstractmethod
    def migrations(self) -> Sequence[Migration[R]]:
        """Return the steps that make this index's schema, oldest first; append-only."""

    @abstractmethod
    def prepare(self, resource: R, /) -> None:
        """Make a fresh connection ready (load an extension, register functions). Raise RetrievalError."""

    @abstractmethod
    def reset(self, resource: R, collection: str, space: VectorSpace | None, /) -> None:
        """Make the collection's index empty, ready for rows of ``space`` (None without vectors)."""

    @abstractmethod
    def add(self, resource: R, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /) -> None:
        """Add rows for keys that are not there yet; row i of ``vectors`` (if needed) is chunk i's."""

    @abstractmethod
    def remove(self, resource: R, collection: str, keys: Sequence[int], /) -> None:
        """Remove the rows of these keys; unknown keys are ignored."""

    @abstractmethod
    def keys(self, resource: R, collection: str, /) -> Keys:
        """Return every key in the index, ascending."""

    def key_digest(self, _resource: R, _collection: str, /) -> KeyDigest | None:
        """Return the digest of :meth:`keys`, computed from the rows faster than listing them.

        Return None if :meth:`keys` must be asked instead.
        """
        return None

    def lacking(self, _resource: R, _collection: str, _chunks: Callable[[], int], /) -> int | None:
        """Return how many chunks of a collection have no row, fast enough for every search; None if that is slow.

        ``chunks`` counts those of the collection.
        """
        return None

    def outdated(self, resource: R, collection: str, /) -> Keys:
        """Return the keys of rows in another form than the configured one, ascending; they are added again.

        :meth:`key_digest` is None while there are any.
        """
        return self.keys(resource, collection)[:0]

    def check(self, _resource: R, _collection: str, _space: VectorSpace | None, /) -> Sequence[str]:
        """Return what is wrong with the collection's rows, each in one line; nothing for an index never filled.

        ``space`` is the recorded space of the collection. Nothing is written. Damaged rows never raise. By default only
        the keys of an index are compared with the chunks.
        """
        return ()

    def is_scattered(self, _resource: R, _collection: str, /) -> bool:
        """Return whether :meth:`compact` is worthwhile; a run that changed little should not write everything.

        Asked at the end of an index run.
        """
        return False

    def compact(self, _resource: R, _collection: str, /) -> None:
        """Merge the pieces of the data, inside the transaction. The results of searches do not change."""

    def erase(self, _resource: R, _collection: str, /) -> None:
        """Make sure that nothing of removed rows is left in the collection's pages, inside the transaction.

        Rows that were not removed are found as before. By default ``remove`` leaves nothing of a row that the store
        does not overwrite by itself.
        """
