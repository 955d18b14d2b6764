"""The hooks for the store ``sqlite`` and the retriever ``sqlite-vec``; only the factories import apsw and numpy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from klaw_core import Component, ComponentContext, Index, Store, hookimpl
from klaw_store_sqlitevec.options import SqliteOptions, VectorOptions

if TYPE_CHECKING:
    import apsw


@hookimpl
def klaw_stores() -> Iterable[Component[SqliteOptions, Store[apsw.Connection]]]:
    """Yield the store."""
    yield Component(
        "sqlite", SqliteOptions, _store, 2, "one SQLite file, through apsw", retrievers=("sqlite-vec", "fts5")
    )


@hookimpl
def klaw_retrievers() -> Iterable[Component[VectorOptions, Index[apsw.Connection]]]:
    """Yield the vector index."""
    yield Component(
        "sqlite-vec", VectorOptions, _index, 2, "nearest neighbours: exact with sqlite-vec's vec0, or quantized"
    )


def _store(options: SqliteOptions, context: ComponentContext) -> Any:
    from klaw_store_sqlitevec.store import SqliteStore

    path = context.data_dir / options.path
    return SqliteStore(
        path,
        busy_timeout_seconds=options.busy_timeout_seconds,
        compress=options.compress,
        replace_damaged=context.replace_damaged,
    )


def _index(options: VectorOptions, _context: ComponentContext) -> Any:
    from klaw_store_sqlitevec.vectors import VectorIndex

    return VectorIndex(options.search, options.exact_up_to, options.memory_mb)
