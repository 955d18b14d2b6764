"""An index whose vectors are in an engine outside of the store's transactions, and the rows in klaw.db that rule it.

The engine takes no part in SQLite's transactions, so klaw.db decides which of its rows are valid. New vectors wait in
klaw.db, and the engine gets them in batches, before the transaction commits. If it is rolled back, no row of klaw.db
refers to the batch, and its vectors are ignored. Removed vectors stay in the engine until the table is copied.
"""

from __future__ import annotations

import hashlib
import platform
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import apsw
import numpy as np
from attrs import evolve

from klaw_core import (
    ChunkSelection,
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
from klaw_store_sqlitevec.filtering import FilteredSelection
from klaw_store_sqlitevec.outside.engine import OutsideIndex, TableRecord, Wanted
from klaw_store_sqlitevec.outside.labels import wanted_labels
from klaw_store_sqlitevec.outside.rows import Rows

# A selection with at most this number of keys is sent to the engine as keys; a larger one as labels.
_MAX_SENT_KEYS = 5_000
# The least vectors for a typical cosine; with fewer, that of the question and a sentence about nothing takes its place.
_MIN_SAMPLED = 8
# The factor for the limit if too many results are invalid.
_GROWTH = 4
_DAY = timedelta(days=1)


class OutsideVectors(Index[apsw.Connection]):
    """The index ``name``, whose vectors are in an engine. One object serves all connections to a file.

    ``connect`` makes the engine's part at the first use, because importing an engine may take seconds. Up to ``buffer``
    new vectors of a collection wait in klaw.db.
    """

    joins = apsw.Connection
    needs_vectors = True

    def __init__(self, name: str, data_dir: Path, buffer: int, connect: Callable[[], OutsideIndex]) -> None:
        self._name = name
        self._rows = Rows(name)
        self._buffer = buffer
        self._connect = connect
        # Only tables with this prefix are removed as orphans, because other data directories may share the engine.
        owner = f"{platform.node()}\0{data_dir.resolve()}"
        self._prefix = f"klaw_{hashlib.sha256(owner.encode()).hexdigest()[:12]}_"
        self._problem = ""
        self._dropped: set[str] = set()

    @property
    def limitation(self) -> str:
        """Why many vectors wait in klaw.db; empty if the engine accepted them."""
        return self._problem

    @cached_property
    def outside(self) -> OutsideIndex:
        """The engine's part. Raise RetrievalError if its library cannot be imported."""
        try:
            return self._connect()
        except ImportError as error:
            from klaw_core import reinstall_command

            message = f"{self._name} cannot be imported: {error}"
            raise RetrievalError(message, hint=reinstall_command(self._name)) from error

    def migrations(self) -> Sequence[Migration[apsw.Connection]]:
        """Return the migrations that create the tables in klaw.db."""
        return self._rows.migrations()

    def prepare(self, resource: apsw.Connection, /) -> None:
        """Do nothing, because the tables in klaw.db need no extension of SQLite."""

    def reset(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> None:
        """Empty the collection's index. The table in the engine is created with the first vectors."""
        table = self._rows.read_table(resource, collection)
        if table is not None and table.version:
            self._rows.add_replaced(resource, table.name)
        self._rows.clear(resource, collection)
        if space is not None:
            _ = self.outside  # a missing library is an error here, not at the first search
            self._rows.write_table(resource, collection, TableRecord(self._new_name(collection), space.dimension, 0))

    def add(
        self, resource: apsw.Connection, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /
    ) -> None:
        """Add one vector per chunk. Raise RetrievalError if the collection was not :meth:`reset` yet."""
        if vectors is None or not chunks:
            return
        table = self._rows.read_table(resource, collection)
        if table is None:
            raise RetrievalError(f"the index of {collection!r} has no table for vectors", hint="klaw doctor --fix")
        self._rows.add(resource, collection, chunks, vectors)
        if self._rows.count(resource, collection, "waiting") > self._buffer:
            self._apply(resource, collection, table)

    def remove(self, resource: apsw.Connection, collection: str, keys: Sequence[int], /) -> None:
        """Remove the rows of these keys; unknown keys are ignored."""
        self._rows.remove(resource, collection, keys)

    def erase(self, resource: apsw.Connection, collection: str, /) -> None:
        """Copy the table without removed vectors. The old table is dropped by the next search.

        It is not dropped here, because the transaction may still be rolled back.
        """
        table = self._rows.read_table(resource, collection)
        if table is None or not table.version:
            return
        alive = self._rows.batches(resource, collection)
        try:
            if self.outside.count(table) > len(alive):
                self._copy(resource, collection, table, alive)
        except RetrievalError as error:
            message = f"the vectors cannot be erased, so nothing was forgotten: {error}"
            raise RetrievalError(message, hint="try again once the storage can be reached: klaw doctor") from error

    def keys(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return every key in the index, ascending."""
        return self._rows.read_keys(resource, collection)

    def key_digest(self, resource: apsw.Connection, collection: str, /) -> KeyDigest:
        """Return the digest of :meth:`keys`."""
        return self._rows.key_digest(resource, collection)

    def lacking(self, resource: apsw.Connection, collection: str, chunks: Callable[[], int], /) -> int:
        """Return how many chunks have no vector."""
        return chunks() - self._rows.count(resource, collection)

    def check(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return the vectors missing in the engine, and whether the dimension differs from the space's."""
        table = self._rows.read_table(resource, collection)
        if table is None:
            return [] if space is None else [f"it has no table for the vectors of {space}"]
        if space is not None and table.dimension != space.dimension:
            return [f"it contains vectors of {table.dimension} dimensions, the recorded space has {space.dimension}"]
        try:
            waiting = self._rows.read_waiting(resource, collection, table.dimension).keys
            self._rows.read_samples(resource, collection, table.dimension)
            alive = self._rows.batches(resource, collection)
            missing = len(alive)
            if table.version:
                missing -= sum(alive.get(key) == batch for key, batch in self.outside.read_batches(table))
        except RetrievalError as error:
            return [str(error)]
        lost = self._rows.count(resource, collection) - len(alive) - len(waiting)
        problems = [f"{missing:,} vectors are not in {self._name}"] if missing else []
        return [*problems, f"{lost:,} vectors that should wait in klaw.db are not there"] if lost else problems

    def search(self, resource: apsw.Connection, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return the nearest chunks; the score is the cosine similarity. Raise RetrievalError."""
        if query.vector is None or limit < 1 or (query.within is not None and query.within.is_empty):
            return ()
        table = self._rows.read_table(resource, query.collection)
        if table is None:
            return ()
        if table.dimension != len(query.vector):
            message = f"the vectors of {query.collection!r} have {table.dimension} dimensions, not {len(query.vector)}"
            raise RetrievalError(message, hint="klaw doctor")
        self._drop_replaced(resource)
        found = self._search_waiting(resource, table, query, query.vector)
        if table.version:
            found += self._search_outside(resource, table, query, query.vector, limit)
        found.sort(key=lambda pair: (-pair[1], pair[0]))
        samples = self._rows.read_samples(resource, query.collection, table.dimension)
        typical = float(np.median(samples @ query.vector)) if len(samples) >= _MIN_SAMPLED else None
        return query.hits(found[:limit], typical)

    def _search_waiting(
        self, resource: apsw.Connection, table: TableRecord, query: Query, vector: Vector
    ) -> list[tuple[int, float]]:
        """Return the keys and scores of all selected vectors that wait in klaw.db."""
        waiting = self._rows.read_waiting(resource, query.collection, table.dimension)
        keys = waiting.keys.tolist()
        kept = _selected(query.within, keys)
        return [
            (key, score) for key, score in zip(keys, (waiting.vectors @ vector).tolist(), strict=True) if key in kept
        ]

    def _search_outside(
        self, resource: apsw.Connection, table: TableRecord, query: Query, vector: Vector, limit: int
    ) -> list[tuple[int, float]]:
        """Return the nearest valid and selected vectors of the engine; ask for more while invalid ones leave few."""
        wanted, asked, exact = _wanted(query.within), limit, False
        while True:
            answer = self.outside.nearest(table, vector, asked, wanted, exact=exact)
            keys = answer.keys.tolist()
            alive = self._rows.batches(resource, query.collection, keys)
            kept = _selected(query.within, keys)
            answered = zip(keys, answer.batches.tolist(), answer.scores.tolist(), strict=True)
            found = [(key, score) for key, batch, score in answered if key in kept and alive.get(key) == batch]
            if len(found) >= limit or (len(keys) < asked and (exact or wanted.keys is not None)):
                return found
            if len(keys) < asked:  # an approximate index searched only some of its cells
                exact = True
            else:
                asked *= _GROWTH

    def _apply(self, resource: apsw.Connection, collection: str, table: TableRecord) -> None:
        """Give the engine what it lacks; if it cannot be reached, that stays in klaw.db."""
        changes = self._rows.read_waiting(resource, collection, table.dimension)
        changes = evolve(changes, batch=secrets.randbits(62) + 1)
        try:
            if not table.version:
                self._drop_orphans(self._rows.table_names(resource))
            else:
                table = self._compacted(resource, collection, table)
            table = evolve(table, version=self.outside.apply(table, changes))
        except RetrievalError as error:
            self._problem = f"new vectors wait in klaw.db: {error}"
            return
        self._rows.mark_applied(resource, collection, changes.batch)
        self._rows.write_table(resource, collection, table)
        try:
            self._rows.write_table(resource, collection, evolve(table, version=self.outside.settle(table)))
            if recorded := self._rows.replaced(resource):
                self._rows.remove_replaced(resource, sorted(set(recorded) - self.outside.names()))
        except RetrievalError as error:
            self._problem = f"searches may take longer: {error}"
        else:
            self._problem = ""

    def _compacted(self, resource: apsw.Connection, collection: str, table: TableRecord) -> TableRecord:
        """Return the table, copied if most of its rows are invalid, because these slow down every search."""
        alive = self._rows.batches(resource, collection)
        if self.outside.count(table) <= 2 * len(alive) + self._buffer:
            return table
        return self._copy(resource, collection, table, alive)

    def _copy(
        self, resource: apsw.Connection, collection: str, table: TableRecord, alive: dict[int, int]
    ) -> TableRecord:
        name = self._new_name(collection)
        version = self.outside.copy(table, name, alive)
        self._rows.add_replaced(resource, table.name)
        fresh = TableRecord(name, table.dimension, version)
        self._rows.write_table(resource, collection, fresh)
        return fresh

    def _new_name(self, collection: str) -> str:
        return f"{self._prefix}{collection}_{secrets.token_hex(8)}"

    def _drop_replaced(self, resource: apsw.Connection) -> None:
        """Drop replaced tables, unless this connection's transaction may still be rolled back."""
        if resource.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return
        for name in self._rows.replaced(resource):
            if name not in self._dropped:
                with suppress(RetrievalError):  # a later search tries again
                    self.outside.drop(name)
                    self._dropped.add(name)

    def _drop_orphans(self, known: set[str]) -> None:
        """Drop tables that klaw.db does not list and that were not written for a day; failed rebuilds leave them."""
        for name in self.outside.names() - known:
            if name.startswith(self._prefix) and datetime.now(UTC) - self.outside.last_written(name) > _DAY:
                self.outside.drop(name)


def _wanted(within: ChunkSelection | None) -> Wanted:
    """Return a selection as an engine is asked: few keys as they are, more as the conditions that they satisfy."""
    if within is None:
        return Wanted()
    keys = within.keys()
    if len(keys) <= _MAX_SENT_KEYS:
        return Wanted(keys)
    return Wanted(labels=wanted_labels(within.filters) if isinstance(within, FilteredSelection) else ())


def _selected(within: ChunkSelection | None, keys: Sequence[int]) -> set[int]:
    return set(keys if within is None else within.among(keys))
