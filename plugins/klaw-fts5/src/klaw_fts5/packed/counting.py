"""Convert texts of chunks to postings: tokenise them like FTS5, and count terms one batch at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_core import ThreadLock
from klaw_fts5.packed.pairs import find_pairs
from klaw_fts5.packed.postings import COLUMNS, Integers, Mixes, Postings, changes, encode_mixes, mix_runs
from klaw_fts5.packed.spelling import Spellings

#: The maximum number of cached spellings, some 100 MB. Few collections have more.
_MAX_SPELLINGS = 400_000
_NARROW, _WIDE = 1 << 16, 1 << 32


@frozen(eq=False)
class ChunkBatch:
    """The postings of a batch of chunks, and ``lengths``, the number of tokens of each chunk, shape (n,)."""

    postings: Postings
    mixes: Mixes
    lengths: Integers


class TermCounter:
    """Counts the terms of batches, and caches spellings. Thread-safe: it processes one batch at a time."""

    def __init__(self) -> None:
        self._spellings = Spellings()
        self._lock = ThreadLock("the counter of terms")

    def count(self, rows: Sequence[tuple[str, ...]]) -> ChunkBatch:
        """Return the postings of the words and pairs of rows, given as normalised text, heading and context."""
        with self._lock.hold():
            # Anew, if there are too many, or if an exception has ended the last call while it changed them.
            spellings, self._spellings = self._spellings, Spellings()
            if len(spellings) > _MAX_SPELLINGS:
                spellings = Spellings()
            places, sizes = spellings.read([text for row in rows for text in row])
            # Copies, because an array with a view cannot grow.
            numbers, pairing = np.array(spellings.numbers), np.array(spellings.pairing, dtype=np.bool_)
            self._spellings = spellings
        used, ranks = _ranks(places, numbers)
        cells = np.repeat(np.arange(len(sizes)), sizes)
        terms = numbers[used]
        pairs, which, where = find_pairs(terms, pairing[used], ranks, cells)
        single = _count(ranks, len(terms), cells, len(sizes))
        double = _count(which, len(pairs), where, len(sizes))
        mixes, codes = encode_mixes(np.concatenate((single.mixed, double.mixed)))
        postings = Postings(
            np.concatenate((terms, pairs)),
            np.concatenate((single.counts, double.counts)),
            np.concatenate((single.positions, double.positions)),
            codes,
        )
        return ChunkBatch(postings, mixes, sizes.reshape(-1, COLUMNS).sum(axis=1))


@frozen(eq=False)
class _Runs:
    """The number of rows of each term, and the position and mix of each term in each of its rows."""

    counts: Integers
    positions: NDArray[np.uint16]
    mixed: Mixes


def _ranks(places: Integers, numbers: Integers) -> tuple[Integers, Integers]:
    """Return the places of distinct terms in ascending order of number, and for each token the index of its term."""
    used = np.flatnonzero(np.bincount(places, minlength=1)) if len(places) else np.empty(0, np.int64)
    order = used[np.argsort(numbers[used])]
    rank_of = np.empty(len(numbers), dtype=np.int64)
    rank_of[order] = np.arange(len(order))
    return order, rank_of[places]


def _count(ranks: Integers, terms: int, where: Integers, cells: int) -> _Runs:
    """Count tokens, given the term of each and its cell, which is a row's text, heading or context.

    The tokens of one term are in the order of their cells.
    """
    # Numpy sorts numbers of few bits by radix, and moves them, in a fraction of the time.
    order = np.argsort(ranks.astype(np.uint16) if terms <= _NARROW else ranks, kind="stable")
    tokens: NDArray[np.integer] = ranks * cells + where
    if terms * cells <= _WIDE:
        tokens = tokens.astype(np.uint32)
    tokens = tokens[order]
    starts = changes(tokens)
    row, column = np.divmod(tokens[starts], COLUMNS)
    firsts = changes(row)
    mixed = mix_runs(np.diff(starts, append=len(tokens)), column, firsts)
    rank, position = np.divmod(row[firsts], cells // COLUMNS)
    return _Runs(np.bincount(rank, minlength=terms), position.astype(np.uint16), mixed)
