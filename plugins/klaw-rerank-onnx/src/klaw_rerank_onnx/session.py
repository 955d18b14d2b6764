"""ONNX Runtime: from pairs of token ids to one number a pair."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from klaw_core import RetrievalError
from klaw_models import CrossEncoderManifest
from klaw_rerank_onnx.pairs import Pair

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]  # it has no py.typed

REINSTALL = "pip install --upgrade --force-reinstall onnxruntime"
_TWO_CLASSES = 2


@frozen
class CrossEncoder:
    """A loaded model. Safe to use from several threads.

    One batch runs on one thread and several batches run at once, so that a process may fork: the session has no
    threads of its own.
    """

    session: InferenceSession
    manifest: CrossEncoderManifest
    types_input: str | None
    output: str
    threads: int
    batch: int

    @classmethod
    def load(cls, manifest: CrossEncoderManifest, *, threads: int, batch: int) -> CrossEncoder:
        """Check and load the model. Raise RetrievalError or ModelCorruptError."""
        session = _open(manifest)
        inputs, outputs = ([value.name for value in values] for values in (session.get_inputs(), session.get_outputs()))
        types_input = manifest.types_input if manifest.types_input in inputs else None
        output = manifest.output or outputs[0]
        missing = ({manifest.ids_input, manifest.mask_input} - set(inputs)) | ({output} - set(outputs))
        if missing:
            raise manifest.corrupt(f"the graph of {manifest.name} has no {', '.join(sorted(missing))}")
        return cls(session, manifest, types_input, output, threads or _usable_processors(), batch)

    def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return one finite number a pair, higher is better. Raise RetrievalError or ModelCorruptError."""
        # Similar lengths side by side waste little on padding.
        order = sorted(range(len(pairs)), key=lambda place: -len(pairs[place].ids))
        batches = [order[first : first + self.batch] for first in range(0, len(order), self.batch)]
        scores = np.empty(len(pairs))
        executor = ThreadPoolExecutor(max(1, min(self.threads, len(batches))), "klaw-rerank")
        try:
            futures = [executor.submit(self._run, [pairs[place] for place in batch]) for batch in batches]
            for batch, future in zip(batches, futures, strict=True):
                scores[batch] = future.result()
        finally:  # after an error or Ctrl-C, what has not begun never does
            executor.shutdown(cancel_futures=True)
        return [float(score) for score in scores]

    def _run(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        ids = np.zeros((len(pairs), max(len(pair.ids) for pair in pairs)), np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, pair in enumerate(pairs):
            ids[row, : len(pair.ids)] = pair.ids
            mask[row, : len(pair.ids)] = 1
            types[row, : len(pair.types)] = pair.types
        feed = {self.manifest.ids_input: ids, self.manifest.mask_input: mask}
        if self.types_input:
            feed[self.types_input] = types
        try:
            given = self.session.run([self.output], feed)[0]
        except Exception as error:  # onnxruntime's errors have no common base below Exception
            raise RetrievalError(f"{self.manifest.name} failed: {error}") from error
        return self._one_each(np.asarray(given, np.float64), len(pairs))

    def _one_each(self, given: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """Make one number a pair; two logits' difference is the logit of the second class against the first."""
        if given.shape == (count, _TWO_CLASSES):
            given = given[:, 1] - given[:, 0]
        if given.shape not in {(count,), (count, 1)}:
            raise self.manifest.corrupt(
                f"{self.output} of {self.manifest.name} has the shape {given.shape}, not one or two logits a pair"
            )
        scores = given.reshape(count)
        if not np.isfinite(scores).all():
            raise RetrievalError(f"{self.manifest.name} gave a score that is no finite number")
        return scores


def _usable_processors() -> int:
    """Return how many processors this process may use: its affinity, where the system knows such a thing."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _open(manifest: CrossEncoderManifest) -> InferenceSession:
    content = manifest.read(manifest.model)
    try:
        import onnxruntime
    except (ImportError, OSError) as error:
        raise RetrievalError(f"onnxruntime cannot be imported: {error}", hint=REINSTALL) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; they arrive as exceptions anyway
    # As in klaw-embed-onnx: the plan takes almost half of the time to load, and the arena does the same without it.
    options.enable_mem_reuse = False
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base below Exception
        raise RetrievalError(
            f"onnxruntime {onnxruntime.__version__} cannot load {manifest.name}: {error}", hint=REINSTALL
        ) from error
