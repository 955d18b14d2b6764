"""The hooks. apsw and numpy are imported by the factories."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from attrs import field, frozen, validators

from klaw_core import Component, ComponentContext, Index, Store, hookimpl

if TYPE_CHECKING:
    import apsw


@frozen
class SqliteOptions:
    """Options of ``[memory.store] type = "sqlite"``.

    ``path`` is the database file, relative to the data directory. A writer waits ``busy_timeout_seconds``
    for another one before it gives up.
    """

    path: str = "klaw.db"
    busy_timeout_seconds: float = field(default=5.0, validator=[validators.ge(0.0), validators.le(86_400.0)])


@frozen
class VectorOptions:
    """Options of ``[[memory.retrieval]] type = "sqlite-vec"``.

    ``search`` says how vectors are kept and searched: ``exact``, ``quantized`` (a bit a dimension to find candidates
    by, int8 to rank them by), or ``auto``: exact while a collection has at most ``exact_up_to`` chunks, quantized from
    then on. Of quantized vectors at most ``memory_mb`` MiB stay in RAM between searches.
    """

    search: str = field(default="auto", validator=validators.in_(("auto", "exact", "quantized")))
    exact_up_to: int = field(default=2_000, validator=validators.ge(0))
    memory_mb: int = field(default=128, validator=validators.ge(0))


@hookimpl
def klaw_stores() -> Iterable[Component[SqliteOptions, "Store[apsw.Connection]"]]:
    """Yield the store."""
    yield Component(
        "sqlite", SqliteOptions, _store, 2, "one SQLite file, through apsw", retrievers=("sqlite-vec", "fts5")
    )


@hookimpl
def klaw_retrievers() -> Iterable[Component[VectorOptions, "Index[apsw.Connection]"]]:
    """Yield the vector index."""
    yield Component(
        "sqlite-vec", VectorOptions, _index, 2, "nearest neighbours: exact with sqlite-vec's vec0, or quantized"
    )


def _store(options: SqliteOptions, place: ComponentContext) -> Any:
    from klaw_store_sqlitevec.store import SqliteStore

    return SqliteStore(place.data_dir / options.path, busy_timeout_seconds=options.busy_timeout_seconds)


def _index(options: VectorOptions, _place: ComponentContext) -> Any:
    from klaw_store_sqlitevec.vectors import VectorIndex

    return VectorIndex(options.search, options.exact_up_to, options.memory_mb)
