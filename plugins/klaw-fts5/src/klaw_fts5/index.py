"""The full-text index: one contentless FTS5 table for each collection, in the store's own database.

FTS5 holds the words. Next to it there are packed postings (:mod:`klaw_fts5.packed`), which answer most questions
of a large collection in a fraction of the time. They are a cache: where they are missing or damaged, FTS5 answers.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

import apsw
from attrs import frozen

from klaw_core import Hit, Keys, Matrix, Migration, Query, RetrievalError, StoredChunk, VectorSpace
from klaw_core.words.query import MAX_CHARACTERS, MAX_TERMS, Term, compile_query
from klaw_core.words.treatment import index_text
from klaw_fts5.coverage import cover
from klaw_fts5.erasing import erase_words
from klaw_fts5.errors import as_retrieval_error
from klaw_fts5.exact import ExactSearch, Preference, Searcher, Weights
from klaw_fts5.knowledge import KnowledgeCache, WordKnowledge
from klaw_fts5.packed.errors import DAMAGE
from klaw_fts5.packed.state import PackedState, read_state, write_state
from klaw_fts5.plan import make_plan, narrow
from klaw_fts5.sql import CREATE_STATE, DELETE_STATES, STANDARD, Statements, is_standard, statements

if TYPE_CHECKING:
    from klaw_core import KeyDigest
    from klaw_fts5.packed.cache import Cache
    from klaw_fts5.packed.index import PackedIndex
    from klaw_fts5.packed.search import PackedSearch

# Fewer rows than these are packed only where the packed form answers. More are packed in any case: they may be the
# beginning of a large collection.
_BULK = 256
# How many of the best by single words are looked at for pairs: the order is the same for every smaller limit.
_CANDIDATES = 100
_MAX_LIMIT = 2**31 - 1


@frozen(eq=False, repr=False)
class Fts5Index:
    """Finds chunks by their words, best BM25 first. Whatever it keeps in memory can be lost at any time.

    What SQLite raises passes, except from ``search``: the store whose connection it is says what that means.

    A hit's score is SQLite's ``bm25()`` with its sign turned, so that higher is better, and ``pair_weight`` times
    that of the question's neighbouring words found side by side. Only scores of one query compare.

    ``search`` says who answers: FTS5 itself (``"exact"``), packed postings (``"packed"``), or FTS5 up to
    ``exact_up_to`` chunks and packed postings beyond (``"auto"``). What comes one by one while FTS5 answers is packed
    by the first index run after the collection has outgrown that.
    """

    heading_weight: float = 3.0
    text_weight: float = 1.0
    context_weight: float = 0.5
    pair_weight: float = 0.25
    search_by: Literal["auto", "exact", "packed"] = "auto"
    exact_up_to: int = 5_000

    @cached_property
    def _packed_index(self) -> PackedIndex:
        """What writes the packed form. It takes numpy: only once it is needed."""
        from klaw_fts5.packed.index import PackedIndex

        return PackedIndex(self._cache)

    @cached_property
    def _cache(self) -> Cache:
        """What is kept in memory of the packed form, which is all of it that a search needs."""
        from klaw_fts5.packed.cache import Cache

        return Cache()

    @cached_property
    def _knowledge(self) -> KnowledgeCache:
        """What is kept between questions."""
        return KnowledgeCache()

    @property
    def joins(self) -> type[apsw.Connection]:
        """Return the type of resource this index joins."""
        return apsw.Connection

    @property
    def needs_vectors(self) -> bool:
        """Return False: words are enough."""
        return False

    def migrations(self) -> Sequence[Migration[apsw.Connection]]:
        """Return the steps that make the tables."""
        return (
            Migration("create-tables", _create_tables),
            Migration("context", _add_context),
            Migration("packed", _add_packed),
            Migration("pairs", _add_pairs),
        )

    def prepare(self, resource: apsw.Connection, /) -> None:
        """Check that this SQLite can hold the index. Raise RetrievalError if it cannot."""
        del resource  # the options are those of the library
        for option in ("ENABLE_FTS5", "ENABLE_CARRAY"):
            if option not in apsw.compile_options:
                raise RetrievalError(
                    f"full-text search needs an SQLite built with SQLITE_{option}, and this one "
                    f"({apsw.sqlite_lib_version()}) is not",
                    hint="pip install --force-reinstall apsw",
                )

    def reset(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> None:
        """Remove every row of the collection."""
        del space
        if _make(resource, collection):
            return
        resource.execute(statements(collection).reset)
        self._packed_index.reset(resource, collection)

    def add(
        self, resource: apsw.Connection, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /
    ) -> None:
        """Add the words of these chunks, under keys that are not there yet."""
        del vectors
        if not chunks:
            return
        _make(resource, collection)
        sql = statements(collection)
        rows = [(stored.key, _columns(stored)) for stored in chunks]
        resource.executemany(sql.insert, ((key, *columns) for key, columns in rows))
        if self.search_by == "exact":
            self._packed_index.reset(resource, collection)
            return
        state = read_state(resource, collection)
        held = int(resource.execute(sql.count).get) if state is None else state.rows + state.lacking + len(rows)
        if len(rows) >= _BULK or not self._is_small(held):
            self._packed_index.add(resource, collection, rows)
            return
        if state is None:
            resource.execute(sql.packed.empty)
        packed = 0 if state is None else state.rows
        write_state(resource, collection, packed, held - packed)

    def remove(self, resource: apsw.Connection, collection: str, keys: Sequence[int], /) -> None:
        """Remove the rows of these keys; unknown keys are ignored."""
        if not len(keys) or not _exists(resource, collection):
            return
        sql = statements(collection)
        # FTS5 takes five times as long to find that a row is not there.
        known = resource.execute(sql.known, (apsw.carray(array("q", keys)),)).fetchall()
        state = self._state(resource, collection)
        if state is not None and not state.rows:  # nothing is packed
            write_state(resource, collection, 0, max(state.lacking - len(known), 0))
        else:
            self._packed_index.remove(resource, collection, keys)
        resource.executemany(sql.delete, known)

    def erase(self, resource: apsw.Connection, collection: str, /) -> None:
        """Let the words of removed rows leave the pages.

        Without the text a removal can only mark the row: FTS5's ``secure-delete`` does not know which words to
        take out. They go when the segments that hold them are merged.
        """
        if not _exists(resource, collection):
            return
        erase_words(resource, statements(collection))
        state = self._state(resource, collection)
        if state is None or state.rows:  # else nothing is packed
            self._packed_index.erase(resource, collection)

    def is_scattered(self, resource: apsw.Connection, collection: str, /) -> bool:
        """Return whether the packed form, where it answers, is in so many blocks that to write fewer pays.

        The file must have the room: nobody wants a larger one for it.
        """
        if not _exists(resource, collection):
            return False
        state = self._state(resource, collection)
        if state is None or self._is_small(state.rows + state.lacking):
            return False
        return self._packed_index.is_scattered(resource, collection)

    def compact(self, resource: apsw.Connection, collection: str, /) -> None:
        """Write the packed form in as few blocks as pay."""
        if _exists(resource, collection):
            self._packed_index.compact(resource, collection)

    def keys(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return every key in the index, ascending: those of FTS5."""
        import numpy as np

        rows = resource.execute(statements(collection).keys) if _exists(resource, collection) else ()
        return np.fromiter((key for (key,) in rows), dtype=np.int64)

    def outdated(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return those of its keys that the packed form lacks and should have, ascending."""
        import numpy as np

        keys = self.keys(resource, collection)
        if self._is_small(len(keys)):
            return keys[:0]
        return np.setdiff1d(keys, self._packed_index.keys(resource, collection), assume_unique=True)

    def key_digest(self, resource: apsw.Connection, collection: str, /) -> KeyDigest | None:
        """Return the digest of :meth:`keys`; None where the packed form should have the same and differs."""
        from klaw_core import KeyDigest

        if not _exists(resource, collection):
            return KeyDigest()
        held = KeyDigest(*resource.execute(statements(collection).key_digest, (KeyDigest.MODULUS,)).get)
        if self._is_small(held.count):
            return held
        return held if held == self._packed_index.key_digest(resource, collection) else None

    def check(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return what is wrong with the table, which FTS5 compares with its checksums, and with the packed form."""
        del space
        import numpy as np

        from klaw_fts5.packed.checking import check_packed

        sql = statements(collection)
        try:
            if not _exists(resource, collection):
                return ()
            # Unlike FTS5's own command this needs no write lock (https://sqlite.org/c3ref/module.html, xIntegrity).
            found = [str(row[0]) for row in resource.execute(sql.check)]
            keys = np.fromiter((key for (key,) in resource.execute(sql.keys)), dtype=np.int64)
            found += check_packed(resource, collection, sql, keys)
        except apsw.Error as error:
            return (str(error),)
        return [problem for problem in found if problem != "ok"]

    def search(self, resource: apsw.Connection, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, ties by key; none for a text without words.

        Raise RetrievalError if SQLite fails, is interrupted, or finds the table damaged.
        """
        sql = statements(query.collection)
        if limit < 1 or (query.within is not None and query.within.is_empty):
            return ()
        with as_retrieval_error(query.collection):
            if not _exists(resource, query.collection):
                return ()
            state = self._state(resource, query.collection)
            known = self._knowledge.of(query.collection, state)
            try:
                packed = self._packed(resource, sql, state, known)
                found = None if packed is None else self._found(packed, query, limit)
            except DAMAGE:
                found = None
            if found is None:
                rows = int(resource.execute(sql.count).get)
                found = self._found(ExactSearch(resource, sql, self._weights, rows, known), query, limit)
        scores, covered = found
        return tuple([Hit(key, score, (), covered.get(key)) for key, score in scores.items()])

    def notices(self, resource: apsw.Connection, query: Query, /) -> Sequence[str]:
        """Say so if the question has more different words than are searched for."""
        del resource
        if len(query.text) <= MAX_TERMS or len(terms := _compiled(query.text)) <= MAX_TERMS:
            return ()
        return (f"the question has {len(terms):,} different words; searched for the {MAX_TERMS} most informative ones",)

    def suggest(
        self, resource: apsw.Connection, query: Query, read: Callable[[Sequence[int]], Sequence[str]], /
    ) -> str | None:
        """Return the question with words that no chunk holds replaced by those that are one slip away."""
        from klaw_fts5.suggesting import Suggester

        with as_retrieval_error(query.collection):
            if not _exists(resource, query.collection):
                return None
            state = self._state(resource, query.collection)
            sql, known = statements(query.collection), self._knowledge.of(query.collection, state)
            searcher = ExactSearch(resource, sql, self._weights, 0, known)
            try:
                packed = self._packed(resource, sql, state, known)
            except DAMAGE:
                packed = None

            def has(term: Term) -> bool:
                if packed is not None:
                    with suppress(*DAMAGE):
                        return packed.has(term)
                return searcher.has(term)

            rows = 0 if state is None else state.rows + state.lacking
            return Suggester(resource, searcher, read, has, rows).suggest(query.text[:MAX_CHARACTERS])

    def _is_small(self, rows: int) -> bool:
        """Whether FTS5 answers where a collection has so many rows, so that it needs no packed form."""
        return self.search_by == "exact" or (self.search_by == "auto" and rows <= self.exact_up_to)

    @property
    def _weights(self) -> Weights:
        return Weights(self.heading_weight, self.text_weight, self.context_weight)

    def _state(self, resource: apsw.Connection, collection: str) -> PackedState | None:
        """Return the state of the packed form; None where it is not kept in step."""
        return None if self.search_by == "exact" else read_state(resource, collection)

    def _packed(
        self,
        resource: apsw.Connection,
        sql: Statements,
        state: PackedState | None,
        known: WordKnowledge | None = None,
    ) -> PackedSearch | None:
        """Return who answers from packed postings; None where FTS5 should. Raise DamagedError."""
        weights = self._weights
        # A word that counts nothing is still a find, and has no score to be known by.
        if not all((weights.heading, weights.text, weights.context)):
            return None
        if state is None or not state.rows or state.lacking:
            return None
        if self.search_by == "auto" and state.rows <= self.exact_up_to:
            return None
        from klaw_fts5.packed.search import PackedSearch

        cache = self._cache
        view = cache.view(resource, sql.packed, state)
        return PackedSearch(resource, sql, weights, cache, state, view, known or WordKnowledge())

    def _found(self, searcher: Searcher, query: Query, limit: int) -> tuple[dict[int, float], dict[int, float]]:
        """Return the scores of the best chunks, best first, and how much of what is asked each holds."""
        terms = narrow(_compiled(query.text), searcher)
        searcher.expect(terms)
        plan = make_plan(terms, searcher)
        depth = min(max(limit, _CANDIDATES), _MAX_LIMIT)
        preferred = Preference(plan.pairs, self.pair_weight)
        within = None if query.within is None else query.within.keys()
        answers = (searcher.best(step, depth, within, preferred) for step in plan.steps)
        by_key = sorted(next(filter(None, answers), {}).items())
        scores = dict(sorted(by_key, key=itemgetter(1), reverse=True)[:limit])  # equal ones stay in order
        return scores, cover(plan, searcher, scores)


_compiled = lru_cache(maxsize=16)(compile_query)  # a search asks for its notices as well, and several collections


def _columns(stored: StoredChunk) -> tuple[str, str, str]:
    """Return what goes into the columns, treated: text, heading, context.

    The document's title counts as a heading; a word of it that a heading repeats counts once.
    """
    chunk = stored.chunk
    heading = index_text(" ".join(chunk.heading))
    if chunk.title:
        known = set(heading.casefold().split())
        own = (word for word in index_text(chunk.title).split() if word.casefold() not in known)
        heading = " ".join((*own, heading))
    return index_text(chunk.text), heading, index_text(chunk.context)


def _exists(connection: apsw.Connection, collection: str) -> bool:
    """Return whether the collection has its tables, without which nothing was ever added."""
    if is_standard(collection):
        return True
    connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()  # here SQLite sees if others changed tables
    return connection.table_exists("main", statements(collection).table)


def _make(connection: apsw.Connection, collection: str) -> bool:
    """Make the collection's tables if it has none; return whether it had none."""
    missing = not _exists(connection, collection)
    if missing:
        connection.execute(statements(collection).make)
    return missing


def _create_tables(resource: apsw.Connection) -> None:
    for sql in map(statements, STANDARD):
        resource.execute(sql.create)


def _add_context(resource: apsw.Connection) -> None:
    """Make the tables again, empty: FTS5 cannot add a column. The next index run fills them from the chunks."""
    for sql in map(statements, STANDARD):
        resource.execute(sql.widen)


def _add_packed(resource: apsw.Connection) -> None:
    """Make the tables of the packed form, and FTS5's again, empty, with the text as the first column."""
    resource.execute(CREATE_STATE)
    for sql in map(statements, STANDARD):
        resource.execute(sql.rearrange)
        resource.execute(sql.merge_later)
        resource.execute(sql.packed.create)


def _add_pairs(resource: apsw.Connection) -> None:
    """Empty the packed form, which is to hold pairs of words. The next index run fills it from the chunks."""
    resource.execute(DELETE_STATES)
    for sql in map(statements, STANDARD):
        resource.execute(sql.packed.make_room_for_pairs)
