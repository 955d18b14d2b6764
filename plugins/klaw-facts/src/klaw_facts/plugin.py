"""The hooks of the plugin: the extension ``facts`` and the chunker of its documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from attrs import frozen

from klaw_core import (
    CloseEvent,
    Component,
    ComponentContext,
    ForgetEvent,
    NoOptions,
    SearchEvent,
    Span,
    TokenCounter,
    hookimpl,
)
from klaw_facts.options import FactsOptions

if TYPE_CHECKING:
    from klaw_core import Extension
    from klaw_facts.current import CurrentFacts
    from klaw_facts.facts import Facts
    from klaw_facts.recalls import RecallCounts


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


def _build_current(_options: NoOptions, _context: ComponentContext) -> CurrentFacts:
    from klaw_facts.current import CurrentFacts

    return CurrentFacts()


def _build_recalls(_options: NoOptions, context: ComponentContext) -> RecallCounts:
    from klaw_facts.recalls import RecallCounts

    return RecallCounts(context.data_dir / "facts")


@hookimpl
def klaw_extensions() -> Iterable[Component[Any, Extension]]:
    """Yield the extension, the one that keeps answers as current as it, and the one that counts what is found."""
    summary = "facts with their validity, history and quotes"
    yield Component("facts", FactsOptions, _build, api=2, summary=summary, listens=(ForgetEvent,), separate=("facts",))
    summary = "answers show facts as their journal has them"
    yield Component("current_facts", NoOptions, _build_current, api=2, summary=summary, listens=(SearchEvent,))
    summary = "how often searches and contexts found each document"
    listens = (SearchEvent, ForgetEvent, CloseEvent)
    yield Component("recalls", NoOptions, _build_recalls, api=2, summary=summary, listens=listens)


@hookimpl
def klaw_chunkers() -> Iterable[Component[NoOptions, FactChunker]]:
    """Yield the chunker of the format ``fact``."""
    yield Component("fact", NoOptions, lambda _options, _context: FactChunker(), api=2, summary="one chunk per fact")
