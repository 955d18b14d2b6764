"""Seed phrases of wallets: 12 to 24 words of the list of BIP-0039, the last of which has a checksum."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from klaw_redaction.bip39 import WORDS

#: How many words a phrase has, longest first, and how many bits of its words are the checksum.
LENGTHS = {24: 8, 21: 7, 18: 6, 15: 5, 12: 4}
_BITS = 11
_FEWEST = min(LENGTHS)
# So many words of the list may stand beside a phrase, such as "seed" and "wallet".
_BESIDE = 4
# A longer row of words of the list is a list itself.
_MOST = 100
# What may stand between two words: spaces, commas, ends of lines, numbers. After a colon begins another row.
_MARKS = "0123456789.,;:)(|*`\"'>-"
_WORD = re.compile(r"[^\W\d_]+")
_GAP = re.compile(rf"(?:[\s{re.escape(_MARKS.replace(':', ''))}]|(?<=\d):){{1,12}}")


@lru_cache(maxsize=1)
def _numbers() -> Mapping[str, int]:
    return {word: number for number, word in enumerate(WORDS.split())}


def seed_phrases(lower: str) -> Iterator[tuple[int, int]]:
    """Yield where in a text in lower case words of the list with a right checksum are, in order."""
    if not _may_have(lower.split()):
        return
    for row in _rows(lower):
        for begin, end in _parts([lower[slice(*span)] for span in row]):
            yield row[begin][0], row[end - 1][1]


def _parts(words: Sequence[str]) -> Sequence[tuple[int, int]]:
    """Return which parts of a row are phrases: all of it, or one without a few words before and after it."""
    for length in LENGTHS:
        starts = range(0, len(words), length)
        if len(words) % length == 0 and all(_is_phrase(words[at : at + length]) for at in starts):
            return [(at, at + length) for at in starts]
    for length in LENGTHS:
        others = len(words) - length
        for at in range(others + 1) if others <= _BESIDE else ():
            if _is_phrase(words[at : at + length]):
                return [(at, at + length)]
    return []


def _may_have(words: Sequence[str]) -> bool:
    """Return whether there may be a row of a phrase's length: each has one of every 12th words, and its neighbours."""
    if len(words) < _FEWEST:
        return False
    known = _numbers()
    every, before = words[_FEWEST - 1 :: _FEWEST], words[_FEWEST - 2 :: _FEWEST]
    for number, (word, other) in enumerate(zip(every, before, strict=False)):
        if word.rstrip(",") in known or other in known:
            begin = end = at = (number + 1) * _FEWEST - 1
            while begin > at - _FEWEST and _is_part(words[begin], known):
                begin -= 1
            while end < min(at + _FEWEST, len(words)) and _is_part(words[end], known):
                end += 1
            if end - begin > _FEWEST:
                return True
    return False


def _is_part(word: str, known: Mapping[str, int]) -> bool:
    stripped = "" if word in known else word.strip(_MARKS)
    return not stripped or all(part in known for part in stripped.split(","))


def _rows(text: str) -> Iterator[Sequence[tuple[int, int]]]:
    """Yield the ranges of the words of the list that stand in a row."""
    known = _numbers()
    row: list[tuple[int, int]] = []
    for match in _WORD.finditer(text):
        is_next = bool(row) and _GAP.fullmatch(text, row[-1][1], match.start()) is not None
        is_known = match[0] in known
        if row and not (is_next and is_known):
            if _FEWEST <= len(row) <= _MOST:
                yield row
            row = []
        if is_known:
            row.append(match.span())
    if _FEWEST <= len(row) <= _MOST:
        yield row


def _is_phrase(words: Sequence[str]) -> bool:
    """Return whether the checksum is right: the first bits of the SHA-256 of the others."""
    from hashlib import sha256  # which loads OpenSSL; few texts need it

    bits, checksum = 0, LENGTHS[len(words)]
    for word in words:
        bits = bits << _BITS | _numbers()[word]
    entropy = (bits >> checksum).to_bytes((len(words) * _BITS - checksum) // 8, "big")
    return bits & ((1 << checksum) - 1) == sha256(entropy).digest()[0] >> (8 - checksum)
