"""Update the packed form together with FTS5's rows, in the same transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

import apsw
import numpy as np
from attrs import field, frozen

from klaw_core import KeyDigest, Keys
from klaw_fts5.errors import DAMAGE
from klaw_fts5.packed.blocks import Block, read_blocks
from klaw_fts5.packed.cache import Cache
from klaw_fts5.packed.counting import TermCounter
from klaw_fts5.packed.postings import MAX_ROWS, distinct
from klaw_fts5.packed.state import PackedState, read_state, write_state
from klaw_fts5.packed.writing import merge, write_batch
from klaw_fts5.sql import DELETE_STATE, PackedStatements, Statements, statements

# Four blocks of similar size (within a factor of four) are merged. Of blocks of 256 to 1,023 rows, which an index run
# writes, eight are merged, into a block two sizes larger: there are no more blocks, and half as much is written.
_FAN = 4
_BATCH_SIZE, _BATCH_FAN = 4, 8
# A search reads each block for each word, so fewer blocks are faster. Blocks are compacted if this share of the result
# is dead or not in the largest block yet; for less, it is not worth writing all rows again.
_SCATTERED = 1 / 8
# A block with this share of dead rows is written again without them.
_DEAD = 0.25
# Rows per block that is written by `add`.
_BATCH = 4096

Columns = tuple[str, str, str]


@frozen(eq=False)
class PackedIndex:
    """Adds rows to the packed form and removes them.

    Rows that are only in FTS5 are counted as ``lacking``: those added with a configuration that packs nothing, and
    those added one by one to a small collection. FTS5 answers until they are added again. If the packed form is
    damaged, it is emptied, and all rows are lacking.
    """

    cache: Cache = field(factory=Cache)
    counter: TermCounter = field(factory=TermCounter)

    def add(self, connection: apsw.Connection, collection: str, rows: Sequence[tuple[int, Columns]]) -> None:
        """Add rows that were just added to FTS5."""
        if not rows:
            return
        sql = statements(collection)
        state = read_state(connection, collection)
        if state is None:
            state = self._start_over(connection, collection, len(rows))
        ordered = sorted(rows, key=lambda row: row[0])
        for start in range(0, len(ordered), _BATCH):
            batch = ordered[start : start + _BATCH]
            counted = self.counter.count([columns for _, columns in batch])
            write_batch(connection, sql.packed, [key for key, _ in batch], counted)
        write_state(connection, collection, state.rows + len(rows), state.lacking)
        self._merge_blocks(connection, collection)

    def remove(self, connection: apsw.Connection, collection: str, keys: Sequence[int]) -> None:
        """Remove rows, before they are removed from FTS5; unknown keys are ignored."""
        if not len(keys):
            return
        state = read_state(connection, collection)
        if state is None:
            self.reset(connection, collection)
            return
        sql = statements(collection)
        wanted = distinct(np.array(keys, dtype=np.int64))
        present = _present(connection, sql, wanted) if state.lacking else 0
        try:
            gone = sum(self._mark_dead(connection, sql, block, wanted) for block in read_blocks(connection, sql.packed))
        except DAMAGE:
            self._start_over(connection, collection, _present(connection, sql, wanted))
            return
        if gone or present:
            write_state(connection, collection, state.rows - gone, max(state.lacking - max(present - gone, 0), 0))

    def erase(self, connection: apsw.Connection, collection: str) -> None:
        """Erase removed rows: write the blocks that have dead rows again."""
        state = read_state(connection, collection)
        if state is None:
            self.reset(connection, collection)
            return
        sql = statements(collection).packed
        try:
            for block in read_blocks(connection, sql):
                if len(block.dead):
                    self._merge(connection, sql, [block])
        except DAMAGE:
            self._start_over(connection, collection)
        else:
            write_state(connection, collection, state.rows, state.lacking)

    def is_scattered(self, connection: apsw.Connection, collection: str) -> bool:
        """Return whether merging blocks is worth the time."""
        try:
            return any(_groups_to_compact(read_blocks(connection, statements(collection).packed)))
        except DAMAGE:  # the next search or check handles it
            return False

    def compact(self, connection: apsw.Connection, collection: str) -> None:
        """Merge blocks where that is worth the time."""
        state = read_state(connection, collection)
        if state is None:
            return
        sql = statements(collection).packed
        try:
            for blocks in list(_groups_to_compact(read_blocks(connection, sql))):
                self._merge(connection, sql, blocks)
        except DAMAGE:
            self._start_over(connection, collection)
        else:
            write_state(connection, collection, state.rows, state.lacking)

    def reset(self, connection: apsw.Connection, collection: str) -> None:
        """Remove the packed form."""
        connection.execute(statements(collection).packed.empty)
        connection.execute(DELETE_STATE, (collection,))

    def keys(self, connection: apsw.Connection, collection: str) -> Keys:
        """Return the keys in the packed form, ascending; none if there is no packed form."""
        if read_state(connection, collection) is None:
            return np.empty(0, np.int64)
        try:
            keys = self._live_keys(connection, collection)
        except DAMAGE:
            keys = []
        return distinct(np.concatenate([np.empty(0, np.int64), *keys]))

    def key_digest(self, connection: apsw.Connection, collection: str) -> KeyDigest | None:
        """Return the digest of :meth:`keys`; None if the packed form is damaged."""
        if read_state(connection, collection) is None:
            return KeyDigest()
        try:
            return sum(map(KeyDigest.of, self._live_keys(connection, collection)), KeyDigest())
        except DAMAGE:
            return None

    def _live_keys(self, connection: apsw.Connection, collection: str) -> list[Keys]:
        """Return the keys of the live rows of each block."""
        sql = statements(collection).packed
        return [self.cache.rows(connection, sql, block).keys[block.living()] for block in read_blocks(connection, sql)]

    def _mark_dead(self, connection: apsw.Connection, sql: Statements, block: Block, wanted: Keys) -> int:
        """Mark rows of a block as dead, and write the block again if too many are; return the number of marked rows."""
        inside = wanted[np.searchsorted(wanted, block.first) : np.searchsorted(wanted, block.last, side="right")]
        if not len(inside):
            return 0
        rows = self.cache.rows(connection, sql.packed, block)
        positions = np.searchsorted(rows.keys, inside)
        positions = positions[rows.keys[positions] == inside]
        positions = np.setdiff1d(positions, block.dead, assume_unique=True)
        if not len(positions):
            return 0
        dead = np.sort(np.concatenate((block.dead, positions))).astype("<u2")
        tokens = block.dead_tokens + int(rows.lengths[positions].sum())
        connection.execute(sql.packed.write_dead, (block.id, tokens, dead.tobytes()))
        if len(dead) >= _DEAD * block.rows:
            (now,) = (other for other in read_blocks(connection, sql.packed) if other.id == block.id)
            self._merge(connection, sql.packed, [now])
        return len(positions)

    def _merge_blocks(self, connection: apsw.Connection, collection: str) -> None:
        """Merge blocks until there are fewer of each size than are merged at once."""
        sql = statements(collection).packed
        try:
            while blocks := _blocks_to_merge(read_blocks(connection, sql)):
                self._merge(connection, sql, blocks)
        except DAMAGE:
            self._start_over(connection, collection)

    def _merge(self, connection: apsw.Connection, sql: PackedStatements, blocks: Sequence[Block]) -> None:
        merge(connection, sql, blocks)
        self.cache.drop(block.id for block in blocks)

    def _start_over(self, connection: apsw.Connection, collection: str, excluded: int = 0) -> PackedState:
        """Empty the packed form, and return its state, in which all rows of FTS5 except ``excluded`` are lacking."""
        sql = statements(collection)
        connection.execute(sql.packed.empty)
        lacking = int(connection.execute(sql.count).get) - excluded
        write_state(connection, collection, 0, lacking)
        return PackedState(0, lacking, b"")


def _present(connection: apsw.Connection, sql: Statements, keys: Keys) -> int:
    return int(connection.execute(sql.present, (apsw.carray(keys),)).get)


def _groups_to_compact(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield groups of blocks, each to be merged into one block that is as full as possible."""
    left = sorted(blocks, key=lambda block: -block.alive)
    while left:
        chosen: list[Block] = []
        others: list[Block] = []
        rows = 0
        for block in left:
            fits = rows + block.alive <= MAX_ROWS
            rows += block.alive if fits else 0
            (chosen if fits else others).append(block)
        left = others
        moved = rows - chosen[0].alive + sum(len(block.dead) for block in chosen)
        if moved and moved >= _SCATTERED * rows:
            yield chosen


def _blocks_to_merge(blocks: Sequence[Block]) -> list[Block]:
    """Return blocks to merge: four (or eight) of similar size, or as many of them as fit in one block.

    If the merged block would be the fourth of the next size, those three are merged with them at once.
    """
    sizes: defaultdict[int, list[Block]] = defaultdict(list)
    for block in reversed(blocks):
        if block.alive <= MAX_ROWS // 2:
            sizes[(max(block.alive, 1).bit_length() - 1) // 2].append(block)
    chosen: list[Block] = []
    for size in range(max(sizes, default=-1) + 1):
        if len(sizes[size]) + bool(chosen) >= (_BATCH_FAN if size == _BATCH_SIZE else _FAN):
            chosen += sizes[size]
        elif chosen:
            break
    totals = accumulate(block.alive for block in chosen)
    return [block for block, rows in zip(chosen, totals, strict=True) if rows <= MAX_ROWS]
