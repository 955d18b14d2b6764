"""The hook implementations of klaw-embed-sentence-transformers: the embedder ``sentence-transformers``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, hookimpl
from klaw_embed_sentence_transformers.options import SentenceTransformersOptions

if TYPE_CHECKING:
    from klaw_embed_sentence_transformers.embedder import SentenceTransformersEmbedder


def _sentence_transformers(
    options: SentenceTransformersOptions, _context: ComponentContext
) -> SentenceTransformersEmbedder:
    from klaw_embed_sentence_transformers.embedder import SentenceTransformersEmbedder

    return SentenceTransformersEmbedder(options)


@hookimpl
def klaw_embedders() -> Iterable[Component[SentenceTransformersOptions, SentenceTransformersEmbedder]]:
    """Yield the embedder ``sentence-transformers``."""
    yield Component(
        "sentence-transformers",
        options=SentenceTransformersOptions,
        factory=_sentence_transformers,
        api=2,
        summary="any model of sentence-transformers, on a graphics card or the CPU",
    )
