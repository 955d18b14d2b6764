"""A model for fake servers in tests: its vectors depend on every word, its window on a realistic token count."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
from attrs import define

from klaw_core import estimate_tokens

FloatVector = np.ndarray[Any, np.dtype[np.float64]]

_ROWS = 1021


@define
class FakeModel:
    """Counts two special tokens; ``tokens_per_piece`` makes its tokenizer finer than Klaw's estimate."""

    dimension: int = 64
    context: int = 256
    tokens_per_piece: int = 1
    normalizes: bool = True

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text, special ones included."""
        pieces = [
            f"{word}{number}"
            for word in text.split()
            for number in range(estimate_tokens([word])[0] * self.tokens_per_piece)
        ]
        return ["[CLS]", *pieces, "[SEP]"]

    def too_long(self, text: str) -> bool:
        """Return whether a text exceeds the window."""
        return len(self.tokens(text)) > self.context

    def vector(self, text: str, dimension: int | None = None) -> FloatVector:
        """Return the sum of a pseudo-random vector a token of the window, of this dimension."""
        tokens = self.tokens(text)[: self.context]
        table = _table(dimension or self.dimension)
        # Two rows a token: a million pairs, so that no two of a test's words are likely to share theirs.
        hashes = np.array([crc32(token.encode("utf-8", "surrogatepass")) for token in tokens])
        total: FloatVector = table[hashes % _ROWS].sum(axis=0) + table[hashes // _ROWS % _ROWS].sum(axis=0)
        return total / np.linalg.norm(total) if self.normalizes else total


@lru_cache(maxsize=4)
def _table(length: int) -> FloatVector:
    return np.random.default_rng(7).standard_normal((_ROWS, length))
