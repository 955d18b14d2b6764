"""How the embedding cache keeps a vector: half precision, which moves cosines by some hundred-thousandths."""

from __future__ import annotations

from klaw_core import Vector

#: The column, NULL where it holds no blob: SQLite keeps a value of any type, and text that is none cannot even be read.
VECTOR_COLUMN = "iif(typeof(vector) = 'blob', vector, NULL)"

_BYTES = 2
# An embedder's vectors are of unit length to a thousandth, and half precision moves that by half as much.
_UNIT_TOLERANCE = 2e-3


def encode_vector(vector: Vector) -> bytes:
    """Return a unit vector as the cache keeps it."""
    return vector.astype("<f2").tobytes()


def decode_vector(blob: object, dimension: int) -> Vector | None:
    """Return the vector that a row of the cache holds, of unit length again; None if the row is damaged."""
    import numpy as np

    if not isinstance(blob, bytes) or len(blob) != dimension * _BYTES:
        return None
    vector = np.frombuffer(blob, "<f2").astype(np.float32)
    length = np.linalg.norm(vector)
    if not abs(length - 1.0) <= _UNIT_TOLERANCE:  # nor if it is no number
        return None
    return np.asarray(vector / length, dtype=np.float32)
