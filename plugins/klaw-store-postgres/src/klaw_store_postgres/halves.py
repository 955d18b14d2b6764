"""Vectors as the server takes them: an array of pgvector's ``halfvec`` in PostgreSQL's binary form.

As text, the client takes longer to write them and the server to read them than everything else of a vector takes.
"""

from __future__ import annotations

from struct import pack

import numpy as np
from attrs import frozen
from psycopg.adapt import Dumper
from psycopg.pq import Format

from klaw_core import Matrix


@frozen(eq=False)
class HalfVectors:
    """The vectors, and the number (OID) of their type in this database."""

    type: int
    vectors: Matrix


class HalfVectorsDumper(Dumper):
    """Writes them: the head of an array, and each vector as its bytes, its dimension, two bytes of nothing, its halves.

    The formats are those of ``array_recv`` of PostgreSQL and of ``halfvec_recv`` of pgvector.
    """

    format = Format.BINARY

    def dump(self, obj: HalfVectors) -> bytes:
        """Return the array."""
        count, dimension = obj.vectors.shape
        element = np.dtype([("size", ">i4"), ("dimension", ">i2"), ("unused", ">i2"), ("halves", ">f2", (dimension,))])
        rows = np.zeros(count, element)
        rows["size"], rows["dimension"], rows["halves"] = 4 + 2 * dimension, dimension, obj.vectors
        return pack("!iiIii", 1, 0, obj.type, count, 1) + rows.tobytes()
