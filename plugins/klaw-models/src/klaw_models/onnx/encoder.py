"""Turn windows of token ids into unit vectors, in batches of similar length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from attrs import frozen

from klaw_core import EmbeddingError, Matrix, Vector, unit_rows
from klaw_models import OnnxEmbedderManifest
from klaw_models.onnx.batches import compute_batches
from klaw_models.onnx.windows import Ids

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Session(Protocol):
    """A model that is loaded in some runtime. Safe to use from several threads."""

    @property
    def output(self) -> str:
        """Return the name of the graph's output, for error messages."""

    def run(self, rows: Sequence[Sequence[int]], /) -> NDArray[Any]:
        """Return the output for rows of token ids, which are padded to the longest row. Raise EmbeddingError."""


@frozen(eq=False)
class SentenceEncoder:
    """Computes the vectors of windows with a loaded model. Safe to use from several threads."""

    session: Session
    manifest: OnnxEmbedderManifest
    threads: int
    batch_tokens: int

    def embed(self, windows: Sequence[Ids]) -> Matrix:
        """Return float32 of shape (n, d), row i for window i, of unit length. Raise EmbeddingError."""
        return self.embed_groups([windows])

    def embed_groups(self, groups: Iterable[Sequence[Ids]]) -> Matrix:
        """Embed the windows of all groups as :meth:`embed` does, row i for window i of all groups together.

        The calling thread takes the next group from the iterator while earlier ones are computed.
        """
        computed = compute_batches(self._embed_batch, self._batches(groups), self.threads)
        vectors = np.empty((sum(len(numbers) for numbers, _ in computed), self.manifest.dimension), np.float32)
        for numbers, rows in computed:
            vectors[numbers] = rows
        return vectors

    def _batches(self, groups: Iterable[Sequence[Ids]]) -> Iterator[tuple[list[int], list[Ids]]]:
        """Yield for each batch the indexes of its windows among all windows, and the windows."""
        first = 0
        for windows in groups:
            for batch in split_batches(windows, self.batch_tokens):
                yield [first + number for number in batch], [windows[number] for number in batch]
            first += len(windows)

    def _embed_batch(self, batch: tuple[list[int], list[Ids]]) -> tuple[list[int], Matrix]:
        numbers, windows = batch
        return numbers, self.embed_together(windows)

    def embed_together(self, windows: Sequence[Ids]) -> Matrix:
        """Embed windows as :meth:`embed` does, in one batch and in the calling thread."""
        states = self.session.run(windows).astype(np.float32, copy=False)  # some graphs return float16
        name, output = self.manifest.name, self.session.output
        if states.shape[:2] != (len(windows), max(map(len, windows))) or states.ndim != 3:  # noqa: PLR2004  # (batch, tokens, dimension)
            raise EmbeddingError(f"{output} of {name} is not a vector a token: {states.shape}")
        if states.shape[2] != self.manifest.dimension:
            raise EmbeddingError(
                f"{name} returns vectors of shape {states.shape[2:]}, not ({self.manifest.dimension},)"
            )
        return unit_rows(np.stack([self._pool(states[row, : len(window)]) for row, window in enumerate(windows)]), name)

    def _pool(self, states: Matrix) -> Vector:
        """Return one vector for a window from the states of its tokens, without padding."""
        pooled: Vector = states[0] if self.manifest.pooling == "cls" else states.mean(axis=0)
        return pooled


def split_batches(windows: Sequence[Ids], batch_tokens: int) -> list[list[int]]:
    """Return batches of window indexes, longest windows first, of at most ``batch_tokens`` including padding.

    A window with more tokens is a batch of its own.
    """
    batches: list[list[int]] = []
    width = 0
    for number in sorted(range(len(windows)), key=lambda number: -len(windows[number])):
        if not batches or (len(batches[-1]) + 1) * width > batch_tokens:
            batches.append([])
            width = len(windows[number])
        batches[-1].append(number)
    return batches
