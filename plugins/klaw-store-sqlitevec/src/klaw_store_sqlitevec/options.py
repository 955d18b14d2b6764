"""The options of the store ``sqlite`` and of the retriever ``sqlite-vec``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import field, frozen, validators

_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def _of_a_database(_instance: object, _attribute: Any, value: str) -> None:
    """Refuse the names of other files: ``klaw reindex`` replaces a file that SQLite cannot read by a new database."""
    if not Path(value).name.lower().endswith(_SUFFIXES):
        raise ValueError(f"path: {value!r}: the name of a database ends with {', '.join(_SUFFIXES[:-1])} or .sqlite3")


def _without_agent(_instance: object, _attribute: Any, value: str) -> None:
    if "{agent" in value.lower():
        raise ValueError(
            f"path: {value!r}: each agent has a data directory of its own, agents/NAME; leave {{agentId}} out"
        )


@frozen
class SqliteOptions:
    """Options of ``[memory.store] type = "sqlite"``.

    ``path`` is the database file (``.db``, ``.sqlite`` or ``.sqlite3``), relative to the data directory; each agent has
    a data directory of its own, so ``{agentId}`` in it is refused. A writer waits at most ``busy_timeout_seconds`` for
    another writer. ``compress`` compresses the texts of new chunks with zlib, so that other programs cannot read the
    column ``content``. Existing chunks stay as they are until a reindex.
    """

    path: str = field(default="klaw.db", validator=[_of_a_database, _without_agent])
    busy_timeout_seconds: float = field(default=5.0, validator=[validators.ge(0.0), validators.le(86_400.0)])
    compress: bool = False


@frozen
class VectorOptions:
    """Options of ``[[memory.retrieval]] type = "sqlite-vec"``.

    ``search`` determines how vectors are stored and searched: ``exact``, ``quantized`` (one bit per dimension to find
    candidates, int8 to rank them), or ``auto``: exact for at most ``exact_up_to`` chunks in a collection, quantized
    above that. At most ``memory_mb`` MiB of quantized vectors stay in RAM between searches.
    """

    search: str = field(default="auto", validator=validators.in_(("auto", "exact", "quantized")))
    exact_up_to: int = field(default=2_000, validator=validators.ge(0))
    memory_mb: int = field(default=128, validator=validators.ge(0))
