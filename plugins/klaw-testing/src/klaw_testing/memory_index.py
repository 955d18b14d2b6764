"""Two indexes of the in-memory store: exact cosine similarity, and BM25 over whole words.

They are simple and complete rather than fast: for small collections, and as a reference in tests.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from klaw_core import Hit, Index, Keys, Matrix, Migration, Query, StoredChunk, VectorSpace
from klaw_testing.memory_tables import Tables
from klaw_words.properties import described

_WORD = re.compile(r"\w+")
_UNIT_TOLERANCE = 1e-3
_K1, _B = 1.2, 0.75  # the constants of FTS5


class _MemoryIndex(Index[Tables]):
    """Rows by key in the store's tables, under the owner's name."""

    owner: str
    joins = Tables

    def migrations(self) -> Sequence[Migration[Tables]]:
        """Return none: the tables need no schema."""
        return ()

    def prepare(self, resource: Tables, /) -> None:
        """Do nothing: there is no connection to prepare."""

    def reset(self, resource: Tables, collection: str, _space: VectorSpace | None, /) -> None:
        """Make the collection's index empty."""
        resource.indexes[self.owner, collection] = {}

    def remove(self, resource: Tables, collection: str, keys: Sequence[int], /) -> None:
        """Remove the rows of these keys."""
        gone = set(keys)
        kept = {key: row for key, row in self._rows(resource, collection).items() if key not in gone}
        resource.indexes[self.owner, collection] = kept

    def keys(self, resource: Tables, collection: str, /) -> Keys:
        """Return every key in the index, ascending."""
        return np.array(sorted(self._rows(resource, collection)), dtype=np.int64)

    def _rows(self, resource: Tables, collection: str) -> Mapping[int, Any]:
        return resource.indexes.get((self.owner, collection), {})

    def _put(self, resource: Tables, collection: str, rows: Mapping[int, Any]) -> None:
        resource.indexes[self.owner, collection] = {**self._rows(resource, collection), **rows}

    def _allowed(self, resource: Tables, query: Query) -> dict[int, Any]:
        within = None if query.within is None else set(query.within.keys().tolist())
        rows = self._rows(resource, query.collection)
        return {key: row for key, row in rows.items() if within is None or key in within}


class CosineIndex(_MemoryIndex):
    """The retriever ``cosine``: every vector compared with the query's."""

    owner = "cosine"
    needs_vectors = True

    def add(self, resource: Tables, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /) -> None:
        """Add the vectors of these chunks."""
        if vectors is not None:
            keys = (stored.key for stored in chunks)
            self._put(resource, collection, dict(zip(keys, np.array(vectors), strict=True)))

    def lacking(self, resource: Tables, collection: str, chunks: Callable[[], int], /) -> int:
        """Return how many chunks have no vector."""
        return chunks() - len(self._rows(resource, collection))

    def check(self, resource: Tables, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Report how many vectors have a wrong dimension or are not of unit length."""
        rows = self._rows(resource, collection).values()
        wrong = sum(
            (space is not None and vector.shape != (space.dimension,))
            or not abs(float(np.linalg.norm(vector)) - 1.0) <= _UNIT_TOLERANCE  # also true for NaN
            for vector in rows
        )
        return (f"{wrong:,} of {len(rows):,} vectors are not unit vectors of the collection's space",) if wrong else ()

    def search(self, resource: Tables, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return the nearest chunks; the score is the cosine similarity."""
        rows = self._allowed(resource, query)
        if query.vector is None or not rows:
            return ()
        scores = np.stack(list(rows.values())) @ query.vector
        hits = (Hit(key, float(score)) for key, score in zip(rows, scores, strict=True))
        return _best(hits, limit)


class WordIndex(_MemoryIndex):
    """The retriever ``words``: Okapi BM25 (Robertson et al., TREC-3) over case-folded words, any of which may match."""

    owner = "words"
    needs_vectors = False

    def add(self, resource: Tables, collection: str, chunks: Sequence[StoredChunk], _vectors: Matrix | None, /) -> None:
        """Count the words of each chunk, including its headings and its context."""
        texts = {stored.key: _texts(stored) for stored in chunks}
        rows = {key: Counter(_words(" ".join(parts))) for key, parts in texts.items()}
        self._put(resource, collection, rows)

    def check(self, resource: Tables, collection: str, _space: VectorSpace | None, /) -> Sequence[str]:
        """Report how many chunks have invalid counts."""
        rows: Mapping[int, Counter[str]] = self._rows(resource, collection)
        wrong = sum(any(count < 1 for count in row.values()) for row in rows.values())
        return (f"{wrong:,} chunks have words that are not counted",) if wrong else ()

    def search(self, resource: Tables, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return the chunks with any of the query's words, ranked by BM25."""
        everything: Mapping[int, Counter[str]] = self._rows(resource, query.collection)
        wanted = dict.fromkeys(_words(query.text))
        if not everything or not wanted:
            return ()
        mean_length = sum(row.total() for row in everything.values()) / len(everything)
        weights = {word: _idf(len(everything), sum(word in row for row in everything.values())) for word in wanted}
        hits = [
            Hit(key, sum(weights[word] * _saturation(row, word, mean_length) for word in wanted if word in row))
            for key, row in self._allowed(resource, query).items()
        ]
        return _best((hit for hit in hits if hit.score > 0), limit)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _idf(documents: int, holding: int) -> float:
    return max(math.log((documents - holding + 0.5) / (holding + 0.5)), 1e-6)


def _saturation(row: Counter[str], word: str, mean_length: float) -> float:
    frequency = row[word]
    return frequency * (_K1 + 1) / (frequency + _K1 * (1 - _B + _B * row.total() / mean_length))


def _best(hits: Any, limit: int) -> Sequence[Hit]:
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.key))[:limit])


def _texts(stored: StoredChunk) -> tuple[str, ...]:
    """Return what is indexed of a chunk."""
    chunk = stored.chunk
    properties = (described(stored.metadata),) if chunk.title else ()
    return (*chunk.heading, chunk.text, chunk.context, *properties)
