"""A configuration whose store is PostgreSQL. Nothing of Klaw is imported, so that any version of it can use this."""

from typing import Any

from attrs import evolve


def in_postgres(config: Any, dsn: str, schema: str) -> Any:
    """Return a configuration with tables in a schema of a database."""
    vectors, words = config.retrieval
    store = evolve(config.store, type="postgres", options={"dsn": dsn, "schema": schema})
    retrieval = evolve(vectors, type="pgvector", options={}), evolve(words, type="pgwords", options={})
    return evolve(config, store=store, retrieval=retrieval)
