"""The hooks of the components that ship with the core.

Imports are inside the hooks and factories: a hook is called only if its kind is configured.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from klaw_core.hookspecs import API, Component, NoOptions, hookimpl

if TYPE_CHECKING:
    from klaw_core.interfaces.components import Chunker, Embedder, Fusion


@hookimpl
def klaw_embedders() -> Iterable[Component[Any, Embedder]]:
    """Yield ``none`` and ``auto``."""
    from klaw_core.builtin.none_embedder import NoEmbedder

    yield Component("none", NoEmbedder, lambda options, _: options, API, "no vectors: search by words alone")
    summary = "the first embedder that works: local ones, then configured servers and APIs"
    # The assembly, which knows what is installed, replaces ``auto`` by the embedders to choose from.
    yield Component("auto", NoOptions, lambda _options, _context: NoEmbedder(), API, summary)


@hookimpl
def klaw_chunkers() -> Iterable[Component[Any, Chunker]]:
    """Yield the chunker ``plain``."""
    from klaw_core.builtin.plain_chunker import PlainChunker, PlainOptions

    summary = "any text, split at paragraphs, lines and words"
    yield Component("plain", PlainOptions, lambda options, _: PlainChunker(options), API, summary)


@hookimpl
def klaw_fusions() -> Iterable[Component[Any, Fusion]]:
    """Yield the two fusions."""
    from klaw_core.builtin.fusion import ReciprocalRankFusion, WeightedFusion

    yield Component("rrf", ReciprocalRankFusion, lambda options, _: options, API, "reciprocal rank fusion")
    yield Component("weighted", WeightedFusion, lambda options, _: options, API, "min-max scores, convex combination")
