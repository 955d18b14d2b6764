"""Cutting a text that is longer than the model's window, and making one vector of its windows' vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from klaw_core import estimate_tokens

if TYPE_CHECKING:
    from klaw_core import Matrix, Vector

# Where a cut hurts least, best first.
_JOINTS = ("\n\n", "\n", ". ", " ")


def windows(text: str, max_tokens: int) -> list[str]:
    """Return the text in pieces of at most ``max_tokens`` estimated tokens, in order and nothing left out.

    Halving keeps the pieces of similar size, so that no stray end weighs like a page, and is what the
    embedder falls back to when the server counts more tokens than the estimate.
    """
    if len(text) < 2 or estimate_tokens([text])[0] <= max_tokens:  # noqa: PLR2004  # one character cannot be cut
        return [text]
    left, right = halves(text)
    return [*windows(left, max_tokens), *windows(right, max_tokens)]


def halves(text: str) -> tuple[str, str]:
    """Cut a text of two characters or more near its middle: between paragraphs, lines, sentences or words."""
    middle, reach = len(text) // 2, len(text) // 4
    for joint in _JOINTS:
        found = text.rfind(joint, middle - reach, middle + reach)
        if found >= 0:
            return text[: found + len(joint)], text[found + len(joint) :]
    return text[:middle], text[middle:]


def pool(vectors: Matrix, pieces: Sequence[str]) -> Vector:
    """Return the mean of the pieces' vectors, shape (n, d), weighted by their tokens; not yet of unit length."""
    import numpy as np

    weights = np.maximum(estimate_tokens(pieces), 1).astype(np.float32)
    mean: Vector = np.average(vectors, axis=0, weights=weights).astype(np.float32)
    return mean
