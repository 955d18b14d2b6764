"""The full-text index ``pgwords``: it finds the same chunks as ``fts5``, in the same order, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from attrs import field, frozen

from klaw_core import Hit, Index, KeyDigest, Keys, Matrix, Migration, Query, StoredChunk, VectorSpace
from klaw_fts5.coverage import cover
from klaw_fts5.exact import Preference
from klaw_fts5.plan import make_plan, narrow
from klaw_fts5.words.query import MAX_CHARACTERS, MAX_TERMS, compile_query
from klaw_fts5.words.treatment import index_text
from klaw_store_postgres.errors import retrieval_errors
from klaw_store_postgres.filtering import SqlSelection, as_keys
from klaw_store_postgres.options import PgWordsOptions
from klaw_store_postgres.session import Session
from klaw_store_postgres.words import segments
from klaw_store_postgres.words.search import ColumnWeights, PostingsSearch, Within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from klaw_core import ChunkSelection

# The number of best chunks by single words in which pairs of words are counted, as in fts5.
_CANDIDATES = 100
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
        segments.add(resource, collection, [(stored.key, _columns(stored)) for stored in chunks])

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

    def key_digest(self, resource: Session, collection: str, /) -> KeyDigest:
        """Return the digest of :meth:`keys`."""
        from klaw_store_postgres.snapshot import read_key_digest

        return read_key_digest(resource, "word_rows", collection)

    def check(self, resource: Session, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return a problem if the segments and the list of rows differ."""
        del space
        held = sum(head.rows - len(head.dead) for head in segments.heads(resource, collection))
        rows = resource.value(f"SELECT COUNT(*) FROM word_rows WHERE {_IN}", (*resource.scope, collection))
        return () if held == rows else (f"{rows:,} chunks are listed, and the segments hold {held:,}",)

    @retrieval_errors()
    def search(self, resource: Session, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, ties by key. A text without words has no hits."""
        if limit < 1 or (query.within is not None and query.within.is_empty):
            return ()
        searcher = self._searcher(resource, query)
        if not searcher.rows:
            return ()
        terms = narrow(compile_query(query.text), searcher)
        searcher.expect(terms)
        plan = make_plan(terms, searcher)
        within = None if query.within is None else _limits(query.within, searcher.rows)
        preferred = Preference(plan.pairs, self.options.pair_weight)
        depth = max(limit, _CANDIDATES)
        answers = (searcher.best(step, depth, within, preferred) for step in plan.steps)
        by_key = sorted(next(filter(None, answers), {}).items())
        scores = dict(
            sorted(by_key, key=itemgetter(1), reverse=True)[:limit]
        )  # the sort is stable: ties stay in order of key
        covered = cover(plan, searcher, scores)
        return tuple(Hit(key, score, relevance=covered.get(key)) for key, score in scores.items())

    def suggest(self, resource: Session, query: Query, read: Callable[[Sequence[int]], Sequence[str]], /) -> str | None:
        """Return the question with unknown words replaced by indexed words that differ by one typing error."""
        from klaw_store_postgres.words.suggesting import PostgresSuggester

        searcher = self._searcher(resource, query)
        if not searcher.rows:
            return None
        return PostgresSuggester.of(searcher, read).suggest(query.text[:MAX_CHARACTERS])

    def _searcher(self, resource: Session, query: Query) -> PostingsSearch:
        weights = (self.options.text_weight, self.options.heading_weight, self.options.context_weight)
        return PostingsSearch(resource, query.collection, ColumnWeights(weights))

    def notices(self, resource: Session, query: Query, /) -> Sequence[str]:
        """Return a notice if the question has more distinct words than a search uses."""
        del resource
        if len(query.text) <= MAX_TERMS or len(terms := compile_query(query.text)) <= MAX_TERMS:
            return ()
        return (f"the question has {len(terms):,} different words; searched for the {MAX_TERMS} most informative ones",)


def _limits(selection: ChunkSelection, rows: int) -> Within:
    """Return the keys of a selection, or the selection itself if too many of the ``rows`` chunks pass it."""
    if not isinstance(selection, SqlSelection):
        return selection.keys()
    keys = selection.few_keys(max(_MAX_LISTED_KEYS, int(rows * _MAX_LISTED_SHARE)))
    return selection if keys is None else keys


def _columns(stored: StoredChunk) -> tuple[str, str, str]:
    """Return the normalized text, heading and context of a chunk.

    The heading includes the title of the document, without the words that the headings repeat.
    """
    chunk = stored.chunk
    heading = index_text(" ".join(chunk.heading))
    if chunk.title:
        known = set(heading.casefold().split())
        own: Iterable[str] = (word for word in index_text(chunk.title).split() if word.casefold() not in known)
        heading = " ".join((*own, heading))
    return index_text(chunk.text), heading, index_text(chunk.context)
