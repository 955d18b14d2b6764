"""Compare two sets of keys without listing them."""

from __future__ import annotations

from typing import ClassVar, Self

from attrs import frozen

from klaw_core.values.vectors import Keys


@frozen
class KeyDigest:
    """The number of keys, and the sums of the keys and of their squares, each modulo :attr:`MODULUS`.

    Different sets of keys have different digests, except for rare collisions. Sets that differ in at most two keys on
    each side, all below the modulus, never collide.
    """

    #: A prime that is small enough for the squares of smaller numbers, and for all sums, to fit in 64 bits.
    MODULUS: ClassVar[int] = 2**31 - 1

    count: int = 0
    total: int = 0
    squares: int = 0

    @classmethod
    def of(cls, keys: Keys) -> Self:
        """Return the digest of distinct keys, int64 of shape (n,)."""
        rests = keys % cls.MODULUS
        return cls(keys.size, int(rests.sum()), int((rests * rests % cls.MODULUS).sum()))

    def __add__(self, other: KeyDigest) -> KeyDigest:
        """Return the digest of two sets that have no key in common."""
        return KeyDigest(self.count + other.count, self.total + other.total, self.squares + other.squares)
