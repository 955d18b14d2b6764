"""The full-text index ``pgwords``: it finds the same chunks as ``fts5``, in the same order, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from klaw_core import Hit, Index, KeyDigest, Keys, Matrix, Migration, Query, StoredChunk, VectorSpace
from klaw_store_postgres.errors import retrieval_errors
from klaw_store_postgres.filtering import SqlSelection, as_keys
from klaw_store_postgres.options import PgWordsOptions
from klaw_store_postgres.session import Session
from klaw_store_postgres.words import segments
from klaw_store_postgres.words.search import PostingsSearch, Within
from klaw_words.query import MAX_CHARACTERS
from klaw_words.searching import Weights, absent_identifiers, columns, notices, search

if TYPE_CHECKING:
    from klaw_core import ChunkSelection

# The keys that pass a filter are listed only up to this number, or up to this share of all chunks.
_MAX_LISTED_KEYS, _MAX_LISTED_SHARE = 20_000, 1 / 32
_IN = "tenant = %s AND generation = %s AND collection = %s"


@frozen(eq=False, repr=False)
class WordIndex(Index[Session]):
    """Finds chunks by their words, in the order of BM25. The store owns the tables, and uses them for messages too."""

    options: PgWordsOptions = field(factory=PgWordsOptions)

    @property
    def joins(self) -> type[Session]:
        """Return the type of resource this index joins."""
        return Session

    @property
    def needs_vectors(self) -> bool:
        """Return False: this index uses no vectors."""
        return False

    def migrations(self) -> Sequence[Migration[Session]]:
        """Return no migrations: the store creates the tables."""
        return ()

    def prepare(self, resource: Session, /) -> None:
        """Do nothing: a connection needs no preparation."""

    def reset(self, resource: Session, collection: str, space: VectorSpace | None, /) -> None:
        """Remove every row of the collection."""
        del space
        segments.clear(resource, collection)

    def add(self, resource: Session, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /) -> None:
        """Add the words of these chunks; their keys must be new."""
        del vectors
        segments.add(resource, collection, [(stored.key, columns(stored)) for stored in chunks])

    def remove(self, resource: Session, collection: str, keys: Sequence[int], /) -> None:
        """Remove the rows of these keys; unknown keys are ignored."""
        if len(keys):
            segments.remove(resource, collection, keys)

    def erase(self, resource: Session, collection: str, /) -> None:
        """Rewrite the segments that still contain words of removed rows."""
        segments.erase(resource, collection)

    def keys(self, resource: Session, collection: str, /) -> Keys:
        """Return every key in the index, ascending."""
        rows = resource.rows(f"SELECT key FROM word_rows WHERE {_IN} ORDER BY key", (*resource.scope, collection))
        return as_keys(key for (key,) in rows)

    def outdated(self, resource: Session, collection: str, /) -> Keys:
        """Return the keys of rows with words of an earlier form, ascending."""
        sql = f"SELECT key FROM word_rows WHERE {_IN} AND is_outdated ORDER BY key"
        return as_keys(key for (key,) in resource.rows(sql, (*resource.scope, collection)))

    def key_digest(self, resource: Session, collection: str, /) -> KeyDigest | None:
        """Return the digest of :meth:`keys`, or None if some are outdated."""
        from klaw_store_postgres.snapshot import read_key_digest

        sql = f"SELECT EXISTS (SELECT 1 FROM word_rows WHERE {_IN} AND is_outdated)"
        if resource.value(sql, (*resource.scope, collection)):
            return None
        return read_key_digest(resource, "word_rows", collection)

    def check(self, resource: Session, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return a problem if the segments and the list of rows differ."""
        del space
        held = sum(head.rows - len(head.dead) for head in segments.heads(resource, collection))
        rows = resource.value(f"SELECT COUNT(*) FROM word_rows WHERE {_IN}", (*resource.scope, collection))
        return () if held == rows else (f"{rows:,} chunks are listed, and the segments hold {held:,}",)

    @retrieval_errors
    def search(self, resource: Session, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, ties by key. A text without words has no hits."""
        if limit < 1 or (query.within is not None and query.within.is_empty):
            return ()
        return resource.search(query, lambda session, asked: self._search(session, asked, limit))

    def _search(self, resource: Session, query: Query, limit: int) -> Sequence[Hit]:
        searcher = self._searcher(resource, query)
        if not searcher.rows:
            return ()
        within = None if query.within is None else _limits(query.within, searcher.rows)
        return search(searcher, query.text, limit, within, pair_weight=self.options.pair_weight)

    def suggest(self, resource: Session, query: Query, read: Callable[[Sequence[int]], Sequence[str]], /) -> str | None:
        """Return the question with unknown words replaced by indexed words that differ by one typing error."""
        from klaw_words.suggesting import Suggester

        searcher = self._searcher(resource, query)
        if not searcher.rows:
            return None
        return Suggester(searcher, read).suggest(query.text[:MAX_CHARACTERS])

    @retrieval_errors
    def absent(self, resource: Session, query: Query, /) -> Sequence[str]:
        """Return the identifiers of the question, such as ``ERR_TLS_43``, that no chunk contains."""
        return absent_identifiers(query.text, lambda: self._searcher(resource, query))

    def _searcher(self, resource: Session, query: Query) -> PostingsSearch:
        weights = Weights(self.options.text_weight, self.options.heading_weight, self.options.context_weight)
        return PostingsSearch(resource, query.collection, weights)

    def notices(self, resource: Session, query: Query, /) -> Sequence[str]:
        """Return a notice if the question has more distinct words than a search uses, or the replica was not used."""
        return (*notices(query.text), *resource.take_notices())


def _limits(selection: ChunkSelection, rows: int) -> Within:
    """Return the keys of a selection, or the selection itself if too many of the ``rows`` chunks pass it."""
    if not isinstance(selection, SqlSelection):
        return selection.keys()
    keys = selection.few_keys(max(_MAX_LISTED_KEYS, int(rows * _MAX_LISTED_SHARE)))
    return selection if keys is None else keys
