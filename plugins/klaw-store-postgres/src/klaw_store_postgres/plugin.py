"""Loaded by Klaw: the store ``postgres``, the retrievers ``pgvector`` and ``pgwords``. The factories import psycopg."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from klaw_core import Component, ComponentContext, hookimpl
from klaw_store_postgres.options import PgVectorOptions, PgWordsOptions, PostgresOptions


@hookimpl
def klaw_stores() -> Iterable[Component[Any, Any]]:
    """Yield the store."""
    yield Component(
        "postgres",
        PostgresOptions,
        _store,
        2,
        "PostgreSQL with pgvector: several machines, agents kept apart",
        retrievers=("pgvector", "pgwords"),
        keeps_journals=True,
    )


@hookimpl
def klaw_retrievers() -> Iterable[Component[Any, Any]]:
    """Yield the vector index and the full-text index."""
    yield Component("pgvector", PgVectorOptions, _vectors, 2, "nearest neighbours in PostgreSQL: exact, then HNSW")
    yield Component("pgwords", PgWordsOptions, _words, 2, "full-text search with BM25 in PostgreSQL")


def _store(options: PostgresOptions, place: ComponentContext) -> Any:
    from klaw_store_postgres.store import PostgresStore

    return PostgresStore(options, agent=place.agent, replace_damaged=place.replace_damaged)


def _vectors(options: PgVectorOptions, _place: ComponentContext) -> Any:
    from klaw_store_postgres.vectors import VectorIndex

    return VectorIndex(options)


def _words(options: PgWordsOptions, _place: ComponentContext) -> Any:
    from klaw_store_postgres.words.index import WordIndex

    return WordIndex(options)
