"""The numbers of terms. A search needs no more of hashing than this."""

from __future__ import annotations

try:  # ``hashlib`` has the same function, and loads OpenSSL, which takes longer than a search for words
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from klaw_fts5.packed.postings import TERM_BITS

# The numbers of words are the lower half of all, those of pairs the upper.
_MASK = (1 << TERM_BITS - 1) - 1


def term_number(term: bytes) -> int:
    """Return the number of a term: 62 bits of its BLAKE2b hash, so that no dictionary has to be kept."""
    return int.from_bytes(blake2b(term, digest_size=8).digest(), "little") & _MASK
