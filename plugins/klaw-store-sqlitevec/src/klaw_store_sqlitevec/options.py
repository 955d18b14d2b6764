"""The options of the store ``sqlite`` and of the retriever ``sqlite-vec``."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class SqliteOptions:
    """Options of ``[memory.store] type = "sqlite"``.

    ``path`` is the database file, relative to the data directory. A writer waits ``busy_timeout_seconds``
    for another one before it gives up. ``compress`` keeps the text of new chunks compressed with zlib: other programs
    cannot read it in the column ``content`` then. Chunks that are there already stay as they are until a reindex.
    """

    path: str = "klaw.db"
    busy_timeout_seconds: float = field(default=5.0, validator=[validators.ge(0.0), validators.le(86_400.0)])
    compress: bool = False


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
