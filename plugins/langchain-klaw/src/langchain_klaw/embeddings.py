"""Use embedders of LangChain in Klaw, and those of Klaw in LangChain."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from attrs import define
from langchain_core.embeddings import Embeddings

from klaw_core import (
    EmbeddingError,
    IndexReport,
    LiveComponent,
    Matrix,
    Memory,
    Vector,
    VectorSpace,
    load_config,
    unit_rows,
)

if TYPE_CHECKING:
    from klaw_core import Config

_NAME = "langchain"
_log = logging.getLogger("langchain_klaw")
# Bytes per token of the tokenizers in use: about four for English, fewer for most other languages.
_BYTES_PER_TOKEN = 4


@define(slots=False)
class LangChainEmbedder:
    """A LangChain ``Embeddings`` object as an embedder of Klaw.

    LangChain gives neither the maximum length of a text nor its number of tokens. So the caller sets ``max_tokens``,
    and tokens are estimated from bytes.
    """

    embeddings: Embeddings
    max_tokens: int

    @cached_property
    def space(self) -> VectorSpace:
        """The vector space; the model computes one vector to find the dimension."""
        model = getattr(self.embeddings, "model", None) or getattr(self.embeddings, "model_name", None)
        name = model if isinstance(model, str) else type(self.embeddings).__name__
        return VectorSpace(f"langchain:{name}", "", len(self.embeddings.embed_query("dimension")))

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return float32 of shape (n, d), rows of unit length. Raise EmbeddingError."""
        if not texts:
            return np.empty((0, self.space.dimension), np.float32)
        try:
            rows = self.embeddings.embed_documents(list(texts))
        except Exception as error:  # any exception of the caller's code
            raise EmbeddingError(f"{type(self.embeddings).__name__}: {error}") from error
        return unit_rows(np.asarray(rows, np.float32), type(self.embeddings).__name__)

    def embed_query(self, text: str, /) -> Vector:
        """Return float32 of shape (d,), unit length. Raise EmbeddingError."""
        try:
            row = self.embeddings.embed_query(text)
        except Exception as error:  # any exception of the caller's code
            raise EmbeddingError(f"{type(self.embeddings).__name__}: {error}") from error
        vector: Vector = unit_rows(np.asarray([row], np.float32), type(self.embeddings).__name__)[0]
        return vector

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return an estimate of each text's number of tokens."""
        return [-(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN) for text in texts]


class KlawEmbeddings(Embeddings):
    """The embedder of a Klaw memory as LangChain ``Embeddings``."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a unit vector for each text. Raise klaw_core.EmbeddingError."""
        rows: list[list[float]] = self._memory.embedder.embed_documents(texts).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """Return the unit vector of a question. Raise klaw_core.EmbeddingError."""
        row: list[float] = self._memory.embedder.embed_query(text).tolist()
        return row


def report_problems(report: IndexReport) -> None:
    """Log why added documents are found by words only."""
    for notice in report.notices:
        _log.warning("%s", notice)


def open_memory(data_dir: str | Path | None, embedding: Embeddings | None, max_tokens: int) -> Memory:
    """Open the memory in a data directory (default: the user's), with this model instead of the configured one.

    Raise ConfigError, PluginError, StoreError.
    """
    if embedding is None:
        return Memory.open(data_dir=data_dir)
    config: Config = load_config(data_dir=data_dir, overrides={"memory": {"embedding": {"type": _NAME}}})
    return Memory.open(config, components=[LiveComponent("embedder", _NAME, LangChainEmbedder(embedding, max_tokens))])
