"""The store: it owns the file, the canonical rows, the migrations and every transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from klaw_core.interfaces.vector_cache import VectorCacheReader, VectorCacheWriter

if TYPE_CHECKING:
    from datetime import datetime

    from klaw_core.interfaces.index import Index
    from klaw_core.values.documents import Document, DocumentRecord, Replacement
    from klaw_core.values.findings import Finding
    from klaw_core.values.key_digest import KeyDigest
    from klaw_core.values.search import ChunkSelection, Filters
    from klaw_core.values.text import Chunk, StoredChunk
    from klaw_core.values.vectors import Keys, SpaceRecord

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Snapshot(VectorCacheReader, Protocol[R_co]):
    """One consistent view of the store; short-lived, because an open one keeps the write-ahead log growing."""

    @property
    def resource(self) -> R_co:
        """Return the resource that indexes read with."""

    @property
    def messages(self) -> Any:
        """Return the rows of conversations, a ``klaw_journals.MessageReader``."""

    def collections(self) -> Sequence[str]:
        """Return the names of the collections that have been written to, by name.

        The first document or vector space creates a collection. For any other valid name, every method below returns
        what it returns for an empty collection.
        """

    def is_empty(self, collection: str, /) -> bool:
        """Return whether a collection has no chunks. Takes constant time."""

    def documents(self, collection: str, prefix: str, after: str, limit: int, /) -> Sequence[DocumentRecord]:
        """Return at most ``limit`` documents by path: those that begin with ``prefix``, after the path ``after``."""

    def manifest(self, collection: str, origin: str, /) -> Mapping[str, DocumentRecord]:
        """Return the indexed documents of one origin, by path."""

    def record(self, collection: str, origin: str, path: str, /) -> DocumentRecord | None:
        """Return the row of :meth:`manifest` for one path, None if there is none."""

    def manifest_digest(self, collection: str, origin: str, /) -> tuple[int, int]:
        """Return the number of documents of an origin, and a number that depends on their rows and content hashes.

        Faster than :meth:`manifest`: an index run asks whether another process has changed it.
        """

    def newest(
        self, collection: str, limit: int, /, *, origin: str | None = None, since: datetime | None = None
    ) -> Sequence[DocumentRecord]:
        """Return the newest documents, newest first, those of one date by path: of one origin, or (None) of all.

        With ``since`` no older ones, though one that is older by less than the store's unit of time may be among them.
        Documents with a damaged date may be left out. Only these documents are read.
        """

    def select(self, collection: str, filters: Filters, /) -> ChunkSelection:
        """Return the chunks that pass the filters, as a selection that retrievers can join by."""

    def chunks(self, collection: str, keys: Sequence[int], /) -> Sequence[StoredChunk]:
        """Return the chunks of these keys in the order given; unknown keys are left out."""

    def chunk_ids(self, collection: str, keys: Sequence[int], /) -> Mapping[int, str]:
        """Return the id of the chunk of each key; unknown keys are left out."""

    def texts(self, collection: str, keys: Sequence[int], /) -> Mapping[int, str]:
        """Return the text of the chunk of each key; unknown keys and unreadable texts are left out.

        Faster than :meth:`chunks`, because a store reads nothing else. It need not detect every damage.
        """

    def outline(self, collection: str, path: str, /) -> Sequence[StoredChunk]:
        """Return one document's chunks in order of position; empty if it is not indexed."""

    def damaged(self, collection: str, path: str | None = None, /) -> Sequence[int]:
        """Return the keys of damaged chunks: of one document, or (None) of all.

        No other method returns such a chunk. A store that always detects damage returns none.
        """

    def find(self, collection: str, chunk_id: str, /) -> Sequence[StoredChunk]:
        """Return the chunks whose id begins with ``chunk_id``."""

    def keys(self, collection: str, /) -> Keys:
        """Return every chunk's key, ascending."""

    def key_digest(self, collection: str, /) -> KeyDigest:
        """Return the digest of :meth:`keys`."""

    def count(self, collection: str, /) -> int:
        """Return the number of chunks."""

    def space(self, collection: str, /) -> SpaceRecord | None:
        """Return the vector space the collection was indexed in, or None if there is none yet."""

    def counts(self, collection: str, /) -> Mapping[str, tuple[int, int]]:
        """Return (documents, chunks) by origin."""


class Transaction(Snapshot[R_co], VectorCacheWriter, Protocol[R_co]):
    """A unit of work: it is written completely or not at all."""

    @property
    def messages(self) -> Any:
        """Return the rows of conversations for changes, a ``klaw_journals.MessageWriter``."""

    def replace(
        self,
        collection: str,
        document: Document,
        chunks: Sequence[Chunk],
        /,
        *,
        expected: Mapping[str, DocumentRecord] | None = None,
    ) -> Replacement:
        """Replace the chunks of a document. A chunk with the same id keeps its key; other chunks are removed or added.

        The keys of new chunks are ascending, in the order of the chunks, and were never used before. Text with NUL
        characters is stored unchanged or rejected with StoreError. ``expected`` are the records, by path, that the
        caller has read. If the document's current record differs from it, or exists but is not in it, another process
        has written the document, and the change is refused. A store with concurrent writers lets no other writer change
        the document until the transaction ends.
        """

    def replace_all(
        self,
        collection: str,
        documents: Sequence[tuple[Document, Sequence[Chunk]]],
        /,
        *,
        expected: Mapping[str, DocumentRecord] | None = None,
    ) -> Sequence[Replacement]:
        """Call :meth:`replace` for each document, in this order, and return the results."""

    def remember(self, collection: str, records: Sequence[DocumentRecord], /) -> None:
        """Store the ``seen`` of these records, except for documents whose current record differs.

        ``manifest`` and ``record`` return it until the document is replaced, touched or deleted. An index run
        recognises an unchanged document by it. The data may be lost at any time; then the next run reads the documents.
        """

    def touch(self, collection: str, document: Document, /) -> None:
        """Record a new date or new labels for a document whose content is unchanged."""

    def delete(self, collection: str, path: str, /) -> Sequence[int]:
        """Remove one document and its chunks; return their keys (none if it is not indexed)."""

    def set_space(self, collection: str, record: SpaceRecord, /) -> None:
        """Record the vector space of the collection."""


class RepairableStore(ABC):
    """A store that can replace its own data if it is damaged: declared by inheriting this class. Optional.

    DatabaseCorruptError says that the data is damaged.
    """

    @abstractmethod
    def is_damaged(self) -> bool:
        """Return whether the data is damaged in a way that may end a reindex with any error. Reads all of it."""

    @property
    @abstractmethod
    def replaced(self) -> Sequence[str]:
        """Return what :meth:`replace_damaged` has returned when the store was built; empty if it was not called."""

    @abstractmethod
    def replace_damaged(self) -> Sequence[str]:
        """Set the damaged data aside, and begin again with empty tables; return what to tell the user.

        What only this store has, and can still be read, is kept: cached vectors. If this
        raises, the data is unchanged. Raise StoreLockedError if another process uses it, StoreError.
        """


class Store(Protocol[R]):
    """Owns the file, the canonical rows, the migrations and every transaction."""

    @property
    def offers(self) -> type[R]:
        """Return the type of resource that indexes join."""

    @property
    def isolates(self) -> bool:
        """Return whether a store built for one agent (``ComponentContext.agent``) never shows another agent's rows."""

    @property
    def location(self) -> str:
        """Return the location of the data, for users: the path of a file, or ``memory``."""

    @property
    def erases_later(self) -> str:
        """Return when the bytes of forgotten data are erased, for users; empty if they are when ``forget`` returns."""

    def enlist(self, owner: str, index: Index[R], /) -> None:
        """Register an index: prepare every connection for it, and apply its migrations under ``owner``."""

    def lock(self, name: str, /, on_wait: Callable[[], None] = ...) -> AbstractContextManager[None]:
        """Hold the lock of this name, exclusively among all users of the same data.

        Excludes other threads and other processes. If the lock is held, call ``on_wait`` once, then wait. The lock ends
        with the process. Names consist of ``a-z``, digits and hyphens. The holder must not request the lock again.
        """

    def read(self) -> AbstractContextManager[Snapshot[R]]:
        """Open a snapshot; any thread may use it, but only one."""

    def write(self) -> AbstractContextManager[Transaction[R]]:
        """Begin a transaction; commit at the end of the block, roll back if it raises.

        A store may let writers work side by side, as long as the result is the same as if one had followed the other.
        Raise RetryableStoreError if another writer or a lost connection ended it: nothing was changed, and the same
        block can succeed if it is run again.
        """

    def erasing_once(self) -> AbstractContextManager[None]:
        """Erase at the end of the block what this thread forgets in it by several transactions."""

    def rebuild(self) -> AbstractContextManager[Store[R]]:
        """Yield a second store, with the same indexes, that replaces this one at the end of the block.

        It can read this store's cached vectors. Afterwards the cache contains, for the spaces of its collections, the
        vectors of its chunks; the vectors of spaces that only this store's collections used are removed; those of other
        spaces, which an interrupted reindex has computed, are kept. Tables of extensions are copied from this store at
        the start. Readers use this store until the new one is complete. If the block raises, or the process dies, this
        store is unchanged.
        """

    def tidy(self) -> None:
        """Remove what an interrupted rebuild has left, because it may contain what was forgotten since.

        Its vectors of documents that are indexed are kept. Every index run ends with it. Raise StoreError.
        """

    def statistics(self) -> Mapping[str, int | str]:
        """Return what ``klaw status`` shows of it, by name: sizes in bytes, versions."""

    def check(self, *, fix: bool = False) -> Sequence[Finding]:
        """Return the problems of the store itself: its files, rows and locks, but not its indexes.

        With ``fix``, first fix what can be fixed without loss, then check. Damaged files never raise after the store is
        open.
        """

    def close(self) -> None:
        """Release everything; closing twice is allowed."""
