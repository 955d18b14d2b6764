"""Configured retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from klaw_core.interfaces.index import Retriever
from klaw_core.values.search import Hit, Query


@frozen(eq=False, repr=False)
class ConfiguredRetriever:
    """A configured retriever. ``problem`` says why it is not used, if it is not."""

    name: str
    retriever: Retriever[Any]
    weight: float
    problem: str = ""

    @property
    def limitation(self) -> str:
        """The limitation of the retriever; empty if it has none or is not used."""
        return "" if self.problem else self.retriever.limitation

    @property
    def complaint(self) -> str:
        """The message for the user: why it is not used, or its limitation."""
        if self.problem:
            return f"{self.name} is disabled: {self.problem}"
        return f"{self.name} {self.limitation}" if self.limitation else ""


class AbsentRetriever(Retriever[object]):
    """The placeholder for a configured retriever that is not installed."""

    joins = object
    needs_vectors = False

    def search(self, _resource: object, _query: Query, _limit: int, /) -> Sequence[Hit]:
        """Return nothing; it is never called."""
        return ()
