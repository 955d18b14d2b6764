"""ONNX Runtime: from windows of token ids to unit vectors.

One batch runs on one thread and several batches run at once. On a quiet machine that gave 1.2 to 1.3 times
the texts a second of one batch on all threads (``docs/decisions/0003-model-precision.md``), nothing waits at
barriers, and a process may fork, since the session has no threads of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from klaw_core import EmbedderUnavailableError, EmbeddingError, Lazy, Matrix, Vector
from klaw_embed_onnx.tokenizer import Ids
from klaw_embed_onnx.windows import to_unit_length
from klaw_models import OnnxEmbedderManifest

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]  # it has no py.typed

REINSTALL = "pip install --upgrade --force-reinstall onnxruntime"


@frozen
class ModelSession:
    """A loaded model. Safe to use from several threads.

    ``types_input`` is None for a graph that is not told which of two texts a token belongs to.
    """

    session: InferenceSession
    manifest: OnnxEmbedderManifest
    types_input: str | None
    output: str
    threads: int
    batch_tokens: int

    @classmethod
    def load(cls, manifest: OnnxEmbedderManifest, *, threads: int, batch_tokens: int) -> ModelSession:
        """Check and load the model. Raise EmbedderUnavailableError or ModelCorruptError.

        The file is read and hashed while onnxruntime is imported, which takes longer; the session is made
        of the very bytes that were checked.
        """
        content = Lazy(lambda: manifest.read(manifest.model))
        content.preload()
        session = _open(content, manifest)
        inputs, outputs = ([value.name for value in values] for values in (session.get_inputs(), session.get_outputs()))
        types_input = manifest.types_input if manifest.types_input in inputs else None
        output = manifest.output or outputs[0]
        missing = ({manifest.ids_input, manifest.mask_input} - set(inputs)) | ({output} - set(outputs))
        if missing:
            raise manifest.corrupt(f"the graph of {manifest.name} has no {', '.join(sorted(missing))}")
        return cls(session, manifest, types_input, output, threads or usable_processors(), batch_tokens)

    def embed(self, windows: Sequence[Ids]) -> Matrix:
        """Return float32 of shape (n, d), row i for window i, of unit length. Raise EmbeddingError."""
        return self.embed_groups([windows])

    def embed_groups(self, groups: Iterable[Sequence[Ids]]) -> Matrix:
        """Embed the windows of all groups, as :meth:`embed` does, row i for window i of them all.

        While a group is computed the next is taken from the iterator, in the calling thread.
        """
        batches = self._batches(groups)
        first = list(islice(batches, 2))
        if self.threads == 1 or len(first) == 1:
            return self._assemble((batch, self._run(windows)) for batch, windows in chain(first, batches))
        from concurrent.futures import ThreadPoolExecutor  # and logging with it, for nothing where there is one batch

        executor = ThreadPoolExecutor(self.threads, "klaw-embed")  # it begins a thread when there is work for one
        try:
            futures = [(batch, executor.submit(self._run, windows)) for batch, windows in chain(first, batches)]
            return self._assemble((batch, future.result()) for batch, future in futures)
        finally:  # after an error or Ctrl-C, what has not begun never does
            executor.shutdown(cancel_futures=True)

    def _batches(self, groups: Iterable[Sequence[Ids]]) -> Iterator[tuple[list[int], list[Ids]]]:
        """Yield each batch: its rows among all windows, and its windows."""
        first = 0
        for windows in groups:
            for batch in _batches(windows, self.batch_tokens):
                yield [first + number for number in batch], [windows[number] for number in batch]
            first += len(windows)

    def _assemble(self, parts: Iterable[tuple[list[int], Matrix]]) -> Matrix:
        """Put the rows of the batches in order."""
        done = list(parts)
        vectors = np.empty((sum(len(batch) for batch, _ in done), self.manifest.dimension), np.float32)
        for batch, rows in done:
            vectors[batch] = rows
        return vectors

    def _run(self, windows: Sequence[Ids]) -> Matrix:
        ids = np.zeros((len(windows), max(map(len, windows))), np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window
            mask[row, : len(window)] = 1
        feed = {self.manifest.ids_input: ids, self.manifest.mask_input: mask}
        if self.types_input:
            feed[self.types_input] = np.zeros_like(ids)
        try:
            states = self.session.run([self.output], feed)[0].astype(np.float32, copy=False)  # some give float16
        except Exception as error:  # onnxruntime's errors have no common base below Exception
            raise EmbeddingError(f"{self.manifest.name} failed: {error}") from error
        if states.shape[:2] != ids.shape or states.ndim != 3:  # noqa: PLR2004  # (batch, tokens, dimension)
            raise EmbeddingError(f"{self.output} of {self.manifest.name} is not a vector a token: {states.shape}")
        vectors = np.stack([self._pool(states[row, : len(window)]) for row, window in enumerate(windows)])
        if vectors.shape[1] != self.manifest.dimension or not np.isfinite(vectors).all():
            raise EmbeddingError(f"{self.manifest.name} gave no sound vectors (shape {vectors.shape})")
        return vectors

    def _pool(self, states: Matrix) -> Vector:
        """Make one unit vector of a window's own tokens, so that padding beside it cannot matter."""
        return to_unit_length(states[0] if self.manifest.pooling == "cls" else states.mean(axis=0))


def usable_processors() -> int:
    """Return how many processors this process may use: its affinity, where the system knows such a thing."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _open(content: Lazy[bytes], manifest: OnnxEmbedderManifest) -> InferenceSession:
    try:
        import onnxruntime
    except (ImportError, OSError) as error:
        raise EmbedderUnavailableError(f"onnxruntime cannot be imported: {error}", hint=REINSTALL) from error
    model = content.get()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; they arrive as exceptions anyway
    # To plan which outputs may share memory takes almost half of the time to load, and saves none: the arena does that.
    options.enable_mem_reuse = False
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base below Exception
        raise EmbedderUnavailableError(
            f"onnxruntime {onnxruntime.__version__} cannot load {manifest.name}: {error}", hint=REINSTALL
        ) from error


def _batches(windows: Sequence[Ids], batch_tokens: int) -> list[list[int]]:
    """Group windows of similar length, longest first, up to ``batch_tokens`` a batch, padding included."""
    batches: list[list[int]] = []
    width = 0
    for number in sorted(range(len(windows)), key=lambda number: -len(windows[number])):
        if not batches or (len(batches[-1]) + 1) * width > batch_tokens:
            batches.append([])
            width = len(windows[number])
        batches[-1].append(number)
    return batches
