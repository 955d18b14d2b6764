"""What stands beside what: the terms of each row in order, in one byte or two each.

Whether two words stand side by side is asked for every question, of the best chunks by single words. FTS5 would find
all places of a phrase, anywhere; here a few bytes are looked for in the sequences of those chunks. That another word
has the same two bytes makes one chunk in some thousands look as if it had a phrase. With one byte for every word it
would be so many, beside words like "the" above all, that the order of the results would suffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

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
_CODES = {number: code for code, number in enumerate(_COMMON.tolist(), start=1)}


def write_sequences(terms: Integers, ranks: Integers, sizes: Integers) -> tuple[bytes, ...]:
    """Return each row's sequence, given its distinct terms, which of them each token is, and each column's tokens.

    ``sizes`` says how many tokens each row's text, heading and context have. A zero ends each column.
    """
    places = np.minimum(np.searchsorted(_COMMON, terms), len(_COMMON) - 1)
    wide = (_WIDE + terms % 128) | (_WIDE + (terms >> 7) % 128) << 8
    pairs = np.where(_COMMON[places] == terms, places + 1, wide).astype("<u2")
    ends = np.cumsum(sizes + 1)
    is_term = np.ones(int(ends[-1]), dtype=np.bool_)
    is_term[ends - 1] = False
    written = np.zeros(len(is_term), dtype="<u2")
    written[is_term] = pairs[ranks]
    halves = written.view(np.uint8)
    kept = halves > 0
    kept[::2] = True
    starts = np.append(0, ends[COLUMNS - 1 : -1 : COLUMNS])
    sizes_of_rows = np.diff(starts, append=ends[-1]) + np.add.reduceat(kept[1::2], starts, dtype=np.int64)
    cuts = np.cumsum(sizes_of_rows).tolist()
    data = halves[kept].tobytes()
    return tuple(data[start:end] for start, end in pairwise([0, *cuts]))


@frozen(eq=False)
class Sequences:
    """The sequences of some rows, joined: ``ends`` says where each column ends."""

    data: NDArray[np.uint8]
    ends: Integers

    def find(self, phrases: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
        """Return the cell of each place at which terms stand side by side, and which of these phrases they are.

        Each phrase is of two terms or more.
        """
        joint = self.data[:-1].astype(np.uint16)
        joint <<= 8
        joint |= self.data[1:]
        found = [self._places(joint, _pattern(numbers)) for numbers in phrases]
        which = np.repeat(np.arange(len(found)), [len(places) for places in found])
        return self.ends.searchsorted(np.concatenate(found)), which

    def _places(self, joint: NDArray[np.uint16], wanted: bytes) -> Integers:
        """Return where these bytes stand, given each two neighbours as one number."""
        # Bytes of common words are common: first two of another word's.
        first = max(range(len(wanted) - 1), key=lambda at: (wanted[at] >= _WIDE) + (wanted[at + 1] >= _WIDE))
        places = np.flatnonzero(joint[first:] == (wanted[first] << 8 | wanted[first + 1]))
        for at, byte in enumerate(wanted):
            if at not in {first, first + 1}:
                # Beyond all data is its last byte again: a column's end.
                places = places[self.data.take(places + at, mode="clip") == byte]
        return places


def read_sequences(sequences: Sequence[bytes]) -> Sequences:
    """Return sequences ready to be searched. Raise DamagedError."""
    if set(map(type, sequences)) != {bytes}:
        raise DamagedError("a sequence is not what was written")
    data = np.frombuffer(b"".join(sequences), dtype=np.uint8)
    sizes = np.fromiter(map(len, sequences), dtype=np.int64)
    ends = np.flatnonzero(data == 0)
    if len(ends) != COLUMNS * len(sequences) or not np.array_equal(ends[COLUMNS - 1 :: COLUMNS] + 1, sizes.cumsum()):
        raise DamagedError("a sequence has not as many columns as there are")
    return Sequences(data, ends)


def _pattern(numbers: Sequence[int]) -> bytes:
    """Return the bytes of these terms side by side."""
    wanted = bytearray()
    for number in numbers:
        code = _CODES.get(number)
        if code is not None:
            wanted.append(code)
        else:
            wanted += bytes((_WIDE + number % 128, _WIDE + (number >> 7) % 128))
    return bytes(wanted)
