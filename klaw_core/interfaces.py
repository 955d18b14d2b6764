"""The Protocols a plugin implements. Hooks register; Protocols run.

Nothing here is inherited from: a class that has the methods is enough, and the conformance kit
(:mod:`klaw_core.testing`) says whether it has them right. ``R`` is the *resource* that a store and the
indexes inside it share, ``apsw.Connection`` for instance; the core only compares the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from klaw_core.candidates import Candidate, Scored
    from klaw_core.documents import Document, DocumentRecord, Entry, Replacement, Skipped
    from klaw_core.findings import Finding
    from klaw_core.mirror import MirroredFile, Session, StoredMessage, Summary
    from klaw_core.tally import Tally
    from klaw_core.values import (
        Chunk,
        Filters,
        Hit,
        Keys,
        Matrix,
        Migration,
        Query,
        Ranking,
        SpaceRecord,
        Span,
        StoredChunk,
        TokenCounter,
        Vector,
        VectorSpace,
    )

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Embedder(Protocol):
    """Turns texts into vectors of unit length.

    ``max_tokens`` is the model's window without special tokens: a longer text is embedded in windows and
    pooled, never cut in silence. Constructing an embedder is cheap; the model loads at the first call.

    Two attributes are optional. ``texts_per_call`` (64): how many texts one call of ``embed_documents`` holds at most;
    to a local model 80,000 characters as well. ``remote`` (False): it asks a server. What a server answers is kept
    before the next call is made, because it may have been paid for; what a local model answers, once a second. And a
    question that waits a minute for a server has waited too long; a model may be loading.

    EmbedderUnavailableError, ModelNotFoundError and ModelCorruptError mean that the next call would fail as well: a
    run then stops asking, and a fallback takes over. Any other EmbeddingError is this call's alone.
    """

    @property
    def space(self) -> VectorSpace:
        """Return what these vectors may be compared with."""

    @property
    def max_tokens(self) -> int:
        """Return how many tokens the model reads at once, without special tokens."""

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return float32 of shape (n, d), row i for text i, each of unit length. Raise EmbeddingError."""

    def embed_query(self, text: str, /) -> Vector:
        """Return float32 of shape (d,), unit length. Raise EmbeddingError."""

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return each text's number of tokens, without special tokens.

        Counts are subadditive: those of the parts of a text, cut at line ends, at white space or after
        punctuation, sum to at least its own. A chunker counts parts and trusts that the whole is no larger.
        """


class Chunker(Protocol):
    """Cuts a text into spans of it, never into new text."""

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterable[Span]:
        """Yield spans in order; together they cover every character that is not white space."""


class Retriever(Protocol[R]):
    """Answers a query with keys. Joins whatever store offers a resource of type ``joins``."""

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
class Index(Retriever[R], Protocol[R]):
    """A retriever that keeps rows of its own, derived from the chunks, in the store's transactions.

    What the resource's library raises may pass: the store whose snapshot or transaction it is says what it means.
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
class TalliedIndex(Index[R], Protocol[R]):
    """An index that can sum its keys faster than list them. Optional: without it they are listed at every run."""

    def tally(self, resource: R, collection: str, /) -> Tally | None:
        """Return the tally of what :meth:`keys` would return, read from the rows; None if it is to be asked instead."""


@runtime_checkable
class LaggingIndex(Index[R], Protocol[R]):
    """An index that may hold rows in another form than the configured one. Optional: without it none does."""

    def lagging(self, resource: R, collection: str, /) -> Keys:
        """Return, ascending, those of its keys that are found and are to be added again; :meth:`tally` is None then."""


@runtime_checkable
class CheckedIndex(Index[R], Protocol[R]):
    """An index that can look whether its rows are sound. Optional: without it only the keys are compared."""

    def check(self, resource: R, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return what is wrong with the collection's rows, each in one line; nothing for an index never filled.

        ``space`` is the one that the collection is recorded to have. Nothing is written. What the rows may
        have become does not raise.
        """


@runtime_checkable
class ErasingIndex(Index[R], Protocol[R]):
    """An index in which what was removed stays readable until it is asked to erase it.

    Optional: without it ``remove`` leaves nothing of a row that the store does not overwrite by itself.
    """

    def erase(self, resource: R, collection: str, /) -> None:
        """Make sure that nothing of removed rows is left in the collection's pages, inside the transaction.

        What is still there is found as before.
        """


class Fusion(Protocol):
    """Makes one ranking of several."""

    def depth(self, limit: int, /) -> int:
        """Return how many hits each leg should fetch so that ``limit`` can be chosen from them."""

    def fuse(self, rankings: Sequence[Ranking], limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, ties by key, each with contributions that add up."""


class Reranker(Protocol):
    """Reorders what was found: by reading it, or by what it is. One stage of ``[[memory.reranking]]``.

    Constructing one is cheap; a model loads at the first call. What a stage raises, or answers wrongly, leaves the
    order as it was.
    """

    @property
    def needs_vectors(self) -> bool:
        """Return whether the candidates should carry their vectors; ``query.vector`` is there if a leg needed one."""

    def rerank(self, query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[Scored] | None:
        """Return new scores for at most ``limit`` of the candidates, best first, keys distinct; at least one.

        The scores may be on any scale. Candidates that are not scored stand behind those that are, in the order they
        had. Return None to leave everything as it is.
        """


class Source(Protocol):
    """A place documents come from: a directory, a mailbox, an export."""

    @property
    def origin(self) -> str:
        """Return the name that owns this source's documents; what is no longer scanned is removed."""

    def scan(self) -> Iterable[Entry | Skipped]:
        """Yield what is there now, without reading it. Raise WorkspaceError if the place itself is gone."""

    def read(self, entry: Entry, /) -> Document | Skipped:
        """Read one entry. What cannot be read is Skipped with the reason.

        With ``keep=True`` what was indexed of it stays (a server that does not answer), with ``keep=False`` it goes
        (a file that is empty now).
        """


class MessageReader(Protocol):
    """The rows of conversations in one snapshot. ``chat_id`` is a chat's name, as in ``telegram_123456``.

    Messages come in the order of their places, oldest first, unless a method says otherwise.
    """

    def window(self, chat_id: str, limit: int, /) -> Sequence[StoredMessage]:
        """Return the last ``limit`` messages of the current segment: after the last session break, without it."""

    def recent(self, chat_id: str, limit: int, /) -> Sequence[StoredMessage]:
        """Return the last ``limit`` messages, session breaks among them."""

    def all(self, chat_id: str, /) -> Sequence[StoredMessage]:
        """Return every message of a chat."""

    def count(self, chat_id: str | None = None, /) -> int:
        """Return how many messages a chat has, or all chats together."""

    def search(self, text: str, limit: int, chat_id: str | None = None, /) -> Sequence[StoredMessage]:
        """Return messages that hold any word of ``text``, best first. Every text is a valid query."""

    def chats(self) -> Sequence[str]:
        """Return every chat of which anything is mirrored, in order of name."""

    def session(self, chat_id: str, /) -> Session | None:
        """Return where a chat stands, or None if it has no messages."""

    def summaries(self, chat_id: str, /) -> Sequence[Summary]:
        """Return a chat's summaries, oldest first."""

    def files(self, chat_id: str, /) -> Mapping[date, MirroredFile]:
        """Return how far each file of a chat is mirrored, by day."""


class MessageWriter(MessageReader, Protocol):
    """The rows of conversations in one transaction. A chat's session is derived again at each insert."""

    def insert(self, messages: Sequence[StoredMessage], /) -> int:
        """Add messages and return how many are new. Of two with one id in a chat, the one at the earlier place stays.

        Raise StoreError for a role or type that there is not.
        """

    def put_file(self, file: MirroredFile, /) -> None:
        """Record how far a file is mirrored."""

    def put_summaries(self, chat_id: str, summaries: Sequence[Summary], /) -> None:
        """Make these the chat's summaries."""

    def purge(self, chat_id: str, /) -> int:
        """Remove everything of a chat, its summaries included; return how many messages that were."""


class Snapshot(Protocol[R_co]):
    """One consistent view of the store; short-lived, because an open one keeps the write-ahead log growing."""

    @property
    def resource(self) -> R_co:
        """Return what the indexes read through."""

    @property
    def messages(self) -> MessageReader:
        """Return the rows of conversations."""

    def manifest(self, collection: str, origin: str, /) -> Mapping[str, DocumentRecord]:
        """Return the indexed documents of one origin, by path."""

    def record(self, collection: str, origin: str, path: str, /) -> DocumentRecord | None:
        """Return what :meth:`manifest` has of one path, None if it has nothing."""

    def select(self, collection: str, filters: Filters, /) -> Keys:
        """Return the keys of the chunks that pass the filters, ascending."""

    def chunks(self, collection: str, keys: Sequence[int], /) -> Sequence[StoredChunk]:
        """Return the chunks of these keys in the order given; unknown keys are left out."""

    def chunk_ids(self, collection: str, keys: Sequence[int], /) -> Mapping[int, str]:
        """Return the id of the chunk of each key; unknown keys are left out."""

    def outline(self, collection: str, path: str, /) -> Sequence[StoredChunk]:
        """Return one document's chunks in order of position; empty if it is not indexed."""

    def find(self, collection: str, chunk_id: str, /) -> Sequence[StoredChunk]:
        """Return the chunks whose id begins with ``chunk_id``."""

    def keys(self, collection: str, /) -> Keys:
        """Return every chunk's key, ascending."""

    def tally(self, collection: str, /) -> Tally:
        """Return the tally of :meth:`keys`."""

    def space(self, collection: str, /) -> SpaceRecord | None:
        """Return the vector space the collection was indexed in, or None if there is none yet."""

    def cached_vectors(self, space: VectorSpace, hashes: Sequence[str], /) -> Mapping[str, Vector]:
        """Return the cached vectors among these passage hashes, of unit length, to half precision at least."""

    def counts(self, collection: str, /) -> Mapping[str, tuple[int, int]]:
        """Return (documents, chunks) by origin."""


class Transaction(Snapshot[R_co], Protocol[R_co]):
    """A unit of work: everything in it is kept, or nothing."""

    @property
    def messages(self) -> MessageWriter:
        """Return the rows of conversations, to be changed."""

    def replace(self, collection: str, document: Document, chunks: Sequence[Chunk], /) -> Replacement:
        """Make these the document's chunks; a chunk whose id stays keeps its key, the others go or come."""

    def touch(self, collection: str, document: Document, /) -> None:
        """Record that an unchanged document's date or labels are now these."""

    def delete(self, collection: str, path: str, /) -> Sequence[int]:
        """Remove one document and its chunks; return their keys (none if it is not indexed)."""

    def set_space(self, collection: str, record: SpaceRecord, /) -> None:
        """Record the vector space of the collection."""

    def retire_space(self, space: VectorSpace, /) -> None:
        """Give a vector space, its collections and its cached vectors another revision: ``replaced-`` and the old one.

        For a model that changed under its name: what it made before belongs to no embedder's space any more.
        """

    def cache_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector], /) -> None:
        """Put vectors in the embedding cache, by passage hash."""

    def use_vectors(self, space: VectorSpace, hashes: Sequence[str], /) -> None:
        """Note that these cached vectors were of use now; of the others the least recently used leave first."""

    def tend_cache(self, max_entries: int, /, *, found: int = 0, computed: int = 0) -> int:
        """Leave at most ``max_entries`` vectors of the collections' spaces, the last used; return how many went.

        A space that no collection is in is one that is being built: it stays, unless nothing of it was used for 30
        days. ``found`` and ``computed`` are added to the statistics: vectors that were cached, and were not.
        """

    def forget_vectors(self, hashes: Sequence[str], /) -> None:
        """Remove these passage hashes from the embedding cache, in every space."""


class Store(Protocol[R]):
    """Owns the file, the canonical rows, the migrations and every transaction."""

    @property
    def offers(self) -> type[R]:
        """Return the type of resource that indexes join."""

    @property
    def location(self) -> str:
        """Return where the data lives, for people: a file's path, or ``memory``."""

    def enlist(self, owner: str, index: Index[R], /) -> None:
        """Let an index join: prepare every connection for it and apply its migrations under ``owner``."""

    def read(self) -> AbstractContextManager[Snapshot[R]]:
        """Open a snapshot; usable from any thread, one thread a snapshot."""

    def write(self) -> AbstractContextManager[Transaction[R]]:
        """Begin a transaction; commit at the end of the block, roll back if it raises."""

    def rebuild(self) -> AbstractContextManager[Store[R]]:
        """Give a store beside this one, with the same indexes, that takes its place at the end of the block.

        It knows this one's cached vectors. Of the space that it comes to, those of a text that one of its chunks has
        stay; those of a space that it leaves go; any other space, which an interrupted move was building, stays.
        Snapshots go on being taken of the old content until the new one
        is complete; if the block raises, or the process dies, nothing has changed here.
        """

    def statistics(self) -> Mapping[str, int | str]:
        """Return facts for ``klaw status``: sizes in bytes, versions."""

    def check(self, *, fix: bool = False) -> Sequence[Finding]:
        """Return what is wrong with the store itself: its files, its rows, its locks; not with the indexes.

        With ``fix`` mend first what can be mended without loss, then look. What the files may have become does
        not raise, once the store is open.
        """

    def close(self) -> None:
        """Release everything; closing twice is allowed."""
