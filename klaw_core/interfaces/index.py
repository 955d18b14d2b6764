"""Retrievers, and the indexes among them that keep rows of their own in the store's transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from klaw_core.values.key_digest import KeyDigest
    from klaw_core.values.migrations import Migration
    from klaw_core.values.search import Hit, Query
    from klaw_core.values.text import StoredChunk
    from klaw_core.values.vectors import Keys, Matrix, VectorSpace

R = TypeVar("R")


class Retriever(Protocol[R]):
    """Finds the keys of chunks for a query. Works in any store that offers a resource of type ``joins``."""

    @property
    def joins(self) -> type[R]:
        """Return the type of resource this retriever reads through."""

    @property
    def needs_vectors(self) -> bool:
        """Return whether ``search`` needs ``query.vector``."""

    def search(self, resource: R, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, keys distinct, only keys in ``query.within`` if given.

        Every text is a valid query. An index that is empty or was never filled answers ``()``.
        """


@runtime_checkable
class NoticingRetriever(Retriever[R], Protocol[R]):
    """A retriever with notices about a query. Optional."""

    def notices(self, resource: R, query: Query, /) -> Sequence[str]:
        """Return notices for the user about the search for ``query``, one line each."""


@runtime_checkable
class LimitedRetriever(Retriever[R], Protocol[R]):
    """A retriever that can work in a degraded mode. Optional."""

    @property
    def limitation(self) -> str:
        """Return what is missing, and the fix, in one line; empty if nothing is missing."""


@runtime_checkable
class SuggestingRetriever(Retriever[R], Protocol[R]):
    """A retriever that suggests a corrected query. Optional; used only if there is no good match."""

    def suggest(self, resource: R, query: Query, read: Callable[[Sequence[int]], Sequence[str]], /) -> str | None:
        """Return the corrected question, or None. ``read`` returns the texts of chunks by their keys."""


@runtime_checkable
class Index(Retriever[R], Protocol[R]):
    """A retriever that keeps rows of its own, derived from the chunks, in the store's transactions.

    Exceptions of the resource's library may propagate: the store that owns the snapshot or transaction translates them.
    """

    def migrations(self) -> Sequence[Migration[R]]:
        """Return the steps that make this index's schema, oldest first; append-only."""

    def prepare(self, resource: R, /) -> None:
        """Make a fresh connection ready (load an extension, register functions). Raise RetrievalError."""

    def reset(self, resource: R, collection: str, space: VectorSpace | None, /) -> None:
        """Make the collection's index empty, ready for rows of ``space`` (None without vectors)."""

    def add(self, resource: R, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /) -> None:
        """Add rows for keys that are not there yet; row i of ``vectors`` (if needed) is chunk i's."""

    def remove(self, resource: R, collection: str, keys: Sequence[int], /) -> None:
        """Remove the rows of these keys; unknown keys are ignored."""

    def keys(self, resource: R, collection: str, /) -> Keys:
        """Return every key in the index, ascending."""


@runtime_checkable
class KeyDigestIndex(Index[R], Protocol[R]):
    """An index that can sum its keys faster than list them. Optional: without it they are listed at every run."""

    def key_digest(self, resource: R, collection: str, /) -> KeyDigest | None:
        """Return the digest of :meth:`keys`, computed from the rows; None if :meth:`keys` must be asked instead."""


@runtime_checkable
class LackingIndex(Index[R], Protocol[R]):
    """An index that can tell at every search how many chunks it lacks. Optional: otherwise only if it finds nothing."""

    def lacking(self, resource: R, collection: str, chunks: Callable[[], int], /) -> int:
        """Return how many chunks of a collection have no row, fast; ``chunks`` counts those of the collection."""


@runtime_checkable
class OutdatedIndex(Index[R], Protocol[R]):
    """An index that may hold rows in another form than the configured one. Optional: without it none does."""

    def outdated(self, resource: R, collection: str, /) -> Keys:
        """Return the keys of rows to be added again, ascending; :meth:`key_digest` is None while there are any."""


@runtime_checkable
class CheckedIndex(Index[R], Protocol[R]):
    """An index that can check its rows for damage. Optional: without it only the keys are compared."""

    def check(self, resource: R, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return what is wrong with the collection's rows, each in one line; nothing for an index never filled.

        ``space`` is the recorded space of the collection. Nothing is written. Damaged rows never raise.
        """


@runtime_checkable
class CompactingIndex(Index[R], Protocol[R]):
    """An index whose searches are faster if its data is in few pieces. Optional.

    The core calls it at the end of an index run.
    """

    def is_scattered(self, resource: R, collection: str, /) -> bool:
        """Return whether merging the pieces is worthwhile; a run that changed little should not write everything."""

    def compact(self, resource: R, collection: str, /) -> None:
        """Merge the pieces, inside the transaction. The results of searches do not change."""


@runtime_checkable
class ErasingIndex(Index[R], Protocol[R]):
    """An index in which removed rows stay readable until :meth:`erase` is called.

    Optional: without it ``remove`` leaves nothing of a row that the store does not overwrite by itself.
    """

    def erase(self, resource: R, collection: str, /) -> None:
        """Make sure that nothing of removed rows is left in the collection's pages, inside the transaction.

        Rows that were not removed are found as before.
        """
