"""The index ``sqlite-vec``. Code that needs numpy is in :mod:`klaw_store_sqlitevec.vector_storage`.

Every command that opens a memory creates the index, but few use it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from klaw_core import Index, RetrievalError
from klaw_store_sqlitevec.quantized_schema import MIGRATIONS

if TYPE_CHECKING:
    from klaw_core import Hit, KeyDigest, Keys, Matrix, Migration, Query, StoredChunk, VectorSpace
    from klaw_store_sqlitevec.vector_storage import VectorStorage


class VectorIndex(Index[apsw.Connection]):
    """Stores vectors according to ``search``: exact, quantized, or (auto) quantized above ``exact_up_to`` chunks.

    At most ``memory_mb`` MiB of quantized vectors are cached in RAM. One object serves all connections to a file. If
    vec0 does not load, added vectors are quantized, and those in vec0 tables are compared one by one.
    """

    joins = apsw.Connection
    needs_vectors = True

    def __init__(self, search: str = "auto", exact_up_to: int = 2_000, memory_mb: int = 128) -> None:
        self._options = (search, exact_up_to, memory_mb)
        self._problem = ""

    @property
    def limitation(self) -> str:
        """Why vec0 does not load, and how to fix it; empty if it loads."""
        return self._problem

    @cached_property
    def storage(self) -> VectorStorage:
        """The storage, with its cache in RAM."""
        from klaw_store_sqlitevec.vector_storage import VectorStorage

        return VectorStorage(*self._options, has_vec0=not self._problem)

    def migrations(self) -> Sequence[Migration[apsw.Connection]]:
        """Return the migrations for quantized vectors. A vec0 table needs a dimension, so ``reset`` creates it."""
        return MIGRATIONS

    def prepare(self, resource: apsw.Connection, /) -> None:
        """Load vec0, or record why it does not load. The SQL function load_extension() stays disabled."""
        if self._problem:
            return
        try:
            resource.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1)
            resource.load_extension(str(_extension()))
        except (apsw.ExtensionLoadingError, AttributeError, RetrievalError) as error:
            from klaw_core import reinstall_command

            fix = reinstall_command("sqlite-vec")
            self._problem = f"does without the SQLite extension vec0, which does not load: {error}; fix: {fix}"
        finally:
            resource.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)

    def reset(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> None:
        """Empty the collection's tables, and prepare them for vectors of ``space`` (None: no vectors)."""
        self.storage.reset(resource, collection, space)

    def add(
        self, resource: apsw.Connection, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /
    ) -> None:
        """Add one vector per chunk. Raise RetrievalError if the collection was not :meth:`reset` yet."""
        self.storage.add(resource, collection, chunks, vectors)

    def remove(self, resource: apsw.Connection, collection: str, keys: Sequence[int], /) -> None:
        """Remove the vectors of these keys; unknown keys are ignored."""
        self.storage.remove(resource, collection, keys)

    def keys(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return every key in the index, ascending."""
        return self.storage.keys(resource, collection)

    def outdated(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return the keys that are still quantized although the search is exact; the core adds them again."""
        return self.storage.outdated(resource, collection)

    def key_digest(self, resource: apsw.Connection, collection: str, /) -> KeyDigest | None:
        """Return the digest of :meth:`keys`, or None if any is :meth:`outdated`."""
        return self.storage.key_digest(resource, collection)

    def lacking(self, resource: apsw.Connection, collection: str, chunks: Callable[[], int], /) -> int:
        """Return how many chunks have no vector."""
        return chunks() - self.storage.count(resource, collection)

    def check(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return the problems of the tables and vectors, which are read without vec0."""
        return self.storage.check(resource, collection, space)

    def search(self, resource: apsw.Connection, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return the nearest chunks; the score is the cosine similarity. Raise RetrievalError."""
        return self.storage.search(resource, query, limit)


def _extension() -> Path:
    """Return the extension's path without importing sqlite_vec, which would import all of numpy."""
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        raise RetrievalError("the package sqlite-vec is not installed")
    return Path(spec.submodule_search_locations[0]) / "vec0"
