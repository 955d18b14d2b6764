"""The index ``lancedb``: vectors in LanceDB, and rows in klaw.db that say which vectors are valid.

LanceDB takes no part in SQLite's transactions, so klaw.db decides which of its rows are valid. New vectors are buffered
in klaw.db and appended to LanceDB in batches, before the transaction commits. If it is rolled back, no row of klaw.db
refers to the batch, and its vectors are ignored. Removed vectors stay in LanceDB until the table is rewritten.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import numpy as np
from attrs import evolve, frozen

from klaw_core import (
    Hit,
    Index,
    KeyDigest,
    Keys,
    Matrix,
    Migration,
    Query,
    RetrievalError,
    StoredChunk,
    Vector,
    VectorSpace,
)
from klaw_lancedb import rows
from klaw_lancedb.options import LanceOptions
from klaw_lancedb.rows import TableRecord

if TYPE_CHECKING:
    from klaw_lancedb.tables import LanceTables

# A filter with at most this number of keys is sent to LanceDB; with more, its results are filtered here.
_MAX_SENT_KEYS = 5_000
# The least vectors for a typical cosine; with fewer, that of the question and a sentence about nothing takes its place.
_MIN_SAMPLED = 8
# The factor for the limit if too many results are invalid.
_GROWTH = 4


@frozen(eq=False, repr=False)
class _VectorQuery:
    """The ``limit`` nearest to ``vector`` among the ``allowed`` keys (None: all)."""

    collection: str
    vector: Vector
    limit: int
    allowed: Keys | None


class LanceIndex(Index[apsw.Connection]):
    """Stores vectors in LanceDB. One object serves all connections to a file.

    With an ``agent``, its name is a folder of the database on object storage. A local directory is already in the data
    directory of the agent.
    """

    joins = apsw.Connection
    needs_vectors = True

    def __init__(self, options: LanceOptions, data_dir: Path, agent: str = "") -> None:
        self._options = options
        self._data_dir = data_dir
        self._uri = f"{options.uri.rstrip('/')}/{agent}" if agent and "://" in options.uri else options.uri
        self._problem = ""
        self._dropped: set[str] = set()

    @property
    def limitation(self) -> str:
        """Why many vectors are buffered in klaw.db; empty if LanceDB accepted them."""
        return self._problem

    @cached_property
    def tables(self) -> LanceTables:
        """The tables in LanceDB. Importing LanceDB takes a second, so it is imported at the first use."""
        try:
            from klaw_lancedb.tables import LanceTables
        except ImportError as error:
            from klaw_core import reinstall_command

            message = f"lancedb cannot be imported: {error}"
            raise RetrievalError(message, hint=reinstall_command("lancedb")) from error
        options = self._options
        return LanceTables(self._uri, options.storage, self._data_dir, options.approximate_from)

    def migrations(self) -> Sequence[Migration[apsw.Connection]]:
        """Return the migration that creates the tables in klaw.db."""
        return rows.MIGRATIONS

    def prepare(self, resource: apsw.Connection, /) -> None:
        """Do nothing, because the tables in klaw.db need no extension of SQLite."""

    def reset(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> None:
        """Empty the collection's index. The table in LanceDB is created with the first vectors."""
        table = rows.read_table(resource, collection)
        if table is not None and table.version:
            rows.add_replaced(resource, table.name)
        rows.clear(resource, collection)
        if space is not None:
            fresh = TableRecord(self.tables.new_name(collection), space.dimension, 0)
            rows.write_table(resource, collection, fresh)

    def add(
        self, resource: apsw.Connection, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /
    ) -> None:
        """Add one vector per chunk. Raise RetrievalError if the collection was not :meth:`reset` yet."""
        if vectors is None or not chunks:
            return
        table = rows.read_table(resource, collection)
        if table is None:
            raise RetrievalError(f"the index of {collection!r} has no table for vectors", hint="klaw doctor --fix")
        rows.add(resource, collection, [stored.key for stored in chunks], vectors)
        if rows.count_buffered(resource, collection) > self._options.buffer:
            self._append(resource, collection, table)

    def remove(self, resource: apsw.Connection, collection: str, keys: Sequence[int], /) -> None:
        """Remove the rows of these keys; unknown keys are ignored."""
        rows.remove(resource, collection, keys)

    def erase(self, resource: apsw.Connection, collection: str, /) -> None:
        """Rewrite the table without removed vectors. The old table is dropped by the next search.

        It is not dropped here, because the transaction may still be rolled back.
        """
        table = rows.read_table(resource, collection)
        if table is None or not table.version:
            return
        alive = rows.all_batches(resource, collection)
        try:
            if self.tables.count(table) > len(alive):
                self._rewrite(resource, collection, table, alive)
        except RetrievalError as error:
            message = f"the vectors cannot be erased, so nothing was forgotten: {error}"
            raise RetrievalError(message, hint="try again once the storage can be reached: klaw doctor") from error

    def keys(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return every key in the index, ascending."""
        return rows.read_keys(resource, collection)

    def key_digest(self, resource: apsw.Connection, collection: str, /) -> KeyDigest:
        """Return the digest of :meth:`keys`."""
        return rows.key_digest(resource, collection)

    def lacking(self, resource: apsw.Connection, collection: str, chunks: Callable[[], int], /) -> int:
        """Return how many chunks have no vector."""
        return chunks() - rows.count(resource, collection)

    def check(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return the vectors missing in LanceDB, and whether the dimension differs from the space's."""
        table = rows.read_table(resource, collection)
        if table is None:
            return [] if space is None else [f"it has no table for the vectors of {space}"]
        if space is not None and table.dimension != space.dimension:
            return [f"it contains vectors of {table.dimension} dimensions, the recorded space has {space.dimension}"]
        try:
            waiting, _ = rows.read_buffered(resource, collection, table.dimension)
            rows.read_samples(resource, collection, table.dimension)
            alive = rows.all_batches(resource, collection)
            missing = len(alive)
            if table.version and self.tables.dimension(table) == table.dimension:
                missing -= sum(alive.get(key) == batch for key, batch in self.tables.read_batches(table))
        except RetrievalError as error:
            return [str(error)]
        lost = len(rows.read_keys(resource, collection)) - len(alive) - len(waiting)
        problems = [f"{missing:,} vectors are not in LanceDB"] if missing else []
        return [*problems, f"{lost:,} vectors that should wait in klaw.db are not there"] if lost else problems

    def search(self, resource: apsw.Connection, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return the nearest chunks; the score is the cosine similarity. Raise RetrievalError."""
        if query.vector is None or limit < 1 or (query.within is not None and query.within.is_empty):
            return ()
        table = rows.read_table(resource, query.collection)
        if table is None:
            return ()
        if table.dimension != len(query.vector):
            message = f"the vectors of {query.collection!r} have {table.dimension} dimensions, not {len(query.vector)}"
            raise RetrievalError(message, hint="klaw doctor")
        self._drop_replaced(resource)
        allowed = None if query.within is None else query.within.keys()
        question = _VectorQuery(query.collection, query.vector, limit, allowed)
        found = _search_buffer(resource, table, question)
        if table.version:
            found += self._search_lance(resource, table, question)
        found.sort(key=lambda pair: (-pair[1], pair[0]))
        samples = rows.read_samples(resource, query.collection, table.dimension)
        typical = float(np.median(samples @ query.vector)) if len(samples) >= _MIN_SAMPLED else None
        return query.hits(found[:limit], typical)

    def _search_lance(
        self, resource: apsw.Connection, table: TableRecord, question: _VectorQuery
    ) -> list[tuple[int, float]]:
        """Return the nearest valid and allowed vectors in LanceDB; search deeper while invalid ones leave too few."""
        allowed = question.allowed
        sent = allowed if allowed is not None and len(allowed) <= _MAX_SENT_KEYS else None
        wanted, exact = question.limit, False
        while True:
            answer = self.tables.nearest(table, question.vector, wanted, sent, exact=exact)
            keys = answer.keys.tolist()
            alive = rows.batches(resource, question.collection, keys)
            fits = [True] * len(keys) if allowed is None else np.isin(answer.keys, allowed).tolist()
            answered = zip(keys, answer.batches.tolist(), answer.scores.tolist(), fits, strict=True)
            found = [(key, score) for key, batch, score, fit in answered if fit and alive.get(key) == batch]
            if len(found) >= question.limit or (len(keys) < wanted and (exact or sent is not None)):
                return found
            if len(keys) < wanted:  # the approximate index searched only some of its cells
                exact = True
            else:
                wanted *= _GROWTH

    def _append(self, resource: apsw.Connection, collection: str, table: TableRecord) -> None:
        """Append the buffered vectors to LanceDB; if it cannot be reached, they stay in the buffer."""
        keys, vectors = rows.read_buffered(resource, collection, table.dimension)
        batch = secrets.randbits(62) + 1
        try:
            if not table.version:
                self.tables.drop_orphans(rows.table_names(resource))
            else:
                table = self._compacted(resource, collection, table)
            version = self.tables.append(table, batch, keys, vectors)
        except RetrievalError as error:
            self._problem = f"new vectors wait in klaw.db: {error}"
            return
        table = evolve(table, version=version)
        rows.mark_appended(resource, collection, batch)
        rows.write_table(resource, collection, table)
        try:
            rows.write_table(resource, collection, evolve(table, version=self.tables.index(table)))
            if recorded := rows.replaced(resource):
                rows.remove_replaced(resource, sorted(set(recorded) - self.tables.names()))
        except RetrievalError as error:
            self._problem = f"searches may take longer: {error}"
        else:
            self._problem = ""

    def _compacted(self, resource: apsw.Connection, collection: str, table: TableRecord) -> TableRecord:
        """Return the table, rewritten if most of its rows are invalid, because these slow down every search."""
        alive = rows.all_batches(resource, collection)
        if self.tables.count(table) <= 2 * len(alive) + self._options.buffer:
            return table
        return self._rewrite(resource, collection, table, alive)

    def _rewrite(
        self, resource: apsw.Connection, collection: str, table: TableRecord, alive: dict[int, int]
    ) -> TableRecord:
        name = self.tables.new_name(collection)
        version = self.tables.rewrite(table, name, alive)
        rows.add_replaced(resource, table.name)
        fresh = TableRecord(name, table.dimension, version)
        rows.write_table(resource, collection, fresh)
        return fresh

    def _drop_replaced(self, resource: apsw.Connection) -> None:
        """Drop replaced tables, unless this connection's transaction may still be rolled back."""
        if resource.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return
        for name in rows.replaced(resource):
            if name not in self._dropped:
                with suppress(RetrievalError):  # a later search tries again
                    self.tables.drop(name)
                    self._dropped.add(name)


def _search_buffer(resource: apsw.Connection, table: TableRecord, question: _VectorQuery) -> list[tuple[int, float]]:
    """Return the keys and scores of all allowed vectors in the buffer."""
    keys, vectors = rows.read_buffered(resource, question.collection, table.dimension)
    scores = vectors @ question.vector
    if question.allowed is not None:
        chosen = np.isin(keys, question.allowed)
        keys, scores = keys[chosen], scores[chosen]
    return list(zip(keys.tolist(), scores.tolist(), strict=True))
