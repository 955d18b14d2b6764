"""What stands beside what: the terms of each row in order, in one byte or two each.

Whether two words stand side by side is asked for every question, of the best chunks by single words. FTS5 would find
all places of a phrase, anywhere; here a few bytes are looked for in the sequences of those chunks. That another word
has the same two bytes makes one chunk in some thousands look as if it had a phrase. With one byte for every word it
would be so many, beside words like "the" above all, that the order of the results would suffer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_fts5.packed.errors import DamagedError
from klaw_fts5.packed.postings import COLUMNS, Integers
from klaw_fts5.packed.spelling import term_number

# Two words of five in English text, as their stems: one byte each. Changing the list takes a migration that empties
# the tables.
_COMMON_TERMS = """
the of and to in a is for that on as by with it be ar thi wa at an or from which have ha not can will do if we you i s t
all but would so some like when other there their thei what who how where why he she hi her him my your our us me no ye
just about more than then them been were had did doe could should mai onli also into out up over after befor between
most such these those new two first time make get go know think need want see look wai work good well back veri even
here now
"""
# The bytes of all other words are these and above.
_WIDE = 128
_COMMON = np.unique(np.array([term_number(term.encode()) for term in _COMMON_TERMS.split()], dtype=np.int64))


def write_sequences(terms: Integers, ranks: Integers, cells: Integers, lengths: Integers) -> tuple[bytes, ...]:
    """Return each row's sequence, given its distinct terms, which of them each token is, and each token's cell.

    A cell is three times the row, and the column. A zero ends each column.
    """
    places = np.minimum(np.searchsorted(_COMMON, terms), len(_COMMON) - 1)
    short = _COMMON[places] == terms
    first = np.where(short, places + 1, _WIDE + terms % 128).astype(np.uint8)
    second = (_WIDE + (terms >> 7) % 128).astype(np.uint8)
    wide = ~short[ranks]
    ends = np.cumsum(1 + wide) + cells
    rows = len(lengths)
    sizes = (
        np.bincount(cells // COLUMNS, minlength=rows) + np.bincount(cells[wide] // COLUMNS, minlength=rows) + COLUMNS
    )
    data = np.zeros(int(sizes.sum()), dtype=np.uint8)
    data[ends - 1 - wide] = first[ranks]
    data[ends[wide] - 1] = second[ranks[wide]]
    written, cuts = data.tobytes(), np.cumsum(sizes).tolist()
    return tuple(written[start:end] for start, end in zip([0, *cuts], cuts, strict=False))


@frozen(eq=False)
class Sequences:
    """The sequences of some rows, joined: ``ends`` says where each column ends, ``lengths`` are in terms."""

    data: NDArray[np.uint8]
    ends: Integers
    lengths: NDArray[np.float64]

    def find(self, numbers: Sequence[int]) -> Integers:
        """Return the cell of each place at which these terms stand side by side."""
        wanted = _pattern(numbers)
        last = len(self.data) - len(wanted) + 1
        # Bytes of common words are common: first one of another word's.
        order = sorted(range(len(wanted)), key=lambda offset: wanted[offset] < _WIDE)
        places = np.flatnonzero(self.data[order[0] : last + order[0]] == wanted[order[0]])
        for offset in order[1:]:
            places = places[self.data[places + offset] == wanted[offset]]
        return np.searchsorted(self.ends, places)


def read_sequences(sequences: Sequence[bytes]) -> Sequences:
    """Return sequences ready to be searched. Raise DamagedError."""
    if set(map(type, sequences)) != {bytes}:
        raise DamagedError("a sequence is not what was written")
    data = np.frombuffer(b"".join(sequences), dtype=np.uint8)
    sizes = np.fromiter(map(len, sequences), dtype=np.int64)
    ends = np.flatnonzero(data == 0)
    if len(ends) != COLUMNS * len(sequences) or not np.array_equal(ends[COLUMNS - 1 :: COLUMNS] + 1, sizes.cumsum()):
        raise DamagedError("a sequence has not as many columns as there are")
    halves = np.add.reduceat(data >> 7, sizes.cumsum() - sizes, dtype=np.int64)
    return Sequences(data, ends, sizes - COLUMNS - halves / 2)


def _pattern(numbers: Sequence[int]) -> bytes:
    """Return the bytes of these terms side by side."""
    wanted = bytearray()
    for number in numbers:
        place = int(np.searchsorted(_COMMON, number))
        if place < len(_COMMON) and _COMMON[place] == number:
            wanted.append(place + 1)
        else:
            wanted += bytes((_WIDE + number % 128, _WIDE + (number >> 7) % 128))
    return bytes(wanted)
