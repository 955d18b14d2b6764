"""The embedder ``sentence-transformers``: texts in, unit vectors out, with PyTorch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from klaw_core import (
    EmbedderUnavailableError,
    EmbeddingError,
    Lazy,
    Matrix,
    Vector,
    VectorSpace,
    pool_windows,
    unit_rows,
)
from klaw_embed_sentence_transformers.loading import LoadedModel, load
from klaw_embed_sentence_transformers.options import SentenceTransformersOptions
from klaw_models.onnx import Ids, split_batches

if TYPE_CHECKING:
    import torch


class SentenceTransformersEmbedder:
    """Embeds with a model of sentence-transformers. Safe to use from several threads.

    The constructor loads nothing. The first call that needs the model raises EmbedderUnavailableError if it cannot be
    loaded, and so does every call in a process that was forked afterwards: PyTorch's threads and the graphics card do
    not exist there. The vector of a text longer than the window is the mean of the vectors of its windows.
    """

    # Large, because batches of texts of similar length are made from the texts of one call.
    texts_per_call = 2048

    def __init__(self, options: SentenceTransformersOptions) -> None:
        self._options = options
        self._loaded = Lazy(lambda: (os.getpid(), load(options)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model})"

    @property
    def model(self) -> str:
        """Return the name of the model, without loading it."""
        return self._options.model.rpartition("/")[2]

    @property
    def space(self) -> VectorSpace:
        """Return the vector space; only vectors of the same space are comparable."""
        return self._ready().space

    @property
    def max_tokens(self) -> int:
        """Return the maximum number of a text's tokens in one window."""
        return self._ready().tokenizer.max_tokens

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return float32 of shape (n, d), row i for text i, each of unit length. Raise EmbeddingError."""
        return self._embed(texts, query=False)

    def embed_query(self, text: str, /) -> Vector:
        """Return float32 of shape (d,), unit length. Raise EmbeddingError."""
        vector: Vector = self._embed([text], query=True)[0]
        return vector

    def count_tokens(self, texts: Sequence[str], /) -> list[int]:
        """Return each text's number of tokens, without special tokens. Raise EmbeddingError."""
        return self._ready().tokenizer.count(texts) if texts else []

    def _ready(self) -> LoadedModel:
        process, loaded = self._loaded.get()
        if os.getpid() != process:
            raise EmbedderUnavailableError(
                "PyTorch was loaded before this process was forked",
                hint="start worker processes with the method 'spawn' or 'forkserver'",
            )
        return loaded

    def _embed(self, texts: Sequence[str], *, query: bool) -> Matrix:
        loaded = self._ready()
        if not texts:
            return np.empty((0, loaded.space.dimension), np.float32)
        windows = loaded.tokenizer.windows(texts, query=query)
        rows: dict[Ids, int] = {}  # equal windows, and therefore equal texts, are embedded once
        for own in windows:
            for window in own:
                rows.setdefault(window.ids, len(rows))
        vectors = unit_rows(self._computed(loaded, list(rows)), self.model)

        def vector(number: int) -> Vector:
            own = vectors[[rows[window.ids] for window in windows[number]]]
            return own[0] if len(own) == 1 else pool_windows(own, [window.tokens for window in windows[number]])

        return np.stack([vector(number) for number in range(len(texts))])

    def _computed(self, loaded: LoadedModel, windows: Sequence[Ids]) -> Matrix:
        """Return the model's vector of each window, as float32.

        The vectors stay on the device until all batches are computed: the processor prepares the next batch while the
        card computes, and waits once.
        """
        import torch

        batches = split_batches(windows, self._options.batch_tokens)
        try:
            with torch.inference_mode():
                found = [_run(loaded, [windows[number] for number in batch]) for batch in batches]
                matrix: Matrix = torch.cat(found).float().cpu().numpy()
        except RuntimeError as error:  # also for too little memory, when half of the texts may fit
            raise EmbeddingError(f"{self.model} failed on {loaded.device}: {error}") from error
        ordered: Matrix = np.empty_like(matrix)
        ordered[[number for batch in batches for number in batch]] = matrix
        return ordered


def _run(loaded: LoadedModel, windows: Sequence[Ids]) -> torch.Tensor:
    """Return the vectors of one batch, on the device."""
    import torch

    ids = np.full((len(windows), max(map(len, windows))), loaded.padding, np.int64)
    mask = np.zeros_like(ids)
    for number, window in enumerate(windows):
        ids[number, : len(window)] = window
        mask[number, : len(window)] = 1
    features = {}
    for name, values in (("input_ids", ids), ("attention_mask", mask)):
        tensor = torch.from_numpy(values)
        if loaded.device.type == "cuda":  # only from pinned memory does a copy run while the processor goes on
            tensor = tensor.pin_memory()
        features[name] = tensor.to(loaded.device, non_blocking=True)
    vectors: torch.Tensor = loaded.model(features)["sentence_embedding"]
    return vectors
