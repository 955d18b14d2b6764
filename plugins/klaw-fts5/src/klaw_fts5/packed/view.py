"""All blocks of one state of a collection as if they were one, with what BM25 needs of each row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_core import Keys
from klaw_fts5.packed.blocks import Block, Listed, Rows
from klaw_fts5.packed.postings import COLUMNS, MAX_CODES, Integers, Mixes, unmix

# BM25's, as FTS5 has them (https://sqlite.org/fts5.html#the_bm25_function).
K1, B = 1.2, 0.75


@frozen(eq=False)
class View:
    """The blocks, largest first, and their rows one after the other: those of a block from its place in ``starts`` on.

    ``rows`` is how many live; ``alive`` says which, None if all do. ``keys`` has shape (n,), and so has ``norms``: what
    a row's length adds to BM25's denominator. ``counts``, shape (3, 256 a block), are how often a term stands in each
    column for each code of each block.
    """

    blocks: tuple[Block, ...]
    starts: tuple[int, ...]
    rows: int
    average: float
    alive: NDArray[np.bool_] | None
    keys: Keys
    norms: NDArray[np.float64]
    counts: Mixes

    @property
    def dead(self) -> int:
        """Return how many rows were removed and are still listed."""
        return len(self.keys) - self.rows

    @property
    def cost(self) -> int:
        """Return about how many bytes this takes."""
        return self.keys.nbytes + self.norms.nbytes

    def join(self, lists: Sequence[Listed | None]) -> tuple[Integers, Integers]:
        """Return the living rows that hold a term, given where it stands in each block, and their codes."""
        rows, codes = [], []
        for place, (start, held) in enumerate(zip(self.starts, lists, strict=True)):
            if held is not None:
                positions, of_block = held.positions, held.codes
                if len(positions) > held.count:
                    real = of_block > 0
                    positions, of_block = positions[real], of_block[real]
                rows.append(positions + start)
                codes.append(of_block + np.intp(MAX_CODES * place))
        if not rows:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        row, code = np.concatenate(rows), np.concatenate(codes)
        if self.alive is None:
            return row, code
        living = self.alive[row]
        return row[living], code[living]

    def find(self, keys: Keys) -> tuple[Integers, Integers]:
        """Return the rows that have one of these keys, which ascend, and which of them each has; dead rows too."""
        rows, chosen = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for start, block in zip(self.starts, self.blocks, strict=True):
            low, high = np.searchsorted(keys, (block.first, block.last + 1))
            inside = keys[low:high]
            held = self.keys[start : start + block.rows]
            gaps = block.last - block.first + 1 > block.rows
            places = np.searchsorted(held, inside) if gaps else inside - block.first
            right = np.flatnonzero(held[places] == inside)
            rows.append(places[right] + start)
            chosen.append(right + low)
        return np.concatenate(rows), np.concatenate(chosen)


def make_view(blocks: tuple[Block, ...], rows: Sequence[Rows]) -> View:
    """Return the view of these blocks, given their rows."""
    cuts = tuple(accumulate((block.rows for block in blocks), initial=0))
    alive = np.ones(cuts[-1], dtype=np.bool_)
    counts = np.zeros((COLUMNS, MAX_CODES * len(blocks)), dtype=np.uint32)
    for place, (block, some, (start, end)) in enumerate(zip(blocks, rows, pairwise(cuts), strict=True)):
        alive[start:end] = block.living()
        counts[:, MAX_CODES * place : MAX_CODES * place + len(some.mixes)] = unmix(some.mixes)
    living = int(np.count_nonzero(alive))
    average = sum(block.tokens - block.dead_tokens for block in blocks) / max(living, 1)
    keys = np.concatenate([np.empty(0, np.int64), *(some.keys for some in rows)])
    lengths = np.concatenate([np.empty(0, np.uint16), *(some.lengths for some in rows)])
    norms = np.asarray(K1 * (1 - B + B * lengths / max(average, 1e-9)), dtype=np.float64)
    return View(blocks, cuts[:-1], living, average, None if living == len(keys) else alive, keys, norms, counts)
