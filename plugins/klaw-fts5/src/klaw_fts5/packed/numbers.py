"""The numbers of terms, in a module of its own because a search needs no other hashing."""

from __future__ import annotations

try:  # ``hashlib`` has the same function, but loads OpenSSL, which takes longer than a keyword search
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from functools import lru_cache

from klaw_fts5.knowledge import term_text
from klaw_fts5.packed.postings import TERM_BITS
from klaw_words.tokenizer import makes_pairs, tokenizer

# Words have the lower half of all numbers, pairs the upper half.
_MASK = (1 << TERM_BITS - 1) - 1


def term_number(term: bytes) -> int:
    """Return the number of a term: 62 bits of its BLAKE2b hash, so that no dictionary is needed."""
    return int.from_bytes(blake2b(term, digest_size=8).digest(), "little") & _MASK


@lru_cache(maxsize=4096)
def spelled(word: str) -> tuple[int | None, bool, str]:
    """Return a word's number, whether it forms pairs with adjacent words, and its term.

    Return (None, False, "") if the tokenizer does not make one term of it.
    """
    terms = tokenizer()(word.encode())
    return (term_number(terms[0]), makes_pairs(terms[0]), term_text(terms[0])) if len(terms) == 1 else (None, False, "")
