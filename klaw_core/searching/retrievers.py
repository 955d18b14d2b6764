"""A retriever as the configuration has it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from attrs import frozen

from klaw_core.errors import PluginError
from klaw_core.interfaces.index import NoticingRetriever, Retriever, SuggestingRetriever
from klaw_core.values.search import Hit, Query


@frozen(eq=False, repr=False)
class ConfiguredRetriever:
    """One retriever as configured. ``problem`` says why it cannot take part; then it is not asked."""

    name: str
    retriever: Retriever[Any]
    weight: float
    problem: str = ""

    # A Protocol is checked attribute by attribute, which takes longer than to find out what to do with the answer.
    @cached_property
    def noticing(self) -> NoticingRetriever[Any] | None:
        """The retriever, if it may have notices about a question."""
        return self.retriever if isinstance(self.retriever, NoticingRetriever) else None

    @cached_property
    def suggesting(self) -> SuggestingRetriever[Any] | None:
        """The retriever, if it can say what was probably meant."""
        return self.retriever if isinstance(self.retriever, SuggestingRetriever) else None

    @property
    def limitation(self) -> str:
        """What the retriever does without, empty if nothing; nothing of one that is not asked."""
        return "" if self.problem else str(getattr(self.retriever, "limitation", ""))

    @property
    def complaint(self) -> str:
        """What a person should know before anything is asked of it: that it is off, or what it does without."""
        if self.problem:
            return f"{self.name} is disabled: {self.problem}"
        return f"{self.name} {self.limitation}" if self.limitation else ""


class AbsentRetriever:
    """Stands for a retriever that is configured and not there: of it is only known that it would answer."""

    joins = object
    needs_vectors = False

    def search(self, _resource: object, _query: Query, _limit: int, /) -> Sequence[Hit]:
        """Return nothing; nobody asks."""
        return ()


def absent(name: str, error: PluginError) -> ConfiguredRetriever:
    """Return a configured retriever that cannot be built."""
    return ConfiguredRetriever(name, AbsentRetriever(), 1.0, str(error))
