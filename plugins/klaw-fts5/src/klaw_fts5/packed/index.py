"""Keeping the packed form in step with FTS5's rows, in the same transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

import apsw
import numpy as np
from attrs import field, frozen

from klaw_core import KeyDigest, Keys
from klaw_fts5.packed.blocks import Block, read_blocks
from klaw_fts5.packed.cache import Cache
from klaw_fts5.packed.counting import TermCounter
from klaw_fts5.packed.errors import DAMAGE
from klaw_fts5.packed.postings import MAX_ROWS
from klaw_fts5.packed.state import PackedState, read_state, write_state
from klaw_fts5.packed.writing import merge, write_batch
from klaw_fts5.sql import DELETE_STATE, PackedStatements, Statements, statements
from klaw_fts5.tokenizer import Tokenizer

# Blocks of one size, to a factor of four, are merged when there are four of them.
_FAN = 4
# A search reads each block for each word. They are made one where so large a part of the result was not in the largest
# already, or is dead: less does not pay for writing all of it again.
_SCATTERED = 1 / 8
# What is written together goes into pages that are free already, and makes the file larger by about so many bytes at
# most.
_GROWTH = 1 << 20
_BYTES_A_POSTING = 3.4
# The part of a block that may be dead before the block is written again.
_DEAD = 0.25
_BATCH = 4096

Columns = tuple[str, str, str]


@frozen(eq=False)
class PackedIndex:
    """Adds to the packed form and removes from it.

    Rows that FTS5 was given and this was not are ``lacking`` here until they are added again, and until then FTS5
    answers: those of a configuration that packs nothing, and those that came one by one to a small collection. A
    packed form that turns out damaged is emptied and started again in the same way.
    """

    cache: Cache = field(factory=Cache)
    counter: TermCounter = field(factory=TermCounter)

    def add(self, connection: apsw.Connection, collection: str, rows: Sequence[tuple[int, Columns]]) -> None:
        """Add rows that FTS5 has been given just now."""
        if not rows:
            return
        sql = statements(collection)
        state = read_state(connection, collection)
        if state is None:
            state = self._start_over(connection, collection, len(rows))
        tokenizer = Tokenizer(connection)
        ordered = sorted(rows, key=lambda row: row[0])
        for start in range(0, len(ordered), _BATCH):
            batch = ordered[start : start + _BATCH]
            counted = self.counter.count(tokenizer, [columns for _, columns in batch])
            write_batch(connection, sql.packed, [key for key, _ in batch], counted)
        write_state(connection, collection, state.rows + len(rows), state.lacking)
        self._merge_blocks(connection, collection)

    def remove(self, connection: apsw.Connection, collection: str, keys: Sequence[int]) -> None:
        """Remove rows that FTS5 still has; unknown keys are ignored."""
        if not len(keys):
            return
        state = read_state(connection, collection)
        if state is None:
            self.reset(connection, collection)
            return
        sql = statements(collection)
        wanted = np.unique(np.array(keys, dtype=np.int64))
        present = _present(connection, sql, wanted) if state.lacking else 0
        try:
            gone = sum(self._mark_dead(connection, sql, block, wanted) for block in read_blocks(connection, sql.packed))
        except DAMAGE:
            self._start_over(connection, collection, _present(connection, sql, wanted))
            return
        if gone or present:
            write_state(connection, collection, state.rows - gone, max(state.lacking - max(present - gone, 0), 0))

    def erase(self, connection: apsw.Connection, collection: str) -> None:
        """Leave nothing of removed rows: write the blocks again that had any."""
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
        """Return whether to write blocks together pays, and hardly makes the file larger."""
        try:
            together = list(_scattered(read_blocks(connection, statements(collection).packed)))
        except DAMAGE:  # a search says so
            return False
        free = int(connection.execute("PRAGMA freelist_count").get) * int(connection.execute("PRAGMA page_size").get)
        postings = sum(block.postings * block.alive / block.rows for blocks in together for block in blocks)
        return bool(together) and _BYTES_A_POSTING * postings <= free + _GROWTH

    def compact(self, connection: apsw.Connection, collection: str) -> None:
        """Write those blocks together for which it pays."""
        state = read_state(connection, collection)
        if state is None:
            return
        sql = statements(collection).packed
        try:
            for blocks in list(_scattered(read_blocks(connection, sql))):
                self._merge(connection, sql, blocks)
        except DAMAGE:
            self._start_over(connection, collection)
        else:
            write_state(connection, collection, state.rows, state.lacking)

    def reset(self, connection: apsw.Connection, collection: str) -> None:
        """Remove the packed form altogether."""
        connection.execute(statements(collection).packed.empty)
        connection.execute(DELETE_STATE, (collection,))

    def keys(self, connection: apsw.Connection, collection: str) -> Keys:
        """Return the keys that the packed form holds, ascending; none if there is no packed form."""
        if read_state(connection, collection) is None:
            return np.empty(0, np.int64)
        try:
            held = self._living(connection, collection)
        except DAMAGE:
            held = []
        return np.unique(np.concatenate([np.empty(0, np.int64), *held]))

    def key_digest(self, connection: apsw.Connection, collection: str) -> KeyDigest | None:
        """Return the digest of :meth:`keys`; None if what is there cannot be read."""
        if read_state(connection, collection) is None:
            return KeyDigest()
        try:
            return sum(map(KeyDigest.of, self._living(connection, collection)), KeyDigest())
        except DAMAGE:
            return None

    def _living(self, connection: apsw.Connection, collection: str) -> list[Keys]:
        """Return the keys of each block."""
        sql = statements(collection).packed
        return [self.cache.rows(connection, sql, block).keys[block.living()] for block in read_blocks(connection, sql)]

    def _mark_dead(self, connection: apsw.Connection, sql: Statements, block: Block, wanted: Keys) -> int:
        """Note which rows of a block are dead, and write it again if too many are; return how many died."""
        inside = wanted[np.searchsorted(wanted, block.first) : np.searchsorted(wanted, block.last, side="right")]
        if not len(inside):
            return 0
        rows = self.cache.rows(connection, sql.packed, block)
        places = np.searchsorted(rows.keys, inside)
        places = places[rows.keys[places] == inside]
        places = np.setdiff1d(places, block.dead)
        if not len(places):
            return 0
        dead = np.union1d(block.dead, places).astype("<u2")
        tokens = block.dead_tokens + int(rows.lengths[places].sum())
        connection.execute(sql.packed.write_dead, (block.id, tokens, dead.tobytes()))
        if len(dead) >= _DEAD * block.rows:
            (now,) = (other for other in read_blocks(connection, sql.packed) if other.id == block.id)
            self._merge(connection, sql.packed, [now])
        return len(places)

    def _merge_blocks(self, connection: apsw.Connection, collection: str) -> None:
        """Merge blocks until fewer than four are of one size."""
        sql = statements(collection).packed
        try:
            while together := _mergeable(read_blocks(connection, sql)):
                self._merge(connection, sql, together)
        except DAMAGE:
            self._start_over(connection, collection)

    def _merge(self, connection: apsw.Connection, sql: PackedStatements, blocks: Sequence[Block]) -> None:
        merge(connection, sql, blocks)
        self.cache.drop(block.id for block in blocks)

    def _start_over(self, connection: apsw.Connection, collection: str, fewer: int = 0) -> PackedState:
        """Empty the packed form, and return its state: it lacks all that FTS5 has, but for ``fewer`` rows."""
        sql = statements(collection)
        connection.execute(sql.packed.empty)
        lacking = int(connection.execute(sql.count).get) - fewer
        write_state(connection, collection, 0, lacking)
        return PackedState(0, lacking, b"")


def _present(connection: apsw.Connection, sql: Statements, keys: Keys) -> int:
    return int(connection.execute(sql.present, (apsw.carray(keys),)).get)


def _scattered(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield blocks that are to be made one, given all blocks: each as full as one can be."""
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


def _mergeable(blocks: Sequence[Block]) -> list[Block]:
    """Return blocks to be made one: four of about one size, or as many of them as one block can hold.

    What would then be the fourth of the next size is merged with the other three at once, not first by itself.
    """
    sizes: defaultdict[int, list[Block]] = defaultdict(list)
    for block in reversed(blocks):
        if block.alive <= MAX_ROWS // 2:
            sizes[(max(block.alive, 1).bit_length() - 1) // 2].append(block)
    chosen: list[Block] = []
    for size in range(max(sizes, default=-1) + 1):
        if len(sizes[size]) + bool(chosen) >= _FAN:
            chosen += sizes[size]
        elif chosen:
            break
    rows = accumulate(block.alive for block in chosen)
    return [block for block, together in zip(chosen, rows, strict=True) if together <= MAX_ROWS]
