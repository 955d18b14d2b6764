"""Check the packed form for damage, and compare it with FTS5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apsw
import numpy as np

from klaw_core import Keys
from klaw_fts5.errors import DAMAGE
from klaw_fts5.packed.blocks import Block, read_blocks, read_own, read_part, read_postings, read_rows
from klaw_fts5.packed.numbers import term_number
from klaw_fts5.packed.state import PackedState, read_state
from klaw_fts5.sql import Statements

_FIX = "search works without it; klaw reindex rebuilds it"
# The number of terms, spread evenly over the vocabulary, whose chunks are compared with FTS5's.
_SAMPLE = 50


def check_packed(connection: apsw.Connection, collection: str, sql: Statements, keys: Keys) -> Sequence[str]:
    """Return the problems of a collection's packed form, one line each, given FTS5's keys. Raise apsw.Error."""
    state = read_state(connection, collection)
    try:
        if state is not None:
            problems = list(_differences(connection, sql, state, keys))
        else:
            problems = ["rows without a record"] if read_blocks(connection, sql.packed) else []
    except DAMAGE as error:
        problems = [str(error)]
    return [f"the packed words of {collection!r} are damaged: {problem} ({_FIX})" for problem in problems]


def _differences(connection: apsw.Connection, sql: Statements, state: PackedState, keys: Keys) -> Iterator[str]:
    """Yield the differences. Raise DamagedError if a row cannot be read."""
    blocks = read_blocks(connection, sql.packed)
    rows = [read_rows(connection, sql.packed, block) for block in blocks]
    held = np.concatenate(
        [np.empty(0, np.int64), *(some.keys[block.living()] for block, some in zip(blocks, rows, strict=True))]
    )
    if len(np.unique(held)) != len(held) or len(held) != state.rows:
        yield f"{len(held)} rows, {len(np.unique(held))} of them different, where there should be {state.rows}"
    if len(np.setdiff1d(held, keys)) or len(keys) - len(held) != state.lacking:
        yield f"its rows are not those of the table, of which it should lack {state.lacking}"
    for block in blocks:
        total = sum(len(part.positions) for part in read_part(connection, sql.packed, block, 0, 1))
        if total != block.postings:
            yield f"{total} postings in a block of {block.postings}"
    if not state.lacking:
        yield from _terms_that_differ(connection, sql, blocks, [some.keys for some in rows])


def _terms_that_differ(
    connection: apsw.Connection, sql: Statements, blocks: Sequence[Block], keys: Sequence[Keys]
) -> Iterator[str]:
    """Compare the chunks of a sample of terms with FTS5's."""
    connection.execute(sql.vocabulary)
    try:
        terms = [term for (term,) in connection.execute(sql.sample_terms, (_SAMPLE,))]
        for term in terms:
            there = sorted(row for (row,) in connection.execute(sql.holders, (term,)))
            if there != _holders(connection, sql, blocks, keys, term_number(term)):
                yield "a sampled word is not in the chunks in which it is"
                return
    finally:
        connection.execute(sql.drop_vocabulary)


def _holders(
    connection: apsw.Connection, sql: Statements, blocks: Sequence[Block], keys: Sequence[Keys], term: int
) -> list[int]:
    """Return the keys of the live rows that contain a term."""
    own = read_own(connection, sql.packed, blocks, [term])
    found: list[int] = []
    lists = read_postings(connection, sql.packed, blocks, own)
    listed = np.split(lists.positions, np.cumsum(lists.sizes)[:-1])
    for block, some, positions in zip(blocks, keys, listed, strict=True):
        found += some[positions[block.living()[positions]]].tolist()
    return sorted(found)
