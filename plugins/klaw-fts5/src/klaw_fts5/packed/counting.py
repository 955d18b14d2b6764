"""From the texts of chunks to postings: tokenised as FTS5 tokenises them, counted a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_fts5.packed.pairs import find_pairs
from klaw_fts5.packed.postings import COLUMNS, Integers, Mixes, Postings, changes, encode_mixes, mix_runs
from klaw_fts5.packed.spelling import Spellings, Tokenizer

#: How many spellings are remembered, in some 100 MB: few collections have more.
_MAX_SPELLINGS = 400_000
_NARROW, _WIDE = 1 << 16, 1 << 32


@frozen(eq=False)
class Counted:
    """A batch of chunks: its postings, by position; ``lengths`` in tokens, of all columns together, shape (n,)."""

    postings: Postings
    mixes: Mixes
    lengths: Integers


class Counter:
    """Counts the terms of batches. Remembers spellings that it has met; one batch at a time, whatever the thread."""

    def __init__(self) -> None:
        self._spellings = Spellings()
        self._lock = Lock()

    def count(self, tokenizer: Tokenizer, rows: Sequence[tuple[str, ...]]) -> Counted:
        """Return the postings of the words and pairs of rows, each given as treated text, heading and context."""
        with self._lock:
            if len(self._spellings) > _MAX_SPELLINGS:
                self._spellings = Spellings()
            places, sizes = self._spellings.read(tokenizer, [text for row in rows for text in row])
            terms, ranks = _ranks(places, np.frombuffer(self._spellings.numbers, dtype=np.int64))
        cells = np.repeat(np.arange(len(sizes)), sizes)
        pairs, which, where = find_pairs(terms, ranks, cells)
        both = np.concatenate((terms, pairs))
        order = np.argsort(both, kind="stable")
        place = np.empty(len(both), dtype=np.int64)
        place[order] = np.arange(len(both))
        ranks = place[np.concatenate((ranks, which + len(terms)))]
        postings, mixes = _count(both[order], ranks, np.concatenate((cells, where)), len(sizes))
        return Counted(postings, mixes, sizes.reshape(-1, COLUMNS).sum(axis=1))


def _ranks(places: Integers, numbers: Integers) -> tuple[Integers, Integers]:
    """Return the distinct numbers of terms, ascending, and for each token which of them it is."""
    used = np.flatnonzero(np.bincount(places, minlength=1)) if len(places) else np.empty(0, np.int64)
    order = used[np.argsort(numbers[used])]
    rank_of = np.empty(len(numbers), dtype=np.int64)
    rank_of[order] = np.arange(len(order))
    return numbers[order], rank_of[places]


def _count(terms: Integers, ranks: Integers, where: Integers, cells: int) -> tuple[Postings, Mixes]:
    """Count tokens, given which of the terms each is, and in which cell: a row's text, heading or context.

    Those of one term come in the order of their cells.
    """
    # Numbers of few bits are sorted by radix, and moved, in a fraction of the time.
    order = np.argsort(ranks.astype(np.uint16) if len(terms) <= _NARROW else ranks, kind="stable")
    tokens: NDArray[np.integer] = ranks * cells + where
    if len(terms) * cells <= _WIDE:
        tokens = tokens.astype(np.uint32)
    tokens = tokens[order]
    starts = changes(tokens)
    row, column = np.divmod(tokens[starts], COLUMNS)
    firsts = changes(row)
    mixed = mix_runs(np.diff(starts, append=len(tokens)), column, firsts)
    mixes, codes = encode_mixes(mixed)
    rank, position = np.divmod(row[firsts], cells // COLUMNS)
    counts = np.bincount(rank, minlength=len(terms))
    return Postings(terms, counts, position.astype(np.uint16), codes), mixes
