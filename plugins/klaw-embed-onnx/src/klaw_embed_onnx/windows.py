"""Cutting a long text's tokens into windows, and making one vector of the windows' vectors.

The recipe is part of the vector space (``mean/256``): a change here needs another name there. Why it is
this one is in ``docs/decisions/0004-embedding-long-texts.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from klaw_core import Matrix, Vector


def windows(words: Sequence[int | None], size: int) -> list[slice]:
    """Cut a text of ``len(words)`` tokens into windows of at most ``size`` tokens, as even as they come.

    ``words[i]`` is the number of the word that token i belongs to. A cut falls between words, unless a
    word fills more than half of a window. A text without tokens is one empty window.
    """
    cuts = [0]
    while len(words) - cuts[-1] > size:
        start, left = cuts[-1], len(words) - cuts[-1]
        length = -(-left // -(-left // size))
        end = start + length
        while end > start + length // 2 and words[end] is not None and words[end] == words[end - 1]:
            end -= 1
        cuts.append(end if end > start + length // 2 else start + length)
    cuts.append(len(words))
    return [slice(start, end) for start, end in pairwise(cuts)]


def pool(vectors: Matrix, lengths: Sequence[int]) -> Vector:
    """Return the mean of the windows' unit vectors, shape (n, d), weighted by their tokens, at unit length."""
    if len(vectors) == 1:
        only: Vector = vectors[0]
        return only
    return to_unit_length(np.asarray(lengths, np.float32) @ vectors)


def to_unit_length(vector: Vector) -> Vector:
    """Scale a vector to length 1. A vector of zeros, which no real text has, stays as it is."""
    length = np.linalg.norm(vector)
    unit: Vector = (vector / length if length > 0 else vector).astype(np.float32)
    return unit
