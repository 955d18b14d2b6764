"""A view of all blocks of one state of a collection as one block, with the values that BM25 needs for each row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from math import log

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_core import Keys
from klaw_fts5.packed.blocks import Block, PostingLists, Rows
from klaw_fts5.packed.postings import COLUMNS, MAX_CODES, OWN, Integers, Mixes, unmix

# The parameters of BM25 in FTS5 (https://sqlite.org/fts5.html#the_bm25_function).
K1, B = 1.2, 0.75
# FTS5's inverse document frequency of a term in more than half of the rows.
_MIN_IDF = 1e-6


def idf(rows: int, holders: float) -> float:
    """Return the inverse document frequency of a term that is in ``holders`` of ``rows`` rows."""
    found = log((rows - holders + 0.5) / (holders + 0.5))
    return found if found > 0 else _MIN_IDF


@frozen(eq=False)
class View:
    """The blocks, the largest first, and their concatenated rows; ``starts`` has the first row of each block.

    ``rows`` is the number of live rows; ``alive`` says which are live, or is None if all are. ``keys`` and ``norms``
    have shape (n,); a norm is the part of BM25's denominator that depends on the row's length. ``counts`` of shape (3,
    256 per block) has the term frequencies in each column for each code of each block.
    """

    blocks: tuple[Block, ...]
    starts: tuple[int, ...]
    rows: int
    alive: NDArray[np.bool_] | None
    keys: Keys
    norms: NDArray[np.float64]
    counts: Mixes

    @cached_property
    def rare_rows(self) -> int:
        """The largest possible number of rows of a term that has no blob of its own in any block."""
        return sum(min(OWN, block.rows) for block in self.blocks)

    @property
    def dead(self) -> int:
        """Return the number of dead rows."""
        return len(self.keys) - self.rows

    def join(self, lists: PostingLists) -> tuple[NDArray[np.int32], Integers, list[int]]:
        """Return the live rows of terms, their codes, and the number of rows of each term.

        ``lists`` are the postings of each term, by block. The rows of all terms are concatenated.
        """
        rows = lists.positions.astype(np.int32)
        codes = lists.codes.astype(np.int64)
        many = len(self.blocks)
        if many > 1:
            places = np.arange(len(lists.sizes)) % many
            rows += np.repeat(np.array(self.starts, np.int32)[places], lists.sizes)
            codes += np.repeat(MAX_CODES * places, lists.sizes)
        counts = [sum(lists.sizes[first : first + many]) for first in range(0, len(lists.sizes), many)]
        if self.alive is not None:
            living = self.alive[rows]
            before = np.append(0, np.cumsum(living))
            rows, codes = rows[living], codes[living]
            counts = np.diff(before[np.cumsum(counts)], prepend=0).tolist()
        return rows, codes, counts

    def find(self, keys: Keys) -> tuple[Integers, Integers]:
        """Return the rows, live or dead, with these ascending keys, and the index of each row's key in ``keys``."""
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
    return View(blocks, cuts[:-1], living, None if living == len(keys) else alive, keys, norms, counts)
