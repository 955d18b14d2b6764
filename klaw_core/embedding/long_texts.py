"""Embed texts that are longer than a model's window: split them into windows, embed each, and pool the vectors.

This is for embedders that take texts and not token ids: remote ones, and local runtimes with their own tokenizer.
``docs/decisions/0004-embedding-long-texts.md`` says why windows are pooled instead of truncating the text. The pooling
determines the vector of a long text, so it is part of the vector space: ``VectorSpace(pooling=f"mean/{max_tokens}")``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from klaw_core.embedding.token_estimate import estimate_tokens
from klaw_core.errors import EmbeddingError
from klaw_core.values.text import TokenCounter
from klaw_core.values.vectors import Matrix, Vector

if TYPE_CHECKING:
    import numpy as np

# Separators to split at, in order of preference.
_JOINTS = ("\n\n", "\n", ". ", "。", " ")


def embed_in_windows(
    texts: Sequence[str],
    max_tokens: int,
    embed: Callable[[Sequence[str]], Matrix],
    count_tokens: TokenCounter = estimate_tokens,
) -> Matrix:
    """Embed texts of any length; return float32 of shape (n, d), row i for text i, each of unit length.

    ``embed`` is called once, with distinct windows of at most ``max_tokens`` each. It returns one row of unit length
    per window, and adds the prefixes that the model needs. Equal texts, and windows that several texts share, are
    embedded once. Windows of white space are left out. ``texts`` must not be empty.
    Raise EmbeddingError if the windows of a text cancel out.
    """
    import numpy as np

    distinct = list(dict.fromkeys(texts))
    counts = count_tokens(distinct)
    windows_of = {
        text: [text] if count <= max_tokens else _not_blank(cut_windows(text, max_tokens, count_tokens))
        for text, count in zip(distinct, counts, strict=True)
    }
    windows = list(dict.fromkeys(chain.from_iterable(windows_of.values())))
    rows = embed(windows)
    row_of = {window: row for row, window in enumerate(windows)}

    def vector(parts: Sequence[str]) -> Vector:
        picked = rows[[row_of[part] for part in parts]]
        return picked[0] if len(parts) == 1 else pool_windows(picked, count_tokens(parts))

    vectors = {text: vector(parts) for text, parts in windows_of.items()}
    return np.stack([vectors[text] for text in texts]).astype(np.float32, copy=False)


def cut_windows(text: str, max_tokens: int, count_tokens: TokenCounter = estimate_tokens) -> list[str]:
    """Split a text into consecutive pieces of at most ``max_tokens`` each.

    The text is halved repeatedly, which keeps the pieces of similar size: a short last piece would otherwise weigh as
    much as a page. A single character is never split, regardless of its token count.
    """
    if len(text) < 2 or count_tokens([text])[0] <= max_tokens:  # noqa: PLR2004  # one character cannot be cut
        return [text]
    return [window for half in halves(text) for window in cut_windows(half, max_tokens, count_tokens)]


def halves(text: str) -> tuple[str, str]:
    """Split a text of at least two characters near its middle, between paragraphs, lines, sentences or words."""
    middle, reach = len(text) // 2, len(text) // 4
    for joint in _JOINTS:
        before = text.rfind(joint, middle - reach, middle)
        after = text.find(joint, middle - len(joint) + 1, middle + reach)
        ends = [found + len(joint) for found in (before, after) if found >= 0]
        if ends:
            cut = min(ends, key=lambda end: abs(end - middle))
            return text[:cut], text[cut:]
    return text[:middle], text[middle:]


def pool_windows(vectors: Matrix, tokens: Sequence[int]) -> Vector:
    """Return the mean of unit vectors of shape (n, d), weighted by token counts and scaled to unit length.

    Raise EmbeddingError if they cancel out.
    """
    import numpy as np

    mean = np.average(vectors.astype(np.float64), axis=0, weights=np.maximum(tokens, 1))
    pooled: Vector = _scaled(mean[np.newaxis], "the vectors of a text's windows cancel out")[0]
    return pooled


def unit_rows(vectors: Matrix, source: str) -> Matrix:
    """Return the rows as float32 of unit length.

    Raise EmbeddingError, with the name ``source``, for a row with NaN, an infinity, or only zeros. An index would
    accept such a row and return wrong results later.
    """
    import numpy as np

    wide = np.asarray(vectors, np.float64)
    if not np.isfinite(wide).all():
        raise EmbeddingError(f"{source} returned a vector with NaN or an infinity")
    return _scaled(wide, f"{source} returned a vector of zeros")


def _scaled(wide: np.ndarray[tuple[int, ...], np.dtype[np.float64]], message: str) -> Matrix:
    """Scale each row to length 1 in double precision, because a float32 square may overflow or underflow."""
    import numpy as np

    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not lengths.all():
        raise EmbeddingError(message)
    unit: Matrix = (wide / lengths).astype(np.float32)
    return unit


def _not_blank(windows: Sequence[str]) -> Sequence[str]:
    return [window for window in windows if window.strip()] or windows[:1]
