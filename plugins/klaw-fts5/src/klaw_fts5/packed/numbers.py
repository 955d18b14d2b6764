"""The numbers of terms, in a module of its own because a search needs no other hashing."""

from __future__ import annotations

try:  # ``hashlib`` has the same function, but loads OpenSSL, which takes longer than a keyword search
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from klaw_fts5.packed.postings import TERM_BITS

# Words have the lower half of all numbers, pairs the upper half.
_MASK = (1 << TERM_BITS - 1) - 1


def term_number(term: bytes) -> int:
    """Return the number of a term: 62 bits of its BLAKE2b hash, so that no dictionary is needed."""
    return int.from_bytes(blake2b(term, digest_size=8).digest(), "little") & _MASK
