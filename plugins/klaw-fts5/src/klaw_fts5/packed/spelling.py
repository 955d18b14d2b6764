"""Words found and recognised by the thousand: a batch of texts is one array of bytes, and each word in it one hash.

SQLite's tokenizer is asked once for each spelling, and what it makes of it is remembered. Called for whole texts, and
with its answers looked up one by one, it takes three times as long.
"""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain
from typing import cast

import apsw
import numpy as np
from numpy.typing import NDArray

from klaw_fts5.packed.postings import TERM_BITS, Integers
from klaw_fts5.sql import TOKENIZER

Hashes = NDArray[np.uint64]

# Where FTS5 cuts a term, even within a character (FTS5_MAX_TOKEN_SIZE: https://sqlite.org/src/file/ext/fts5/fts5Int.h).
_LONGEST_TERM = 32_768
_SLOT_BITS = 18
_MASK = (1 << TERM_BITS) - 1
_FACTOR = secrets.randbits(64) | 1
_INVERSE = pow(_FACTOR, -1, 1 << 64)


def _byte_values() -> Hashes:
    """Return a random number for each byte that words are made of, one for both cases of a letter; 0 for others.

    In text that ``index_text`` has treated, nothing outside ASCII parts words.
    """
    values = np.frombuffer(secrets.token_bytes(8 * 256), dtype=np.uint64) | np.uint64(1)
    for code in range(128):
        if not chr(code).isalnum():
            values[code] = 0
        elif chr(code).isupper():
            values[code] = values[ord(chr(code).lower())]
    return values


_VALUES = _byte_values()
_IS_WORD = _VALUES > 0


class Tokenizer:
    """SQLite's own tokenizer, as the tables have it, on one connection: treated text in, terms out."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._tokenize = connection.fts5_tokenizer(TOKENIZER[0], list(TOKENIZER[1:]))

    def __call__(self, text: bytes) -> list[bytes]:
        """Return the terms of a text in UTF-8, as FTS5 keeps them."""
        terms = self._tokenize(text, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
        return [term.encode()[:_LONGEST_TERM] for term in cast("list[str]", terms)]


def term_number(term: bytes) -> int:
    """Return the number of a term: 63 bits of its BLAKE2b hash, so that no dictionary has to be kept."""
    return int.from_bytes(blake2b(term, digest_size=8).digest(), "little") & _MASK


class Spellings:
    """Every spelling that has been met, and which terms it stands for; a term is known by its place in ``numbers``."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self._places: dict[bytes, int] = {}
        self._terms: list[tuple[int, ...]] = []
        self._known: dict[int, int] = {}
        # Most spellings are found by the first bits of their hash; those that find another there are in `_known` only.
        self._slots = np.zeros(1 << _SLOT_BITS, dtype=np.uint64)
        self._slot_spellings = np.zeros(1 << _SLOT_BITS, dtype=np.int64)
        # The place of the term that a spelling stands for; -1 where it is not exactly one.
        self._single = np.full(1 << 16, -1, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._terms)

    def read(self, tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Integers, Integers]:
        """Return the places of the terms of all texts, in order, and how many each text has."""
        data = b"\0".join([text.encode() for text in texts])
        starts, ends, hashes = _find(np.frombuffer(data, dtype=np.uint8))
        spellings = self._recognise(tokenizer, data, starts, ends, hashes)
        owners = np.searchsorted(_text_ends(texts, data), starts, side="right")
        places = self._single[spellings]
        if (places < 0).any():
            several = [self._terms[spelling] for spelling in spellings.tolist()]
            places = np.fromiter(chain.from_iterable(several), dtype=np.int64)
            owners = np.repeat(owners, [len(terms) for terms in several])
        return places, np.bincount(owners, minlength=len(texts))

    def _recognise(
        self, tokenizer: Tokenizer, data: bytes, starts: Integers, ends: Integers, hashes: Hashes
    ) -> Integers:
        """Return the spelling of each word, given its hash and where it stands."""
        slots = (hashes >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)
        spellings = self._slot_spellings[slots]
        missed = np.flatnonzero(self._slots[slots] != hashes)
        for word, hashed in zip(missed.tolist(), hashes[missed].tolist(), strict=True):
            spelling = self._known.get(hashed)
            if spelling is None:
                spelling = self._learn(tokenizer(data[starts[word] : ends[word]]), hashed)
            spellings[word] = spelling
        return spellings

    def _learn(self, terms: Sequence[bytes], hashed: int) -> int:
        """Remember what a spelling stands for, and return which one it is."""
        spelling = self._known[hashed] = len(self._terms)
        places = tuple(map(self._place, terms))
        self._terms.append(places)
        if spelling == len(self._single):
            self._single = np.concatenate([self._single, np.full_like(self._single, -1)])
        if len(places) == 1:
            self._single[spelling] = places[0]
        slot = hashed >> (64 - _SLOT_BITS)
        if not self._slots[slot]:
            self._slots[slot], self._slot_spellings[slot] = hashed, spelling
        return spelling

    def _place(self, term: bytes) -> int:
        place = self._places.get(term)
        if place is None:
            place = self._places[term] = len(self.numbers)
            self.numbers.append(term_number(term))
        return place


def _text_ends(texts: Sequence[str], data: bytes) -> Integers:
    """Return where each text ends in the data that they are joined in."""
    if len(data) == sum(map(len, texts)) + len(texts) - 1:
        sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    else:
        sizes = np.fromiter((len(text.encode()) for text in texts), dtype=np.int64, count=len(texts))
    ends: Integers = np.cumsum(sizes + 1)
    return ends


def _find(data: NDArray[np.uint8]) -> tuple[Integers, Integers, Hashes]:
    """Return where each word starts and ends, and its hash: the same wherever it stands, and in either case.

    A polynomial modulo 2**64 with a random base, over random numbers for the letters: the sum up to the word's end
    less that up to its start, divided by the power at its start.
    """
    is_word = np.zeros(len(data) + 2, dtype=np.bool_)
    is_word[1:-1] = _IS_WORD[data]
    edges = np.flatnonzero(is_word[1:] != is_word[:-1])
    starts, ends = edges[::2], edges[1::2]
    powers = np.full(len(data), _FACTOR, dtype=np.uint64).cumprod()
    sums = np.zeros(len(data) + 1, dtype=np.uint64)
    np.multiply(_VALUES[data], powers, out=powers)
    np.cumsum(powers, out=sums[1:])
    inverses = np.full(len(data) + 1, _INVERSE, dtype=np.uint64).cumprod()
    return starts, ends, (sums[ends] - sums[starts]) * inverses[starts]
