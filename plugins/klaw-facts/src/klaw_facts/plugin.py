"""The hooks of the plugin: the extension ``facts`` and the chunker of its documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from attrs import frozen

from klaw_core import Component, ComponentContext, ForgetEvent, NoOptions, Span, TokenCounter, hookimpl
from klaw_facts.options import FactsOptions

if TYPE_CHECKING:
    from klaw_facts.facts import Facts


@frozen
class FactChunker:
    """Returns one chunk per fact."""

    def split(self, text: str, _count_tokens: TokenCounter, /) -> Iterator[Span]:
        """Yield the whole text."""
        if text.strip():
            yield Span(0, len(text.rstrip()))


def _build(options: FactsOptions, context: ComponentContext) -> Facts:
    from klaw_facts.facts import Facts

    return Facts(options, context.data_dir)


@hookimpl
def klaw_extensions() -> Iterable[Component[FactsOptions, Facts]]:
    """Yield the extension."""
    summary = "facts with their validity, history and quotes"
    yield Component("facts", FactsOptions, _build, api=2, summary=summary, listens=(ForgetEvent,), separate=("facts",))


@hookimpl
def klaw_chunkers() -> Iterable[Component[NoOptions, FactChunker]]:
    """Yield the chunker of the format ``fact``."""
    yield Component("fact", NoOptions, lambda _options, _context: FactChunker(), api=2, summary="one chunk per fact")
