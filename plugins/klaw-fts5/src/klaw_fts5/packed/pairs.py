"""Pairs of adjacent words, stored like additional words.

A pair is identified by 16 bits of a hash of both words, so several pairs share one list of postings. A search removes
the rows that lack one of the two words. Of chunks of 300 words with both words, one in some hundreds wrongly counts as
having them side by side. A separate number for each pair would be exact and take three times the space, because most
pairs occur only once.

Pairs with a function word are not stored: they are more than half of all pairs, and not informative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from klaw_fts5.packed.postings import TERM_BITS, Integers

_SLOT_BITS = 16
# The number of a pair: the first bit is set, then the bits of the hash, then zeros.
_FIRST = 1 << TERM_BITS - 1
_SHIFT = TERM_BITS - 1 - _SLOT_BITS
# Odd factors that are no multiples of each other, so that a b differs from b a.
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_ALL = (1 << 64) - 1


def pair_number(first: int, second: int) -> int:
    """Return the number of a pair, given the numbers of its terms."""
    hashed = (first * _FACTORS[0] + second * _FACTORS[1]) & _ALL
    return _FIRST | hashed >> 64 - _SLOT_BITS << _SHIFT


def find_pairs(
    terms: Integers, pairing: NDArray[np.bool_], ranks: Integers, cells: Integers
) -> tuple[Integers, Integers, Integers]:
    """Return the distinct numbers of pairs, ascending; for each occurrence the index of its pair; and its cell.

    ``terms`` are the distinct numbers of words, and ``pairing`` says which of them form pairs, shape (terms,).
    ``ranks`` are the term indices of the tokens, and ``cells`` their cells, shape (tokens,).
    """
    keeps = pairing[ranks]
    places = np.flatnonzero((cells[1:] == cells[:-1]) & keeps[1:] & keeps[:-1])
    first, second = (terms.astype(np.uint64) * np.uint64(factor) for factor in _FACTORS)
    slots = ((first[ranks[places]] + second[ranks[places + 1]]) >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)
    held = np.bincount(slots, minlength=1 << _SLOT_BITS) > 0
    return _FIRST | np.flatnonzero(held) << _SHIFT, (np.cumsum(held) - 1)[slots], cells[places]
