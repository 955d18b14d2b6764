"""Vectors for texts: computed in calls of a size that shows progress, and never taken unchecked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from klaw_core.errors import PluginContractError, VectorSpaceError
from klaw_core.interfaces import Embedder
from klaw_core.values import Matrix, SpaceRecord, Vector, VectorSpace

#: Embedded once, when an index is made; its vector proves later that an embedder is still in the same space.
PROBE = "The quick brown fox jumps over the lazy dog; Съешь ещё этих мягких французских булок; 天地玄黄，宇宙洪荒。"

# How many texts go to the embedder in one call: enough to sort by length, few enough to show progress.
_CALL = 64
_UNIT_TOLERANCE = 1e-3


def embed_passages(passages: Mapping[str, str], embedder: Embedder) -> Iterator[dict[str, Vector]]:
    """Embed texts by their hash; yield the vectors of one call to the embedder at a time.

    Raise EmbeddingError, or PluginContractError if the embedder breaks its Protocol.
    """
    # Similar lengths side by side waste no padding; the hash makes the order independent of the files'.
    digests = sorted(passages, key=lambda digest: (len(passages[digest]), digest))
    for first in range(0, len(digests), _CALL):
        part = digests[first : first + _CALL]
        matrix = embedder.embed_documents([passages[digest] for digest in part])
        check_vectors(matrix, len(part), embedder.space)
        yield dict(zip(part, matrix, strict=True))


def embed_question(text: str, embedder: Embedder) -> Vector:
    """Embed a query. Raise EmbeddingError, or PluginContractError if the embedder breaks its Protocol."""
    import numpy as np

    vector = embedder.embed_query(text)
    check_vectors(np.asarray(vector)[None], 1, embedder.space)
    return vector


def check_vectors(matrix: Matrix, count: int, space: VectorSpace) -> None:
    """Raise PluginContractError unless ``matrix`` is float32, (count, dimension), with rows of unit length.

    vec0 accepts NaN and zero vectors and answers wrongly later; here the embedder can still be named.
    """
    import numpy as np

    wanted = (count, space.dimension)
    shape, dtype = getattr(matrix, "shape", None), getattr(matrix, "dtype", None)
    if shape != wanted or dtype != np.float32:
        raise PluginContractError(
            f"the embedder of {space.model} returned {dtype} of shape {shape}, expected float32 of shape {wanted}"
        )
    lengths = np.linalg.norm(matrix, axis=1)
    wrong = np.flatnonzero(~(np.abs(lengths - 1.0) <= _UNIT_TOLERANCE))  # also true of NaN
    if wrong.size:
        raise PluginContractError(
            f"the embedder of {space.model} returned a vector of length {lengths[wrong[0]]:.4g}, expected 1"
        )


def make_space_record(embedder: Embedder) -> SpaceRecord:
    """Embed the probe and return the record that an index keeps of its vector space."""
    vectors = next(embed_passages({"probe": PROBE}, embedder))
    return SpaceRecord(embedder.space, vectors["probe"])


def require_same_space(record: SpaceRecord, embedder: Embedder, collection: str) -> None:
    """Raise VectorSpaceError if the collection was indexed in another space than the embedder's."""
    if record.space != embedder.space:
        raise VectorSpaceError(
            f"the collection {collection!r} was indexed with {record.space}; "
            f"the configured embedder is {embedder.space}",
            hint="`klaw reindex` embeds everything anew, or set memory.embedding back",
        )


def stack(digests: Sequence[str], vectors: Mapping[str, Vector]) -> Matrix:
    """Return the vectors of these hashes as one float32 matrix, row i for hash i."""
    import numpy as np

    return np.stack([vectors[digest] for digest in digests]).astype(np.float32, copy=False)
