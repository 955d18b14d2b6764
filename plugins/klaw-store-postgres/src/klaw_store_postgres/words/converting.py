"""Convert the postings of earlier versions, which had a table row for each term of a segment, to blocks."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from klaw_store_postgres.words.blocks import COLUMN_BITS, SPOT_BITS, Postings
from klaw_store_postgres.words.segments import write_blocks

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

# In earlier versions a place was one number: the row, the column and the position.
_POSITION_BITS = 20
_COLUMNS = (1 << COLUMN_BITS) - 1


def convert(session: Session) -> None:
    """Write the blocks of every segment."""
    owners = session.rows("SELECT DISTINCT tenant, generation, collection, segment FROM word_postings")
    for owner in owners:
        rows = session.rows(
            """SELECT term, places FROM word_postings
               WHERE tenant = %s AND generation = %s AND collection = %s AND segment = %s ORDER BY term""",
            owner,
        )
        parts: list[Any] = [np.frombuffer(blob, "<i8") for _, blob in rows]
        places = np.concatenate(parts)
        spots = (places & ((1 << _POSITION_BITS) - 1)) << COLUMN_BITS | (places >> _POSITION_BITS) & _COLUMNS
        numbers = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        # The places of a row were sorted by column, and are now sorted by position.
        whole = places >> SPOT_BITS
        order = np.lexsort((spots, whole, numbers))
        write_blocks(
            session,
            owner,
            Postings(
                [bytes(term) for term, _ in groupby(rows, key=itemgetter(0))],
                np.array([len(part) for part in parts], np.int64),
                whole[order].astype(np.int32),
                spots[order].astype(np.uint32),
            ),
        )
