"""A retriever as the configuration has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from klaw_core.errors import PluginError
from klaw_core.interfaces.index import Retriever
from klaw_core.values.search import Hit, Query


@frozen(eq=False, repr=False)
class ConfiguredRetriever:
    """One retriever as configured. ``problem`` says why it cannot take part; then it is not asked."""

    name: str
    retriever: Retriever[Any]
    weight: float
    problem: str = ""

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
