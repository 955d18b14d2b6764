"""An embedder around a model's session, whatever runs it: texts in, unit vectors out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from klaw_core import Lazy, Matrix, Vector, VectorSpace, pool_windows
from klaw_models import OnnxEmbedderManifest
from klaw_onnx.encoder import SentenceEncoder
from klaw_onnx.windows import Ids, TextTokenizer, TextWindow

#: Characters tokenised at once, some eight batches, while the model computes what was tokenised before.
GROUP_CHARACTERS = 16_384


class WindowEmbedder:
    """Embeds with the encoder that ``load`` returns. Safe to use from several threads.

    Constructing reads nothing. The tokenizer loads at the first call, the model at the first text to embed; both raise
    EmbedderUnavailableError, ModelCorruptError. The vector of a text longer than the window is the mean of its
    windows' (:func:`~klaw_onnx.windows.cut_tokens`); a text without any token has the vector of the special
    tokens. A text's vector does not depend on what else is in the call, but for what the runtime rounds.
    """

    # Many, because the core bounds a call by its characters as well: short texts come in calls worth making.
    texts_per_call = 512

    def __init__(self, manifest: OnnxEmbedderManifest, load: Callable[[], SentenceEncoder]) -> None:
        self._manifest = manifest
        self._tokenizer = Lazy(lambda: TextTokenizer.load(manifest))
        self._encoder = Lazy(load)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space})"

    @property
    def space(self) -> VectorSpace:
        """Return the vector space; only vectors of one space can be compared."""
        return self._manifest.space

    @property
    def max_tokens(self) -> int:
        """Return how many tokens of a text the model reads at once."""
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
        rows: dict[Ids, int] = {}  # equal windows, and so equal texts, are embedded once

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
    """Yield the numbers of the texts, longest first, in groups of about :data:`GROUP_CHARACTERS`."""
    group: list[int] = []
    held = 0
    for number in sorted(range(len(texts)), key=lambda number: -len(texts[number])):
        group.append(number)
        held += len(texts[number])
        if held >= GROUP_CHARACTERS:
            yield group
            group, held = [], 0
    if group:
        yield group
