"""Tokenise many texts at once: a batch of texts is one array of bytes, and each word in it becomes a hash.

SQLite's tokenizer is called once per spelling, and the result is cached. Calling it for whole texts, and looking up
each term, takes many times as long.
"""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from klaw_fts5.packed.numbers import term_number
from klaw_fts5.packed.postings import Integers
from klaw_words.tokenizer import makes_pairs, tokenizer

Hashes = NDArray[np.uint64]

# The initial and the maximum number of slots for spellings: two per spelling, fewer when there are very many.
_MIN_SLOTS, _MAX_SLOTS = 1 << 12, 1 << 20

# After `index_text`, only ASCII characters separate words. This table maps them to zero, and letters to lower case.
_FOLDED = bytes(code if chr(code).isalnum() or not chr(code).isascii() else 0 for code in range(256)).lower()
# Words are hashed eight bytes at a time.
_STEP = 8
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_STEP + 1)], dtype=np.uint64)
_FACTORS = tuple(np.uint64(secrets.randbits(64) | 1) for _ in range(3))
_HALF = np.uint64(32)


class _Slots:
    """A hash table of spellings and their meanings, by the first bits of the hash. On a collision, the first stays."""

    def __init__(self, size: int) -> None:
        self.size = size  # a power of two
        self._shift = np.uint64(64 - (size.bit_length() - 1))
        self._hashes = np.zeros(size, dtype=np.uint64)
        self._meanings = np.zeros(size, dtype=np.int64)

    def find(self, hashes: Hashes) -> tuple[Integers, Integers]:
        """Return the meaning of each spelling, and the places of unknown ones."""
        slots = (hashes >> self._shift).astype(np.int64)
        return self._meanings[slots], np.flatnonzero(self._hashes[slots] != hashes)

    def put(self, hashes: Hashes, meanings: Integers) -> None:
        slots = (hashes >> self._shift).astype(np.int64)
        free = self._hashes[slots] == 0
        self._meanings[slots[free]] = meanings[free]
        self._hashes[slots[free]] = hashes[free]


class Spellings:
    """The known spellings and their terms. A term is represented by its place in ``numbers``.

    ``pairing`` says for each term whether it forms pairs with its neighbours. The meaning of a spelling is a place; if
    it is not exactly one term, it is ``~n`` for the ``n``-th entry of ``_several``.
    """

    def __init__(self) -> None:
        self.numbers = array("q")
        self.pairing = array("b")
        self._places: dict[bytes, int] = {}
        self._several: list[tuple[int, ...]] = []
        self._known: dict[int, int] = {}
        self._slots = _Slots(_MIN_SLOTS)

    def __len__(self) -> int:
        return len(self._known)

    def read(self, texts: Sequence[str]) -> tuple[Integers, Integers]:
        """Return the places of the terms of all texts, in order, and the number of terms of each text."""
        encoded = [text.encode() for text in texts]
        data = b"\0".join(encoded)
        starts, ends, hashes = _find(data)
        places = self._recognise(data, starts, ends, hashes)
        until = np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64) + 1)
        read = np.searchsorted(starts, until)
        if (places < 0).any():
            several = [self._several[~place] for place in places[places < 0].tolist()]
            counts = np.ones(len(places), dtype=np.int64)
            counts[places < 0] = [len(terms) for terms in several]
            read = np.cumsum(np.append(0, counts))[read]
            places = np.repeat(places, counts)
            places[places < 0] = list(chain.from_iterable(several))
        return places, np.diff(read, prepend=0)

    def _recognise(self, data: bytes, starts: Integers, ends: Integers, hashes: Hashes) -> Integers:
        """Return the meaning of each word, given its hash and its position."""
        found, missed = self._slots.find(hashes)
        if len(missed):
            distinct, firsts, which = np.unique(hashes[missed], return_index=True, return_inverse=True)
            unknown = np.array([hashed not in self._known for hashed in distinct.tolist()])
            words = missed[firsts[unknown]]
            spans = zip(starts[words].tolist(), ends[words].tolist(), strict=True)
            self._learn(distinct[unknown], tokenizer().each([data[start:end] for start, end in spans]))
            found[missed] = np.array([self._known[hashed] for hashed in distinct.tolist()])[which]
        return found

    def _learn(self, hashes: Hashes, terms: Sequence[Sequence[bytes]]) -> None:
        """Store the terms of these spellings."""
        meanings = list(map(self._meaning, terms))
        self._known.update(zip(hashes.tolist(), meanings, strict=True))
        wanted = min(1 << (2 * len(self._known)).bit_length(), _MAX_SLOTS)
        if wanted <= self._slots.size:
            self._slots.put(hashes, np.array(meanings, dtype=np.int64))
            return
        slots = _Slots(wanted)
        slots.put(np.fromiter(self._known, np.uint64), np.fromiter(self._known.values(), np.int64))
        self._slots = slots

    def _meaning(self, terms: Sequence[bytes]) -> int:
        places = tuple(map(self._place, terms))
        if len(places) == 1:
            return places[0]
        self._several.append(places)
        return ~(len(self._several) - 1)

    def _place(self, term: bytes) -> int:
        place = self._places.get(term)
        if place is None:
            place = len(self._places)
            del self.numbers[place:], self.pairing[place:]  # left by a failure or an interrupt
            self.numbers.append(term_number(term))
            self.pairing.append(makes_pairs(term))
            self._places[term] = place
        return place


def _find(data: bytes) -> tuple[Integers, Integers, Hashes]:
    """Return the start, the end and the hash of each word. The hash ignores case, and does not depend on the position.

    A word of up to eight bytes is one number, so its hash is unique among such words. Longer words are hashed in steps
    of eight bytes with random factors.
    """
    folded = data.translate(_FOLDED) + bytes(_STEP)
    is_word = np.zeros(len(data) + 2, dtype=np.bool_)
    np.not_equal(np.frombuffer(folded, dtype=np.uint8, count=len(data)), 0, out=is_word[1:-1])
    edges = np.flatnonzero(is_word[1:] != is_word[:-1])
    starts, ends = edges[::2], edges[1::2]
    # The eight bytes that begin at each byte.
    eights = np.ndarray(len(data) + 1, "<u8", folded, strides=(1,))
    sizes = ends - starts
    hashes = (eights[starts] & _MASKS[np.minimum(sizes, _STEP)]) * _FACTORS[0]
    left = np.flatnonzero(sizes > _STEP)
    done = _STEP
    while len(left):
        more = eights[starts[left] + done] & _MASKS[np.minimum(sizes[left] - done, _STEP)]
        mixed = hashes[left]
        for factor in _FACTORS[1:]:
            mixed ^= mixed >> _HALF
            mixed *= factor
        hashes[left] = (mixed ^ mixed >> _HALF ^ more) * _FACTORS[0]
        done += _STEP
        left = left[sizes[left] > done]
    return starts, ends, hashes
