"""The storage of a collection's vectors: exact, in a vec0 table, or quantized.

A vector is in one of the two; a search uses both and merges the results. So a collection moves from one storage to the
other in the transactions that add to it. Quantizing moves all vectors at once. Moving to vec0 needs the original
vectors, so it happens vector by vector, as the core adds them again.
"""

from collections.abc import Sequence
from operator import itemgetter

import apsw
import numpy as np

from klaw_core import Hit, KeyDigest, Keys, Matrix, Query, RetrievalError, StoredChunk, Vector, VectorSpace
from klaw_store_sqlitevec import exact, quantized
from klaw_store_sqlitevec.errors import damaged_vectors
from klaw_store_sqlitevec.quantized.cache import SegmentCache
from klaw_store_sqlitevec.samples import SampleCache

_MAX_NEIGHBOURS = 4096  # vec0 rejects a larger k
# The size of the sample for a typical similarity, and its minimum: in a smaller collection each may be an answer, and
# the similarity of the question to a sentence about nothing takes its place.
_SAMPLED, _MIN_SAMPLED = 256, 8


class VectorStorage:
    """Adds, removes, finds and checks vectors, for :class:`~klaw_store_sqlitevec.vectors.VectorIndex`.

    Without vec0, added vectors are quantized, and so is a vec0 table when a vector is removed from it.
    """

    def __init__(self, search: str, exact_up_to: int, memory_mb: int, *, has_vec0: bool) -> None:
        self._has_vec0 = has_vec0
        self._search = search if has_vec0 else "quantized"
        self._exact_up_to = exact_up_to
        self._cache = SegmentCache(memory_mb << 20)
        self._samples = SampleCache(_SAMPLED)

    def reset(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> None:
        """Empty the collection's tables and prepare them for vectors of ``space``; None leaves it without."""
        self._drop_exact(resource, collection)
        quantized.drop_quantization(resource, collection)
        if space is None:
            return
        if self._search == "quantized":
            quantized.create_quantization(resource, collection, space.dimension, None)
        else:
            exact.make(resource, collection, space.dimension)

    def add(
        self, resource: apsw.Connection, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /
    ) -> None:
        """Add one vector per chunk. Raise RetrievalError if the collection was not :meth:`reset` yet."""
        if vectors is None or not chunks:
            return
        quantization = quantized.read_quantization(resource, collection)
        has_table = self._has_table(resource, collection)
        if quantization is None and not has_table:
            raise RetrievalError(f"the index of {collection!r} has no table for vectors", hint="klaw doctor --fix")
        keys = [stored.key for stored in chunks]
        if self._quantizes(resource, collection, quantization, len(keys)):
            if has_table or quantization is None:
                quantization = self._convert(resource, collection, quantization, vectors.shape[1])
            quantized.add(resource, collection, quantization, keys, vectors)
            return
        if (
            has_table
            and quantization is not None
            and exact.declared_dimension(resource, collection) != vectors.shape[1]
        ):
            exact.drop(resource, collection)  # a table that was emptied without vec0
            has_table = False
        if not has_table:
            exact.make(resource, collection, vectors.shape[1])
        exact.add(resource, collection, keys, vectors)
        if quantization is not None and not quantized.count(resource, collection):
            quantized.drop_quantization(resource, collection)

    def remove(self, resource: apsw.Connection, collection: str, keys: Sequence[int], /) -> None:
        """Remove the vectors of these keys; unknown keys are ignored."""
        if not keys:
            return
        if self._has_table(resource, collection):
            if self._has_vec0:
                exact.remove(resource, collection, keys)
            else:
                self._convert_all(resource, collection)
        quantized.remove(resource, collection, keys)

    def keys(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return every key in the index, ascending."""
        found = [quantized.read_keys(resource, collection)]
        if exact.exists(resource, collection):
            found.append(exact.read_keys(resource, collection))
        return np.sort(np.concatenate(found))

    def outdated(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return the keys that are still quantized although the search is configured to be exact, ascending."""
        return quantized.read_keys(resource, collection)[: None if self._search == "exact" else 0]

    def key_digest(self, resource: apsw.Connection, collection: str, /) -> KeyDigest | None:
        """Return the digest of :meth:`keys`, None if any is outdated; a vector is in one of the two storages."""
        found = quantized.key_digest(resource, collection)
        if found.count and self._search == "exact":
            return None
        return found + exact.key_digest(resource, collection) if exact.exists(resource, collection) else found

    def count(self, resource: apsw.Connection, collection: str, /) -> int:
        """Return the number of vectors."""
        found = quantized.count(resource, collection)
        return found + exact.count(resource, collection) if exact.exists(resource, collection) else found

    def check(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return the problems of the tables and vectors, which are read without vec0."""
        from klaw_store_sqlitevec.exact_check import check_table
        from klaw_store_sqlitevec.quantized.check import check_quantized

        dimension = None if space is None else space.dimension
        problems = check_quantized(resource, collection, dimension)
        if self._has_table(resource, collection):
            return [*check_table(resource, collection, dimension), *problems]
        if space is not None and not problems and quantized.read_quantization(resource, collection) is None:
            return [f"it has no table for the vectors of {space}", *problems]
        return problems

    def search(self, resource: apsw.Connection, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return the nearest chunks; the score is the cosine similarity. Raise RetrievalError."""
        collection, within = query.collection, query.within
        limit = min(limit, _MAX_NEIGHBOURS)
        if query.vector is None or limit < 1 or (within is not None and within.is_empty):
            return ()
        try:
            return self._hits(resource, query, limit)
        except (apsw.Error, TypeError, ValueError, IndexError) as error:  # from numpy, if the stored data is invalid
            raise damaged_vectors(f"the vectors of {collection!r} could not be searched: {error}") from error

    def _hits(self, resource: apsw.Connection, query: Query, limit: int) -> list[Hit]:
        """Return the nearest of both storages, best first, ties by key."""
        quantization = quantized.read_quantization(resource, query.collection)
        found = [] if quantization is None else quantized.search(resource, self._cache, quantization, query, limit)
        has_table = self._has_table(resource, query.collection)
        if has_table and query.vector is not None:
            find = exact.search if self._has_vec0 else exact.scan
            found += find(resource, query, query.vector, limit)
            found.sort()
            found.sort(key=itemgetter(1), reverse=True)
            del found[limit:]
        if not found:
            return []
        typical = None
        if quantization is not None:
            sizes = (_MIN_SAMPLED, _SAMPLED)
            typical = quantized.typical_similarity(resource, self._cache, quantization, query, sizes)
        if typical is None and has_table and query.vector is not None:
            sample = self._samples.get(resource, query.collection, len(query.vector))
            typical = _median(sample @ query.vector) if len(sample) >= _MIN_SAMPLED else None
        return query.hits(found, typical)

    def _has_table(self, resource: apsw.Connection, collection: str) -> bool:
        """Return whether there is a vec0 table; without vec0, which is needed to drop one, whether it has content."""
        return exact.exists(resource, collection) and (self._has_vec0 or exact.count(resource, collection) > 0)

    def _drop_exact(self, resource: apsw.Connection, collection: str) -> None:
        if self._has_vec0:
            exact.drop(resource, collection)
        elif exact.exists(resource, collection):
            exact.empty(resource, collection)

    def _convert_all(self, resource: apsw.Connection, collection: str) -> None:
        """Quantize a vec0 table with its declared dimension."""
        dimension = exact.declared_dimension(resource, collection)
        if dimension is None:
            raise damaged_vectors(f"the vectors of {collection!r} are damaged")
        quantization = quantized.read_quantization(resource, collection)
        self._convert(resource, collection, quantization, dimension)

    def _convert(
        self,
        resource: apsw.Connection,
        collection: str,
        quantization: quantized.Quantization | None,
        dimension: int,
    ) -> quantized.Quantization:
        """Quantize every vector of the vec0 table, and remove the table."""
        has_table = exact.exists(resource, collection)
        if quantization is None:
            centre = _centre(resource, collection, dimension) if has_table else None
            quantization = quantized.create_quantization(resource, collection, dimension, centre)
        if has_table:
            for keys, vectors in exact.read_vectors(resource, collection, dimension):
                quantization = quantized.add(resource, collection, quantization, keys.tolist(), vectors)
            self._drop_exact(resource, collection)
        return quantization

    def _quantizes(
        self, resource: apsw.Connection, collection: str, quantization: quantized.Quantization | None, more: int
    ) -> bool:
        """Return whether ``more`` vectors are added quantized."""
        if self._search != "auto":
            return self._search == "quantized"
        return quantization is not None or exact.count(resource, collection) + more > self._exact_up_to


def _median(values: Vector) -> float:
    """Return the median. numpy's ``median`` takes five times as long for so few values."""
    middle = len(values) // 2
    low, high = np.partition(values, (middle - 1, middle))[middle - 1 : middle + 1]
    return float(high if len(values) % 2 else (low + high) / np.float32(2))


def _centre(resource: apsw.Connection, collection: str, dimension: int) -> Vector | None:
    """Return the mean of the vec0 table's vectors, or None if there are too few."""
    count, sums = 0, np.zeros(dimension)
    for keys, vectors in exact.read_vectors(resource, collection, dimension):
        count += len(keys)
        sums += vectors.sum(axis=0, dtype=np.float64)
    return (sums / count).astype(np.float32) if count >= quantized.MIN_FOR_CENTRE else None
