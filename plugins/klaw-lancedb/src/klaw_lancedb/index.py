"""The index ``lancedb``: vectors in LanceDB, and in klaw.db which of them are alive.

klaw.db is the truth, and LanceDB, which knows nothing of its transactions, an appendix to it. New vectors wait in
klaw.db, and go to LanceDB many at a time, before the transaction is committed. If it is rolled back, nobody finds them:
their batch is in no row of klaw.db. Removed vectors stay in LanceDB until the table is written again without them.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import numpy as np
from attrs import evolve, frozen

from klaw_core import Hit, KeyDigest, Keys, Matrix, Migration, Query, RetrievalError, StoredChunk, Vector, VectorSpace
from klaw_lancedb import rows
from klaw_lancedb.options import LanceOptions
from klaw_lancedb.rows import TableRecord

if TYPE_CHECKING:
    from klaw_lancedb.tables import LanceTables

#: So many keys a filter may keep to be named in the question. Among more, the nearest are read and filtered here.
_MOST_NAMED = 5_000
_FEWEST_SAMPLED = 8
_LEAST_ROOM = 1e-3
# What is similar is less than what is said: the scale that words measure relevance on (docs/decisions/0030).
_SIMILAR = 0.3
_MORE = 4


@frozen(eq=False, repr=False)
class _Question:
    """What is looked for: the ``limit`` nearest to ``vector`` among the ``allowed`` keys, None for all."""

    collection: str
    vector: Vector
    limit: int
    allowed: Keys | None


class LanceIndex:
    """Keeps vectors in LanceDB. One object serves every connection to a file.

    With an ``agent``, a database on object storage gets its name as a folder; a directory is in the agent's own
    data directory already.
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
        """Why vectors wait in klaw.db although there are many; empty if LanceDB took them."""
        return self._problem

    @cached_property
    def tables(self) -> LanceTables:
        """Import LanceDB, which takes a second, when it is needed."""
        try:
            from klaw_lancedb.tables import LanceTables
        except ImportError as error:
            message = f"lancedb cannot be imported: {error}"
            raise RetrievalError(message, hint="pip install --force-reinstall lancedb pyarrow") from error
        options = self._options
        return LanceTables(self._uri, options.storage, self._data_dir, options.approximate_from)

    def migrations(self) -> Sequence[Migration[apsw.Connection]]:
        """Return the step that makes the tables in klaw.db."""
        return rows.MIGRATIONS

    def prepare(self, resource: apsw.Connection, /) -> None:
        """Do nothing: the tables in klaw.db are ordinary ones."""

    def reset(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> None:
        """Make the collection's index empty, with a new table in LanceDB once there are vectors."""
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
        """Add one vector a chunk. Raise RetrievalError if the collection was not :meth:`reset` yet."""
        if vectors is None or not chunks:
            return
        table = rows.read_table(resource, collection)
        if table is None:
            raise RetrievalError(f"the index of {collection!r} has no table for vectors", hint="klaw doctor --fix")
        rows.add(resource, collection, [stored.key for stored in chunks], vectors)
        if rows.count_waiting(resource, collection) > self._options.buffer:
            self._append(resource, collection, table)

    def remove(self, resource: apsw.Connection, collection: str, keys: Sequence[int], /) -> None:
        """Remove the rows of these keys; unknown keys are ignored."""
        rows.remove(resource, collection, keys)

    def erase(self, resource: apsw.Connection, collection: str, /) -> None:
        """Write the table again without what was removed; the old one is dropped by the next search.

        It is not dropped here, for then the transaction could no longer be rolled back.
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

    def check(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return what is missing in LanceDB, and what does not fit the space."""
        table = rows.read_table(resource, collection)
        if table is None:
            return [] if space is None else [f"it has no table for the vectors of {space}"]
        if space is not None and table.dimension != space.dimension:
            return [f"it contains vectors of {table.dimension} dimensions, the recorded space has {space.dimension}"]
        try:
            waiting, _ = rows.read_waiting(resource, collection, table.dimension)
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
        asked = _Question(query.collection, query.vector, limit, allowed)
        found = _waiting(resource, table, asked)
        if table.version:
            found += self._in_lance(resource, table, asked)
        found.sort(key=lambda pair: (-pair[1], pair[0]))
        samples = rows.read_samples(resource, query.collection, table.dimension)
        return _judged(found[:limit], samples @ query.vector)

    def _in_lance(self, resource: apsw.Connection, table: TableRecord, asked: _Question) -> list[tuple[int, float]]:
        """Return the nearest in LanceDB that are alive and allowed, asking for more as long as others take places."""
        allowed = asked.allowed
        named = allowed if allowed is not None and len(allowed) <= _MOST_NAMED else None
        wanted, exact = asked.limit, False
        while True:
            answer = self.tables.nearest(table, asked.vector, wanted, named, exact=exact)
            keys = answer.keys.tolist()
            alive = rows.batches(resource, asked.collection, keys)
            fits = [True] * len(keys) if allowed is None else np.isin(answer.keys, allowed).tolist()
            answered = zip(keys, answer.batches.tolist(), answer.scores.tolist(), fits, strict=True)
            found = [(key, score) for key, batch, score, fit in answered if fit and alive.get(key) == batch]
            if len(found) >= asked.limit or (len(keys) < wanted and (exact or named is not None)):
                return found
            if len(keys) < wanted:  # the approximate index looked into a part of its cells, and that was all
                exact = True
            else:
                wanted *= _MORE

    def _append(self, resource: apsw.Connection, collection: str, table: TableRecord) -> None:
        """Move what waits to LanceDB; while that is out of reach it goes on waiting."""
        keys, vectors = rows.read_waiting(resource, collection, table.dimension)
        batch = secrets.randbits(62) + 1
        try:
            if not table.version:
                self.tables.drop_orphans(rows.table_names(resource))
            else:
                table = self._without_dead(resource, collection, table)
            version = self.tables.append(table, batch, keys, vectors)
        except RetrievalError as error:
            self._problem = f"new vectors wait in klaw.db: {error}"
            return
        table = evolve(table, version=version)
        rows.move_waiting(resource, collection, batch)
        rows.write_table(resource, collection, table)
        try:
            rows.write_table(resource, collection, evolve(table, version=self.tables.index(table)))
            if recorded := rows.replaced(resource):
                rows.remove_replaced(resource, sorted(set(recorded) - self.tables.names()))
        except RetrievalError as error:
            self._problem = f"searches may take longer: {error}"
        else:
            self._problem = ""

    def _without_dead(self, resource: apsw.Connection, collection: str, table: TableRecord) -> TableRecord:
        """Return the table, written again if most of its rows are dead: they cost time in every search."""
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
        """Drop tables that nobody needs, unless this connection's transaction may still be rolled back."""
        if resource.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return
        for name in rows.replaced(resource):
            if name not in self._dropped:
                with suppress(RetrievalError):  # then a later search drops it
                    self.tables.drop(name)
                    self._dropped.add(name)


def _waiting(resource: apsw.Connection, table: TableRecord, asked: _Question) -> list[tuple[int, float]]:
    """Return the keys and scores of all that waits in klaw.db."""
    keys, vectors = rows.read_waiting(resource, asked.collection, table.dimension)
    scores = vectors @ asked.vector
    if asked.allowed is not None:
        chosen = np.isin(keys, asked.allowed)
        keys, scores = keys[chosen], scores[chosen]
    return list(zip(keys.tolist(), scores.tolist(), strict=True))


def _judged(found: Sequence[tuple[int, float]], sampled: Vector) -> list[Hit]:
    """Return hits, of keys and scores, with their relevance: how far a cosine stands above what any two texts share."""
    if len(sampled) < _FEWEST_SAMPLED:
        return [Hit(key, score) for key, score in found]
    typical = float(np.median(sampled))
    room = max(1.0 - typical, _LEAST_ROOM)
    return [Hit(key, score, (), _SIMILAR * min(max((score - typical) / room, 0.0), 1.0)) for key, score in found]
