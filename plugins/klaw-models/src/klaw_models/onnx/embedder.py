"""The base class of embedders that run a model locally: texts in, unit vectors out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from klaw_core import Lazy, Matrix, Vector, VectorSpace, pool_windows
from klaw_models import OnnxEmbedderManifest
from klaw_models.onnx.encoder import SentenceEncoder
from klaw_models.onnx.windows import Ids, TextTokenizer, TextWindow

#: Characters per group, about eight batches. A group is tokenised while the model computes the previous one.
GROUP_CHARACTERS = 16_384


class WindowEmbedder:
    """Embeds with the encoder that ``load`` returns. Safe to use from several threads.

    The constructor reads nothing. The tokenizer loads at the first call, the model when the first text is embedded;
    both raise EmbedderUnavailableError or ModelCorruptError. The vector of a text longer than the window is the mean of
    the vectors of its windows (:func:`.windows.cut_tokens`). A text without tokens has the vector of the
    special tokens. The other texts of a call do not change a text's vector, except for rounding by the runtime.
    """

    # Large, so that a call with short texts is worth its overhead; klaw_core also limits the characters of a call.
    texts_per_call = 512

    def __init__(self, manifest: OnnxEmbedderManifest, load: Callable[[], SentenceEncoder]) -> None:
        self._manifest = manifest
        self._tokenizer = Lazy(lambda: TextTokenizer.load(manifest))
        self._encoder = Lazy(load)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space})"

    @property
    def space(self) -> VectorSpace:
        """Return the vector space; only vectors of the same space are comparable."""
        return self._manifest.space

    @property
    def max_tokens(self) -> int:
        """Return the maximum number of a text's tokens in one window."""
        return self._manifest.max_tokens

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return float32 of shape (n, d), row i for text i, each of unit length. Raise EmbeddingError."""
        return self._embed(texts, query=False)

    def embed_query(self, text: str, /) -> Vector:
        """Return float32 of shape (d,), unit length. Raise EmbeddingError."""
        vector: Vector = self._embed([text], query=True)[0]
        return vector

    def count_tokens(self, texts: Sequence[str], /) -> list[int]:
        """Return each text's number of tokens, without special tokens. Raise EmbeddingError."""
        return self._tokenizer.get().count(texts) if texts else []

    def _embed(self, texts: Sequence[str], *, query: bool) -> Matrix:
        if not texts:
            return np.empty((0, self._manifest.dimension), np.float32)
        tokenizer = self._tokenizer.get()
        texts_windows: list[Sequence[TextWindow]] = [()] * len(texts)
        rows: dict[Ids, int] = {}  # equal windows, and therefore equal texts, are embedded once

        def new_windows() -> Iterator[list[Ids]]:
            for group in _groups(texts):
                known = len(rows)
                for number, windows in zip(
                    group, tokenizer.windows([texts[i] for i in group], query=query), strict=True
                ):
                    texts_windows[number] = windows
                    for window in windows:
                        rows.setdefault(window.ids, len(rows))
                yield list(islice(rows, known, None))

        vectors = self._encoder.get().embed_groups(new_windows())

        def vector(windows: Sequence[TextWindow]) -> Vector:
            own = vectors[[rows[window.ids] for window in windows]]
            return own[0] if len(own) == 1 else pool_windows(own, [window.tokens for window in windows])

        return np.stack([vector(windows) for windows in texts_windows])


def _groups(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the indexes of the texts, longest first, in groups of about :data:`GROUP_CHARACTERS`."""
    group: list[int] = []
    characters = 0
    for number in sorted(range(len(texts)), key=lambda number: -len(texts[number])):
        group.append(number)
        characters += len(texts[number])
        if characters >= GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group
