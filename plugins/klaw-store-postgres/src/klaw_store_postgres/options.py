"""The options of the store ``postgres`` and of the retrievers ``pgvector`` and ``pgwords``."""

from __future__ import annotations

from attrs import field, frozen, validators

_is_weight = validators.and_(validators.ge(0.0), validators.le(1000.0))
_is_name = validators.matches_re(r"(?!pg_)[a-z_][a-z0-9_]{0,39}")  # PostgreSQL reserves the others


@frozen
class PostgresOptions:
    """Options of ``[memory.store] type = "postgres"``.

    ``dsn`` is a connection string of libpq (``postgresql://user@host/database?sslmode=verify-full``); empty, the
    variables ``PGHOST``, ``PGDATABASE`` and so on say where. Tables are in the schema ``schema``. A process keeps
    at most ``pool_size`` connections to one ``dsn``, whatever the number of agents; locks take one more each while
    they are held. ``timeout_seconds`` is how long is waited for a connection, for another writer of the same
    agent, and for the server to come back. With ``distributed = "citus"``, the tables are spread over the workers of
    a cluster, by agent. ``read_dsn`` names a streaming replica on which indexes are searched.
    """

    dsn: str = field(default="", repr=False)
    schema: str = field(default="klaw", validator=_is_name)
    pool_size: int = field(default=8, validator=[validators.ge(2), validators.le(1000)])
    timeout_seconds: float = field(default=10.0, validator=[validators.gt(0.0), validators.le(86_400.0)])
    read_dsn: str = field(default="", repr=False)
    distributed: str = field(default="", validator=validators.in_(("", "citus")))


@frozen
class PgVectorOptions:
    """Options of ``type = "pgvector"``.

    Up to ``exact_up_to`` chunks of a collection are compared one by one; from then on an HNSW index finds candidates:
    ``m`` and ``ef_construction`` say how it is built, ``ef_search`` how many candidates a search looks at at least.
    """

    exact_up_to: int = field(default=20_000, validator=validators.ge(0))
    m: int = field(default=16, validator=[validators.ge(2), validators.le(100)])
    ef_construction: int = field(default=64, validator=[validators.ge(4), validators.le(1000)])
    ef_search: int = field(default=100, validator=[validators.ge(1), validators.le(1000)])


@frozen
class PgWordsOptions:
    """Options of ``type = "pgwords"``: those of ``fts5`` that concern the order.

    ``heading_weight``, ``text_weight`` and ``context_weight`` are the weights of a word in a chunk's headings, in its
    text and in its context. ``pair_weight`` is the additional weight of two neighbouring words of the question that are
    next to each other in the chunk; with 0, pairs are not searched.
    """

    heading_weight: float = field(default=3.0, validator=_is_weight)
    text_weight: float = field(default=1.0, validator=_is_weight)
    context_weight: float = field(default=0.5, validator=_is_weight)
    pair_weight: float = field(default=0.25, validator=_is_weight)
