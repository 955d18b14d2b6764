"""The full-text index: one contentless FTS5 table for each collection, in the store's own database."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import numpy as np
from attrs import frozen

from klaw_core import Hit, Keys, Matrix, Migration, Query, RetrievalError, StoredChunk, VectorSpace
from klaw_fts5.errors import as_retrieval_error, as_store_error
from klaw_fts5.plan import Plan, make_plan
from klaw_fts5.query import Term, compile_query, render
from klaw_fts5.sql import COLLECTIONS, Statements
from klaw_fts5.words import index_text

# Among fewer rows half of them is soon reached, and says nothing about a word.
_FEW = 20
# How many of the best by single words are looked at for pairs: the order is the same for every smaller limit.
_CANDIDATES = 200
_MAX_LIMIT = 2**31 - 1


@frozen
class Fts5Index:
    """Finds chunks by their words, best BM25 first. Holds no state: everything is in the database.

    A hit's score is SQLite's ``bm25()`` with its sign turned, so that higher is better, and ``pair_weight`` times
    that of the question's neighbouring words found side by side. Only scores of one query compare.
    """

    heading_weight: float = 3.0
    text_weight: float = 1.0
    context_weight: float = 0.5
    pair_weight: float = 0.25

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
        return (Migration("create-tables", _create_tables), Migration("context", _add_context))

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
        """Remove every row of the collection. Raise StoreError."""
        del space
        with as_store_error(collection):
            resource.execute(_statements(collection).reset)

    def add(
        self, resource: apsw.Connection, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /
    ) -> None:
        """Add the words of these chunks, under keys that are not there yet. Raise StoreError."""
        del vectors
        rows = ((stored.key, *map(index_text, _columns(stored))) for stored in chunks)
        with as_store_error(collection):
            resource.executemany(_statements(collection).insert, rows)

    def remove(self, resource: apsw.Connection, collection: str, keys: Sequence[int], /) -> None:
        """Remove the rows of these keys; unknown keys are ignored. Raise StoreError."""
        with as_store_error(collection):
            resource.executemany(_statements(collection).delete, ((int(key),) for key in keys))

    def erase(self, resource: apsw.Connection, collection: str, /) -> None:
        """Let the words of removed rows leave the pages. Writes the collection's index anew. Raise StoreError.

        Without the text a removal can only mark the row: FTS5's ``secure-delete`` does not know which words to
        take out. They go when all segments are merged into one (https://sqlite.org/fts5.html#the_optimize_command).
        """
        with as_store_error(collection):
            resource.execute(_statements(collection).erase)

    def keys(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return every key in the index, ascending. Raise StoreError."""
        with as_store_error(collection):
            return np.fromiter((key for (key,) in resource.execute(_statements(collection).keys)), dtype=np.int64)

    def check(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return what SQLite finds wrong with the table: FTS5 compares its inverted index with its own checksums."""
        del space
        try:
            # Unlike FTS5's own command this needs no write lock (https://sqlite.org/c3ref/module.html, xIntegrity).
            found = [str(row[0]) for row in resource.execute(_statements(collection).check)]
        except apsw.Error as error:
            return (str(error),)
        return [problem for problem in found if problem != "ok"]

    def search(self, resource: apsw.Connection, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, ties by key; none for a text without words.

        Raise RetrievalError if SQLite fails, is interrupted, or finds the table damaged.
        """
        sql = _statements(query.collection)
        if limit < 1 or (query.within is not None and not len(query.within)):
            return ()
        with as_retrieval_error(query.collection):
            plan = _plan(resource, sql, query.text)
            depth = min(max(limit, _CANDIDATES), _MAX_LIMIT)
            answers = (self._scores(resource, sql, step, depth, query.within) for step in plan.steps)
            scores = next(filter(None, answers), {})
            if plan.pairs and scores and self.pair_weight:
                found = np.fromiter(scores, dtype=np.int64)
                for key, score in self._scores(resource, sql, plan.pairs, depth, found).items():
                    scores[key] += self.pair_weight * score
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]
        return tuple(Hit(key, score) for key, score in best)

    def _scores(
        self, resource: apsw.Connection, sql: Statements, terms: Sequence[Term], limit: int, within: Keys | None
    ) -> dict[int, float]:
        """Return the best keys for any of the terms, with their scores."""
        values = [self.heading_weight, self.text_weight, self.context_weight, render(terms), limit]
        if within is None:
            rows = resource.execute(sql.search, values)
        else:
            allowed = apsw.carray(np.ascontiguousarray(within, dtype=np.int64))
            rows = resource.execute(sql.search_within, [*values, allowed])
        return {key: -score for key, score in rows}


def _plan(resource: apsw.Connection, sql: Statements, text: str) -> Plan:
    """Compile a text and look up how many chunks hold each term, counting no further than half of them."""
    rows: int = resource.execute(sql.count).get
    half = (rows + 1) // 2

    def count(term: Term) -> int:
        return int(resource.execute(sql.matches, (render((term,)), half)).get)

    return make_plan(compile_query(text), count, half if rows >= _FEW else half + 1)


def _columns(stored: StoredChunk) -> tuple[str, str, str]:
    """Return what goes into the columns: heading, text, context."""
    chunk = stored.chunk
    return " ".join(chunk.heading), chunk.text, chunk.context


def _create_tables(resource: apsw.Connection) -> None:
    for sql in COLLECTIONS.values():
        resource.execute(sql.create)


def _add_context(resource: apsw.Connection) -> None:
    """Make the tables anew, empty: FTS5 cannot add a column. The next index run fills them from the chunks."""
    for sql in COLLECTIONS.values():
        resource.execute(sql.widen)


def _statements(collection: str) -> Statements:
    try:
        return COLLECTIONS[collection]
    except KeyError:
        raise RetrievalError(
            f"there is no full-text index of a collection {collection!r}", hint=f"one of {', '.join(COLLECTIONS)}"
        ) from None
