"""The vector index ``pgvector``: exact for small collections, HNSW for large ones. Vectors are in half precision.

Vectors of small collections share a table, and are compared one by one. A collection that grows beyond that gets a
separate table with an HNSW index. In a shared table, each search would visit the neighbours of other agents, and
building an index would block every writer. ``vector_tables`` lists the collections with a separate table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

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
from klaw_store_postgres.errors import is_lost, retrieval_errors
from klaw_store_postgres.filtering import SqlSelection, as_keys
from klaw_store_postgres.isolation import distribute, isolate
from klaw_store_postgres.options import PgVectorOptions
from klaw_store_postgres.session import Session

_IN = "tenant = %s AND generation = %s AND collection = %s"
# What pgvector's HNSW can index in half precision.
_MAX_INDEXED_DIMENSIONS = 4_000
_UNIT_TOLERANCE = 5e-3  # of half precision, in every dimension
_INSERTED_AT_ONCE = 500

_TABLES = """
CREATE SEQUENCE vector_table_ids AS bigint;
CREATE TABLE vectors (
    tenant integer NOT NULL, generation integer NOT NULL, collection text COLLATE "C" NOT NULL,
    key bigint NOT NULL,
    embedding halfvec NOT NULL,
    PRIMARY KEY (tenant, generation, collection, key)
);
CREATE TABLE vector_tables (
    tenant integer NOT NULL, generation integer NOT NULL, collection text COLLATE "C" NOT NULL,
    dimension integer NOT NULL,
    own text,                       -- the collection's own table, if it has one
    PRIMARY KEY (tenant, generation, collection)
);
"""

_OWN_TABLE = """
CREATE TABLE {name} (
    tenant integer NOT NULL, generation integer NOT NULL, collection text COLLATE "C" NOT NULL,
    key bigint NOT NULL,
    embedding halfvec({dimension}) NOT NULL,
    PRIMARY KEY (tenant, key)
)
"""


@frozen(eq=False, repr=False)
class VectorIndex(Index[Session]):
    """Finds the nearest vectors; the score is the cosine similarity."""

    options: PgVectorOptions = field(factory=PgVectorOptions)
    # Of each collection: how many vectors there were when they were counted, and how many were added here since.
    _counted: dict[tuple[int, int, str], tuple[int, int]] = field(factory=dict, init=False)
    # Of each collection: the last chunk up to which every chunk had a vector.
    _complete: dict[tuple[int, int, str], int] = field(factory=dict, init=False)

    @property
    def joins(self) -> type[Session]:
        """Return the type of resource this index joins."""
        return Session

    @property
    def needs_vectors(self) -> bool:
        """Return True."""
        return True

    def migrations(self) -> Sequence[Migration[Session]]:
        """Return the steps that make the tables."""
        return (Migration("0001-vectors", _create),)

    def prepare(self, resource: Session, /) -> None:
        """Check that the database has pgvector, and add it where the role may. Raise RetrievalError."""
        import psycopg

        from klaw_store_postgres.halves import HalfVectors, HalfVectorsDumper

        resource.connection.adapters.register_dumper(HalfVectors, HalfVectorsDumper)
        hint = "as a superuser, in this database: CREATE EXTENSION vector (docs/how-to/postgres.md, Roles)"
        if resource.row("SELECT 1 FROM pg_extension WHERE extname = 'vector'") is not None:
            return
        if resource.value("SHOW transaction_read_only") == "on":
            raise RetrievalError("the database has no pgvector", hint=hint)
        try:
            with resource.connection.transaction():
                resource.run("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        except psycopg.Error as error:
            if is_lost(error):
                raise
            said = str(error).partition("\n")[0]
            raise RetrievalError(f"the database has no pgvector, and it cannot be added: {said}", hint=hint) from error

    def reset(self, resource: Session, collection: str, space: VectorSpace | None, /) -> None:
        """Make the collection's index empty, ready for vectors of ``space``."""
        resource.be_alone()
        own = self._own_table(resource, collection)
        place = (*resource.scope, collection)
        for table in filter(None, ("vectors", own)):
            resource.run(f"DELETE FROM {table} WHERE {_IN}", place)
        resource.run(f"DELETE FROM vector_tables WHERE {_IN}", place)
        self._drop_orphans(resource)
        if space is not None:
            sql = "INSERT INTO vector_tables (tenant, generation, collection, dimension) VALUES (%s, %s, %s, %s)"
            resource.run(sql, (*place, space.dimension))

    def add(self, resource: Session, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /) -> None:
        """Add rows; row i of ``vectors`` is chunk i's."""
        from klaw_store_postgres.halves import HalfVectors

        if vectors is None or not len(chunks):
            return
        sql = f"SELECT (SELECT own FROM vector_tables WHERE {_IN}), 'halfvec'::regtype::oid::bigint"
        own, number = resource.row(sql, (*resource.scope, collection))
        if own is None:
            own = self._promote(resource, collection, vectors.shape[1], len(chunks))
        for first in range(0, len(chunks), _INSERTED_AT_ONCE):
            some = slice(first, first + _INSERTED_AT_ONCE)
            resource.run(
                f"""INSERT INTO {own or "vectors"} (tenant, generation, collection, key, embedding)
                    SELECT %s, %s, %s, new.* FROM unnest(%s::bigint[], %s::halfvec[]) AS new
                    RETURNING tenant""",
                (
                    *resource.scope,
                    collection,
                    [stored.key for stored in chunks[some]],
                    HalfVectors(number, vectors[some]),
                ),
            )

    def remove(self, resource: Session, collection: str, keys: Sequence[int], /) -> None:
        """Remove the rows of these keys; unknown keys are ignored."""
        if len(keys):
            table = self._table(resource, collection)
            gone = [int(key) for key in keys]
            resource.run(f"DELETE FROM {table} WHERE {_IN} AND key = ANY(%s)", (*resource.scope, collection, gone))

    def keys(self, resource: Session, collection: str, /) -> Keys:
        """Return every key in the index, ascending."""
        table = self._table(resource, collection)
        rows = resource.rows(f"SELECT key FROM {table} WHERE {_IN} ORDER BY key", (*resource.scope, collection))
        return as_keys(key for (key,) in rows)

    def key_digest(self, resource: Session, collection: str, /) -> KeyDigest:
        """Return the digest of :meth:`keys`."""
        from klaw_store_postgres.snapshot import read_key_digest

        return read_key_digest(resource, self._table(resource, collection), collection)

    def lacking(self, resource: Session, collection: str, _chunks: Callable[[], int], /) -> int:
        """Return how many chunks have no vector.

        PostgreSQL counts slowly, so chunks that all had vectors at an earlier search are not checked again.
        """
        place = (*resource.scope, collection)
        table, checked = self._table(resource, collection), self._complete.get(place, 0)
        newer = f"chunks WHERE {_IN} AND key > %s"
        held = f"EXISTS (SELECT 1 FROM {table} AS own WHERE {_IN} AND own.key = chunks.key)"
        last = resource.value(f"SELECT MAX(key) FROM {newer}", (*place, checked))
        if last is None:
            return 0
        lacking: int = resource.value(f"SELECT COUNT(*) FROM {newer} AND NOT {held}", (*place, checked, *place))
        if not lacking:
            self._complete[place] = last
        return lacking

    def check(self, resource: Session, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return how many vectors are not unit vectors of the space."""
        table = self._table(resource, collection)
        wrong = f"NOT abs(l2_norm(embedding) - 1) <= {_UNIT_TOLERANCE}"
        if space is not None:
            wrong += f" OR vector_dims(embedding) <> {int(space.dimension)}"
        sql = f"SELECT COUNT(*) FILTER (WHERE {wrong}), COUNT(*) FROM {table} WHERE {_IN}"
        bad, count = resource.row(sql, (*resource.scope, collection))
        return (f"{bad:,} of {count:,} vectors are not unit vectors of the collection's space",) if bad else ()

    @retrieval_errors
    def search(self, resource: Session, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return the nearest, best first, ties by key."""
        if query.vector is None or limit < 1 or (query.within is not None and query.within.is_empty):
            return ()
        return resource.search(query, lambda session, asked: self._search(session, asked, limit))

    def notices(self, resource: Session, query: Query, /) -> Sequence[str]:
        """Return a notice if the replica was passed over."""
        del query
        return resource.take_notices()

    def _search(self, resource: Session, query: Query, limit: int) -> Sequence[Hit]:
        assert query.vector is not None
        effort = min(max(self.options.ef_search, limit), 1000)
        # With filters, HNSW continues until it has enough results.
        order = "strict_order" if limit <= effort else "relaxed_order"
        own = self._own_table(resource, query.collection)
        if own is not None:
            # Statements of their own reach the workers of a cluster; a function would set them on the coordinator.
            resource.run(f"SET LOCAL hnsw.ef_search = {effort}")
            resource.run(f"SET LOCAL hnsw.iterative_scan = {order}")
            return self._nearest(resource, own, query, query.vector, limit)
        sql, values = self._statement(resource, "vectors", query)
        (wanted,) = _literals(query.vector[None])
        rows = resource.rows(
            f"SELECT key, 1 - (embedding <=> %s::halfvec) AS score FROM {sql} ORDER BY score DESC, key LIMIT %s",
            (wanted, *values, limit),
        )
        return query.hits(rows)

    def _nearest(self, resource: Session, table: str, query: Query, vector: Vector, limit: int) -> Sequence[Hit]:
        """Ask the HNSW index."""
        sql, values = self._statement(resource, table, query)
        (wanted,) = _literals(query.vector[None]) if query.vector is not None else ("",)
        rows = resource.rows(
            f"""SELECT key, 1 - distance FROM (
                    SELECT key, embedding <=> %s::halfvec({vector.shape[0]}) AS distance FROM {sql}
                    ORDER BY distance LIMIT %s) AS found
                ORDER BY distance, key""",
            (wanted, *values, limit),
        )
        return query.hits(rows)

    def _statement(self, resource: Session, table: str, query: Query) -> tuple[str, list[Any]]:
        """Return the table and the condition for the rows of the collection that pass the filters, and its values."""
        values: list[Any] = [*resource.scope, query.collection]
        sql = f"{table} WHERE {_IN}"
        within = query.within
        if isinstance(within, SqlSelection) and within.session is resource and within.collection == query.collection:
            inner, more = within.subquery()
            return f"{sql} AND key IN ({inner})", [*values, *more]
        if within is not None:
            return f"{sql} AND key = ANY(%s)", [*values, within.keys().tolist()]
        return sql, values

    def _drop_orphans(self, resource: Session) -> None:
        """Remove tables of this agent that no collection uses any more, such as those before a rebuild."""
        rows = resource.rows(
            """SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
               AND relname ~ %s AND relname <> ALL (
                   SELECT own FROM vector_tables WHERE tenant = %s AND own IS NOT NULL)""",
            (f"^vectors_{resource.tenant}_[0-9]+$", resource.tenant),
        )
        for (name,) in rows:
            resource.run(f"DROP TABLE {name}")

    def _own_table(self, resource: Session, collection: str) -> str | None:
        sql = f"SELECT own FROM vector_tables WHERE {_IN}"
        own: str | None = resource.value(sql, (*resource.scope, collection))
        return own

    def _table(self, resource: Session, collection: str) -> str:
        return self._own_table(resource, collection) or "vectors"

    def _promote(self, resource: Session, collection: str, dimension: int, more: int) -> str | None:
        """Create a separate table with an HNSW index for a collection that becomes large; None if it stays small."""
        place = (*resource.scope, collection)
        if dimension > _MAX_INDEXED_DIMENSIONS:
            return None
        if not self._is_large(resource, place, more):
            return None
        resource.be_alone()
        own = self._own_table(resource, collection)
        if own is not None:  # another writer was quicker
            return own
        self._drop_orphans(resource)
        number = resource.value("SELECT nextval('vector_table_ids')")
        name = f"vectors_{resource.tenant}_{number}"
        resource.run(_OWN_TABLE.format(name=name, dimension=dimension))
        isolate(resource, name)
        distribute(resource)
        columns = "tenant, generation, collection, key, embedding"
        resource.run(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM vectors WHERE {_IN}", place)
        resource.run(f"DELETE FROM vectors WHERE {_IN}", place)
        options = f"m = {self.options.m}, ef_construction = {max(self.options.ef_construction, 2 * self.options.m)}"
        resource.run(
            f"CREATE INDEX {name}_nearest ON {name} USING hnsw (embedding halfvec_cosine_ops) WITH ({options})"
        )
        resource.run(
            """INSERT INTO vector_tables (tenant, generation, collection, dimension, own) VALUES (%s, %s, %s, %s, %s)
               ON CONFLICT (tenant, generation, collection) DO UPDATE SET own = excluded.own""",
            (*place, dimension, name),
        )
        return name

    def _is_large(self, resource: Session, place: tuple[int, int, str], more: int) -> bool:
        """Return whether a collection is too large with these to be compared one by one.

        To count takes time for each vector, so that is done again only once an eighth of what is left was added here.
        """
        most = self.options.exact_up_to
        held, added = self._counted.get(place, (most, most))
        if held + added + more > most or 8 * added > most - held:
            sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM vectors WHERE {_IN} LIMIT %s) AS held"
            held, added = resource.value(sql, (*place, most + 1)), 0
        self._counted[place] = held, added + more
        return held + added + more > most


def _create(resource: Session) -> None:
    resource.run(_TABLES)
    isolate(resource, "vectors", "vector_tables")


def _literals(vectors: Matrix) -> list[str]:
    """Return each row as pgvector reads it."""
    halves = np.asarray(vectors, np.float16).astype(np.float32)
    return [f"[{','.join(map(repr, row))}]" for row in halves.tolist()]
