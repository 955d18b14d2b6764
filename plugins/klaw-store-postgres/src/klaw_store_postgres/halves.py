"""Send vectors as an array of pgvector's ``halfvec`` in PostgreSQL's binary format.

In text format, writing and parsing the numbers costs more than everything else that is done with a vector.
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
    """Vectors, and the OID of their type in this database."""

    type: int
    vectors: Matrix


class HalfVectorsDumper(Dumper):
    """Writes an array header, then for each vector its byte length, its dimension, two zero bytes and its halves.

    The formats are those of PostgreSQL's ``array_recv`` and of pgvector's ``halfvec_recv``.
    """

    format = Format.BINARY

    def dump(self, obj: HalfVectors) -> bytes:
        """Return the array."""
        count, dimension = obj.vectors.shape
        element = np.dtype([("size", ">i4"), ("dimension", ">i2"), ("unused", ">i2"), ("halves", ">f2", (dimension,))])
        rows = np.zeros(count, element)
        rows["size"], rows["dimension"], rows["halves"] = 4 + 2 * dimension, dimension, obj.vectors
        return pack("!iiIii", 1, 0, obj.type, count, 1) + rows.tobytes()
