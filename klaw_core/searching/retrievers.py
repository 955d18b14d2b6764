"""Configured retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from attrs import frozen

from klaw_core.errors import PluginError
from klaw_core.interfaces.index import LackingIndex, NoticingRetriever, Retriever, SuggestingRetriever
from klaw_core.values.search import Hit, Query


@frozen(eq=False, repr=False)
class ConfiguredRetriever:
    """A configured retriever. ``problem`` says why it is not used, if it is not."""

    name: str
    retriever: Retriever[Any]
    weight: float
    problem: str = ""

    # Cached, because an isinstance check of a Protocol is slower than using the result.
    @cached_property
    def noticing(self) -> NoticingRetriever[Any] | None:
        """The retriever, if it can return notices about a question."""
        return self.retriever if isinstance(self.retriever, NoticingRetriever) else None

    @cached_property
    def counted(self) -> LackingIndex[Any] | None:
        """The retriever, if it can tell at every search how many chunks it lacks."""
        return self.retriever if isinstance(self.retriever, LackingIndex) else None

    @cached_property
    def suggesting(self) -> SuggestingRetriever[Any] | None:
        """The retriever, if it can suggest corrections."""
        return self.retriever if isinstance(self.retriever, SuggestingRetriever) else None

    @property
    def limitation(self) -> str:
        """The limitation of the retriever; empty if it has none or is not used."""
        return "" if self.problem else str(getattr(self.retriever, "limitation", ""))

    @property
    def complaint(self) -> str:
        """The message for the user: why it is not used, or its limitation."""
        if self.problem:
            return f"{self.name} is disabled: {self.problem}"
        return f"{self.name} {self.limitation}" if self.limitation else ""


class AbsentRetriever:
    """The placeholder for a configured retriever that is not installed."""

    joins = object
    needs_vectors = False

    def search(self, _resource: object, _query: Query, _limit: int, /) -> Sequence[Hit]:
        """Return nothing; it is never called."""
        return ()


def absent(name: str, error: PluginError) -> ConfiguredRetriever:
    """Return a configured retriever for one that cannot be built."""
    return ConfiguredRetriever(name, AbsentRetriever(), 1.0, str(error))
