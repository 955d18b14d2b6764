"""What is kept in memory between questions: rows of blocks, and what one state of a collection comes to."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import apsw
import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_fts5.packed.blocks import Block, Rows, read_blocks, read_rows
from klaw_fts5.packed.errors import DamagedError
from klaw_fts5.packed.state import State
from klaw_fts5.sql import PackedStatements

# BM25's, as FTS5 has them (https://sqlite.org/fts5.html#the_bm25_function).
K1, B = 1.2, 0.75
#: 24 bytes a row: two million rows.
_MAX_BYTES = 48 << 20
#: Both collections, before a change and after it.
_MAX_VIEWS = 4


@frozen(eq=False)
class View:
    """The blocks of one state, largest first, with what BM25 needs of them all."""

    blocks: tuple[Block, ...]
    rows: int
    dead: int
    tokens: int

    @property
    def average(self) -> float:
        """Return how many tokens a row has on average, as FTS5 counts them."""
        return self.tokens / self.rows


class Cache:
    """Keeps what was read, for every thread and every connection.

    A block's number is random and its rows never change, and a stamp is random and renewed by every change: what is
    kept under either holds in any snapshot, whatever another process writes, and in any file.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._views: dict[bytes, View] = {}
        self._rows: OrderedDict[int, Rows] = OrderedDict()
        self._norms: OrderedDict[tuple[bytes, int], NDArray[np.float64]] = OrderedDict()

    def view(self, connection: apsw.Connection, sql: PackedStatements, state: State) -> View:
        """Return the blocks as they are in this state. Raise DamagedError if they are not as it says."""
        with self._lock:
            view = self._views.get(state.stamp)
        if view is None:
            blocks = read_blocks(connection, sql)
            alive = sum(block.alive for block in blocks)
            tokens = sum(block.tokens - block.dead_tokens for block in blocks)
            view = View(blocks, alive, sum(len(block.dead) for block in blocks), tokens)
            with self._lock:
                if len(self._views) >= _MAX_VIEWS:
                    self._views.clear()
                self._views[state.stamp] = view
        if view.rows != state.rows:
            raise DamagedError(f"the packed form has {view.rows} rows and should have {state.rows}")
        return view

    def rows(self, connection: apsw.Connection, sql: PackedStatements, block: Block) -> Rows:
        """Return the rows of a block. Raise DamagedError."""
        with self._lock:
            rows = self._rows.get(block.id)
            if rows is not None:
                self._rows.move_to_end(block.id)
                return rows
        rows = read_rows(connection, sql, block)
        with self._lock:
            self._rows[block.id] = rows
            self._shrink()
        return rows

    def norms(
        self, connection: apsw.Connection, sql: PackedStatements, state: State, view: View, block: Block
    ) -> NDArray[np.float64]:
        """Return what a row's length adds to BM25's denominator, for each row of a block. Raise DamagedError."""
        key = (state.stamp, block.id)
        with self._lock:
            if key in self._norms:
                return self._norms[key]
        lengths = self.rows(connection, sql, block).lengths
        norms = np.asarray(K1 * (1 - B + B * lengths / view.average), dtype=np.float64)
        with self._lock:
            for other in [other for other in self._norms if other[0] not in self._views]:
                del self._norms[other]
            self._norms[key] = norms
            self._shrink()
        return norms

    def _shrink(self) -> None:
        """Let go of what was used least recently, down to the bound."""
        total = sum(rows.cost for rows in self._rows.values()) + sum(norms.nbytes for norms in self._norms.values())
        while total > _MAX_BYTES and (self._rows or self._norms):
            if self._norms:
                total -= self._norms.popitem(last=False)[1].nbytes
            if self._rows:
                total -= self._rows.popitem(last=False)[1].cost
