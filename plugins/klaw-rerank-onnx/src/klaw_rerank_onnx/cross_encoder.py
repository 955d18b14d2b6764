"""Run a cross-encoder: pairs of texts as token ids in, one number per pair out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from klaw_core import RetrievalError
from klaw_models import CrossEncoderManifest
from klaw_models.onnx import OnnxSession, compute_batches, usable_processors
from klaw_rerank_onnx.pairs import Pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TWO_CLASSES = 2


@frozen(eq=False)
class CrossEncoder:
    """A loaded model. Safe to use from several threads."""

    session: OnnxSession
    threads: int
    batch: int

    @classmethod
    def load(cls, manifest: CrossEncoderManifest, *, threads: int, batch: int) -> CrossEncoder:
        """Check and load the model. Raise RetrievalError or ModelCorruptError."""
        session = OnnxSession.load(manifest, unavailable=RetrievalError, failed=RetrievalError)
        return cls(session, threads or usable_processors(), batch)

    def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return one finite number per pair; higher is better. Raise RetrievalError or ModelCorruptError."""
        # Pairs of similar length in a batch need little padding.
        order = sorted(range(len(pairs)), key=lambda number: -len(pairs[number].ids))
        batches = [order[first : first + self.batch] for first in range(0, len(order), self.batch)]
        scores = np.empty(len(pairs))
        done = compute_batches(lambda batch: self._run([pairs[number] for number in batch]), batches, self.threads)
        for batch, own in zip(batches, done, strict=True):
            scores[batch] = own
        return [float(score) for score in scores]

    def _run(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        output = self.session.run([pair.ids for pair in pairs], [pair.types for pair in pairs])
        return self._one_each(np.asarray(output, np.float64), len(pairs))

    def _one_each(self, output: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """Return one number per pair. Of two logits, the result is the second minus the first."""
        manifest = self.session.manifest
        if output.shape == (count, _TWO_CLASSES):
            output = output[:, 1] - output[:, 0]
        if output.shape not in {(count,), (count, 1)}:
            raise manifest.corrupt(
                f"{self.session.output} of {manifest.name} has the shape {output.shape}, not one or two logits a pair"
            )
        scores = output.reshape(count)
        if not np.isfinite(scores).all():
            raise RetrievalError(f"{manifest.name} returned a score that is not a finite number")
        return scores
