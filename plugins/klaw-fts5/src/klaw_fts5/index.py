"""The full-text index: a contentless FTS5 table for each collection, in the database of the store.

A large collection also has packed postings (:mod:`klaw_fts5.packed`), which answer most questions in a fraction of the
time. They are only a cache: if they are missing or damaged, FTS5 answers.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import apsw
from attrs import frozen

from klaw_core import Hit, Index, Keys, Matrix, Migration, Query, RetrievalError, StoredChunk, VectorSpace
from klaw_fts5.errors import DAMAGE, as_retrieval_error
from klaw_fts5.exact import ExactSearch
from klaw_fts5.knowledge import KnowledgeCache, WordKnowledge
from klaw_fts5.packed.state import PackedState, read_state, write_state
from klaw_fts5.sql import (
    CREATE_OUTDATED,
    CREATE_STATE,
    DELETE_OUTDATED,
    DELETE_STATES,
    STANDARD,
    Statements,
    is_standard,
    made,
    statements,
)
from klaw_words.query import MAX_CHARACTERS, Term
from klaw_words.searching import Searcher, Weights, absent_identifiers, columns, notices, search

if TYPE_CHECKING:
    from klaw_core import KeyDigest
    from klaw_fts5.packed.cache import Cache
    from klaw_fts5.packed.index import PackedIndex
    from klaw_fts5.packed.search import PackedSearch
    from klaw_fts5.vocabulary import Vocabulary

# If at least this number of rows is added at once, they are packed even in a small collection, which may become large.
_BULK = 256
# Terms that a check looks up. There are some hundred on each page, so each page is looked up.
_MAX_LOOKED_UP = 50_000


@frozen(eq=False, repr=False)
class Fts5Index(Index[apsw.Connection]):
    """Finds chunks by their words, ordered by BM25. All data in memory is only a cache.

    Errors of SQLite are not converted, except by ``search``, because the store that owns the connection explains them.

    A hit's score is the negated result of SQLite's ``bm25()``, so that higher is better, plus ``pair_weight`` times the
    score of the question's adjacent words that are adjacent in the chunk. Only scores of one query are comparable.

    ``search_by`` selects FTS5 (``"exact"``), packed postings (``"packed"``), or FTS5 for up to ``exact_up_to`` chunks
    and packed postings for more (``"auto"``). Rows that were added one by one to a small collection are packed by the
    first index run after it has exceeded that limit.
    """

    heading_weight: float = 3.0
    text_weight: float = 1.0
    context_weight: float = 0.5
    pair_weight: float = 0.25
    search_by: Literal["auto", "exact", "packed"] = "auto"
    exact_up_to: int = 5_000

    @cached_property
    def _packed_index(self) -> PackedIndex:
        """The writer of the packed form, which imports numpy."""
        from klaw_fts5.packed.index import PackedIndex

        return PackedIndex(self._cache)

    @cached_property
    def _cache(self) -> Cache:
        """The cache of the packed form."""
        from klaw_fts5.packed.cache import Cache

        return Cache()

    @cached_property
    def _knowledge(self) -> KnowledgeCache:
        """The cache of terms between questions."""
        return KnowledgeCache()

    @property
    def joins(self) -> type[apsw.Connection]:
        """Return the type of the store's resource that this index uses."""
        return apsw.Connection

    @property
    def needs_vectors(self) -> bool:
        """Return False."""
        return False

    def migrations(self) -> Sequence[Migration[apsw.Connection]]:
        """Return the migrations of the tables."""
        return (
            Migration("create-tables", _create_tables),
            Migration("context", _add_context),
            Migration("packed", _add_packed),
            Migration("pairs", _add_pairs),
            Migration("letters-and-properties", _note_outdated),
            Migration("names-like-function-words", _mark_outdated),
        )

    def prepare(self, resource: apsw.Connection, /) -> None:
        """Check that this SQLite has the required options. Raise RetrievalError if it does not."""
        del resource  # compile options belong to the library, not to the connection
        for option in ("ENABLE_FTS5", "ENABLE_CARRAY"):
            if option not in apsw.compile_options:
                from klaw_core import reinstall_command

                raise RetrievalError(
                    f"full-text search needs an SQLite built with SQLITE_{option}, and this one "
                    f"({apsw.sqlite_lib_version()}) is not",
                    hint=reinstall_command("apsw"),
                )

    def reset(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> None:
        """Remove every row of the collection."""
        del space
        if _make(resource, collection):
            return
        resource.execute(statements(collection).reset)
        resource.execute("DELETE FROM outdated_words WHERE collection = ?", (collection,))
        self._packed_index.reset(resource, collection)

    def add(
        self, resource: apsw.Connection, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /
    ) -> None:
        """Add the words of these chunks, whose keys must be new."""
        del vectors
        if not chunks:
            return
        _make(resource, collection)
        sql = statements(collection)
        rows = [(stored.key, columns(stored)) for stored in chunks]
        resource.executemany(sql.insert, ((key, *cells) for key, cells in rows))
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
        # FTS5 takes five times as long to find that a row does not exist.
        known = resource.execute(sql.known, (apsw.carray(array("q", keys)),)).fetchall()
        state = self._state(resource, collection)
        if state is not None and not state.rows:  # nothing is packed
            write_state(resource, collection, 0, max(state.lacking - len(known), 0))
        else:
            self._packed_index.remove(resource, collection, keys)
        resource.executemany(sql.delete, known)
        resource.executemany(DELETE_OUTDATED, ((collection, key) for (key,) in known))

    def erase(self, resource: apsw.Connection, collection: str, /) -> None:
        """Erase the words of removed rows from the pages.

        A contentless table does not have the text, so FTS5's ``secure-delete`` does not know which words to erase, and
        a removal only marks the row. The words are erased when their segments are merged.
        """
        if not _exists(resource, collection):
            return
        from klaw_fts5.erasing import erase_words  # a search needs none

        erase_words(resource, statements(collection))
        state = self._state(resource, collection)
        if state is None or state.rows:  # otherwise nothing is packed
            self._packed_index.erase(resource, collection)

    def is_scattered(self, resource: apsw.Connection, collection: str, /) -> bool:
        """Return whether packed postings are used and should be merged."""
        if not _exists(resource, collection):
            return False
        state = self._state(resource, collection)
        if state is None or self._is_small(state.rows + state.lacking):
            return False
        return self._packed_index.is_scattered(resource, collection)

    def compact(self, resource: apsw.Connection, collection: str, /) -> None:
        """Merge blocks of packed postings where that makes searches faster."""
        if _exists(resource, collection):
            self._packed_index.compact(resource, collection)

    def keys(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return every key in the FTS5 table, ascending."""
        import numpy as np

        rows = resource.execute(statements(collection).keys) if _exists(resource, collection) else ()
        return np.fromiter((key for (key,) in rows), dtype=np.int64)

    def outdated(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return the keys with words of an earlier form, or missing from packed postings in use, ascending."""
        import numpy as np

        keys = self.keys(resource, collection)
        rows = resource.execute("SELECT key FROM outdated_words WHERE collection = ?", (collection,))
        earlier = np.fromiter((key for (key,) in rows), dtype=np.int64)
        if self._is_small(len(keys)):
            return earlier
        return np.union1d(
            earlier, np.setdiff1d(keys, self._packed_index.keys(resource, collection), assume_unique=True)
        )

    def key_digest(self, resource: apsw.Connection, collection: str, /) -> KeyDigest | None:
        """Return the digest of :meth:`keys`, or None if some are :meth:`outdated`."""
        from klaw_core import KeyDigest

        if not _exists(resource, collection):
            return KeyDigest()
        if resource.execute("SELECT 1 FROM outdated_words WHERE collection = ? LIMIT 1", (collection,)).fetchone():
            return None
        held = KeyDigest(*resource.execute(statements(collection).key_digest, (KeyDigest.MODULUS,)).get)
        if self._is_small(held.count):
            return held
        return held if held == self._packed_index.key_digest(resource, collection) else None

    def check(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return the problems of the table, which FTS5 compares with its checksums, and of the packed postings."""
        del space
        import numpy as np

        from klaw_fts5.packed.checking import check_packed

        sql = statements(collection)
        try:
            if not _exists(resource, collection):
                return ()
            # Unlike FTS5's own command, this needs no write lock (https://sqlite.org/c3ref/module.html, xIntegrity).
            found = [str(row[0]) for row in resource.execute(sql.check)]
            if found == ["ok"]:
                found = _unreachable(resource, sql)
            keys = np.fromiter((key for (key,) in resource.execute(sql.keys)), dtype=np.int64)
            found += check_packed(resource, collection, sql, keys)
        except apsw.Error as error:
            return (str(error),)
        return [problem for problem in found if problem != "ok"]

    def search(self, resource: apsw.Connection, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, ties by key; none for a text without words.

        Raise RetrievalError if SQLite fails, is interrupted, or finds damage in the table.
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
                if packed is not None:
                    return self._found(packed, query, limit)
            except DAMAGE:
                pass
            rows = int(resource.execute(sql.count).get)
            return self._found(ExactSearch(resource, sql, self._weights, rows, known), query, limit)

    def _found(self, searcher: Searcher[Keys | None], query: Query, limit: int) -> tuple[Hit, ...]:
        within = None if query.within is None else query.within.keys()
        return search(searcher, query.text, limit, within, pair_weight=self.pair_weight)

    def notices(self, resource: apsw.Connection, query: Query, /) -> Sequence[str]:
        """Return a notice if the question has more different words than the search uses."""
        del resource
        return notices(query.text)

    def suggest(
        self, resource: apsw.Connection, query: Query, read: Callable[[Sequence[int]], Sequence[str]], /
    ) -> str | None:
        """Return the question with each word that no chunk contains replaced by a similar word that one contains."""
        from klaw_words.suggesting import Suggester

        with as_retrieval_error(query.collection):
            if (words := self._vocabulary(resource, query.collection)) is None:
                return None
            return Suggester(words, read, words.searcher.known.meant).suggest(query.text[:MAX_CHARACTERS])

    def absent(self, resource: apsw.Connection, query: Query, /) -> Sequence[str]:
        """Return the identifiers of the question, such as ``ERR_TLS_43``, that no chunk contains."""
        with as_retrieval_error(query.collection):
            return absent_identifiers(query.text, lambda: self._vocabulary(resource, query.collection))

    def _vocabulary(self, resource: apsw.Connection, collection: str) -> Vocabulary | None:
        """Return the words of a collection, looked up in packed postings where these are used; None if it has none."""
        from klaw_fts5.vocabulary import Vocabulary

        if not _exists(resource, collection):
            return None
        state = self._state(resource, collection)
        sql, known = statements(collection), self._knowledge.of(collection, state)
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

        return Vocabulary(searcher, has, 0 if state is None else state.rows + state.lacking)

    def _is_small(self, rows: int) -> bool:
        """Return whether FTS5 answers for a collection with this number of rows, so that it needs no packed form."""
        return self.search_by == "exact" or (self.search_by == "auto" and rows <= self.exact_up_to)

    @property
    def _weights(self) -> Weights:
        return Weights(self.text_weight, self.heading_weight, self.context_weight)

    def _state(self, resource: apsw.Connection, collection: str) -> PackedState | None:
        """Return the state of the packed form; None if it is not used."""
        return None if self.search_by == "exact" else read_state(resource, collection)

    def _packed(
        self,
        resource: apsw.Connection,
        sql: Statements,
        state: PackedState | None,
        known: WordKnowledge | None = None,
    ) -> PackedSearch | None:
        """Return the searcher of packed postings, or None if FTS5 should answer. Raise DamagedError."""
        weights = self._weights
        # With a weight of 0 a match can have a score of 0, which packed postings do not distinguish from no match.
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


def _exists(connection: apsw.Connection, collection: str) -> bool:
    """Return whether the collection has tables; without them it is empty."""
    if is_standard(collection):
        return True
    connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()  # makes SQLite read a changed schema
    return connection.table_exists("main", statements(collection).table)


def _make(connection: apsw.Connection, collection: str) -> bool:
    """Create the collection's tables if they are missing; return whether they were."""
    missing = not _exists(connection, collection)
    if missing:
        connection.execute(statements(collection).make)
    return missing


def _create_tables(resource: apsw.Connection) -> None:
    for sql in map(statements, STANDARD):
        resource.execute(sql.create)


def _add_context(resource: apsw.Connection) -> None:
    """Replace the tables by empty ones, because FTS5 cannot add a column. The next index run fills them."""
    for sql in map(statements, STANDARD):
        resource.execute(sql.widen)


def _add_packed(resource: apsw.Connection) -> None:
    """Create the tables of the packed form, and replace FTS5's by empty ones with the text as the first column."""
    resource.execute(CREATE_STATE)
    for sql in map(statements, STANDARD):
        resource.execute(sql.rearrange)
        resource.execute(sql.merge_later)
        resource.execute(sql.packed.create)


def _add_pairs(resource: apsw.Connection) -> None:
    """Empty the packed form, because it lacks pairs of words. The next index run fills it."""
    resource.execute(DELETE_STATES)
    for sql in map(statements, STANDARD):
        resource.execute(sql.packed.make_room_for_pairs)


def _note_outdated(resource: apsw.Connection) -> None:
    """Mark all rows, because letters are folded and properties are words now. The next index run adds them again."""
    resource.execute(CREATE_OUTDATED)
    _mark_outdated(resource)


def _mark_outdated(resource: apsw.Connection) -> None:
    """Mark all rows, because words are written in another form now. The next index run adds them again."""
    for collection in made(resource):
        resource.execute(statements(collection).mark_outdated, (collection,))


def _unreachable(resource: apsw.Connection, sql: Statements) -> list[str]:
    """Look up the terms of the table, because FTS5's check reads all pages, but not through the way to them."""
    resource.execute(sql.vocabulary)
    try:
        count = int(resource.execute(sql.unreachable, (_MAX_LOOKED_UP,)).get)
    finally:
        resource.execute(sql.drop_vocabulary)
    return [f"{count:,} words cannot be found in {sql.table}"] if count else []
