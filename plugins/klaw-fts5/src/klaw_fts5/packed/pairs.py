"""Two words side by side, kept as if they were one more word.

A pair is known by 16 bits of a hash of both words, so that others share its postings. Of those that a list
holds, the rows that lack one of the two words are left out when it is asked: of chunks of 300 words that hold
both, one in some hundreds is taken to hold them side by side and does not. A number of its own for each pair would be
exact and take three times the space, because most pairs of words are met once.

Pairs with a function word are not kept: they are more than half of all, and say little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from klaw_fts5.packed.postings import TERM_BITS, Integers

_SLOT_BITS = 16
# The upper half of all numbers is that of pairs: the first bit, those of the hash, and zeros.
_FIRST = 1 << TERM_BITS - 1
_SHIFT = TERM_BITS - 1 - _SLOT_BITS
# Odd, and not each other's multiples: a b is not b a.
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_ALL = (1 << 64) - 1


def pair_number(first: int, second: int) -> int:
    """Return the number under which two terms side by side are held, given theirs."""
    hashed = (first * _FACTORS[0] + second * _FACTORS[1]) & _ALL
    return _FIRST | hashed >> 64 - _SLOT_BITS << _SHIFT


def find_pairs(
    terms: Integers, pairing: NDArray[np.bool_], ranks: Integers, cells: Integers
) -> tuple[Integers, Integers, Integers]:
    """Return the distinct numbers of pairs, ascending; for each place of a pair which of them it is; and its cell.

    ``terms`` are the distinct numbers of words, ``pairing`` says which of them make pairs, shape (terms,); ``ranks``
    says which of them each token is, and ``cells`` in which text it stands, shape (tokens,).
    """
    keeps = pairing[ranks]
    places = np.flatnonzero((cells[1:] == cells[:-1]) & keeps[1:] & keeps[:-1])
    first, second = (terms.astype(np.uint64) * np.uint64(factor) for factor in _FACTORS)
    slots = ((first[ranks[places]] + second[ranks[places + 1]]) >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)
    held = np.bincount(slots, minlength=1 << _SLOT_BITS) > 0
    return _FIRST | np.flatnonzero(held) << _SHIFT, (np.cumsum(held) - 1)[slots], cells[places]
