"""The format of vectors in the embedding cache: half precision, which changes cosines by some hundred-thousandths."""

from __future__ import annotations

from klaw_core import Vector

#: The column, NULL for a value that is not a blob: SQLite stores values of any type, and invalid text cannot be read.
VECTOR_COLUMN = "iif(typeof(vector) = 'blob', vector, NULL)"

_BYTES = 2
# An embedder's vectors are of unit length within .001, and half precision adds half as much.
_UNIT_TOLERANCE = 2e-3


def encode_vector(vector: Vector) -> bytes:
    """Return a unit vector in the format of the cache."""
    return vector.astype("<f2").tobytes()


def decode_vector(blob: object, dimension: int) -> Vector | None:
    """Return the vector of a row of the cache, normalised again; None if the row is damaged."""
    import numpy as np

    if not isinstance(blob, bytes) or len(blob) != dimension * _BYTES:
        return None
    vector = np.frombuffer(blob, "<f2").astype(np.float32)
    if not np.isfinite(vector).all():  # numpy warns if it calculates with some of the other values
        return None
    length = np.linalg.norm(vector)
    if abs(length - 1.0) > _UNIT_TOLERANCE:
        return None
    return np.asarray(vector / length, dtype=np.float32)
