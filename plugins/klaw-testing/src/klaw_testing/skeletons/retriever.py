"""An index in the database of the store ``sqlite``: it finds the chunks that share most words with a question."""

from collections.abc import Iterable, Sequence

import apsw
import numpy as np
from attrs import frozen

from klaw_core import (
    Component,
    Hit,
    Index,
    Keys,
    Matrix,
    Migration,
    NoOptions,
    Query,
    StoredChunk,
    VectorSpace,
    hookimpl,
)

_TABLE = "CREATE TABLE skeleton_rows (collection TEXT, key INTEGER, text TEXT, PRIMARY KEY (collection, key))"


@frozen(eq=False)
class SkeletonIndex(Index[apsw.Connection]):
    """Reads every row of a collection for each question, so it is for some thousand chunks."""

    joins = apsw.Connection
    needs_vectors = False

    def migrations(self) -> Sequence[Migration[apsw.Connection]]:
        """Return the steps that create the table; never change one that was released, add another."""
        return (Migration("0001-rows", lambda connection: connection.execute(_TABLE)),)

    def prepare(self, connection: apsw.Connection, /) -> None:
        """Load nothing."""

    def reset(self, connection: apsw.Connection, collection: str, _space: VectorSpace | None, /) -> None:
        """Remove the rows of a collection."""
        connection.execute("DELETE FROM skeleton_rows WHERE collection = ?", (collection,))

    def add(
        self, connection: apsw.Connection, collection: str, chunks: Sequence[StoredChunk], _: Matrix | None, /
    ) -> None:
        """Add the texts of chunks."""
        rows = [(collection, chunk.key, _escaped(chunk.chunk.text)) for chunk in chunks]
        connection.executemany("INSERT INTO skeleton_rows VALUES (?, ?, ?)", rows)

    def remove(self, connection: apsw.Connection, collection: str, keys: Sequence[int], /) -> None:
        """Remove the rows of keys."""
        pairs = [(collection, int(key)) for key in keys]
        connection.executemany("DELETE FROM skeleton_rows WHERE collection = ? AND key = ?", pairs)

    def keys(self, connection: apsw.Connection, collection: str, /) -> Keys:
        """Return the keys, ascending."""
        found = connection.execute("SELECT key FROM skeleton_rows WHERE collection = ? ORDER BY key", (collection,))
        return np.array([key for (key,) in found], np.int64)

    def search(self, connection: apsw.Connection, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return the chunks with the most words of the question."""
        words = set(_escaped(query.text).lower().split())
        rows = connection.execute("SELECT key, text FROM skeleton_rows WHERE collection = ?", (query.collection,))
        found = {key: len(words & set(text.lower().split())) for key, text in rows}
        allowed = found.keys() if query.within is None else set(query.within.among(list(found)))
        best = sorted((-shared, key) for key, shared in found.items() if shared and key in allowed)
        return [Hit(key, -shared) for shared, key in best[:limit]]


def _escaped(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # SQLite stores no lone surrogates


@hookimpl
def klaw_retrievers() -> Iterable[Component[NoOptions, Index[apsw.Connection]]]:
    """Yield the index."""
    yield Component("skeleton", NoOptions, lambda _options, _context: SkeletonIndex(), api=2)
